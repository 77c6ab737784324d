"""The dialog for dropped folders: their files and their destinations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QCoreApplication,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialogButtonBox,
    QHeaderView,
    QLineEdit,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from mydata_like.app import source_service
from mydata_like.core.errors import UploaderError
from mydata_like.core.extra_sources import LONGEST_NAME
from mydata_like.core.formatting import round_estimate
from mydata_like.engine.time_left import Costs, Work
from mydata_like.gui.base import AppContext
from mydata_like.gui.drop.drop_model import SourceColumn, SourcesModel, list_notes
from mydata_like.gui.run_state import Phase
from mydata_like.gui.table_model import column_width
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, vbox
from mydata_like.gui.theme.metrics import TITLE
from mydata_like.gui.theme.widgets import Note, NoteList, PlainLabel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mydata_like.app.source_service import Conflict, SourcePreview
    from mydata_like.core.ports import CancelSignal
    from mydata_like.settings.schema import Settings


SHOW_AFTER = 200  # milliseconds between two updates during the scan
WIDTHS = {  # in characters; the name gets the rest
    SourceColumn.OWNER: 14,
    SourceColumn.EXPERIMENT: 22,
    SourceColumn.DATASET: 22,
    SourceColumn.FILES: 8,
    SourceColumn.SIZE: 10,
}

translate = QCoreApplication.translate


class DropDialog(Dialog):
    """Shows the dropped folders while they are scanned; *Upload* can be chosen at any time."""

    added = Signal(object)  # the paths to upload

    def __init__(
        self, context: AppContext, paths: Sequence[bytes], parent: QWidget | None = None
    ) -> None:
        super().__init__(self.tr("Upload"), parent, 130, 30)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        settings = context.controller.settings
        self._controller = context.controller
        self._tasks = context.tasks
        self._paths = list(dict.fromkeys(os.path.normpath(path) for path in paths))
        self._previews: list[SourcePreview | None] = [None for _ in self._paths]
        self._costs: Costs | None = None  # of the last run
        self._place = context.controller.place
        takes_tree = settings.destination.takes_tree
        account = settings.server.username
        self.model = SourcesModel(self._paths, account, self, takes_tree=takes_tree)
        self._conflicts: list[Conflict] = []
        self._failure: Note | None = None  # of the scan
        self._check_failure: Note | None = None  # why the conflicts are unknown
        self._timer = QTimer(self, interval=SHOW_AFTER)

        self._title, self._sum = PlainLabel("", self, heading=TITLE), PlainLabel("", self)
        self._tree = QTreeView(self)
        hint = self.tr("Double-click an owner, experiment or dataset to change it.")
        if takes_tree:
            hint = self.tr("Double-click the name of a folder there to change it.")
        advice = PlainLabel(hint, self)
        self.notes = NoteList(self.tr("Notes"), self)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.upload = self._buttons.addButton(
            self.tr("&Upload"), QDialogButtonBox.ButtonRole.AcceptRole
        )

        self._set_up_tree()
        head, tree, notes = (self._title, self._sum), (self._tree, 3), (self.notes, 2)
        vbox(*head, tree, advice, notes, self._buttons, inside=self)
        self.upload.setDefault(True)

        self._timer.timeout.connect(self._show)
        self.model.decided.connect(self._show)
        self.model.decided.connect(self._ask)
        self._buttons.accepted.connect(self._upload)
        self._buttons.rejected.connect(self.reject)
        self._controller.run_changed.connect(self._show)

        self._show()
        self._timer.start()
        self._tasks.run(partial(source_service.find_expected_costs, *self._place), self._take_costs)
        self._scan = self._tasks.run(
            partial(scan_sources, *self._place, self._paths),
            self._show_end,
            self._show_failure,
            progress=self._take_preview,
            cancel=True,
        )

    def done(self, result: int) -> None:
        self._timer.stop()
        self._scan.cancel()
        super().done(result)

    def _set_up_tree(self) -> None:
        tree, header = self._tree, self._tree.header()
        tree.setModel(self.model)
        tree.setAccessibleName(self.tr("Dropped folders and their destinations"))
        tree.setUniformRowHeights(True)
        tree.setAllColumnsShowFocus(True)
        tree.setItemDelegate(_NameDelegate(tree))
        tree.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.SelectedClicked
        )
        header.setStretchLastSection(False)
        header.setSectionResizeMode(SourceColumn.NAME, QHeaderView.ResizeMode.Stretch)
        for column, characters in WIDTHS.items():
            header.resizeSection(column, column_width(self, characters))
        for column in (SourceColumn.OWNER, SourceColumn.EXPERIMENT):
            tree.setColumnHidden(column, self._controller.settings.destination.takes_tree)
        first = self.model.index(0, SourceColumn.NAME)
        tree.selectionModel().setCurrentIndex(first, QItemSelectionModel.SelectionFlag.Current)

    @Slot()
    def _show(self) -> None:
        """Show the progress of the scan."""
        fresh = [preview is None for preview in self._previews]
        known = [row.preview is None for row in self.model.rows]
        self.model.show(self._previews)
        if fresh != known:
            self._ask()
        notes = list_notes(self.model.rows, self._conflicts)
        extra = [self._failure, self._check_failure, self._find_obstacle()]
        self.notes.show_notes([*(note for note in extra if note), *notes])
        self.notes.setVisible(bool(self.notes.notes))
        self._title.setText(self._describe_rows())
        self._sum.setText(self._sum_up())
        self.upload.setEnabled(self._is_ready())

    def _describe_rows(self) -> str:
        """Return what is uploaded; what is not scanned yet counts as a folder."""
        wanted = [row for row in self.model.rows if row.wanted or row.preview is None]
        files = sum(row.preview is not None and row.preview.alone for row in wanted)
        folders = len(wanted) - files
        if not files:
            return self.tr("Upload %Ln folder(s)", "", folders)
        if not folders:
            return self.tr("Upload %Ln file(s)", "", files)
        named = translate("problems", "%Ln folder(s)", None, folders)
        return texts.filled(
            self.tr("Upload %1 and %2"), named, translate("problems", "%Ln file(s)", None, files)
        )

    @Slot(object)
    def _take_preview(self, progress: tuple[int, SourcePreview]) -> None:
        row, preview = progress
        self._previews[row] = preview

    @Slot(object)
    def _take_costs(self, costs: Costs | None) -> None:
        self._costs = costs
        self._show()

    @Slot(object)
    def _show_end(self, _nothing: object) -> None:
        self._timer.stop()
        self._show()

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self._failure = _describe(error)
        self._show_end(None)

    @Slot()
    def _ask(self) -> None:
        """Search for conflicts between the selected destinations."""
        sources = [row.source for row in self.model.rows if row.wanted]
        find = partial(source_service.find_conflicts, *self._place, sources)
        self._tasks.run(find, self._take_conflicts, self._fail_to_ask, latest=True)

    @Slot(object)
    def _take_conflicts(self, conflicts: list[Conflict]) -> None:
        self._conflicts, self._check_failure = conflicts, None
        self._show()

    @Slot(object)
    def _fail_to_ask(self, error: UploaderError) -> None:
        self._check_failure = _describe(error)
        self._show()

    @Slot()
    def _upload(self) -> None:
        wanted = [row for row in self.model.rows if row.wanted]
        for row in wanted:
            self._controller.add_source(row.source.path, *row.destination)
        self.added.emit([row.source.path for row in wanted])
        self._controller.open_page("overview")
        self.accept()

    def _find_obstacle(self) -> Note | None:
        """Return why nothing can be uploaded now, if that is so."""
        state = self._controller.state
        text = ""
        if state.phase in (Phase.LOADING, Phase.UNSET):
            text = self.tr("Nothing can be uploaded before the set-up is complete.")
        elif state.elsewhere:
            text = self.tr("Another upload is in progress. This one can start when it has ended.")
        elif state.phase is Phase.TESTING:
            text = self.tr("A speed test is in progress. The upload can start when it has ended.")
        return Note("problem", text) if text else None

    def _is_ready(self) -> bool:
        known = all(row.preview is not None for row in self.model.rows)
        wanted = [row for row in self.model.rows if row.wanted]
        problems = [it for it in list_notes(wanted, self._conflicts) if it.status == "problem"]
        return known and bool(wanted) and not problems and not self._find_obstacle()

    def _sum_up(self) -> str:
        """Show how much is to be sent, and how long that takes."""
        previews = [row.preview for row in self.model.rows if row.wanted and row.preview]
        files = sum(preview.wanted for preview in previews)
        size = sum(preview.wanted_bytes for preview in previews)
        complete = all(row.preview and row.preview.complete for row in self.model.rows)
        text = self.tr("%Ln file(s) to send, %1", "", files)
        if not complete:
            text = self.tr("Scanning: %Ln file(s) to send so far, %1", "", files)
        elif not files:
            text = self.tr("Nothing is to be sent.")
        elif self._costs:
            text = self.tr(
                "%Ln file(s) to send, %1: about %2 at the speed of the last run", "", files
            )
            seconds = round_estimate(self._costs.seconds_for(Work(size, files, files)))
            text = text.replace("%2", texts.span(seconds))
        return text.replace("%1", texts.size(size))


def _describe(error: UploaderError) -> Note:
    return Note("problem", texts.problem_text(error))


class _NameDelegate(QStyledItemDelegate):
    """Edits a name within the limits of the server."""

    def createEditor(
        self,
        parent: QWidget,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> QWidget:
        editor = super().createEditor(parent, option, index)
        title = index.model().headerData(index.column(), Qt.Orientation.Horizontal)
        editor.setAccessibleName(str(title))
        if isinstance(editor, QLineEdit):
            editor.setMaxLength(LONGEST_NAME)
        return editor


def scan_sources(
    settings: Settings,
    config: Path | None,
    paths: Sequence[bytes],
    report: Callable[[tuple[int, SourcePreview]], None],
    cancel: CancelSignal,
) -> None:
    """Report the contents of each path, by its index in `paths`; raises `UploaderError`."""
    row = 0
    for preview in source_service.preview_sources(settings, config, paths, cancel):
        report((row, preview))
        row += preview.complete
