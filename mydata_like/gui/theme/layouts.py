"""Layouts, labels and actions, each described by one call."""

from collections.abc import Callable

from PySide6.QtCore import QKeyCombination, QObject, Qt, SignalInstance
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from mydata_like.gui.theme.widgets import PlainLabel, icon

# A widget or a layout, also with its stretch or alignment; a distance in pixels; None takes the
# rest of the room, a stretch alone that share of it.
Item = QWidget | QLayout
Part = (
    Item | tuple[Item, int] | tuple[QWidget, int, Qt.AlignmentFlag] | tuple[None, int] | int | None
)
Margins = int | tuple[int, int, int, int]  # of all sides; or left, top, right, bottom


def hbox(
    *parts: Part,
    on: QWidget | None = None,
    spacing: int | None = None,
    margins: Margins | None = None,
) -> QHBoxLayout:
    """Return a layout from left to right, of a widget if there is one to put it `on`."""
    layout = QHBoxLayout(on) if on else QHBoxLayout()
    fill(layout, *parts, spacing=spacing, margins=margins)
    return layout


def vbox(
    *parts: Part,
    on: QWidget | None = None,
    spacing: int | None = None,
    margins: Margins | None = None,
) -> QVBoxLayout:
    """Return a layout from top to bottom, of a widget if there is one to put it `on`."""
    layout = QVBoxLayout(on) if on else QVBoxLayout()
    fill(layout, *parts, spacing=spacing, margins=margins)
    return layout


def fill(
    layout: QBoxLayout, *parts: Part, spacing: int | None = None, margins: Margins | None = None
) -> None:
    """Add the parts of a layout in their order."""
    if spacing is not None:
        layout.setSpacing(spacing)
    if margins is not None:
        layout.setContentsMargins(*((margins,) * 4 if isinstance(margins, int) else margins))
    for part in parts:
        match part:
            case int(distance):
                layout.addSpacing(distance)
            case None:
                layout.addStretch(1)
            case (None, int(stretch)):
                layout.addStretch(stretch)
            case (QLayout() as inner, int(stretch)):
                layout.addLayout(inner, stretch)
            case (QWidget() as widget, int(stretch)):
                layout.addWidget(widget, stretch)
            case (widget, stretch, alignment):
                layout.addWidget(widget, stretch, alignment)
            case QLayout():
                layout.addLayout(part)
            case QWidget():
                layout.addWidget(part)


def scrolled(content: QWidget, parent: QWidget) -> QScrollArea:
    """Return an area without a frame in which the content can be scrolled, and takes the focus."""
    area = QScrollArea(parent)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(content)
    return area


def label(
    parent: QWidget,
    text: str = "",
    *,
    scale: float = 1.0,
    bold: bool = False,
    wrap: bool = False,
    quiet: bool = False,
    selectable: bool = False,
) -> PlainLabel:
    """Return a label; a quiet one has the colour of placeholders."""
    made = PlainLabel(text, parent)
    if bold or scale != 1.0:
        made.scale(scale, bold=bold)
    made.setWordWrap(wrap)
    if quiet:
        made.setForegroundRole(parent.palette().ColorRole.PlaceholderText)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


def action(
    parent: QObject,
    icon_name: str,
    text: str,
    effect: Callable[..., object] | SignalInstance | None = None,
    *,
    keys: QKeySequence | QKeySequence.StandardKey | QKeyCombination | Qt.Key | None = None,
) -> QAction:
    """Return an action; without the name of an icon it has none."""
    made = QAction(text, parent)
    if icon_name:
        made.setIcon(icon(icon_name))
    if keys is not None:
        made.setShortcut(QKeySequence(keys))
    if effect is not None:
        made.triggered.connect(effect)
    return made
