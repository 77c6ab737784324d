"""The window with a destination that has no server: its words, its tables, and a drop."""

import json
import os
import re
import subprocess
import sys
from random import Random

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit, QProgressBar, QTableView, QTreeView

from mydata_like.app.restore_test import run_restore_test
from mydata_like.app.settings_destination import open_place
from mydata_like.app.settings_service import load_settings, save_settings
from mydata_like.app.verify_service import Surroundings
from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui.drop.drop_dialog import DropDialog
from mydata_like.gui.drop.drop_model import SourceColumn
from mydata_like.gui.dry_run import DryRunDialog, PlanModel
from mydata_like.gui.overview.destination_check import DestinationCheck
from mydata_like.gui.overview.overview_page import OverviewPage
from mydata_like.gui.pages.folders_page import FoldersPage
from mydata_like.gui.pages.transfers_page import TransfersPage
from mydata_like.gui.pages.where_page import WherePage
from mydata_like.gui.tables.folder_tree import TOP
from mydata_like.gui.tables.table_panel import list_levels
from mydata_like.gui.theme.destination_translator import DestinationTranslator, name_destination
from mydata_like.gui.theme.widgets import FoldedText
from mydata_like.gui.where.free_dialog import FreeDialog
from mydata_like.gui.where.get_dialog import GetDialog, ReplaceHereQuestion
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import DataDestination
from mydata_like.ssh.keys import create_key
from tests.gui.conftest import DEADLINE, QUICK
from tests.gui.test_where_page import button, said, wait
from tests.site import make_data
from tests.sshd_fixture import needs_sshd

TEXT = "All files are safe on the server."  # of the context "notifications"


@pytest.fixture
def host(tmp_path, home):
    """Settings for a host, a data directory, and the folder on the host."""
    data, there = make_data(tmp_path, tiny_files=4, large=1000), tmp_path / "there"
    config = tmp_path / "config" / "settings.toml"
    with PrivateSshd(tmp_path / "sshd") as sshd:
        key = create_key(tmp_path / "key" / "id_ed25519")
        sshd.authorize(key.public)
        values = {
            "destination.kind": "host",
            "destination.address": f"ssh://{sshd.username}@{sshd.host}:{sshd.port}{there}",
            "transfer.key_file": str(key.path),
            "transfer.host_keys": [sshd.fingerprint],
            "data.directory": str(data),
        }
        save_settings(config, QUICK | values)
        yield config, data, there


@needs_sshd
def test_every_page_names_the_host_instead_of_the_server(host):
    config, _, _ = host
    ended = subprocess.run(
        [sys.executable, "-m", "tests.window_texts", config, "--live"],
        input="start\nread\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE / 1000,
    )
    look = json.loads(ended.stdout.splitlines()[-1])

    assert look["line"][0] == look["tray"]["tip"]
    assert look["line"][0].startswith("All 28 files are safe on 127.0.0.1 as of ")
    assert "Every file that was found is on 127.0.0.1." in look["overview"]["texts"]
    assert not re.search(r"the server|on server|Server|Your account|MyTardis", json.dumps(look))
    tree = look["folders"]["tables"][0]["rows"]
    assert [row["path"] for row in tree if not row["above"]] == ["alice", "bob"]


@needs_sshd
def test_a_dry_run_lists_folders_without_owners(host, open_context, qtbot):
    config, data, there = host
    (data / "notes.txt").write_text("in no folder")
    context = open_context(config)
    qtbot.waitUntil(lambda: context.controller.state.phase == "idle")
    dialog = DryRunDialog(context)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(lambda: dialog.ended)
    table, model = dialog.findChild(QTableView), dialog.findChild(PlanModel)

    shown = [it for it in range(model.columnCount()) if not table.isColumnHidden(it)]
    assert [[model.index(row, column).data() for column in shown] for row in range(3)] == [
        ["(files in no folder)", "1", "0", "1"],
        ["alice", "6", "0", "6"],
        ["bob", "22", "0", "22"],
    ]
    assert not there.exists()


