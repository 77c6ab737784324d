"""Asks once, and never silently goes on, whether a staging host is the one it claims to be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.wizard import asking
from mydata_like.gui.wizard.asking import Registered
from mydata_like.gui.wizard.verdict import Verdict

if TYPE_CHECKING:
    from mydata_like.app.registration import HostKey


class HostKeyPanel(QWidget):
    """Shows the key of a host that nobody has vouched for yet."""

    trusted = Signal(object)  # a Registered, with the next host's key

    def __init__(self, desk: Desk, parent: QWidget) -> None:
        super().__init__(parent)
        self._registered: Registered | None = None
        self._tasks = desk.tasks
        self._check = BackgroundTask()
        self._sentence = PlainLabel("", self)
        self._sentence.setWordWrap(True)
        self.fingerprint = QLineEdit(self)
        self.fingerprint.setReadOnly(True)
        self.fingerprint.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.fingerprint.setAccessibleName(self.tr("Fingerprint of the host's key"))
        self.trust = QPushButton(icon("padlock"), self.tr("&Trust this host"), self)
        self.verdict = Verdict(self)
        line = QHBoxLayout()
        line.addWidget(self.fingerprint, 1)
        line.addWidget(self.trust)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._sentence)
        column.addLayout(line)
        column.addWidget(self.verdict)
        self.hide()
        self._connect()

    def ask(self, registered: Registered) -> None:
        """Ask for the next host."""
        assert registered.host_key is not None
        self._registered = registered
        key: HostKey = registered.host_key
        text = self.tr(
            "This is the first contact with the staging host %1, port %2. Compare the "
            "fingerprint of its key with what the administrator tells you:"
        )
        host = words.plain(key.host)
        self._sentence.setText(text.replace("%1", host).replace("%2", str(key.port)))
        self.fingerprint.setText(key.fingerprint)
        self.fingerprint.setCursorPosition(0)
        self.verdict.clear()
        self.trust.setEnabled(True)
        self.show()

    def stop(self) -> None:
        """Wait no more for what is asked."""
        self._check.cancel()

    def _connect(self) -> None:
        self.trust.clicked.connect(self._trust)

    @Slot()
    def _trust(self) -> None:
        assert self._registered is not None
        self.trust.setEnabled(False)
        trust = partial(asking.trust_host, self._registered)
        self._check = self._tasks.run(trust, self._go_on, self._show_failure, writes=True)
        self.verdict.show_checking(self.tr("Looking for the next host…"))

    @Slot(object)
    def _go_on(self, registered: Registered) -> None:
        self.trusted.emit(registered)

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)
