"""Connects window, tray, notifications, single instance and shutdown."""

import signal
from enum import Enum, auto
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication, QSessionManager
from PySide6.QtWidgets import QAbstractButton, QDialogButtonBox, QMessageBox, QWidget

from mydata_like.core.errors import Problem
from mydata_like.gui.base import AppContext, NavigationRequest
from mydata_like.gui.controller import WindowController
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.run_state import PastRunState, Phase, RunState
from mydata_like.gui.tray.notifications import (
    Banner,
    Notification,
    NotificationKind,
    NotificationPolicy,
)
from mydata_like.gui.tray.single_instance import LaunchRequest, use_token
from mydata_like.gui.tray.tray_menu import Tray
from mydata_like.gui.window import MainWindow
from mydata_like.gui.window_state import WindowState

PATIENCE: Final = 3000  # milliseconds that an upload which is to stop gets
# Where it has been said already that closing the window does not end the program.
IN_TRAY: Final = "said/closing_goes_on"
SMALL: Final = "said/closing_makes_small"
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")  # as far as the system has them


class ShutdownController(QObject):
    """Decides what closing the window means, and ends the program within five seconds.

    Nothing is asked unless an upload of this window goes on, nor at the end of a session.
    """

    said = Signal(object)  # a sentence that is shown to the user once
    left = Signal()  # the program is to end now

    def __init__(
        self, controller: WindowController, window: MainWindow, tray: Tray, memory: WindowState
    ) -> None:
        super().__init__(window)
        self._controller = controller
        self._window = window
        self._tray = tray
        self._memory = memory
        self._ending = False
        self._question: QuitPrompt | None = None
        self._deadline = QTimer(self, interval=PATIENCE, singleShot=True)
        self._connect()

    @Slot()
    def quit(self) -> None:
        """End the program; where an upload goes on, ask what is to become of it."""
        if self._ending or not self._controller.state.ours:
            self.end()
        elif self._question is None:
            self._window.raise_up()  # a question belongs to something that is seen
            self._question = QuitPrompt(self._window)
            self._question.answered.connect(self._follow)
            self._question.open()

    @Slot()
    def end(self) -> None:
        """End the program now; an upload that goes on does so without the window."""
        self._ending = True
        self._deadline.stop()
        self.left.emit()

    def obey_signals(self) -> None:
        """Let the system's signals end the program: no questions, the upload stops."""
        for name in _SIGNALS:
            if number := getattr(signal, name, None):
                signal.signal(number, self._take_signal)

    def _connect(self) -> None:
        self._window.closing.connect(self._close)
        self._tray.quit_wanted.connect(self.quit)
        self._controller.run_changed.connect(self._look_whether_stopped)
        self._deadline.timeout.connect(self.end)
        application = QCoreApplication.instance()
        if isinstance(application, QGuiApplication):
            application.commitDataRequest.connect(self._end_with_session)

    @Slot(object)
    def _close(self, event: QCloseEvent) -> None:
        """Do what the window's cross stands for."""
        if self._ending:
            return
        event.ignore()
        if not self._controller.settings.window.close_to_tray:
            self.quit()
        elif self._tray.available:
            self._window.hide()
            said = self.tr("The program goes on in the tray. Quit is in its menu there.")
            self._say_once(IN_TRAY, said)
        else:
            self._window.showMinimized()
            said = self.tr("The program goes on as a small window, since there is no tray here.")
            self._say_once(SMALL, said)

    def _say_once(self, key: str, sentence: str) -> None:
        if not self._memory.contains(key):
            self._memory.setValue(key, "yes")
            self.said.emit(sentence)

    @Slot(object)
    def _follow(self, answer: "QuitAnswer") -> None:
        self._question = None
        match answer:
            case QuitAnswer.LEAVE:
                self.end()
            case QuitAnswer.STOP:
                self._stop()
            case QuitAnswer.STAY:
                pass

    def _stop(self) -> None:
        self._ending = True
        self._deadline.start()
        self._controller.stop()

    @Slot(object)
    def _look_whether_stopped(self, state: RunState) -> None:
        if self._deadline.isActive() and not state.ours:
            self.end()

    @Slot(QSessionManager)
    def _end_with_session(self, session: QSessionManager) -> None:
        """Let the session end; Qt closes the windows and quits automatically."""
        # The start at a login is a setting of ours: sessions must not start us as well.
        session.setRestartHint(QSessionManager.RestartHint.RestartNever)
        self._ending = True
        if self._controller.state.ours:
            self._controller.stop()

    def _take_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._controller.state.ours:
            self._stop()
        else:
            self.end()


