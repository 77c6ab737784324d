"""The dialog of a dry run, with the files that would be uploaded from each folder."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QDialogButtonBox, QHeaderView, QProgressBar, QTableView, QWidget

from mydata_like.core.events import (
    Event,
    FileFailed,
    FileSkipped,
    FilesKnown,
    FilesSeen,
    FileWaiting,
    FileWanted,
    FolderFailed,
    FolderFound,
    FolderSkipped,
    RunFinished,
    RunProgressed,
)
from mydata_like.core.parsing import find_moment
from mydata_like.engine.progress import RunProgress
from mydata_like.gui.base import AppContext
from mydata_like.gui.engine_process import Engine, engine_command
from mydata_like.gui.table_model import Column, Index, RowsModel, set_up_table
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, vbox
from mydata_like.gui.theme.widgets import PlainLabel, RowIcon, mark_of
from mydata_like.hostos.clock import SystemClock

translate = QCoreApplication.translate
FOLDER, MISSING = 0, 6  # the numbers of columns; the folder gets the rest of the width
OF_SERVER = (1, 2, 3)  # those of what only a MyTardis server has
# Files to name: those that would not be sent, and those that would replace others.
LeftFile = FileWaiting | FileSkipped | FileFailed | FileWanted
Left = LeftFile | FolderSkipped | FolderFailed
STATE_BY_EVENT = {
    FileWaiting: "waiting",
    FileSkipped: "skipped",
    FileFailed: "failed",
    FolderSkipped: "folder-skipped",
    FolderFailed: "folder-failed",
}


@dataclass(slots=True)
class PlannedFolder:
    """A dataset folder: the number of its files, and how many of them are on the server."""

    path: str
    owner: str
    experiment: str
    dataset: str
    found: int = 0
    known: int = 0


class PlanModel(RowsModel[PlannedFolder]):
    """The folders that a dry run finds, in order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._places: dict[bytes, int] = {}
        self._early: Counter[bytes] = Counter()  # files of folders that are reported after them
        self.columns = (
            Column("folder", self.tr("Folder"), lambda row: row.path),
            Column("owner", self.tr("Owner"), lambda row: row.owner, width=12),
            Column("experiment", self.tr("Experiment"), lambda row: row.experiment, width=25),
            Column("dataset", self.tr("Dataset"), lambda row: row.dataset, width=24),
            _count_column("found", self.tr("Found"), lambda row: row.found, 10),
            _count_column("known", self.tr("On the server"), lambda row: row.known, 16),
            _count_column(
                "missing", self.tr("Not there yet"), lambda row: row.found - row.known, 16
            ),
        )

    def add(self, events: list[Event]) -> None:
        """Add events of the dry run."""
        found = [event for event in events if isinstance(event, FolderFound)]
        self._places |= {event.path: at for at, event in enumerate(found, len(self.rows))}
        self.append([self._plan(event) for event in found])
        counted = [event for event in events if isinstance(event, FilesSeen | FilesKnown)]
        for files in counted:
            place = self._places.get(files.folder)
            if isinstance(files, FilesSeen) and place is None:
                self._early[files.folder] += files.files
            elif isinstance(files, FilesSeen) and place is not None:
                self.rows[place].found += files.files
            elif place is not None:
                self.rows[place].known += files.files
        if counted:
            last = self.index(len(self.rows) - 1, len(self.columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def _plan(self, event: FolderFound) -> PlannedFolder:
        owner = event.owner or self.tr("(the account)")
        title = event.title or self.tr("(named after the owner)")
        plain = texts.plain
        path = plain(event.path) or self.tr("(files in no folder)")
        found = self._early.pop(event.path, 0)
        return PlannedFolder(path, plain(owner), plain(title), plain(event.dataset), found)


def _count_column(
    name: str, title: str, count: Callable[[PlannedFolder], int], width: int
) -> Column:
    return Column(name, title, lambda row: texts.count(count(row)), width=width, number=True)


class LeftModel(RowsModel[Left]):
    """The files and folders that a run would not upload, with the reasons, and what it replaces."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        path = self.tr("File or folder")
        self.columns = (
            Column("path", path, _path_of, width=48, mark=_mark_left, tip=_tip_of),
            Column("remark", self.tr("Remark"), _reason_of, tip=_tip_of),
        )

    @property
    def files(self) -> int:
        """The number of rows that are files."""
        return sum(isinstance(event, LeftFile) for event in self.rows)

    def add(self, events: list[Event]) -> None:
        """Add events of the dry run."""
        self.append([event for event in events if isinstance(event, Left)])

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.AccessibleTextRole and index.isValid() and not index.column():
            event = self.rows[index.row()]
            mark = _mark_left(event)
            return f"{_path_of(event)}, {mark.word if mark else ''}"
        return super().data(index, role)


def _path_of(event: Left) -> str:
    return texts.plain(event.path)


def _reason_of(event: Left) -> str:
    if isinstance(event, FileWanted):
        verified = find_moment(event.verified_at)
        if verified is None:
            said = translate("dry run", "The server has other content: %1, not verified.")
        else:
            said = translate("dry run", "The server has other content: %1, verified on %2.")
            said = said.replace("%2", texts.moment(verified))
        return said.replace("%1", texts.size(event.size_before))
    return texts.problem_text(event.problem)


def _tip_of(event: Left) -> str:
    return f"{_path_of(event)}\n{_reason_of(event)}"


def _mark_left(event: Left) -> RowIcon | None:
    if isinstance(event, FileWanted):
        return RowIcon(translate("dry run", "Would be replaced"), "server", "working")
    return mark_of(STATE_BY_EVENT[type(event)])


class DryRunDialog(Dialog):
    """A dialog that scans the data directory, checks the server and shows what a run would do."""

    upload_wanted = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Dry run"), parent, 165, 34)
        self._controller = context.controller
        self._progress = RunProgress(SystemClock())
        self._summed = self._wanted = False
        self._summary = PlainLabel(self.tr("Scanning the folders…"), self, wrap=True)
        self._busy = QProgressBar(self)
        self._busy.setRange(0, 0)
        self._busy.setAccessibleName(self.tr("The dry run is in progress"))
        self._model = PlanModel(self)
        self._table = set_up_table(QTableView(self), self._model, self.tr("Folders"))
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(FOLDER, QHeaderView.ResizeMode.Stretch)
        if self._controller.settings.destination.takes_tree:
            for column in OF_SERVER:
                self._table.hideColumn(column)
        self._left = LeftModel(self)
        remarks = self.tr("Files and folders with remarks")
        self._left_table = set_up_table(QTableView(self), self._left, remarks)
        self._left_table.horizontalHeader().setStretchLastSection(True)
        # The start of a reason matters most.
        self._left_table.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._left_table.hide()
        self._more = PlainLabel("", self)
        self._more.hide()
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self._upload = self._buttons.addButton(
            self.tr("&Upload now"), QDialogButtonBox.ButtonRole.AcceptRole
        )
        self._enable_upload()

        tables = ((self._table, 2), (self._left_table, 1))
        vbox(self._summary, self._busy, *tables, self._more, self._buttons, inside=self)

        self._engine = Engine(engine_command("scan", context.controller.config), self)
        self._engine.events_received.connect(self._take_events)
        self._engine.ended.connect(self._take_end)
        self._buttons.rejected.connect(self.reject)
        self._buttons.accepted.connect(self._upload_now)
        self._controller.run_changed.connect(self._enable_upload)
        self._engine.start()

    @property
    def ended(self) -> bool:
        """Whether the dry run has ended, successfully or not."""
        return self._busy.isHidden()

    def done(self, result: int) -> None:
        self._engine.give_up()
        super().done(result)

    @Slot(object)
    def _take_events(self, events: list[Event]) -> None:
        self._model.add(events)
        self._left.add(events)
        self._left_table.setVisible(self._left.rowCount() > 0)
        for event in events:
            self._progress.add(event)
            if isinstance(event, RunFinished):
                self._show_end(event)

    @Slot()
    def _enable_upload(self) -> None:
        """Enable the upload button if there are files to send and no run is active."""
        self._upload.setEnabled(self._wanted and self._controller.state.can_start)

    def _show_end(self, end: RunFinished) -> None:
        self._summed = True
        if end.problem is not None:
            self._summary.setText(texts.problem_text(end.problem))
            return
        sums = self._progress.reported
        wanted, rest = _describe_wanted(sums, end.replacing), _describe_rest(sums, end.held)
        self._summary.setText(f"{wanted}\n{rest}".strip())
        noted = end.replacing + sums.waiting + sums.skipped + sums.failed
        more = max(0, noted - self._left.files)
        self._more.setText(self.tr("and %Ln more file(s)", None, more))
        self._more.setVisible(more > 0)
        self._wanted = sums.wanted > 0
        self._enable_upload()

    @Slot(object)
    def _take_end(self, code: int | None) -> None:
        del code
        self._busy.hide()
        if not self._summed:
            self._summary.setText(self.tr("The dry run ended before it was complete."))

    @Slot()
    def _upload_now(self) -> None:
        self.upload_wanted.emit()
        self.accept()


def _describe_wanted(sums: RunProgressed, replacing: int) -> str:
    """Describe what a run would send; claim that all is uploaded only if every file is."""
    if sums.wanted:
        text = translate("dry run", "%Ln file(s), %1, would be uploaded.", None, sums.wanted)
        text = text.replace("%1", texts.size(sums.wanted_bytes))
        if replacing:  # although their names are taken
            text += " " + translate(
                "dry run", "%Ln file(s) would replace other content on the server.", None, replacing
            )
        return text
    if not sums.found:
        return translate("dry run", "No files were found.")
    if sums.verified == sums.found:
        return translate(
            "dry run", "Nothing to upload: all %Ln file(s) are on the server.", None, sums.found
        )
    left = sums.found - sums.verified
    return translate(
        "dry run",
        "Nothing would be uploaded now, and %Ln file(s) are not on the server.",
        None,
        left,
    )


def _describe_rest(sums: RunProgressed, held: int) -> str:
    """Describe the files that would not be sent; empty if there are none."""
    waiting = translate("dry run", "%1 waiting")
    if held:
        waiting = translate("dry run", "%1 waiting, of which %2 held until you choose")
        waiting = waiting.replace("%2", texts.count(held))
    settled = sums.verified + sums.wanted + sums.waiting + sums.skipped + sums.failed
    parts = (
        (sums.verified, translate("dry run", "%1 on the server")),
        (sums.found - settled, translate("dry run", "%1 sent before and not verified yet")),
        (sums.waiting, waiting),
        (sums.skipped, translate("dry run", "%1 left out")),
        (sums.failed, translate("dry run", "%1 that cannot be read")),
    )
    told = [text.replace("%1", texts.count(number)) for number, text in parts if number > 0]
    return " · ".join(told)
