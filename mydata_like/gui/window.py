"""The main window: navigation, tool bar, pages and status line."""

from collections.abc import Iterable

from PySide6.QtCore import (
    QByteArray,
    QKeyCombination,
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
    QHBoxLayout,
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

from mydata_like.gui.base import AppContext, NavigationRequest, Page
from mydata_like.gui.pages.page_registry import PageSpec, list_pages
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.server_indicator import ServerIndicatorLabel
from mydata_like.gui.status_text import overview_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import (
    ElidedLabel,
    PathLineEdit,
    PlainLabel,
    allow_action,
    icon,
    text_icon_size,
)

Index = QModelIndex | QPersistentModelIndex


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
    """A row with a margin; the chosen row has round corners."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        wanted = super().sizeHint(option, index)
        height = round(option.fontMetrics.height() * 2.2)
        return QSize(wanted.width() + height, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        self.initStyleOption(option, index)
        gap = option.rect.height() // 6
        area = option.rect.adjusted(gap, gap // 4, -gap, -gap // 4)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_background(painter, option, area)
        side = option.decorationSize.width()
        area.adjust(gap, 0, -gap, 0)
        mode = QIcon.Mode.Selected if chosen else QIcon.Mode.Normal
        square = QRect(area.left(), area.top(), side, area.height())
        option.icon.paint(painter, square, Qt.AlignmentFlag.AlignCenter, mode)
        role = QPalette.ColorRole.HighlightedText if chosen else QPalette.ColorRole.WindowText
        painter.setPen(option.palette.color(role))
        area.adjust(side + gap, 0, 0, 0)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, option.text)
        painter.restore()

    def _paint_background(
        self, painter: QPainter, option: QStyleOptionViewItem, area: QRect
    ) -> None:
        """Mark the chosen row and the one below the mouse; a frame shows the keyboard focus."""
        role = QPalette.ColorRole
        flags = QStyle.StateFlag
        painter.setPen(Qt.PenStyle.NoPen)
        if option.state & flags.State_Selected:
            painter.setBrush(option.palette.brush(role.Highlight))
        elif option.state & flags.State_MouseOver:
            painter.setBrush(option.palette.brush(role.Base))
        if option.state & flags.State_HasFocus:
            painter.setPen(option.palette.color(role.WindowText))
        radius = area.height() / 6
        painter.drawRoundedRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)


DEFAULT_SIZE = QSize(1100, 720)
PAGE = "window/page"  # the key of the last page in the window state


class MainWindow(QMainWindow):
    """The main window; it shows the controller's state and forwards the user's commands."""

    settings_wanted = Signal(object)  # the key of the setting to show first, or ""
    set_up_wanted = Signal()
    demo_wanted = Signal()
    folders_wanted = Signal()  # the user wants to choose folders to upload
    dry_run_wanted = Signal()
    help_wanted = Signal()
    quit_wanted = Signal()
    closing = Signal(object)  # the QCloseEvent, which the tray may ignore

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._specs = list_pages()
        self._pages: dict[str, Page] = {}
        self.setWindowTitle("mydata-like")
        self._navigation = Navigation(self._specs, self)
        self._stack = QStackedWidget(self)
        self._search = PathLineEdit(self)
        self._find = QAction(self.tr("Find a file or folder"), self)
        # Its menu could only hide the tool bar, with no way to show it again.
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self._make_actions()
        self._make_tool_bar()
        self._make_status_line()

        middle = QWidget(self)
        layout = QHBoxLayout(middle)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._navigation)
        layout.addWidget(self._stack, 1)
        self.setCentralWidget(middle)

        controller = self._context.controller
        self._start.triggered.connect(controller.start)
        self._pause.triggered.connect(controller.pause)
        self._resume.triggered.connect(controller.resume)
        self._stop.triggered.connect(controller.stop)
        self._dry_run.triggered.connect(self.dry_run_wanted)
        self._add.triggered.connect(self.folders_wanted)
        self._settings.triggered.connect(self._request_settings)
        self._help.triggered.connect(self.help_wanted)
        self._quit.triggered.connect(self.quit_wanted)
        self._search.returnPressed.connect(self._run_search)
        self._find.triggered.connect(self._focus_search)
        self._navigation.currentRowChanged.connect(self._show_row)
        controller.run_changed.connect(self._show_state)

        geometry = self._context.memory.value("window/geometry")
        if not isinstance(geometry, QByteArray) or not self.restoreGeometry(geometry):
            self.resize(DEFAULT_SIZE)
        names = [spec.name for spec in self._specs]
        last = self._context.memory.value(PAGE)
        self._navigation.setCurrentRow(names.index(last) if last in names else 0)

        self._show_state(context.controller.state)

    @property
    def page(self) -> Page | None:
        """The current page."""
        page = self._stack.currentWidget()
        return page if isinstance(page, Page) else None

    def find_page(self, name: str) -> Page:
        """Return a page by name, created on first use."""
        if name not in self._pages:
            spec = next(spec for spec in self._specs if spec.name == name)
            page = spec.make(self._context, self._stack)
            page.wanted.connect(self.show_page)
            self._pages[name] = page
            self._stack.addWidget(page)
        return self._pages[name]

    @Slot(object)
    def show_page(self, request: NavigationRequest) -> None:
        """Show a page, with the requested content."""
        match request.page:
            case "settings":
                self.settings_wanted.emit(request.what)
            case "set-up":
                self.set_up_wanted.emit()
            case "demo":
                self.demo_wanted.emit()
            case page:
                names = [spec.name for spec in self._specs]
                self._navigation.setCurrentRow(names.index(page))
                if request.what:
                    self.find_page(page).look_for(request.what)

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
        control, keys = Qt.Modifier.CTRL, Qt.Key
        self._start = self._make_action("start", self.tr("&Start"), keys.Key_F5)
        self._pause = self._make_action("pause", self.tr("&Pause"), control | keys.Key_P)
        self._resume = self._make_action("start", self.tr("&Resume"), control | keys.Key_R)
        self._stop = self._make_action("stop", self.tr("S&top"), control | keys.Key_Period)
        self._dry_run = self._make_action("dry-run", self.tr("&Dry run"), control | keys.Key_D)
        self._dry_run.setToolTip(self.tr("Show what would be uploaded; nothing is sent"))
        standard = QKeySequence.StandardKey
        self._add = self._make_action("add-folders", self.tr("&Add folders…"), standard.Open)
        settings = control | keys.Key_Comma
        self._settings = self._make_action("settings", self.tr("S&ettings…"), settings)
        self._help = self._make_action("help", self.tr("&Help"), standard.HelpContents)
        # Windows has no standard key for it.
        self._quit = self._make_action("quit", self.tr("&Quit"), control | keys.Key_Q)
        self._find.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Modifier.SHIFT | Qt.Key.Key_F))
        self.addAction(self._find)

        for number, spec in enumerate(self._specs, 1):
            shortcut = QAction(spec.title, self)
            shortcut.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key(Qt.Key.Key_0 + number)))
            shortcut.setData(number - 1)
            shortcut.triggered.connect(self._show_page_by_key)
            self._navigation.addAction(shortcut)

    def _make_action(
        self, name: str, text: str, keys: Qt.Key | QKeyCombination | QKeySequence.StandardKey
    ) -> QAction:
        action = QAction(icon(name), text, self)
        action.setShortcut(QKeySequence(keys))
        return action

    def list_actions(self) -> list[QAction]:
        """Return all actions with a keyboard shortcut, those of the pages included."""
        for spec in self._specs:
            self.find_page(spec.name)
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
        self._speed = PlainLabel("", self)
        self._next = PlainLabel("", self)
        self._server = ServerIndicatorLabel(self._context.controller, self)
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_LayoutLeftMargin)
        self.statusBar().setContentsMargins(side, 0, 0, 0)
        self.statusBar().addWidget(self._sentence, 1)
        for part in (self._speed, self._next, self._server):
            self.statusBar().addPermanentWidget(part)

    @Slot(int)
    def _show_row(self, row: int) -> None:
        before, page = self.page, self.find_page(self._specs[row].name)
        if before is not None and before is not page:
            before.hide_page()
        self._stack.setCurrentWidget(page)
        self._context.memory.setValue(PAGE, self._specs[row].name)
        page.show_page()

    @Slot()
    def _show_page_by_key(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self._navigation.setCurrentRow(action.data())

    @Slot()
    def _request_settings(self) -> None:
        self.settings_wanted.emit("")

    @Slot()
    def _focus_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    @Slot()
    def _run_search(self) -> None:
        self.show_page(NavigationRequest("where", self._search.text()))

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
        for action in (self._divider, self._dry_run, self._add):
            action.setVisible(not unset)
            action.setEnabled(not unset and state.phase is not Phase.LOADING)
        self._sentence.set_full_text(overview_sentence(state))
        self._speed.setText(texts.rate(state.speed) if state.speed else "")
        self._next.setText(self._describe_next(state))

    def _describe_next(self, state: RunState) -> str:
        if state.at_work or state.next_start is None:
            return ""
        return self.tr("Next run %1").replace("%1", texts.moment(state.next_start))
