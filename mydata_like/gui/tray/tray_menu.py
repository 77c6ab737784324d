"""The tray icon with its menu and tooltip."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.status_text import overview_sentence
from mydata_like.gui.tray.notifications import Notification
from mydata_like.gui.tray.tray_icon import TrayIcon, choose_emblem, draw_emblem

PACE: Final = 500  # milliseconds between two changes of the icon
LOOK_AGAIN: Final = 30_000  # milliseconds after which it is looked again for a tray
LOOKS: Final = 10  # so often: desktops show their tray some time after they start programs
HOUR: Final = 3_600_000  # milliseconds
SHOWN: Final = 10_000  # milliseconds that a message stays, where the system lets us choose
_CLICKS: Final = (
    QSystemTrayIcon.ActivationReason.Trigger,
    QSystemTrayIcon.ActivationReason.DoubleClick,
)


class Tray(QObject):
    """The icon, its menu and its messages; without a tray nothing is shown, until one appears."""

    open_wanted = Signal()
    page_wanted = Signal(object)  # the name of a page
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
        self._looks = 0
        self._emblem: TrayIcon | None = None
        self._phase = controller.state.phase
        self._page = ""  # that the last message leads to
        self.icon = QSystemTrayIcon(self)
        self.menu = QMenu()
        self._make_actions()
        self.icon.setContextMenu(self.menu)
        self._pace = QTimer(self, interval=PACE, singleShot=True)
        self._hour = QTimer(self, interval=HOUR, singleShot=True)
        self._search = QTimer(self, interval=LOOK_AGAIN)
        self._connect()
        self._note(controller.state)
        self.look()

    @property
    def available(self) -> bool:
        """Whether there is a tray, and our icon in it."""
        return self.icon.isVisible() and self._is_available()  # a panel may end while it is there

    @Slot()
    def look(self) -> None:
        """Take the tray if there is one; look for it again for some minutes if not."""
        self._looks += 1
        if self._is_available():
            self._search.stop()
            self.icon.show()
            self.appeared.emit()
        elif self._looks > LOOKS:
            self._search.stop()
        else:
            self._search.start()

    def tell(self, message: Notification) -> None:
        """Show a message; a click on it leads to its page."""
        self._page = message.page
        self.icon.showMessage(
            _without_markup(message.title), _without_markup(message.text), self.icon.icon(), SHOWN
        )

    def _make_actions(self) -> None:
        self.sentence = self.menu.addAction("")
        self.sentence.setEnabled(False)
        self.menu.addSeparator()
        self.start = self.menu.addAction(self.tr("&Start"))
        self.pause = self.menu.addAction(self.tr("&Pause"))
        self.pause_hour = self.menu.addAction(self.tr("Pause for 1 &hour"))
        self.resume = self.menu.addAction(self.tr("&Resume"))
        self.stop = self.menu.addAction(self.tr("S&top"))
        self.menu.addSeparator()
        self.open = self.menu.addAction(self.tr("&Open"))
        self.speed_test = self._add_page(self.tr("Spee&d test"), "speed")
        self.settings = self._add_page(self.tr("S&ettings"), "settings")
        self.menu.addSeparator()
        self.quit = self.menu.addAction(self.tr("&Quit"))
        self.menu.setDefaultAction(self.open)

    def _add_page(self, text: str, page: str) -> QAction:
        action = self.menu.addAction(text)
        action.setData(page)
        return action

    def _connect(self) -> None:
        self.start.triggered.connect(self._controller.start)
        self.pause.triggered.connect(self._controller.pause)
        self.pause_hour.triggered.connect(self._pause_for_an_hour)
        self.resume.triggered.connect(self._controller.resume)
        self.stop.triggered.connect(self._controller.stop)
        self.open.triggered.connect(self.open_wanted)
        self.speed_test.triggered.connect(self._open_page)
        self.settings.triggered.connect(self._open_page)
        self.quit.triggered.connect(self.quit_wanted)
        self.icon.activated.connect(self._follow_click)
        self.icon.messageClicked.connect(self._follow_message)
        self._controller.run_changed.connect(self._note)
        self._pace.timeout.connect(self._show)
        self._hour.timeout.connect(self._controller.resume)
        self._search.timeout.connect(self.look)

    @Slot(object)
    def _note(self, state: RunState) -> None:
        if self._phase is Phase.PAUSED and state.phase is not Phase.PAUSED:
            self._hour.stop()  # somebody was faster
        self._phase = state.phase
        self._offer(state)
        if not self._pace.isActive():
            self._show()

    @Slot()
    def _show(self) -> None:
        """Show how things stand now, and no sooner again than after a moment."""
        state = self._controller.state
        sentence, emblem = overview_sentence(state), choose_emblem(state)
        tip = _without_markup(sentence)
        if (tip, emblem) == (self.icon.toolTip(), self._emblem):
            return
        if emblem != self._emblem:
            self.icon.setIcon(draw_emblem(emblem))
        self._emblem = emblem
        self.sentence.setText(sentence.replace("&", "&&"))  # else & underlines what follows
        self.icon.setToolTip(tip)
        self._pace.start()

    def _offer(self, state: RunState) -> None:
        """Offer what can be done now."""
        paused = state.phase is Phase.PAUSED
        running = state.phase in (Phase.STARTING, Phase.RUNNING)
        self.start.setVisible(not state.at_work)
        self.start.setEnabled(state.can_start and state.phase is not Phase.LOADING)
        self.pause.setVisible(running)
        self.pause_hour.setVisible(running)
        self.resume.setVisible(paused)
        self.stop.setVisible(running or paused)

    @Slot()
    def _pause_for_an_hour(self) -> None:
        self._controller.pause()
        self._hour.start()

    @Slot()
    def _open_page(self) -> None:
        action = self.sender()
        assert isinstance(action, QAction)
        self.page_wanted.emit(action.data())

    @Slot(QSystemTrayIcon.ActivationReason)
    def _follow_click(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in _CLICKS:
            self.open_wanted.emit()

    @Slot()
    def _follow_message(self) -> None:
        self.page_wanted.emit(self._page)


def _without_markup(text: str) -> str:
    """Return a text in which no desktop finds markup; some look for it, and others do not."""
    return text.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}").replace(
        ">", "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
    )
