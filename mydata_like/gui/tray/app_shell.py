"""Connects window, tray, notifications, single instance and shutdown."""

import signal
from pathlib import Path
from time import monotonic
from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication, QSessionManager
from PySide6.QtWidgets import QDialogButtonBox, QSizePolicy, QWidget

from mydata_like.core.errors import Problem
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.theme.widgets import Prompt
from mydata_like.gui.tray.drive_notifier import DriveNotifier
from mydata_like.gui.tray.notifications import (
    Banner,
    Notification,
    NotificationKind,
    NotificationPolicy,
)
from mydata_like.gui.tray.single_instance import LaunchRequest, use_token
from mydata_like.gui.tray.tray_menu import Tray
from mydata_like.gui.tray.tray_popup import TrayPopup
from mydata_like.gui.window import MainWindow
from mydata_like.gui.window_state import WindowState

STOP_TIMEOUT: Final = 3000  # milliseconds that a run has to stop
# The window state keys of the notices that closing the window does not end the program.
IN_TRAY: Final = "said/closing_goes_on"
MINIMIZED: Final = "said/closing_makes_small"
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")  # if the system has them


class ShutdownController(QObject):
    """Handles closing and quitting, and ends the program within five seconds.

    The user is only asked if this window has an active upload, and never at the end of a session.
    """

    notice_raised = Signal(object)  # a sentence to show to the user once
    quit_requested = Signal()  # the program must end now
    stop_requested = Signal()  # as from the system; may be emitted from any thread

    def __init__(
        self,
        controller: WindowController,
        window: MainWindow,
        tray: Tray,
        window_state: WindowState,
    ) -> None:
        super().__init__(window)
        self._controller = controller
        self._window = window
        self._tray = tray
        self._window_state = window_state
        self._quitting = False
        self._prompt: QuitPrompt | None = None
        self._deadline = QTimer(self, interval=STOP_TIMEOUT, singleShot=True)

        self._window.closing.connect(self._close)
        self._tray.quit_wanted.connect(self.quit)
        self._window.quit_wanted.connect(self.quit)
        self._controller.run_changed.connect(self._on_state)
        self._deadline.timeout.connect(self.end)
        self.stop_requested.connect(self._stop_or_end, Qt.ConnectionType.QueuedConnection)
        application = QCoreApplication.instance()
        if isinstance(application, QGuiApplication):
            application.commitDataRequest.connect(self._end_with_session)

    @Slot()
    def quit(self) -> None:
        """End the program; if an upload is active, ask the user whether it continues."""
        if self._quitting or not self._controller.state.ours:
            self.end()
        elif self._prompt is None:
            self._window.raise_up()  # the prompt needs a visible parent
            self._prompt = QuitPrompt(self._window)
            self._prompt.left_running.connect(self.end)
            self._prompt.stopped.connect(self._stop)
            self._prompt.answered.connect(self._forget_prompt)
            self._prompt.open()

    @Slot()
    def end(self) -> None:
        """End the program now; an active upload continues without the window."""
        self._quitting = True
        self._deadline.stop()
        self.quit_requested.emit()

    def handle_signals(self) -> None:
        """Stop the upload and end the program, without a prompt, on the system's signals."""
        for name in _SIGNALS:
            if number := getattr(signal, name, None):
                signal.signal(number, lambda *_: self._stop_or_end())

    @Slot(object)
    def _close(self, event: QCloseEvent) -> None:
        """Hide, minimize or quit, depending on the settings, when the user closes the window."""
        if self._quitting:
            return
        event.ignore()
        if not self._controller.settings.window.close_to_tray:
            self.quit()
            return
        if self._tray.available:
            self._window.hide()
            notice = IN_TRAY
            text = self.tr("The program keeps running in the tray. Use Quit to end it.")
        else:
            self._window.showMinimized()
            notice = MINIMIZED
            text = self.tr(
                "The program keeps running in a minimized window, since there is no tray. Use Quit "
                "to end it."
            )
        if not self._window_state.contains(notice):
            self._window_state.setValue(notice, "yes")
            self.notice_raised.emit(text)

    @Slot()
    def _forget_prompt(self) -> None:
        self._prompt = None

    @Slot()
    def _stop(self) -> None:
        self._quitting = True
        self._deadline.start()
        self._controller.stop()

    @Slot(object)
    def _on_state(self, state: RunState) -> None:
        if self._deadline.isActive() and not state.ours:
            self.end()

    @Slot(QSessionManager)
    def _end_with_session(self, session: QSessionManager) -> None:
        """Let the session end; Qt closes the windows and quits automatically."""
        # The start at a login is a setting of ours: sessions must not start us as well.
        session.setRestartHint(QSessionManager.RestartHint.RestartNever)
        self._quitting = True
        if self._controller.state.ours:
            self._controller.stop()

    @Slot()
    def _stop_or_end(self) -> None:
        if self._controller.state.ours:
            self._stop()
        else:
            self.end()


