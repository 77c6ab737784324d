"""A table with filter, row count, export, actions and a text for an empty table."""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from html import escape
from io import StringIO
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QGuiApplication, QHideEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QPushButton,
    QStackedWidget,
    QStyle,
    QToolBar,
    QToolButton,
    QWidget,
)

from mydata_like.core.errors import HELD, UploaderError
from mydata_like.core.formatting import format_path
from mydata_like.core.model import HELD_FILES
from mydata_like.core.queries import FileRow, FolderGroup, ProblemGroup, Row, View
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.ledger_query import open_listing, open_summary
from mydata_like.gui.run_state import Phase
from mydata_like.gui.table_model import Column
from mydata_like.gui.tables.columns import files_of
from mydata_like.gui.tables.folder_tree import TOP, Parents
from mydata_like.gui.tables.queue_actions import HoldBackToast, QueueActions
from mydata_like.gui.tables.table_view import Heading, Open, TableView, WindowedModel
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import fill, frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.widgets import (
    ElidedLabel,
    EmptyMessage,
    PathLineEdit,
    PlainLabel,
    action,
    allow_action,
    icon,
)
from mydata_like.settings.atomic_write import PRIVATE_FILE
from mydata_like.settings.schema import Settings

translate = QCoreApplication.translate

FILTER_DELAY = 120  # milliseconds after the last key when the filter is applied


