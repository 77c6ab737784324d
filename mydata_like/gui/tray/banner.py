"""A strip below the tool bar that tells what the tray would tell, where there is no tray."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QPushButton, QToolBar, QWidget

from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import ElidedLabel, PlainLabel
from mydata_like.gui.look.picture import Picture
from mydata_like.gui.tray.herald import Kind, Message

_PROBLEMS = (Kind.PROBLEM, Kind.SILENCE)


class Banner(QToolBar):
    """Shows one message until somebody has read it; the next one takes its place."""

    page_wanted = Signal(object)  # the name of a page

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self.setWindowTitle(self.tr("Message"))
        self.setObjectName("banner")
        self.setMovable(False)
        self.toggleViewAction().setVisible(False)
        self._page = ""
        self._bad = False
        self._picture = Picture(1, self)
        self._title = PlainLabel("", self)
        self._title.scale(1, bold=True)
        self._text = ElidedLabel("", self)
        self._more = QPushButton(self.tr("Show &more"), self)
        self._close = QPushButton(self.tr("&Close message"), self)
        self._lay_out()
        window.addToolBarBreak()
        window.addToolBar(self)
        self._more.clicked.connect(self._follow)
        self._close.clicked.connect(self.hide)
        self.hide()

    def tell(self, message: Message) -> None:
        """Show a message."""
        self._page = message.page
        self._bad = message.kind in _PROBLEMS
        self._picture.show_icon(icon("warning", "problem") if self._bad else icon("info"))
        self._title.setText(message.title)
        self._text.set_whole(message.text)
        self._more.setVisible(bool(message.page))
        self.show()

    def withdraw_problem(self) -> None:
        """Say no more of a problem: there is none any longer."""
        if self._bad:
            self.hide()

    def _lay_out(self) -> None:
        strip = QWidget(self)
        layout = QHBoxLayout(strip)
        gap = self.fontMetrics().height() // 2
        layout.setContentsMargins(gap, 0, gap, 0)
        layout.addWidget(self._picture)
        layout.addWidget(self._title)
        layout.addWidget(self._text, 1)
        layout.addWidget(self._more)
        layout.addWidget(self._close)
        self.addWidget(strip)

    @Slot()
    def _follow(self) -> None:
        self.hide()
        self.page_wanted.emit(self._page)
