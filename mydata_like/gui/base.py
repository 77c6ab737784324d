"""The base class of pages, their layout and title, and the context that they share."""

from typing import NamedTuple

from PySide6.QtCore import QEvent
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
    """A page of the window."""

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            for title in self.findChildren(PageTitle):
                title.scale(TITLE, bold=True)

    def show_page(self) -> None:
        """Start the work of the page when the user chooses it."""

    def hide_page(self) -> None:
        """Stop what concerns only the page when the user chooses another one."""

    def look_for(self, what: str) -> None:
        """Show the content that another page requests: a filter, a path or a key."""


PAGE_MARGINS = (LARGE_SPACE, LARGE_SPACE, LARGE_SPACE, SPACE)  # left, top, right, bottom


def page_layout(page: QWidget, *parts: Part) -> QVBoxLayout:
    """Return the layout of a page, with the margins that all pages share."""
    return vbox(*parts, inside=page, spacing=SPACE, margins=PAGE_MARGINS)


class PageTitle(PlainLabel):
    """The name of a page, in the size of titles; it follows changes of the page's font."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self.scale(TITLE, bold=True)
