"""The main window: navigation, tool bar, pages, status line."""

from PySide6.QtCore import QByteArray, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QCloseEvent, QKeySequence
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMainWindow,
    QSizePolicy,
    QStackedWidget,
    QToolBar,
    QWidget,
)

from mydata_like.gui.contact import ContactSign
from mydata_like.gui.drop.field import Field
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon, size_beside_text
from mydata_like.gui.look.labels import ElidedLabel, PlainLabel
from mydata_like.gui.look.sentences import overview_sentence
from mydata_like.gui.navigation import Navigation
from mydata_like.gui.pages.catalogue import list_pages
from mydata_like.gui.pages.page import Desk, Page, Wish
from mydata_like.gui.state import Phase, RunState

FIRST_SIZE = QSize(1100, 720)
PAGE = "window/page"  # the name of the last page in the memory


class Window(QMainWindow):
    """The window; it shows what the controller knows and passes on what a person wants."""

    settings_wanted = Signal(object)  # the key of the setting to show first, or ""
    set_up_wanted = Signal()
    demo_wanted = Signal()
    folders_wanted = Signal()  # a person wants to choose folders to upload
    dry_run_wanted = Signal()
    help_wanted = Signal()
    closing = Signal(object)  # the QCloseEvent, which whoever keeps the tray may ignore

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._leaves = list_pages()
        self._pages: dict[str, Page] = {}
        self.setWindowTitle("mydata-like")
        self._navigation = Navigation(self._leaves, self)
        self._stack = QStackedWidget(self)
        self._search = Field(self)
        self._seek = QAction(self.tr("Look for a file or folder"), self)
        # Its menu could only hide the tool bar, which nothing would bring back.
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self._make_actions()
        self._make_tool_bar()
        self._make_status_line()
        self._lay_out()
        self._connect()
        self._restore()
        self._show_state(desk.controller.state)

    @property
    def page(self) -> Page | None:
        """The page that is shown."""
        page = self._stack.currentWidget()
        return page if isinstance(page, Page) else None

    def find_page(self, name: str) -> Page:
        """Return a page by its name, made now where it was not needed before."""
        if name not in self._pages:
            leaf = next(leaf for leaf in self._leaves if leaf.name == name)
            page = leaf.make(self._desk, self._stack)
            page.wanted.connect(self.show_page)
            self._pages[name] = page
            self._stack.addWidget(page)
        return self._pages[name]

    @Slot(object)
    def show_page(self, wish: Wish) -> None:
        """Show a page, and on it what is wished for."""
        if wish.page in ("settings", "set-up", "demo"):
            self._show_dialog(wish)
            return
        names = [leaf.name for leaf in self._leaves]
        self._navigation.setCurrentRow(names.index(wish.page))
        if wish.what:
            self.find_page(wish.page).look_for(wish.what)

    def _show_dialog(self, wish: Wish) -> None:
        if wish.page == "settings":
            self.settings_wanted.emit(wish.what)
        elif wish.page == "demo":
            self.demo_wanted.emit()
        else:
            self.set_up_wanted.emit()

    @Slot()
    def raise_up(self) -> None:
        """Bring the window before the person's eyes."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._remember()
        self.closing.emit(event)

    def _make_actions(self) -> None:
        self._start = QAction(icon("start"), self.tr("&Start"), self)
        self._start.setShortcut(QKeySequence(Qt.Key.Key_F5))
        self._pause = QAction(icon("pause"), self.tr("&Pause"), self)
        self._pause.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_P))
        self._resume = QAction(icon("start"), self.tr("&Resume"), self)
        self._resume.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_R))
        self._stop = QAction(icon("stop"), self.tr("S&top"), self)
        self._stop.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_Period))
        self._dry_run = QAction(icon("dry-run"), self.tr("&Dry run"), self)
        self._dry_run.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_D))
        self._dry_run.setToolTip(self.tr("Tell what would be uploaded; nothing is sent"))
        self._add = QAction(icon("add-folders"), self.tr("&Add folders…"), self)
        self._add.setShortcut(QKeySequence.StandardKey.Open)
        self._settings = QAction(icon("settings"), self.tr("S&ettings…"), self)
        self._settings.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_Comma))
        self._help = QAction(icon("help"), self.tr("&Help"), self)
        self._help.setShortcut(QKeySequence.StandardKey.HelpContents)
        self._seek.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Modifier.SHIFT | Qt.Key.Key_F))
        self.addAction(self._seek)

        for number, leaf in enumerate(self._leaves, 1):
            turn = QAction(leaf.title, self)
            turn.setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key(Qt.Key.Key_0 + number)))
            turn.setData(number - 1)
            turn.triggered.connect(self._turn_by_key)
            self._navigation.addAction(turn)

    def list_actions(self) -> list[QAction]:
        """Return all actions that have a key."""
        return [action for action in self.findChildren(QAction) if not action.shortcut().isEmpty()]

    def _make_tool_bar(self) -> None:
        bar = QToolBar(self.tr("Actions"), self)
        bar.setObjectName("actions")
        bar.setMovable(False)
        bar.setIconSize(size_beside_text(bar))
        bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        bar.addActions([self._start, self._pause, self._resume, self._stop])
        bar.addSeparator()
        bar.addActions([self._dry_run, self._add, self._settings, self._help])
        space = QWidget(bar)
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        bar.addWidget(space)
        self._search.setPlaceholderText(self.tr("Where is…"))
        self._search.setAccessibleName(self.tr("Look for a file or folder"))
        key = self._seek.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        self._search.setToolTip(f"{self._seek.text()} ({key})")
        self._search.setClearButtonEnabled(True)
        self._search.setMaximumWidth(self.fontMetrics().averageCharWidth() * 32)
        bar.addWidget(self._search)
        self.addToolBar(bar)

    def _make_status_line(self) -> None:
        self._said = ElidedLabel("", self)
        self._speed = PlainLabel("", self)
        self._next = PlainLabel("", self)
        self._server = ContactSign(self._desk.controller, self)
        self.statusBar().addWidget(self._said, 1)
        for part in (self._speed, self._next, self._server):
            self.statusBar().addPermanentWidget(part)

    def _lay_out(self) -> None:
        middle = QWidget(self)
        layout = QHBoxLayout(middle)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._navigation)
        layout.addWidget(self._stack, 1)
        self.setCentralWidget(middle)

    def _connect(self) -> None:
        controller = self._desk.controller
        self._start.triggered.connect(controller.start)
        self._pause.triggered.connect(controller.pause)
        self._resume.triggered.connect(controller.resume)
        self._stop.triggered.connect(controller.stop)
        self._dry_run.triggered.connect(self.dry_run_wanted)
        self._add.triggered.connect(self.folders_wanted)
        self._settings.triggered.connect(self._want_settings)
        self._help.triggered.connect(self.help_wanted)
        self._search.returnPressed.connect(self._look_for)
        self._seek.triggered.connect(self._go_to_search)
        self._navigation.currentRowChanged.connect(self._turn_to)
        controller.run_changed.connect(self._show_state)

    def _restore(self) -> None:
        geometry = self._desk.memory.value("window/geometry")
        if not isinstance(geometry, QByteArray) or not self.restoreGeometry(geometry):
            self.resize(FIRST_SIZE)
        names = [leaf.name for leaf in self._leaves]
        last = self._desk.memory.value(PAGE)
        self._navigation.setCurrentRow(names.index(last) if last in names else 0)

    def _remember(self) -> None:
        self._desk.memory.setValue("window/geometry", self.saveGeometry())

    @Slot(int)
    def _turn_to(self, row: int) -> None:
        before, page = self.page, self.find_page(self._leaves[row].name)
        if before is not None and before is not page:
            before.hide_page()
        self._stack.setCurrentWidget(page)
        self._desk.memory.setValue(PAGE, self._leaves[row].name)
        page.show_page()

    @Slot()
    def _turn_by_key(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self._navigation.setCurrentRow(action.data())

    @Slot()
    def _want_settings(self) -> None:
        self.settings_wanted.emit("")

    @Slot()
    def _go_to_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    @Slot()
    def _look_for(self) -> None:
        self.show_page(Wish("where", self._search.text()))

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        self._start.setEnabled(state.phase in (Phase.IDLE, Phase.BROKEN))
        self._pause.setVisible(state.phase is not Phase.PAUSED)
        self._pause.setEnabled(state.phase is Phase.RUNNING)
        self._resume.setVisible(state.phase is Phase.PAUSED)
        self._stop.setEnabled(state.phase in (Phase.STARTING, Phase.RUNNING, Phase.PAUSED))
        self._dry_run.setEnabled(state.phase not in (Phase.LOADING, Phase.UNSET))
        self._add.setEnabled(state.phase not in (Phase.LOADING, Phase.UNSET))
        self._said.set_whole(overview_sentence(state))
        busy = state.at_work and state.sums.byte_rate > 0
        self._speed.setText(words.rate(state.sums.byte_rate) if busy else "")
        self._next.setText(self._tell_next(state))

    def _tell_next(self, state: RunState) -> str:
        if state.at_work or state.next_start is None:
            return ""
        return self.tr("Next run %1").replace("%1", words.moment(state.next_start))
