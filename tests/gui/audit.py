"""Accessibility checks of a window.

Each function checks a window as it is currently shown, and returns a sentence for each problem.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QAccessible, QAction, QKeySequence, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QComboBox,
    QGroupBox,
    QLabel,
    QLineEdit,
    QMenu,
    QMenuBar,
    QTabBar,
    QToolBar,
    QToolButton,
    QWidget,
)

from mydata_like.gui.theme.style import MIN_HEIGHT
from tests.gui.contrast import contrast

TARGETS = QAbstractButton | QComboBox | QLineEdit | QAbstractSpinBox


def find_nameless(window: QWidget) -> list[str]:
    """Return the focusable widgets without an accessible name."""
    return [f"{describe(widget)} has no name" for widget in _stops(window) if not _name(widget)]


def find_markup(window: QWidget) -> list[str]:
    """Return widgets of which assistive technology would read markup."""
    kinds = (QAccessible.Text.Name, QAccessible.Text.Description)
    return [
        f"{describe(widget)} reads {text!r}"
        for widget in window.findChildren(QWidget)
        if widget.isVisible() and (known := QAccessible.queryAccessibleInterface(widget))
        for text in map(known.text, kinds)
        if "<qt" in text
    ]


def find_clashes(window: QWidget) -> list[str]:
    """Return keys with several meanings in the window or in one of its menus."""
    keys = Counter(key for key in map(_key, _keyed_texts(window)) if key)
    clashes = [f"{key} has {count} meanings" for key, count in keys.items() if count > 1]
    for menu in window.findChildren(QMenu):
        inner = Counter(key for key in (_key(action.text()) for action in menu.actions()) if key)
        clashes += [
            f"{key} has {count} meanings in the menu {menu.title()!r}"
            for key, count in inner.items()
            if count > 1
        ]
    return clashes


def find_leaps(window: QWidget) -> list[str]:
    """Return steps of the Tab order that go back up or left, other than the last one."""
    chain = list(_stops(window))
    leaps = [
        f"Tab jumps back from {describe(one)} to {describe(other)}"
        for one, other in pairwise([*chain, *chain[:1]])
        if _is_before(*(_place(widget, window) for widget in _as_seen(other, one)))
    ]
    return leaps if len(leaps) > 1 else []


def find_small(window: QWidget) -> list[str]:
    """Return targets that are too small to be clicked easily."""
    return [
        f"{describe(widget)} is {widget.width()} x {widget.height()}"
        for widget in _visible(window)
        if isinstance(widget, TARGETS)
        and not isinstance(widget.parent(), QAbstractSpinBox | QComboBox)
        and min(widget.width(), widget.height()) < MIN_HEIGHT
    ]


def find_clipped(window: QWidget) -> list[str]:
    """Return widgets that are too small for their text."""
    return [
        f"{describe(widget)} needs {needed.width()} x {needed.height()},"
        f" has {widget.width()} x {widget.height()}"
        for widget in _visible(window)
        if isinstance(widget, QLabel | QAbstractButton) and _words(widget)
        for needed in [_needed(widget)]
        if widget.width() < needed.width() or widget.height() < needed.height()
    ]


def find_faint(window: QWidget) -> list[str]:
    """Return texts with too little contrast to their background."""
    return [
        f"{describe(widget)} has a contrast of {ratio:.1f}"
        for widget in _visible(window)
        if isinstance(widget, QLabel | QAbstractButton) and _words(widget)
        for ratio in [_contrast(widget)]
        if ratio < (4.5 if widget.isEnabled() else 3.0)
    ]


def find_unreachable(window: QWidget) -> list[str]:
    """Return actions without a key that neither Tab nor a menu reaches."""
    shown = {
        action
        for holder in (QMenu, QMenuBar)
        for widget in window.findChildren(holder)
        for action in widget.actions()
    }
    shown |= {
        button.defaultAction()
        for button in window.findChildren(QToolButton)
        if button.focusPolicy() & Qt.FocusPolicy.TabFocus
    }
    return [
        f"the action {action.text()!r} cannot be reached"
        for action in window.findChildren(QAction)
        if action.text()
        and action not in shown
        and action.shortcut() == QKeySequence()
        and not _is_of_qt(action)
    ]


def describe(widget: QWidget) -> str:
    """Return a description of a widget for messages."""
    said = _name(widget) or _words(widget) or widget.objectName()
    return f"{type(widget).__name__} {said!r} in {type(widget.parent()).__name__}"


def _visible(window: QWidget) -> Iterator[QWidget]:
    """Yield the widgets shown in this window, without Qt's internal ones."""
    for widget in window.findChildren(QWidget):
        if widget.isVisibleTo(window) and widget.window() is window and not _is_of_qt(widget):
            yield widget


