"""The page Transfers: active transfers, what is sent next, and the files of the run."""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from PySide6.QtCore import (
    QCoreApplication,
    QMimeData,
    QModelIndex,
    QObject,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QHideEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QWidget

from mydata_like.core.events import NextListed
from mydata_like.core.formatting import round_estimate
from mydata_like.core.queries import FileRow, View
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.engine.user_overrides import CANCELLED
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.run_state import LiveView, Phase, RunState
from mydata_like.gui.table_model import NO_PARENT, Column, Index
from mydata_like.gui.tables.columns import FRACTION, BarDelegate, file_columns, file_of
from mydata_like.gui.tables.queue_actions import HoldBackToast
from mydata_like.gui.tables.table_panel import QUEUED, FilesPanel, action_button
from mydata_like.gui.tables.table_view import Heading, Open, WindowedModel
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.layouts import hbox
from mydata_like.gui.theme.metrics import LARGE_SPACE
from mydata_like.gui.theme.widgets import ElidedLabel, RowIcon, action, allow_action

translate = QCoreApplication.translate

Live = FileRow | ActiveTransfer | Heading
KNOWN_FROM = 0.01  # the share of a transfer from which its rate tells something
FEW = 5  # files that wait are shown at first
ASK_AFTER = 1000  # milliseconds between two questions for the files that are sent next
WAITING_FILES = "application/x-mydata-like-waiting-files"  # paths, separated by NUL
IN_PROGRESS = frozenset({"staged", "registered", "repaired"})  # states
FOLDER = "folder:"  # prefix of a request for the files of a folder


class TransfersModel(WindowedModel):
    """The active transfers, the files that are sent next, in their order, and all other files.

    The row of a transfer keeps its place until the transfer has ended. Files that wait can be
    dragged to another place among them: `order_wanted` reports the files that are to be sent first.
    """

    order_wanted = Signal(object)  # paths in their order

    def __init__(self, tasks: Tasks, parent: QObject | None = None) -> None:
        columns = {column.name: _of_first(column) for column in file_columns()}
        name, state, at, why = (columns[it] for it in ("name", "state", "at", "message"))
        columns["name"] = name._replace(text=_either(self._name, name.text))
        columns["state"] = state._replace(
            text=_either(self._state, state.text),
            mark=_either(_mark, state.mark),
            below=why._replace(text=_either(self._message, why.text)),
        )
        rate = Column("rate", "", _either(self._rate))
        columns["at"] = at._replace(text=_either(self._time_left, at.text), below=rate)
        super().__init__([*columns.values()], tasks, parent)
        self.transfers: Sequence[ActiveTransfer] = ()
        self._listed: Sequence[FileRow] = ()  # those that are sent next
        self._held: Sequence[FileRow] = ()
        self._most: int | None = FEW  # files that wait are shown, or all

    @property
    def queued(self) -> list[FileRow]:
        """The files that wait, without those that are being sent."""
        names = {transfer.name for transfer in self.transfers}
        return [file for file in self._listed if file.key not in names]

    def show_transfers(self, transfers: Sequence[ActiveTransfer]) -> None:
        """Show these transfers, which are in the order of their numbers."""
        self.transfers = transfers
        self._arrange()

    def show_queued(self, files: Sequence[FileRow], held: Sequence[FileRow] = ()) -> None:
        """Show these files that are sent next, and those that the user holds back."""
        self._listed, self._held = list(dict.fromkeys(files)), held
        self._arrange()

    @Slot(object)
    def open_link(self, row: object) -> None:
        """Show all files that wait, if this row is the link to them."""
        if isinstance(row, Heading) and row.link:
            self._most = None
            self._arrange()

    def show(self, open_listing: Open, view: View) -> None:
        super().show(open_listing, view)
        self._arrange()

    def _arrange(self) -> None:
        """Show what the filters allow in sections, with a heading above each."""
        states = self.view.states
        active = [it for it in self.transfers if self._passes(it.name)]
        queued = [] if states else [it for it in self.queued if self._passes(it.key)]
        held = [it for it in self._held if self._passes(it.key)]
        rows: list[Live] = []
        if active and (not states or states & IN_PROGRESS):
            rows += [Heading(self.tr("Under way")), *active]
        if queued:
            rows += [Heading(self.tr("Waiting")), *queued[: self._most]]
            if self._most is not None and len(queued) > self._most:
                text = self.tr("Show %Ln more", "files that wait", len(queued) - self._most)
                rows.append(Heading(text, link=True))
        if held and (not states or "waiting" in states):
            rows += [Heading(self.tr("Held back")), *held]
        if rows and self.rowCount() > self.top:
            rows.append(Heading(self.tr("Earlier")))
        self._show_above(rows)

    def _passes(self, path: bytes) -> bool:
        """Return whether the filters of names and folders allow a file."""
        folder, name = self.view.folder, texts.plain(path).casefold()
        inside = not folder or path.startswith(folder + b"/")
        return inside and self.view.text.casefold() in name

    def _show_above(self, rows: Sequence[Live]) -> None:
        """Show these rows above those of the ledger; those that stay are still selected."""
        wanted, count = set(map(_key, rows)), len(self.above)
        gone = [at for at, row in enumerate(self.above) if _key(row) not in wanted]
        for first, last in reversed(_ranges(gone)):
            self.beginRemoveRows(NO_PARENT, first, last)
            del self.above[first : last + 1]
            self.endRemoveRows()
        shown = set(map(_key, self.above))
        for first, last in _ranges([at for at, row in enumerate(rows) if _key(row) not in shown]):
            # What stays is above and below in the same order, or moves up afterwards.
            self.beginInsertRows(NO_PARENT, first, last)
            self.above[first:first] = rows[first : last + 1]
            self.endInsertRows()
        for at, row in enumerate(rows):
            before = next(it for it in range(at, len(rows)) if _key(self.above[it]) == _key(row))
            if before > at:
                self.beginMoveRows(NO_PARENT, before, before, NO_PARENT, at)
                self.above.insert(at, self.above.pop(before))
                self.endMoveRows()
        self.above[:] = rows
        if rows:
            last_cell = self.index(len(rows) - 1, len(self.columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last_cell)
        if count != len(rows):
            self.status_changed.emit()

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self._find_live(index)
        if isinstance(row, Heading):
            return row.data(index.column(), role)
        if role != FRACTION or not isinstance(row, ActiveTransfer) or row.problem:
            return super().data(index, role)
        return _fraction(row) if self.columns[index.column()].name == "state" else None

    def _find_live(self, index: Index) -> Live | None:
        return self.above[index.row()] if index.isValid() and index.row() < self.top else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Let files that wait be dragged, and dropped between rows; headings are passed over."""
        flags, row = super().flags(index), self._find_live(index)
        if isinstance(row, Heading):
            return Qt.ItemFlag.ItemIsEnabled if row.link else Qt.ItemFlag.NoItemFlags
        if not index.isValid():
            return flags | Qt.ItemFlag.ItemIsDropEnabled
        return flags | Qt.ItemFlag.ItemIsDragEnabled if row and _waits(row) else flags

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [WAITING_FILES]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        rows = [self.above[at] for at in sorted({it.row() for it in indexes}) if at < self.top]
        mime = QMimeData()
        mime.setData(WAITING_FILES, b"\0".join(row.key for row in rows if _waits(row)))
        return mime

    def canDropMimeData(
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        waiting = self._waiting
        is_free = not parent.isValid() and (row < 0 or waiting.start <= row <= waiting.stop)
        return is_free and super().canDropMimeData(data, action, row, column, parent)

    def dropMimeData(
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        """Ask for the new order; the rows move when the engine has accepted it."""
        waiting = self._waiting
        if not waiting or not self.canDropMimeData(data, action, row, column, parent):
            return False
        is_last = row < 0 or row == waiting.stop
        after = self.above[waiting.stop - 1 if is_last else row].key
        paths = bytes(data.data(WAITING_FILES).data()).split(b"\0")
        self.ask_for_order(paths, [it.key for it in self.queued].index(after) + is_last)
        return True

    @property
    def _waiting(self) -> range:
        """The numbers of the rows of files that wait."""
        rows = [at for at, row in enumerate(self.above) if _waits(row)]
        return range(rows[0], rows[-1] + 1) if rows else range(0)

    def ask_for_order(self, paths: Collection[bytes], at: int) -> None:
        """Ask for these waiting files to be sent before the one that waits at this place now."""
        before = [file.key for file in self.queued]
        after = [path for path in before[:at] if path not in paths]
        after += [path for path in before if path in paths]
        after += [path for path in before[at:] if path not in paths]
        moved = [place for place, path in enumerate(before) if after[place] != path]
        if moved:
            self.order_wanted.emit(after[: moved[-1] + 1])

    def _name(self, transfer: ActiveTransfer) -> str:
        name = texts.plain(transfer.name.rpartition(b"/")[2])
        if transfer.files <= 1:
            return name
        more = self.tr("%1 and %Ln more", "files in a batch", transfer.files - 1)
        return more.replace("%1", name)

    def _state(self, transfer: ActiveTransfer) -> str:
        word = self.tr("Sending") if transfer.number >= 0 else self.tr("Coming back")
        if transfer.attempt > 1:
            word = self.tr("Attempt %1").replace("%1", texts.count(transfer.attempt))
        done, size = texts.size(transfer.done), texts.size(transfer.size)
        return texts.filled(self.tr("%1: %2 of %3"), word, done, size)

    def _message(self, transfer: ActiveTransfer) -> str:
        if transfer.problem:
            return texts.engine_text(transfer.problem.message)
        return self.tr("%1 %").replace("%1", texts.count(int(_fraction(transfer) * 100)))

    def _time_left(self, transfer: ActiveTransfer) -> str:
        if not self._rate(transfer):
            return ""
        seconds = round_estimate((transfer.size - transfer.done) / transfer.rate)
        return self.tr("about %1 left").replace("%1", texts.span(seconds))

    def _rate(self, transfer: ActiveTransfer) -> str:
        known = transfer.rate and transfer.share >= KNOWN_FROM
        return texts.rate(transfer.rate) if known else ""


def _of_first(column: Column) -> Column:
    """Return a column of files that describes the first file of a transfer, too."""
    text, tip, below = column.text, column.tip, column.below
    return column._replace(
        text=lambda row: text(file_of(row)),
        tip=tip and (lambda row: tip(file_of(row))),
        below=below and _of_first(below),
    )


def _either(
    of_transfer: Callable[[ActiveTransfer], Any], of_file: Callable[[Any], Any] | None = None
) -> Callable[[Any], Any]:
    """Return a function of a row of either kind; of a file, it returns no text by default."""
    use = of_file or (lambda _: "")
    return lambda row: of_transfer(row) if isinstance(row, ActiveTransfer) else use(row)


def _mark(transfer: ActiveTransfer) -> RowIcon:
    shape: Status = "waiting" if transfer.problem else "working"
    return RowIcon("", shape, shape)


def _key(row: Live) -> object:
    """Return what stays the same of a row."""
    return row.number if isinstance(row, ActiveTransfer) else row[0]


def _waits(row: Live) -> bool:
    return isinstance(row, FileRow) and row.state == QUEUED


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last of all numbers without a gap between them."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def _fraction(transfer: ActiveTransfer) -> float:
    return transfer.done / transfer.size if transfer.size else 1.0


class TransfersPage(Page):
    """All files in one list: those that are sent, that wait, and what became of the others."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller = context.controller
        self._transfers = TransfersModel(context.tasks, self)
        self._message = ElidedLabel("", self)
        self._pause = action(self, "pause", self.tr("Pause all"), controller.pause)
        self._resume = action(self, "start", self.tr("Resume"), controller.resume)
        self._toast = HoldBackToast(controller)
        self._pause_button = action_button(self._pause, self)
        self._resume_button = action_button(self._resume, self)
        self._files = FilesPanel(context, "transfers", self._transfers, self, self._toast)
        self._table = table = self._files.table
        self._up = action(table, "", self.tr("Move up"), self._move_up)
        self._down = action(table, "", self.tr("Move down"), self._move_down)
        self._ask_timer = QTimer(self, interval=ASK_AFTER)

        for one, key in ((self._up, Qt.Key.Key_Up), (self._down, Qt.Key.Key_Down)):
            one.setShortcut(QKeySequence(Qt.Modifier.ALT | key))
            one.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            table.addAction(one)
        table.row_actions = (*self._files.row_actions.all, self._up, self._down)
        table.setAccessibleName(self.tr("Files"))
        names = [column.name for column in self._transfers.columns]
        table.setItemDelegateForColumn(names.index("state"), BarDelegate(table))
        table.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        table.setDragDropOverwriteMode(False)
        self._files.empty_text = self.tr("No file has been sent yet.")
        self._files.offer_start()
        self._files.add_state_filters(
            [
                (self.tr("All files"), frozenset()),
                (self.tr("Not sent yet"), frozenset({QUEUED})),
                (self.tr("In progress"), IN_PROGRESS),
                (self.tr("Verified"), frozenset({"verified"})),
                (self.tr("Waiting"), frozenset({"waiting"})),
                (self.tr("Failed"), frozenset({"failed"})),
                (self.tr("Left out"), frozenset({"skipped"})),
            ]
        )
        title = PageTitle(translate("pages", "Transfers"), self)
        buttons = (self._pause_button, self._resume_button)
        head = hbox(title, (self._message, 1), *buttons, spacing=LARGE_SPACE)
        self.setTabOrder(self._resume_button, self._files.field)
        page_layout(self, head, (self._files, 1), self._toast)

        controller.live_changed.connect(self._show_live)
        controller.got_changed.connect(self._show_got)
        controller.run_changed.connect(self._show_state)
        controller.next_listed.connect(self._show_next)
        self._ask_timer.timeout.connect(controller.list_next)
        self._transfers.order_wanted.connect(self._send_first)
        self._files.selected.connect(self._update_actions)
        table.clicked.connect(self._open_link)
        table.chosen.connect(self._transfers.open_link)
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

    @Slot(object)
    def _show_live(self, live: LiveView) -> None:
        if self.isVisible():
            self._transfers.show_transfers([*self._controller.got, *live.transfers])

    @Slot()
    def _show_got(self) -> None:
        """Show what comes back; it may be the first or the last."""
        self._show_state(self._controller.state)
        self._show_live(self._controller.live)

    @Slot(object)
    def _show_next(self, listed: NextListed) -> None:
        if self.isVisible() and self._controller.state.ours:
            pairs = [*zip(listed.paths, listed.sizes, strict=False)]
            last = len(pairs) - listed.held
            queued = [FileRow(path, size, QUEUED, None) for path, size in pairs[:last]]
            problem = (CANCELLED.code, CANCELLED.message, CANCELLED.hint)
            held = [FileRow(path, size, "waiting", None, *problem) for path, size in pairs[last:]]
            self._transfers.show_queued(queued, held)

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        got = self._controller.got
        if state.ours:
            queued = max(0, state.sums.wanted - state.sums.sent)
            text = self.tr("%Ln file(s) still to be sent", "", queued)
        elif state.at_work:
            text = self.tr("Another program is uploading; its files appear below.")
        else:
            text = self.tr("Files come back.") if got else self.tr("No active transfers.")
        self._message.set_full_text(text)
        self._pause_button.setVisible(state.ours and state.phase is not Phase.PAUSED)
        self._pause.setEnabled(state.phase is Phase.RUNNING)
        self._resume_button.setVisible(state.phase is Phase.PAUSED)
        self._files.hide_unsent(state.began if state.ours else None)  # the rows above have it
        if not state.ours:
            self._transfers.show_transfers(got)
            self._transfers.show_queued(())
        self._update_actions()

    @property
    def _selected_waiting(self) -> list[bytes]:
        """The paths of the selected files that wait, in their order."""
        return [row.key for row in self._table.rows() if row in self._transfers.queued]

    @Slot()
    def _update_actions(self) -> None:
        steerable = self._controller.state.is_steerable
        self._table.setDragEnabled(steerable)
        waits = steerable and bool(self._selected_waiting)
        for one in (self._up, self._down):
            allow_action(one, allowed=waits)

    @Slot(object)
    def _send_first(self, paths: Sequence[bytes]) -> None:
        self._toast.hide()
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
        return [file.key for file in self._transfers.queued].index(path)

    @Slot(QModelIndex)
    def _open_link(self, index: QModelIndex) -> None:
        self._transfers.open_link(self._transfers.row(index.row()))
