"""The pages of the window in order; each is created when it is first shown."""

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from mydata_like.gui.base import AppContext, Page
from mydata_like.gui.overview.overview_page import OverviewPage
from mydata_like.gui.pages.folders_page import FoldersPage
from mydata_like.gui.pages.history_page import HistoryPage
from mydata_like.gui.pages.log_page import LogPage
from mydata_like.gui.pages.problems_page import ProblemsPage
from mydata_like.gui.pages.speed_page import SpeedPage
from mydata_like.gui.pages.transfers_page import TransfersPage
from mydata_like.gui.pages.where_page import WherePage

translate = QCoreApplication.translate


class PageSpec(NamedTuple):
    """The internal name, title, icon and factory of a page."""

    name: str
    title: str
    icon: str
    make: Callable[[AppContext, QWidget], Page]


def list_pages() -> list[PageSpec]:
    """Return the pages in the order of the navigation."""
    return [
        PageSpec("overview", translate("pages", "Overview"), "overview", OverviewPage),
        PageSpec("folders", translate("pages", "Folders"), "folders", FoldersPage),
        PageSpec("transfers", translate("pages", "Transfers"), "transfers", TransfersPage),
        PageSpec("problems", translate("pages", "Problems"), "problems", ProblemsPage),
        PageSpec("where", translate("pages", "Where is my data?"), "where", WherePage),
        PageSpec("speed", translate("pages", "Speed test"), "speed", SpeedPage),
        PageSpec("history", translate("pages", "History"), "history", HistoryPage),
        PageSpec("log", translate("pages", "Log"), "log", LogPage),
    ]
