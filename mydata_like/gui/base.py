"""The base class of pages, and the context that they share."""

from typing import NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from mydata_like.gui.controller import WindowController
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.window_state import WindowState


class AppContext(NamedTuple):
    """What pages and dialogs work with."""

    controller: WindowController
    tasks: Tasks
    memory: WindowState


class Page(QWidget):
    """One page of the window. It works only while it is shown."""

    wanted = Signal(object)  # a Wish: another page, to show something

    def show_page(self) -> None:
        """Begin to work: the page has become visible."""

    def hide_page(self) -> None:
        """Stop what only matters to somebody who looks."""

    def look_for(self, what: str) -> None:
        """Show what another page asks for: a filter, a path, a key; empty for nothing special."""


class NavigationRequest(NamedTuple):
    """A page's name, and what it should show; also "settings" (at a key) and "set-up"."""

    page: str
    what: str = ""
