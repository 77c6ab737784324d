"""What the window says after a run that was cut off: what exists only here, and never safe."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
from PySide6.QtWidgets import QToolButton

from mydata_like.app.ledger_status import look_at_state
from mydata_like.app.settings_service import load_settings, save_settings
from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.core.model import EntryState, Outcome
from mydata_like.gui.overview.bars import StatusBreakdownBar
from mydata_like.gui.run_state import Phase
from mydata_like.gui.theme.widgets import PlainLabel
from mydata_like.gui.tray.tray_icon import TrayState, choose_icon
from mydata_like.gui.tray.tray_menu import Tray
from mydata_like.gui.window import MainWindow
from tests.gui.conftest import QUICK
from tests.gui.ledgers import WrittenLedger
from tests.sshd_fixture import needs_sshd

pytestmark = needs_sshd
NEW_FILES = 12
SIZE = 400_000
SLOW = {"limits.bandwidth": 0.5, "schedule.kind": "startup", "transfer.batch_below": 100_000}
UNSENT = Problem("waiting.unsent", "No run has sent it yet.", "The next run sends it.")


def add_files(site):
    folder = site.data / "alice" / "Added later"
    folder.mkdir()
    for number in range(NEW_FILES):
        path = folder / f"frame_{number:02d}.raw"
        path.write_bytes(os.urandom(SIZE))
        os.utime(path, (time.time() - 90_000,) * 2)
    return folder


def look(site):
    settings = load_settings(site.config).settings
    return look_at_state(settings, site.config)


def start_window(site):
    """Start the real program without a screen; its engine begins a run with it."""
    save_settings(site.config, SLOW)
    return subprocess.Popen(
        [sys.executable, "-m", "mydata_like", "gui", "--config", str(site.config)],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_all(process):
    """Kill the window, the engine and its workers, as a power cut would."""
    family = [psutil.Process(process.pid)]
    family += family[0].children(recursive=True)
    for one in family:
        with suppress(psutil.NoSuchProcess):  # it ended by itself
            one.send_signal(signal.SIGSTOP)  # else one may react to the end of another
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()
    psutil.wait_procs(family[1:])


def is_in_the_middle(site):
    """Return whether all files were found, and some but not all of the new ones were sent."""
    found = look(site)
    past = found.runs[0] if found.running and found.runs else None
    if past is None or past.finished is not None:
        return False
    total, sent = past.summary["found"], past.summary["sent"]
    return total == len(site.place.expected_files()) and 0 < sent < NEW_FILES - 2


def find_unsafe(site):
    """Return the local files that the ledger does not know as verified, and note them as found."""
    settings = load_settings(site.config).settings
    written = WrittenLedger.of(settings, site.config)
    keys = {
        os.fsencode(path.relative_to(site.data).as_posix()): path
        for path in site.place.expected_files().values()
    }
    entries = written.ledger.find_entries(list(keys))
    unsafe = {
        key: path.stat()
        for key, path in keys.items()
        if key not in entries or entries[key].state is not EntryState.VERIFIED
    }
    written.ledger.record_outcomes(
        [
            Outcome(key, status.st_size, status.st_mtime_ns, "found", UNSENT)
            for key, status in unsafe.items()
        ]
    )
    written.close()
    return unsafe


@pytest.fixture
def cut_off(site, qtbot):
    """A good run, new files, and a run over them that was killed with its window; what is open."""
    site.run()
    add_files(site)
    process = start_window(site)
    try:
        qtbot.waitUntil(lambda: is_in_the_middle(site))
    finally:
        kill_all(process)
    save_settings(site.config, QUICK | {"limits.bandwidth": 0})
    unsafe = find_unsafe(site)
    assert 0 < len(unsafe) <= NEW_FILES
    return unsafe


@pytest.fixture
def window(open_context, qtbot):
    """Return what opens the window over a site, and waits until it knows how things stand."""
    opened = []

    def open_it(site):
        context = open_context(site.config)
        window = MainWindow(context)
        qtbot.addWidget(window)
        opened.append((window, Tray(context.controller, window, lambda: True)))
        window.show()
        qtbot.waitUntil(lambda: context.controller.state.phase == Phase.IDLE)
        return context.controller, *opened[-1]

    return open_it


def texts(window):
    return [label.text() for label in window.findChildren(PlainLabel) if label.isVisible()]


def cells(model, column, parent=None):
    rows = range(model.rowCount(parent) if parent is not None else model.rowCount())
    return [
        model.index(row, column, *([parent] if parent is not None else [])).data() for row in rows
    ]


def test_after_a_kill_every_view_says_what_exists_only_here(cut_off, site, window, qtbot):
    controller, window, tray = window(site)
    count, size = len(cut_off), sum(status.st_size for status in cut_off.values())

    assert controller.state.interrupted is not None
    assert (controller.state.at_risk.files, controller.state.at_risk.bytes) == (count, size)
    said = texts(window.page)
    assert any(
        "The last run was interrupted" in text and f"{count} file(s)" in text for text in said
    )
    assert f"{count} file(s)" in said  # the card
    assert any("The oldest of them is from" in text for text in said)
    assert not any("safe" in text or text == "Nothing" for text in said)
    qtbot.waitUntil(lambda: "The last run was interrupted" in tray.icon.toolTip())
    assert choose_icon(controller.state).state is TrayState.AT_RISK


def test_the_bar_after_a_kill_leads_to_what_waits(cut_off, site, window, qtbot):
    controller, window, _ = window(site)
    bar = window.page.findChild(StatusBreakdownBar)
    waiting = bar.findChild(QToolButton, "waiting")
    assert waiting.text() == f"{controller.state.interrupted.unsafe} waiting"
    assert waiting.isEnabled()

    waiting.click()

    page = window.page
    qtbot.waitUntil(lambda: page._kinds.group is not None)
    assert page._kinds.group.kind == "found"
    assert page._kinds.group.files == len(cut_off)
    assert page._run.problem.code == "run.cut-off"
    assert {page._card._button.text(), page._run._button.text()} == {"Start"}
    page._card._button.click()

    qtbot.waitUntil(lambda: controller.state.safety is Safety.SAFE)
    assert controller.state.interrupted is None
    assert choose_icon(controller.state).state is TrayState.IDLE
    assert site.find_wrongs() == []
    window.show_page("overview")
    assert any("are safe on the server" in text for text in texts(window.page))


def test_folders_and_history_after_a_kill(cut_off, site, window, qtbot):
    _, window, _ = window(site)
    window.show_page("folders")
    model = window.page._model
    qtbot.waitUntil(lambda: model.rowCount() > 0)
    owners = dict(zip(cells(model, 0), cells(model, 1), strict=True))
    assert owners["alice"] in ("Unfinished", "Not sent yet")

    window.show_page("history")
    runs = window.page._runs.model
    qtbot.waitUntil(lambda: runs.rowCount() == 2 and not runs.busy)
    assert cells(runs, 7)[0].startswith("Interrupted, ")


def test_status_after_a_kill(cut_off, site):
    (record,) = site.command("status", "--json").lines
    said = site.command("status").output

    assert record["safety"] == "at risk"
    assert record["at_risk"]["files"] == len(cut_off)
    assert record["interrupted"]["found"] == len(site.place.expected_files())
    assert "was interrupted. The next run continues." in said
    assert f"Only on this computer: {len(cut_off)} files" in said
    assert "are safe" not in said


def test_after_a_stop_in_the_first_run_what_was_not_sent_is_at_risk(site, window, qtbot):
    save_settings(site.config, SLOW | {"schedule.kind": "manual"})
    controller, window, tray = window(site)
    controller.start()
    qtbot.waitUntil(lambda: controller.state.sums.wanted > controller.state.sums.sent > 0)
    controller.stop()
    qtbot.waitUntil(lambda: controller.state.last is not None)
    unsafe = find_unsafe(site)
    controller._look()
    qtbot.waitUntil(lambda: controller.state.at_risk.files == len(unsafe))

    said = texts(window.page)
    assert f"{len(unsafe)} file(s)" in said
    assert any("stopped" in text and f"{len(unsafe)} file(s)" in text for text in said)
    assert not any("safe" in text or text == "Nothing" for text in said)
    qtbot.waitUntil(lambda: "still only on this computer" in tray.icon.toolTip())
    assert choose_icon(controller.state).state is TrayState.AT_RISK


def test_an_engine_that_is_killed_in_the_first_run_leaves_nothing_green(site, window, qtbot):
    save_settings(site.config, SLOW | {"schedule.kind": "manual"})
    controller, window, _ = window(site)
    controller.start()
    qtbot.waitUntil(lambda: controller.state.sums.wanted > controller.state.sums.sent > 0)
    qtbot.waitUntil(lambda: bool(look(site).runs))
    controller.engine.kill()
    qtbot.waitUntil(lambda: controller.state.interrupted is not None)
    unsafe = find_unsafe(site)
    controller._look()
    qtbot.waitUntil(lambda: controller.state.at_risk.files == len(unsafe))

    said = texts(window.page)
    assert f"{len(unsafe)} file(s)" in said
    assert not any("safe" in text or text == "Nothing" for text in said)
    bar = window.page.findChild(StatusBreakdownBar)
    assert bar.findChild(QToolButton, "waiting").isEnabled()
    assert bar.findChild(QToolButton, "open").isHidden()
    assert choose_icon(controller.state).state in (TrayState.PROBLEM, TrayState.AT_RISK)


def test_a_data_folder_that_is_away_or_empty_is_reported(site, window, qtbot):
    site.run()
    controller, window, tray = window(site)
    assert any("are safe on the server" in text for text in texts(window.page))
    aside = site.data.rename(site.data.with_name("unmounted"))

    for _ in range(2):  # gone, then the empty place where it was mounted
        controller._look()
        qtbot.waitUntil(lambda: controller.state.data_problem is not None)
        said = texts(window.page)
        assert "Cannot be read" in said
        assert not any("safe" in text or text == "Nothing" for text in said)
        assert choose_icon(controller.state).state is TrayState.PROBLEM
        assert look(site).safety == "problem"
        controller._set(data_problem=None)
        site.data.mkdir(exist_ok=True)

    site.data.rmdir()
    aside.rename(site.data)
    controller._look()
    qtbot.waitUntil(lambda: any("are safe on the server" in text for text in texts(window.page)))
    qtbot.waitUntil(lambda: "are safe on the server" in tray.icon.toolTip())
