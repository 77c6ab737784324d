"""Added folders whose run ended early: shown after a restart, continued or removed."""

import os

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from mydata_like.app.settings_service import find_places, ledger_file
from mydata_like.app.source_service import find_unfinished_sources
from mydata_like.core.extra_sources import Destination, ExtraSource, KnownSource
from mydata_like.gui.overview.overview_page import OverviewPage
from mydata_like.gui.overview.summary_cards import MAX_ROWS, RemoveQuestion, UnfinishedList
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.fakes.clock import FakeClock
from tests.gui.conftest import DEADLINE
from tests.site import kill_group, wait_for
from tests.sshd_fixture import needs_sshd

OLD = 1_600_000_000
NOW = FakeClock().now()


@pytest.fixture
def dropped(tmp_path):
    folder = tmp_path / "usb stick" / "Day 1"
    for number in range(200):
        path = folder / "raw" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"number {number}")
        os.utime(path, (OLD, OLD))
    return folder


def a_source(path=b"/usb/Day 1", files=None, size=None):
    return KnownSource(path, Destination("alice", "Mice", "Day 1"), NOW, None, files, size)


def texts(parent):
    return "\n".join(
        label.text() for label in parent.findChildren(QLabel) if label.isVisibleTo(parent)
    )


def button(parent, text):
    return next(one for one in parent.findChildren(QPushButton) if one.text().startswith(text))


def show(context, qtbot):
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitUntil(lambda: bool(context.controller.state.sources), timeout=DEADLINE)
    return page, page.findChild(UnfinishedList)


@needs_sshd
def test_a_killed_drop_is_shown_after_a_restart_and_continued(site, dropped, open_context, qtbot):
    words = "--source", str(dropped), "--as", "Mice/Day 1"
    process = site.start("run", "--events", *words)
    wait_for(process, "transfer_started")
    kill_group(process)
    process.communicate()

    context = open_context(site.config)
    qtbot.waitUntil(lambda: context.controller.state.phase == "idle", timeout=DEADLINE)
    _, shown = show(context, qtbot)
    assert shown.isVisible()
    assert "uploaded as Mice / Day 1" in texts(shown)
    button(shown, "Continue").click()
    qtbot.waitUntil(lambda: not context.controller.state.sources, timeout=DEADLINE)

    assert not shown.isVisible()
    sent = [file for file in site.server.datafiles() if file.filename.endswith(".txt")]
    names = {f"{number}.txt" for number in range(200)}
    assert names <= {file.filename for file in sent}
    assert {file.verified for file in sent if file.filename in names} == {True}


def test_a_folder_that_is_removed_is_asked_about_once_and_forgotten(context, site, qtbot):
    settings, config = context.controller.settings, context.controller.config
    root = os.fsencode(settings.data.directory)
    file = ledger_file(settings, find_places(config), root)
    with SqliteLedger.open(file, root, SystemClock()) as ledger:
        ledger.record_source(ExtraSource(b"/usb/Day 1", Destination("", "Mice", "Day 1")))
    context.controller._look()
    page, shown = show(context, qtbot)

    button(shown, "Remove").click()
    question = page.findChild(RemoveQuestion)
    assert "/usb/Day 1" in question.text()
    assert len(find_unfinished_sources(settings, config)) == 1
    button(question, "&Remove").click()
    qtbot.waitUntil(lambda: not shown.isVisible(), timeout=DEADLINE)

    assert find_unfinished_sources(settings, config) == []


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (a_source(), "not scanned yet"),
        (a_source(files=0, size=0), "the next run checks whether everything is on the server"),
        (a_source(files=12, size=34_000_000), "12 file(s), 34.0 MB, not verified yet"),
    ],
    ids=["unknown", "nothing", "some"],
)
def test_the_rest_of_a_folder_is_shown_as_far_as_it_is_known(controller, qtbot, source, told):
    shown = UnfinishedList(controller)
    qtbot.addWidget(shown)

    shown.show_state(RunState(phase=Phase.IDLE, sources=(source,)))
    assert f"uploaded as alice / Mice / Day 1 · {told}" in texts(shown)


def test_nothing_is_shown_where_all_is_finished(controller, qtbot):
    shown = UnfinishedList(controller)
    qtbot.addWidget(shown)

    shown.show_state(RunState(phase=Phase.IDLE, sources=(a_source(),)))
    assert shown.isVisible()
    shown.show_state(RunState(phase=Phase.IDLE))
    assert not shown.isVisible()


def test_while_a_run_is_at_work_a_folder_is_neither_continued_nor_removed(controller, qtbot):
    shown = UnfinishedList(controller)
    qtbot.addWidget(shown)
    shown.show_state(RunState(phase=Phase.RUNNING, sources=(a_source(),)))

    assert not button(shown, "Continue").isEnabled()
    assert not button(shown, "Remove").isEnabled()


def test_of_very_many_folders_the_first_are_shown_and_the_others_counted(controller, qtbot):
    shown = UnfinishedList(controller)
    qtbot.addWidget(shown)
    many = tuple(a_source(b"/usb/%d" % number) for number in range(MAX_ROWS + 3))
    shown.show_state(RunState(phase=Phase.IDLE, sources=many))

    assert len(shown.rows) == MAX_ROWS
    assert "and 3 more; Start continues with all" in texts(shown)
