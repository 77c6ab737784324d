"""The page Folders: the status of each dataset, by owner and experiment."""

import os
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QPoint, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractItemView, QStackedWidget, QTreeView, QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.core.queries import FolderGroup
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.ledger_query import LedgerQuery
from mydata_like.gui.pages.transfers_page import FOLDER
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.table_model import column_width, open_menu
from mydata_like.gui.tables import table_panel
from mydata_like.gui.tables.columns import BarDelegate
from mydata_like.gui.tables.folder_tree import PROGRESS, TOP, FolderTree, Parents, RunPhase
from mydata_like.gui.tables.queue_actions import HoldBackToast, QueueActions
from mydata_like.gui.tables.table_panel import ActionRow, StartButton, dataset_address, path_of
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import EmptyMessage, action, allow_action
from mydata_like.gui.where.get_dialog import GetDialog
from mydata_like.gui.where.receipt_saver import ReceiptSaver
from mydata_like.gui.where.status_tasks import GetOffer, find_offer
from mydata_like.gui.window_state import KeptColumns

translate = QCoreApplication.translate

MAX_EXPANDED = 20  # owners, or experiments of one, that are opened at once


class FoldersPage(Page):
    """A tree with counts, sizes and states, and actions on the folder of a dataset."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._controller = context.controller
        # What is above datasets is expanded once, so a branch that the user closes stays closed.
        self._expanded: set[Parents] = set()
        self._model = FolderTree(self)
        self._query = LedgerQuery(context, self, table_panel.list_levels, self._list_open)
        self._tree = QTreeView(self)
        self._message = EmptyMessage("folders", self)
        self._start = StartButton(context.controller, self)
        self._stack = QStackedWidget(self)
        self._files = action(self, "transfers", self.tr("Show files"), self._show_files)
        self._open = action(self, "folder", self.tr("Open folder"), self._open_folder)
        self._web = action(self, "server", self.tr("Open on server"), self._open_on_server)
        self._copy = action(self, "copy", self.tr("Copy path"), self._copy_path)
        self._saver = ReceiptSaver(context, self)
        save = self.tr("Save a receipt…")
        self._receipt = action(self, "export", save, self._save_receipt)
        self._get = action(self, "import", self.tr("Get it back…"), self._get_back)
        self._only = action(self, "start", self.tr("Only this one now"), self._start_only)
        self._queue = QueueActions(self._tree, HoldBackToast(context.controller))
        again = self.tr("Send after all")
        self._send_again = action(self, "retry", again, self._send_folder_again)
        self._send_again.setToolTip(
            self.tr("Send files of this folder that were left out or failed in this run")
        )
        self._queue_actions = (*self._queue.all, self._send_again)  # in a run of this window
        self._view_actions = (self._files, self._open, self._web, self._copy, self._receipt)
        self._actions = (self._only, *self._queue_actions, *self._view_actions, self._get)
        self._offer: GetOffer | None = None
        self._offer_query = LedgerQuery(context, self, find_offer, self._about_group)

        tree = self._tree
        tree.setModel(self._model)
        tree.setAccessibleName(self.tr("Folders"))
        tree.setUniformRowHeights(True)
        tree.setAlternatingRowColors(True)
        tree.setAllColumnsShowFocus(True)
        tree.setItemDelegateForColumn(PROGRESS, BarDelegate(tree))
        tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        tree.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        for number, characters in enumerate((44, 22, 18, 9, 11)):
            tree.setColumnWidth(number, column_width(tree, characters))
        KeptColumns("folders", tree.header(), context.memory).restore()

        self._message.add_button(self._start)
        self._stack.addWidget(tree)
        self._stack.addWidget(self._message)
        title = PageTitle(translate("pages", "Folders"), self)
        hint = self.tr("Select a dataset, or a folder in one, to list its files or to open it.")
        actions = ActionRow(self._actions, hint, self)
        page_layout(self, title, (self._stack, 1), actions, self._queue.toast)

        self._query.answered.connect(self._take)
        self._query.failed.connect(self._fail)
        self._model.wanted.connect(self._load_children)
        self._offer_query.answered.connect(self._take_offer)
        tree.selectionModel().currentChanged.connect(self._ask_for_offer)
        tree.selectionModel().currentChanged.connect(self._update_actions)
        tree.customContextMenuRequested.connect(self._show_menu)
        self._controller.run_changed.connect(self._on_run_changed)
        self._queue.send_next.triggered.connect(self._send_folder_next)
        self._queue.hold.triggered.connect(self._hold_folder_back)
        self._on_run_changed(self._controller.state)

    @property
    def _group(self) -> FolderGroup | None:
        """The selected dataset folder, or folder in a dataset."""
        group = self._model.group(self._tree.currentIndex())
        return group if group is not None and group.path is not None else None

    @Slot(object)
    def _on_run_changed(self, state: RunState) -> None:
        phase = RunPhase.AT_REST
        if state.at_work:
            phase = RunPhase.ACTIVE
        elif state.interrupted is not None or (state.last and state.last.problem):
            phase = RunPhase.INTERRUPTED
        self._model.set_phase(phase)
        self._update_actions()

    def _list_open(self) -> tuple[list[Parents]]:
        """Return all open branches."""
        return ([TOP, *(parents for parents in self._model.opened() if parents != TOP)],)

    @Slot(object)
    def _load_children(self, parents: Parents) -> None:
        if self._controller.loaded is not None:
            load = partial(table_panel.list_levels, *self._controller.place, [parents])
            self._context.tasks.run(load, self._take, self._fail)

    @Slot(object)
    def _take(self, levels: dict[Parents, list[FolderGroup]]) -> None:
        for parents, groups in levels.items():
            line = self._model.show(parents, groups)
            if groups and groups[0].path is None and parents not in self._expanded:
                self._expanded.add(parents)
                for row in range(len(groups) if len(groups) <= MAX_EXPANDED else 0):
                    self._tree.expand(self._model.index(row, 0, line))
        self._show_tree(self.tr("The folders appear here after the first run."))
        self._start.offer(offered=True)

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self._model.clear()
        self._expanded.clear()  # load and expand it again
        self._query.refresh()
        self._show_tree(texts.error_text(error))
        self._start.offer(offered=False)

    def _show_tree(self, empty_text: str) -> None:
        """Show the tree, or this text if it is empty."""
        self._message.setText(empty_text)
        self._stack.setCurrentIndex(0 if self._model.rowCount() else 1)
        self._update_actions()

    def _about_group(self) -> tuple[Path] | None:
        return (path_of(self._controller, self._path),) if self._group is not None else None

    @Slot()
    def _ask_for_offer(self) -> None:
        self._offer = None
        self._offer_query.ask_now()

    @Slot(object)
    def _take_offer(self, offer: GetOffer | None) -> None:
        self._offer = offer
        self._update_actions()

    @Slot()
    def _update_actions(self) -> None:
        allow_action(self._get, allowed=self._offer is not None)
        for one in self._view_actions:
            allow_action(one, allowed=self._group is not None)
        if self._controller.settings.destination.takes_tree:
            allow_action(self._web, allowed=False)
        state = self._controller.state
        for one in self._queue_actions:
            allow_action(one, allowed=self._group is not None and state.is_steerable)
        # Extra sources have separate runs, and a run always covers a whole dataset.
        whole = self._group is not None and self._group.dataset is not None
        inside = whole and not Path(os.fsdecode(self._path)).is_absolute()
        can_start = state.phase in (Phase.IDLE, Phase.BROKEN)
        allow_action(self._only, allowed=inside and can_start)

    @Slot(QPoint)
    def _show_menu(self, place: QPoint) -> None:
        if self._group is not None:
            open_menu(self._tree, place, self._actions)

    @property
    def _path(self) -> bytes:
        group = self._group
        return group.path or b"" if group is not None else b""

    @Slot()
    def _start_only(self) -> None:
        self._controller.start_only(self._path)

    @Slot()
    def _send_folder_next(self) -> None:
        self._controller.send_next([self._path])

    @Slot()
    def _hold_folder_back(self) -> None:
        self._queue.toast.hold_back([self._path])

    @Slot()
    def _send_folder_again(self) -> None:
        self._queue.toast.hide()
        self._controller.retry(self._path)

    @Slot()
    def _show_files(self) -> None:
        self._controller.open_page("transfers", FOLDER + os.fsdecode(self._path))

    @Slot()
    def _open_folder(self) -> None:
        self._controller.open_path(path_of(self._controller, self._path))

    @Slot()
    def _get_back(self) -> None:
        if self._offer is not None:
            GetDialog(self._context, self._offer, self).show()

    @Slot()
    def _open_on_server(self) -> None:
        find = partial(table_panel.find_dataset, *self._controller.place, self._path)
        self._context.tasks.run(find, self._open_dataset)

    @Slot(object)
    def _open_dataset(self, dataset: int | None) -> None:
        address = dataset_address(self._controller, dataset)
        self._controller.open_address(address if dataset else self._controller.settings.server.url)

    @Slot()
    def _save_receipt(self) -> None:
        self._saver.ask(path_of(self._controller, self._path))

    @Slot()
    def _copy_path(self) -> None:
        path = path_of(self._controller, self._path)
        QGuiApplication.clipboard().setText(texts.plain(bytes(path)))
