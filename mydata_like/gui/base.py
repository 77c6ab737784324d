"""The base class of pages, their layout and title, and the context that they share."""

from typing import NamedTuple

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mydata_like.gui.controller import WindowController
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme.layouts import Part, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE, TITLE
from mydata_like.gui.theme.widgets import PlainLabel
from mydata_like.gui.window_state import WindowState


class AppContext(NamedTuple):
    """The objects that pages and dialogs share."""

    controller: WindowController
    tasks: Tasks
    memory: WindowState


class Page(QWidget):
    """A page of the window, active only while it is visible."""

    wanted = Signal(object)  # a NavigationRequest

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            for title in self.findChildren(PageTitle):
                title.scale(TITLE, bold=True)

    def show_page(self) -> None:
        """Start the work of the page when it becomes visible."""

    def hide_page(self) -> None:
        """Stop the work that is needed only while the page is visible."""

    def look_for(self, what: str) -> None:
        """Show the content that another page requests: a filter, a path or a key."""


PAGE_MARGINS = (LARGE_SPACE, LARGE_SPACE, LARGE_SPACE, SPACE)  # left, top, right, bottom


def page_layout(page: Page, *parts: Part) -> QVBoxLayout:
    """Return the layout of a page with its parts, and the margins that all pages share."""
    layout = vbox(*parts, inside=page)
    layout.setContentsMargins(*PAGE_MARGINS)
    layout.setSpacing(SPACE)
    return layout


class PageTitle(PlainLabel):
    """The name of a page, in the size of titles; it follows changes of the page's font."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent, heading=TITLE)


class NavigationRequest(NamedTuple):
    """A request to show a page.

    `page` can also be "settings", "set-up" or "demo". `what` is the requested content of the page,
    or the key of a setting; empty for the default.
    """

    page: str
    what: str = ""
