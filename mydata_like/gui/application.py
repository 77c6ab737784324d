"""Build the objects of the window and run its event loop."""

import gc
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QApplication

from mydata_like import __version__
from mydata_like.app.update_check import fetch_newer, is_allowed
from mydata_like.core.errors import NotApprovedError, Problem, UploaderError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.demo_launcher import DemoLauncher
from mydata_like.gui.drop.drop_target import DropTarget
from mydata_like.gui.dry_run import DryRunDialog
from mydata_like.gui.help_menu import HelpDialog
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.run_state import RunState
from mydata_like.gui.settings_editor.dialog_opener import SettingsDialogOpener
from mydata_like.gui.tasks import BackgroundTask, Tasks
from mydata_like.gui.theme import texts
from mydata_like.gui.theme_settings import ThemeSettings, apply_first_appearance
from mydata_like.gui.tray.app_shell import AppShell
from mydata_like.gui.tray.crash_handler import CrashHandler, UiHangDetector
from mydata_like.gui.tray.notifications import Notification, is_at_work
from mydata_like.gui.tray.single_instance import InstanceServer
from mydata_like.gui.window import MainWindow
from mydata_like.gui.window_state import WindowState
from mydata_like.hostos.instances import stopped_by_request
from mydata_like.settings.schema import Settings

ASK_AFTER = 60_000  # milliseconds between two requests


