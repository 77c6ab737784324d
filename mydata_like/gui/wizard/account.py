"""The second page: which account uploads, and the API key that proves it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPushButton, QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.wizard import asking
from mydata_like.gui.wizard.step import Readiness, Step
from mydata_like.gui.wizard.takeover import NO_KEYRING
from mydata_like.settings.pending_changes import ApiKeyChange, KeyStore

if TYPE_CHECKING:
    from mydata_like.app.onboarding import SetupState

USERNAME = "server.username"


class AccountStep(Step):
    """Asks who uploads; the key goes to the keyring, never into the settings."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.title = self.tr("Which account?")
        self.explanation = self.tr(
            "The account that uploads, usually the facility manager's. Its API key is on the "
            "server's page “Manage Account”."
        )
        self._signed_in = False
        self._has_key = False
        self.username = QLineEdit(self)
        self.key = QLineEdit(self)
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self._page = QPushButton(icon("open"), self.tr("&Open the server's page"), self)
        self.account_verdict = self.add_field(self.tr("&Account"), self.username, key=USERNAME)
        self.verdict = self.add_field(self.tr("API &key"), self.key, self._page)
        self.into_file = QCheckBox(
            self.tr("Keep the key in a &file that only you can read (not encrypted)"), self
        )
        self.into_file.hide()
        self.add(self.into_file)
        self.add_space()
        self._connect()

    @property
    def readiness(self) -> Readiness:
        if self.check.running:
            return Readiness.CHECKING
        return Readiness.READY if self._signed_in else Readiness.LACKING

    def fill(self, beginning: SetupState) -> None:
        self._has_key = beginning.has_key
        self.username.setText(self.settings.server.username)
        self.key.clear()
        kept = self.tr("Kept already; leave this empty to use it")
        self.key.setPlaceholderText(kept if self._has_key else "")
        self.guard(self.username, self.account_verdict)

    def begin(self) -> None:
        field = self.key if self.username.text() and not self._has_key else self.username
        field.setFocus()
        self._check()

    def changes(self) -> dict[str, object]:
        return {USERNAME: self.username.text().strip()}

    def new_key(self) -> ApiKeyChange | None:
        text = self.key.text().strip()
        store: KeyStore = "file" if self.into_file.isChecked() else "keyring"
        return ApiKeyChange(text, store) if text else None

    def show_refusal(self, error: UploaderError) -> bool:
        if error.problem_code != NO_KEYRING:
            return False
        advice = self.tr(
            "Unlock it and press Next again, or keep the key in a file that only you can read."
        )
        self.verdict.show_wrong(f"{error.problem.message} {advice}")
        self.into_file.show()
        self.into_file.setFocus()
        return True

    def is_done(self, beginning: SetupState) -> bool:
        return beginning.has_key and bool(beginning.loaded.settings.server.username)

    def _connect(self) -> None:
        self.username.textEdited.connect(self._type)
        self.key.textEdited.connect(self._type)
        self._page.clicked.connect(self._open_page)

    @Slot()
    def _type(self) -> None:
        self._check(typed=True)

    def _check(self, *, typed: bool = False) -> None:
        self._signed_in = False
        username, key = self.username.text().strip(), self.key.text().strip()
        kept = self._has_key and username == self.settings.server.username
        if username and (key or kept):
            server = self.settings.server.changed(username=username)
            ask = partial(asking.check_account, self.config, server, key)
            self.run_check(ask, self._show_name, self._show_failure, typed=typed)
            self.verdict.show_checking(self.tr("Asking the server who you are…"))
        else:
            self.check.cancel()
            self.verdict.clear()
        self.changed.emit()

    @Slot(object)
    def _show_name(self, name: str) -> None:
        self._signed_in = True
        text = self.tr("You are signed in as %1.")
        self.verdict.show_good(text.replace("%1", words.plain(name)))
        self.changed.emit()

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)
        self.changed.emit()

    @Slot()
    def _open_page(self) -> None:
        self._desk.controller.open_address(self.settings.server.url)
