"""The list of problem kinds, most serious first, and the card of one kind."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QListView,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.errors import Problem
from mydata_like.core.problems import INTENDED, Action, Fixer, find_problem_info
from mydata_like.core.queries import ProblemGroup
from mydata_like.gui.settings_editor.setting_labels import with_labels
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import IconLabel, PlainLabel, RowIcon, icon, mark_of
from mydata_like.gui.window_state import WindowState

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
WORST_FIRST = ("failed", "folder-failed", "found", "waiting", "skipped", "folder-skipped")

_WAITS = {"found": "waiting"}


class ProblemGroupsModel(QAbstractListModel):
    """A model of problem groups; a group that remains keeps its selection."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.groups: list[ProblemGroup] = []

    def show(self, groups: Sequence[ProblemGroup]) -> None:
        """Show these groups, sorted by severity."""
        coming = sorted(groups, key=_badness)
        if [_key(group) for group in coming] == [_key(group) for group in self.groups]:
            self.groups = coming
            if coming:
                self.dataChanged.emit(self.index(0), self.index(len(coming) - 1))
            return
        self.beginResetModel()
        self.groups = coming
        self.endResetModel()

    def find(self, kind: str, code: str = "") -> QModelIndex:
        """Return the row of the first group of a kind (and code); folders count as files.

        Files that were found and not sent count as waiting.
        """
        for number, group in enumerate(self.groups):
            kinds = (group.kind, group.kind.removeprefix("folder-"), _WAITS.get(group.kind))
            if kind in kinds and (not code or group.problem.code == code):
                return self.index(number)
        return QModelIndex()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.groups)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        group = self.groups[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{texts.count(group.files)}   {texts.plain(group.problem.message)}"
        if role == Qt.ItemDataRole.DecorationRole:
            return mark_of_group(group).icon
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{mark_of_group(group).word}, {self.about(group)}: {group.problem.message}"
        return None

    def about(self, group: ProblemGroup) -> str:
        """Return the number of affected files or folders as text."""
        if group.kind.startswith("folder-"):
            return self.tr("%Ln folder(s)", "", group.files)
        count = self.tr("%Ln file(s)", "", group.files)
        return f"{count}, {texts.size(group.size)}" if group.size else count


def mark_of_group(group: ProblemGroup) -> RowIcon:
    """Return the mark of a group's state."""
    return mark_of(group.kind) or RowIcon(texts.plain(group.kind), "error", "problem")


def _badness(group: ProblemGroup) -> tuple[bool, int, int, str]:
    known = group.kind in WORST_FIRST
    rank = WORST_FIRST.index(group.kind) if known else len(WORST_FIRST)
    return group.problem.code in INTENDED, rank, -group.files, group.problem.code


def _key(group: ProblemGroup) -> tuple[str, str]:
    return group.kind, group.problem.code


HIDDEN = "problems/hidden"  # the names of hidden kinds in the memory


class ProblemFilter(QWidget):
    """A list of kinds with a single selection."""

    chosen = Signal()  # another kind, or the same kind with other content

    def __init__(self, memory: WindowState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._memory = memory
        self._all: Sequence[ProblemGroup] = ()
        self._hidden = set(_texts(memory.value(HIDDEN)))
        self._last = ""  # the name of the kind that was hidden last
        self._kept: tuple[str, str] | None = None  # the kind and code that were chosen
        self._wish = ""
        self.model = ProblemGroupsModel(self)
        self._list = QListView(self)
        self._show_hidden = QCheckBox(self)
        self._set_up()
        self._connect()

    @property
    def group(self) -> ProblemGroup | None:
        """The selected kind."""
        row = self._list.currentIndex().row()
        return self.model.groups[row] if 0 <= row < len(self.model.groups) else None

    @property
    def empty(self) -> bool:
        """Whether there are no kinds, shown or hidden."""
        return not self._all

    def show_groups(self, groups: Sequence[ProblemGroup]) -> None:
        """Show these kinds, except hidden ones."""
        self._all = groups
        self._apply()

    def look_for(self, kind: str) -> None:
        """Select the first kind with this outcome, now or once there is one."""
        self._wish = kind
        self._choose()

    def is_hidden(self, group: ProblemGroup) -> bool:
        """Return whether a kind is shown only because the user shows hidden kinds."""
        return _name(group) in self._hidden

    def hide_chosen(self) -> None:
        """Hide the selected kind, or unhide it if it was hidden."""
        if self.group is not None:
            self._last = _name(self.group)
            self._remember(self._hidden ^ {self._last})

    @Slot()
    def unhide(self) -> None:
        """Undo the last hiding."""
        self._remember(self._hidden - {self._last})

    def _set_up(self) -> None:
        self._list.setModel(self.model)
        self._list.setAccessibleName(self.tr("Kinds of problems"))
        self._list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._list.setWordWrap(True)
        self._list.setResizeMode(QListView.ResizeMode.Adjust)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setSpacing(3)
        self._list.setMinimumWidth(self.fontMetrics().averageCharWidth() * 14)
        self._show_hidden.setVisible(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._list, 1)
        layout.addWidget(self._show_hidden)

    def _connect(self) -> None:
        self._list.selectionModel().currentChanged.connect(self._keep)
        self.model.dataChanged.connect(self.chosen)
        self.model.modelReset.connect(self._choose)
        self._show_hidden.toggled.connect(self._apply)

    @Slot()
    def _apply(self) -> None:
        hidden = [group for group in self._all if self.is_hidden(group)]
        everything = self._show_hidden.isChecked()
        self._show_hidden.setText(self.tr("Show %Ln hidden kind(s)", "", len(hidden)))
        self._show_hidden.setVisible(bool(hidden))
        self.model.show([group for group in self._all if everything or group not in hidden])

    @Slot()
    def _choose(self) -> None:
        """Select the requested kind, else the previous one, else the first."""
        wished = self.model.find(self._wish) if self._wish else self.model.index(-1)
        kept = self.model.find(*self._kept) if self._kept else self.model.index(-1)
        places = [place for place in (wished, kept, self.model.index(0)) if place.isValid()]
        if wished.isValid():
            self._wish = ""
        if places:
            flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
            self._list.selectionModel().setCurrentIndex(places[0], flag)
        self.chosen.emit()

    @Slot()
    def _keep(self) -> None:
        if self.group is not None:
            self._kept = self.group.kind, self.group.problem.code
        self.chosen.emit()

    def _remember(self, names: set[str]) -> None:
        self._hidden = names
        self._memory.setValue(HIDDEN, sorted(names))
        self._apply()


def _name(group: ProblemGroup) -> str:
    return f"{group.kind}:{group.problem.code}"


def _texts(value: object) -> list[str]:
    """Return a stored value as a list: the store returns a list of one text as a text."""
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


ICON_SCALE = 1.4  # times the icons of buttons


class ProblemCard(QFrame):
    """A card with one problem; `acted` reports the action of its button."""

    acted = Signal(object)  # the ProblemInfo

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._problem: Problem | None = None
        self._about = ""
        self._retry_allowed = True
        self._shape = IconLabel(ICON_SCALE, self)
        self._what = PlainLabel("", self)
        self._hint = PlainLabel("", self)
        self._who = PlainLabel("", self)
        self._button = QPushButton(self)
        self._copy = QPushButton(icon("copy"), self.tr("Copy as text"), self)
        self._buttons = QHBoxLayout()
        self._lay_out()
        self._connect()

    @property
    def problem(self) -> Problem | None:
        """The displayed problem."""
        return self._problem

    def show_problem(self, problem: Problem, mark: RowIcon, about: str = "") -> None:
        """Show a problem; `about` describes what it affects."""
        self._problem, self._about = problem, about
        info = find_problem_info(problem.code)
        self._shape.show_icon(mark.icon)
        self._shape.setAccessibleName(mark.word)
        self._what.setText(with_labels(texts.plain(problem.message)))
        self._hint.setText(with_labels(texts.plain(problem.hint)))
        self._hint.setVisible(bool(problem.hint))
        self._who.setText(" · ".join(filter(None, (about, self._say_who(info.fixer)))))
        self._button.setVisible(info.action is not Action.NOTHING)
        self._button.setText(self._say_act(info.action))
        self._enable()

    def allow_retry(self, *, allowed: bool) -> None:
        """Enable or disable the retry, which may be impossible now."""
        self._retry_allowed = allowed
        self._enable()

    def as_text(self) -> str:
        """Return the whole problem as text for a report to someone who can fix it."""
        if self._problem is None:
            return ""
        code = f"({self._problem.code})"
        lines = (self._about, f"{self._what.text()} {code}", self._hint.text(), self._who.text())
        return "\n".join(filter(None, lines))

    def _enable(self) -> None:
        runs = (Action.TRY_AGAIN, Action.START_RUN)
        again = self._problem is not None and find_problem_info(self._problem.code).action in runs
        self._button.setEnabled(self._retry_allowed or not again)

    def _lay_out(self) -> None:
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(self.palette().ColorRole.Base)
        self._what.scale(1.1, bold=True)
        for label in (self._what, self._hint, self._who):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._who.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self._buttons.addWidget(self._button)
        self._buttons.addWidget(self._copy)
        self._buttons.addStretch(1)
        layout = QGridLayout(self)
        layout.addWidget(self._shape, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._what, 0, 1)
        layout.addWidget(self._hint, 1, 1)
        layout.addWidget(self._who, 2, 1)
        layout.addLayout(self._buttons, 3, 1)
        layout.setColumnStretch(1, 1)
        layout.setHorizontalSpacing(self.fontMetrics().height())

    def _connect(self) -> None:
        self._button.clicked.connect(self._act)
        self._copy.clicked.connect(self._copy_text)

    def _say_who(self, fixer: Fixer) -> str:
        match fixer:
            case Fixer.USER:
                return self.tr("You can fix this.")
            case Fixer.ADMINISTRATOR:
                return self.tr("Your administrator can fix this.")
            case Fixer.SERVER:
                return self.tr("The server has to recover. The program retries automatically.")
            case Fixer.NOBODY:
                return self.tr("Nothing needs to be fixed.")

    def _say_act(self, action: Action) -> str:
        said = {
            Action.TRY_AGAIN: self.tr("Try again"),
            Action.START_RUN: self.tr("Start"),
            Action.OPEN_FOLDER: self.tr("Open folder"),
            Action.OPEN_SETTINGS: self.tr("Open settings…"),
            Action.SET_UP: self.tr("Check key and approval…"),
        }
        return said.get(action, "")

    @Slot()
    def _act(self) -> None:
        if self._problem is not None:
            self.acted.emit(find_problem_info(self._problem.code))

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.as_text())
