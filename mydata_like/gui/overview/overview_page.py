"""The Overview: whether the data is safe, the active run, and what to do."""

import re
from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.deletion import Safety
from mydata_like.core.extra_sources import KnownSource
from mydata_like.gui.base import AppContext, NavigationRequest, Page
from mydata_like.gui.demo_launcher import is_installed
from mydata_like.gui.overview.charts import (
    PipelineStrip,
    SentBar,
    StatusBreakdownBar,
    StatusCounts,
    ThroughputChart,
    count_active_run,
    count_past_run,
)
from mydata_like.gui.overview.summary_cards import RemoveQuestion, SummaryRow, UnfinishedList
from mydata_like.gui.run_state import LiveView, PastRunState, Phase, RunState
from mydata_like.gui.status_text import amount_sentence, overview_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status, quiet
from mydata_like.gui.theme.widgets import LARGE, IconLabel, PlainLabel, app_icon, icon
from mydata_like.settings.layers import ServerDecision
from mydata_like.settings.schema import CONTEXT


class EmptyState(QWidget):
    """A sentence and two ways to start, before the set-up."""

    set_up = Signal()
    demo = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._begin = QPushButton(self.tr("Set &up…"), self)
        self._was_shown = False
        picture = QLabel(self)
        side = self.fontMetrics().height() * 6
        picture.setPixmap(app_icon().pixmap(side, side))
        layout = QVBoxLayout(self)
        layout.addStretch(2)
        layout.addWidget(picture, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(self._make_title(), 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addLayout(self._make_text())
        layout.addSpacing(self.fontMetrics().height())
        layout.addLayout(self._make_buttons())
        layout.addStretch(3)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Only once, to keep the focus of a user who changes pages by keyboard.
        if not self._was_shown:
            self._was_shown = True
            self._begin.setFocus()

    def _make_title(self) -> PlainLabel:
        title = PlainLabel(self.tr("Your data, safe on the server"), self)
        title.scale(LARGE, bold=True)
        return title

    def _make_text(self) -> QHBoxLayout:
        text = PlainLabel(
            self.tr(
                "This program uploads the files of an instrument to a MyTardis server and verifies "
                "that every byte arrived. The set-up takes five short steps."
            ),
            self,
        )
        text.setWordWrap(True)
        text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(text, 2)
        row.addStretch(1)
        return row

    def _make_buttons(self) -> QHBoxLayout:
        self._begin.setDefault(True)
        demo = QPushButton(self.tr("Try the de&mo"), self)
        demo.setToolTip(self.tr("Upload sample data to a server inside this program"))
        self._begin.clicked.connect(self.set_up)
        demo.setVisible(is_installed())
        demo.clicked.connect(self.demo)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._begin)
        row.addWidget(demo)
        row.addStretch(1)
        return row


class DropHint(QWidget):
    """A dashed frame with a hint; the whole window accepts drops."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = self.tr("Drop folders or files here to upload them")
        self.setAccessibleName(self._text)
        self.setMinimumHeight(self.fontMetrics().height() * 4)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().mid().color(), 1.5, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        line = self.fontMetrics().height()
        side = min(line * 3, self.height() // 3)
        top = (self.height() - side - line * 2) // 2
        icon("add-folders").paint(painter, (self.width() - side) // 2, top, side, side)
        painter.setPen(quiet())
        below = QRectF(0, top + side, self.width(), line * 2)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, self._text)


MAX_VALUE = 200  # characters

look_up = QCoreApplication.translate  # for the schema's texts: see settings/schema.py


class SetByServer(QFrame):
    """A list of the settings that the server sets; hidden if there are none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._decisions: Sequence[ServerDecision] = ()
        title = PlainLabel(self.tr("The server sets some settings"), self)
        title.scale(1, bold=True)
        self._lines = PlainLabel("", self)
        advice = PlainLabel(
            self.tr(
                "Ask the facility's administrator whether this is intended. What you save in the "
                "settings takes precedence until the server's settings change again."
            ),
            self,
        )
        advice.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        layout = QVBoxLayout(self)
        for label in (title, self._lines, advice):
            label.setWordWrap(True)
            layout.addWidget(label)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Show the settings that the server sets."""
        if state.set_by_server != self._decisions:
            self._decisions = state.set_by_server
            self._lines.setText("\n".join(map(self._describe, self._decisions)))
        self.setVisible(bool(self._decisions))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self.palette().mid().color())
        painter.setBrush(self.palette().base())
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)

    def _describe(self, decision: ServerDecision) -> str:
        label = look_up(CONTEXT, decision.setting.about.label)
        parts = label, self._shorten(decision.value), self._shorten(decision.instead_of)
        text = self.tr("%1: %2 instead of %3")
        return re.sub("%([123])", lambda mark: parts[int(mark[1]) - 1], text)

    def _shorten(self, text: str) -> str:
        shown = texts.plain(text) or self.tr("(empty)")
        return shown if len(shown) <= MAX_VALUE else shown[:MAX_VALUE] + "…"


PAGE_OF_PART = {
    "verified": NavigationRequest("transfers", "verified"),
    "open": NavigationRequest("transfers"),
    "waiting": NavigationRequest("problems", "waiting"),
    "skipped": NavigationRequest("problems", "skipped"),
    "failed": NavigationRequest("problems", "failed"),
}


class OverviewPage(Page):
    """A summary, the bar of all files, the pipeline, the throughput and the data at risk."""

    def __init__(self, desk: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._empty_state = EmptyState(self)
        self._content = _OverviewContent(desk, self)
        self._scroll = QScrollArea(self)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(self._content)
        self._layers = QStackedLayout(self)
        self._layers.addWidget(self._scroll)
        self._layers.addWidget(self._empty_state)
        self._connect()
        self._show_state(self._controller.state)

    def _connect(self) -> None:
        self._controller.run_changed.connect(self._show_state)
        self._controller.live_changed.connect(self._content.show_live)
        self._empty_state.set_up.connect(self._set_up)
        self._empty_state.demo.connect(self._try_demo)
        self._content.wanted.connect(self.wanted)

    @Slot()
    def _set_up(self) -> None:
        self.wanted.emit(NavigationRequest("set-up"))

    @Slot()
    def _try_demo(self) -> None:
        self.wanted.emit(NavigationRequest("demo"))

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        unset = state.phase is Phase.UNSET
        self._layers.setCurrentWidget(self._empty_state if unset else self._scroll)
        self._content.show_state(state)


class _OverviewContent(QWidget):
    """The content of the page once the program is set up."""

    wanted = Signal(object)

    def __init__(self, desk: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._icon = IconLabel(3.0, self)
        self._sentence = PlainLabel("", self)
        self._sentence.setWordWrap(True)
        self._sentence.scale(LARGE, bold=True)
        self._more = PlainLabel("", self)
        self._more.setWordWrap(True)
        self._action = QPushButton(self)
        self._sent = SentBar(self)
        self._bar = StatusBreakdownBar(self)
        self._summary = SummaryRow(self)
        self._set_by_server = SetByServer(self)
        self._unfinished = UnfinishedList(self)
        self._strip = PipelineStrip(self)
        self._chart = ThroughputChart(self)
        self._hint = DropHint(self)
        self._lay_out()
        self._action.clicked.connect(self._run_action)
        self._bar.chosen.connect(self._choose)
        self._unfinished.continue_wanted.connect(self._continue_source)
        self._unfinished.remove_wanted.connect(self._ask_to_remove)

    def show_state(self, state: RunState) -> None:
        """Show the current state."""
        self._icon.show_icon(icon(*_icon_of(state)))
        self._sentence.setText(overview_sentence(state))
        self._more.setText(self._explain(state))
        self._more.setVisible(bool(self._more.text()))
        self._action.setText(self._action_text(state))
        self._action.setVisible(bool(self._action.text()))
        self._show_amount(state)
        self._bar.show_parts(_parts_of(state))
        self._summary.show_state(state)
        self._set_by_server.show_state(state)
        self._unfinished.show_state(state)
        self._strip.setVisible(state.at_work)
        self._strip.show_sums(state.sums, state.measured)
        self._chart.setVisible(state.ours)
        self._hint.setVisible(not state.ours)

    @Slot(object)
    def show_live(self, live: LiveView) -> None:
        """Show the throughput of the channels."""
        if self._chart.isVisible():
            self._chart.show_samples(live.samples)

    def _lay_out(self) -> None:
        side = self.fontMetrics().height()
        sentences = QVBoxLayout()
        sentences.addWidget(self._sentence)
        sentences.addWidget(self._more)
        top = QHBoxLayout()
        top.setSpacing(side)
        top.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(sentences, 1)
        top.addWidget(self._action, 0, Qt.AlignmentFlag.AlignVCenter)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(side, side, side, side)
        layout.setSpacing(side)
        layout.addLayout(top)
        layout.addWidget(self._sent)
        layout.addWidget(self._bar)
        layout.addWidget(self._strip)
        layout.addWidget(self._summary)
        layout.addWidget(self._set_by_server)
        layout.addWidget(self._unfinished)
        layout.addWidget(self._chart, 1)
        layout.addWidget(self._hint, 1)

    def _show_amount(self, state: RunState) -> None:
        """Show the share of the bytes that were sent."""
        sent, wanted = state.sums.transferred_bytes, state.sums.wanted_bytes
        self._sent.setVisible(state.at_work and wanted > 0)
        self._sent.show_amount(sent, wanted)
        self._sent.setAccessibleDescription(amount_sentence(state))

    def _explain(self, state: RunState) -> str:
        """Return the second sentence: what to do, or further information."""
        if state.phase is Phase.ELSEWHERE:
            return self.tr("Another program or the service executes this run.")
        if state.phase is Phase.IDLE:
            return self._explain_idle(state)
        if state.problem is not None:
            return texts.plain(state.problem.hint)
        amount = amount_sentence(state)
        if amount and state.awaited is not None:
            return f"{amount}. {self.tr('Over HTTP, until the administrator approves SSH.')}"
        return amount

    def _explain_idle(self, state: RunState) -> str:
        last = state.last
        problem = state.data_problem or state.awaited
        if problem is not None:
            return texts.plain(problem.hint)
        if state.interrupted is not None:
            return self._describe_oldest(state)
        if last is not None and last.problem is not None:
            return texts.plain(last.problem.hint)
        return self._describe_others(last)

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
        if last.safe and last.skipped:
            return self.tr("%Ln file(s) were left out on purpose.", None, last.skipped)
        return ""

    def _action_text(self, state: RunState) -> str:
        """Return the text of the button; empty if there is nothing to do."""
        if state.phase in (Phase.BROKEN, Phase.PAUSED):
            return self.tr("Co&ntinue")
        return self.tr("Show pro&blems") if _find_worst_part(state) else ""

    @Slot()
    def _run_action(self) -> None:
        actions = {Phase.BROKEN: self._controller.start, Phase.PAUSED: self._controller.resume}
        actions.get(self._controller.state.phase, self._show_problems)()

    def _show_problems(self) -> None:
        part = _find_worst_part(self._controller.state)
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


def _parts_of(state: RunState) -> StatusCounts:
    """Return the parts of the active run, or else of the newest one."""
    if state.at_work:
        return count_active_run(state.sums)
    newest = state.interrupted or state.last
    if newest is None:
        return count_active_run(state.sums)
    return count_past_run(newest, state.at_risk.files)


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
        return "error", "problem"
    if state.phase is Phase.PAUSED:
        return "pause", "waiting"
    if state.at_work or state.phase is Phase.TESTING:
        return "working", "working"
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
