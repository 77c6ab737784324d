"""The Overview: whether the data is safe, the active run, and what to do."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QEvent, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette, QPen, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QStackedLayout,
    QToolButton,
    QWidget,
)

from mydata_like.core.errors import OUTSIDE
from mydata_like.core.problems import INTENDED, Fixer, find_problem_info
from mydata_like.core.queries import ProblemGroup
from mydata_like.gui.base import PAGE_MARGINS, AppContext, Page
from mydata_like.gui.controller import WindowController
from mydata_like.gui.ledger_query import LedgerQuery
from mydata_like.gui.overview.bars import SentBar, StatusBreakdownBar, count_files
from mydata_like.gui.overview.destination_check import DestinationCheck
from mydata_like.gui.overview.details_panel import DetailsPanel
from mydata_like.gui.overview.headline import Headline
from mydata_like.gui.overview.recent_datasets import RecentDatasets
from mydata_like.gui.overview.route_row import RouteRow
from mydata_like.gui.overview.summary_cards import SummaryRow, UnfinishedList
from mydata_like.gui.run_state import LiveView, PastRunState, Phase, RunState
from mydata_like.gui.status_text import describe_problem, safe_sentence
from mydata_like.gui.tables.problem_groups import (
    count_of_group,
    list_hidden,
    mark_of_group,
    name_of_group,
    severity,
)
from mydata_like.gui.tables.table_panel import QUEUED, group_problems
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import current_shades, quiet
from mydata_like.gui.theme.layouts import Gap, fill, frameless, hbox, scrolled, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE, TITLE
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, Panel, PlainLabel, app_icon, icon
from mydata_like.settings.layers import ServerDecision, find_setting
from mydata_like.settings.schema import CONTEXT


class EmptyState(QWidget):
    """A sentence and two ways to start, before the set-up."""

    def __init__(self, controller: WindowController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._begin = QPushButton(self.tr("Set &up…"), self)
        self._begin.setDefault(True)
        self._was_shown = False
        demo = QPushButton(self.tr("Try the de&mo"), self)
        demo.setToolTip(self.tr("Upload sample data to a server inside this program"))
        picture, side = QLabel(self), self.fontMetrics().height() * 6
        picture.setPixmap(app_icon().pixmap(side, side))
        title = PlainLabel(self.tr("Your data, safe and verified"), self, heading=TITLE)
        text = PlainLabel(
            self.tr(
                "This program sends the files of an instrument to a MyTardis server, a computer "
                "with SSH or a folder, and verifies that every byte arrived. The set-up takes a "
                "few short steps."
            ),
            self,
            wrap=True,
        )
        self._locked = PlainLabel("", self, wrap=True)
        self._locked.hide()
        align = Qt.AlignmentFlag
        for label in (text, self._locked):
            label.setAlignment(align.AlignCenter)
        vbox(
            2,
            (picture, align.AlignHCenter),
            (title, align.AlignHCenter),
            hbox(1, (text, 2), 1),
            hbox(1, (self._locked, 2), 1),
            Gap(LARGE_SPACE),
            hbox(1, self._begin, demo, 1),
            3,
            inside=self,
        )
        self._begin.clicked.connect(self._set_up)
        demo.clicked.connect(self._try_demo)

    def show_state(self, state: RunState) -> None:
        """Name the settings that are missing and that only an administrator can enter."""
        loaded = self._controller.loaded
        locked_by = loaded.locked_by if loaded else {}
        labels = {
            key: look_up(CONTEXT, find_setting(key).about.label)
            for key in state.missing
            if key in locked_by
        }
        text = self.tr("Missing and locked by %1: %2. Ask your administrator to enter it there.")
        holders = texts.plain(", ".join(dict.fromkeys(locked_by[key] for key in labels)))
        self._locked.setText(texts.filled(text, holders, ", ".join(labels.values())))
        self._locked.setVisible(bool(labels))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Only once, to keep the focus of a user who changes pages by keyboard.
        if not self._was_shown:
            self._was_shown = True
            self._begin.setFocus()

    @Slot()
    def _set_up(self) -> None:
        self._controller.open_page("set-up")

    @Slot()
    def _try_demo(self) -> None:
        self._controller.open_page("demo")


class DropHint(QWidget):
    """A dashed frame with a hint; the whole window accepts drops."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = self.tr("Drop folders or files here to upload them")
        self.setAccessibleName(self._text)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        text = self.fontMetrics()
        return QSize(text.horizontalAdvance(self._text) + text.height() * 6, text.height() * 6)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(current_shades().edge), 1.0, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        line = self.fontMetrics().height()
        side, gap = round(line * 1.5), line // 2
        width = side + gap + self.fontMetrics().horizontalAdvance(self._text)
        left = (self.width() - width) // 2
        icon("add-folders", "skipped").paint(painter, left, 0, side, self.height())
        painter.setPen(quiet())
        beside = QRectF(left + side + gap, 0, self.width(), self.height())
        painter.drawText(beside, Qt.AlignmentFlag.AlignVCenter, self._text)


