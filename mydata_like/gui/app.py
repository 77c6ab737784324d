"""Starts the window."""

import logging
import os
import sys
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QApplication

from mydata_like.core.errors import Problem
from mydata_like.gui.approval import Approval
from mydata_like.gui.collection import collected_here
from mydata_like.gui.controller import Controller
from mydata_like.gui.demonstration import Demonstration
from mydata_like.gui.drop.arrival import accept_drops
from mydata_like.gui.dry_run import DryRunDialog
from mydata_like.gui.help import HelpDialog
from mydata_like.gui.look import words
from mydata_like.gui.look.appearance import Appearance, dress
from mydata_like.gui.memory import Memory
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.settings.drawer import Drawer
from mydata_like.gui.start import Start
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.tray.failures import LastResort
from mydata_like.gui.tray.herald import Message
from mydata_like.gui.tray.instance import Doorbell
from mydata_like.gui.tray.presence import SETTINGS, Presence
from mydata_like.gui.tray.watchdog import Watchdog
from mydata_like.gui.window import Window

logger = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.0005  # seconds a thread may keep the GUI thread waiting


class Program(QObject):
    """The window with all that belongs to it."""

    def __init__(self, start: Start, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tasks = Tasks(self)
        self.controller = Controller(start.config, self.tasks, self)
        self.desk = Desk(self.controller, self.tasks, Memory(self))
        self.approval = Approval(self.desk, self)
        self.appearance = Appearance(self.controller, self.desk.memory, self)
        self.demonstration = Demonstration(self.tasks, self)
        self.window = Window(self.desk)
        self.presence = Presence(self.desk, self.window, start)
        self.drawer = Drawer(self.desk, self.window)
        self.arrival = accept_drops(self.desk, self.window)
        self._connect()

    def _connect(self) -> None:
        self.controller.settings_changed.connect(self._choose_log_level)
        self.window.dry_run_wanted.connect(self._open_dry_run)
        self.window.help_wanted.connect(self._open_help)
        self.window.set_up_wanted.connect(self._set_up)
        self.window.settings_wanted.connect(self.drawer.open)
        self.drawer.left_unsaved.connect(self._tell_unsaved)
        self.window.folders_wanted.connect(self.arrival.choose)
        self.presence.paths_given.connect(self._take_paths)
        self.controller.command_refused.connect(self._tell_refusal)
        self.window.demo_wanted.connect(self.demonstration.open)

    def open(self) -> None:
        """Begin to work; the window shows itself when the settings are read."""
        self.presence.leaving.obey_signals()
        self.controller.open()

    def close(self) -> None:
        """End what goes on beside the GUI thread."""
        self.controller.close()
        self.tasks.close()

    @Slot()
    def _set_up(self) -> None:
        from mydata_like.gui.wizard import SetupWizard  # here: few starts need it

        wizard = SetupWizard(self.desk, self.window)
        wizard.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        wizard.demo_wanted.connect(self.demonstration.open)
        wizard.open()

    @Slot()
    def _tell_unsaved(self) -> None:
        title = self.tr("The settings were not saved")
        text = self.tr("What you changed can be brought back.")
        self.presence.banner.tell(Message(None, title, text, SETTINGS))

    @Slot(object)
    def _take_paths(self, paths: tuple[Path, ...]) -> None:
        self.arrival.take([os.fsencode(path) for path in paths])

    @Slot(object)
    def _tell_refusal(self, problem: Problem) -> None:
        said = words.plain(problem.message).rstrip(".")
        self.presence.banner.tell(Message(None, said, words.plain(problem.hint), ""))

    @Slot()
    def _open_dry_run(self) -> None:
        dialog = DryRunDialog(self.desk, self.window)
        dialog.upload_wanted.connect(self.controller.start)
        dialog.open()

    @Slot()
    def _open_help(self) -> None:
        HelpDialog(self.tasks, self.window.list_actions(), self.window).open()

    @Slot()
    def _choose_log_level(self) -> None:
        logging.getLogger().setLevel(self.controller.settings.advanced.log_level)


def run_window(start: Start, address: str) -> int:
    """Run the program until somebody quits it; return the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = QApplication(sys.argv[:1])
    app.setApplicationName("mydata-like")
    dress(app, Memory())
    app.setQuitOnLastWindowClosed(False)
    watchdog = Watchdog(start.logs, parent=app)
    last_resort = LastResort(app)
    door = Doorbell(address, app)
    program = Program(start)
    last_resort.problem_raised.connect(program.controller.problem_raised)
    door.rung.connect(program.presence.answer)
    # A signal may come before the event loop runs, when there is nothing to quit yet.
    program.presence.leaving.left.connect(app.quit, Qt.ConnectionType.QueuedConnection)
    with collected_here(app):
        program.open()
        code = app.exec()
        program.close()
    last_resort.stop()
    watchdog.stop()
    return code
