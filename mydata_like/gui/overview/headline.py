"""The state of the program in a sentence or two, and a button for what to do next."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, Qt, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.core.problems import Action, Fixer, find_problem_info
from mydata_like.gui.controller import WindowController
from mydata_like.gui.overview.bars import PAGE_OF_PART
from mydata_like.gui.run_state import Phase, Rise, RunState
from mydata_like.gui.status_text import (
    amount_sentence,
    describe_problem,
    end_sentence,
    next_try_sentence,
    overview_sentence,
)
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, TITLE
from mydata_like.gui.theme.widgets import FoldedText, IconLabel, PlainLabel, icon
from mydata_like.hostos.clock import SystemClock


class Headline(QWidget):
    """An icon, a sentence in larger type, an explanation, and the button.

    Only the one of a page, which has the scale of a title, says when all will be safe. It leaves
    it to a card of that page to say what was left out.
    """

    def __init__(self, controller: WindowController, parent: QWidget, scale: float = TITLE) -> None:
        super().__init__(parent)
        self._controller = controller
        self._icon = IconLabel(3.0, self)
        self._sentence, self._more = (
            PlainLabel("", self, wrap=True),
            PlainLabel("", self, wrap=True),
        )
        self._scale = scale
        self._details = FoldedText(self)
        self._action = QPushButton(self)
        self._action.setDefault(True)
        self._action.clicked.connect(self._run_action)
        align = Qt.AlignmentFlag
        frameless(
            hbox(
                (self._icon, align.AlignTop),
                (vbox(self._sentence, self._more, self._details), 1),
                (self._action, align.AlignVCenter),
                inside=self,
            )
        )
        controller.live_changed.connect(self._count_down)
        self._fit_font()

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

    @Slot(object)
    def _count_down(self, _live: object) -> None:
        if self._controller.state.next_try and self.isVisible():
            self._more.setText(self._explain(self._controller.state))

    def _explain(self, state: RunState) -> str:
        """Return the second sentence: what to do, or further information."""
        if state.phase is Phase.ELSEWHERE:
            return self.tr("Another program or the service executes this run.")
        if problem := _find_problem(state):
            hint = describe_problem(problem).hint
            if state.phase is Phase.IDLE and problem == state.awaited:
                hint = self._explain_waiting(state, hint)
            if state.at_work:
                amount = amount_sentence(state)
                again = next_try_sentence(state, SystemClock().now())
                return " ".join(filter(None, (amount and f"{amount}.", hint, again)))
            if state.next_start is None:
                return hint
            again = self.tr("Next automatic try: %1.")  # when the engine starts a run again
            return f"{hint} {again.replace('%1', texts.moment(state.next_start))}".strip()
        if state.phase is Phase.IDLE:
            return self._explain_idle(state)
        amount, more = amount_sentence(state), self._explain_rise(state.rise)
        if state.awaited is not None:
            more = self._explain_slow_way()
        said = f"{amount}. {more}" if amount and more else amount
        if self._scale < TITLE:
            return said
        until = end_sentence(state, SystemClock().now())
        return f"{said.rstrip('.')}. {until}" if said and until else said or until

    def _explain_waiting(self, state: RunState, hint: str) -> str:
        """Return what the user can do while the approval is pending."""
        if not self._controller.settings.transfer.sends_unapproved:
            return hint
        if state.last is not None and state.last.verified:
            return f"{self._explain_slow_way()} {hint}"
        start = self.tr("You can start already; until then, uploads are slower.")
        return f"{start} {hint}"

    def _explain_slow_way(self) -> str:
        return self.tr("Uploads get faster once your facility approves this computer.")

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
        """Return what happened to the files that the first sentence does not cover."""
        last = state.last
        if state.interrupted is not None:
            advice = self.tr("The next run continues where it stopped.")
            if state.at_risk.oldest is None:
                return advice
            oldest = self.tr("The oldest of them is from %1.")
            return f"{oldest.replace('%1', texts.moment(state.at_risk.oldest))} {advice}"
        if last is None or last.failed:
            return ""
        if last.left_behind and last.verified:
            return self.tr("%Ln other file(s) are safe there.", None, last.verified)
        left_out = last.skipped - last.kept - last.outside
        if self._scale < TITLE and last.safe and left_out > 0:
            return self.tr("%Ln file(s) were left out on purpose.", None, left_out)
        return ""

    def _choose_action(self, state: RunState) -> tuple[str, Callable[[], None]] | None:
        """Return the text and the effect of the button, if there is something to do."""
        run, worst, problem = self._controller, _find_worst_part(state), _find_problem(state)
        broken = state.phase is Phase.BROKEN
        if state.phase is Phase.PAUSED:
            if problem and problem.code in ("host-key.changed", "host-key.unknown"):
                return self.tr("Chec&k key…"), partial(run.open_page, "set-up")
            return self.tr("Resu&me"), run.resume
        if state.phase in (Phase.RUNNING, Phase.PAUSING):
            return self.tr("Pa&use"), run.pause
        if state.phase is Phase.IDLE and state.interrupted and state.data_problem is None:
            return self.tr("Conti&nue"), run.start
        if broken or (state.phase is Phase.IDLE and not worst):
            info = find_problem_info(problem.code if problem else "")
            if info.action is Action.OPEN_SETTINGS:
                return self.tr("Open settin&gs…"), partial(run.open_page, "settings", info.setting)
            if info.action is Action.SET_UP:
                return self.tr("Check key and approva&l…"), partial(run.open_page, "set-up")
            return self.tr("Start agai&n") if broken else self.tr("Start n&ow"), run.start
        if worst:
            return self.tr("Show pro&blems"), partial(run.open_page, *PAGE_OF_PART[worst])
        return None

    @Slot()
    def _run_action(self) -> None:
        if action := self._choose_action(self._controller.state):
            action[1]()


def _find_problem(state: RunState) -> Problem | None:
    """Return the problem that the sentence describes, if it describes one."""
    if state.phase is not Phase.IDLE:
        return state.problem
    problem = state.data_problem or state.awaited
    if problem is not None or state.interrupted is not None or state.last is None:
        return problem
    return state.last.problem


def _find_worst_part(state: RunState) -> str:
    """Return the part of the last run that needs the user's attention; empty if there is none."""
    last = state.last
    if state.at_work:
        return ""
    if state.data_problem is not None:
        return "waiting"
    if last is None:
        return ""
    return "failed" if last.failed else "skipped" if last.left_behind else ""


def _icon_of(state: RunState) -> tuple[str, Status]:
    """Return the icon and the status that represent the state."""
    last, problem = state.last, state.problem
    if state.phase is Phase.BROKEN:
        # The server or the network may recover, and the program tries again.
        recovers = problem and find_problem_info(problem.code).fixer is Fixer.SERVER
        return ("waiting", "waiting") if recovers and state.next_start else ("error", "problem")
    if state.phase is Phase.PAUSED:
        return "pause", "waiting"
    if state.at_work or state.phase is Phase.TESTING:
        return "working", "working"
    if state.safety is Safety.UNKNOWN and last is None and state.awaited is None:
        return "start" if state.phase is Phase.IDLE else "waiting", "skipped"
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
