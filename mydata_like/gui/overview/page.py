"""The first page: is my data safe, what goes on, what is to be done."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.deletion import Safety
from mydata_like.core.extra_sources import KnownSource
from mydata_like.gui.live_run import LiveView
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import LARGE, PlainLabel
from mydata_like.gui.look.palette import Status
from mydata_like.gui.look.picture import Picture
from mydata_like.gui.look.sentences import overview_sentence
from mydata_like.gui.overview.conservation import ConservationBar
from mydata_like.gui.overview.counts import Parts, parts_of_past, parts_of_progress
from mydata_like.gui.overview.drop_hint import DropHint
from mydata_like.gui.overview.facts import FactRow
from mydata_like.gui.overview.pipeline import PipelineStrip
from mydata_like.gui.overview.set_by_server import SetByServer
from mydata_like.gui.overview.throughput import ThroughputChart
from mydata_like.gui.overview.unfinished import RemoveQuestion, UnfinishedList
from mydata_like.gui.overview.welcome import Welcome
from mydata_like.gui.pages.page import Desk, Page, Wish
from mydata_like.gui.state import PastRun, Phase, RunState

PAGE_OF_PART = {
    "verified": Wish("transfers", "verified"),
    "open": Wish("transfers"),
    "waiting": Wish("problems", "waiting"),
    "skipped": Wish("problems", "skipped"),
    "failed": Wish("problems", "failed"),
}


class OverviewPage(Page):
    """One sentence, the conservation bar, the pipeline, the throughput, the data at risk."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._welcome = Welcome(self)
        self._standing = _Standing(desk, self)
        self._scroll = QScrollArea(self)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(self._standing)
        self._layers = QStackedLayout(self)
        self._layers.addWidget(self._scroll)
        self._layers.addWidget(self._welcome)
        self._connect()
        self._show_state(self._controller.state)

    def _connect(self) -> None:
        self._controller.run_changed.connect(self._show_state)
        self._controller.live_changed.connect(self._standing.show_live)
        self._welcome.set_up.connect(self._set_up)
        self._welcome.demo.connect(self._try_demo)
        self._standing.wanted.connect(self.wanted)

    @Slot()
    def _set_up(self) -> None:
        self.wanted.emit(Wish("set-up"))

    @Slot()
    def _try_demo(self) -> None:
        self.wanted.emit(Wish("demo"))

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        unset = state.phase is Phase.UNSET
        self._layers.setCurrentWidget(self._welcome if unset else self._scroll)
        self._standing.show_state(state)


