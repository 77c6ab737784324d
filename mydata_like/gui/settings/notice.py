"""A sentence at the foot of the dialog, with at most one button that goes with it."""

from collections.abc import Callable

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from mydata_like.gui.look.palette import Status
from mydata_like.gui.settings.signs import Sign


class Notice(QWidget):
    """Says one thing at a time; empty it takes no room."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._sign = Sign(self)
        self._button = QPushButton(self)
        self._act: Callable[[], object] | None = None
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._sign, 1)
        line.addWidget(self._button)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._button.clicked.connect(self.act)
        self.clear()

    @property
    def text(self) -> str:
        """What is said."""
        return self._sign.text

    def say(self, text: str, name: str = "info", status: Status | None = None) -> None:
        """Say something, with the icon of this name, in the colour of a status."""
        self._sign.say(text, name, status)
        self._button.hide()
        self.show()

    def offer(self, text: str, words: str, act: Callable[[], object]) -> None:
        """Say something, with a button that does what its words say."""
        self.say(text)
        self._act = act
        self._button.setText(words)
        self._button.show()

    def clear(self) -> None:
        """Say nothing."""
        self.hide()

    @Slot()
    def act(self) -> None:
        """Do what the button offers."""
        self.clear()
        if self._act is not None:
            self._act()
