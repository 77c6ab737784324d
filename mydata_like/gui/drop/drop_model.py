"""The tree of dropped folders with files, destinations and warnings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal, Slot
from PySide6.QtGui import QStandardItem, QStandardItemModel

from mydata_like.core.errors import SourceError
from mydata_like.core.extra_sources import Destination, ExtraSource, check_destination
from mydata_like.gui.table_model import Index
from mydata_like.gui.theme import colours, texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import NOTE_ICONS, Note, icon

if TYPE_CHECKING:
    from mydata_like.app.source_service import Conflict, SkippedSource, SourcePart, SourcePreview


TO_THE_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
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

    def __init__(self, path: bytes) -> None:
        self.path = path
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
        return Destination(*(self.edited.get(column, name) for column, name in names))

    @property
    def source(self) -> ExtraSource:
        """The source as the engine expects it."""
        assert self.preview is not None
        return ExtraSource(self.preview.path, self.destination, self.preview.alone)


class SourcesModel(QStandardItemModel):
    """Dropped folders and files, and below each folder its direct contents."""

    decided = Signal()  # the user changed a name or a selection

    def __init__(self, paths: Sequence[bytes], account: str, parent: QObject | None = None) -> None:
        """`account` owns the sources without an owner."""
        super().__init__(len(paths), len(SourceColumn), parent)
        self.rows = [SourceRow(path) for path in paths]
        self._account = account
        self._filling = False  # the items are changed by the program
        names = (self.tr("Owner"), self.tr("Experiment"), self.tr("Dataset"))
        self.setHorizontalHeaderLabels(
            [self.tr("Folder or file"), *names, self.tr("Files"), self.tr("Size")]
        )
        for column in NUMBERS:
            self.horizontalHeaderItem(column).setTextAlignment(TO_THE_RIGHT)
        self.itemChanged.connect(self._take_edit)
        for number in range(len(self.rows)):
            self._show_row(number)

    def show(self, previews: Sequence[SourcePreview | None]) -> None:
        """Show the current results."""
        for number, (row, preview) in enumerate(zip(self.rows, previews, strict=True)):
            if preview is not None and preview is not row.preview:
                row.preview = preview
                self._show_row(number)
                self._show_parts(number, preview)

    def data(self, index: Index, role: int = Role.DisplayRole) -> Any:
        if role == Role.ForegroundRole and not index.parent().isValid():
            row = self.rows[index.row()]
            unnamed = index.column() == SourceColumn.OWNER and not row.destination.owner
            return colours.quiet() if unnamed or not row.wanted else None
        return super().data(index, role)

    @Slot(QStandardItem)
    def _take_edit(self, item: QStandardItem) -> None:
        if self._filling:
            return
        row, column = self.rows[item.row()], SourceColumn(item.column())
        if column is SourceColumn.NAME:
            row.chosen = item.checkState() is Qt.CheckState.Checked
        elif item.text() != self._describe(row, column):
            row.edited[column] = item.text().strip()
        self._show_row(item.row())
        self.decided.emit()

    def _show_row(self, number: int) -> None:
        row = self.rows[number]
        self._filling = True
        for column in SourceColumn:
            item = self._find_item(number, column)
            item.setText(self._describe(row, column))
            item.setEditable(row.possible and column in NAMES)
        name = self._find_item(number, SourceColumn.NAME)
        name.setToolTip(texts.tip(texts.plain(row.path)))
        name.setIcon(icon("file" if row.preview and row.preview.alone else "folder"))
        if row.possible:
            name.setCheckable(True)
            name.setCheckState(Qt.CheckState.Checked if row.chosen else Qt.CheckState.Unchecked)
        self._filling = False

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
        found = row.preview.found, row.preview.found_bytes
        return _describe_number(column, *found)

    def _show_parts(self, number: int, preview: SourcePreview) -> None:
        """Show the parts of a folder; they are in their final order once the scan is complete."""
        row, folder = self.rows[number], self._find_item(number, SourceColumn.NAME)
        # A folder of files only has no folders to show.
        parts = list(preview.parts) if any(part.name for part in preview.parts) else []
        if preview.complete:
            parts.sort(key=lambda part: (not part.name, part.name))
        folder.setRowCount(len(parts))
        folder.setColumnCount(len(SourceColumn))
        self._filling = True
        for place, (part, before) in enumerate(zip_longest(parts, row.parts[: len(parts)])):
            if part == before:
                continue
            for column in SourceColumn:
                item = self._find_item(place, column, folder)
                if column is SourceColumn.NAME:
                    item.setText(texts.plain(part.name) if part.name else self.tr("other files"))
                    item.setIcon(icon("folder" if part.name else "file"))
                elif column in NUMBERS:
                    item.setText(_describe_number(column, part.files, part.bytes))
        self._filling = False
        row.parts = parts

    def _find_item(
        self, row: int, column: SourceColumn, folder: QStandardItem | None = None
    ) -> QStandardItem:
        """Return the item of a cell, which is made when it is first needed."""
        above = folder or self.invisibleRootItem()
        item = above.child(row, column)
        if item is None:
            item = QStandardItem()
            item.setEditable(False)
            if column in NUMBERS:
                item.setTextAlignment(TO_THE_RIGHT)
            above.setChild(row, column, item)
        return item


def _describe_number(column: SourceColumn, files: int, size: int) -> str:
    return texts.count(files) if column is SourceColumn.FILES else texts.size(size)


translate = QCoreApplication.translate


def list_notes(rows: Sequence[SourceRow], conflicts: Sequence[Conflict]) -> list[Note]:
    """Return all notes, the worst first; with several rows each note names its row."""
    notes = []
    for row in rows:
        path = row.preview.path if row.preview and row.wanted else None
        mine = [_describe_conflict(conflict) for conflict in conflicts if conflict.path == path]
        whose = "" if len(rows) == 1 else f"{texts.plain(row.name)}: "
        for note in (*_judge_names(row), *mine, *_describe_contents(row)):
            notes.append(note._replace(text=f"{whose}{note.text}"))
    order = list(NOTE_ICONS)
    return sorted(notes, key=lambda note: order.index(note.status))


def _judge_names(row: SourceRow) -> Iterator[Note]:
    if not row.wanted:
        return
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
        yield _describe_left(code, left)


def _describe_left(code: str, left: SkippedSource) -> Note:
    first = texts.plain(left.example.rpartition(b"/")[2])
    if code.startswith("waiting."):
        text = translate("drop", "%Ln file(s) wait, such as %1: %2", None, left.number)
        status: Status = "waiting"
    else:
        text = translate("drop", "%Ln left out, such as %1: %2", None, left.number)
        status = "skipped" if code.startswith("skipped.") else "waiting"
    return Note(
        status, text.replace("%1", first).replace("%2", texts.engine_text(left.problem.message))
    )
