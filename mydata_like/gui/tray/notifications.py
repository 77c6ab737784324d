"""Decides which changes are shown as notifications."""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QPushButton, QToolBar, QWidget

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.gui.run_state import PastRunState, Phase, RunState
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, PlainLabel, icon
from mydata_like.gui.tray.tray_icon import needs_somebody

translate = QCoreApplication.translate

QUIET: Final = 600.0  # seconds between two messages of one kind
SILENCE: Final = "monitor.silence"


class NotificationKind(Enum):
    """What a message is about; the value is the setting that switches it off."""

    FINISHED = "notify_finished"
    PROBLEM = "notify_problem"
    APPROVAL = "notify_approval"
    SILENCE = "notify_silence"


class Notification(NamedTuple):
    """A short text for the user, and the page with details (or none).

    What belongs to no kind cannot be switched off.
    """

    kind: NotificationKind | None
    title: str
    text: str
    page: str


class NotificationPolicy:
    """Decides from changes of the state which notifications are shown; never the same one twice.

    `is_wanted` tells whether a kind is switched on. Times are seconds of any clock that only
    goes forward.
    """

    def __init__(self, is_wanted: Callable[[NotificationKind], bool]) -> None:
        self._is_wanted = is_wanted
        self._before = RunState()
        self._silent_until: dict[tuple[NotificationKind | None, str], float] = {}
        self._known: set[Problem] = set()  # problems that were told since all was well

    def hear_state(self, state: RunState, now: float) -> Notification | None:
        """Return what to say now that things stand like this."""
        before, self._before = self._before, state
        if before.at_work and not state.at_work and state.last not in (None, before.last):
            assert state.last is not None
            return self._tell_end(state, state.last, now)
        if (state.awaited is None) != (before.awaited is None):
            return self._tell_approval(state, now)
        if state.phase is Phase.PAUSED and state.problem not in (None, before.problem):
            assert state.problem is not None
            return self.hear_problem(state.problem, now)
        return None

    def hear_problem(self, problem: Problem, now: float) -> Notification | None:
        """Return the notification of a problem; none if it cannot be fixed or was shown."""
        if problem.code == SILENCE:
            title = translate("herald", "Nothing is uploaded")
            return self._say(
                Notification(NotificationKind.SILENCE, title, _tell(problem), "log"), now
            )
        if not needs_somebody(problem) or problem in self._known:
            return None
        title = translate("herald", "Something needs you")
        message = self._say(
            Notification(NotificationKind.PROBLEM, title, _tell(problem), "problems"), now
        )
        if message:
            self._known.add(problem)
        return message

    def _tell_end(self, state: RunState, run: PastRunState, now: float) -> Notification | None:
        if run.safe and not run.partial:
            self._known.clear()
        if run.problem is not None:
            return None  # told as a problem
        if run.failed:
            text = translate("herald", "%n file(s) could not be uploaded.", None, run.failed)
            return self.hear_problem(Problem("file.failed", text), now)
        if not run.sent:
            return None
        text = translate("herald", "%n file(s) were sent.", None, run.sent)
        if run.left_behind:
            more = translate(
                "herald", "%n file(s) or folder(s) were left out.", None, run.left_behind
            )
        elif run.waiting:
            more = translate("herald", "%n file(s) wait for the next run.", None, run.waiting)
        elif run.partial or state.safety is not Safety.SAFE:
            more = translate("herald", "They are safe on the server.")
        else:
            more = translate("herald", "All files are safe on the server.")
        title = translate("herald", "Upload finished")
        return self._say(
            Notification(NotificationKind.FINISHED, title, f"{text} {more}", "overview"), now
        )

    def _tell_approval(self, state: RunState, now: float) -> Notification | None:
        if state.awaited is not None:
            title = translate("herald", "Waiting for approval")
            text = _tell(state.awaited)
        else:
            title = translate("herald", "Approved")
            text = translate("herald", "The server accepts this computer. Uploads can begin.")
        return self._say(Notification(NotificationKind.APPROVAL, title, text, "overview"), now)

    def _say(self, message: Notification, now: float) -> Notification | None:
        """Return the message, unless its kind is switched off or was told a moment ago.

        The approval is always shown, however short the wait was.
        """
        kind = message.kind
        subject = (kind, message.title if kind is NotificationKind.APPROVAL else "")
        if (kind and not self._is_wanted(kind)) or now < self._silent_until.get(subject, now):
            return None
        self._silent_until[subject] = now + QUIET
        return message


def _tell(problem: Problem) -> str:
    return texts.plain(f"{problem.message} {problem.hint}".strip())


_PROBLEMS = (NotificationKind.PROBLEM, NotificationKind.SILENCE)


class Banner(QToolBar):
    """Shows one message until somebody has read it; the next one takes its place."""

    page_wanted = Signal(object)  # the name of a page

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self.setWindowTitle(self.tr("Message"))
        self.setObjectName("banner")
        self.setMovable(False)
        self.toggleViewAction().setVisible(False)
        self._page = ""
        self._bad = False
        self._picture = IconLabel(1, self)
        self._title = PlainLabel("", self)
        self._title.scale(1, bold=True)
        self._text = ElidedLabel("", self)
        self._more = QPushButton(self.tr("Show &more"), self)
        self._close = QPushButton(self.tr("&Close message"), self)
        self._lay_out()
        window.addToolBarBreak()
        window.addToolBar(self)
        self._more.clicked.connect(self._follow)
        self._close.clicked.connect(self.hide)
        self.hide()

    def tell(self, message: Notification) -> None:
        """Show a message."""
        self._page = message.page
        self._bad = message.kind in _PROBLEMS
        self._picture.show_icon(icon("warning", "problem") if self._bad else icon("info"))
        self._title.setText(message.title)
        self._text.set_whole(message.text)
        self._more.setVisible(bool(message.page))
        self.show()

    def withdraw_problem(self) -> None:
        """Say no more of a problem: there is none any longer."""
        if self._bad:
            self.hide()

    def _lay_out(self) -> None:
        strip = QWidget(self)
        layout = QHBoxLayout(strip)
        gap = self.fontMetrics().height() // 2
        layout.setContentsMargins(gap, 0, gap, 0)
        layout.addWidget(self._picture)
        layout.addWidget(self._title)
        layout.addWidget(self._text, 1)
        layout.addWidget(self._more)
        layout.addWidget(self._close)
        self.addWidget(strip)

    @Slot()
    def _follow(self) -> None:
        self.hide()
        self.page_wanted.emit(self._page)
