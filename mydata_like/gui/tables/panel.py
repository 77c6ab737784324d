"""A table with what belongs to it: a filter, the number of rows, and words where there are none."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.queries import View
from mydata_like.gui.drop.field import Field
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.tables import source
from mydata_like.gui.tables.columns import Column
from mydata_like.gui.tables.model import WindowedModel
from mydata_like.gui.tables.table import Table

TYPING_ENDS = 120  # milliseconds after the last key when the filter is applied


class TablePanel(QWidget):
    """A filtered table. Before `begin` and after `rest` it does nothing."""

    selected = Signal()  # other rows are selected, or they say something else now

    def __init__(
        self, desk: Desk, name: str, columns: Sequence[Column], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._desk = desk
        self._base = View()
        self._working = False
        self.nothing = self.tr("There is nothing here yet.")  # said of a table without any rows
        self.model = WindowedModel(columns, desk.tasks, self)
        self.table = Table(name, self.model, desk.memory, self)
        self.field = Field(self)
        self.states = QComboBox(self)
        self._states_label = QLabel(self.tr("S&how"), self)
        self._only = QToolButton(self)
        self._count = PlainLabel("", self)
        self._empty = PlainLabel("", self)
        self._all = QPushButton(self.tr("Show all"), self)
        self._top = QHBoxLayout()
        self._stack = QStackedWidget(self)
        self._find = QAction(self.tr("Filter"), self)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_ENDS)
        self._set_up()
        self._lay_out()
        self._connect()

    def offer_states(self, choices: Sequence[tuple[str, frozenset[str]]]) -> None:
        """Let the person choose among groups of states; the first one is shown."""
        for word, states in choices:
            self.states.addItem(word, states)
        self.states.setVisible(True)
        self._states_label.setVisible(True)

    def add_beside_count(self, *widgets: QWidget) -> None:
        """Show more beside the number of rows."""
        for widget in widgets:
            self._top.addWidget(widget)

    def begin(self) -> None:
        """Show the rows, and follow the ledger."""
        if not self._working:
            self._working = True
            self._apply()

    def rest(self) -> None:
        """Stop following; what is shown stays."""
        self._working = False

    def show_view(self, view: View, only: str = "") -> None:
        """Show what this view has, as far as the person's own filters let it through.

        `only` says what it is restricted to, where the person may lift that.
        """
        self._base = view
        self._only.setText(only.replace("&", "&&"))  # else Qt takes it for the mark of a key
        self._only.setVisible(bool(only))
        self._apply()

    def show_only(self, view: View) -> None:
        """Show what this view has, unless that is shown already."""
        if view != self._base:
            self.show_view(view)

    def choose_states(self, states: frozenset[str]) -> None:
        """Show the first group that has these states."""
        groups = [self.states.itemData(number) for number in range(self.states.count())]
        fitting = [number for number, group in enumerate(groups) if states <= group]
        self.states.setCurrentIndex(fitting[0] if states and fitting else 0)

    def _set_up(self) -> None:
        self.field.setPlaceholderText(self.tr("Filter by name"))
        self.field.setAccessibleName(self.tr("Filter by name"))
        self.field.setClearButtonEnabled(True)
        self.field.setMaximumWidth(self.fontMetrics().averageCharWidth() * 44)
        self.states.setVisible(False)
        self._states_label.setBuddy(self.states)
        self._states_label.setVisible(False)
        self._only.setIcon(icon("close"))
        self._only.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._only.setToolTip(self.tr("Show all"))
        self._only.setVisible(False)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setWordWrap(True)
        self._find.setShortcut(QKeySequence.StandardKey.Find)
        self._find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.addAction(self._find)

    def _lay_out(self) -> None:
        self._top.addWidget(self.field, 1)
        self._top.addWidget(self._states_label)
        self._top.addWidget(self.states)
        self._top.addWidget(self._only)
        self._top.addStretch(1)
        self._top.addWidget(self._count)
        words_only = QWidget(self._stack)
        middle = QVBoxLayout(words_only)
        middle.addStretch(1)
        middle.addWidget(self._empty)
        middle.addWidget(self._all, 0, Qt.AlignmentFlag.AlignHCenter)
        middle.addStretch(2)
        self._stack.addWidget(self.table)
        self._stack.addWidget(words_only)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(self._top)
        layout.addWidget(self._stack, 1)
        for before, after in pairwise((self.field, self.states, self._only, self.table, self._all)):
            QWidget.setTabOrder(before, after)

    def _connect(self) -> None:
        controller = self._desk.controller
        controller.ledger_changed.connect(self._follow)
        controller.settings_changed.connect(self._apply)
        self.field.textChanged.connect(self._typing.start)
        self._typing.timeout.connect(self._apply)
        self.states.currentIndexChanged.connect(self._apply)
        self.model.told.connect(self._tell)
        self.model.dataChanged.connect(self.selected)
        self.table.selectionModel().selectionChanged.connect(self.selected)
        self._find.triggered.connect(self._look_for_field)
        self._all.clicked.connect(self._show_all)
        self._only.clicked.connect(self._lift)

    @Slot()
    def _apply(self) -> None:
        """Show what the page and the person want to see."""
        if not self._working:
            return
        self._typing.stop()
        shown = self.model.view  # whose order is the person's, not the page's
        view = replace(
            self._base,
            text=self.field.text().strip(),
            states=self._base.states or self.states.currentData() or frozenset(),
        )
        view = view.ordered(shown.order, descending=shown.descending)
        self.model.show(source.opener(self._desk.controller), view)

    @Slot()
    def _follow(self) -> None:
        if self._working and self.isVisible():
            self.model.renew()

    @Slot()
    def _tell(self) -> None:
        rows = self.model.rowCount()
        said = self.tr("%Ln row(s)", "", rows) if self.model.complete else self.tr("counting…")
        self._count.setText(said if rows else "")
        self._count.setMinimumWidth(self._count.sizeHint().width())
        self._stack.setCurrentIndex(0 if rows else 1)
        self._empty.setText(self._say_why_empty())
        self._all.setVisible(self.model.problem is None and self._narrowed())
        self.selected.emit()

    def _narrowed(self) -> bool:
        """Whether the person can have more rows shown."""
        chosen = self.states.currentData() or frozenset()
        return bool(self.field.text().strip() or chosen or self._only.text())

    def _say_why_empty(self) -> str:
        problem, view = self.model.problem, self.model.view
        if problem is not None:
            return words.told(problem)
        if view.text:
            return self.tr("Nothing here has “%1” in its name.").replace(
                "%1", words.plain(view.text)
            )
        return self.tr("Nothing of this kind.") if self._narrowed() else self.nothing

    @Slot()
    def _look_for_field(self) -> None:
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    @Slot()
    def _show_all(self) -> None:
        self.field.clear()
        self.states.setCurrentIndex(0)
        self._lift()

    @Slot()
    def _lift(self) -> None:
        """Show what the page had been restricted from."""
        if self._only.text():
            self.show_view(View(table=self._base.table))
