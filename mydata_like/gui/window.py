"""The main window: navigation, tool bar, pages and status line."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QAction, QCloseEvent, QIcon, QKeySequence, QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QListWidget,
    QListWidgetItem,
    QMainWindow,
    QSizePolicy,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolBar,
    QWidget,
)

from mydata_like.gui.base import AppContext, Page
from mydata_like.gui.overview.overview_page import OverviewPage
from mydata_like.gui.pages.folders_page import FoldersPage
from mydata_like.gui.pages.history_page import HistoryPage
from mydata_like.gui.pages.log_page import LogPage
from mydata_like.gui.pages.problems_page import ProblemsPage
from mydata_like.gui.pages.speed_page import SpeedPage
from mydata_like.gui.pages.transfers_page import TransfersPage
from mydata_like.gui.pages.where_page import WherePage
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.server_indicator import ServerIndicatorLabel
from mydata_like.gui.status_text import overview_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import frameless, hbox
from mydata_like.gui.theme.widgets import (
    ElidedLabel,
    PathLineEdit,
    PlainLabel,
    action,
    allow_action,
    icon,
    text_icon_size,
)

Index = QModelIndex | QPersistentModelIndex


translate = QCoreApplication.translate


class PageSpec(NamedTuple):
    """The internal name, title, icon and factory of a page."""

    name: str
    title: str
    icon: str
    make: Callable[[AppContext, QWidget], Page]


def list_pages() -> list[PageSpec]:
    """Return the pages in the order of the navigation."""
    return [
        PageSpec("overview", translate("pages", "Overview"), "overview", OverviewPage),
        PageSpec("folders", translate("pages", "Folders"), "folders", FoldersPage),
        PageSpec("transfers", translate("pages", "Transfers"), "transfers", TransfersPage),
        PageSpec("problems", translate("pages", "Problems"), "problems", ProblemsPage),
        PageSpec("where", translate("pages", "Where is my data?"), "where", WherePage),
        PageSpec("speed", translate("pages", "Speed test"), "speed", SpeedPage),
        PageSpec("history", translate("pages", "History"), "history", HistoryPage),
        PageSpec("log", translate("pages", "Log"), "log", LogPage),
    ]


class Navigation(QListWidget):
    """One row per page, on the window's own background; only the chosen row is marked."""

    def __init__(self, specs: Iterable[PageSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Pages"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        self.setItemDelegate(_Row(self))
        self.setIconSize(text_icon_size(self))
        self.setMouseTracking(True)
        for spec in specs:
            self.addItem(QListWidgetItem(icon(spec.icon), spec.title))
        self.setFixedWidth(self.sizeHintForColumn(0))


class _Row(QStyledItemDelegate):
    """A row with a margin and round corners.

    The chosen one and the one below the mouse are marked; a frame shows the keyboard focus.
    """

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        wanted = super().sizeHint(option, index)
        height = round(option.fontMetrics.height() * 2.2)
        return QSize(wanted.width() + height, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        self.initStyleOption(option, index)
        gap = option.rect.height() // 6
        area = option.rect.adjusted(gap, gap // 4, -gap, -gap // 4)
        flags, role, palette = QStyle.StateFlag, QPalette.ColorRole, option.palette
        chosen = bool(option.state & flags.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if chosen:
            painter.setBrush(palette.brush(role.Highlight))
        elif option.state & flags.State_MouseOver:
            painter.setBrush(palette.brush(role.Base))
        if option.state & flags.State_HasFocus:
            painter.setPen(palette.color(role.WindowText))
        radius = area.height() / 6
        painter.drawRoundedRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        side = option.decorationSize.width()
        area.adjust(gap, 0, -gap, 0)
        mode = QIcon.Mode.Selected if chosen else QIcon.Mode.Normal
        square = QRect(area.left(), area.top(), side, area.height())
        option.icon.paint(painter, square, Qt.AlignmentFlag.AlignCenter, mode)
        painter.setPen(palette.color(role.HighlightedText if chosen else role.WindowText))
        area.adjust(side + gap, 0, 0, 0)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, option.text)
        painter.restore()


DEFAULT_SIZE = QSize(1100, 720)
PAGE = "window/page"  # the key of the last page in the window state


class MainWindow(QMainWindow):
    """The main window; it shows the controller's state and forwards the user's commands."""

    quit_wanted = Signal()
    closing = Signal(object)  # the QCloseEvent, which the tray may ignore

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._controller = context.controller
        self._specs = {spec.name: spec for spec in list_pages()}
        self._pages: dict[str, Page] = {}
        self.setWindowTitle("mydata-like")
        self._navigation = Navigation(self._specs.values(), self)
        self._stack = QStackedWidget(self)
        self._search = PathLineEdit(self)
        # Its menu could only hide the tool bar, with no way to show it again.
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self._make_actions()
        self._make_tool_bar()
        self._make_status_line()

        middle = QWidget(self)
        frameless(hbox(self._navigation, (self._stack, 1), inside=middle, spacing=0))
        self.setCentralWidget(middle)

        self._search.returnPressed.connect(self._run_search)
        self._navigation.currentRowChanged.connect(self._show_row)
        self._controller.page_wanted.connect(self.show_page)
        self._controller.run_changed.connect(self._show_state)

        geometry = self._context.memory.value("window/geometry")
        if not isinstance(geometry, QByteArray) or not self.restoreGeometry(geometry):
            self.resize(DEFAULT_SIZE)
        last = self._context.memory.value(PAGE)
        self._navigation.setCurrentRow([*self._specs].index(last) if last in self._specs else 0)

        self._show_state(self._controller.state)

    @property
    def page(self) -> Page | None:
        """The current page."""
        page = self._stack.currentWidget()
        return page if isinstance(page, Page) else None

    def find_page(self, name: str) -> Page:
        """Return a page by name, created on first use."""
        if name not in self._pages:
            self._pages[name] = self._specs[name].make(self._context, self._stack)
            self._stack.addWidget(self._pages[name])
        return self._pages[name]

    @Slot(object, object)
    def show_page(self, name: str, what: str = "") -> None:
        """Show a page, with the requested content; dialogs are shown by the program."""
        if name in self._specs:
            self._navigation.setCurrentRow([*self._specs].index(name))
            if what:
                self.find_page(name).look_for(what)

    def mark_demo(self) -> None:
        """Show that this is a demonstration."""
        self.setWindowTitle(self.tr("mydata-like: demo"))
        mark = PlainLabel(self.tr("Demo: sample data, and a server on this computer"), self)
        self.statusBar().insertPermanentWidget(0, mark)

    @Slot()
    def raise_up(self) -> None:
        """Raise the window to the front."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._context.memory.setValue("window/geometry", self.saveGeometry())
        self.closing.emit(event)

    def _make_actions(self) -> None:
        run, control, keys = self._controller, Qt.Modifier.CTRL, Qt.Key
        standard, open_it = QKeySequence.StandardKey, self._open_page
        self._start = action(self, "start", self.tr("&Start"), run.start, keys=keys.Key_F5)
        self._pause = action(self, "pause", self.tr("&Pause"), run.pause, keys=control | keys.Key_P)
        resume = self.tr("&Resume")
        self._resume = action(self, "start", resume, run.resume, keys=control | keys.Key_R)
        # The keys of the actions that are hidden while a run is paused.
        paused_keys = [one.shortcut() for one in (self._resume, self._start, self._pause)]
        self._resume.setShortcuts(paused_keys)
        self._stop = action(
            self, "stop", self.tr("S&top"), run.stop, keys=control | keys.Key_Period
        )
        dry_run = self.tr("&Dry run")
        self._dry_run = action(self, "dry-run", dry_run, open_it, keys=control | keys.Key_D)
        self._dry_run.setToolTip(self.tr("Show what would be uploaded; nothing is sent"))
        add = self.tr("&Add folders…")
        self._add = action(self, "add-folders", add, open_it, keys=standard.Open)
        settings = self.tr("S&ettings…")
        self._settings = action(self, "settings", settings, open_it, keys=control | keys.Key_Comma)
        self._help = action(self, "help", self.tr("&Help"), open_it, keys=standard.HelpContents)
        # Windows has no standard key for it.
        quitting = control | keys.Key_Q
        self._quit = action(self, "quit", self.tr("&Quit"), self.quit_wanted, keys=quitting)
        find = self.tr("Find a file or folder")
        self._find = action(self, "", find, self._focus_search)
        self._find.setShortcut(QKeySequence(control | Qt.Modifier.SHIFT | keys.Key_F))
        self.addAction(self._find)
        opens = {
            "dry-run": self._dry_run,
            "add-folders": self._add,
            "settings": self._settings,
            "help": self._help,
        }
        for number, spec in enumerate(self._specs.values(), 1):
            opens[spec.name] = action(self, "", spec.title, open_it)
            opens[spec.name].setShortcut(QKeySequence(control | keys(keys.Key_0 + number)))
            self._navigation.addAction(opens[spec.name])
        for name, opener in opens.items():
            opener.setData(name)

    def list_actions(self) -> list[QAction]:
        """Return all actions with a keyboard shortcut, those of the pages included."""
        for name in self._specs:
            self.find_page(name)
        return [action for action in self.findChildren(QAction) if not action.shortcut().isEmpty()]

    def _make_tool_bar(self) -> None:
        bar = QToolBar(self.tr("Actions"), self)
        bar.setObjectName("actions")
        bar.setMovable(False)
        bar.setIconSize(text_icon_size(bar))
        bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        bar.addActions([self._start, self._pause, self._resume, self._stop])
        self._divider = bar.addSeparator()
        bar.addActions([self._dry_run, self._add, self._settings, self._help, self._quit])
        space = QWidget(bar)
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        bar.addWidget(space)
        self._search.setPlaceholderText(self.tr("Where is…"))
        self._search.setAccessibleName(self.tr("Find a file or folder"))
        key = self._find.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        self._search.setToolTip(f"{self._find.text()} ({key})")
        self._search.setClearButtonEnabled(True)
        self._search.setMaximumWidth(self.fontMetrics().averageCharWidth() * 32)
        bar.addWidget(self._search)
        self.addToolBar(bar)

    def _make_status_line(self) -> None:
        self._sentence = ElidedLabel("", self)
        self._speed, self._next = PlainLabel("", self), PlainLabel("", self)
        self._server = ServerIndicatorLabel(self._controller, self)
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_LayoutLeftMargin)
        self.statusBar().setContentsMargins(side, 0, 0, 0)
        self.statusBar().addWidget(self._sentence, 1)
        for part in (self._speed, self._next, self._server):
            self.statusBar().addPermanentWidget(part)

    @Slot(int)
    def _show_row(self, number: int) -> None:
        name = [*self._specs][number]
        before, page = self.page, self.find_page(name)
        if before is not None and before is not page:
            before.hide_page()
        self._stack.setCurrentWidget(page)
        # The page shows these itself.
        for part in (self._server, self._sentence, self._speed):
            part.setVisible(name != "overview")
        self._context.memory.setValue(PAGE, name)
        page.show_page()

    @Slot()
    def _open_page(self) -> None:
        """Open the page or dialog of an action."""
        opener = self.sender()
        assert isinstance(opener, QAction)
        self._controller.open_page(opener.data())

    @Slot()
    def _focus_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    @Slot()
    def _run_search(self) -> None:
        self.show_page("where", self._search.text())

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        pausable = state.phase in (Phase.RUNNING, Phase.PAUSING)
        unset = state.phase is Phase.UNSET  # the page has a button for what comes first
        self._start.setVisible(not (pausable or unset or state.phase is Phase.PAUSED))
        self._start.setEnabled(state.phase in (Phase.IDLE, Phase.BROKEN))
        self._pause.setVisible(pausable)
        self._pause.setEnabled(state.phase is Phase.RUNNING)
        allow_action(self._resume, allowed=state.phase is Phase.PAUSED)
        stoppable = (Phase.STARTING, Phase.RUNNING, Phase.PAUSING, Phase.PAUSED)
        allow_action(self._stop, allowed=state.phase in stoppable)
        for part in (self._divider, self._dry_run, self._add):
            part.setVisible(not unset)
            part.setEnabled(not unset and state.phase is not Phase.LOADING)
        self._sentence.set_full_text(overview_sentence(state))
        self._speed.setText(texts.rate(state.speed) if state.speed else "")
        planned = ""
        if state.next_start is not None and not state.at_work:
            planned = self.tr("Next run %1").replace("%1", texts.moment(state.next_start))
            if state.watches_files:
                planned = self.tr("Next run with new files")
        self._next.setText(planned)
