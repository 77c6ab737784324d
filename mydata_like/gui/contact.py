"""Whether the server answers, as far as runs and the approval tell: nobody asks it for this."""

from enum import Enum
from typing import Final

from PySide6.QtCore import QCoreApplication, Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from mydata_like.core.errors import Problem
from mydata_like.gui.controller import Controller
from mydata_like.gui.look import words
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.look.picture import Picture
from mydata_like.gui.state import Phase, RunState
from mydata_like.gui.tables.marks import Mark

translate = QCoreApplication.translate

# What is at the address, if anything, is not the server, or cannot be talked to.
_AWAY: Final = (
    "server.unreachable",
    "server.unavailable",
    "server.slow",
    "server.connection-lost",
    "server.moved",
    "server.address",
    "server.web-page",
    "server.not-mytardis",
    "server.certificate",
    "server.tls",
    "server.proxy",
)
_AWAITED: Final = ("uploader.not-approved", "uploader.not-admitted")


class Contact(Enum):
    """What was heard of the server last."""

    UNKNOWN = "unknown"  # nothing yet
    ANSWERS = "answers"
    AWAY = "away"
    AWAITED = "awaited"  # it answers, and an administrator's approval is awaited


def follow(before: Contact, was: RunState, now: RunState) -> Contact:
    """Return what is known of the server after this change."""
    if now.awaited is not None:
        return Contact.AWAITED
    problem = now.problem
    if was.ours and now.last is not None and now.last != was.last:  # a run has just ended
        problem = problem or now.last.problem
    if problem is not None:
        return _judge(problem, before)
    # A run begins once the server has answered; an approval that is no longer awaited was given.
    answered = now.phase is Phase.RUNNING or before is Contact.AWAITED
    return Contact.ANSWERS if answered else before


def _judge(problem: Problem, before: Contact) -> Contact:
    """Return what a problem says of the server; most say nothing."""
    if problem.code in _AWAITED:
        return Contact.AWAITED
    if problem.code in _AWAY:
        return Contact.AWAY
    return Contact.ANSWERS if problem.code.startswith("server.") else before


def mark_of_contact(contact: Contact) -> Mark:
    """Return how it is told: a word, a shape, and only then a colour."""
    match contact:
        case Contact.ANSWERS:
            return Mark(translate("contact", "Server reachable"), "check", "good")
        case Contact.AWAY:
            return Mark(translate("contact", "Server not reachable"), "error", "problem")
        case Contact.AWAITED:
            return Mark(translate("contact", "Waiting for approval"), "waiting", "waiting")
        case Contact.UNKNOWN:
            return Mark(translate("contact", "Server not asked yet"), "server", "skipped")


class ContactSign(QWidget):
    """The server's state in the status line; its tool tip is the server's address."""

    def __init__(self, controller: Controller, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._state = RunState()
        self._shape = Picture(1.0, self)
        self._word = PlainLabel("", self)
        self._address = ""
        self._shape.setAccessibleName(self.tr("Server"))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._shape, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(self._word)
        self.contact = Contact.UNKNOWN
        controller.run_changed.connect(self._follow)
        controller.settings_changed.connect(self._follow_settings)
        self._follow(controller.state)
        self._follow_settings()

    @property
    def said(self) -> str:
        """The word that is shown."""
        return self._word.text()

    @Slot(object)
    def _follow(self, state: RunState) -> None:
        self.contact = follow(self.contact, self._state, state)
        self._state = state
        self._show()

    @Slot()
    def _follow_settings(self) -> None:
        address = words.plain(self._controller.settings.server.url)
        if address != self._address:  # of another server nothing is known
            self._address, self.contact = address, Contact.UNKNOWN
        self.setToolTip(words.tip(address))
        self.setVisible(bool(address))
        self._show()

    def _show(self) -> None:
        mark = mark_of_contact(self.contact)
        self._word.setText(mark.word)
        self._shape.show_icon(mark.icon)
