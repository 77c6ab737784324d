"""The program's icons: one set of line drawings, in the colour of the text beside them.

An icon takes its colour when it is painted, so a change between light and dark needs nothing but
the repaint that Qt makes anyway.
"""

from functools import lru_cache

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QIconEngine, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QWidget

from mydata_like.gui.look.palette import Status, status_colour
from mydata_like.gui.look.resources import find_resources


def icon(name: str, status: Status | None = None) -> QIcon:
    """Return the icon of this name, in the colour of text or of a status."""
    return QIcon(_Tinted(name, status))


def app_icon() -> QIcon:
    """Return the icon of the program itself, which keeps its colours."""
    return QIcon(str(find_resources() / "icons" / "app.svg"))


def size_beside_text(widget: QWidget) -> QSize:
    """Return how large icons are in a line with a widget's text."""
    side = round(widget.fontMetrics().height() * 1.3)
    return QSize(side, side)


@lru_cache(maxsize=512)
def drawing(name: str, colour: str) -> QSvgRenderer:
    """Return the icon's drawing in a colour (#rrggbb), for those who paint by themselves."""
    source = (find_resources() / "icons" / f"{name}.svg").read_bytes()
    return QSvgRenderer(source.replace(b"currentColor", colour.encode()))


# Qt owns a clone, but PySide 6.12 lets Python free it as well; Qt clones next to never.
_clones: list[QIconEngine] = []


class _Tinted(QIconEngine):
    """Paints one drawing in the colour that its mode and the palette ask for."""

    def __init__(self, name: str, status: Status | None) -> None:
        super().__init__()
        self._name = name
        self._status = status

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        side = min(rect.width(), rect.height())
        square = QRectF(0, 0, side, side)
        square.moveCenter(QRectF(rect).center())
        drawing(self._name, self._colour(mode).name()).render(painter, square)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self.scaledPixmap(size, mode, state, 1.0)

    def scaledPixmap(
        self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float
    ) -> QPixmap:
        pixmap = QPixmap(size * scale)
        pixmap.setDevicePixelRatio(scale)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, QRect(0, 0, size.width(), size.height()), mode, state)
        painter.end()
        return pixmap

    def clone(self) -> QIconEngine:
        copy = _Tinted(self._name, self._status)
        _clones.append(copy)
        return copy

    def _colour(self, mode: QIcon.Mode) -> QColor:
        palette = QGuiApplication.palette()
        if mode == QIcon.Mode.Disabled:
            return palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.WindowText)
        if mode == QIcon.Mode.Selected:
            return palette.color(QPalette.ColorRole.HighlightedText)
        if self._status:
            return status_colour(self._status)
        return palette.color(QPalette.ColorRole.WindowText)
