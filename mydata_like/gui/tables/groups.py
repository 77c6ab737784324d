"""The kinds of problems as a list: the worst first, and last what is meant to be so."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from mydata_like.core.problems import INTENDED
from mydata_like.core.queries import ProblemGroup
from mydata_like.gui.look import words
from mydata_like.gui.tables.marks import Mark, mark_of

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
WORST_FIRST = ("failed", "folder-failed", "found", "waiting", "skipped", "folder-skipped")

_WAITS = {"found": "waiting"}


class GroupsModel(QAbstractListModel):
    """Groups of problems; one that stays keeps its row's selection."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.groups: list[ProblemGroup] = []

    def show(self, groups: Sequence[ProblemGroup]) -> None:
        """Show these groups in our order."""
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
        """Return where the first group of a kind (and code) is; folders count as files.

        What was found and not sent waits.
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
            return f"{words.count(group.files)}   {words.plain(group.problem.message)}"
        if role == Qt.ItemDataRole.DecorationRole:
            return mark_of_group(group).icon
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{mark_of_group(group).word}, {self.about(group)}: {group.problem.message}"
        return None

    def about(self, group: ProblemGroup) -> str:
        """Return how many files or folders it concerns, in words."""
        if group.kind.startswith("folder-"):
            return self.tr("%Ln folder(s)", "", group.files)
        count = self.tr("%Ln file(s)", "", group.files)
        return f"{count}, {words.size(group.size)}" if group.size else count


def mark_of_group(group: ProblemGroup) -> Mark:
    """Return how a group's state is told."""
    return mark_of(group.kind) or Mark(words.plain(group.kind), "error", "problem")


def _badness(group: ProblemGroup) -> tuple[bool, int, int, str]:
    known = group.kind in WORST_FIRST
    rank = WORST_FIRST.index(group.kind) if known else len(WORST_FIRST)
    return group.problem.code in INTENDED, rank, -group.files, group.problem.code


def _key(group: ProblemGroup) -> tuple[str, str]:
    return group.kind, group.problem.code