@needs_sshd
def test_a_dropped_folder_goes_to_a_folder_of_its_name_on_the_host(
    host, tmp_path, open_context, qtbot
):
    config, _, there = host
    dropped = tmp_path / "usb" / "day 1"
    for name in ("a.tif", "raw/b.tif"):
        (dropped / name).parent.mkdir(parents=True, exist_ok=True)
        (dropped / name).write_text(name)
    context = open_context(config)
    controller = context.controller
    qtbot.waitUntil(lambda: controller.state.phase == "idle")
    sheet = DropDialog(context, [os.fsencode(dropped)])
    qtbot.addWidget(sheet)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    sheet.show()
    qtbot.waitUntil(sheet.upload.isEnabled)
    tree, model = sheet.findChild(QTreeView), sheet.model
    assert [it.name for it in SourceColumn if tree.isColumnHidden(it)] == ["OWNER", "EXPERIMENT"]
    name = model.index(0, SourceColumn.DATASET)
    assert (name.data(), model.headerData(name.column(), Qt.Orientation.Horizontal)) == (
        *("day 1", "Folder there"),
    )
    for wrong in (".mydata-like", "../elsewhere"):
        model.setData(name, wrong)
        assert not sheet.upload.isEnabled()
    model.setData(name, "Day one")
    sheet.upload.click()
    qtbot.waitUntil(lambda: controller.state.last is not None)

    assert controller.state.last.safe
    assert (there / "Day one" / "raw" / "b.tif").read_text() == "raw/b.tif"
    levels = list_levels(load_settings(config).settings, config, [TOP])
    assert [group.dataset for group in levels[TOP]] == ["Day one"]


@needs_sshd
def test_space_is_freed_after_a_check_on_the_host(host, open_context, qtbot):
    config, data, there = host
    context = open_context(config)
    controller = context.controller
    qtbot.waitUntil(lambda: controller.state.phase == "idle")
    controller.start()
    qtbot.waitUntil(lambda: controller.state.last is not None)
    qtbot.waitUntil(lambda: not controller.state.at_work)
    file = next((data / "alice" / "Tomogram 7").rglob("*.*"))
    page = WherePage(context)
    qtbot.addWidget(page)
    page.show()
    page.look_for(str(file))
    wait(qtbot, page, "Use Check now to find out")
    assert "Registered" not in said(page)
    assert not button(page, "Open on").isVisible()

    button(page, "Check now").click()
    wait(qtbot, page, "Yes")
    button(page, "Free space").click()
    dialog = page.findChild(FreeDialog)
    wait(qtbot, dialog, "1 file(s) can be deleted")
    button(dialog, "Delete 1 file(s)").click()
    wait(qtbot, dialog, "1 file(s) were deleted")

    assert not file.exists()
    assert (there / file.relative_to(data)).exists()


@needs_sshd
def test_the_overview_says_when_the_files_there_were_last_checked(host, open_context, qtbot):
    config, data, there = host
    (data / "alice" / "one.raw").write_text("one")
    (data / "bob" / "two.raw").write_text("two")
    context = open_context(config)
    controller = context.controller
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitUntil(lambda: controller.state.phase == "idle")
    assert "checked" not in said(page).lower()
    controller.start()
    qtbot.waitUntil(lambda: controller.state.last is not None and not controller.state.at_work)
    wait(qtbot, page, "were not checked since they arrived")
    damaged, lost = (there / name for name in ("alice/one.raw", "bob/two.raw"))

    button(page, "Check now").click()
    wait(qtbot, page, ": all as they were sent.")
    damaged.write_text("ONE")
    lost.unlink()
    button(page, "Check now").click()
    wait(qtbot, page, ": 1 missing, 1 with other bytes.")

    assert "The next run sends or lists again what is still on this computer." in said(page)
    wait(qtbot, page, "2 file(s) wait for the next run")
    assert "are safe" not in said(page)
    details = page.findChild(DestinationCheck).findChild(FoldedText)
    assert sorted(details.text().split("\n")) == [
        "Missing: bob/two.raw",
        "Other bytes: alice/one.raw",
    ]
    another = OverviewPage(context)
    qtbot.addWidget(another)
    another.show()
    wait(qtbot, another, ": 1 missing, 1 with other bytes.")

    button(another, "Check now").click()
    stop = button(another, "Stop")
    stop.click()
    qtbot.waitUntil(lambda: stop.text() == "Check now")
    wait(qtbot, another, "30 file(s) checked")
    (there / ".mydata-like" / "destination.json").unlink()
    button(another, "Check now").click()
    wait(qtbot, another, "it has no marker. Check the path")


