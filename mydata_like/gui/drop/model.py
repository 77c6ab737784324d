"""The dropped folders as a tree: what they hold, and what they would become."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.gui.look import palette, words
from mydata_like.gui.look.icons import icon

if TYPE_CHECKING:
    from mydata_like.app.source_service import SourcePart, SourcePreview

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
DOTS = "…"
Role = Qt.ItemDataRole


class Column(IntEnum):
    """The columns, in their order."""

    NAME = 0
    OWNER = 1
    EXPERIMENT = 2
    DATASET = 3
    FILES = 4
    SIZE = 5


NUMBERS = (Column.FILES, Column.SIZE)
NAMES = (Column.OWNER, Column.EXPERIMENT, Column.DATASET)


class Row:
    """One dropped folder or file: what is known of it, and what a person decided."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.preview: SourcePreview | None = None
        self.parts: list[SourcePart] = []
        self.edited: dict[Column, str] = {}
        self.chosen = True

    @property
    def name(self) -> bytes:
        """What it is called, without where it is."""
        return os.path.basename(self.path) or self.path  # noqa: PTH119 - of bytes

    @property
    def possible(self) -> bool:
        """Whether it can be carried, as far as is known."""
        return self.preview is not None and self.preview.refusal is None

    @property
    def wanted(self) -> bool:
        """Whether it is to be carried."""
        return self.possible and self.chosen

    @property
    def destination(self) -> Destination:
        """What it is to become."""
        known = self.preview.destination if self.preview else Destination("", "", "")
        names = zip(NAMES, known, strict=True)
        return Destination(*(self.edited.get(column, name) for column, name in names))

    @property
    def source(self) -> ExtraSource:
        """It, as the engine is told."""
        assert self.preview is not None
        return ExtraSource(self.preview.path, self.destination, self.preview.alone)


