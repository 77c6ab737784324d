"""How the program is left: the window's cross, Quit, the end of the session, a signal."""

import signal
from enum import Enum, auto
from types import FrameType
from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication, QSessionManager
from PySide6.QtWidgets import QAbstractButton, QDialogButtonBox, QMessageBox, QWidget

from mydata_like.gui.controller import Controller
from mydata_like.gui.memory import Memory
from mydata_like.gui.state import RunState
from mydata_like.gui.tray.tray import Tray
from mydata_like.gui.window import Window

PATIENCE: Final = 3000  # milliseconds that an upload which is to stop gets
# Where it has been said already that closing the window does not end the program.
IN_TRAY: Final = "said/closing_goes_on"
SMALL: Final = "said/closing_makes_small"
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")  # as far as the system has them


class Leaving(QObject):
    """Decides what closing the window means, and ends the program within five seconds.

    Nothing is asked unless an upload of this window goes on, nor at the end of a session.
    """

    said = Signal(object)  # a sentence that a person should read, once in a lifetime
    left = Signal()  # the program is to end now

    def __init__(self, controller: Controller, window: Window, tray: Tray, memory: Memory) -> None:
        super().__init__(window)
        self._controller = controller
        self._window = window
        self._tray = tray
        self._memory = memory
        self._ending = False
        self._question: Question | None = None
        self._deadline = QTimer(self, interval=PATIENCE, singleShot=True)
        self._connect()

    @Slot()
    def quit(self) -> None:
        """End the program; where an upload goes on, ask what is to become of it."""
        if self._ending or not self._controller.state.ours:
            self.end()
        elif self._question is None:
            self._window.raise_up()  # a question belongs to something that is seen
            self._question = Question(self._window)
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
    def _follow(self, answer: "Answer") -> None:
        self._question = None
        match answer:
            case Answer.LEAVE:
                self.end()
            case Answer.STOP:
                self._stop()
            case Answer.STAY:
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
        """Let the session end; Qt closes the windows and quits by itself."""
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


class Answer(Enum):
    """What is to become of an upload when the program is left."""

    LEAVE = auto()
    STOP = auto()
    STAY = auto()


class Question(QMessageBox):
    """Asks what is to become of the upload; each button says what it does."""

    answered = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setIcon(QMessageBox.Icon.Question)
        self.setWindowTitle(self.tr("Quit"))
        self.setText(self.tr("An upload goes on."))
        self.setInformativeText(
            self.tr("It can go on without the window. If it is stopped, the next one carries on.")
        )
        role = QMessageBox.ButtonRole
        leave = self.addButton(self.tr("Quit and &leave the upload running"), role.AcceptRole)
        stop = self.addButton(self.tr("Stop the &upload and quit"), role.DestructiveRole)
        stay = self.addButton(self.tr("&Stay"), role.RejectRole)
        self._answers = {leave: Answer.LEAVE, stop: Answer.STOP, stay: Answer.STAY}
        # One below the other: side by side they are too wide for large text.
        for buttons in self.findChildren(QDialogButtonBox):
            buttons.setOrientation(Qt.Orientation.Vertical)
        self.setDefaultButton(leave)
        self.setEscapeButton(stay)
        self.buttonClicked.connect(self._answer)

    @Slot(QAbstractButton)
    def _answer(self, button: QAbstractButton) -> None:
        self.answered.emit(self._answers.get(button, Answer.STAY))  # type: ignore[call-overload]
        self.deleteLater()