@pytest.fixture
def sent(host, open_context, qtbot):
    """A context after a run to a host, its data directory and the folder on the host."""
    config, data, there = host
    (data / "alice" / "Tomogram 7" / "two.raw").write_bytes(b"two" * 1_000_000)
    context = open_context(config)
    controller = context.controller
    qtbot.waitUntil(lambda: controller.state.phase == "idle")
    controller.start()
    qtbot.waitUntil(lambda: controller.state.last is not None and not controller.state.at_work)
    return context, data, there


def open_page(kind, context, qtbot):
    page = kind(context)
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()
    return page


def find_action(page, text):
    return next(it for it in page.findChildren(QAction) if it.text() == text)


def ask_to_get(page, path, qtbot):
    """Find a path on the page, and open the dialog that gets it back."""
    page.look_for(str(path))
    qtbot.waitUntil(button(page, "Get it back").isVisible)
    button(page, "Get it back").click()
    return page.findChild(GetDialog)


@needs_sshd
def test_a_missing_file_comes_back_to_its_place(sent, qtbot):
    context, data, _ = sent
    file = data / "alice" / "Tomogram 7" / "two.raw"
    content = file.read_bytes()
    file.unlink()
    page = open_page(WherePage, context, qtbot)

    dialog = ask_to_get(page, file, qtbot)
    button(dialog, "&Get it back").click()
    wait(qtbot, dialog, "1 file(s), 3.0 MB, are back in ")

    assert file.read_bytes() == content
    assert "Each was compared with what was proven." in said(dialog)
    qtbot.waitUntil(lambda: "It is no longer on this computer" not in said(page))
    dialog.close()


@needs_sshd
def test_only_what_was_sent_is_offered(sent, qtbot):
    context, data, _ = sent
    (data / "alice" / "Tomogram 7" / "new.raw").write_text("new")
    page = open_page(WherePage, context, qtbot)
    page.look_for(str(data / "alice" / "Tomogram 7" / "two.raw"))
    qtbot.waitUntil(button(page, "Get it back").isVisible)

    page.look_for(str(data / "alice" / "Tomogram 7" / "new.raw"))
    wait(qtbot, page, "No run has found it.")
    qtbot.waitUntil(lambda: not context.tasks.busy)

    assert not button(page, "Get it back").isVisible()


@needs_sshd
def test_a_folder_goes_elsewhere_and_replaces_only_after_a_question(sent, tmp_path, qtbot):
    context, data, _ = sent
    again = tmp_path / "again"
    folder = data / "alice"
    (again / "alice" / "Tomogram 7").mkdir(parents=True)
    differs = again / "alice" / "Tomogram 7" / "two.raw"
    differs.write_text("something else")
    page = open_page(FoldersPage, context, qtbot)
    tree, get = page.findChild(QTreeView), find_action(page, "Get it back…")
    qtbot.waitUntil(lambda: tree.model().rowCount() == 2)

    tree.setCurrentIndex(tree.model().index(0, 0))
    qtbot.waitUntil(get.isEnabled)
    get.trigger()
    dialog = page.findChild(GetDialog)
    start, field = button(dialog, "&Get it back"), dialog.findChild(QLineEdit)
    assert not start.isEnabled()
    field.setText(str(again))
    start.click()
    wait(qtbot, dialog, f" are back in {again}")
    assert "1 file(s) did not come back:" in said(dialog)
    assert differs.read_text() == "something else"

    button(dialog, "&Replace…").click()
    question = dialog.findChild(ReplaceHereQuestion)
    assert question.text() == "Replace 1 file(s) on this computer?"
    button(question, "&Cancel").click()
    assert differs.read_text() == "something else"
    button(dialog, "&Replace…").click()
    button(dialog.findChildren(ReplaceHereQuestion)[-1], "&Replace").click()
    wait(qtbot, dialog, f"1 file(s), 3.0 MB, are back in {again}")

    copied = {it.relative_to(folder): it.read_bytes() for it in folder.rglob("*") if it.is_file()}
    assert {
        it.relative_to(again / "alice"): it.read_bytes()
        for it in (again / "alice").rglob("*")
        if it.is_file()
    } == copied
    dialog.close()


