"""Run the program, and operate its windows on command: `python -m tests.gui.hands WORD...`.

Each line on standard input is a list in JSON: the name of a command and its arguments. It is
answered with a line of JSON on standard output. The commands run in the GUI thread.
"""

import json
import sys
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QSystemTrayIcon, QWidget

from mydata_like.__main__ import main
from mydata_like.gui.theme import colours, style
from mydata_like.gui.tray.tray_menu import Tray
from mydata_like.gui.window import MainWindow
from tests.gui.eyes import describe


class Hands(QObject):
    """Obeys the commands of standard input."""

    commanded = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.commanded.connect(self._obey, Qt.ConnectionType.QueuedConnection)
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.commanded.emit(json.loads(line))

    @Slot(object)
    def _obey(self, words: list[str]) -> None:
        name, *given = words
        sys.stdout.write(json.dumps(_COMMANDS[name](*given)) + "\n")
        sys.stdout.flush()


def _look() -> list[object]:
    """Describe the visible windows."""
    return [describe(window) for window in _windows()]


def _click(words: str) -> bool:
    """Click the first enabled button with this text, or trigger an action of window or tray."""
    for thing in _operable():
        if thing.text().replace("&", "") == words and thing.isEnabled():
            thing.click() if isinstance(thing, QAbstractButton) else thing.trigger()
            return True
    return False


def _operable() -> Iterator[QAbstractButton | QAction]:
    for window in _windows():
        yield from filter(QWidget.isVisible, window.findChildren(QAbstractButton))
    main_window = _find_main_window()
    if main_window:
        yield from main_window.findChildren(QAction)
        for tray in main_window.findChildren(Tray):
            yield from tray.menu.actions()


def _show_page(name: str, what: str = "") -> bool:
    main_window = _find_main_window()
    assert main_window
    main_window.show_page(name, what)
    return True


def _close() -> bool:
    """Close the main window, as a click on its button does; return whether it is still visible."""
    main_window = _find_main_window()
    assert main_window
    main_window.close()
    return main_window.isVisible() and not main_window.isMinimized()


def _apply_theme(name: colours.Theme) -> bool:
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    style.apply(application, name)
    return True


def _grab(file: str) -> bool:
    """Save a picture of the dialog in front, else of the main window."""
    window = QApplication.activeModalWidget() or _find_main_window()
    assert window
    return window.grab().save(file)


def _grab_screen(file: str) -> bool:
    return QGuiApplication.primaryScreen().grabWindow(0).save(file)


def _describe_tray() -> dict[str, object]:
    main_window = _find_main_window()
    assert main_window
    icon = main_window.findChild(QSystemTrayIcon)
    assert isinstance(icon, QSystemTrayIcon)
    return {
        "available": QSystemTrayIcon.isSystemTrayAvailable(),
        "visible": icon.isVisible(),
        "tip": icon.toolTip(),
        "place": icon.geometry().getRect(),
    }


def _windows() -> list[QWidget]:
    """Return the visible windows, dialogs first."""
    shown = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    return sorted(shown, key=lambda widget: isinstance(widget, MainWindow))


def _find_main_window() -> MainWindow | None:
    found = (it for it in QApplication.topLevelWidgets() if isinstance(it, MainWindow))
    return next(found, None)


_COMMANDS: dict[str, Callable[..., Any]] = {
    "look": _look,
    "click": _click,
    "page": _show_page,
    "close": _close,
    "theme": _apply_theme,
    "grab": _grab,
    "grab screen": _grab_screen,
    "tray": _describe_tray,
}


if __name__ == "__main__":
    _hands = Hands()
    main()
