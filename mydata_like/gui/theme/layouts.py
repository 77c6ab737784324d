"""Layouts that are written as what they contain, and dialogs with a size in characters."""

from typing import NamedTuple, TypeVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from mydata_like.gui.theme.metrics import PAGE_WIDTH

ROOM = 0.85  # of the screen that a dialog takes at most

Layout = TypeVar("Layout", bound=QBoxLayout)


class Gap(NamedTuple):
    """An empty space of this many pixels."""

    pixels: int


# A widget or a layout, also with its stretch factor or its alignment; a number is an empty space
# that stretches.
Part = QWidget | QLayout | tuple[QWidget | QLayout, int] | tuple[QWidget, Qt.AlignmentFlag] | int
Margins = tuple[int, int, int, int]  # left, top, right, bottom


def vbox(
    *parts: Part | Gap,
    inside: QWidget | None = None,
    spacing: int | None = None,
    margins: Margins | None = None,
) -> QVBoxLayout:
    """Lay out parts from top to bottom: as the layout of the widget `inside`, or as a part."""
    layout = QVBoxLayout(inside) if inside is not None else QVBoxLayout()
    return fill(_measure(layout, spacing, margins), *parts)


def hbox(
    *parts: Part | Gap,
    inside: QWidget | None = None,
    spacing: int | None = None,
    margins: Margins | None = None,
) -> QHBoxLayout:
    """Lay out parts from left to right: as the layout of the widget `inside`, or as a part."""
    layout = QHBoxLayout(inside) if inside is not None else QHBoxLayout()
    return fill(_measure(layout, spacing, margins), *parts)


def frameless(layout: Layout) -> Layout:
    """Return a layout without margins."""
    layout.setContentsMargins(0, 0, 0, 0)
    return layout


def _measure(layout: Layout, spacing: int | None, margins: Margins | None) -> Layout:
    if spacing is not None:
        layout.setSpacing(spacing)
    if margins is not None:
        layout.setContentsMargins(*margins)
    return layout


def fill(layout: Layout, *parts: Part | Gap) -> Layout:
    """Add parts to a layout, and return it."""
    for part in parts:
        match part:
            case int():
                layout.addStretch(part)
            case Gap(pixels):
                layout.addSpacing(pixels)
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


class _PageArea(QScrollArea):
    """An area whose content is at most as wide as `PAGE_WIDTH`, also with larger text."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        if content := self.widget():
            content.setMaximumWidth(self.fontMetrics().averageCharWidth() * PAGE_WIDTH)
        super().resizeEvent(event)


def scrolled(content: QWidget, parent: QWidget, *, wide: bool = False) -> QScrollArea:
    """Return an area without a frame in which the content can be scrolled, and takes the focus.

    Only content with tables is `wide`.
    """
    area = QScrollArea(parent) if wide else _PageArea(parent)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(content)
    return area


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
