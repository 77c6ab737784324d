"""The kinds of problems that the user or an administrator has to fix, on the Overview."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QPushButton, QSizePolicy, QWidget

from mydata_like.core.problems import INTENDED, Fixer, find_problem_info
from mydata_like.core.queries import ProblemGroup
from mydata_like.gui.base import AppContext
from mydata_like.gui.ledger_query import LedgerQuery
from mydata_like.gui.run_state import PastRunState, RunState
from mydata_like.gui.status_text import describe_problem
from mydata_like.gui.tables.problem_groups import (
    count_of_group,
    list_hidden,
    mark_of_group,
    name_of_group,
    severity,
)
from mydata_like.gui.tables.table_panel import group_problems
from mydata_like.gui.theme.layouts import label
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, icon

translate = QCoreApplication.translate

MAX_ROWS = 3
NEED_SOMEONE = (Fixer.USER, Fixer.ADMINISTRATOR)
UNSENT = "found"  # the kind of files that no run has sent yet


class OpenProblems(QFrame):
    """The most serious kinds of problems that someone has to fix; hidden if there are none.

    It reads the ledger while `parent` is visible.
    """

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._controller, self._memory = context.controller, context.memory
        self._seen: tuple[bool, PastRunState | None] = (False, None)
        self.query = LedgerQuery(context, parent, self._ask)
        self._more = label(self, quiet=True)
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(LARGE_SPACE)
        self._layout.setVerticalSpacing(SPACE)
        self._layout.setColumnStretch(1, 1)
        title = label(self, self.tr("Needs your attention"), bold=True)
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

    def _ask(self) -> Callable[[], list[ProblemGroup]]:
        return partial(group_problems, self._controller.settings, self._controller.config)

    @Slot(object)
    def _show_groups(self, groups: Sequence[ProblemGroup]) -> None:
        hidden, at_work = list_hidden(self._memory), self._controller.state.at_work
        shown = [
            group
            for group in sorted(groups, key=severity)
            if find_problem_info(group.problem.code).fixer in NEED_SOMEONE
            and group.problem.code not in INTENDED
            and name_of_group(group) not in hidden
            and not (at_work and group.kind == UNSENT)  # unsent files are in progress
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
