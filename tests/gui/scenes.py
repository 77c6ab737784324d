"""Everything of the program that a person can look at, for the audit and for the pictures.

Who makes a new page, dialog or window adds a scene here, and has it audited in both themes, at
twice the size of text, in German and in the language that nobody speaks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from PySide6.QtWidgets import QWidget

from mydata_like.gui.pages.catalogue import list_pages
from mydata_like.gui.pages.page import Desk, Wish
from mydata_like.gui.window import Window


@dataclass(frozen=True)
class Stage:
    """Where scenes are shown: the main window, and what it works with."""

    window: Window
    desk: Desk


class Moment(Enum):
    """When the picture of a scene is taken."""

    FIRST_START = "nothing is set up"
    RUNNING = "files are on their way"
    AFTER = "a run has ended"


@dataclass(frozen=True)
class Scene:
    """Something to look at; `open` shows it and returns its window."""

    name: str
    open: Callable[[Stage], QWidget]
    moment: Moment = Moment.AFTER


def list_scenes() -> list[Scene]:
    return [
        Scene("first-start", partial(_open_page, "overview"), Moment.FIRST_START),
        Scene("overview-running", partial(_open_page, "overview"), Moment.RUNNING),
        Scene("transfers-running", partial(_open_page, "transfers"), Moment.RUNNING),
        *(Scene(leaf.name, partial(_open_page, leaf.name)) for leaf in list_pages()),
    ]


def _open_page(name: str, stage: Stage) -> QWidget:
    stage.window.show_page(Wish(name))
    return stage.window