def _stops(window: QWidget) -> Iterator[QWidget]:
    """Yield the widgets at which Tab stops, in order."""
    widget = window.nextInFocusChain()
    while widget is not window:
        if (
            widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            and widget.isVisibleTo(window)
            and widget.isEnabled()
            and widget.focusProxy() is None
            and widget.window() is window
            and not _is_of_qt(widget)
        ):
            yield widget
        widget = widget.nextInFocusChain()


def _is_of_qt(thing: QWidget | QAction) -> bool:
    if thing.objectName().startswith("qt_"):
        return True
    parent = thing.parent() if isinstance(thing, QAction) else None
    if isinstance(parent, QToolBar):
        return thing is parent.toggleViewAction()
    return isinstance(parent, QLineEdit)


def _name(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    return interface.text(QAccessible.Text.Name) if interface else ""


def _words(widget: QWidget) -> str:
    text = getattr(widget, "text", None)
    said = text() if callable(text) else ""
    return said if any(letter.isalnum() for letter in said) else ""


def _keyed_texts(window: QWidget) -> Iterator[str]:
    for widget in _visible(window):
        if isinstance(widget, QAbstractButton) or (isinstance(widget, QLabel) and widget.buddy()):
            yield widget.text()
        elif isinstance(widget, QGroupBox):
            yield widget.title()
        elif isinstance(widget, QTabBar):
            yield from (widget.tabText(at) for at in range(widget.count()))
        elif isinstance(widget, QMenuBar):
            yield from (action.text() for action in widget.actions())


def _key(text: str) -> str:
    return QKeySequence.mnemonic(text).toString()


def _as_seen(one: QWidget, other: QWidget) -> tuple[QWidget, QWidget]:
    """Return two widgets to compare; one in a scroll area is replaced by the area."""
    pages = _find_page(one), _find_page(other)
    if pages[0] is pages[1]:
        return one, other
    return pages[0] or one, pages[1] or other


def _find_page(widget: QWidget) -> QWidget | None:
    parent = widget.parentWidget()
    while parent is not None and not isinstance(parent, QAbstractScrollArea):
        parent = parent.parentWidget()
    return parent


def _place(widget: QWidget, window: QWidget) -> QRect:
    return QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())


def _is_before(one: QRect, other: QRect) -> bool:
    """Return whether one rectangle is above another, or left of it in the same line."""
    if one.bottom() < other.top():
        return one.left() <= other.right()  # otherwise it is in the next column
    same_line = one.top() < other.bottom() and other.top() < one.bottom()
    return same_line and one.right() < other.left()


def _needed(widget: QWidget) -> QSize:
    wanted = widget.sizeHint()
    if isinstance(widget, QLabel) and widget.wordWrap():
        wanted.setWidth(min(wanted.width(), widget.width()))
        wanted.setHeight(widget.heightForWidth(widget.width()))
    return wanted


def _contrast(widget: QWidget) -> float:
    group = QPalette.ColorGroup.Active if widget.isEnabled() else QPalette.ColorGroup.Disabled
    front = widget.palette().color(group, widget.foregroundRole()).name()
    return contrast(front, _ground(widget, group))


def _ground(widget: QWidget, group: QPalette.ColorGroup) -> str:
    """Return the background colour of a widget, or of its first parent that paints one."""
    while not (
        widget.isWindow()
        or widget.autoFillBackground()
        or isinstance(widget.parent(), QAbstractScrollArea)
    ):
        if isinstance(widget, QAbstractButton):
            break
        widget = widget.parentWidget()
    return widget.palette().color(group, widget.backgroundRole()).name()
