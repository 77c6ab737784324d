"""The tree of dropped folders with files, destinations and warnings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QCoreApplication,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from mydata_like.core.destination_files import OWN_FOLDER
from mydata_like.core.errors import SourceError
from mydata_like.core.extra_sources import Destination, ExtraSource, check_destination
from mydata_like.gui.theme import colours, texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import NOTE_ICONS, Note, icon

if TYPE_CHECKING:
    from mydata_like.app.source_service import Conflict, SourcePart, SourcePreview


Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
DOTS = "…"
Role = Qt.ItemDataRole


class SourceColumn(IntEnum):
    """The columns, in their order."""

    NAME = 0
    OWNER = 1
    EXPERIMENT = 2
    DATASET = 3
    FILES = 4
    SIZE = 5


NUMBERS = (SourceColumn.FILES, SourceColumn.SIZE)
NAMES = (SourceColumn.OWNER, SourceColumn.EXPERIMENT, SourceColumn.DATASET)


class SourceRow:
    """One dropped folder or file: its contents, and what the user chose."""

    def __init__(self, path: bytes, *, takes_tree: bool = False) -> None:
        """`takes_tree` says that the destination has only a folder of the dataset's name."""
        self.path = path
        self.takes_tree = takes_tree
        self.preview: SourcePreview | None = None
        self.parts: list[SourcePart] = []
        self.edited: dict[SourceColumn, str] = {}
        self.chosen = True

    @property
    def name(self) -> bytes:
        """The name without its folder."""
        return os.path.basename(self.path) or self.path  # noqa: PTH119 - of bytes

    @property
    def possible(self) -> bool:
        """Whether it can be uploaded, as far as is known."""
        return self.preview is not None and self.preview.refusal is None

    @property
    def wanted(self) -> bool:
        """Whether it is selected for upload."""
        return self.possible and self.chosen

    @property
    def destination(self) -> Destination:
        """The destination."""
        known = self.preview.destination if self.preview else Destination("", "", "")
        names = zip(NAMES, known, strict=True)
        chosen = Destination(*(self.edited.get(column, name) for column, name in names))
        # Two sources with the same folder there have the same destination.
        return Destination("", chosen.dataset, chosen.dataset) if self.takes_tree else chosen

    @property
    def source(self) -> ExtraSource:
        """The source as the engine expects it."""
        assert self.preview is not None
        return ExtraSource(self.preview.path, self.destination, self.preview.alone)


class SourcesModel(QAbstractItemModel):
    """Dropped folders and files, and below each folder its direct contents."""

    decided = Signal()  # the user changed a name or a selection

    def __init__(
        self,
        paths: Sequence[bytes],
        account: str,
        parent: QObject | None = None,
        *,
        takes_tree: bool = False,
    ) -> None:
        """`account` owns the sources without an owner."""
        super().__init__(parent)
        self.rows = [SourceRow(path, takes_tree=takes_tree) for path in paths]
        self._account = account
        self._titles = {
            SourceColumn.NAME: self.tr("Folder or file"),
            SourceColumn.OWNER: self.tr("Owner"),
            SourceColumn.EXPERIMENT: self.tr("Experiment"),
            SourceColumn.DATASET: self.tr("Folder there") if takes_tree else self.tr("Dataset"),
            SourceColumn.FILES: self.tr("Files"),
            SourceColumn.SIZE: self.tr("Size"),
        }

    def show(self, previews: Sequence[SourcePreview | None]) -> None:
        """Show the current results."""
        for number, preview in enumerate(previews):
            if preview is not None and preview is not self.rows[number].preview:
                self._show_one(number, preview)

    def rowCount(self, parent: Index = NOWHERE) -> int:
        if not parent.isValid():
            return len(self.rows)
        if parent.internalId() or parent.column() != SourceColumn.NAME:
            return 0
        return len(self.rows[parent.row()].parts)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return len(SourceColumn)

    def index(self, row: int, column: int, parent: Index = NOWHERE) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        # The number of a part's folder, starting at 1; dropped folders themselves have none.
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, index: Index) -> QModelIndex:  # type: ignore[override]
        if not index.isValid() or not index.internalId():
            return QModelIndex()
        return self.createIndex(index.internalId() - 1, SourceColumn.NAME, 0)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Role.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = SourceColumn(section)
        if role == Role.TextAlignmentRole and column in NUMBERS:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return self._titles[column] if role == Role.DisplayRole else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        if not index.isValid() or index.internalId() or not self.rows[index.row()].possible:
            return flags
        if index.column() == SourceColumn.NAME:
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        if index.column() in NAMES:
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def data(self, index: Index, role: int = Role.DisplayRole) -> Any:
        if not index.isValid():
            return None
        column = SourceColumn(index.column())
        if role == Role.TextAlignmentRole and column in NUMBERS:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if index.internalId():
            part = self.rows[index.internalId() - 1].parts[index.row()]
            return self._show_part(part, column, role)
        return self._show_row(self.rows[index.row()], column, role)

    def setData(self, index: Index, value: Any, role: int = Role.EditRole) -> bool:
        row, column = self.rows[index.row()], SourceColumn(index.column())
        if role == Role.CheckStateRole:
            row.chosen = Qt.CheckState(value) is Qt.CheckState.Checked
        elif role == Role.EditRole and column in NAMES:
            row.edited[column] = str(value).strip()
        else:
            return False
        self.dataChanged.emit(index, index)
        self.decided.emit()
        return True

    def _show_row(self, row: SourceRow, column: SourceColumn, role: int) -> Any:
        preview, is_name = row.preview, column is SourceColumn.NAME
        unowned = column is SourceColumn.OWNER and not row.destination.owner
        match role:
            case Role.ForegroundRole if not row.wanted or unowned:
                return colours.quiet()
            case Role.EditRole if column in NAMES:
                return row.destination[column - SourceColumn.OWNER]
            case Role.ToolTipRole if is_name:
                return texts.tip(texts.plain(row.path))
            case Role.CheckStateRole if is_name and row.possible:
                return Qt.CheckState.Checked if row.chosen else Qt.CheckState.Unchecked
            case Role.DecorationRole if is_name:
                return icon("file" if preview and preview.alone else "folder")
            case Role.DisplayRole:
                return self._describe(row, column)
            case _:
                return None

    def _describe(self, row: SourceRow, column: SourceColumn) -> str:
        if column is SourceColumn.NAME:
            return texts.plain(row.name)
        if row.preview is None:
            return DOTS
        if row.preview.refusal is not None:
            return ""
        if column in NAMES:
            name = row.destination[column - SourceColumn.OWNER]
            return texts.plain(name or (self._account if column is SourceColumn.OWNER else ""))
        return _describe_number(column, row.preview.found, row.preview.found_bytes)

    def _show_part(self, part: SourcePart, column: SourceColumn, role: int) -> Any:
        if role == Role.DecorationRole and column is SourceColumn.NAME:
            return icon("folder" if part.name else "file")
        if role != Role.DisplayRole or column in NAMES:
            return None
        if column is SourceColumn.NAME:
            return texts.plain(part.name) if part.name else self.tr("other files")
        return _describe_number(column, part.files, part.bytes)

    def _show_one(self, number: int, preview: SourcePreview) -> None:
        row = self.rows[number]
        row.preview = preview
        self.dataChanged.emit(
            self.index(number, SourceColumn.NAME), self.index(number, len(SourceColumn) - 1)
        )
        # A folder of files only has no folders to show.
        parts = list(preview.parts) if any(part.name for part in preview.parts) else []
        if preview.complete:
            self._set_parts(number, [])
            parts.sort(key=lambda part: (not part.name, part.name))
        self._set_parts(number, parts)

    def _set_parts(self, number: int, parts: list[SourcePart]) -> None:
        """Show these parts; during the scan of a folder, new ones are only appended."""
        parent, row = self.index(number, SourceColumn.NAME), self.rows[number]
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
            last = self.index(kept - 1, len(SourceColumn) - 1, parent)
            self.dataChanged.emit(self.index(0, SourceColumn.NAME, parent), last)


