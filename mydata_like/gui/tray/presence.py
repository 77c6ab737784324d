"""What the program is besides its window, put together: tray, messages, doorbell, leaving."""

from pathlib import Path
from time import monotonic

from PySide6.QtCore import QObject, Signal, Slot

from mydata_like.core.errors import Problem
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.pages.page import Desk, Wish
from mydata_like.gui.state import PastRun, Phase, RunState
from mydata_like.gui.tray.banner import Banner
from mydata_like.gui.tray.herald import Herald, Kind, Message
from mydata_like.gui.tray.instance import Call, use_token
from mydata_like.gui.tray.leaving import Leaving
from mydata_like.gui.tray.tray import Tray
from mydata_like.gui.window import Window

SETTINGS = "settings"  # is a dialog and no page


class Presence(QObject):
    """Shows the window when it is wanted, and speaks up while nobody looks at it."""

    paths_given = Signal(object)  # a tuple of paths, which the start or a later one brought

    def __init__(
        self, desk: Desk, window: Window, start: LaunchOptions, tray: Tray | None = None
    ) -> None:
        super().__init__(window)
        self._controller = desk.controller
        self._window = window
        self._start = start
        self._herald = Herald(self._is_wanted)
        self._opened = False
        self._last: PastRun | None = None
        self.tray = tray or Tray(desk.controller, self)
        self.banner = Banner(window)
        self.leaving = Leaving(desk.controller, window, self.tray, desk.memory)
        self._connect()

    @Slot(object)
    def answer(self, call: Call) -> None:
        """Do what a second start wants."""
        if call.show or call.paths:
            use_token(call.token)
            self._window.raise_up()
        if call.paths:
            self.paths_given.emit(tuple(map(Path, call.paths)))

    @Slot(object)
    def show_page(self, page: str) -> None:
        """Bring the window to the front, and there a page or the settings."""
        self._window.raise_up()
        if page == SETTINGS:
            self._window.settings_wanted.emit("")
        elif page:
            self._window.show_page(Wish(page))

    def _connect(self) -> None:
        self.tray.open_wanted.connect(self._window.raise_up)
        self.tray.page_wanted.connect(self.show_page)
        self.tray.appeared.connect(self._move_to_tray)
        self.banner.page_wanted.connect(self.show_page)
        self.leaving.said.connect(self._say)
        self._controller.run_changed.connect(self._hear_state)
        self._controller.problem_raised.connect(self._hear_problem)
        self._controller.settings_changed.connect(self._open)

    @Slot()
    def _open(self) -> None:
        """Show the window for the first time, as the start and the settings have it."""
        if self._opened:
            return
        self._opened = True
        opens = "tray" if self._start.hidden else self._controller.settings.window.opens
        if self._start.paths or opens == "normal":
            self._window.show()
        elif opens == "maximized":
            self._window.showMaximized()
        elif opens == "minimized" or not self.tray.available:
            self._window.showMinimized()
        if self._start.paths:
            self.paths_given.emit(self._start.paths)

    @Slot()
    def _move_to_tray(self) -> None:
        """Go into a tray that came late, if the window waits for one."""
        if self._start.hidden and self._window.isMinimized():
            self._window.hide()

    @Slot(object)
    def _hear_state(self, state: RunState) -> None:
        if state.phase is Phase.BROKEN:
            self._open()  # settings that cannot be read open the window, too
        if state.last and state.last != self._last and state.last.safe:
            self.banner.withdraw_problem()
        self._last = state.last
        self._tell(self._herald.hear_state(state, monotonic()))

    @Slot(object)
    def _hear_problem(self, problem: Problem) -> None:
        self._tell(self._herald.hear_problem(problem, monotonic()))

    @Slot(object)
    def _say(self, sentence: str) -> None:
        self._tell(Message(None, self.tr("mydata-like goes on"), sentence, ""))

    def _tell(self, message: Message | None) -> None:
        """Show a message where the person looks; that all went well is seen in the window."""
        looked_at = self._window.isActiveWindow()
        if message is None or (looked_at and message.kind is Kind.FINISHED):
            return
        if looked_at or not self.tray.available:
            self.banner.tell(message)
        else:
            self.tray.tell(message)

    def _is_wanted(self, kind: Kind) -> bool:
        return bool(getattr(self._controller.settings.window, kind.value))
