"""The texts of the window, page by page, in the state after a run.

`python -m tests.window_texts SETTINGS [PATH...]` opens the real window offscreen, reads every page,
looks up each path on the page "Where is my data?", and prints all texts as one JSON object. No run
is started: the lock of the watch is held, so that the window starts no engine.

`python -m tests.window_texts SETTINGS --live` opens it with its engine, and executes the commands
on standard input: `start` and `stop` a run, `crash` the engine, `read` when no run is in progress.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QCoreApplication,
    QEvent,
    QModelIndex,
    Qt,
    QTimer,
)
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QLabel,
    QTreeView,
    QWidget,
)

from mydata_like.app.settings_service import find_places, find_state, load_settings
from mydata_like.gui.application import Program
from mydata_like.gui.base import Page
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.theme.colours import status_colour
from mydata_like.gui.theme.widgets import IconLabel
from mydata_like.gui.theme_settings import apply_first_appearance
from mydata_like.gui.tray.tray_icon import COLOURS
from mydata_like.gui.window_state import WindowState
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import lock_watch

DEADLINE = 60.0  # seconds after which the window counts as hanging
PASSES = 5  # idle passes of the event loop after which the window counts as complete
SOON = 1000  # milliseconds: timers that fire later are not waited for
PAGES = ("overview", "folders", "transfers", "problems", "history")
STATUSES = ("good", "working", "waiting", "problem", "skipped")
DOTS = "…"
COUNTED_COLOUR = 20  # pixels of a colour that are more than an edge

Look = dict[str, Any]


class WindowReader:
    """The program with one settings file, and the texts of its pages once they are complete."""

    def __init__(self, config: Path, settings: Any) -> None:
        state = find_state(settings, find_places(config))
        start = LaunchOptions(config, config, state, state / "logs")
        self._program = Program(start)
        self._window = self._program.window
        self._program.controller.open()
        self._wait(lambda: self._program.controller.state.phase != "loading")

    def read(self, paths: list[Path]) -> Look:
        """Return the texts of all pages and of the tray."""
        self._window.show()
        shown = {name: self._read_page(name) for name in PAGES}
        where = {str(path): self._read_where(path) for path in paths}
        return {**shown, "where": where, "tray": self._read_tray(), "line": self._read_line()}

    def execute(self, word: str) -> Look | None:
        """Execute a command; return the texts for `read`, None for others."""
        controller = self._program.controller
        match word:
            case "start":
                self._wait(lambda: controller.engine is not None and controller.state.can_start)
                controller.start()
            case "stop":
                controller.stop()
            case "crash":
                os.kill(controller.engine.number, signal.SIGKILL)
                self._wait(lambda: not controller.state.at_work)
            case _:
                self._wait(lambda: not controller.state.at_work)
                return self.read([])
        return None

    def close(self) -> None:
        """Close the program."""
        self._program.close()

    def _turn_to(self, name: str) -> Page:
        self._window.show_page(name)
        self._settle()
        return self._window.find_page(name)

    def _read_page(self, name: str) -> Look:
        page = self._turn_to(name)
        tables = []
        for view in page.findChildren(QAbstractItemView):
            if view.isVisibleTo(page) and view.model() is not None:
                tables.append({"name": view.accessibleName(), "rows": self._read_rows(view)})
        return {
            "texts": list(_list_texts(page)),
            "groups": _group_texts(page),
            "tables": tables,
            "level": _find_level(page),
        }

    def _read_rows(self, view: QAbstractItemView) -> list[Look]:
        model = view.model()
        if isinstance(view, QTreeView):
            self._open_all(model)
        self._wait(lambda: DOTS not in {row[0] for row in _cells(model)})
        self._settle()
        return list(_describe_rows(model))

    def _open_all(self, model: QAbstractItemModel) -> None:
        """Expand all rows of a tree."""
        while closed := [index for index in _walk(model) if model.canFetchMore(index)]:
            for index in closed:
                model.fetchMore(index)
            self._settle()

    def _read_where(self, path: Path) -> Look:
        """Look up a path on the page, as if it was typed."""
        page = self._turn_to("where")
        page.look_for(str(path))
        self._settle()
        return {"texts": list(_list_texts(page)), "level": _find_level(page)}

    def _read_tray(self) -> Look:
        tray = self._program.presence.tray
        # The tray shows changes with a delay.
        self._wait(lambda: not any(map(_fires_soon, tray.findChildren(QTimer))))
        image = tray.icon.icon().pixmap(64).toImage()
        shapes = {colour: shape.value for shape, colour in COLOURS.items()}
        found = max(shapes, key=lambda colour: _count_pixels(image, QColor(colour)))
        return {"tip": tray.icon.toolTip(), "level": shapes[found]}

    def _read_line(self) -> list[str]:
        return list(_list_texts(self._window.statusBar()))

    def _settle(self) -> None:
        """Wait until nothing more arrives."""
        quiet = 0
        deadline = monotonic() + DEADLINE
        while quiet < PASSES:
            assert monotonic() < deadline, "the window is never idle"
            _process_events()
            quiet = 0 if self._busy else quiet + 1

    @property
    def _busy(self) -> bool:
        if self._program.tasks.busy:
            return True
        timers = self._window.findChildren(QTimer)
        return any(timer.isActive() and timer.interval() == 0 for timer in timers)

    def _wait(self, happened: Callable[[], bool]) -> None:
        deadline = monotonic() + DEADLINE
        while not happened():
            assert monotonic() < deadline, "the window shows nothing"
            _process_events()


def _process_events() -> None:
    QApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _fires_soon(timer: QTimer) -> bool:
    return timer.isActive() and timer.isSingleShot() and timer.interval() < SOON


def _list_texts(widget: QWidget) -> Iterator[str]:
    """Yield the texts of visible labels and buttons."""
    for part in widget.findChildren(QWidget):
        if isinstance(part, QLabel | QAbstractButton) and part.isVisibleTo(widget) and part.text():
            yield part.text().replace("&", "")


def _group_texts(widget: QWidget) -> list[list[str]]:
    """Return the texts grouped by parent widget, such as those of one card."""
    groups: dict[int, list[str]] = {}
    for part in widget.findChildren(QWidget):
        if isinstance(part, QLabel | QAbstractButton) and part.isVisibleTo(widget) and part.text():
            groups.setdefault(id(part.parentWidget()), []).append(part.text().replace("&", ""))
    return list(groups.values())


def _find_level(page: QWidget) -> str:
    """Return the status whose colour the largest icon of a page has; empty without an icon."""
    pictures = [part for part in page.findChildren(IconLabel) if part.isVisibleTo(page)]
    if not pictures:
        return ""
    image = max(pictures, key=lambda part: part.width()).grab().toImage()
    counts = {status: _count_pixels(image, status_colour(status)) for status in STATUSES}
    best = max(counts, key=lambda status: counts[status])
    return best if counts[best] >= COUNTED_COLOUR else ""


def _count_pixels(image: QImage, colour: QColor) -> int:
    wanted = colour.rgb()
    return sum(
        image.pixel(x, y) == wanted for x in range(image.width()) for y in range(image.height())
    )


def _walk(model: QAbstractItemModel, parent: QModelIndex | None = None) -> Iterator[QModelIndex]:
    above = QModelIndex() if parent is None else parent
    for row in range(model.rowCount(above)):
        index = model.index(row, 0, above)
        yield index
        yield from _walk(model, index)


def _cells(model: QAbstractItemModel) -> Iterator[list[str]]:
    for index in _walk(model):
        columns = range(_count_columns(model))
        yield [str(index.siblingAtColumn(column).data() or "") for column in columns]


def _count_columns(model: QAbstractItemModel) -> int:
    """Return the number of columns; PySide does not expose it for list models."""
    return 1 if isinstance(model, QAbstractListModel) else model.columnCount()


def _describe_rows(model: QAbstractItemModel) -> Iterator[Look]:
    titles = [
        str(model.headerData(column, Qt.Orientation.Horizontal) or "")
        for column in range(_count_columns(model))
    ]
    for index, cells in zip(_walk(model), _cells(model), strict=True):
        shown = dict(zip(titles, cells, strict=False))
        yield {"cells": shown, "above": _list_above(index), "path": _find_path(model, index)}


def _list_above(index: QModelIndex) -> list[str]:
    """Return the first texts of the parent rows, the topmost first."""
    names: list[str] = []
    while (index := index.parent()).isValid():
        names.insert(0, str(index.data() or ""))
    return names


def _find_path(model: QAbstractItemModel, index: QModelIndex) -> str | None:
    """Return the folder of a row in the tree of folders, or None."""
    group = model.group(index) if hasattr(model, "group") else None
    path = getattr(group, "path", None)
    return None if path is None else os.fsdecode(path)


def read_window(config: Path, paths: list[Path]) -> Look:
    """Open the window with a settings file, and return its texts."""
    settings = load_settings(config).settings
    state = find_state(settings, find_places(config))
    with ExitStack() as stack:
        stack.enter_context(lock_watch(state, SystemClock()))
        reader = WindowReader(config, settings)
        try:
            return reader.read(paths)
        finally:
            reader.close()


def execute_commands(config: Path) -> None:
    """Open the window with its engine, and execute commands until standard input ends."""
    reader = WindowReader(config, load_settings(config).settings)
    while True:
        while not select([sys.stdin], [], [], 0)[0]:
            _process_events()
        word = sys.stdin.readline().strip()
        if not word:
            return
        _print(reader.execute(word))


def _print(look: Look | None) -> None:
    sys.stdout.write(json.dumps(look) + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> None:
    """Print the texts of the window; exit without clean-up, as the program does."""
    app = QApplication(sys.argv[:1])
    config = Path(words[0])
    apply_first_appearance(app, WindowState(), config)
    if words[1:] == ["--live"]:
        execute_commands(config)
    else:
        _print(read_window(config, [Path(word) for word in words[1:]]))
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
