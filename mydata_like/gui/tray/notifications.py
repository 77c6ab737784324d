"""Decides which changes are shown as notifications."""

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QCoreApplication, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QPushButton, QToolBar, QWidget

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import PastRunState, Phase, RunState
from mydata_like.gui.status_text import describe_problem
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import hbox
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, PlainLabel, icon
from mydata_like.gui.tray.tray_icon import needs_user

if TYPE_CHECKING:
    from mydata_like.app.receipt_service import DriveReceipt

translate = QCoreApplication.translate

MIN_INTERVAL: Final = 600.0  # seconds between two notifications of one kind
SILENCE: Final = "monitor.silence"
FILES_FAILED: Final = "file.failed"


class NotificationKind(Enum):
    """What a notification is about; the value is the setting that disables it."""

    FINISHED = "notify_finished"
    PROBLEM = "notify_problem"
    APPROVAL = "notify_approval"
    SILENCE = "notify_silence"


def _is_never(_state: RunState) -> bool:
    return False


class Notification(NamedTuple):
    """A short text for the user, and the page with details (empty for none).

    Instead of a page, the `receipt` of a removable drive may have the details; `ejects` is whether
    the user may eject the drive. A notification without a kind cannot be disabled. It is settled
    when `concerns` is no longer true of the state, after it once was.
    """

    kind: NotificationKind | None
    title: str
    text: str
    page: str
    concerns: Callable[[RunState], bool] = _is_never
    receipt: "DriveReceipt | None" = None
    ejects: bool = False


def has_problem(problem: Problem, state: RunState) -> bool:
    """Return whether the state shows a problem of the active run, of the last one or the data."""
    last = state.last.problem if state.last is not None else None
    return problem in (state.problem, state.awaited, state.data_problem, last)


def is_at_work(state: RunState) -> bool:
    """Return whether a run is active."""
    return state.at_work


def is_at_rest(state: RunState) -> bool:
    """Return whether no run is active."""
    return not state.at_work


class NotificationPolicy:
    """Decides from changes of the state which notifications are shown; never the same one twice.

    `is_enabled` returns whether a kind is enabled. Times are seconds of any monotonic clock.
    """

    def __init__(self, is_enabled: Callable[[NotificationKind], bool]) -> None:
        self._is_enabled = is_enabled
        self._before = RunState()
        self._muted_until: dict[tuple[NotificationKind | None, str], float] = {}
        self._shown_problems: set[Problem] = set()  # shown since the last successful run

    def on_state(self, state: RunState, now: float) -> Notification | None:
        """Return the notification of a change of the state, if there is one to show."""
        before, self._before = self._before, state
        ended = before.at_work and not state.at_work and state.last != before.last
        if ended and state.last is not None:
            return self._notify_end(state, state.last, now)
        if (state.awaited is None) != (before.awaited is None):
            return self._notify_approval(state, now)
        paused = state.phase is Phase.PAUSED and state.problem != before.problem
        return self.on_problem(state.problem, now) if paused and state.problem else None

    def on_problem(self, problem: Problem, now: float) -> Notification | None:
        """Return the notification of a problem; none if it cannot be fixed or was shown."""
        if problem.code == SILENCE:
            title = translate("notifications", "Nothing is being uploaded")
            kind, text = NotificationKind.SILENCE, texts.problem_text(problem)
            return self._limit_rate(Notification(kind, title, text, "log"), now)
        if not needs_user(problem) or problem in self._shown_problems:
            return None
        title = translate("notifications", "Action required")
        concerns = partial(has_problem, problem)
        # The page of problems shows those of runs and files; a notice is in the log only.
        listed = concerns(self._before) or problem.code == FILES_FAILED
        page, said = "problems" if listed else "log", describe_problem(problem)
        text = " ".join(filter(None, (said.sentence, said.hint)))
        asking = Notification(NotificationKind.PROBLEM, title, text, page, concerns)
        if message := self._limit_rate(asking, now):
            self._shown_problems.add(problem)
        return message

    def _notify_end(self, state: RunState, run: PastRunState, now: float) -> Notification | None:
        if run.safe and not run.partial:
            self._shown_problems.clear()
        if run.problem is not None:
            return None  # shown as a problem
        if run.failed:
            text = translate("notifications", "%n file(s) could not be uploaded.", None, run.failed)
            return self.on_problem(Problem(FILES_FAILED, text), now)
        if not run.sent:
            return None
        text = translate("notifications", "%n file(s) were sent.", None, run.sent)
        if run.left_behind:
            details = translate(
                "notifications", "%n file(s) or folder(s) were left out.", None, run.left_behind
            )
        elif run.waiting:
            details = translate(
                "notifications", "%n file(s) wait for the next run.", None, run.waiting
            )
        elif (
            run.partial or run.outside or run.kept or state.kept or state.safety is not Safety.SAFE
        ):
            details = translate("notifications", "They are safe on the server.")
        else:
            details = translate("notifications", "All files are safe on the server.")
        kind, title = NotificationKind.FINISHED, translate("notifications", "Upload finished")
        done = Notification(kind, title, f"{text} {details}", "overview", is_at_rest)
        return self._limit_rate(done, now)

    def _notify_approval(self, state: RunState, now: float) -> Notification | None:
        concerns: Callable[[RunState], bool] = is_at_rest
        if state.awaited is not None:
            title = translate("notifications", "Waiting for approval")
            said = describe_problem(state.awaited)
            text = f"{said.sentence} {said.hint}"
            concerns = partial(has_problem, state.awaited)
        else:
            title = translate("notifications", "Approved")
            text = translate(
                "notifications", "The server accepts this computer. Uploads can begin."
            )
        kind = NotificationKind.APPROVAL
        return self._limit_rate(Notification(kind, title, text, "overview", concerns), now)

    def _limit_rate(self, message: Notification, now: float) -> Notification | None:
        """Return the notification, unless its kind is disabled or was shown recently.

        An approval is shown even right after the request for it.
        """
        kind = message.kind
        subject = (kind, message.title if kind is NotificationKind.APPROVAL else "")
        if (kind and not self._is_enabled(kind)) or now < self._muted_until.get(subject, now):
            return None
        self._muted_until[subject] = now + MIN_INTERVAL
        return message


