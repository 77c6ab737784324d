"""Owners, experiments, datasets and folders as a tree that loads its branches when opened."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from PySide6.QtCore import (
    QAbstractItemModel,
    QCoreApplication,
    QModelIndex,
    QObject,
    Qt,
    Signal,
)

from mydata_like.core.queries import FolderGroup
from mydata_like.gui.table_model import NO_PARENT, Column, Index, header_of
from mydata_like.gui.tables.columns import FRACTION, STATUS
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import RowIcon, icon, list_marks

translate = QCoreApplication.translate

EXPERIMENT = 2  # the depth of experiments
ICONS = ("person", "experiment")  # by depth
PROGRESS, FILES, SIZE = 2, 3, 4  # the numbers of columns


class Parents(NamedTuple):
    """A query for the children of a line, which also identifies that line.

    `names` are the owner, the group and the experiment's title, as far as known; `folder` is the
    path of a folder, whose subfolders are below it.
    """

    names: tuple[str | None, ...] = ()
    folder: bytes | None = None


TOP = Parents()


class Node:
    """One line of the tree; the root has no group. `children` is None until it is opened."""

    def __init__(self, number: int, parent: "Node | None", group: FolderGroup | None) -> None:
        self.number = number
        self.parent = parent
        self.group = group
        self.children: list[Node] | None = None
        self.depth: int = 0 if parent is None else parent.depth + 1

    @property
    def parents(self) -> Parents:
        """The query for the children of this line."""
        if self.group is None:
            return TOP
        names = (self.group.owner, self.group.group, self.group.title)
        return Parents(names[: self.depth + 1], self.group.path)

    @property
    def row(self) -> int:
        siblings = self.parent.children if self.parent else None
        return siblings.index(self) if siblings else 0


class FolderTree(QAbstractItemModel):
    """The model of the tree; `wanted` reports the branches that the user opens."""

    wanted = Signal(object)  # the `Parents` of a line whose children are needed

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._root = Node(0, None, None)
        self._nodes = {0: self._root}
        self._requested: set[Parents] = set()
        self._next = 1
        self._phase = RunPhase.AT_REST
        files, size = self.tr("Files"), self.tr("Size")
        self._columns = (
            Column("folder", self.tr("Folder"), self._name),
            Column("state", self.tr("State"), lambda it: self._mark(it).word, mark=self._mark),
            Column("verified", self.tr("Verified"), self._progress),
            Column("files", files, lambda it: texts.count(it.found), number=True),
            Column("size", size, lambda it: texts.size(it.found_bytes), number=True),
            Column("not-verified", self.tr("Not verified"), self._unverified),
        )

    def opened(self) -> list[Parents]:
        """Return the queries that refresh all displayed lines."""
        nodes = self._nodes.values()
        return [node.parents for node in nodes if node.children is not None]

    def show(self, parents: Parents, groups: Iterable[FolderGroup]) -> QModelIndex:
        """Show the children of a line, which is returned; existing children keep their places."""
        node = next((it for it in self._nodes.values() if it.parents == parents), None)
        self._requested.discard(parents)
        if node is None:
            return QModelIndex()
        groups_by_key = {_key(group): group for group in groups}
        self._drop_gone(node, groups_by_key)
        if not node.children:
            self._fill(node, list(groups_by_key.values()))
            return self._index(node)
        for row, (key, group) in enumerate(groups_by_key.items()):
            existing = node.children[row].group if row < len(node.children) else None
            if existing is not None and _key(existing) == key:
                node.children[row].group = group
            else:
                self.beginInsertRows(self._index(node), row, row)
                node.children.insert(row, self._make(node, group))
                self.endInsertRows()
        top, last = node.children[0], node.children[-1]
        corner = self.createIndex(len(node.children) - 1, len(self._columns) - 1, last.number)
        self.dataChanged.emit(self.createIndex(0, 0, top.number), corner)
        return self._index(node)

    def set_phase(self, phase: "RunPhase") -> None:
        """Show unfinished files as in progress, interrupted or not sent."""
        if phase is not self._phase:
            self._phase = phase
            self.layoutChanged.emit()  # every line may look different

    def clear(self) -> None:
        """Remove all lines."""
        self.show(TOP, ())
        self._requested.clear()

    def group(self, index: Index) -> FolderGroup | None:
        """Return the group of a line."""
        return self._nodes[index.internalId()].group if index.isValid() else None

    def index(self, row: int, column: int, parent: Index = NO_PARENT) -> QModelIndex:
        children = self._node(parent).children or ()
        if not (0 <= row < len(children) and 0 <= column < len(self._columns)):
            return QModelIndex()
        if parent.isValid() and parent.column() != 0:
            return QModelIndex()
        return self.createIndex(row, column, children[row].number)

    def parent(self, index: Index = NO_PARENT) -> Any:
        node = self._node(index).parent if index.isValid() else None
        return self._index(node) if node is not None else QModelIndex()

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        if parent.isValid() and parent.column() != 0:
            return 0
        return len(self._node(parent).children or ())

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return len(self._columns)

    def hasChildren(self, parent: Index = NO_PARENT) -> bool:
        node = self._node(parent)
        if node.children is not None or _is_rest(node):
            return bool(node.children)
        return not parent.isValid() or parent.column() == 0

    def canFetchMore(self, parent: Index) -> bool:
        node = self._node(parent)
        unknown = node.children is None and not _is_rest(node)
        return unknown and node.parents not in self._requested

    def fetchMore(self, parent: Index) -> None:
        parents = self._node(parent).parents
        self._requested.add(parents)
        self.wanted.emit(parents)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        return header_of(self._columns, section, orientation, role)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        group, column = self.group(index), index.column()
        if group is None:
            return None
        if role == Qt.ItemDataRole.DecorationRole and column == 0:
            depth = self._node(index).depth
            if group.path is not None:  # also without experiments above
                return icon("dataset" if group.dataset and depth > 1 else "folder")
            return icon(ICONS[depth - 1])
        unnamed = group.dataset is None and group.path is None and group.title is None
        unnamed = unnamed and self._node(index).depth == EXPERIMENT
        if role == Qt.ItemDataRole.DisplayRole and column == 0 and unnamed:
            return self.tr("Experiment named after the instrument")
        if role == FRACTION and column == PROGRESS:
            return group.verified_share if group.wanted > 0 else None
        if role == STATUS and column == PROGRESS:
            return self._mark(group).status
        return self._columns[column].data(group, role)

    def _mark(self, group: FolderGroup) -> RowIcon:
        return mark_of_folder(group, self._phase)

    def _fill(self, node: Node, groups: list[FolderGroup]) -> None:
        """Add children to a line that has none."""
        node.children = []
        if groups:
            self.beginInsertRows(self._index(node), 0, len(groups) - 1)
            node.children = [self._make(node, group) for group in groups]
            self.endInsertRows()
        else:  # a view removes the expand arrow only after a complete new layout
            self.layoutAboutToBeChanged.emit()
            self.layoutChanged.emit()

    def _make(self, parent: Node, group: FolderGroup) -> Node:
        node = Node(self._next, parent, group)
        self._nodes[node.number] = node
        self._next += 1
        return node

    def _drop_gone(self, node: Node, groups_by_key: dict[object, FolderGroup]) -> None:
        children = node.children or []
        for row in reversed(range(len(children))):
            group = children[row].group
            if group is not None and _key(group) not in groups_by_key:
                self.beginRemoveRows(self._index(node), row, row)
                for removed in _descend(children.pop(row)):
                    del self._nodes[removed.number]
                self.endRemoveRows()

    def _node(self, index: Index) -> Node:
        return self._nodes[index.internalId()] if index.isValid() else self._root

    def _index(self, node: Node) -> QModelIndex:
        if node.parent is None:
            return QModelIndex()
        return self.createIndex(node.row, 0, node.number)

    def _name(self, group: FolderGroup) -> str:
        if group.rest:
            return self.tr("All further entries")
        if group.dataset is not None:
            return texts.plain(group.dataset)
        if group.path is not None:
            return texts.plain(group.path.rpartition(b"/")[2])
        if group.title is not None:
            return texts.plain(group.title)
        return texts.plain(group.group or group.owner) or self.tr("Your account")

    def _progress(self, group: FolderGroup) -> str:
        if group.wanted <= 0:
            return ""
        text = self.tr("%1 of %2", "number of files of a total")
        return texts.filled(text, texts.count(group.verified), texts.count(group.wanted))

    def _unverified(self, group: FolderGroup) -> str:
        parts = (
            (group.failed, self.tr("%Ln failed", "", group.failed)),
            (group.waiting, self.tr("%Ln waiting", "", group.waiting)),
            (group.skipped, self.tr("%Ln left out", "", group.skipped)),
        )
        return ", ".join(text for count, text in parts if count)


class RunPhase(Enum):
    """Whether a run may still change the counts of folders."""

    AT_REST = "the last run has ended"
    ACTIVE = "a run is in progress"
    INTERRUPTED = "the last run was interrupted"


def mark_of_folder(group: FolderGroup, phase: RunPhase = RunPhase.AT_REST) -> RowIcon:
    """Return the state of a folder: that of its worst file."""
    wanted, marks = group.wanted, list_marks()
    if group.failed:
        return marks["failed"]
    unknown = not group.found and phase is not RunPhase.AT_REST
    if wanted > group.verified + group.waiting or unknown:
        if phase is RunPhase.ACTIVE:
            return RowIcon(translate("tree", "Unfinished"), "working", "working")
        if group.verified:
            return RowIcon(translate("tree", "Unfinished"), "waiting", "waiting")
        return RowIcon(translate("tree", "Not sent yet"), "waiting", "waiting")
    if wanted > group.verified:
        return marks["waiting"]
    if group.left_behind:
        return RowIcon(translate("tree", "Files left out"), "warning", "waiting")
    if wanted > 0 or group.skipped:
        return marks["verified" if wanted > 0 else "skipped"]
    return RowIcon(translate("tree", "No files"), "skipped", "skipped")


def _is_rest(node: Node) -> bool:
    return node.group is not None and node.group.rest


def _key(group: FolderGroup) -> object:
    return (group.owner, group.group, group.title, group.dataset, group.path)


def _descend(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children or ():
        yield from _descend(child)
