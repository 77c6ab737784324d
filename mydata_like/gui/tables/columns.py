"""The columns of the tables of files and runs."""

from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import QCoreApplication, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from mydata_like.core.parsing import moment_of
from mydata_like.core.queries import FileRow, RunRow
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.controller import STOPPED_BY_USER
from mydata_like.gui.table_model import BELOW, Column, TwoLineDelegate
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import current_shades, status_colour
from mydata_like.gui.theme.style import CELL_MARGIN
from mydata_like.gui.theme.texts import limit_name, limit_word
from mydata_like.gui.theme.widgets import RowIcon, mark_of

FRACTION = Qt.ItemDataRole.UserRole + 1  # from 0 to 1; None for no bar
LONGEST_BAR = 24  # average characters, beside a text
STATUS = Qt.ItemDataRole.UserRole + 2  # a `Status` of `gui.theme.colours`


class SentenceDelegate(QStyledItemDelegate):
    """Shows the beginning of a text that is too long, which matters most in a sentence."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideRight


class BarDelegate(TwoLineDelegate):
    """Paints the text, and below it a bar of the same value, after the second line if any."""

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)
        fraction, status = index.data(FRACTION), index.data(STATUS)
        if fraction is None:
            return
        line = option.fontMetrics.height()
        bar = QRectF(option.rect).adjusted(CELL_MARGIN, 0, -CELL_MARGIN, -1)
        if index.data(BELOW):
            widest = option.fontMetrics.horizontalAdvance(index.data(BELOW) + "00")
            left = option.decorationSize.width() + 2 * CELL_MARGIN + widest
            bar.setLeft(min(bar.right(), bar.left() + left))
            bar.setWidth(min(bar.width(), option.fontMetrics.averageCharWidth() * LONGEST_BAR))
            bar.setBottom(bar.center().y() + line * 0.65)  # in the middle of that line
        bar.setTop(min(bar.bottom() - line / 4, bar.center().y() + line * 0.6))
        bar.setHeight(line / 4)
        selected = option.state & QStyle.StateFlag.State_Selected
        marked = option.palette.color(QPalette.ColorRole.HighlightedText)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = bar.height() / 2
        painter.setPen(marked if selected else QColor(current_shades().edge))
        painter.drawRoundedRect(bar, radius, radius)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(marked if selected else status_colour(status or "working"))
        bar.setWidth(bar.width() * min(1.0, fraction))
        painter.drawRoundedRect(bar, radius, radius)
        painter.restore()

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        size = super().sizeHint(option, index)
        height = option.fontMetrics.height()
        return QSize(size.width(), round(height * 2.1))


translate = QCoreApplication.translate


def run_columns(is_under_way: Callable[[str], bool]) -> list[Column]:
    """Return the columns of a table of runs; `is_under_way` takes the key of a run."""

    def mark(row: RunRow) -> RowIcon:
        return _mark(row, under_way=is_under_way(row.key))

    sent, ended = translate("runs", "Files sent"), translate("runs", "Outcome")
    span, limit = translate("runs", "Duration"), translate("runs", "Limit")
    return [
        Column("at", translate("runs", "When"), _when, "at", 20),
        Column("reason", translate("runs", "Reason"), _reason, "reason", 23),
        Column("files", sent, _files, "files", 10, number=True, tip=_replaced_tip),
        Column("size", translate("runs", "Size"), _size, "size", 10, number=True, tip=_omitted_tip),
        Column("speed", translate("runs", "Speed"), _speed, width=12, number=True),
        Column(
            "span", span, lambda row: texts.span(number(row, "seconds")), "span", 11, number=True
        ),
        Column("limit", limit, _limit, width=18, tip=lambda row: limit_name(_limit_of(row))),
        Column("outcome", ended, lambda row: mark(row).word, width=24, mark=mark, tip=_problem_tip),
    ]


def number(row: RunRow, name: str) -> float:
    """Return a total of a run, 0 if unknown."""
    value = row.summary.get(name)
    return value if isinstance(value, int | float) else 0


def problem_code(row: RunRow) -> str:
    """Return the code of the problem that ended a run early, empty for none."""
    return str(_problem(row).get("code", ""))


def _problem(row: RunRow) -> dict[str, Any]:
    problem = row.summary.get("problem")
    return problem if isinstance(problem, dict) else {}


def _when(row: RunRow) -> str:
    return texts.moment(row.started) if row.started else ""


def _reason(row: RunRow) -> str:
    reason = str(row.summary.get("reason", "person"))
    known = {
        "person": translate("runs", "Started by a user"),
        "startup": translate("runs", "At program start"),
        "saved": translate("runs", "Settings were saved"),
        "once": translate("runs", "Schedule: once"),
        "daily": translate("runs", "Schedule: daily"),
        "weekly": translate("runs", "Schedule: weekly"),
        "interval": translate("runs", "Schedule: every few minutes"),
        "settled": translate("runs", "New files had settled"),
        "folder": translate("runs", "One folder only"),
        "retry": translate("runs", "Second attempt"),
        "source": translate("runs", "Folders were added"),
    }
    return known.get(reason, texts.plain(reason))


def _mark(row: RunRow, *, under_way: bool) -> RowIcon:
    """Return how a run ended, or the worst that became of its files."""
    names = ("found", "verified", "skipped", "waiting", "failed", "left_behind")
    found, verified, skipped, waiting, failed, behind = (int(number(row, it)) for it in names)
    if row.finished is None and under_way:
        return RowIcon(translate("runs", "Not finished"), "working", "working")
    if row.finished is None:
        word, left = translate("runs", "Interrupted"), found - verified - skipped
        if left > 0:
            word = translate("runs", "Interrupted, %Ln file(s) unfinished", None, left)
        return RowIcon(word, "warning", "waiting")
    if problem_code(row) == STOPPED_BY_USER:
        return RowIcon(translate("runs", "Stopped"), "stop", "waiting")
    if problem_code(row):
        return RowIcon(translate("runs", "Ended early"), "error", "problem")
    if failed:
        return RowIcon(translate("runs", "%Ln file(s) failed", None, failed), "warning", "problem")
    if behind:
        return RowIcon(translate("runs", "%Ln left out", None, behind), "warning", "waiting")
    if waiting:
        return RowIcon(translate("runs", "%Ln file(s) wait", None, waiting), "waiting", "waiting")
    if verified:
        return RowIcon(translate("runs", "All %Ln file(s) safe", None, verified), "check", "good")
    if found:
        return RowIcon(translate("runs", "Nothing to send"), "skipped", "skipped")
    return RowIcon(translate("runs", "No files found"), "skipped", "skipped")


def _problem_tip(row: RunRow) -> str:
    problem = _problem(row)
    parts = (problem.get("message", ""), problem.get("hint", ""))
    return " ".join(texts.engine_text(part) for part in parts if part)


def _files(row: RunRow) -> str:
    sent, replaced = (texts.count(int(number(row, name))) for name in ("sent", "replaced"))
    if not number(row, "replaced"):
        return sent
    return texts.filled(translate("runs", "%1, %2 replaced"), sent, replaced)


def _replaced_tip(row: RunRow) -> str:
    if not number(row, "replaced"):
        return ""
    return translate(
        "runs",
        "Replaced files had other content on the server before, which is kept for a while. "
        "“Where is my data?” shows it.",
    )


def _size(row: RunRow) -> str:
    return texts.size(sent_bytes(row))


def _omitted_tip(row: RunRow) -> str:
    omitted = number(row, "omitted")
    text = translate(
        "runs", "A further %1 did not have to be sent: holes, or left by earlier runs."
    )
    return text.replace("%1", texts.size(omitted)) if omitted else ""


def sent_bytes(row: RunRow) -> float:
    """Return the bytes that the run sent of files that have arrived."""
    # The totals of an active run use the name `sent_bytes`.
    return (number(row, "bytes") or number(row, "sent_bytes")) - number(row, "omitted")


def _speed(row: RunRow) -> str:
    seconds = number(row, "seconds")
    return texts.rate(sent_bytes(row) / seconds) if seconds and sent_bytes(row) else ""


def _limit_of(row: RunRow) -> str:
    return str(row.summary.get("limit", ""))


def _limit(row: RunRow) -> str:
    """Return the bottleneck of a run that sent something."""
    return limit_word(_limit_of(row)) if sent_bytes(row) else ""


def file_columns() -> list[Column]:
    """Return the columns of a table of local files, in rows of two lines."""
    happened, at = translate("files", "What happened"), translate("files", "Verified")
    archive, state = translate("files", "In archive"), translate("files", "State")
    folder = Column(
        "folder", translate("files", "Folder"), _folder, "name", 28, tip=_path, hidden=True
    )
    why = Column("message", happened, _message, width=20, tip=texts.problem_text, hidden=True)
    return [
        Column("name", translate("files", "Name"), _name, "name", 44, tip=_path, below=folder),
        Column("state", state, _state, "state", 25, mark=_file_icon, tip=why.tip, below=why),
        Column("size", translate("files", "Size"), _file_size, "size", 10, number=True),
        Column("at", translate("files", "When"), lambda row: moment(row.at), "at", 24),
        folder,
        why,
        Column("verified", at, lambda row: moment(row.verified_at), width=24, hidden=True),
        Column("archive", archive, lambda row: texts.plain(row.archive), width=24, hidden=True),
    ]


def files_of(rows: Iterable[object]) -> list[FileRow]:
    """Return the files among these rows, with those that are sent on their own."""
    single = (row for row in rows if not isinstance(row, ActiveTransfer) or row.files == 1)
    return [row for row in map(file_of, single) if isinstance(row, FileRow)]


def file_of(row: Any) -> Any:
    """Return the first file of a transfer, with the size of all; another row as it is."""
    return FileRow(row.name, row.size, "", None) if isinstance(row, ActiveTransfer) else row


def problem_columns() -> list[Column]:
    """Return the columns of a table of files and folders with the same problem."""
    wanted = {"name": 32, "size": 9, "at": 24, "message": 14}
    columns = {column.name: column for column in file_columns()}
    return [columns[name]._replace(width=width, hidden=False) for name, width in wanted.items()]


def moment(seconds: int | None) -> str:
    """Return a time of the ledger as text; empty if unknown."""
    return texts.moment(moment_of(seconds)) if seconds is not None else ""


def _name(row: FileRow) -> str:
    return texts.plain(row.key.rpartition(b"/")[2])


def _folder(row: FileRow) -> str:
    return texts.plain(row.key.rpartition(b"/")[0])


def _path(row: FileRow) -> str:
    return texts.plain(row.key)


def _file_icon(row: FileRow) -> RowIcon | None:
    return mark_of(row.state)


def _state(row: FileRow) -> str:
    mark = mark_of(row.state)
    return mark.word if mark else translate("files", "Gone")


def _file_size(row: FileRow) -> str:
    return texts.size(row.size) if row.size is not None else ""


def _message(row: FileRow) -> str:
    return texts.engine_text(row.message)
