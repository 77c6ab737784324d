"""The dialog that frees space: shows what would be deleted, then deletes it."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QHeaderView,
    QProgressBar,
    QPushButton,
    QTableView,
    QTabWidget,
    QWidget,
)

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.table_model import Column, RowsModel, set_up_table
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, hbox, vbox
from mydata_like.gui.theme.metrics import SECTION, SPACE
from mydata_like.gui.theme.widgets import PlainLabel, icon
from mydata_like.gui.where.status_tasks import CleanupProgress, CleanupResults, clean_up
from mydata_like.gui.where.status_view import keep_reason

NAME, SIZE, REASON = range(3)


class CleanupResultsModel(RowsModel[DeletedFile | KeptFile]):
    """Files with their sizes; for files that are kept, also the reason."""

    def __init__(self, *, reasons: bool, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = (
            Column("name", self.tr("File"), _describe_name, width=44, tip=_describe_name),
            Column("size", self.tr("Size"), lambda it: texts.size(it.size), width=11, number=True),
        )
        if reasons:
            reason = Column("reason", self.tr("Reason"), keep_reason, tip=keep_reason)
            self.columns += (reason,)


def _describe_name(result: DeletedFile | KeptFile) -> str:
    return texts.plain(result.key)


PROGRESS_INTERVAL = 250  # milliseconds between two updates of the progress


class FreeDialog(Dialog):
    """Shows which files the server allows to delete, and deletes them if the user confirms."""

    freed = Signal()  # files were deleted

    def __init__(
        self, context: AppContext, paths: Sequence[Path], parent: QWidget | None = None
    ) -> None:
        super().__init__(self.tr("Free space"), parent, 130, 34)
        self._tasks = context.tasks
        self._place = context.controller.place
        self._progress = CleanupProgress()
        self._task = BackgroundTask()
        self._total = 0
        self._results = CleanupResults((), ())
        self._deleting = False
        self._headline = PlainLabel("", self, wrap=True, heading=SECTION)
        self._explanation = PlainLabel("", self, wrap=True)
        self._bar = QProgressBar(self)
        self._deletable = CleanupResultsModel(reasons=False, parent=self)
        self._kept = CleanupResultsModel(reasons=True, parent=self)
        self._tabs = QTabWidget(self)
        self._delete = QPushButton(icon("delete"), "", self)
        self._close = QPushButton(self.tr("Cancel"), self)
        self._timer = QTimer(self, interval=PROGRESS_INTERVAL)

        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Progress"))
        names = (self.tr("Files to delete"), self.tr("Files to keep"))
        for model, name in zip((self._deletable, self._kept), names, strict=True):
            table = set_up_table(QTableView(self), model, name)
            header = table.horizontalHeader()
            header.setStretchLastSection(False)
            widest = REASON if model.columnCount() > REASON else NAME
            header.setSectionResizeMode(widest, QHeaderView.ResizeMode.Stretch)
            self._tabs.addTab(table, "")
        self._tabs.hide()
        self._delete.hide()
        self._close.setDefault(True)
        head = (self._headline, self._explanation, self._bar)
        buttons = hbox(1, self._delete, self._close)
        vbox(*head, (self._tabs, 1), 0, buttons, inside=self).setSpacing(SPACE)

        self._delete.clicked.connect(self._start_deleting)
        self._close.clicked.connect(self.reject)
        self._timer.timeout.connect(self._show_progress)
        self.finished.connect(self._stop)

        self._headline.setText(self.tr("Checking the server and reading the files again"))
        self._explanation.setText(self.tr("Nothing is deleted yet."))
        self._run(self._show_checked, check=paths)

    @Slot()
    def _start_deleting(self) -> None:
        """Delete the listed files. This cannot be undone, as the text above the button states."""
        self._progress, self._total = CleanupProgress(), len(self._results.freed)
        self._deleting = True
        self._delete.hide()
        self._close.setText(self.tr("Stop"))
        self._headline.setText(self.tr("Deleting %Ln file(s)", "", self._total))
        self._explanation.setText(
            self.tr(
                "The server verifies its copies again, and each file is read again, right before "
                "it is deleted."
            )
        )
        self._run(self._show_deleted, delete=self._results.freed)

    def _run(
        self,
        done: Callable[[CleanupResults], object],
        *,
        check: Sequence[Path] = (),
        delete: Sequence[DeletedFile] = (),
    ) -> None:
        self._bar.setRange(0, self._total)
        self._bar.show()
        self._timer.start()
        call = partial(clean_up, *self._place, self._progress, check=check, delete=delete)
        self._task = self._tasks.run(call, done, self._fail, cancel=True, writes=self._deleting)

    @Slot(object)
    def _show_checked(self, results: CleanupResults) -> None:
        self._results = results
        self._end_progress()
        count = len(results.freed)
        self._show_results(results, self.tr("Can be deleted (%1)"))
        if not count:
            self._close.setText(self.tr("Close"))
            self._headline.setText(self.tr("Nothing here can be deleted"))
            self._explanation.setText(self.tr("The reason for each file is listed below."))
            return
        text = self.tr("%Ln file(s) can be deleted: %1", "", count)
        self._headline.setText(text.replace("%1", texts.size(results.bytes)))
        self._explanation.setText(
            self.tr(
                "The server has a verified copy of each, with the same size and checksum. It "
                "verifies them again before anything is deleted. Folders are kept. Deleted files "
                "are not moved to the trash."
            )
        )
        self._delete.setText(self.tr("Delete %Ln file(s)", "", count))
        self._delete.show()

    @Slot(object)
    def _show_deleted(self, results: CleanupResults) -> None:
        self._end_progress()
        self._close.setText(self.tr("Close"))
        kept = [*self._results.kept, *results.kept]
        self._results = CleanupResults(results.freed, kept)
        self._show_results(self._results, self.tr("Deleted (%1)"))
        text = self.tr("%Ln file(s) were deleted: %1", "", len(results.freed))
        done = text.replace("%1", texts.size(results.bytes))
        self._headline.setText(done if results.freed else self.tr("Nothing was deleted"))
        self._explanation.setText(
            self.tr("Every deletion is recorded in freed.jsonl in the state folder.")
        )
        self.freed.emit()

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self._end_progress()
        self._close.setText(self.tr("Close"))
        self._headline.setText(texts.engine_text(error.message))
        self._explanation.setText(texts.engine_text(error.hint))
        if self._deleting:
            self.freed.emit()

    def _end_progress(self) -> None:
        self._timer.stop()
        self._bar.hide()

    def _show_results(self, results: CleanupResults, deleted_title: str) -> None:
        self._deletable.show(results.freed)
        self._kept.show(results.kept)
        self._tabs.setTabText(0, deleted_title.replace("%1", texts.count(len(results.freed))))
        kept_title = self.tr("Kept (%1)").replace("%1", texts.count(len(results.kept)))
        self._tabs.setTabText(1, kept_title)
        self._tabs.setCurrentIndex(0 if results.freed else 1)
        self._tabs.show()

    @Slot()
    def _show_progress(self) -> None:
        self._bar.setValue(self._progress.files)
        if not self._deleting:
            text = self.tr(
                "%Ln file(s) so far, %1. Nothing is deleted yet.", "", self._progress.files
            )
            self._explanation.setText(text.replace("%1", texts.size(self._progress.bytes)))

    @Slot()
    def _stop(self) -> None:
        """Stop after the current file."""
        self._task.stop()