class TablePanel(QWidget):
    """A filtered table, which is read and updated while it is visible."""

    selected = Signal()  # other rows are selected, or the selected rows have changed

    def __init__(
        self,
        context: AppContext,
        name: str,
        model: WindowedModel,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._controller = controller = context.controller
        self._page_view = View()
        self._applied = False  # the current filters
        self._run_began: int | None = None
        self.empty_text = self.tr("There is nothing here yet.")  # shown in a table without rows
        self.model = model
        self.table = TableView(name, self.model, context.memory, self)
        self.field = PathLineEdit(self)
        self.states = QComboBox(self)
        self._states_label = QLabel(self.tr("S&how"), self)
        self._only = QToolButton(self)
        self._count = PlainLabel("", self)
        self._start: StartButton | None = None
        self._empty = EmptyMessage(name.partition("-")[0], self)  # the icon of the page
        self._all = QPushButton(self.tr("Show all"), self)
        self._stack = QStackedWidget(self)
        self._typing = QTimer(self, singleShot=True, interval=FILTER_DELAY)

        self.field.setPlaceholderText(self.tr("Filter by name"))
        self.field.setAccessibleName(self.tr("Filter by name"))
        self.field.setClearButtonEnabled(True)
        self.field.setMaximumWidth(self.fontMetrics().averageCharWidth() * 44)
        self._states_label.setBuddy(self.states)
        self._only.setIcon(icon("close"))
        self._only.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._only.setToolTip(self.tr("Show all"))
        for optional in (self.states, self._states_label, self._only):
            optional.setVisible(False)
        standard = QKeySequence.StandardKey
        find = action(self, "", self.tr("Filter"), self._focus_filter, keys=standard.Find)
        find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.addAction(find)

        filters = (self._states_label, self.states, self._only)
        self._top = hbox((self.field, 1), *filters, 1, self._count, spacing=SPACE)
        self._empty.add_button(self._all)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self._empty)
        self._content = frameless(vbox(self._top, (self._stack, 1), inside=self))
        for before, after in pairwise((self.field, self.states, self._only, self.table, self._all)):
            QWidget.setTabOrder(before, after)

        controller.ledger_changed.connect(self._on_ledger_changed)
        controller.settings_changed.connect(self._apply)
        self.field.textChanged.connect(self._typing.start)
        self._typing.timeout.connect(self._apply)
        self.states.currentIndexChanged.connect(self._apply)
        self.model.status_changed.connect(self._show_status)
        self.model.dataChanged.connect(self.selected)
        self.table.selectionModel().selectionChanged.connect(self.selected)
        self._all.clicked.connect(self._show_all)
        self._only.clicked.connect(self._remove_restriction)

    def add_state_filters(self, choices: Sequence[tuple[str, frozenset[str]]]) -> None:
        """Offer groups of states as a filter; the first group is selected."""
        for word, states in choices:
            self.states.addItem(word, states)
        self.states.setVisible(True)
        self._states_label.setVisible(True)

    def offer_start(self) -> None:
        """Show a button that starts a run while there are no rows at all."""
        self._start = StartButton(self._controller, self)
        self._empty.add_button(self._start)
        QWidget.setTabOrder(self._all, self._start)

    def add_top_widgets(self, *widgets: QWidget) -> None:
        """Add widgets next to the number of rows; the keyboard reaches them before the table."""
        fill(self._top, *widgets)
        reached = [it for it in widgets if it.focusPolicy() != Qt.FocusPolicy.NoFocus]
        for before, after in pairwise((self._only, *reached)):
            QWidget.setTabOrder(before, after)

    def showEvent(self, event: QShowEvent) -> None:
        """Show what has changed while the table was not visible."""
        super().showEvent(event)
        if self._applied:
            self.model.refresh()
        else:
            self._apply()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.model.rest()

    def show_view(self, view: View, only: str = "") -> None:
        """Show the rows of this view that pass the user's own filters.

        `only` describes a restriction of the view that the user may remove.
        """
        self._page_view = view
        self._only.setText(only.replace("&", "&&"))  # a single & would mark a shortcut key
        self._only.setVisible(bool(only))
        self._apply()

    def switch_view(self, view: View) -> None:
        """Show this view, unless it is already displayed."""
        if view != self._page_view:
            self.show_view(view)

    def hide_unsent(self, run_began: int | None) -> None:
        """Hide what the run that began then sends later, unless the user filters by state."""
        if run_began != self._run_began:
            self._run_began = run_began
            self._apply()

    def select_states(self, states: frozenset[str]) -> None:
        """Select the first group of states that includes these states."""
        groups = [self.states.itemData(number) for number in range(self.states.count())]
        matching = [number for number, group in enumerate(groups) if states <= group]
        self.states.setCurrentIndex(matching[0] if states and matching else 0)

    @Slot()
    def _apply(self) -> None:
        """Apply the filters of the page and the user."""
        self._typing.stop()
        self._applied = self.isVisible()
        if self._applied:
            shown = self.model.view  # the user, not the page, sets the order
            states = self._page_view.states or self.states.currentData() or frozenset()
            text, began = self.field.text().strip(), None if states else self._run_began
            view = replace(self._page_view, text=text, states=states, run_began=began)
            view = view.ordered(shown.order, descending=shown.descending)
            self.model.show(opener(self._controller), view)

    @Slot()
    def _on_ledger_changed(self) -> None:
        if self.isVisible():
            self.model.refresh()

    @Slot()
    def _show_status(self) -> None:
        headings = sum(isinstance(row, Heading) for row in self.model.above)
        rows, problem, view = self.model.rowCount() - headings, self.model.problem, self.model.view
        # With numbers, `tr` looks only for texts of the object's own class, here of a subclass.
        text = translate("TablePanel", "%Ln row(s)", None, rows)
        text = text if self.model.complete else self.tr("counting…")
        self._count.setText(text if rows else "")
        self._count.setMinimumWidth(self._count.sizeHint().width())
        self._stack.setCurrentIndex(0 if rows else 1)
        states = self.states.currentData() or frozenset()
        filtered = bool(self.field.text().strip() or states or self._only.text())  # by the user
        if problem is not None:
            self._empty.setText(texts.error_text(problem))
        elif view.text:
            text = self.tr("No name contains “%1”.").replace("%1", texts.plain(view.text))
            self._empty.setText(text)
        else:
            self._empty.setText(self.tr("No matching rows.") if filtered else self.empty_text)
        self._all.setVisible(problem is None and filtered)
        if self._start is not None:
            self._start.offer(offered=problem is None and not filtered)
        self.selected.emit()

    @Slot()
    def _focus_filter(self) -> None:
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    @Slot()
    def _show_all(self) -> None:
        self.field.clear()
        self.states.setCurrentIndex(0)
        self._remove_restriction()

    @Slot()
    def _remove_restriction(self) -> None:
        """Remove the restriction of the page."""
        if self._only.text():
            self.show_view(View(table=self._page_view.table))


ROWS_PER_PAGE = 1000  # rows in memory
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would evaluate the cell
STYLE = """
body { font-family: system-ui, sans-serif; margin: 2em; color-scheme: light dark }
table { border-collapse: collapse } caption { text-align: left; padding: .5em 0 }
th, td { text-align: left; padding: .35em .9em; border-bottom: 1px solid #8886 }
td.number { text-align: right; font-variant-numeric: tabular-nums }
thead th { position: sticky; top: 0; background: Canvas }
"""


