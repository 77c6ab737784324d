"""Layouts that are written as what they contain, and dialogs with a size in characters."""

from typing import TypeVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QBoxLayout, QDialog, QHBoxLayout, QLayout, QVBoxLayout, QWidget

ROOM = 0.85  # of the screen that a dialog takes at most

Layout = TypeVar("Layout", bound=QBoxLayout)

# A widget or a layout, also with its stretch factor or its alignment; a number is an empty space
# that stretches.
Part = QWidget | QLayout | tuple[QWidget | QLayout, int] | tuple[QWidget, Qt.AlignmentFlag] | int


def vbox(*parts: Part, inside: QWidget | None = None) -> QVBoxLayout:
    """Lay out parts from top to bottom: as the layout of the widget `inside`, or as a part."""
    return _fill(QVBoxLayout(inside) if inside is not None else QVBoxLayout(), parts)


def hbox(*parts: Part, inside: QWidget | None = None) -> QHBoxLayout:
    """Lay out parts from left to right: as the layout of the widget `inside`, or as a part."""
    return _fill(QHBoxLayout(inside) if inside is not None else QHBoxLayout(), parts)


def frameless(layout: Layout) -> Layout:
    """Return a layout without margins."""
    layout.setContentsMargins(0, 0, 0, 0)
    return layout


def _fill(layout: Layout, parts: tuple[Part, ...]) -> Layout:
    for part in parts:
        match part:
            case int():
                layout.addStretch(part)
            case QWidget():
                layout.addWidget(part)
            case QLayout():
                layout.addLayout(part)
            case (QWidget() as widget, Qt.AlignmentFlag() as place):
                layout.addWidget(widget, 0, place)
            case (QWidget() as widget, int(stretch)):
                layout.addWidget(widget, stretch)
            case (QLayout() as inner, int(stretch)):
                layout.addLayout(inner, stretch)
    return layout


class Dialog(QDialog):
    """A dialog of its own size, but with a margin around it on a small screen.

    It is deleted when it is closed.
    """

    def __init__(self, title: str, parent: QWidget | None, characters: int, lines: int) -> None:
        """`characters` and `lines` are its size."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        metrics, room = self.fontMetrics(), self.screen().availableSize() * ROOM
        wanted = QSize(metrics.averageCharWidth() * characters, metrics.lineSpacing() * lines)
        self.resize(wanted.boundedTo(room))
