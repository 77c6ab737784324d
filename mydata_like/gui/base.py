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
    """A page of the window, active only while it is visible."""

    wanted = Signal(object)  # a NavigationRequest

    def show_page(self) -> None:
        """Start the work of the page when it becomes visible."""

    def hide_page(self) -> None:
        """Stop the work that is needed only while the page is visible."""

    def look_for(self, what: str) -> None:
        """Show the content that another page requests: a filter, a path or a key."""


class NavigationRequest(NamedTuple):
    """A request to show a page.

    `page` can also be "settings", "set-up" or "demo". `what` is the requested content of the page,
    or the key of a setting; empty for the default.
    """

    page: str
    what: str = ""
