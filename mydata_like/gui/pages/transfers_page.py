"""The page Transfers: active transfers and the files of the run."""

import os
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Slot,
)
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QHBoxLayout,
    QSizePolicy,
    QSplitter,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.formatting import round_estimate
from mydata_like.core.queries import View
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.base import AppContext, Page
from mydata_like.gui.run_state import LiveView, Phase, RunState
from mydata_like.gui.tables.columns import FRACTION, STATUS, BarDelegate, file_columns
from mydata_like.gui.tables.table_panel import RowActions, TablePanel, action_button
from mydata_like.gui.tables.table_view import style_table
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import PlainLabel, icon
from mydata_like.gui.window_state import KeptColumns, KeptHalves

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
PROGRESS = 1  # the number of the column with the bar


class TransfersModel(QAbstractTableModel):
    """The active transfers; a row keeps its place until its transfer has ended."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.transfers: list[ActiveTransfer] = []
        self._columns: list[tuple[str, Callable[[ActiveTransfer], str]]] = [
            (self.tr("Name"), self._name),
            (self.tr("Progress"), self._progress),
            (self.tr("Sent"), self._sent),
            (self.tr("Time left"), self._time_left),
            (self.tr("Speed"), lambda transfer: texts.rate(transfer.rate)),
            (self.tr("Channel"), lambda transfer: texts.count(transfer.channel)),
            (self.tr("Attempt"), lambda transfer: texts.count(transfer.attempt)),
            (self.tr("Message"), self._message),
        ]

    def show(self, transfers: tuple[ActiveTransfer, ...]) -> None:
        """Show these transfers, which are in the order of their numbers."""
        by_number = {transfer.number: transfer for transfer in transfers}
        for at in reversed(range(len(self.transfers))):
            if self.transfers[at].number not in by_number:
                self.beginRemoveRows(QModelIndex(), at, at)
                del self.transfers[at]
                self.endRemoveRows()
        self.transfers[:] = [by_number.pop(transfer.number) for transfer in self.transfers]
        if self.transfers:
            last = self.index(len(self.transfers) - 1, len(self._columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)
        if by_number:
            count = len(self.transfers)
            self.beginInsertRows(QModelIndex(), count, count + len(by_number) - 1)
            self.transfers.extend(by_number.values())
            self.endInsertRows()

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.transfers)

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section][0]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        transfer, column = self.transfers[index.row()], index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._columns[column][1](transfer)
        if column == PROGRESS and role == FRACTION:
            return _fraction(transfer)
        if column == PROGRESS and role == STATUS:
            return "waiting" if transfer.problem else "working"
        return None

    def _name(self, transfer: ActiveTransfer) -> str:
        name = texts.plain(transfer.name)
        if transfer.files <= 1:
            return name
        more = self.tr("%1 and %Ln more", "files in a batch", transfer.files - 1)
        return more.replace("%1", name)

    def _progress(self, transfer: ActiveTransfer) -> str:
        return self.tr("%1 %").replace("%1", texts.count(int(_fraction(transfer) * 100)))

    def _sent(self, transfer: ActiveTransfer) -> str:
        text = self.tr("%1 of %2").replace("%1", texts.size(transfer.done))
        return text.replace("%2", texts.size(transfer.size))

    def _time_left(self, transfer: ActiveTransfer) -> str:
        if not transfer.rate:
            return ""
        seconds = (transfer.size - transfer.done) / transfer.rate
        return self.tr("about %1").replace("%1", texts.span(round_estimate(seconds)))

    def _message(self, transfer: ActiveTransfer) -> str:
        return texts.plain(transfer.problem.message) if transfer.problem else ""


def _fraction(transfer: ActiveTransfer) -> float:
    return transfer.done / transfer.size if transfer.size else 1.0


FOLDER = "folder:"  # prefix of a request for the files of a folder
LIVE_SHARE, FILES_SHARE = 1, 3  # of the page's height


class TransfersPage(Page):
    """The active transfers on top, and all files below, the latest first."""

    def __init__(self, desk: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._memory = desk.memory
        self._transfers = TransfersModel(self)
        self._live_area = QWidget(self)
        self._live = QTableView(self)
        self._message = PlainLabel("", self)
        self._pause = QAction(icon("pause"), self.tr("Pause all"), self)
        self._resume = QAction(icon("start"), self.tr("Resume"), self)
        self._cancel = QAction(icon("cancel"), self.tr("Cancel"), self)
        self._cancel_button = action_button(self._cancel, self)
        self._pause_button = action_button(self._pause, self)
        self._resume_button = action_button(self._resume, self)
        self._files = TablePanel(desk, "transfers", file_columns(), self)
        self._actions = RowActions(desk.controller, self)
        self._set_up()
        self._lay_out()
        self._connect()
        self._show_state(desk.controller.state)
        self._choose_transfer()

    def show_page(self) -> None:
        self._files.activate()

    def hide_page(self) -> None:
        self._files.deactivate()

    def look_for(self, what: str) -> None:
        """Show the files with a state, or those of a folder."""
        if what.startswith(FOLDER):
            self._files.select_states(frozenset())
            self._show_folder(os.fsencode(what.removeprefix(FOLDER)))
        else:
            self._files.select_states(frozenset({what} if what else ()))

    def _set_up(self) -> None:
        style_live_table(self._live, self._transfers)
        KeptColumns("active-transfers", self._live.horizontalHeader(), self._memory).restore()
        self._live.setAccessibleName(self.tr("Active transfers"))
        self._files.table.setAccessibleName(self.tr("Files"))
        self._files.empty_text = self.tr("No file has been sent yet.")
        self._cancel.setToolTip(self.tr("Skip the selected files until the next run"))
        in_progress = frozenset({"staged", "registered", "repaired"})
        self._files.add_state_filters(
            [
                (self.tr("All files"), frozenset()),
                (self.tr("Not sent yet"), frozenset({"found"})),
                (self.tr("In progress"), in_progress),
                (self.tr("Verified"), frozenset({"verified"})),
                (self.tr("Waiting"), frozenset({"waiting"})),
                (self.tr("Failed"), frozenset({"failed"})),
                (self.tr("Left out"), frozenset({"skipped"})),
            ]
        )

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._message, 1)
        for button in (self._cancel_button, self._pause_button, self._resume_button):
            head.addWidget(button)
        above = QVBoxLayout(self._live_area)
        above.setContentsMargins(0, 0, 0, 0)
        above.addLayout(head)
        above.addWidget(self._live, 1)
        self.setTabOrder(self._resume_button, self._live)
        self.setTabOrder(self._live, self._files.field)
        lower = QWidget(self)
        below = QVBoxLayout(lower)
        below.setContentsMargins(0, self.fontMetrics().height() // 2, 0, 0)
        below.addWidget(self._files, 1)
        below.addWidget(self._actions.make_buttons(lower))
        splitter = QSplitter(Qt.Orientation.Vertical, self)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self._live_area)
        splitter.addWidget(lower)
        splitter.setStretchFactor(0, LIVE_SHARE)
        splitter.setStretchFactor(1, FILES_SHARE)
        KeptHalves("transfers", splitter, self._memory)
        QVBoxLayout(self).addWidget(splitter)

    def _connect(self) -> None:
        controller = self._controller
        controller.live_changed.connect(self._show_live)
        controller.run_changed.connect(self._show_state)
        self._pause.triggered.connect(controller.pause)
        self._resume.triggered.connect(controller.resume)
        self._cancel.triggered.connect(self._cancel_transfers)
        self._live.selectionModel().selectionChanged.connect(self._choose_transfer)
        self._files.selected.connect(self._choose_files)
        self._files.table.menu_wanted.connect(self._actions.add_to_menu)
        self._files.table.chosen.connect(self._actions.choose)
        self._actions.wanted.connect(self.wanted)

    def _show_folder(self, folder: bytes) -> None:
        only = self.tr("Only in %1").replace("%1", texts.plain(folder))
        self._files.show_view(View(folder=folder), only)

    @Slot(object)
    def _show_live(self, live: LiveView) -> None:
        if self.isVisible():
            self._transfers.show(live.transfers)
            self._choose_transfer()

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        self._message.setText(self._describe_state(state))
        self._pause_button.setVisible(state.ours and state.phase is not Phase.PAUSED)
        self._pause.setEnabled(state.phase is Phase.RUNNING)
        self._resume_button.setVisible(state.phase is Phase.PAUSED)
        self._live.setVisible(state.ours)
        policy = QSizePolicy.Policy.Preferred if state.ours else QSizePolicy.Policy.Maximum
        self._live_area.setSizePolicy(QSizePolicy.Policy.Preferred, policy)
        self._cancel_button.setVisible(state.ours)
        if not state.ours:
            self._transfers.show(())

    def _describe_state(self, state: RunState) -> str:
        if not state.at_work:
            return self.tr("No active transfers.")
        if not state.ours:
            return self.tr("Another program is uploading; its files appear below.")
        queued = max(0, state.sums.wanted - state.sums.sent)
        return self.tr("%Ln file(s) still to be sent", "", queued)

    @Slot()
    def _choose_transfer(self) -> None:
        self._cancel.setEnabled(self._live.selectionModel().hasSelection())

    @Slot()
    def _cancel_transfers(self) -> None:
        for index in self._live.selectionModel().selectedRows():
            number = self._transfers.transfers[index.row()].number
            self._controller.cancel_transfer(number)

    @Slot()
    def _choose_files(self) -> None:
        self._actions.show_rows(self._files.table.rows())


def style_live_table(table: QTableView, model: TransfersModel) -> None:
    """Style the small table of active transfers."""
    style_table(table)
    table.setModel(model)
    bars = BarDelegate(table)
    table.setItemDelegateForColumn(PROGRESS, bars)
    width = table.fontMetrics().averageCharWidth()
    for number, characters in enumerate((36, 13, 24, 13, 12, 10, 10)):
        table.setColumnWidth(number, width * characters)
    table.horizontalHeader().setStretchLastSection(True)
    table.verticalHeader().setDefaultSectionSize(round(table.fontMetrics().height() * 1.9))
    table.setMinimumHeight(round(table.fontMetrics().height() * 8))
