"""The page Transfers: active transfers, what is sent next, and the files of the run."""

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

from PySide6.QtCore import (
    QCoreApplication,
    QMimeData,
    QModelIndex,
    QObject,
    QPoint,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QHideEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QTableView, QWidget

from mydata_like.core.events import NextListed
from mydata_like.core.formatting import round_estimate
from mydata_like.core.queries import View
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.engine.send_order import WaitingFile
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.run_state import LiveView, Phase, RunState
from mydata_like.gui.table_model import (
    NO_PARENT,
    Column,
    Index,
    RowsModel,
    column_width,
    open_menu,
    style_table,
)
from mydata_like.gui.tables.columns import FRACTION, STATUS, BarDelegate, file_columns
from mydata_like.gui.tables.queue_actions import HoldBackToast, QueueActions
from mydata_like.gui.tables.table_panel import FilesPanel, action_bar, action_button
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE
from mydata_like.gui.theme.widgets import ElidedLabel, PlainLabel, action, allow_action
from mydata_like.gui.window_state import KeptSplitter, WindowState

translate = QCoreApplication.translate

Row = ActiveTransfer | WaitingFile
PROGRESS = 1  # the number of a column
ASK_AFTER = 1000  # milliseconds between two questions for the files that are sent next
WAITING_FILES = "application/x-mydata-like-waiting-files"  # paths, separated by NUL


class TransfersModel(RowsModel[Row]):
    """The active transfers, and below them the files that are sent next, in their order.

    The row of a transfer keeps its place until the transfer has ended. Files that wait can be
    dragged to another place among them: `order_wanted` reports the files that are to be sent first.
    """

    order_wanted = Signal(object)  # paths in their order

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        folder = Column("folder", "", _folder)
        left = Column("time-left", self.tr("Time left"), _if_active(self._time_left))
        attempt = Column("attempt", self.tr("Attempt"), _if_active(self._attempt))
        self.columns = (
            Column("name", self.tr("Name"), self._name, width=44, below=folder),
            Column("progress", self.tr("Progress"), _if_active(self._progress), width=18),
            Column("sent", self.tr("Sent"), self._sent, width=34, below=left),
            Column("message", self.tr("Message"), self._message, below=attempt),
        )

    @property
    def transfers(self) -> list[ActiveTransfer]:
        return [row for row in self.rows if isinstance(row, ActiveTransfer)]

    @property
    def queued(self) -> list[WaitingFile]:
        return [row for row in self.rows if isinstance(row, WaitingFile)]

    def show_transfers(self, transfers: Sequence[ActiveTransfer]) -> None:
        """Show these transfers, which are in the order of their numbers."""
        by_number = {transfer.number: transfer for transfer in transfers}
        for at, transfer in reversed([*enumerate(self.transfers)]):
            if transfer.number not in by_number:
                self._remove(at)
        count = len(self.transfers)
        self.rows[:count] = [by_number.pop(transfer.number) for transfer in self.transfers]
        if count:
            self.dataChanged.emit(self.index(0, 0), self.index(count - 1, len(self.columns) - 1))
        for at, transfer in enumerate(by_number.values(), start=count):
            self._insert(at, transfer)
        if by_number:
            self.show_queued(self.queued)

    def show_queued(self, files: Sequence[WaitingFile]) -> None:
        """Show these files below the transfers, except for those that are being sent."""
        transfers = self.transfers
        names = {transfer.name for transfer in transfers}
        wanted = [file for file in dict.fromkeys(files) if file.path not in names]
        kept = set(wanted)
        for at, row in reversed([*enumerate(self.rows)]):
            if isinstance(row, WaitingFile) and row not in kept:
                self._remove(at)
        shown = set(self.queued)
        for at, file in enumerate(wanted, start=len(transfers)):
            if file in shown:
                self._move_up(self.rows.index(file, at), at)
            else:
                self._insert(at, file)

    def _insert(self, at: int, row: Row) -> None:
        self.beginInsertRows(NO_PARENT, at, at)
        self.rows.insert(at, row)
        self.endInsertRows()

    def _remove(self, at: int) -> None:
        self.beginRemoveRows(NO_PARENT, at, at)
        del self.rows[at]
        self.endRemoveRows()

    def _move_up(self, before: int, after: int) -> None:
        """Move a row up, so that it stays selected."""
        if before > after:
            self.beginMoveRows(NO_PARENT, before, before, NO_PARENT, after)
            self.rows.insert(after, self.rows.pop(before))
            self.endMoveRows()

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role not in (FRACTION, STATUS):
            return super().data(index, role)
        row = self.rows[index.row()] if index.isValid() and index.column() == PROGRESS else None
        if not isinstance(row, ActiveTransfer):
            return None
        return _fraction(row) if role == FRACTION else "waiting" if row.problem else "working"

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Let files that wait be dragged, and dropped between rows, but not on one."""
        flags = super().flags(index)
        if not index.isValid():
            return flags | Qt.ItemFlag.ItemIsDropEnabled
        waits = isinstance(self.rows[index.row()], WaitingFile)
        return flags | Qt.ItemFlag.ItemIsDragEnabled if waits else flags

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [WAITING_FILES]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        rows = [self.rows[at] for at in sorted({index.row() for index in indexes})]
        mime = QMimeData()
        paths = [row.path for row in rows if isinstance(row, WaitingFile)]
        mime.setData(WAITING_FILES, b"\0".join(paths))
        return mime

    def canDropMimeData(
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        is_free = not parent.isValid() and (row < 0 or row >= len(self.transfers))
        return is_free and super().canDropMimeData(data, action, row, column, parent)

    def dropMimeData(
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        """Ask for the new order; the rows move when the engine has accepted it."""
        if not self.canDropMimeData(data, action, row, column, parent):
            return False
        paths = bytes(data.data(WAITING_FILES).data()).split(b"\0")
        self.ask_for_order(paths, (len(self.rows) if row < 0 else row) - len(self.transfers))
        return True

    def ask_for_order(self, paths: Collection[bytes], at: int) -> None:
        """Ask for these waiting files to be sent before the one that waits at this place now."""
        before = [file.path for file in self.queued]
        after = [path for path in before[:at] if path not in paths]
        after += [path for path in before if path in paths]
        after += [path for path in before[at:] if path not in paths]
        moved = [place for place, path in enumerate(before) if after[place] != path]
        if moved:
            self.order_wanted.emit(after[: moved[-1] + 1])

    def _name(self, row: Row) -> str:
        name = texts.plain(_path(row).rpartition(b"/")[2])
        if isinstance(row, WaitingFile) or row.files <= 1:
            return name
        more = self.tr("%1 and %Ln more", "files in a batch", row.files - 1)
        return more.replace("%1", name)

    def _progress(self, transfer: ActiveTransfer) -> str:
        return self.tr("%1 %").replace("%1", texts.count(int(_fraction(transfer) * 100)))

    def _sent(self, row: Row) -> str:
        if isinstance(row, WaitingFile):
            return texts.size(row.size)
        return texts.filled(self.tr("%1 of %2"), texts.size(row.done), texts.size(row.size))

    def _time_left(self, transfer: ActiveTransfer) -> str:
        if not transfer.rate:
            return ""
        seconds = round_estimate((transfer.size - transfer.done) / transfer.rate)
        text = self.tr("%1, about %2 left")
        return texts.filled(text, texts.rate(transfer.rate), texts.span(seconds))

    def _attempt(self, transfer: ActiveTransfer) -> str:
        if transfer.attempt == 1:
            return ""
        return self.tr("Attempt %1").replace("%1", texts.count(transfer.attempt))

    def _message(self, row: Row) -> str:
        if isinstance(row, WaitingFile):
            return self.tr("Waits for its turn")
        if row.problem:
            return texts.engine_text(row.problem.message)
        if row.number < 0:
            return self.tr("Comes back to this computer")
        return self.tr("Channel %1").replace("%1", texts.count(row.channel))


def _if_active(text: Callable[[ActiveTransfer], str]) -> Callable[[Row], str]:
    """Return a function that returns the text for a transfer, and none for a file that waits."""
    return lambda row: text(row) if isinstance(row, ActiveTransfer) else ""


def _path(row: Row) -> bytes:
    return row.path if isinstance(row, WaitingFile) else row.name


def _folder(row: Row) -> str:
    return texts.plain(_path(row).rpartition(b"/")[0])


def _fraction(transfer: ActiveTransfer) -> float:
    return transfer.done / transfer.size if transfer.size else 1.0


FOLDER = "folder:"  # prefix of a request for the files of a folder
SHARES = (1, 2)  # of the page's height: active transfers, files


class TransfersPage(Page):
    """The active transfers and what follows them on top, and all files below, the latest first."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller = context.controller
        self._transfers = TransfersModel(self)
        self._upper = QWidget(self)
        self._live = live = QTableView(self._upper)
        self._under_way = PlainLabel("", self._upper, heading=1)
        self._earlier = PlainLabel(self.tr("Earlier"), self, heading=1)
        self._message = ElidedLabel("", self)
        self._pause = action(self, "pause", self.tr("Pause all"), controller.pause)
        self._resume = action(self, "start", self.tr("Resume"), controller.resume)
        self._toast = HoldBackToast(controller)
        self._queue = QueueActions(live, self._toast)
        self._up = action(live, "", self.tr("Move up"), self._move_up)
        self._down = action(live, "", self.tr("Move down"), self._move_down)
        self._queue_bar = action_bar(self._queue.all, self)
        self._pause_button = action_button(self._pause, self)
        self._resume_button = action_button(self._resume, self)
        self._files = FilesPanel(context, "transfers", file_columns(), self, self._toast)
        self._ask_timer = QTimer(self, interval=ASK_AFTER)

        style_live_table(live, self._transfers)
        live.setAccessibleName(self.tr("Active transfers"))
        for one, key in ((self._up, Qt.Key.Key_Up), (self._down, Qt.Key.Key_Down)):
            one.setShortcut(QKeySequence(Qt.Modifier.ALT | key))
            one.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            live.addAction(one)
        self._files.table.setAccessibleName(self.tr("Files"))
        self._files.empty_text = self.tr("No file has been sent yet.")
        self._files.offer_start()
        live.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
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
        self._lay_out(context.memory)

        controller.live_changed.connect(self._show_live)
        controller.got_changed.connect(self._show_got)
        controller.run_changed.connect(self._show_state)
        controller.next_listed.connect(self._show_next)
        self._ask_timer.timeout.connect(controller.list_next)
        self._queue.send_next.triggered.connect(self._send_next)
        self._queue.hold.triggered.connect(self._hold_back)
        self._transfers.order_wanted.connect(self._send_first)
        live.selectionModel().selectionChanged.connect(self._update_queue_actions)
        live.customContextMenuRequested.connect(self._show_menu)
        self._show_state(controller.state)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask_timer.start()
        self._controller.list_next()

    def hideEvent(self, event: QHideEvent) -> None:
        """Ask no more, also while the window is only in the tray."""
        super().hideEvent(event)
        self._ask_timer.stop()

    def look_for(self, what: str) -> None:
        """Show the files with a state, or those of a folder."""
        if what.startswith(FOLDER):
            self._files.select_states(frozenset())
            folder = os.fsencode(what.removeprefix(FOLDER))
            only = self.tr("Only in %1").replace("%1", texts.plain(folder))
            self._files.show_view(View(folder=folder), only)
        else:
            self._files.select_states(frozenset({what} if what else ()))

    def _lay_out(self, memory: WindowState) -> None:
        title = PageTitle(translate("pages", "Transfers"), self)
        buttons = (self._queue_bar, self._pause_button, self._resume_button)
        head = hbox(title, (self._message, 1), *buttons, spacing=LARGE_SPACE)
        self.setTabOrder(self._resume_button, self._live)
        self.setTabOrder(self._live, self._files.field)
        upper, lower = self._upper, QWidget(self)
        vbox(self._under_way, (self._live, 1), inside=upper, margins=(0, 0, 0, SPACE))
        frameless(vbox(self._earlier, (self._files, 1), inside=lower))
        parts = (upper, lower)
        splitter = KeptSplitter("transfers", memory, parts, self, shares=SHARES)
        page_layout(self, head, (splitter, 1), self._toast)

    @Slot(object)
    def _show_live(self, live: LiveView) -> None:
        if self.isVisible():
            self._transfers.show_transfers([*self._controller.got, *live.transfers])
            self._update_queue_actions()

    @Slot()
    def _show_got(self) -> None:
        """Show what comes back, and the table for it; it may be the first or the last."""
        if self._upper.isHidden() == bool(self._controller.got):
            self._show_state(self._controller.state)
        self._show_live(self._controller.live)

    @Slot(object)
    def _show_next(self, listed: NextListed) -> None:
        if self.isVisible() and self._controller.state.ours:
            pairs = zip(listed.paths, listed.sizes, strict=False)
            self._transfers.show_queued([WaitingFile(*pair) for pair in pairs])
            self._update_queue_actions()

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        got = self._controller.got
        self._under_way.setText(self.tr("Files come back.") if got else "")
        if not state.at_work:
            text = "" if got else self.tr("No active transfers.")
        elif not state.ours:
            text = self.tr("Another program is uploading; its files appear below.")
        else:
            queued = max(0, state.sums.wanted - state.sums.sent)
            text = self.tr("%Ln file(s) still to be sent", "", queued)
            self._under_way.setText(text)
        self._message.set_full_text("" if state.ours else text)
        self._pause_button.setVisible(state.ours and state.phase is not Phase.PAUSED)
        self._pause.setEnabled(state.phase is Phase.RUNNING)
        self._resume_button.setVisible(state.phase is Phase.PAUSED)
        self._upper.setVisible(state.ours or bool(got))
        self._earlier.setVisible(state.ours or bool(got))
        self._files.show_unsent(shown=not state.ours)  # the list above has them
        self._queue_bar.setVisible(state.ours)
        if not state.ours:
            self._transfers.show_transfers(got)
            self._transfers.show_queued(())
        self._update_queue_actions()

    @property
    def _selected(self) -> list[Row]:
        """The selected rows of the run."""
        rows = self._live.selectionModel().selectedRows()
        found = [self._transfers.rows[at] for at in sorted(index.row() for index in rows)]
        return [it for it in found if isinstance(it, WaitingFile) or it.number >= 0]

    @property
    def _selected_waiting(self) -> list[bytes]:
        """The paths of the selected files that wait, in their order."""
        return [row.path for row in self._selected if isinstance(row, WaitingFile)]

    @Slot()
    def _update_queue_actions(self) -> None:
        steerable = self._controller.state.is_steerable
        allow_action(self._queue.hold, allowed=steerable and bool(self._selected))
        self._live.setDragEnabled(steerable)
        for one in (self._queue.send_next, self._up, self._down):
            allow_action(one, allowed=steerable and bool(self._selected_waiting))

    @Slot()
    def _send_next(self) -> None:
        self._send_first(self._selected_waiting)

    @Slot(object)
    def _send_first(self, paths: Sequence[bytes]) -> None:
        self._controller.send_next(paths)
        self._controller.list_next()

    @Slot()
    def _move_up(self) -> None:
        paths = self._selected_waiting
        self._transfers.ask_for_order(paths, max(0, self._place(paths[0]) - 1))

    @Slot()
    def _move_down(self) -> None:
        paths = self._selected_waiting
        self._transfers.ask_for_order(paths, self._place(paths[-1]) + 2)

    def _place(self, path: bytes) -> int:
        """Return the place of a file among those that wait."""
        return [file.path for file in self._transfers.queued].index(path)

    @Slot()
    def _hold_back(self) -> None:
        active = [row for row in self._selected if isinstance(row, ActiveTransfer)]
        self._toast.hold_back(self._selected_waiting, active)
        self._controller.list_next()

    @Slot(QPoint)
    def _show_menu(self, place: QPoint) -> None:
        if self._selected:
            open_menu(self._live, place, (*self._queue.all, self._up, self._down))


def style_live_table(table: QTableView, model: TransfersModel) -> None:
    """Style the small table of active transfers, in which files that wait can be dragged."""
    style_table(table, 2)
    table.setModel(model)
    table.setItemDelegateForColumn(PROGRESS, BarDelegate(table))
    for number, column in enumerate(model.columns):
        table.setColumnWidth(number, column_width(table, column.width))
    table.horizontalHeader().setStretchLastSection(True)
    table.horizontalHeader().hide()
    table.setMinimumHeight(table.fontMetrics().height() * 6)
    table.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
    table.setDragDropOverwriteMode(False)
