"""The pages of the window, in their order; each is made when it is first shown."""

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from mydata_like.gui.overview.page import OverviewPage
from mydata_like.gui.pages.folders import FoldersPage
from mydata_like.gui.pages.history import HistoryPage
from mydata_like.gui.pages.log import LogPage
from mydata_like.gui.pages.page import Desk, Page
from mydata_like.gui.pages.problems import ProblemsPage
from mydata_like.gui.pages.speed import SpeedPage
from mydata_like.gui.pages.transfers import TransfersPage
from mydata_like.gui.pages.where import WherePage

translate = QCoreApplication.translate


class Leaf(NamedTuple):
    """A page's name in the program, its title, its icon, and how it is made."""

    name: str
    title: str
    icon: str
    make: Callable[[Desk, QWidget], Page]


def list_pages() -> list[Leaf]:
    """Return the pages in the order of the navigation."""
    return [
        Leaf("overview", translate("pages", "Overview"), "overview", OverviewPage),
        Leaf("folders", translate("pages", "Folders"), "folders", FoldersPage),
        Leaf("transfers", translate("pages", "Transfers"), "transfers", TransfersPage),
        Leaf("problems", translate("pages", "Problems"), "problems", ProblemsPage),
        Leaf("where", translate("pages", "Where is my data?"), "where", WherePage),
        Leaf("speed", translate("pages", "Speed test"), "speed", SpeedPage),
        Leaf("history", translate("pages", "History"), "history", HistoryPage),
        Leaf("log", translate("pages", "Log"), "log", LogPage),
    ]