MAX_VALUE = 200  # characters

translate = QCoreApplication.translate
look_up = QCoreApplication.translate  # for the schema's texts: see settings/schema.py


class SetByServer(Panel):
    """A list of the settings that the server sets; hidden if there are none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._decisions: Sequence[ServerDecision] = ()
        title = PlainLabel(self.tr("The server sets some settings"), self, heading=1, wrap=True)
        self._lines = PlainLabel("", self, wrap=True)
        advice = self.tr(
            "Ask the facility's administrator whether this is intended. What you save in the "
            "settings takes precedence until the server's settings change again."
        )
        vbox(title, self._lines, PlainLabel(advice, self, wrap=True, quiet=True), inside=self)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Show the settings that the server sets."""
        if state.set_by_server != self._decisions:
            self._decisions = state.set_by_server
            self._lines.setText("\n".join(map(self._describe, self._decisions)))
        self.setVisible(bool(self._decisions))

    def _describe(self, decision: ServerDecision) -> str:
        label = look_up(CONTEXT, decision.setting.about.label)
        parts = label, self._shorten(decision.value), self._shorten(decision.instead_of)
        return texts.filled(self.tr("%1: %2 instead of %3"), *parts)

    def _shorten(self, text: str) -> str:
        shown = texts.plain(text) or self.tr("(empty)")
        return shown if len(shown) <= MAX_VALUE else shown[:MAX_VALUE] + "…"


MAX_ROWS = 3
NEED_SOMEONE = (Fixer.USER, Fixer.ADMINISTRATOR)


class OpenProblems(QFrame):
    """The most serious kinds of problems that someone has to fix; hidden if there are none.

    It reads the ledger while `parent` is visible.
    """

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._controller, self._memory = context.controller, context.memory
        self._seen: tuple[bool, PastRunState | None] = (False, None)
        self.query = LedgerQuery(context, parent, group_problems)
        title = PlainLabel(self.tr("Needs your attention"), self, heading=1)
        self._more = PlainLabel("", self, quiet=True)
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(LARGE_SPACE)
        self._layout.setVerticalSpacing(SPACE)
        self._layout.setColumnStretch(1, 1)
        self._layout.addWidget(title, 0, 0, 1, 3)
        self.rows = [_Row(self) for _ in range(MAX_ROWS)]
        for number, row in enumerate(self.rows, 1):
            for column, widget in enumerate(row.widgets):
                self._layout.addWidget(widget, number, column, Qt.AlignmentFlag.AlignVCenter)
            row.button.clicked.connect(self._open)
        self._layout.addWidget(self._more, MAX_ROWS + 1, 1)
        self.query.answered.connect(self._show_groups)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Read the ledger again if a run has begun or ended."""
        if (state.at_work, state.last) != self._seen:
            self._seen = (state.at_work, state.last)
            self.query.refresh()

    @Slot(object)
    def _show_groups(self, groups: Sequence[ProblemGroup]) -> None:
        hidden = list_hidden(self._memory)
        shown = [
            group
            for group in sorted(groups, key=severity)
            if find_problem_info(group.problem.code).fixer in NEED_SOMEONE
            and group.problem.code not in INTENDED
            and name_of_group(group) not in hidden
            and group.kind != QUEUED  # the headline says so
        ]
        for row in self.rows[len(shown) :]:
            row.set_visible(visible=False)
        for row, group in zip(self.rows, shown, strict=False):
            row.show_group(group)
        more = len(shown) - MAX_ROWS
        self._more.setText(self.tr("and %Ln more kind(s) of problems", "", more))
        self._more.setVisible(more > 0)
        self.setVisible(bool(shown))

    @Slot()
    def _open(self) -> None:
        row = next(row for row in self.rows if row.button is self.sender())
        self._controller.open_page("problems", row.name)


class OutsideNote(QWidget):
    """How many files are in no dataset, one of them, and a link to all; hidden if there are none.

    It is also hidden if the user has hidden this kind of problem.
    """

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._controller, self._memory = context.controller, context.memory
        shape, self._text = IconLabel(1.0, self), ElidedLabel("", self)
        shape.show_icon(icon("skipped", "skipped"))
        self._text.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._show = QToolButton(self)
        self._show.setText(translate("problems", "Show"))
        self._show.setAutoRaise(True)
        self._show.clicked.connect(self._open)
        frameless(hbox(shape, (self._text, 1), self._show, inside=self))
        self.hide()

    @Slot(object)
    def show_groups(self, groups: Sequence[ProblemGroup]) -> None:
        """Show the files of the group of those in no dataset."""
        group = next((one for one in groups if one.problem.code == OUTSIDE), None)
        hidden = group is None or name_of_group(group) in list_hidden(self._memory)
        self.setHidden(hidden)
        if group is None or hidden:
            return
        text = self.tr("%Ln file(s) are in no dataset and stay here: %1", None, group.files)
        more = "" if group.files == 1 else ", …"
        self._text.set_full_text(text.replace("%1", texts.plain(group.path) + more))
        self._show.setAccessibleName(f"{self._show.text()}: {self._text.full_text}")

    @Slot()
    def _open(self) -> None:
        self._controller.open_page("problems", f"skipped:{OUTSIDE}")


class _Row:
    """The widgets of one kind in the grid; `name` is that of the kind."""

    def __init__(self, parent: QWidget) -> None:
        self.name = ""
        self._icon = IconLabel(1.0, parent)
        self._text = ElidedLabel("", parent)
        self.button = QPushButton(icon("problems"), translate("problems", "Show"), parent)
        self.widgets = (self._icon, self._text, self.button)

    def set_visible(self, *, visible: bool) -> None:
        for widget in self.widgets:
            widget.setVisible(visible)

    def show_group(self, group: ProblemGroup) -> None:
        self.name = name_of_group(group)
        sentence = describe_problem(group.problem).sentence
        text = f"{count_of_group(group)}: {sentence}"
        mark = mark_of_group(group)
        self._icon.show_icon(mark.icon)
        self._icon.setAccessibleName(mark.word)
        self._text.set_full_text(text)
        self.button.setAccessibleName(f"{self.button.text()}: {text}")
        self.set_visible(visible=True)


class OverviewPage(Page):
    """From where to where, how it stands, what arrives, and what needs the user."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = context.controller
        self._empty_state = EmptyState(self._controller, self)
        self._content = _OverviewContent(context, self)
        self._scroll = scrolled(self._content, self)
        self._layers = QStackedLayout(self)
        self._layers.addWidget(self._scroll)
        self._layers.addWidget(self._empty_state)
        self._controller.run_changed.connect(self._show_state)
        self._controller.live_changed.connect(self._content.show_live)
        self._show_state(self._controller.state)

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        unset = state.phase is Phase.UNSET
        self._layers.setCurrentWidget(self._empty_state if unset else self._scroll)
        self._content.show_state(state)
        self._empty_state.show_state(state)


