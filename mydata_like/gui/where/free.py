"""The dialog that frees space: what would be deleted, exactly; then the deletion."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer, Signal, Slot
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

from mydata_like.core.errors import UploaderError
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.tables.table import set_looks
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.where import source
from mydata_like.gui.where.models import NAME, SIZE, WHY, FatesModel
from mydata_like.gui.where.source import Fates, Pace, Place

HEADLINE = 1.3
LOOK_AFTER = 250  # milliseconds after which it is looked how far the work has come


class FreeDialog(QDialog):
    """Asks the server about files, shows them all, and deletes them when told so."""

    freed = Signal()  # files were deleted

    def __init__(self, desk: Desk, paths: Sequence[Path], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tasks = desk.tasks
        self._place = Place(desk.controller.settings, desk.controller.config)
        self._paths = paths
        self._pace = Pace()
        self._task = BackgroundTask()
        self._total = 0
        self._fates = Fates((), ())
        self._deleting = False
        self._headline = PlainLabel("", self)
        self._text = PlainLabel("", self)
        self._bar = QProgressBar(self)
        self._going = FatesModel(reasons=False, parent=self)
        self._staying = FatesModel(reasons=True, parent=self)
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
        ask = partial(source.look_into, self._place, self._paths, self._pace)
        self._work(ask, self._take_looked)

    @Slot()
    def _start_deleting(self) -> None:
        """Delete what is shown; this cannot be undone, which the button's text says."""
        self._pace, self._total = Pace(), len(self._fates.freed)
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
        self._work(partial(source.delete, self._place, chosen, self._pace), self._take_deleted)

    def _work(self, function: partial[Fates], done: Callable[[Fates], object]) -> None:
        self._bar.setRange(0, self._total)
        self._bar.show()
        self._timer.start()
        self._task = self._tasks.run(function, done, self._fail, cancel=True, writes=self._deleting)

    @Slot(object)
    def _take_looked(self, fates: Fates) -> None:
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
        self._headline.setText(text.replace("%1", words.size(fates.bytes)))
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
    def _take_deleted(self, fates: Fates) -> None:
        self._rest()
        self._close.setText(self.tr("Close"))
        kept = [*self._fates.kept, *fates.kept]
        self._fates = Fates(fates.freed, kept)
        self._show_fates(self._fates, self.tr("Deleted (%1)"))
        text = self.tr("%Ln file(s) were deleted: %1", "", len(fates.freed))
        done = text.replace("%1", words.size(fates.bytes))
        self._headline.setText(done if fates.freed else self.tr("Nothing was deleted"))
        self._text.setText(self.tr("Every deletion is noted in freed.jsonl, in the state folder."))
        self.freed.emit()

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self._rest()
        self._close.setText(self.tr("Close"))
        self._headline.setText(words.plain(error.message))
        self._text.setText(words.plain(error.hint))
        if self._deleting:
            self.freed.emit()

    def _rest(self) -> None:
        self._timer.stop()
        self._bar.hide()

    def _show_fates(self, fates: Fates, going: str) -> None:
        self._going.show(fates.freed)
        self._staying.show(fates.kept)
        self._tabs.setTabText(0, going.replace("%1", words.count(len(fates.freed))))
        staying = self.tr("Stays (%1)").replace("%1", words.count(len(fates.kept)))
        self._tabs.setTabText(1, staying)
        self._tabs.setCurrentIndex(0 if fates.freed else 1)
        self._tabs.show()

    @Slot()
    def _show_pace(self) -> None:
        self._bar.setValue(self._pace.files)
        if not self._deleting:
            text = self.tr("%Ln file(s) so far, %1. Nothing is deleted yet.", "", self._pace.files)
            self._text.setText(text.replace("%1", words.size(self._pace.bytes)))

    @Slot()
    def _stop(self) -> None:
        """What is being looked at is finished; no further file is."""
        self._task.stop()


def _make_table(model: FatesModel, name: str) -> QTableView:
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