class QuitAnswer(Enum):
    """What is to become of an upload when the program is left."""

    LEAVE = auto()
    STOP = auto()
    STAY = auto()


class QuitPrompt(QMessageBox):
    """Asks what is to become of the upload; each button says what it does."""

    answered = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setIcon(QMessageBox.Icon.Question)
        self.setWindowTitle(self.tr("Quit"))
        self.setText(self.tr("An upload goes on."))
        self.setInformativeText(
            self.tr("It can continue without the window. If it is stopped, the next run continues.")
        )
        role = QMessageBox.ButtonRole
        leave = self.addButton(self.tr("Quit and &leave the upload running"), role.AcceptRole)
        stop = self.addButton(self.tr("Stop the &upload and quit"), role.DestructiveRole)
        stay = self.addButton(self.tr("&Stay"), role.RejectRole)
        self._answers = {leave: QuitAnswer.LEAVE, stop: QuitAnswer.STOP, stay: QuitAnswer.STAY}
        # One below the other: side by side they are too wide for large text.
        for buttons in self.findChildren(QDialogButtonBox):
            buttons.setOrientation(Qt.Orientation.Vertical)
        self.setDefaultButton(leave)
        self.setEscapeButton(stay)
        self.buttonClicked.connect(self._answer)

    @Slot(QAbstractButton)
    def _answer(self, button: QAbstractButton) -> None:
        self.answered.emit(self._answers.get(button, QuitAnswer.STAY))  # type: ignore[call-overload]
        self.deleteLater()


SETTINGS = "settings"  # is a dialog and no page


class AppShell(QObject):
    """Shows the window when it is wanted, and speaks up while nobody looks at it."""

    paths_given = Signal(object)  # a tuple of paths, which the start or a later one brought

    def __init__(
        self, desk: AppContext, window: MainWindow, start: LaunchOptions, tray: Tray | None = None
    ) -> None:
        super().__init__(window)
        self._controller = desk.controller
        self._window = window
        self._start = start
        self._herald = NotificationPolicy(self._is_wanted)
        self._opened = False
        self._last: PastRunState | None = None
        self.tray = tray or Tray(desk.controller, self)
        self.banner = Banner(window)
        self.leaving = ShutdownController(desk.controller, window, self.tray, desk.memory)
        self._connect()

    @Slot(object)
    def answer(self, call: LaunchRequest) -> None:
        """Do what a second start wants."""
        if call.show or call.paths:
            use_token(call.token)
            self._window.raise_up()
        if call.paths:
            self.paths_given.emit(tuple(map(Path, call.paths)))

    @Slot(object)
    def show_page(self, page: str) -> None:
        """Bring the window to the front, and there a page or the settings."""
        self._window.raise_up()
        if page == SETTINGS:
            self._window.settings_wanted.emit("")
        elif page:
            self._window.show_page(NavigationRequest(page))

    def _connect(self) -> None:
        self.tray.open_wanted.connect(self._window.raise_up)
        self.tray.page_wanted.connect(self.show_page)
        self.tray.appeared.connect(self._move_to_tray)
        self.banner.page_wanted.connect(self.show_page)
        self.leaving.said.connect(self._say)
        self._controller.run_changed.connect(self._hear_state)
        self._controller.problem_raised.connect(self._hear_problem)
        self._controller.settings_changed.connect(self._open)

    @Slot()
    def _open(self) -> None:
        """Show the window for the first time, as the start and the settings have it."""
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
        """Go into a tray that came late, if the window waits for one."""
        if self._start.hidden and self._window.isMinimized():
            self._window.hide()

    @Slot(object)
    def _hear_state(self, state: RunState) -> None:
        if state.phase is Phase.BROKEN:
            self._open()  # settings that cannot be read open the window, too
        if state.last and state.last != self._last and state.last.safe:
            self.banner.withdraw_problem()
        self._last = state.last
        self._tell(self._herald.hear_state(state, monotonic()))

    @Slot(object)
    def _hear_problem(self, problem: Problem) -> None:
        self._tell(self._herald.hear_problem(problem, monotonic()))

    @Slot(object)
    def _say(self, sentence: str) -> None:
        self._tell(Notification(None, self.tr("mydata-like goes on"), sentence, ""))

    def _tell(self, message: Notification | None) -> None:
        """Show a message where the person looks; that all went well is seen in the window."""
        looked_at = self._window.isActiveWindow()
        if message is None or (looked_at and message.kind is NotificationKind.FINISHED):
            return
        if looked_at or not self.tray.available:
            self.banner.tell(message)
        else:
            self.tray.tell(message)

    def _is_wanted(self, kind: NotificationKind) -> bool:
        return bool(getattr(self._controller.settings.window, kind.value))