@needs_sshd
def test_getting_back_is_cancelled_and_continued(sent, tmp_path, qtbot):
    context, data, _ = sent
    controller = context.controller
    save_settings(controller.config, {"limits.bandwidth": 0.5})
    qtbot.waitUntil(lambda: controller.settings.limits.bandwidth == 0.5)
    page = open_page(WherePage, context, qtbot)

    dialog = ask_to_get(page, data / "alice" / "Tomogram 7" / "two.raw", qtbot)
    dialog.findChild(QLineEdit).setText(str(tmp_path / "again"))
    button(dialog, "&Get it back").click()
    bar = dialog.findChild(QProgressBar)
    qtbot.waitUntil(lambda: bar.value() > 0)
    button(dialog, "Cancel").click()
    wait(qtbot, dialog, "It was stopped. The next time, it continues.")

    assert "Nothing came back" in said(dialog)
    assert not (tmp_path / "again" / "two.raw").exists()
    dialog.close()


@needs_sshd
def test_what_comes_back_is_among_the_transfers(sent, tmp_path, qtbot):
    context, data, _ = sent
    controller = context.controller
    save_settings(controller.config, {"limits.bandwidth": 0.5})
    qtbot.waitUntil(lambda: controller.settings.limits.bandwidth == 0.5)
    page = open_page(WherePage, context, qtbot)
    transfers = open_page(TransfersPage, context, qtbot)
    table = next(it for it in transfers.findChildren(QTableView) if it.accessibleName() == "Files")
    rows = table.model()
    assert not rows.transfers

    dialog = ask_to_get(page, data / "alice" / "Tomogram 7" / "two.raw", qtbot)
    dialog.findChild(QLineEdit).setText(str(tmp_path / "again"))
    button(dialog, "&Get it back").click()
    qtbot.waitUntil(lambda: len(rows.transfers) == 1)
    (row,) = rows.transfers
    table.selectRow(1)
    shown = [rows.index(1, at).data() for at in range(rows.columnCount())]
    hold = find_action(transfers, "Hold back")
    assert not hold.isEnabled()
    button(dialog, "Cancel").click()
    wait(qtbot, dialog, "It was stopped. The next time, it continues.")

    assert (row.name, row.files, row.size) == (b"two.raw", 1, 3_000_000)
    assert shown[0] == "two.raw"
    assert shown[1].startswith("Coming back: ")
    assert "No active transfers." in said(transfers)
    qtbot.waitUntil(lambda: rows.top == 0)
    dialog.close()


@needs_sshd
def test_the_overview_says_when_files_were_proved_restorable(sent, qtbot):
    context, _, there = sent
    settings, config = context.controller.place
    page = open_page(OverviewPage, context, qtbot)
    wait(qtbot, page, "were not checked since they arrived")

    def restore(number):
        place = open_place(settings, config)
        around = Surroundings(SystemClock(), CancelFlag(), Random(1), lambda _: None)
        run_restore_test(place, number, 0.0, config, around)
        context.controller.ledger_changed.emit()

    restore(3)
    wait(qtbot, page, "3 of 3 files came back as they were sent.")
    assert "Proved restorable today" in said(page)
    (there / "alice" / "Tomogram 7" / "two.raw").unlink()
    restore(1000)
    wait(qtbot, page, "Restore test today")

    assert "only 28 of 29 files came back as they were sent." in said(page)


@pytest.fixture
def named(spoken, qapp):
    """Return a function that says a text of the window with the name of a destination."""

    def say(kind, address, context="notifications", text=TEXT):
        name_destination(qapp, DataDestination(kind=kind, address=address))
        return QCoreApplication.translate(context, text)

    return say


def test_texts_name_the_destination(named, qapp):
    assert named("host", "ada@store:/data") == "All files are safe on store."
    assert named("folder", "/mnt/50%1") == "All files are safe in /mnt/50%\N{WORD JOINER}1."
    assert named("host", "store:x", "AddressStep", "Which server?") == "Which server?"
    assert named("host", "store:x", "engine", "/on the server/a is new.") == (
        "/on the server/a is new."
    )
    button = "Check key and approva&l…"
    assert named("folder", "/mnt", "OverviewHeadline", button) == "Check the &login…"
    assert named("mytardis", "") == TEXT
    assert qapp.findChild(DestinationTranslator) is None


def test_german_texts_name_the_destination_in_their_grammar(spoken, named):
    spoken("de")
    latency = "the latency to the server"

    assert named("host", "ada@store:/data") == "Alle Dateien sind sicher auf store."
    assert named("host", "store:x", "limits", latency) == "die Latenz zu store"
    assert named("folder", "/mnt/x", "limits", latency) == "die Latenz zum Ziel"
    mytardis = named("folder", "/mnt/x", "engine", "https://x is a MyTardis server.")
    assert mytardis == "https://x ist ein MyTardis-Server."
