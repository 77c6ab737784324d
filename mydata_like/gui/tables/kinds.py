"""The kinds of problems on the left of their page; a person may hide some for good."""

from collections.abc import Sequence

from PySide6.QtCore import QItemSelectionModel, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QListView, QVBoxLayout, QWidget

from mydata_like.core.queries import ProblemGroup
from mydata_like.gui.memory import Memory
from mydata_like.gui.tables.groups import GroupsModel

HIDDEN = "problems/hidden"  # the names of hidden kinds in the memory


class KindsList(QWidget):
    """A list of kinds, of which one is chosen."""

    chosen = Signal()  # another kind, or it says something else now

    def __init__(self, memory: Memory, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._memory = memory
        self._all: Sequence[ProblemGroup] = ()
        self._hidden = set(_texts(memory.value(HIDDEN)))
        self._last = ""  # the name of the kind that was hidden last
        self._kept: tuple[str, str] | None = None  # the kind and code that were chosen
        self._wish = ""
        self.model = GroupsModel(self)
        self._list = QListView(self)
        self._show_hidden = QCheckBox(self)
        self._set_up()
        self._connect()

    @property
    def group(self) -> ProblemGroup | None:
        """The kind that is chosen."""
        row = self._list.currentIndex().row()
        return self.model.groups[row] if 0 <= row < len(self.model.groups) else None

    @property
    def empty(self) -> bool:
        """Whether there is nothing, not even something hidden."""
        return not self._all

    def show_groups(self, groups: Sequence[ProblemGroup]) -> None:
        """Show these kinds, but for those that are hidden."""
        self._all = groups
        self._apply()

    def look_for(self, kind: str) -> None:
        """Choose the first kind with this outcome, now or when there is one."""
        self._wish = kind
        self._choose()

    def is_hidden(self, group: ProblemGroup) -> bool:
        """Return whether a kind is shown only because the person wants to see hidden ones."""
        return _name(group) in self._hidden

    def hide_chosen(self) -> None:
        """Hide the kind that is chosen, or show it for good where it was hidden."""
        if self.group is not None:
            self._last = _name(self.group)
            self._remember(self._hidden ^ {self._last})

    @Slot()
    def unhide(self) -> None:
        """Take the last hiding back."""
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
        """Choose the kind that is wished for, else the one that was chosen, else the first."""
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
    """Return what is remembered as a list: of one text the memory makes a text again."""
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