class _Standing(QWidget):
    """How things stand, once everything is set up."""

    wanted = Signal(object)

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._picture = Picture(3.0, self)
        self._sentence = PlainLabel("", self)
        self._sentence.setWordWrap(True)
        self._sentence.scale(LARGE, bold=True)
        self._more = PlainLabel("", self)
        self._more.setWordWrap(True)
        self._act = QPushButton(self)
        self._bar = ConservationBar(self)
        self._facts = FactRow(self)
        self._set_by_server = SetByServer(self)
        self._unfinished = UnfinishedList(self)
        self._strip = PipelineStrip(self)
        self._chart = ThroughputChart(self)
        self._hint = DropHint(self)
        self._lay_out()
        self._act.clicked.connect(self._go_on)
        self._bar.chosen.connect(self._choose)
        self._unfinished.continue_wanted.connect(self._continue_source)
        self._unfinished.remove_wanted.connect(self._ask_to_remove)

    def show_state(self, state: RunState) -> None:
        """Show how things stand."""
        self._picture.show_icon(icon(*_picture_of(state)))
        self._sentence.setText(overview_sentence(state))
        self._more.setText(self._explain(state))
        self._more.setVisible(bool(self._more.text()))
        self._act.setText(self._name_act(state))
        self._act.setVisible(bool(self._act.text()))
        self._bar.show_parts(_parts_of(state))
        self._facts.show_state(state)
        self._set_by_server.show_state(state)
        self._unfinished.show_state(state)
        self._strip.setVisible(state.at_work)
        self._strip.show_sums(state.sums, state.measured)
        self._chart.setVisible(state.ours)
        self._hint.setVisible(not state.ours)

    @Slot(object)
    def show_live(self, live: LiveView) -> None:
        """Show what the channels carry."""
        if self._chart.isVisible():
            self._chart.show_samples(live.samples)

    def _lay_out(self) -> None:
        side = self.fontMetrics().height()
        said = QVBoxLayout()
        said.addWidget(self._sentence)
        said.addWidget(self._more)
        top = QHBoxLayout()
        top.setSpacing(side)
        top.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(said, 1)
        top.addWidget(self._act, 0, Qt.AlignmentFlag.AlignVCenter)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(side, side, side, side)
        layout.setSpacing(side)
        layout.addLayout(top)
        layout.addWidget(self._bar)
        layout.addWidget(self._strip)
        layout.addWidget(self._facts)
        layout.addWidget(self._set_by_server)
        layout.addWidget(self._unfinished)
        layout.addWidget(self._chart, 1)
        layout.addWidget(self._hint, 1)

    def _explain(self, state: RunState) -> str:
        """Return the second sentence: what to do, or what else is worth knowing."""
        if state.phase is Phase.ELSEWHERE:
            return self.tr("Another program or the service carries out this run.")
        if state.phase is Phase.IDLE:
            return self._explain_rest(state)
        return words.plain(state.problem.hint) if state.problem is not None else ""

    def _explain_rest(self, state: RunState) -> str:
        last = state.last
        problem = state.data_problem or state.awaited
        if problem is not None:
            return words.plain(problem.hint)
        if state.interrupted is not None:
            return self._tell_oldest(state)
        if last is not None and last.problem is not None:
            return words.plain(last.problem.hint)
        return self._tell_others(last)

    def _tell_oldest(self, state: RunState) -> str:
        """Return since when files exist only here after a run was cut off, and what to do."""
        on = self.tr("Start carries on where it was.")
        if state.at_risk.oldest is None:
            return on
        oldest = self.tr("The oldest of them was made %1.")
        return f"{oldest.replace('%1', words.moment(state.at_risk.oldest))} {on}"

    def _tell_others(self, last: PastRun | None) -> str:
        """Return what became of the files that the first sentence says nothing of."""
        if last is None or last.failed:
            return ""
        if last.left_behind and last.verified:
            return self.tr("%Ln other file(s) are safe there.", None, last.verified)
        if last.safe and last.skipped:
            return self.tr("%Ln file(s) were left out on purpose.", None, last.skipped)
        return ""

    def _name_act(self, state: RunState) -> str:
        """Return what the button says; empty where there is nothing to be done."""
        if state.phase in (Phase.BROKEN, Phase.PAUSED):
            return self.tr("&Go on")
        return self.tr("Show pro&blems") if _worst_part(state) else ""

    @Slot()
    def _go_on(self) -> None:
        acts = {Phase.BROKEN: self._controller.start, Phase.PAUSED: self._controller.resume}
        acts.get(self._controller.state.phase, self._show_problems)()

    def _show_problems(self) -> None:
        part = _worst_part(self._controller.state)
        self.wanted.emit(PAGE_OF_PART[part or "failed"])

    @Slot(object)
    def _continue_source(self, source: KnownSource) -> None:
        self._controller.add_source(source.path, *source.destination)

    @Slot(object)
    def _ask_to_remove(self, source: KnownSource) -> None:
        question = RemoveQuestion(source, self)
        question.confirmed.connect(self._controller.remove_source)
        question.open()

    @Slot(object)
    def _choose(self, part: str) -> None:
        self.wanted.emit(PAGE_OF_PART[part])


def _parts_of(state: RunState) -> Parts:
    """Return the parts of the run at work, else of the newest one, that was cut off or not."""
    if state.at_work:
        return parts_of_progress(state.sums)
    newest = state.interrupted or state.last
    if newest is None:
        return parts_of_progress(state.sums)
    return parts_of_past(newest, state.at_risk.files)


def _worst_part(state: RunState) -> str:
    """Return the part of the last run that somebody has to see to; empty where there is none."""
    last = state.last
    if state.at_work:
        return ""
    if state.interrupted is not None or state.data_problem is not None:
        return "waiting"
    if last is None:
        return ""
    return "failed" if last.failed else "skipped" if last.left_behind else ""


def _picture_of(state: RunState) -> tuple[str, Status]:
    """Return the icon and the status that stand for how things are."""
    if state.phase is Phase.BROKEN:
        return "error", "problem"
    if state.phase is Phase.PAUSED:
        return "pause", "waiting"
    if state.at_work or state.phase is Phase.TESTING:
        return "working", "working"
    return _picture_of_rest(state)


def _picture_of_rest(state: RunState) -> tuple[str, Status]:
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
