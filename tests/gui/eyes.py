"""Run the program, and report what its windows show: `python -m tests.gui.eyes WORD...`.

Each line on standard input is answered with one on standard output: the open windows with their
texts. This module only reads; tests control the program with keys and mouse.
"""

import json
import sys
from collections.abc import Iterator
from threading import Thread

from PySide6.QtCore import QObject, QPoint, QRect, Qt, Signal, Slot
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QTableView,
    QTreeView,
    QWidget,
)

from mydata_like.__main__ import main

MOST_ROWS = 100


class Eyes(QObject):
    """A reader of the program's windows that runs in the GUI thread."""

    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(self._report, Qt.ConnectionType.QueuedConnection)
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for _ in sys.stdin:
            self.asked.emit()

    @Slot()
    def _report(self) -> None:
        windows = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
        sys.stdout.write(json.dumps([describe(window) for window in windows]) + "\n")
        sys.stdout.flush()


def describe(window: QWidget) -> dict[str, object]:
    """Return the title of a window and the visible things in it."""
    things = [thing for widget in _visible(window) for thing in _look_at(widget)]
    return {"title": window.windowTitle(), "active": window.isActiveWindow(), "things": things}


def _visible(window: QWidget) -> Iterator[QWidget]:
    for widget in [window, *window.findChildren(QWidget)]:
        if widget.isVisible() and widget.window() is window:
            yield widget


def _look_at(widget: QWidget) -> Iterator[dict[str, object]]:
    text = widget.currentText() if isinstance(widget, QComboBox) else getattr(widget, "text", None)
    said = text() if callable(text) else text
    interface = QAccessible.queryAccessibleInterface(widget)
    name = interface.text(QAccessible.Text.Name) if interface else ""
    if isinstance(said, str) and (said or name):
        yield _thing(widget, widget.rect(), said, name)
    if isinstance(widget, QAbstractItemView):
        yield from _cells(widget)


def _cells(view: QAbstractItemView) -> Iterator[dict[str, object]]:
    for index in _rows(view):
        for column in range(_count_columns(view)):
            cell = index.siblingAtColumn(column)
            place = view.visualRect(cell)
            if place.intersects(view.viewport().rect()) and cell.data() is not None:
                yield _thing(view.viewport(), place, str(cell.data()), "")


def _count_columns(view: QAbstractItemView) -> int:
    if isinstance(view, QTreeView):
        return view.header().count()
    return view.horizontalHeader().count() if isinstance(view, QTableView) else 1


def _rows(view: QAbstractItemView) -> Iterator[object]:
    model, root = view.model(), view.rootIndex()
    index = model.index(0, 0, root) if model else root
    for _ in range(MOST_ROWS):
        if not index.isValid():
            return
        yield index
        below = isinstance(view, QTreeView)
        index = view.indexBelow(index) if below else index.sibling(index.row() + 1, 0)


def _thing(widget: QWidget, place: QRect, text: str, name: str) -> dict[str, object]:
    middle: QPoint = widget.mapToGlobal(place.center())
    return {
        "kind": type(widget).__name__,
        "text": text,
        "name": name,
        "place": (middle.x(), middle.y()),
        "enabled": widget.isEnabled(),
        "focus": widget.hasFocus(),
        "checked": isinstance(widget, QAbstractButton) and widget.isChecked(),
    }


if __name__ == "__main__":
    _eyes = Eyes()
    main()
