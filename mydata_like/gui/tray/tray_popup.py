"""The Overview in small, next to the icon in the tray."""

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Final

from PySide6.QtCore import QEvent, QRect, Qt, Slot
from PySide6.QtGui import QCursor, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QFrame, QPushButton

from mydata_like.gui.base import AppContext
from mydata_like.gui.overview.bars import SentBar
from mydata_like.gui.overview.headline import Headline
from mydata_like.gui.overview.recent_datasets import RecentDatasets
from mydata_like.gui.overview.route_row import RouteRow
from mydata_like.gui.run_state import LiveView, RunState
from mydata_like.gui.status_text import safe_sentence
from mydata_like.gui.theme.layouts import hbox, vbox
from mydata_like.gui.theme.metrics import SECTION
from mydata_like.gui.theme.widgets import PlainLabel

WIDTH: Final = 96  # average characters, if the screen is as wide
LONGEST: Final = 14  # average characters of a name, if the other one is as long
GAP: Final = 8  # pixels to the icon and to the edges of the screen
SAME_CLICK: Final = 0.3  # seconds; a click on the icon takes the focus from the pop-up before


class TrayPopup(QFrame):
    """From where to where, how it stands, what arrives, and what to do.

    It is hidden as soon as another window is used. It is a tool window rather than a pop-up of Qt,
    which would need a parent window under Wayland.
    """

    def __init__(self, context: AppContext, now: Callable[[], float] = monotonic) -> None:
        super().__init__(None, Qt.WindowType.Tool | Qt.WindowType.FramelessWindowHint)
        controller = self._controller = context.controller
        self._now = now
        self._hidden = -inf  # when it lost the focus last
        self._icon = QRect()
        self._route = RouteRow(controller, self, LONGEST)
        self._headline = Headline(controller, self, SECTION)
        self._sent = SentBar(self)
        self._datasets = RecentDatasets(context, self, names_files=False)
        self._safe = PlainLabel("", self, wrap=True)
        self._open = QPushButton(self.tr("Open the &window"), self)
        self.setWindowTitle(self.tr("Upload status"))
        self.setFrameShape(QFrame.Shape.StyledPanel)

        last = hbox((self._safe, 1), (self._open, Qt.AlignmentFlag.AlignBottom))
        vbox(self._route, self._headline, self._sent, self._datasets, last, inside=self)
        self._set_margins()

        controller.run_changed.connect(self._on_state)
        controller.live_changed.connect(self._on_live)
        controller.page_wanted.connect(self.hide)
        self._open.clicked.connect(self._open_window)

    def toggle(self, icon: QRect) -> None:
        """Show the pop-up at the icon, or at the mouse if the tray does not tell where; or hide it.

        On some systems a click on the icon has just hidden it.
        """
        if self.isVisible() or self._now() - self._hidden < SAME_CLICK:
            self.hide()
            return
        self._icon = QRect(QCursor.pos(), QCursor.pos()) if icon.isEmpty() else icon
        self._show_state(self._controller.state)
        self._datasets.show_transfers(self._controller.live.transfers)
        self.show()
        self.raise_()
        self.activateWindow()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowDeactivate and self.isVisible():
            self._hidden = self._now()
            self.hide()
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self._fit()  # rows that have just been shown or hidden have their size only now
        return done

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._set_margins()

    def _set_margins(self) -> None:
        side = self.fontMetrics().height()
        if layout := self.layout():
            layout.setContentsMargins(side, side, side, side)
            layout.setSpacing(side)

    def _fit(self) -> None:
        """Take the size of what is shown, above or below the icon, within its screen."""
        icon = self._icon
        screen = QGuiApplication.screenAt(icon.center()) or QGuiApplication.primaryScreen()
        area = screen.availableGeometry().adjusted(GAP, GAP, -GAP, -GAP)
        wanted = min(self.fontMetrics().averageCharWidth() * WIDTH, area.width())
        width = max(wanted, self.minimumSizeHint().width())
        self.setFixedWidth(width)
        self.resize(width, self.heightForWidth(width))  # `adjustSize` takes that of another width
        place = QRect(self.pos(), self.size())
        place.moveCenter(icon.center())
        if icon.center().y() > area.center().y():
            place.moveBottom(icon.top() - GAP)
        else:
            place.moveTop(icon.bottom() + GAP)
        left = max(area.left(), min(place.left(), area.right() - place.width()))
        top = max(area.top(), min(place.top(), area.bottom() - place.height()))
        self.move(left, top)

    @Slot(object)
    def _on_state(self, state: RunState) -> None:
        if self.isVisible():
            self._show_state(state)

    @Slot(object)
    def _on_live(self, live: LiveView) -> None:
        if self.isVisible():
            self._datasets.show_transfers(live.transfers)

    def _show_state(self, state: RunState) -> None:
        self._route.show_state(state)
        self._headline.show_state(state)
        self._sent.show_state(state)
        self._datasets.show_state(state)
        self._safe.setText(safe_sentence(state))
        self._fit()

    @Slot()
    def _open_window(self) -> None:
        self._controller.open_page("")
