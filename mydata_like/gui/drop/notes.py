"""What a person should know of what was dropped, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QAbstractListModel, QCoreApplication, QModelIndex, QObject, Qt

from mydata_like.core.errors import SourceError
from mydata_like.core.extra_sources import check_destination
from mydata_like.gui.drop.model import Index, Row
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.palette import Status

if TYPE_CHECKING:
    from mydata_like.app.source_service import Conflict, SkippedSource

translate = QCoreApplication.translate
NOWHERE = QModelIndex()
ICONS: dict[Status, str] = {
    "problem": "error",
    "waiting": "warning",
    "skipped": "skipped",
    "good": "check",
}


class Note(NamedTuple):
    """One sentence; `problem` is what keeps a folder from being uploaded."""

    status: Status
    text: str


class NotesModel(QAbstractListModel):
    """The notes, one a row."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.notes: list[Note] = []

    def show(self, notes: Sequence[Note]) -> None:
        """Show these notes; while only their numbers change nothing moves."""
        if list(notes) == self.notes:
            return
        if len(notes) == len(self.notes):
            self.layoutAboutToBeChanged.emit()
            self.notes = list(notes)
            self.layoutChanged.emit()
        else:
            self.beginResetModel()
            self.notes = list(notes)
            self.endResetModel()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.notes)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        note = self.notes[index.row()]
        if role == Qt.ItemDataRole.DecorationRole:
            return icon(ICONS[note.status], note.status)
        return note.text if role == Qt.ItemDataRole.DisplayRole else None


def list_notes(rows: Sequence[Row], conflicts: Sequence[Conflict]) -> list[Note]:
    """Return all notes, the worst first; with several rows each says of which it is."""
    notes = []
    for row in rows:
        mine = [conflict for conflict in conflicts if row.wanted and _concerns(conflict, row)]
        for note in (*_judge_names(row), *map(_tell_conflict, mine), *_tell_contents(row)):
            notes.append(note if len(rows) == 1 else _of(row, note))
    order = list(ICONS)
    return sorted(notes, key=lambda note: order.index(note.status))


def _concerns(conflict: Conflict, row: Row) -> bool:
    return row.preview is not None and conflict.path == row.preview.path


def _of(row: Row, note: Note) -> Note:
    return note._replace(text=f"{words.plain(row.name)}: {note.text}")


def _judge_names(row: Row) -> Iterator[Note]:
    if not row.wanted:
        return
    try:
        check_destination(row.destination)
    except SourceError as error:
        yield Note("problem", words.plain(f"{error.message} {error.hint}"))


def _tell_conflict(conflict: Conflict) -> Note:
    other = words.plain(conflict.other)
    match conflict.kind:
        case "inside":
            text = translate("drop", "%1 is part of this, or this of it. Leave one of the two out.")
        case "same":
            text = translate(
                "drop", "%1 would become the same dataset. Give one of the two another name."
            )
        case "taken":
            text = translate(
                "drop",
                "The dataset has files of %1 already. Those of the same names will be replaced.",
            )
        case "elsewhere":
            text = translate(
                "drop", "It was uploaded as %1 before. All of it will be uploaded once more."
            )
            other = words.plain(" / ".join(filter(None, conflict.before or ())))
    return Note("problem" if conflict.hinders else "waiting", text.replace("%1", other))


def _tell_contents(row: Row) -> Iterator[Note]:
    preview = row.preview
    if preview is None:
        return
    if preview.refusal is not None:
        yield Note("problem", words.plain(f"{preview.refusal.message} {preview.refusal.hint}"))
    elif preview.complete and not preview.found:
        yield Note("waiting", translate("drop", "It holds no files."))
    if preview.safe:
        text = translate("drop", "%Ln file(s) are safe on the server already.", None, preview.safe)
        yield Note("good", text)
    for code, left in sorted(preview.reasons.items()):
        yield _tell_left(code, left)


def _tell_left(code: str, left: SkippedSource) -> Note:
    first = words.plain(left.example.rpartition(b"/")[2])
    if code.startswith("waiting."):
        text = translate("drop", "%Ln file(s) wait, such as %1: %2", None, left.number)
        status: Status = "waiting"
    else:
        text = translate("drop", "%Ln left out, such as %1: %2", None, left.number)
        status = "skipped" if code.startswith("skipped.") else "waiting"
    return Note(status, text.replace("%1", first).replace("%2", words.plain(left.problem.message)))