def export_rows(
    path: Path, title: str, columns: Sequence[Column], open_listing: Open, view: View
) -> Path:
    """Write all rows of a view in the format of the file's extension; raises `UploaderError`."""
    listing = open_listing(view)
    rows: Iterator[Row] = iter(())
    try:
        if listing is not None:
            count = listing.build()
            pages = (listing.rows(start, ROWS_PER_PAGE) for start in range(0, count, ROWS_PER_PAGE))
            rows = (row for page in pages for row in page)
        match path.suffix.lower():
            case ".json":
                pieces = _format_json(rows)
            case ".html" | ".htm":
                pieces = _format_html(title, columns, rows)
            case _:
                pieces = _format_csv(columns, rows)
        _write(path, pieces)
    finally:
        if listing is not None:
            listing.close()
    return path


def _write(path: Path, pieces: Iterable[str]) -> None:
    """Write the file completely, or leave the existing one unchanged."""
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=PRIVATE_FILE)
        with part.open("w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
        part.replace(path)
    except OSError as error:
        raise UploaderError(
            f"The file {path.name} cannot be written: {error.strerror or error}.",
            hint="Choose another folder.",
            code="window.unwritable",
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _format_csv(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    yield "\ufeff"  # marks the file as UTF-8 for spreadsheets
    yield _csv_line(column.title for column in columns)
    for row in rows:
        yield _csv_line(column.text(row) for column in columns)


def _csv_line(cells: Iterable[str]) -> str:
    line = StringIO()
    harmless = (f"'{cell}" if cell.startswith(FORMULA_PREFIXES) else cell for cell in cells)
    csv.writer(line).writerow(harmless)
    return line.getvalue()


def _format_json(rows: Iterable[Row]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield ",\n" if number else "\n"
        yield json.dumps(row._asdict(), default=_json_value, ensure_ascii=False)
    yield "\n]\n"


def _json_value(value: object) -> object:
    match value:
        case bytes():
            return format_path(value)
        case datetime():
            return value.isoformat()
        case _:
            return dict(value)  # type: ignore[call-overload]  # a mapping


def _format_html(title: str, columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    heads = "".join(f"<th scope='col'>{escape(column.title)}</th>" for column in columns)
    yield f"<!doctype html>\n<meta charset='utf-8'>\n<title>{escape(title)}</title>\n"
    yield f"<style>{STYLE}</style>\n<h1>{escape(title)}</h1>\n"
    yield f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n"
    for row in rows:
        yield f"<tr>{''.join(_cell(column, row) for column in columns)}</tr>\n"
    yield "</tbody>\n</table>\n"


def _cell(column: Column, row: Row) -> str:
    kind = " class='number'" if column.number else ""
    return f"<td{kind}>{escape(column.text(row))}</td>"


RETRYABLE = ("failed", "waiting", "folder-failed")  # states
FOLDER_STATES = ("folder-failed", "folder-skipped")
QUEUED = "found"  # the state of files that are not sent yet
HELD_BACK = "file.cancelled"  # the problem code of files that the user holds back


class FilesPanel(TablePanel):
    """A table of files, and below it the actions that apply to the selected ones.

    With a toast, which holds files back, they include those on files that wait or are being sent.
    """

    def __init__(
        self,
        context: AppContext,
        name: str,
        model: WindowedModel,
        parent: QWidget,
        toast: HoldBackToast | None = None,
    ) -> None:
        super().__init__(context, name, model, parent)
        self.row_actions = RowActions(context.controller, self.table, toast)
        fill(self._content, ActionRow(self.row_actions.all, self.row_actions.hint, self))
        self.selected.connect(self._show_actions)
        self.table.row_actions = self.row_actions.all
        self.table.chosen.connect(self.row_actions.choose)

    @Slot()
    def _show_actions(self) -> None:
        self.row_actions.show_rows(self.table.rows())


class RowActions(QObject):
    """Actions on the selected rows; only those that apply are shown."""

    def __init__(
        self, controller: WindowController, table: QWidget, toast: HoldBackToast | None = None
    ) -> None:
        super().__init__(table)
        self._controller = controller
        self._toast = toast
        self._queue = QueueActions(table, toast) if toast is not None else None
        self._rows: Sequence[FileRow] = ()
        self._transfers: Sequence[ActiveTransfer] = ()
        self._retry = action(self, "retry", self.tr("Try again"), self._try_again)
        self._open = action(self, "folder", self.tr("Open folder"), self._open_folder)
        self._web = action(self, "server", self.tr("Open on server"), self._open_on_server)
        self._where = action(self, "where", self.tr("Where is it?"), self._show_status)
        self._copy = action(self, "copy", self.tr("Copy path"), self._copy_paths)
        self.hint = self.tr("Select files to open their folder, find them, or send them again.")
        queued = self._queue.all if self._queue is not None else ()
        self.all = (self._retry, *queued, self._open, self._web, self._where, self._copy)
        if self._queue is not None:
            self._queue.send_next.triggered.connect(self._send_next)
            self._queue.hold.triggered.connect(self._hold_back)
        controller.run_changed.connect(self._enable_sending)
        self.show_rows(())

    def show_rows(self, selected: Sequence[object]) -> None:
        """Set the rows that the actions apply to."""
        transfers = [row for row in selected if isinstance(row, ActiveTransfer)]
        self._transfers = [transfer for transfer in transfers if transfer.number >= 0]
        self._rows = rows = files_of(selected)
        one = len(rows) == 1
        self._enable_sending()
        allow_action(self._open, allowed=one)
        paged = not self._controller.settings.destination.takes_tree
        allow_action(self._web, allowed=paged and one and rows[0].dataset is not None)
        allow_action(self._where, allowed=one)
        allow_action(self._copy, allowed=bool(rows))

    @Slot()
    def _enable_sending(self) -> None:
        retryable = any(row.state in RETRYABLE for row in self._rows)
        allow_action(self._retry, allowed=retryable and self._controller.can_retry)
        if self._queue is not None:
            steerable = self._controller.state.is_steerable
            holds = bool(self._queued or self._transfers)
            allow_action(self._queue.hold, allowed=steerable and holds)
            allow_action(self._queue.send_next, allowed=steerable and bool(self._sendable))

    @property
    def _queued(self) -> list[bytes]:
        return [row.key for row in self._rows if row.state == QUEUED]

    @property
    def _sendable(self) -> list[bytes]:
        """The files that wait, and those that the user holds back, in their order."""
        return [row.key for row in self._rows if row.state == QUEUED or row.code == HELD_BACK]

    @Slot(object)
    def choose(self, row: object) -> None:
        """Show the status of a row that was double-clicked, or selected with Enter."""
        for file in files_of([row]):
            self._controller.open_page("where", os.fsdecode(file.key))

    @Slot()
    def _send_next(self) -> None:
        self._controller.send_next(self._sendable)
        self._controller.list_next()

    @Slot()
    def _hold_back(self) -> None:
        if self._toast is not None:
            self._toast.hold_back(self._queued, self._transfers)

    @Slot()
    def _try_again(self) -> None:
        if self._toast is not None:
            self._toast.hide()
        for row in self._rows:
            if row.state in RETRYABLE:
                self._controller.retry(row.key)

    @Slot()
    def _open_folder(self) -> None:
        row = self._rows[0]
        path = path_of(self._controller, row.key)
        self._controller.open_path(path if row.state in FOLDER_STATES else path.parent)

    @Slot()
    def _open_on_server(self) -> None:
        self._controller.open_address(dataset_address(self._controller, self._rows[0].dataset))

    @Slot()
    def _show_status(self) -> None:
        self.choose(self._rows[0])

    @Slot()
    def _copy_paths(self) -> None:
        paths = [texts.plain(bytes(path_of(self._controller, row.key))) for row in self._rows]
        QGuiApplication.clipboard().setText("\n".join(paths))


class ActionRow(QWidget):
    """Buttons for the actions that are shown; if none is, a hint of the same height."""

    def __init__(self, actions: Sequence[QAction], hint: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions = actions
        self._bar = bar = QToolBar(self)
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_SmallIconSize)
        bar.setIconSize(QSize(side, side))
        bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        bar.addActions(actions)  # a menu has those that do not fit
        for button in bar.findChildren(QToolButton):  # otherwise the keyboard cannot reach them
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._hint = ElidedLabel(hint, self)
        self._hint.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        frameless(hbox((self._bar, 1), (self._hint, 1), inside=self))
        for one in actions:
            one.changed.connect(self._show_possible)
        self._keep_height()
        self._show_possible()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._keep_height()

    def _keep_height(self) -> None:
        """Reserve the height of the buttons, also while there are none."""
        button = self._bar.widgetForAction(self._actions[0])
        style = self._bar.style()
        edge = style.pixelMetric(QStyle.PixelMetric.PM_ToolBarFrameWidth)
        edge += style.pixelMetric(QStyle.PixelMetric.PM_ToolBarItemMargin)
        self.setMinimumHeight(button.sizeHint().height() + 2 * edge)

    @Slot()
    def _show_possible(self) -> None:
        some = any(one.isVisible() for one in self._actions)
        self._bar.setVisible(some)
        self._hint.setVisible(not some)


class StartButton(QPushButton):
    """Starts a run; hidden while none can be started, and unless it is offered."""

    def __init__(self, controller: WindowController, parent: QWidget) -> None:
        super().__init__(parent)
        self.setIcon(icon("start"))
        self.setText(self.tr("Start now"))
        self._controller = controller
        self._offered = False
        self.clicked.connect(controller.start)
        controller.run_changed.connect(self._show_if_possible)
        self._show_if_possible()

    def offer(self, *, offered: bool) -> None:
        """Set whether a run is what to do next."""
        self._offered = offered
        self._show_if_possible()

    @Slot()
    def _show_if_possible(self) -> None:
        possible = self._controller.state.phase in (Phase.IDLE, Phase.BROKEN)
        self.setVisible(self._offered and possible)


def action_button(effect: QAction, parent: QWidget) -> QToolButton:
    """Return a flat button for an action, in the style of the window."""
    button = QToolButton(parent)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    button.setAutoRaise(True)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.setDefaultAction(effect)
    return button


def path_of(controller: WindowController, key: bytes) -> Path:
    """Return the local path of a file or folder of the ledger."""
    return (controller.settings.data.directory or Path()) / os.fsdecode(key)


def dataset_address(controller: WindowController, dataset: int | None) -> str:
    """Return the address of a dataset's page on the server."""
    return f"{controller.settings.server.url}/dataset/{dataset}"


def opener(controller: WindowController) -> Open:
    """Return a function that opens the ledger of the current settings."""
    return partial(open_listing, *controller.place)


def group_problems(settings: Settings, config: Path | None) -> list[ProblemGroup]:
    """Return the unhealthy files by kind and code; raises `UploaderError`."""
    survey = open_summary(settings, config)
    groups = survey.group_problems() if survey else []
    return [
        one._replace(problem=HELD_FILES) if one.problem.code == HELD and one.files > 1 else one
        for one in groups
    ]


def list_levels(
    settings: Settings, config: Path | None, wanted: Sequence[Parents]
) -> dict[Parents, list[FolderGroup]]:
    """Return the lines below each of these lines of the tree; raises `UploaderError`.

    Where the destination has no owners and experiments, the dataset folders are at the top. The
    only experiment of an owner has no line if the instrument gives it its name.
    """
    survey = open_summary(settings, config)
    levels: dict[Parents, list[FolderGroup]] = {parents: [] for parents in wanted}
    if survey is not None:
        for parents in wanted:
            if parents == TOP and settings.destination.takes_tree:
                owners = survey.list_folders()
                above = [one for it in owners for one in survey.list_folders(it.owner, it.group)]
                names = ((it.owner, it.group, it.title) for it in above)
                folders = [one for name in names for one in survey.list_folders(*name)]
                # The ledger has no totals for the files that are in none of them.
                wanted_folders = (it for it in folders if it.path)
                levels[parents] = sorted(wanted_folders, key=lambda it: it.dataset or "")
            elif parents.folder is None:
                below = survey.list_folders(*parents.names)
                if len(parents.names) == 2 and len(below) == 1 and below[0].title is None:
                    below = survey.list_folders(*parents.names, None)
                levels[parents] = below
            else:
                levels[parents] = survey.list_inside(parents.folder)
    return levels


def find_dataset(settings: Settings, config: Path | None, folder: bytes) -> int | None:
    """Return the server's number of a folder's dataset; raises `UploaderError`."""
    survey = open_summary(settings, config)
    return survey.find_dataset(folder) if survey else None
