"""The place that says that folders can be dropped."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.palette import quiet


class DropHint(QWidget):
    """A dashed frame with a sentence in it; the whole window takes what is dropped."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = self.tr("Drop folders or files here to upload them")
        self.setAccessibleName(self._text)
        self.setMinimumHeight(self.fontMetrics().height() * 4)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().mid().color(), 1.5, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        line = self.fontMetrics().height()
        side = min(line * 3, self.height() // 3)
        top = (self.height() - side - line * 2) // 2
        icon("add-folders").paint(painter, (self.width() - side) // 2, top, side, side)
        painter.setPen(quiet())
        below = QRectF(0, top + side, self.width(), line * 2)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, self._text)
