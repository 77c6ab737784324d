"""The state of the program in a sentence or two, and a button for what to do next."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.core.problems import Action, Fixer, ProblemInfo, find_problem_info
from mydata_like.gui.base import NavigationRequest
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import PastRunState, Phase, Rise, RunState
from mydata_like.gui.status_text import amount_sentence, describe_problem, overview_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.metrics import LARGE_SPACE, TITLE
from mydata_like.gui.theme.widgets import FoldedText, IconLabel, PlainLabel, icon

PAGE_OF_PART = {
    "verified": NavigationRequest("transfers", "verified"),
    "open": NavigationRequest("transfers"),
    "waiting": NavigationRequest("problems", "waiting"),
    "skipped": NavigationRequest("problems", "skipped"),
    "failed": NavigationRequest("problems", "failed"),
}


class Headline(QWidget):
    """An icon, a sentence in larger type, an explanation, and the button."""

    wanted = Signal(object)  # a NavigationRequest

    def __init__(self, controller: WindowController, parent: QWidget, scale: float = TITLE) -> None:
        super().__init__(parent)
        self._controller = controller
        self._icon = IconLabel(3.0, self)
        self._sentence = PlainLabel("", self)
        self._sentence.setWordWrap(True)
        self._scale = scale
        self._more = PlainLabel("", self)
        self._more.setWordWrap(True)
        self._details = FoldedText(self)
        self._action = QPushButton(self)
        self._action.setDefault(True)
        self._action.clicked.connect(self._run_action)
        sentences = QVBoxLayout()
        sentences.addWidget(self._sentence)
        sentences.addWidget(self._more)
        sentences.addWidget(self._details)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._fit_font()
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(sentences, 1)
        layout.addWidget(self._action, 0, Qt.AlignmentFlag.AlignVCenter)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit_font()

    def _fit_font(self) -> None:
        if layout := self.layout():
            self._sentence.scale(self._scale, bold=True)
            layout.setSpacing(LARGE_SPACE)

    def show_state(self, state: RunState) -> None:
        """Show the current state."""
        self._icon.show_icon(icon(*_icon_of(state)))
        self._sentence.setText(overview_sentence(state))
        self._more.setText(self._explain(state))
        self._more.setVisible(bool(self._more.text()))
        problem = _find_problem(state)
        self._details.setText(describe_problem(problem).details if problem else "")
        action = self._choose_action(state)
        self._action.setText(action[0] if action else "")
        self._action.setVisible(action is not None)
        self._action.setEnabled(state.phase is not Phase.PAUSING)

    def _explain(self, state: RunState) -> str:
        """Return the second sentence: what to do, or further information."""
        if state.phase is Phase.ELSEWHERE:
            return self.tr("Another program or the service executes this run.")
        if state.phase is Phase.IDLE:
            return self._explain_idle(state)
        if state.problem is not None:
            return self._explain_problem(state, state.problem)
        return self._explain_run(state)

    def _explain_problem(self, state: RunState, problem: Problem) -> str:
        """Return what to do, and when the engine starts a run again, if it does."""
        hint = describe_problem(problem).hint
        if state.at_work or state.next_start is None:
            return hint
        again = self.tr("Next automatic try: %1.")
        again = again.replace("%1", texts.moment(state.next_start))
        return f"{hint} {again}".strip()

    def _explain_run(self, state: RunState) -> str:
        amount, more = amount_sentence(state), self._explain_rise(state.rise)
        if state.awaited is not None:
            more = self.tr("Over HTTP, until the administrator approves SSH.")
        return f"{amount}. {more}" if amount and more else amount

    def _explain_rise(self, rise: Rise) -> str:
        return {
            Rise.NONE: "",
            Rise.FOUND: self.tr("It takes longer, since more files were found."),
            Rise.SLOWER: self.tr("It takes longer, since sending has become slower."),
            Rise.SERVER: self.tr(
                "It takes longer, since the server needs more time for each file."
            ),
            Rise.REST: self.tr("It takes longer, since the files that are left need more time."),
        }[rise]

    def _explain_idle(self, state: RunState) -> str:
        if problem := _find_problem(state):
            return self._explain_problem(state, problem)
        if state.interrupted is not None:
            return self._describe_oldest(state)
        return self._describe_others(state.last)

    def _describe_oldest(self, state: RunState) -> str:
        """Return the age of the oldest file that a cut-off run left only here, and what to do."""
        advice = self.tr("Start continues where it stopped.")
        if state.at_risk.oldest is None:
            return advice
        oldest = self.tr("The oldest of them is from %1.")
        return f"{oldest.replace('%1', texts.moment(state.at_risk.oldest))} {advice}"

    def _describe_others(self, last: PastRunState | None) -> str:
        """Return what happened to the files that the first sentence does not cover."""
        if last is None or last.failed:
            return ""
        if last.left_behind and last.verified:
            return self.tr("%Ln other file(s) are safe there.", None, last.verified)
        if last.safe and last.skipped > last.kept:
            left_out = last.skipped - last.kept
            return self.tr("%Ln file(s) were left out on purpose.", None, left_out)
        return ""

    def _choose_action(self, state: RunState) -> tuple[str, Callable[[], None]] | None:
        """Return the text and the effect of the button, if there is something to do."""
        match state.phase:
            case Phase.PAUSED:
                return self.tr("Resu&me"), self._controller.resume
            case Phase.RUNNING | Phase.PAUSING:
                return self.tr("Pa&use"), self._controller.pause
            case Phase.BROKEN:
                start = self.tr("Start agai&n"), self._controller.start
                return self._choose_repair(state) or start
            case Phase.IDLE if not _find_worst_part(state):
                start = self.tr("Start n&ow"), self._controller.start
                return self._choose_repair(state) or start
        return (self.tr("Show pro&blems"), self._show_problems) if _find_worst_part(state) else None

    def _choose_repair(self, state: RunState) -> tuple[str, Callable[[], None]] | None:
        """Return the text and the effect of a button that leads to what the user can correct."""
        match _find_info(state).action:
            case Action.OPEN_SETTINGS:
                return self.tr("Open settin&gs…"), self._open_settings
            case Action.SET_UP:
                return self.tr("Check key and approva&l…"), self._open_set_up
            case _:
                return None

    @Slot()
    def _run_action(self) -> None:
        if action := self._choose_action(self._controller.state):
            action[1]()

    def _open_settings(self) -> None:
        setting = _find_info(self._controller.state).setting
        self.wanted.emit(NavigationRequest("settings", setting))

    def _open_set_up(self) -> None:
        self.wanted.emit(NavigationRequest("set-up"))

    def _show_problems(self) -> None:
        part = _find_worst_part(self._controller.state)
        self.wanted.emit(PAGE_OF_PART[part or "failed"])


def _find_problem(state: RunState) -> Problem | None:
    """Return the problem that the sentence describes, if it describes one."""
    if state.phase is not Phase.IDLE:
        return state.problem
    problem = state.data_problem or state.awaited
    if problem is not None or state.interrupted is not None or state.last is None:
        return problem
    return state.last.problem


def _find_info(state: RunState) -> ProblemInfo:
    """Return what is known about the problem that the sentence describes."""
    problem = _find_problem(state)
    return find_problem_info(problem.code if problem else "")


def _recovers(state: RunState) -> bool:
    """Return whether the program tries again when the server or the network may have recovered."""
    if state.problem is None or state.next_start is None:
        return False
    return find_problem_info(state.problem.code).fixer is Fixer.SERVER


def _find_worst_part(state: RunState) -> str:
    """Return the part of the last run that needs the user's attention; empty if there is none."""
    last = state.last
    if state.at_work:
        return ""
    if state.interrupted is not None or state.data_problem is not None:
        return "waiting"
    if last is None:
        return ""
    return "failed" if last.failed else "skipped" if last.left_behind else ""


def _icon_of(state: RunState) -> tuple[str, Status]:
    """Return the icon and the status that represent the state."""
    if state.phase is Phase.BROKEN:
        return ("waiting", "waiting") if _recovers(state) else ("error", "problem")
    if state.phase is Phase.PAUSED:
        return "pause", "waiting"
    if state.at_work or state.phase is Phase.TESTING:
        return "working", "working"
    if state.safety is Safety.UNKNOWN and state.last is None and state.awaited is None:
        return "start" if state.phase is Phase.IDLE else "waiting", "skipped"
    return _icon_of_idle(state)


def _icon_of_idle(state: RunState) -> tuple[str, Status]:
    last = state.last
    if state.data_problem is None and state.awaited is not None:
        return "waiting", "waiting"
    match state.safety:
        case Safety.PROBLEM:
            return "warning", "problem"
        case Safety.SAFE:
            return "check", "good"
        case Safety.AT_RISK if state.interrupted or state.sources or (last and last.left_behind):
            return "warning", "waiting"
        case _:
            return "waiting", "waiting"
