"""The page Log: the lines of the log as they are written."""

from functools import partial
from itertools import chain

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Slot
from PySide6.QtGui import QAction, QGuiApplication, QHideEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QHeaderView,
    QStackedWidget,
    QTableView,
    QWidget,
)

from mydata_like.app import logging_setup
from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.log_viewer import log_model
from mydata_like.gui.log_viewer.log_model import (
    AT,
    LEVEL,
    MAX_LINES,
    ORIGIN,
    TEXT,
    FilteredLines,
    Follower,
    LogFilter,
    LogModel,
    NewLines,
)
from mydata_like.gui.table_model import column_width, style_table
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import hbox
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.widgets import EmptyMessage, PathLineEdit, icon, push_button
from mydata_like.gui.window_state import KeptColumns

translate = QCoreApplication.translate

READ_INTERVAL = 1000  # milliseconds between two reads of the file
FILTER_DELAY = 250  # milliseconds after the last key
ENGINE, WINDOW = "mydata-like", "mydata-like-window"
MIN_CHARACTERS = 9  # of a choice that are always visible


class LogPage(Page):
    """A view that follows the engine's or the window's log, unless the user has scrolled up."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._follower: Follower | None = None
        self._reading = BackgroundTask()
        self._user_scrolls = True  # the next change of the scroll position is by the user
        self._follow = QCheckBox(self.tr("Follow"), self)
        self._which = self._make_choice(self.tr("Which log"))
        self._which.addItem(self.tr("Uploads"), ENGINE)
        self._which.addItem(self.tr("This window"), WINDOW)
        self._level = self._make_choice(self.tr("Level"))
        levels = (
            self.tr("Everything"),
            self.tr("Information and above"),
            self.tr("Warnings and errors"),
            self.tr("Errors only"),
        )
        for minimum, level in enumerate(levels):
            self._level.addItem(level, minimum)
        self._text = PathLineEdit(self)
        self._text.setPlaceholderText(self.tr("Only lines with this text"))
        self._text.setAccessibleName(self.tr("Text in the line"))
        self._model = LogModel(self)
        self._table = QTableView(self)
        self._empty = EmptyMessage("log", self)
        self._empty.setText(self.tr("Nothing has been written yet."))
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self._table)
        self._copy = QAction(icon("copy"), self.tr("Copy lines"), self)
        self._copy_button = push_button(self, self.tr("Copy lines"), self._copy_lines, "copy")
        self._find = QAction(self.tr("Find"), self)
        self._folder = push_button(self, self.tr("Open folder"), self._open_folder, "folder")
        self._bundle = push_button(self, self.tr("Support bundle…"), self._save_bundle, "export")
        self._read_timer = QTimer(self, interval=READ_INTERVAL)
        self._filter_timer = QTimer(self, singleShot=True, interval=FILTER_DELAY)
        self._find.setShortcut(QKeySequence.StandardKey.Find)
        self.addAction(self._find)
        self._follow.setChecked(True)
        self._set_up_table()
        filters = hbox(self._which, self._level, (self._text, 1))
        filters.setSpacing(SPACE)
        head = hbox((PageTitle(translate("pages", "Log"), self), 1), self._follow)
        foot = hbox(self._copy_button, self._folder, 1, self._bundle)
        page_layout(self, head, filters, (self._stack, 1), foot)

        self._read_timer.timeout.connect(self._read)
        self._filter_timer.timeout.connect(self._filter)
        self._text.textEdited.connect(self._filter_timer.start)
        self._level.currentIndexChanged.connect(self._filter)
        self._which.currentIndexChanged.connect(self._change_log)
        self._follow.toggled.connect(self._scroll_to_end)
        self._table.verticalScrollBar().valueChanged.connect(self._on_scroll)
        self._copy.triggered.connect(self._copy_lines)
        self._find.triggered.connect(self._focus_filter)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._read_timer.start()
        self._read()

    def hideEvent(self, event: QHideEvent) -> None:
        """Read no more, also while the window is only in the tray."""
        super().hideEvent(event)
        self._read_timer.stop()

    def look_for(self, what: str) -> None:
        """Show the lines that contain a text."""
        self._text.setText(what)
        self._filter()

    def _make_choice(self, name: str) -> QComboBox:
        choice = QComboBox(self)
        choice.setAccessibleName(name)
        choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        choice.setMinimumContentsLength(MIN_CHARACTERS)
        return choice

    def _set_up_table(self) -> None:
        table = self._table
        style_table(table)
        table.setModel(self._model)
        table.setAccessibleName(self.tr("Lines of the log"))
        table.setTextElideMode(Qt.TextElideMode.ElideRight)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.verticalHeader().setDefaultSectionSize(round(self.fontMetrics().height() * 1.4))
        for column, characters in ((AT, 22), (LEVEL, 16)):
            table.setColumnWidth(column, column_width(table, characters))
        header = table.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(TEXT, QHeaderView.ResizeMode.Stretch)
        header.hideSection(ORIGIN)  # for support, which gets all of each line
        KeptColumns("log", header, self._context.memory).restore()
        self._copy.setShortcut(QKeySequence.StandardKey.Copy)
        self._copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        table.addAction(self._copy)
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    @Slot()
    def _change_log(self) -> None:
        self._follower = None
        self._model.show_filtered(FilteredLines((), self._line_filter(), ()))
        self._read()

    @Slot()
    def _read(self) -> None:
        """Read new lines, unless a read is in progress."""
        if not self._reading.running:
            config, name = self._context.controller.config, self._which.currentData()
            read = partial(log_model.read, config, name, MAX_LINES, self._follower)
            self._reading = self._context.tasks.run(read, self._take, self._fail)

    def _take(self, new: NewLines) -> None:
        if new.name != self._which.currentData():
            self._read()  # the user has chosen the other log in the meantime
            return
        self._follower = new.follower
        if new.lines:
            self._model.append(new.lines)
            self._show_lines()

    def _fail(self, error: UploaderError) -> None:
        self._empty.setText(texts.engine_text(error.message))

    @Slot()
    def _filter(self) -> None:
        """Filter the lines; many lines are filtered in the background."""
        filter_lines = partial(log_model.filter_lines, list(self._model.lines), self._line_filter())
        self._context.tasks.run(filter_lines, self._take_filtered, latest=True)

    def _take_filtered(self, filtered: FilteredLines) -> None:
        lines = self._model.lines
        if filtered.line_filter != self._line_filter():
            return  # the filter has changed since
        if filtered.lines[:1] != lines[:1]:
            self._filter()  # the oldest lines have been dropped since
            return
        new = lines[len(filtered.lines) :]
        self._user_scrolls = False
        self._model.show_filtered(filtered)
        self._model.append(new)
        self._show_lines()

    def _line_filter(self) -> LogFilter:
        return LogFilter(self._level.currentData(), self._text.text().strip().lower())

    def _show_lines(self) -> None:
        has_lines = self._model.rowCount() > 0
        self._stack.setCurrentIndex(1 if has_lines else 0)
        no_match, nothing = self.tr("No lines match."), self.tr("Nothing has been written yet.")
        self._empty.setText(no_match if self._model.lines else nothing)
        self._scroll_to_end()
        self._user_scrolls = True

    @Slot()
    def _scroll_to_end(self) -> None:
        if self._follow.isChecked():
            self._table.scrollToBottom()

    @Slot(int)
    def _on_scroll(self, value: int) -> None:
        """Follow the log only while the last line is visible."""
        if self._user_scrolls:
            self._follow.setChecked(value >= self._table.verticalScrollBar().maximum())

    @Slot()
    def _copy_lines(self) -> None:
        """Copy the selected lines, or all; many lines are joined in the background."""
        chosen = self._table.selectionModel().selection()
        ranges = map(chosen.at, range(chosen.count()))
        spans = sorted((span.top(), span.bottom()) for span in ranges)
        spans = spans or [(0, self._model.rowCount() - 1)]
        lines = list(
            chain.from_iterable(self._model.rows[top : bottom + 1] for top, bottom in spans)
        )
        self._context.tasks.run(partial(log_model.join, lines), self._copy_text, latest=True)

    def _copy_text(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)

    @Slot()
    def _focus_filter(self) -> None:
        self._text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._text.selectAll()

    @Slot()
    def _open_folder(self) -> None:
        find = partial(logging_setup.find_logs, self._context.controller.config)
        self._context.tasks.run(find, self._context.controller.open_path)

    @Slot()
    def _save_bundle(self) -> None:
        # Imported here, as few users need it.
        from mydata_like.gui.log_viewer.bundle_dialog import BundleDialog

        BundleDialog(self._context, self).open()
