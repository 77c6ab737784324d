"""The columns of tables of files and folders."""

from PySide6.QtCore import QCoreApplication

from mydata_like.core.parsing import moment_of
from mydata_like.core.queries import FileRow
from mydata_like.gui.look import words
from mydata_like.gui.tables.columns import Column
from mydata_like.gui.tables.marks import Mark, mark_of

translate = QCoreApplication.translate


def file_columns() -> list[Column]:
    """Return what a table says of local files."""
    return [
        Column("name", translate("files", "Name"), _name, "name", 34, tip=_path),
        Column("state", translate("files", "State"), _state, "state", 18, mark=_mark),
        Column("size", translate("files", "Size"), _size, "size", 11, number=True),
        Column("at", translate("files", "When"), _when, "at", 18),
        Column("folder", translate("files", "Folder"), _folder, "name", 34, tip=_path),
        Column("message", translate("files", "What happened"), _message, width=34, tip=_whole),
        Column("verified", translate("files", "Verified"), _verified, width=18, hidden=True),
        Column("archive", translate("files", "In archive"), _archive, width=24, hidden=True),
    ]


def problem_columns() -> list[Column]:
    """Return what a table says of files and folders that have the same problem."""
    wanted = {"name": 24, "folder": 28, "size": 11, "at": 18, "message": 40}
    columns = {column.name: column for column in file_columns()}
    return [columns[name]._replace(width=width) for name, width in wanted.items()]


def moment(seconds: int | None) -> str:
    """Return a time of the ledger, in words; nothing where it is not known."""
    return words.moment(moment_of(seconds)) if seconds is not None else ""


def _name(row: FileRow) -> str:
    return words.plain(row.key.rpartition(b"/")[2])


def _folder(row: FileRow) -> str:
    return words.plain(row.key.rpartition(b"/")[0])


def _path(row: FileRow) -> str:
    return words.plain(row.key)


def _mark(row: FileRow) -> Mark | None:
    return mark_of(row.state)


def _state(row: FileRow) -> str:
    mark = mark_of(row.state)
    return mark.word if mark else translate("files", "Gone")


def _size(row: FileRow) -> str:
    return words.size(row.size) if row.size is not None else ""


def _when(row: FileRow) -> str:
    return moment(row.at)


def _verified(row: FileRow) -> str:
    return moment(row.verified_at)


def _archive(row: FileRow) -> str:
    return words.plain(row.archive)


def _message(row: FileRow) -> str:
    return words.plain(row.message)


def _whole(row: FileRow) -> str:
    return words.plain(f"{row.message} {row.hint}".strip())