class SourcesModel(QAbstractItemModel):
    """Dropped folders and files, and below each folder those that are right in it."""

    decided = Signal()  # a person changed a name, or what is to be carried

    def __init__(self, paths: Sequence[bytes], account: str, parent: QObject | None = None) -> None:
        """`account` is who owns what names no owner."""
        super().__init__(parent)
        self.rows = [Row(path) for path in paths]
        self._account = account
        self._titles = {
            Column.NAME: self.tr("Folder or file"),
            Column.OWNER: self.tr("Owner"),
            Column.EXPERIMENT: self.tr("Experiment"),
            Column.DATASET: self.tr("Dataset"),
            Column.FILES: self.tr("Files"),
            Column.SIZE: self.tr("Size"),
        }

    def show(self, previews: Sequence[SourcePreview | None]) -> None:
        """Show what is known by now."""
        for number, preview in enumerate(previews):
            if preview is not None and preview is not self.rows[number].preview:
                self._show_one(number, preview)

    def rowCount(self, parent: Index = NOWHERE) -> int:
        if not parent.isValid():
            return len(self.rows)
        if parent.internalId() or parent.column() != Column.NAME:
            return 0
        return len(self.rows[parent.row()].parts)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return len(Column)

    def index(self, row: int, column: int, parent: Index = NOWHERE) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        # The number of a part's folder, from 1 on; dropped folders themselves have none.
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, index: Index) -> QModelIndex:  # type: ignore[override]
        if not index.isValid() or not index.internalId():
            return QModelIndex()
        return self.createIndex(index.internalId() - 1, Column.NAME, 0)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Role.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = Column(section)
        if role == Role.TextAlignmentRole and column in NUMBERS:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return self._titles[column] if role == Role.DisplayRole else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        if not index.isValid() or index.internalId():
            return flags
        if not self.rows[index.row()].possible:
            return flags
        if index.column() == Column.NAME:
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        if index.column() in NAMES:
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def data(self, index: Index, role: int = Role.DisplayRole) -> Any:
        if not index.isValid():
            return None
        column = Column(index.column())
        if role == Role.TextAlignmentRole and column in NUMBERS:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if index.internalId():
            part = self.rows[index.internalId() - 1].parts[index.row()]
            return self._show_part(part, column, role)
        return self._show_row(self.rows[index.row()], column, role)

    def setData(self, index: Index, value: Any, role: int = Role.EditRole) -> bool:
        row, column = self.rows[index.row()], Column(index.column())
        if role == Role.CheckStateRole:
            row.chosen = Qt.CheckState(value) is Qt.CheckState.Checked
        elif role == Role.EditRole and column in NAMES:
            row.edited[column] = str(value).strip()
        else:
            return False
        self.dataChanged.emit(index, index)
        self.decided.emit()
        return True

    def _show_row(self, row: Row, column: Column, role: int) -> Any:
        value: Any = None
        match role:
            case Role.DisplayRole:
                value = self._tell(row, column)
            case Role.EditRole if column in NAMES:
                value = row.destination[column - Column.OWNER]
            case Role.ForegroundRole if self._is_quiet(row, column):
                value = palette.quiet()
            case _:
                value = _show_name(row, role) if column is Column.NAME else None
        return value

    def _is_quiet(self, row: Row, column: Column) -> bool:
        return not row.wanted or (column is Column.OWNER and not row.destination.owner)

    def _tell(self, row: Row, column: Column) -> str:
        if column is Column.NAME:
            return words.plain(row.name)
        if row.preview is None:
            return DOTS
        if row.preview.refusal is not None:
            return ""
        if column in NAMES:
            name = row.destination[column - Column.OWNER]
            return words.plain(name or (self._account if column is Column.OWNER else ""))
        found = row.preview.found, row.preview.found_bytes
        return _tell_number(column, *found)

    def _show_part(self, part: SourcePart, column: Column, role: int) -> Any:
        if role == Role.DecorationRole and column is Column.NAME:
            return icon("folder" if part.name else "file")
        if role != Role.DisplayRole or column in NAMES:
            return None
        if column is Column.NAME:
            return words.plain(part.name) if part.name else self.tr("other files")
        return _tell_number(column, part.files, part.bytes)

    def _show_one(self, number: int, preview: SourcePreview) -> None:
        row = self.rows[number]
        row.preview = preview
        self.dataChanged.emit(self.index(number, Column.NAME), self.index(number, len(Column) - 1))
        # A folder that holds nothing but files has no folders to show.
        parts = list(preview.parts) if any(part.name for part in preview.parts) else []
        if preview.complete:
            self._set_parts(number, [])
            parts.sort(key=lambda part: (not part.name, part.name))
        self._set_parts(number, parts)

    def _set_parts(self, number: int, parts: list[SourcePart]) -> None:
        """Show these parts; while a folder is looked at new ones only come at the end."""
        parent, row = self.index(number, Column.NAME), self.rows[number]
        before, after = len(row.parts), len(parts)
        if after < before:
            self.beginRemoveRows(parent, after, before - 1)
            row.parts = parts
            self.endRemoveRows()
        elif after > before:
            self.beginInsertRows(parent, before, after - 1)
            row.parts = parts
            self.endInsertRows()
        row.parts = parts
        if kept := min(before, after):
            last = self.index(kept - 1, len(Column) - 1, parent)
            self.dataChanged.emit(self.index(0, Column.NAME, parent), last)


def _show_name(row: Row, role: int) -> Any:
    """Return what surrounds the name of a dropped folder or file."""
    value: Any = None
    match role:
        case Role.ToolTipRole:
            value = words.tip(words.plain(row.path))
        case Role.CheckStateRole if row.possible:
            value = Qt.CheckState.Checked if row.chosen else Qt.CheckState.Unchecked
        case Role.DecorationRole:
            value = icon("file" if row.preview and row.preview.alone else "folder")
        case _:
            pass
    return value


def _tell_number(column: Column, files: int, size: int) -> str:
    return words.count(files) if column is Column.FILES else words.size(size)