class QuitPrompt(Prompt):
    """Asks what happens to the active upload: it goes on, it stops, or the program stays."""

    left_running = Signal()
    stopped = Signal()
    answered = Signal()  # in any way

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setIcon(Prompt.Icon.Question)
        self.setWindowTitle(self.tr("Quit"))
        self.setText(self.tr("An upload is active."))
        self.setInformativeText(
            self.tr("It can continue without the window. If you stop it, the next run continues.")
        )
        role = Prompt.ButtonRole
        keep_running = self.addButton(
            self.tr("Quit and &leave the upload running"), role.AcceptRole
        )
        stop = self.addButton(self.tr("Stop the &upload and quit"), role.DestructiveRole)
        cancel = self.addButton(self.tr("&Cancel"), role.RejectRole)
        # A row of buttons would be too wide for large text.
        for buttons in self.findChildren(QDialogButtonBox):
            buttons.setOrientation(Qt.Orientation.Vertical)
            buttons.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setDefaultButton(keep_running)
        self.setEscapeButton(cancel)
        keep_running.clicked.connect(self.left_running)
        stop.clicked.connect(self.stopped)
        self.finished.connect(self.answered)
        self.finished.connect(self.deleteLater)


NEEDS_WINDOW = frozenset({Phase.LOADING, Phase.UNSET, Phase.BROKEN})


class AppShell(QObject):
    """Shows and hides the window, and shows notifications in the tray or the banner."""

    paths_given = Signal(object)  # a tuple of paths of this start or of a second instance

    def __init__(
        self,
        context: AppContext,
        window: MainWindow,
        start: LaunchOptions,
        tray: Tray | None = None,
    ) -> None:
        super().__init__(window)
        self._context = context
        self._controller = context.controller
        self._window = window
        self._start = start
        self._policy = NotificationPolicy(self._is_enabled)
        self._opened = False
        self.tray = tray or Tray(context.controller, self)
        self._popup: TrayPopup | None = None
        self._drives = DriveNotifier(context, self)
        self.banner = Banner(context.controller, window)
        self.shutdown = ShutdownController(context.controller, window, self.tray, context.memory)

        self.tray.clicked.connect(self._on_tray_click)
        self.tray.appeared.connect(self._move_to_tray)
        self.shutdown.notice_raised.connect(self._show_notice)
        self._drives.notified.connect(self._notify)
        self.banner.eject_wanted.connect(self._drives.eject)
        self._controller.page_wanted.connect(window.raise_up)
        self._controller.run_changed.connect(self._on_state)
        self._controller.problem_raised.connect(self._on_problem)
        self._controller.settings_changed.connect(self._open)

    @Slot(object)
    def handle_request(self, request: LaunchRequest) -> None:
        """Handle the request of a second instance."""
        if request.show or request.paths:
            use_token(request.token)
            self._window.raise_up()
        if request.paths:
            self.paths_given.emit(tuple(map(Path, request.paths)))

    @Slot()
    def _on_tray_click(self) -> None:
        """Show the pop-up; the window if it is there already, or has something to ask."""
        if self._window.isVisible() or self._controller.state.phase in NEEDS_WINDOW:
            self._window.raise_up()
            return
        if self._popup is None:
            self._popup = TrayPopup(self._context)
        self._popup.toggle(self.tray.icon.geometry())

    @Slot()
    def _open(self) -> None:
        """Show the window for the first time, according to the launch options and the settings."""
        if self._opened:
            return
        self._opened = True
        opens = "tray" if self._start.hidden else self._controller.settings.window.opens
        if self._start.paths or opens == "normal":
            self._window.show()
        elif opens == "maximized":
            self._window.showMaximized()
        elif opens == "minimized" or not self.tray.available:
            self._window.showMinimized()
        if self._start.paths:
            self.paths_given.emit(self._start.paths)

    @Slot()
    def _move_to_tray(self) -> None:
        """Hide the window if it was only minimized because no tray was available yet."""
        if self._start.hidden and self._window.isMinimized():
            self._window.hide()

    @Slot(object)
    def _on_state(self, state: RunState) -> None:
        if state.phase is Phase.BROKEN:
            self._open()  # also if the settings cannot be read
        self._notify(self._policy.on_state(state, monotonic()))

    @Slot(object)
    def _on_problem(self, problem: Problem) -> None:
        self._notify(self._policy.on_problem(problem, monotonic()))

    @Slot(object)
    def _show_notice(self, sentence: str) -> None:
        self._notify(Notification(None, self.tr("mydata-like is still running"), sentence, ""))

    @Slot(object)
    def _notify(self, message: Notification | None) -> None:
        """Show a notification in the active window, otherwise in the tray.

        What the active window shows anyway is not announced there: a finished run, and a problem
        in the Overview's headline. That of a drive is in both: its buttons are only in the window.
        """
        window_active = self._window.isActiveWindow()
        if message is None:
            return
        on_overview = self._window.page is self._window.find_page("overview")
        is_problem = message.kind is NotificationKind.PROBLEM
        headline = on_overview and is_problem and message.concerns(self._controller.state)
        if window_active and (headline or message.kind is NotificationKind.FINISHED):
            return
        if window_active or message.receipt or not self.tray.available:
            self.banner.show_notification(message)
        if not window_active and self.tray.available:
            self.tray.show_notification(message)

    def _is_enabled(self, kind: NotificationKind) -> bool:
        return bool(getattr(self._controller.settings.window, kind.value))
