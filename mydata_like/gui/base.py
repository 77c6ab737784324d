"""The base class of pages, and the context that they share."""

from typing import NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from mydata_like.gui.controller import WindowController
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.window_state import WindowState


class AppContext(NamedTuple):
    """The objects that pages and dialogs share."""

    controller: WindowController
    tasks: Tasks
    memory: WindowState


class Page(QWidget):
    """A page of the window. It is active only while it is shown."""

    wanted = Signal(object)  # a NavigationRequest

    def show_page(self) -> None:
        """Start the page's work, now that it is visible."""

    def hide_page(self) -> None:
        """Stop the work that is only needed while the page is visible."""

    def look_for(self, what: str) -> None:
        """Show what another page requests: a filter, a path or a key; empty for the default."""


class NavigationRequest(NamedTuple):
    """The name of a page and what it should show; also "settings" (at a key) and "set-up"."""

    page: str
    what: str = ""
