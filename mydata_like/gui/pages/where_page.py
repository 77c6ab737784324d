"""The page Where: the status of a file or folder."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QModelIndex, QObject, Qt, QTimer, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QPushButton,
    QStackedWidget,
    QTableView,
    QWidget,
)

from mydata_like.core.errors import UploaderError
from mydata_like.core.file_status import PathStatus, Suggestion
from mydata_like.core.parsing import moment_of
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.ledger_query import LedgerQuery
from mydata_like.gui.table_model import Column, RowsModel, set_up_table
from mydata_like.gui.tables.columns import file_columns
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import hbox, scrolled
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.widgets import (
    EmptyMessage,
    PathLineEdit,
    PlainLabel,
    RowIcon,
    choose_file,
    choose_folder,
    icon,
    list_marks,
    mark_of,
)
from mydata_like.gui.where import status_tasks
from mydata_like.gui.where.free_dialog import FreeDialog
from mydata_like.gui.where.get_dialog import GetDialog
from mydata_like.gui.where.receipt_saver import ReceiptSaver
from mydata_like.gui.where.status_tasks import (
    CleanupProgress,
    CleanupResults,
    GetOffer,
    StatusAnswer,
)
from mydata_like.gui.where.status_view import StatusText, StatusView, describe_check
from mydata_like.gui.window_state import KeptSplitter

translate = QCoreApplication.translate


class SuggestionsModel(RowsModel[Suggestion]):
    """The files and folders whose paths contain the search text, with what tells them apart."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        name, state, size, *_ = file_columns()
        changed = Column("changed", self.tr("Changed"), _describe_time, width=24)
        state = state._replace(
            text=lambda it: self._mark(it).word, mark=self._mark, tip=name.tip, below=None
        )
        self.columns = (name, size, changed, state)

    def _mark(self, found: Suggestion) -> RowIcon:
        if found.folder:
            return RowIcon(self.tr("Folder"), "folder")
        return mark_of(found.state) or list_marks()["waiting"]


class SuggestionsTable(QTableView):
    """The table of what was found; paths are elided at the left, where they are most alike."""

    def __init__(self, model: SuggestionsModel, parent: QWidget) -> None:
        super().__init__(parent)
        set_up_table(self, model, self.tr("Files and folders of this name"))
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideLeft)
        self.horizontalHeader().setStretchLastSection(True)


