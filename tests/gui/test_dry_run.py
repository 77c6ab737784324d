"""The dry run, with the real engine and server."""

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from shiboken6 import isValid

from mydata_like.app.settings_service import save_settings
from mydata_like.gui.dry_run import MISSING, DryRunDialog
from mydata_like.gui.run_state import Phase
from tests.gui.conftest import DEADLINE


def open_dialog(context, qtbot):
    dialog = DryRunDialog(context)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_the_dry_run_reports_each_folder_and_sends_nothing(context, site, qtbot, qtmodeltester):
    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    model = dialog._model
    assert model.rowCount() == 4
    missing = [int(model.index(row, MISSING).data()) for row in range(4)]
    assert sum(missing) == len(site.place.expected_files())
    assert "would be uploaded" in dialog._summary.text()
    assert not [change for change in site.changes() if "dataset" in change]
    qtmodeltester.check(model)


def test_what_stays_here_is_named_and_the_sentence_follows_from_the_numbers(
    context, site, qtbot, qtmodeltester
):
    assert site.carry().code == 0
    save_settings(site.config, {"filters.settle_seconds": 3600})
    (site.data / "alice" / "Tomogram 7" / "growing.raw").write_text("so far")

    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    told = dialog._summary.text()
    assert "Nothing would be uploaded now, and 1 file(s) are not on the server." in told
    assert "1 waiting" in told
    missing = [int(dialog._model.index(row, MISSING).data()) for row in range(4)]
    assert sum(missing) == 1
    assert dialog._left_table.isVisible()
    left = dialog._left
    assert left.index(0, 0).data() == "alice/Tomogram 7/growing.raw"
    spoken = left.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "alice/Tomogram 7/growing.raw, Waiting"
    assert "changed recently" in left.index(0, 1).data()
    qtmodeltester.check(left)


def test_what_would_be_replaced_or_held_is_counted_and_named(context, site, qtbot, qtmodeltester):
    assert site.carry().code == 0
    folder = site.data / "alice" / "Tomogram 7"
    larger, *_ = sorted(folder.iterdir(), key=lambda path: path.stat().st_size, reverse=True)
    emptied = next(path for path in site.data.rglob("*.csv") if path != larger)
    larger.write_bytes(bytes(reversed(larger.read_bytes())) + b"more")
    emptied.write_bytes(b"")

    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    told = dialog._summary.text()
    assert "1 file(s) would replace other content on the server." in told
    assert "1 waiting, of which 1 held until you choose" in told
    remarks = {
        row.data(): row.siblingAtColumn(1).data()
        for row in (dialog._left.index(at, 0) for at in range(dialog._left.rowCount()))
    }
    keys = [str(path.relative_to(site.data)) for path in (larger, emptied)]
    assert sorted(remarks) == sorted(keys)
    assert remarks[keys[0]].startswith("The server has other content: ")
    assert "much smaller" in remarks[keys[1]]
    assert dialog._more.isHidden()
    qtmodeltester.check(dialog._left)


def test_that_all_is_there_is_said_where_all_is_there(context, site, qtbot):
    assert site.carry().code == 0

    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    number = len(site.place.expected_files())
    assert f"Nothing to upload: all {number} file(s) are on the server." in dialog._summary.text()
    assert not dialog._left_table.isVisible()


def test_of_very_many_files_that_stay_the_first_are_named_and_the_others_counted(
    context, site, qtbot
):
    for number in range(25):
        (site.data / "alice" / "Tomogram 7" / f"~${number}.doc").write_text("lock")

    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    assert dialog._left.rowCount() == 20
    assert dialog._more.text() == "and 5 more file(s)"
    assert "25 left out" in dialog._summary.text()


def test_a_run_follows_at_a_click(context, site, qtbot):
    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog._upload.isEnabled(), timeout=DEADLINE)

    with qtbot.waitSignal(dialog.upload_wanted):
        dialog._upload.click()
    assert not dialog.isVisible()


def test_closing_does_not_wait_for_a_dry_run_that_may_hang(context, qtbot):
    dialog = open_dialog(context, qtbot)
    engine = dialog._engine
    dialog.close()
    dialog.deleteLater()
    with qtbot.waitSignal(dialog.destroyed):
        QCoreApplication.sendPostedEvents(dialog, QEvent.Type.DeferredDelete)

    assert isValid(engine)
    qtbot.waitUntil(lambda: not isValid(engine), timeout=DEADLINE)  # when its process has ended


def test_no_run_follows_while_another_program_uploads(context, site, qtbot):
    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog._upload.isEnabled(), timeout=DEADLINE)
    context.controller._look_timer.stop()
    context.controller._set(phase=Phase.ELSEWHERE)
    assert not dialog._upload.isEnabled()

    context.controller._set(phase=Phase.IDLE)
    assert dialog._upload.isEnabled()


def test_a_dry_run_that_cannot_be_made_says_why(context, site, qtbot):
    site.server.stop() if hasattr(site.server, "stop") else site.server.close()
    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    assert not dialog._upload.isEnabled()
    assert "server" in dialog._summary.text()


def test_a_dry_run_names_a_wrong_setting_by_its_label(context, site, qtbot):
    save_settings(site.config, {"data.directory": str(site.data / "absent")})
    dialog = open_dialog(context, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    assert "Check “Data directory”" in dialog._summary.text()
