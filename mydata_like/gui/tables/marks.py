"""How the state of a file or folder is told: a word, a shape, and only then a colour."""

from functools import cache
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QIcon

from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.palette import Status

translate = QCoreApplication.translate


class Mark(NamedTuple):
    """A state's word, the icon that has its shape, and its colour."""

    word: str
    shape: str
    status: Status

    @property
    def icon(self) -> QIcon:
        return _icon(self.shape, self.status)


@cache
def _icon(shape: str, status: Status) -> QIcon:
    return icon(shape, status)


def mark_of(state: str) -> Mark | None:
    """Return how a state of the ledger is told; None for one that is not known (any more)."""
    return list_marks().get(state)


def list_marks() -> dict[str, Mark]:
    """Return how each state of the ledger is told."""
    failed = Mark(translate("marks", "Failed"), "error", "problem")
    skipped = Mark(translate("marks", "Left out"), "skipped", "skipped")
    return {
        "found": Mark(translate("marks", "Not sent yet"), "waiting", "waiting"),
        "staged": Mark(translate("marks", "Sent"), "up", "working"),
        "registered": Mark(translate("marks", "Registered"), "server", "working"),
        "repaired": Mark(translate("marks", "Being replaced"), "server", "working"),
        "verified": Mark(translate("marks", "Verified"), "check", "good"),
        "changed": Mark(translate("marks", "Changed here, not there"), "waiting", "waiting"),
        "waiting": Mark(translate("marks", "Waiting"), "waiting", "waiting"),
        "failed": failed,
        "folder-failed": failed,
        "skipped": skipped,
        "folder-skipped": skipped,
    }