class _OverviewContent(QWidget):
    """The content of the page once the program is set up."""

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        controller = context.controller
        self._route = RouteRow(controller, self)
        self._headline = Headline(controller, self)
        self._sent = SentBar(self)
        self._bar = StatusBreakdownBar(controller, self)
        self._outside = OutsideNote(context, self)
        self._safe = PlainLabel("", self, wrap=True)
        self._check = DestinationCheck(context, self)
        self._datasets = RecentDatasets(context, self)
        self._problems = OpenProblems(context, self)
        self._problems.query.answered.connect(self._outside.show_groups)
        self._summary = SummaryRow(self)
        self._set_by_server = SetByServer(self)
        self._unfinished = UnfinishedList(controller, self)
        self._details = DetailsPanel(context.memory, self)
        self._hint = DropHint(self)
        # Each of these shows the state.
        self._parts = (
            self._route,
            self._headline,
            self._sent,
            self._datasets,
            self._problems,
            self._summary,
            self._set_by_server,
            self._unfinished,
            self._details,
        )
        self._layout = vbox(inside=self, spacing=LARGE_SPACE, margins=PAGE_MARGINS)
        fill(self._layout, *self._parts[:3], self._bar, self._outside, self._safe)
        fill(self._layout, self._check, *self._parts[3:], self._hint)
        self._layout.addStretch(1)
        self._details.changed.connect(self._make_room)

    def show_state(self, state: RunState) -> None:
        """Show the current state."""
        for part in self._parts:
            part.show_state(state)
        self._bar.show_parts(count_files(state), counts_only=not self._sent.isHidden())
        # A run without its data directory has found nothing, whatever was verified before.
        past = (state.interrupted or state.last) and state.data_problem is None
        self._bar.setVisible(state.at_work or bool(past))
        self._safe.setText(safe_sentence(state))
        self._safe.setVisible(bool(self._safe.text()))
        self._check.show_state(state)
        self._details.setVisible(state.at_work)
        self._make_room()

    @Slot(object)
    def show_live(self, live: LiveView) -> None:
        """Show the active transfers and the throughput."""
        if self.isVisible():
            self._datasets.show_transfers(live.transfers)
            self._details.show_samples(live.samples)

    @Slot()
    def _make_room(self) -> None:
        """Hide what is of little use during a run while the details need the room."""
        has_room = self._details.isHidden() or not self._details.is_open
        self._summary.setVisible(has_room)
        self._hint.setVisible(has_room)
        self._layout.setStretchFactor(self._details, 0 if has_room else 1)
        self._layout.setStretch(self._layout.count() - 1, 1 if has_room else 0)

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        page = self.parentWidget()
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize) and page is not None:
            # Show as many datasets as have room without scrolling.
            needed = self._layout.totalHeightForWidth(self.width())
            self._datasets.allow_rows_for(page.height() - needed)
        return done