def _describe_number(column: SourceColumn, files: int, size: int) -> str:
    return texts.count(files) if column is SourceColumn.FILES else texts.size(size)


translate = QCoreApplication.translate


def list_notes(rows: Sequence[SourceRow], conflicts: Sequence[Conflict]) -> list[Note]:
    """Return all notes, the worst first; with several rows each note names its row."""
    notes = []
    for row in rows:
        mine = [*_describe_contents(row)]
        if row.wanted and row.preview is not None:
            here = [one for one in conflicts if one.path == row.preview.path]
            mine = [*_judge_names(row), *map(_describe_conflict, here), *mine]
        name = f"{texts.plain(row.name)}: " if len(rows) > 1 else ""
        notes += [note._replace(text=name + note.text) for note in mine]
    order = list(NOTE_ICONS)
    return sorted(notes, key=lambda note: order.index(note.status))


def _judge_names(row: SourceRow) -> Iterator[Note]:
    parts = row.destination.dataset.split("/")
    if row.takes_tree and (parts[0] == os.fsdecode(OWN_FOLDER) or {".", ".."} & {*parts}):
        yield Note("problem", translate("drop", "A folder there cannot have this name."))
    try:
        check_destination(row.destination)
    except SourceError as error:
        yield Note("problem", texts.problem_text(error))


def _describe_conflict(conflict: Conflict) -> Note:
    other = texts.plain(conflict.other)
    match conflict.kind:
        case "inside":
            text = translate("drop", "One of this and %1 contains the other. Remove one of them.")
        case "same":
            text = translate(
                "drop", "%1 would become the same dataset. Give one of the two another name."
            )
        case "taken":
            text = translate(
                "drop",
                "The dataset already has files of %1. Files with the same names will be replaced.",
            )
        case "elsewhere":
            text = translate(
                "drop", "It was uploaded as %1 before. Everything will be uploaded again."
            )
            other = texts.plain(" / ".join(filter(None, conflict.before or ())))
    return Note("problem" if conflict.hinders else "waiting", text.replace("%1", other))


def _describe_contents(row: SourceRow) -> Iterator[Note]:
    preview = row.preview
    if preview is None:
        return
    if preview.refusal is not None:
        yield Note("problem", texts.problem_text(preview.refusal))
    elif preview.complete and not preview.found:
        yield Note("waiting", translate("drop", "It holds no files."))
    if preview.safe:
        text = translate("drop", "%Ln file(s) are already safe on the server.", None, preview.safe)
        yield Note("good", text)
    for code, left in sorted(preview.reasons.items()):
        text = translate("drop", "%Ln left out, such as %1: %2", None, left.number)
        status: Status = "skipped" if code.startswith("skipped.") else "waiting"
        if code.startswith("waiting."):
            text = translate("drop", "%Ln file(s) wait, such as %1: %2", None, left.number)
        first = texts.plain(left.example.rpartition(b"/")[2])
        yield Note(status, texts.filled(text, first, texts.engine_text(left.problem.message)))
