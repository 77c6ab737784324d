"""An icon that stands for itself, beside or above a text."""

from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from mydata_like.gui.look.icons import size_beside_text


class Picture(QWidget):
    """Shows an icon as large as text or so many times larger, and follows light and dark.

    Where it tells more than the text with it, it needs an accessible name.
    """

    def __init__(self, scale: float = 1.0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._scale = scale
        self._icon = QIcon()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_icon(self, icon: QIcon) -> None:
        """Show this icon from now on; one without a drawing leaves the place empty."""
        self._icon = icon
        self.update()

    def sizeHint(self) -> QSize:
        return size_beside_text(self) * self._scale

    def paintEvent(self, event: QPaintEvent) -> None:
        mode = QIcon.Mode.Normal if self.isEnabled() else QIcon.Mode.Disabled
        self._icon.paint(QPainter(self), self.rect(), mode=mode)
