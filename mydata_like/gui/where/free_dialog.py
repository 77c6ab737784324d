"""The dialog that frees space: shows what would be deleted, then deletes it."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QProgressBar,
    QPushButton,
    QTableView,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.errors import UploaderError
from mydata_like.core.file_status import Suggestion
from mydata_like.gui.base import AppContext
from mydata_like.gui.tables.table_view import set_looks
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import PlainLabel, icon
from mydata_like.gui.where import status_poller
from mydata_like.gui.where.status_poller import CleanupProgress, CleanupResults, LedgerRef
from mydata_like.gui.where.status_view import tell_fate

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
NAME, SIZE, WHY = range(3)

_PICTURES: dict[str, tuple[str, Status]] = {
    "verified": ("check", "good"),
    "failed": ("error", "problem"),
    "skipped": ("skipped", "skipped"),
}


class SuggestionsModel(QAbstractListModel):
    """Files and folders whose names have what was typed, with how they stand."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.suggestions: Sequence[Suggestion] = ()

    def show(self, suggestions: Sequence[Suggestion]) -> None:
        """Show these in place of those before."""
        self.beginResetModel()
        self.suggestions = suggestions
        self.endResetModel()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.suggestions)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        found = self.suggestions[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            folder, _, name = found.key.rpartition(b"/")
            return f"{texts.plain(name)}  ·  {texts.plain(folder)}" if folder else texts.plain(name)
        if role == Qt.ItemDataRole.DecorationRole:
            return _picture_of(found)
        path = texts.plain(found.key)
        told: dict[int, str] = {
            Qt.ItemDataRole.AccessibleTextRole: path,
            Qt.ItemDataRole.ToolTipRole: f"{path}, {texts.size(found.size)}",
        }
        if role not in told:
            return None
        text = f"{told[role]}, {self._tell_state(found)}"
        return texts.tip(text) if role == Qt.ItemDataRole.ToolTipRole else text

    def _tell_state(self, found: Suggestion) -> str:
        if found.folder:
            return self.tr("folder")
        told = {
            "verified": self.tr("safe"),
            "failed": self.tr("failed"),
            "skipped": self.tr("left out"),
        }
        return told.get(found.state, self.tr("not safe yet"))


def _picture_of(found: Suggestion) -> object:
    if found.folder:
        return icon("folder")
    return icon(*_PICTURES.get(found.state, ("waiting", "waiting")))


class CleanupResultsModel(QAbstractTableModel):
    """Files with their sizes; of those that stay, why."""

    def __init__(self, *, reasons: bool, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reasons = reasons
        self._fates: Sequence[DeletedFile | KeptFile] = ()

    def show(self, fates: Sequence[DeletedFile | KeptFile]) -> None:
        """Show these in place of those before."""
        self.beginResetModel()
        self._fates = fates
        self.endResetModel()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._fates)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else (3 if self._reasons else 2)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Vertical or role != Qt.ItemDataRole.DisplayRole:
            return None
        return (self.tr("File"), self.tr("Size"), self.tr("Why it stays"))[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        fate = self._fates[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _tell(fate, index.column())
        if role == Qt.ItemDataRole.ToolTipRole and index.column() != SIZE:
            return texts.tip(_tell(fate, index.column()))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        aligned = role == Qt.ItemDataRole.TextAlignmentRole and index.column() == SIZE
        return right if aligned else None


def _tell(fate: DeletedFile | KeptFile, column: int) -> str:
    """Return what a column says of a file."""
    if column == NAME:
        return texts.plain(fate.key)
    return texts.size(fate.size) if column == SIZE else tell_fate(fate)


HEADLINE = 1.3
LOOK_AFTER = 250  # milliseconds after which it is looked how far the work has come


class FreeDialog(QDialog):
    """Asks the server about files, shows them all, and deletes them when told so."""

    freed = Signal()  # files were deleted

    def __init__(
        self, desk: AppContext, paths: Sequence[Path], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._tasks = desk.tasks
        self._place = LedgerRef(desk.controller.settings, desk.controller.config)
        self._paths = paths
        self._pace = CleanupProgress()
        self._task = BackgroundTask()
        self._total = 0
        self._fates = CleanupResults((), ())
        self._deleting = False
        self._headline = PlainLabel("", self)
        self._text = PlainLabel("", self)
        self._bar = QProgressBar(self)
        self._going = CleanupResultsModel(reasons=False, parent=self)
        self._staying = CleanupResultsModel(reasons=True, parent=self)
        self._tabs = QTabWidget(self)
        self._delete = QPushButton(icon("delete"), "", self)
        self._close = QPushButton(self.tr("Cancel"), self)
        self._timer = QTimer(self, interval=LOOK_AFTER)
        self._lay_out()
        self._connect()
        self._look()

    def _lay_out(self) -> None:
        self.setWindowTitle(self.tr("Free space"))
        self._headline.scale(HEADLINE, bold=True)
        for label in (self._headline, self._text):
            label.setWordWrap(True)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Progress"))
        self._tabs.addTab(_make_table(self._going, self.tr("Files to delete")), "")
        self._tabs.addTab(_make_table(self._staying, self.tr("Files that stay")), "")
        self._tabs.hide()
        self._delete.hide()
        self._close.setDefault(True)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self._delete)
        buttons.addWidget(self._close)
        layout = QVBoxLayout(self)
        layout.setSpacing(self.fontMetrics().height() // 2)
        for widget in (self._headline, self._text, self._bar):
            layout.addWidget(widget)
        layout.addWidget(self._tabs, 1)
        layout.addStretch(0)
        layout.addLayout(buttons)
        width = self.fontMetrics().averageCharWidth()
        self.resize(width * 130, self.fontMetrics().height() * 34)

    def _connect(self) -> None:
        self._delete.clicked.connect(self._start_deleting)
        self._close.clicked.connect(self.reject)
        self._timer.timeout.connect(self._show_pace)
        self.finished.connect(self._stop)

    def _look(self) -> None:
        """Ask the server about everything; nothing is deleted."""
        self._headline.setText(self.tr("Asking the server and reading the files once more"))
        self._text.setText(self.tr("Nothing is deleted yet."))
        ask = partial(status_poller.look_into, self._place, self._paths, self._pace)
        self._work(ask, self._take_looked)

    @Slot()
    def _start_deleting(self) -> None:
        """Delete what is shown; this cannot be undone, which the button's text says."""
        self._pace, self._total = CleanupProgress(), len(self._fates.freed)
        self._deleting = True
        self._delete.hide()
        self._close.setText(self.tr("Stop"))
        self._headline.setText(self.tr("Deleting %Ln file(s)", "", self._total))
        self._text.setText(
            self.tr(
                "The server verifies its copies again, and each file is read once more, right "
                "before it goes."
            )
        )
        chosen = self._fates.freed
        self._work(
            partial(status_poller.delete, self._place, chosen, self._pace), self._take_deleted
        )

    def _work(
        self, function: partial[CleanupResults], done: Callable[[CleanupResults], object]
    ) -> None:
        self._bar.setRange(0, self._total)
        self._bar.show()
        self._timer.start()
        self._task = self._tasks.run(function, done, self._fail, cancel=True, writes=self._deleting)

    @Slot(object)
    def _take_looked(self, fates: CleanupResults) -> None:
        self._fates = fates
        self._rest()
        count = len(fates.freed)
        self._show_fates(fates, self.tr("Can be deleted (%1)"))
        if not count:
            self._close.setText(self.tr("Close"))
            self._headline.setText(self.tr("Nothing here can be deleted"))
            self._text.setText(self.tr("Why each file stays is listed below."))
            return
        text = self.tr("%Ln file(s) can be deleted: %1", "", count)
        self._headline.setText(text.replace("%1", texts.size(fates.bytes)))
        self._text.setText(
            self.tr(
                "The server has a verified copy of each, with the same size and checksum. It is "
                "asked to verify them again before anything is deleted. Folders stay. Deleted "
                "files do not go to the wastebasket."
            )
        )
        self._delete.setText(self.tr("Delete %Ln file(s)", "", count))
        self._delete.show()

    @Slot(object)
    def _take_deleted(self, fates: CleanupResults) -> None:
        self._rest()
        self._close.setText(self.tr("Close"))
        kept = [*self._fates.kept, *fates.kept]
        self._fates = CleanupResults(fates.freed, kept)
        self._show_fates(self._fates, self.tr("Deleted (%1)"))
        text = self.tr("%Ln file(s) were deleted: %1", "", len(fates.freed))
        done = text.replace("%1", texts.size(fates.bytes))
        self._headline.setText(done if fates.freed else self.tr("Nothing was deleted"))
        self._text.setText(self.tr("Every deletion is noted in freed.jsonl, in the state folder."))
        self.freed.emit()

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self._rest()
        self._close.setText(self.tr("Close"))
        self._headline.setText(texts.plain(error.message))
        self._text.setText(texts.plain(error.hint))
        if self._deleting:
            self.freed.emit()

    def _rest(self) -> None:
        self._timer.stop()
        self._bar.hide()

    def _show_fates(self, fates: CleanupResults, going: str) -> None:
        self._going.show(fates.freed)
        self._staying.show(fates.kept)
        self._tabs.setTabText(0, going.replace("%1", texts.count(len(fates.freed))))
        staying = self.tr("Stays (%1)").replace("%1", texts.count(len(fates.kept)))
        self._tabs.setTabText(1, staying)
        self._tabs.setCurrentIndex(0 if fates.freed else 1)
        self._tabs.show()

    @Slot()
    def _show_pace(self) -> None:
        self._bar.setValue(self._pace.files)
        if not self._deleting:
            text = self.tr("%Ln file(s) so far, %1. Nothing is deleted yet.", "", self._pace.files)
            self._text.setText(text.replace("%1", texts.size(self._pace.bytes)))

    @Slot()
    def _stop(self) -> None:
        """What is being looked at is finished; no further file is."""
        self._task.stop()


def _make_table(model: CleanupResultsModel, name: str) -> QTableView:
    table = QTableView()
    set_looks(table)
    table.setModel(model)
    table.setAccessibleName(name)
    width = table.fontMetrics().averageCharWidth()
    header = table.horizontalHeader()
    header.setStretchLastSection(False)
    table.setColumnWidth(SIZE, width * 13)
    table.setColumnWidth(NAME, width * 46)
    widest = WHY if model.columnCount() > WHY else NAME
    header.setSectionResizeMode(widest, QHeaderView.ResizeMode.Stretch)
    return table