class ApprovalWatcher(QObject):
    """Polls the server for approval while no run does; the controller reads the stored result."""

    def __init__(self, context: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._controller = context.controller
        self._tasks = context.tasks
        self._task = BackgroundTask()
        self.timer = QTimer(self, interval=ASK_AFTER)
        self.timer.timeout.connect(self._ask)
        self._controller.run_changed.connect(self._follow)

    @Slot(object)
    def _follow(self, state: RunState) -> None:
        # Polling is of no use if the server approved the key but the staging host refuses it.
        awaited = state.awaited is not None and state.awaited.code == NotApprovedError.code
        if not awaited or state.at_work:
            self.timer.stop()
        elif not self.timer.isActive():
            self.timer.start()

    @Slot()
    def _ask(self) -> None:
        if not self._task.running:
            ask = partial(check_approval, *self._controller.place)
            self._task = self._tasks.run(ask, failed=self._log_failure, cancel=True)

    @Slot(object)
    def _log_failure(self, error: UploaderError) -> None:
        logger.info("No approval yet: %s", error.problem)


def check_approval(settings: Settings, config: Path | None, cancel: CancelFlag) -> None:
    """Store the approval if the server has given it; raises `NotApprovedError` if not."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.registration import register
    from mydata_like.app.run_request import RunObserver, RunRequest

    register(RunRequest(settings=settings, config=config), RunObserver(cancel=cancel))


EVERY = 5000  # milliseconds


class Collector(QObject):
    """Runs the garbage collector from a timer instead of automatically."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=EVERY)
        self._timer.timeout.connect(self._collect)
        self._timer.start()

    @Slot()
    def _collect(self) -> None:
        """Collect the oldest generation that is due, which includes the younger ones."""
        states = zip(gc.get_count(), gc.get_threshold(), strict=True)
        due = [number for number, (count, threshold) in enumerate(states) if count > threshold]
        if due:
            gc.collect(max(due))


@contextmanager
def collected_here(parent: QObject | None = None) -> Iterator[None]:
    """Run the garbage collector only in this thread, from a timer, within the context."""
    gc.disable()
    collector = Collector(parent)
    try:
        yield
    finally:
        collector.deleteLater()
        gc.enable()


logger = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.0005  # seconds that a thread may block the GUI thread


class Program(QObject):
    """The main window, and the objects that belong to it."""

    def __init__(self, start: LaunchOptions, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tasks = Tasks(self)
        self.controller = WindowController(start.config, self.tasks, self)
        self.context = AppContext(self.controller, self.tasks, WindowState(self))
        self.approval = ApprovalWatcher(self.context, self)
        self.appearance = ThemeSettings(self.controller, self.context.memory, self)
        self.demonstration = DemoLauncher(self.tasks, self)
        self.window = MainWindow(self.context)
        if start.demo:
            self.window.mark_demo()
        self.presence = AppShell(self.context, self.window, start)
        self.drawer = SettingsDialogOpener(self.context, self.window)
        self.arrival = DropTarget(self.context, self.window)

        self.controller.settings_changed.connect(self._choose_log_level)
        once = Qt.ConnectionType.SingleShotConnection
        self.controller.settings_changed.connect(self._check_for_update, once)
        self.controller.page_wanted.connect(self._open_dialog)
        self.drawer.left_unsaved.connect(self._show_unsaved)
        self.arrival.added.connect(self._confirm_added)
        self.presence.paths_given.connect(self._take_paths)
        self.controller.command_refused.connect(self._show_refusal)

    def open(self) -> None:
        """Start reading the settings; the window is shown when that is done."""
        self.presence.shutdown.handle_signals()
        self.controller.open()

    def close(self) -> None:
        """Stop all background work."""
        self.controller.close()
        self.tasks.close()

    @Slot(object, object)
    def _open_dialog(self, name: str, what: str) -> None:
        """Open what is asked for if it is a dialog; the window shows pages."""
        match name:
            case "settings":
                self.drawer.open(what)
            case "set-up":
                self._set_up()
            case "demo":
                self.demonstration.open()
            case "add-folders":
                self.arrival.choose()
            case "dry-run":
                dialog = DryRunDialog(self.context, self.window)
                dialog.upload_wanted.connect(self.controller.start)
                dialog.open()
            case "help":
                HelpDialog(self.tasks, self.window.list_actions(), self.window).open()
            case _:
                pass

    def _set_up(self) -> None:
        from mydata_like.gui.wizard import SetupWizard  # imported here, since few starts need it

        wizard = SetupWizard(self.context, self.window)
        wizard.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        wizard.demo_wanted.connect(self.demonstration.open)
        wizard.start_wanted.connect(self.controller.start_when_set_up)
        wizard.open()

    @Slot()
    def _show_unsaved(self) -> None:
        title = self.tr("The settings were not saved")
        text = self.tr("Your changes can be restored.")
        self.presence.banner.show_notification(Notification(None, title, text, "settings"))

    @Slot(object)
    def _take_paths(self, paths: tuple[Path, ...]) -> None:
        self.arrival.take([os.fsencode(path) for path in paths])

    @Slot(object)
    def _confirm_added(self, paths: Sequence[bytes]) -> None:
        """Confirm that the active run takes in what was dropped; without a run, one starts."""
        banner = self.presence.banner
        if not self.controller.state.at_work or banner.shows_problem:
            return
        text = self.tr("What you added is scanned and then uploaded.")
        if len(paths) == 1:
            name = texts.plain(Path(os.fsdecode(paths[0])).name)
            text = self.tr("“%1” is scanned and then uploaded.").replace("%1", name)
        banner.show_notification(Notification(None, self.tr("Added"), text, "", is_at_work))

    @Slot(object)
    def _show_refusal(self, problem: Problem) -> None:
        said = texts.engine_text(problem.message).rstrip(".")
        message = Notification(None, said, texts.engine_text(problem.hint), "", is_at_work)
        self.presence.banner.show_notification(message)

    @Slot()
    def _check_for_update(self) -> None:
        """Ask once for a newer version, if that is allowed."""
        loaded = self.controller.loaded
        if loaded is not None and is_allowed(loaded):
            ask = partial(fetch_newer, loaded.settings.window.update_url)
            self.tasks.run(ask, self._show_update, failed=self._log_failure)

    @Slot(object)
    def _show_update(self, newer: str) -> None:
        if newer and not self.presence.banner.shows_problem:
            title = self.tr("Version %1 is available").replace("%1", newer)
            text = self.tr("You have %1. Nothing is installed automatically.")
            notice = Notification(None, title, text.replace("%1", __version__), "")
            self.presence.banner.show_notification(notice)

    @Slot(object)
    def _log_failure(self, error: UploaderError) -> None:
        logger.info("%s", error.problem)

    @Slot()
    def _choose_log_level(self) -> None:
        logging.getLogger().setLevel(self.controller.settings.advanced.log_level)


def run_window(start: LaunchOptions, address: str) -> int:
    """Run the program until the user quits it, and return the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = QApplication(sys.argv[:1])
    app.setApplicationName("mydata-like")
    apply_first_appearance(app, WindowState(), start.config)
    app.setQuitOnLastWindowClosed(False)
    watchdog = UiHangDetector(start.logs, parent=app)
    last_resort = CrashHandler(app)
    door = InstanceServer(address, app)
    program = Program(start)
    last_resort.problem_raised.connect(program.controller.problem_raised)
    door.request_received.connect(program.presence.handle_request)
    # A signal may arrive before the event loop runs, when there is nothing to quit yet.
    program.presence.shutdown.quit_requested.connect(app.quit, Qt.ConnectionType.QueuedConnection)
    with collected_here(app), stopped_by_request(program.presence.shutdown.stop_requested.emit):
        program.open()
        code = app.exec()
        program.close()
    last_resort.stop()
    watchdog.stop()
    return code
