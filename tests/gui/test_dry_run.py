"""The dry run, with the real engine and server."""

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from shiboken6 import isValid

from mydata_like.gui.dry_run import MISSING, DryRunDialog
from mydata_like.gui.state import Phase
from tests.gui.conftest import DEADLINE


def open_dialog(desk, qtbot):
    dialog = DryRunDialog(desk)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_the_dry_run_tells_each_folder_and_sends_nothing(desk, site, qtbot, qtmodeltester):
    dialog = open_dialog(desk, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    model = dialog._model
    assert model.rowCount() == 4
    missing = [int(model.index(row, MISSING).data()) for row in range(4)]
    assert sum(missing) == len(site.place.expected_files())
    assert "would be uploaded" in dialog._said.text()
    assert not [change for change in site.changes() if "dataset" in change]
    qtmodeltester.check(model)


def test_a_run_follows_at_a_click(desk, site, qtbot):
    dialog = open_dialog(desk, qtbot)
    qtbot.waitUntil(lambda: dialog._upload.isEnabled(), timeout=DEADLINE)

    with qtbot.waitSignal(dialog.upload_wanted):
        dialog._upload.click()
    assert not dialog.isVisible()


def test_closing_does_not_wait_for_a_dry_run_that_may_hang(desk, qtbot):
    dialog = open_dialog(desk, qtbot)
    engine = dialog._engine
    dialog.close()
    dialog.deleteLater()
    with qtbot.waitSignal(dialog.destroyed):
        QCoreApplication.sendPostedEvents(dialog, QEvent.Type.DeferredDelete)

    assert isValid(engine)
    qtbot.waitUntil(lambda: not isValid(engine), timeout=DEADLINE)  # when its process has ended


def test_no_run_follows_while_another_program_uploads(desk, site, qtbot):
    dialog = open_dialog(desk, qtbot)
    qtbot.waitUntil(lambda: dialog._upload.isEnabled(), timeout=DEADLINE)
    desk.controller._look_timer.stop()
    desk.controller._set(phase=Phase.ELSEWHERE)
    assert not dialog._upload.isEnabled()

    desk.controller._set(phase=Phase.IDLE)
    assert dialog._upload.isEnabled()


def test_a_dry_run_that_cannot_be_made_says_why(desk, site, qtbot):
    site.server.stop() if hasattr(site.server, "stop") else site.server.close()
    dialog = open_dialog(desk, qtbot)
    qtbot.waitUntil(lambda: dialog.ended, timeout=DEADLINE)

    assert not dialog._upload.isEnabled()
    assert "server" in dialog._said.text()
