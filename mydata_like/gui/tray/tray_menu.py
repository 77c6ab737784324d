"""The tray icon with its menu and tooltip."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.status_text import amount_sentence, overview_sentence, safe_sentence
from mydata_like.gui.theme.widgets import action
from mydata_like.gui.tray.notifications import Notification
from mydata_like.gui.tray.tray_icon import TrayIcon, choose_icon, draw_icon

MIN_UPDATE_INTERVAL: Final = 500  # milliseconds between two changes of the icon
SEARCH_INTERVAL: Final = 30_000  # milliseconds between two searches for a tray
MAX_SEARCHES: Final = 10  # desktops may create their tray after they have started programs
HOUR: Final = 3_600_000  # milliseconds
MESSAGE_DURATION: Final = 10_000  # milliseconds, if the system lets us choose


class Tray(QObject):
    """The icon, its menu and its messages; hidden until a tray is available."""

    clicked = Signal()
    quit_wanted = Signal()
    appeared = Signal()

    def __init__(
        self,
        controller: WindowController,
        parent: QObject | None = None,
        is_available: Callable[[], bool] = QSystemTrayIcon.isSystemTrayAvailable,
    ) -> None:
        super().__init__(parent)
        self._controller = controller
        self._is_available = is_available
        self._searches = 0
        self._icon_spec: TrayIcon | None = None
        self._phase = controller.state.phase
        self._page = ""  # of the last message
        self.icon = QSystemTrayIcon(self)
        self.menu = QMenu()
        self._make_actions()
        self.icon.setContextMenu(self.menu)
        self._update_timer = QTimer(self, interval=MIN_UPDATE_INTERVAL, singleShot=True)
        self._hour_timer = QTimer(self, interval=HOUR, singleShot=True)
        self._search_timer = QTimer(self, interval=SEARCH_INTERVAL)

        self.icon.activated.connect(self._on_click)
        self.icon.messageClicked.connect(self._on_message_clicked)
        self._controller.run_changed.connect(self._on_state)
        self.menu.aboutToShow.connect(self._show_details)
        self._update_timer.timeout.connect(self._show)
        self._hour_timer.timeout.connect(self._controller.resume)
        self._search_timer.timeout.connect(self.find_tray)

        self._on_state(controller.state)
        self.find_tray()

    @property
    def available(self) -> bool:
        """Whether a tray shows our icon."""
        return self.icon.isVisible() and self._is_available()  # the panel may have crashed

    @Slot()
    def find_tray(self) -> None:
        """Show the icon if there is a tray; otherwise search again for some minutes."""
        self._searches += 1
        if self._is_available():
            self._search_timer.stop()
            self.icon.show()
            self.appeared.emit()
        elif self._searches > MAX_SEARCHES:
            self._search_timer.stop()
        else:
            self._search_timer.start()

    def show_notification(self, message: Notification) -> None:
        """Show a notification; a click on it opens the window, at its page."""
        self._page = message.page
        title, text = _without_markup(message.title), _without_markup(message.text)
        self.icon.showMessage(title, text, self.icon.icon(), MESSAGE_DURATION)

    def _make_actions(self) -> None:
        run, menu = self._controller, self.menu
        self.sentence, self.amount, self.safe = (menu.addAction("") for _ in range(3))
        for line in (self.sentence, self.amount, self.safe):
            line.setEnabled(False)
        menu.addSeparator()
        self.start = action(menu, "", self.tr("&Start"), run.start)
        self.pause = action(menu, "", self.tr("&Pause"), run.pause)
        self.pause_hour = action(menu, "", self.tr("Pause for 1 &hour"), self._pause_for_an_hour)
        self.resume = action(menu, "", self.tr("&Resume"), run.resume)
        self.stop = action(menu, "", self.tr("S&top"), run.stop)
        self.open = action(menu, "", self.tr("&Open"), self._open_page)
        self.speed_test = action(menu, "", self.tr("Spee&d test"), self._open_page)
        self.speed_test.setData("speed")
        self.settings = action(menu, "", self.tr("S&ettings"), self._open_page)
        self.settings.setData("settings")
        self.quit = action(menu, "", self.tr("&Quit"), self.quit_wanted)
        menu.addActions([self.start, self.pause, self.pause_hour, self.resume, self.stop])
        menu.addSeparator()
        menu.addActions([self.open, self.speed_test, self.settings])
        menu.addSeparator()
        menu.addAction(self.quit)
        menu.setDefaultAction(self.open)

    @Slot(object)
    def _on_state(self, state: RunState) -> None:
        if self._phase is Phase.PAUSED and state.phase is not Phase.PAUSED:
            self._hour_timer.stop()  # the user resumed before the hour was over
        self._phase = state.phase
        self._update_actions(state)
        if self.menu.isVisible():
            self._show_details()
        if not self._update_timer.isActive():
            self._show()

    @Slot()
    def _show(self) -> None:
        """Show the current state, at most once per interval."""
        state = self._controller.state
        sentence, icon_spec = overview_sentence(state), choose_icon(state)
        tip = _without_markup(sentence)
        if (tip, icon_spec) == (self.icon.toolTip(), self._icon_spec):
            return
        if icon_spec != self._icon_spec:
            self.icon.setIcon(draw_icon(icon_spec))
        self._icon_spec = icon_spec
        self.sentence.setText(sentence.replace("&", "&&"))  # a single & would mark a shortcut key
        self.icon.setToolTip(tip)
        self._update_timer.start()

    @Slot()
    def _show_details(self) -> None:
        """Show what the Overview says below its sentence."""
        state = self._controller.state
        said = {self.amount: amount_sentence(state), self.safe: safe_sentence(state)}
        for line, text in said.items():
            line.setText(text.replace("&", "&&"))
            line.setVisible(bool(text))

    def _update_actions(self, state: RunState) -> None:
        """Show the actions that are possible now."""
        paused = state.phase is Phase.PAUSED
        running = state.phase in (Phase.STARTING, Phase.RUNNING)
        self.start.setVisible(not state.at_work)
        self.start.setEnabled(state.can_start and state.phase is not Phase.LOADING)
        self.pause.setVisible(running)
        self.pause_hour.setVisible(running)
        self.resume.setVisible(paused)
        self.stop.setVisible(running or paused or state.phase is Phase.PAUSING)

    @Slot()
    def _pause_for_an_hour(self) -> None:
        self._controller.pause()
        self._hour_timer.start()

    @Slot()
    def _open_page(self) -> None:
        opener = self.sender()
        assert isinstance(opener, QAction)
        self._controller.open_page(opener.data() or "")

    @Slot(QSystemTrayIcon.ActivationReason)
    def _on_click(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is QSystemTrayIcon.ActivationReason.Trigger:
            self.clicked.emit()
        elif reason is QSystemTrayIcon.ActivationReason.DoubleClick:
            self._controller.open_page("")

    @Slot()
    def _on_message_clicked(self) -> None:
        self._controller.open_page(self._page)


def _without_markup(text: str) -> str:
    """Return a text without markup characters, since some desktops interpret markup."""
    return text.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}").replace(
        ">", "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
    )
