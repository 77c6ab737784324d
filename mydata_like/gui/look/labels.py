"""Labels that show any text as it is."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from mydata_like.core.formatting import format_lines
from mydata_like.gui.look import words

LARGE = 1.6  # times the usual size of text
SMALL = 0.9


class PlainLabel(QLabel):
    r"""A label that never takes text for markup, and shows control characters as `\x1b`."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(format_lines(text), parent)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def setText(self, text: str) -> None:
        super().setText(format_lines(text))

    def scale(self, factor: float, *, bold: bool = False) -> None:
        """Show the text so many times larger than usual."""
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * factor)
        font.setBold(bold)
        self.setFont(font)


class ElidedLabel(PlainLabel):
    """A label of one line that gives way: what does not fit is cut out in the middle."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._whole = ""
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * 8)
        self.set_whole(text)

    @property
    def whole(self) -> str:
        """The text that is meant."""
        return self._whole

    def set_whole(self, text: str) -> None:
        """Show this text, as far as it fits."""
        self._whole = text
        self.setAccessibleName(text)
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        mode = Qt.TextElideMode.ElideMiddle
        shown = self.fontMetrics().elidedText(self._whole, mode, max(1, self.width()))
        self.setText(shown)
        self.setToolTip("" if shown == self._whole else words.tip(self._whole))