def _describe_time(found: Suggestion) -> str:
    modified = moment_of(found.modified_ns // 10**9) if found.modified_ns else None
    return texts.moment(modified) if modified else ""


CHANGED = 2  # the number of a column
SEARCH_DELAY = 200  # milliseconds after the last key


class WherePage(Page):
    """A search by name or by a dropped file, with the status of the file and its actions."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._controller = context.controller
        self._text = PathLineEdit(self)
        self._file = QPushButton(icon("file"), self.tr("Choose a file…"), self)
        self._folder = QPushButton(icon("folder"), self.tr("Choose a folder…"), self)
        self._suggestions = SuggestionsModel(self)
        self._list = SuggestionsTable(self._suggestions, self)
        self._view = StatusView(self)
        self._saver = ReceiptSaver(context, self)
        self._message = EmptyMessage("where", self)
        self._hint = PlainLabel("", self, wrap=True, quiet=True)  # the message, above a list
        self._stack = QStackedWidget(self)
        self._timer = QTimer(self, singleShot=True, interval=SEARCH_DELAY)
        self._path: Path | None = None  # whose status is shown, or shown when it is known
        self._status_known = False
        self._status_query = LedgerQuery(context, self, status_tasks.load_status, self._about)
        self._offer: GetOffer | None = None
        self._offer_query = LedgerQuery(context, self, status_tasks.find_offer, self._about_shown)
        self._recent: Sequence[Suggestion] = ()
        self._recent_query = LedgerQuery(context, self, status_tasks.find_recent)
        self._check_task = BackgroundTask()
        self._query = ""  # the text of the field, which shows hidden characters as escapes
        self._search_task = BackgroundTask()
        self._superseded = False  # the user has chosen a file during the search

        self.setAcceptDrops(True)
        self._text.setPlaceholderText(self.tr("Part of a name, or a whole path"))
        self._text.setAccessibleName(self.tr("Name or path"))
        self._stack.addWidget(self._message)
        self._stack.addWidget(scrolled(self._view, self))
        parts, line = (self._list, self._stack), self.fontMetrics().height()
        sizes = (line * 14, line * 26)
        splitter = KeptSplitter(
            "where/found", context.memory, parts, self, shares=(1, 1), sizes=sizes
        )
        title = PageTitle(translate("pages", "Where is my data?"), self)
        head = hbox((self._text, 1), self._file, self._folder, spacing=SPACE)
        page_layout(self, title, head, self._hint, (splitter, 1))
        self._list.hide()

        self._text.textEdited.connect(self._delay_search)
        self._text.returnPressed.connect(self._search)
        self._timer.timeout.connect(self._search)
        self._file.clicked.connect(self._choose_file)
        self._folder.clicked.connect(self._choose_folder)
        self._list.selectionModel().currentChanged.connect(self._choose)
        self._view.card.check.clicked.connect(self._check)
        self._view.card.free.clicked.connect(self._free)
        self._view.get.clicked.connect(self._get)
        self._view.folder.clicked.connect(self._open_folder)
        self._view.receipt.clicked.connect(self._save_receipt)
        self._view.page.clicked.connect(self._open_page)
        self._status_query.answered.connect(self._take_status)
        self._status_query.failed.connect(self._fail_status)
        self._offer_query.answered.connect(self._take_offer)
        self._recent_query.answered.connect(self._take_recent)

        self._show_nothing()

    def show_page(self) -> None:
        self._text.setFocus()

    def hide_page(self) -> None:
        self._forget_check()

    @Slot(str)
    def look_for(self, what: str) -> None:
        """Find a file or folder by its path or a part of it."""
        self._query = what.strip()
        self._text.setText(texts.plain(self._query))
        self._search()

    @property
    def view(self) -> StatusView:
        """The view of the file or folder that was found."""
        return self._view

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.look_for(paths[0])

    @Slot()
    def _delay_search(self) -> None:
        self._query = self._text.text().strip()
        self._timer.start()

    @Slot()
    def _search(self) -> None:
        self._timer.stop()
        self._superseded = False
        if not self._query:
            self._show_nothing()
        elif not self._search_task.running and self._controller.loaded is not None:
            find = partial(status_tasks.find, *self._controller.place, self._query)
            failed = partial(self._fail_search, self._query)
            self._search_task = self._context.tasks.run(find, self._show_result, failed)

    def _show_nothing(self) -> None:
        """Show the files that changed last while nothing is searched for."""
        self._show_suggestions(self._recent)
        recent = self.tr("These files changed last. Choose one, or type part of a name.")
        nothing = self.tr("Type part of a name, or drop a file or folder here.")
        self._show_message(recent if self._recent else nothing)

    @Slot(object)
    def _take_recent(self, recent: Sequence[Suggestion]) -> None:
        if recent != self._recent:
            self._recent = recent
            if not self._query and self._path is None:
                self._show_nothing()

    @Slot(object)
    def _show_result(self, result: StatusAnswer) -> None:
        if not self._is_current(result.text):
            return
        self._show_suggestions(result.suggestions)
        if result.status is not None:
            self._forget_check()
            self._status_query.drop_answer()
            self._take_status(result.status)
        elif len(result.suggestions) == 1:
            self._show_path(result.suggestions[0].key)
        elif result.suggestions:
            self._show_message(self.tr("Several paths contain this text. Choose one."))
        else:
            self._show_message(self.tr("No run has found a file with this name."))

    def _fail_search(self, text: str, error: UploaderError) -> None:
        if self._is_current(text):
            self._show_message(texts.error_text(error))

    def _is_current(self, text: str) -> bool:
        """Return whether a result is for the current text; otherwise search for that text."""
        if self._superseded:
            return False
        if text != self._query:
            self._search()
        return text == self._query

    def _show_suggestions(self, suggestions: Sequence[Suggestion]) -> None:
        self._suggestions.show(suggestions)
        for shown in (self._list, self._hint):
            shown.setVisible(len(suggestions) > 1)
        self._list.setColumnHidden(CHANGED, not any(it.modified_ns for it in suggestions))

    @Slot(QModelIndex)
    def _choose(self, index: QModelIndex) -> None:
        if index.isValid():
            self._timer.stop()
            self._superseded = True
            self._show_path(self._suggestions.rows[index.row()].key)

    def _show_path(self, key: bytes) -> None:
        self._forget_check()
        self._path, self._status_known = Path(os.fsdecode(key)), False
        self._status_query.ask_now()

    def _about(self) -> tuple[Path] | None:
        return None if self._path is None else (self._path,)

    @Slot(object)
    def _fail_status(self, error: UploaderError) -> None:
        if not self._status_known:  # an earlier status stays displayed
            self._show_message(texts.error_text(error))

    @Slot(object)
    def _take_status(self, status: PathStatus) -> None:
        self._path, self._status_known = status.path, True
        if self._view.status != status:  # otherwise the result of a check is still valid
            self._view.takes_tree = self._controller.settings.destination.takes_tree
            self._view.show_status(status)
            self._take_offer(None)
            self._offer_query.ask_now()
        self._stack.setCurrentIndex(1)
        self._stack.show()

    def _about_shown(self) -> tuple[Path] | None:
        status = self._view.status
        return None if status is None else (status.path,)

    @Slot(object)
    def _take_offer(self, offer: GetOffer | None) -> None:
        self._offer = offer
        self._view.get.setVisible(offer is not None)

    def _forget_check(self) -> None:
        """Drop a check and its result, which apply to one file at one time."""
        self._check_task.cancel()
        if self._view.status is not None:
            self._view.show_status(self._view.status)

    @Slot()
    def _check(self) -> None:
        """Query the server now, and read the local files again."""
        status = self._view.status
        if status is None:
            return
        text = self.tr("Checking the server")
        self._view.card.show_verdict(StatusText("working", "working", text))
        self._view.card.allow(check=False)
        paths = [status.path]
        check = partial(
            status_tasks.clean_up, *self._controller.place, CleanupProgress(), check=paths
        )
        self._check_task.cancel()
        self._check_task = self._context.tasks.run(
            check, self._take_checked, self._fail_check, cancel=True
        )

    @Slot(object)
    def _take_checked(self, results: CleanupResults) -> None:
        self._show_checked(describe_check(results))

    @Slot(object)
    def _fail_check(self, error: UploaderError) -> None:
        message, hint = texts.engine_text(error.message), texts.engine_text(error.hint)
        self._show_checked(StatusText("problem", "warning", message, hint))

    def _show_checked(self, verdict: StatusText) -> None:
        self._view.card.show_verdict(verdict)
        self._view.card.allow(check=True)

    @Slot()
    def _free(self) -> None:
        status = self._view.status
        if status is not None:
            dialog = FreeDialog(self._context, [status.path], self)
            dialog.freed.connect(self._status_query.ask_now)
            dialog.finished.connect(self._status_query.ask_now)
            dialog.open()

    @Slot()
    def _get(self) -> None:
        if self._offer is not None:
            dialog = GetDialog(self._context, self._offer, self)
            dialog.received.connect(self._status_query.ask_now)
            dialog.show()

    @Slot()
    def _open_folder(self) -> None:
        if self._view.status is not None:
            self._controller.open_path(self._view.status.path.parent)

    @Slot()
    def _save_receipt(self) -> None:
        if self._view.status is not None:
            self._saver.ask(self._view.status.path)

    @Slot()
    def _open_page(self) -> None:
        if self._view.status is not None:
            self._controller.open_address(self._view.status.web)

    @Slot()
    def _choose_file(self) -> None:
        title = self.tr("Where is this file?")
        choose_file(self, title, self.look_for, start=self._start())

    @Slot()
    def _choose_folder(self) -> None:
        title = self.tr("Where is this folder?")
        choose_folder(self, title, self.look_for, start=self._start())

    def _start(self) -> str:
        return str(self._controller.settings.data.directory or "")

    def _show_message(self, text: str) -> None:
        """Show this text in place of a file's status, or above a list, which has the room then."""
        self._path = None
        self._status_query.drop_answer()
        for label in (self._message, self._hint):
            label.setText(text)
        self._stack.setCurrentIndex(0)
        self._stack.setVisible(self._list.isHidden())