_PROBLEMS = (NotificationKind.PROBLEM, NotificationKind.SILENCE)


class Banner(QToolBar):
    """Shows one notification until it is settled, closed or replaced by the next one."""

    eject_wanted = Signal(object)  # the `DriveReceipt` of the drive

    def __init__(self, controller: WindowController, window: QMainWindow) -> None:
        super().__init__(window)
        self._controller = controller
        self.setWindowTitle(self.tr("Message"))
        self.setObjectName("banner")
        self.setMovable(False)
        self.toggleViewAction().setVisible(False)
        self._message = Notification(None, "", "", "")
        self._concerned = False
        self._last: PastRunState | None = None
        self._icon = IconLabel(1, self)
        self._title = PlainLabel("", self, heading=1)
        self._text = ElidedLabel("", self)
        self._eject = QPushButton(self.tr("&Eject"), self)
        self._more = QPushButton(self)
        self._close = QPushButton(self.tr("&Close message"), self)

        strip, gap = QWidget(self), self.fontMetrics().height() // 2
        buttons = (self._eject, self._more, self._close)
        parts = (self._icon, self._title, (self._text, 1), *buttons)
        hbox(*parts, inside=strip, margins=(gap, 0, gap, 0))
        self.addWidget(strip)

        window.addToolBarBreak()
        window.addToolBar(self)
        self._eject.clicked.connect(self._request_eject)
        self._more.clicked.connect(self._open_page)
        self._close.clicked.connect(self.hide)
        controller.run_changed.connect(self._follow)
        self.hide()

    def show_notification(self, message: Notification) -> None:
        """Show a notification."""
        self._message, self._concerned = message, False
        is_problem = message.kind in _PROBLEMS
        self._icon.show_icon(icon("warning", "problem") if is_problem else icon("info"))
        self._title.setText(message.title)
        self._text.set_full_text(message.text)
        receipt, more = self.tr("Show &receipt"), self.tr("Show &more")
        self._more.setText(receipt if message.receipt else more)
        self._more.setVisible(bool(message.page or message.receipt))
        self._eject.setVisible(message.ejects)
        self._eject.setEnabled(message.ejects)
        self.show()
        self._follow(self._controller.state)

    @property
    def shows_problem(self) -> bool:
        """Whether a problem is shown."""
        return self._message.kind in _PROBLEMS and not self.isHidden()

    @Slot(object)
    def _follow(self, state: RunState) -> None:
        """Hide the notification when it is settled, that of a problem also after a safe run."""
        before, self._concerned = self._concerned, self._message.concerns(state)
        last, self._last = self._last, state.last
        recovered = state.last is not None and state.last != last and state.last.safe
        if (before and not self._concerned) or (recovered and self.shows_problem):
            self.hide()

    @Slot()
    def _request_eject(self) -> None:
        self._eject.setEnabled(False)  # until it is known whether it is ejected
        self.eject_wanted.emit(self._message.receipt)

    @Slot()
    def _open_page(self) -> None:
        if self._message.receipt:
            self._controller.open_path(self._message.receipt.file)
        else:
            self.hide()
            self._controller.open_page(self._message.page)
