"""The wizard steps for the server address, the account, facility and instrument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QLineEdit, QPushButton, QWidget

from mydata_like.app import onboarding
from mydata_like.app.onboarding import ServerCheckResult, SetupState
from mydata_like.core.errors import UploaderError
from mydata_like.core.model import Facility
from mydata_like.core.ports import CancelSignal
from mydata_like.gui.base import AppContext
from mydata_like.gui.settings_editor.secret_row import (
    NO_KEYRING,
    FormerKeyButton,
    SecretPlace,
    locate_secret,
)
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import PlainLabel, choose_file, icon
from mydata_like.gui.wizard.mydata_import_dialog import MyDataImportDialog
from mydata_like.gui.wizard.step_base import CheckLabel, Readiness, WizardStep
from mydata_like.settings.pending_changes import KeyStore, SecretChange, SecretKind
from mydata_like.settings.schema import Server

URL = "server.url"


class AddressStep(WizardStep):
    """Asks for the server's address; a different address that was found is offered as a button."""

    demo_wanted = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.title = self.tr("Which server?")
        self.explanation = self.tr(
            "The web address of your MyTardis server, as you open it in a browser."
        )
        self._found = ""
        self._legacy: Path | None = None
        self.address = QLineEdit(self)
        self.address.setPlaceholderText("mytardis.example.org")
        self.verdict = self.add_field(self.tr("Server &address"), self.address, key=URL)
        self.better = QPushButton(self)
        self.better.hide()
        self.add(self.better)
        self._old = PlainLabel("", self)
        self._old.setWordWrap(True)
        self.import_button = QPushButton(icon("import"), self.tr("&Import from MyData…"), self)
        self._choose_button = QPushButton(self.tr("&Choose a MyData.cfg…"), self)
        self.demo = QPushButton(icon("start"), self.tr("&Try the demo"), self)

        self.add_space()
        line = QHBoxLayout()
        line.addWidget(self.import_button)
        line.addWidget(self._choose_button)
        line.addStretch(1)
        line.addWidget(self.demo)
        self.add(self._old)
        self.add(line)

        self.address.textEdited.connect(self._type)
        self.better.clicked.connect(self._take_better)
        self.import_button.clicked.connect(self._import_found)
        self._choose_button.clicked.connect(self._choose_file)
        self.demo.clicked.connect(self.demo_wanted)

    @property
    def readiness(self) -> Readiness:
        if self.check.running:
            return Readiness.CHECKING
        return Readiness.READY if self._found else Readiness.LACKING

    def fill(self, beginning: SetupState) -> None:
        self.address.setText(self.settings.server.url)
        self.guard(self.address, self.verdict)
        self._legacy = beginning.legacy
        self.import_button.setVisible(self._legacy is not None)
        self._old.setText(self._describe_legacy())

    def begin(self) -> None:
        self.address.setFocus()
        if self.address.text():
            self._check()

    def changes(self) -> dict[str, object]:
        return {URL: self._found}

    def is_done(self, beginning: SetupState) -> bool:
        return bool(beginning.loaded.settings.server.url)

    def open_takeover(self, source: Path | None) -> MyDataImportDialog:
        """Show what MyData's settings would change, and import them if the user agrees."""
        sheet = MyDataImportDialog(self._context, source, self)
        sheet.carried_over.connect(self.taken_over)
        sheet.open()
        return sheet

    def _describe_legacy(self) -> str:
        if self._legacy is None:
            return self.tr("Have you used MyData before? Its settings can be imported.")
        text = self.tr("MyData was used on this computer: %1")
        return text.replace("%1", texts.plain(str(self._legacy)))

    @Slot()
    def _type(self) -> None:
        self._check(typed=True)

    def _check(self, *, typed: bool = False) -> None:
        self._found = ""
        self.better.hide()
        text = self.address.text().strip()
        if text:
            server = self.settings.server
            find = partial(onboarding.check_address, server, text)
            self.run_check(find, self._show_found, self._show_failure, typed=typed)
            self.verdict.show_checking(self.tr("Connecting to the server…"))
        else:
            self.check.cancel()
            self.verdict.clear()
        self.changed.emit()

    def _show_found(self, reached: ServerCheckResult) -> None:
        if reached.problem is not None:
            self._offer(reached)
        else:
            self._found = reached.url
            self.verdict.show_good(
                self.tr("This is a MyTardis server: %1").replace("%1", reached.url)
            )
        self.changed.emit()

    def _offer(self, reached: ServerCheckResult) -> None:
        assert reached.problem is not None
        self.verdict.show_wrong(texts.engine_text(reached.problem.message))
        self._better = reached.url
        self.better.setText(self.tr("&Use %1").replace("%1", texts.plain(reached.url)))
        self.better.show()

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)
        self.changed.emit()

    @Slot()
    def _take_better(self) -> None:
        self.address.setText(self._better)
        self.address.setFocus()
        self._check()

    @Slot()
    def _import_found(self) -> None:
        self.open_takeover(None)

    @Slot()
    def _choose_file(self) -> None:
        kinds = self.tr("MyData's settings (*.cfg);;All files (*)").split(";;")
        choose_file(self, self.tr("Settings of MyData"), self._take_over, kinds=kinds)

    def _take_over(self, path: str) -> None:
        self.open_takeover(Path(path))


USERNAME = "server.username"


class AccountStep(WizardStep):
    """Asks for the account; its key goes to the keyring, never into the settings."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
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
        self.former = FormerKeyButton(self.config, context.tasks, self)
        self.add(self.into_file)
        self.add(self.former)
        self.add_space()

        self.username.textEdited.connect(self._type)
        self.key.textEdited.connect(self._type)
        self._page.clicked.connect(self._open_page)
        self.former.used.connect(self._take_former)
        self.former.failed.connect(self._show_failure)

    @property
    def readiness(self) -> Readiness:
        if self.check.running:
            return Readiness.CHECKING
        return Readiness.READY if self._signed_in else Readiness.LACKING

    def fill(self, beginning: SetupState) -> None:
        self._has_key = beginning.has_key
        self.username.setText(self.settings.server.username)
        self.key.clear()
        self._show_stored()
        self.guard(self.username, self.account_verdict)

    def begin(self) -> None:
        field = self.key if self.username.text() and not self._has_key else self.username
        field.setFocus()
        self._check()
        self.former.hide()
        if not self._has_key and self.settings.server.username:
            locate = partial(locate_secret, self.settings, SecretKind.API_KEY, self.config)
            self._context.tasks.run(locate, self._offer_former)

    def changes(self) -> dict[str, object]:
        return {USERNAME: self.username.text().strip()}

    def new_key(self) -> SecretChange | None:
        text = self.key.text().strip()
        store: KeyStore = "file" if self.into_file.isChecked() else "keyring"
        return SecretChange(text, store) if text else None

    def show_refusal(self, error: UploaderError) -> bool:
        if error.problem_code != NO_KEYRING:
            return False
        advice = self.tr(
            "Unlock it and press Next again, or keep the key in a file that only you can read."
        )
        self.verdict.show_wrong(f"{texts.engine_text(error.message)} {advice}")
        self.into_file.show()
        self.into_file.setFocus()
        return True

    def is_done(self, beginning: SetupState) -> bool:
        return beginning.has_key and bool(beginning.loaded.settings.server.username)

    def _offer_former(self, place: SecretPlace) -> None:
        """Offer the key that is stored for another address of the server."""
        self.former.offer(self.settings, place.former)

    @Slot()
    def _take_former(self) -> None:
        self._has_key = True
        self.username.setText(self.settings.server.username)
        self._show_stored()
        self._check()

    def _show_stored(self) -> None:
        kept = self.tr("Already stored; leave empty to use it")
        self.key.setPlaceholderText(kept if self._has_key else "")

    @Slot()
    def _type(self) -> None:
        self._check(typed=True)

    def _check(self, *, typed: bool = False) -> None:
        self._signed_in = False
        username, key = self.username.text().strip(), self.key.text().strip()
        kept = self._has_key and username == self.settings.server.username
        if username and (key or kept):
            server = self.settings.server.with_values(username=username)
            ask = partial(find_account_name, self.config, server, key)
            self.run_check(ask, self._show_name, self._show_failure, typed=typed)
            self.verdict.show_checking(self.tr("Checking the account…"))
        else:
            self.check.cancel()
            self.verdict.clear()
        self.changed.emit()

    def _show_name(self, name: str) -> None:
        self._signed_in = True
        text = self.tr("You are signed in as %1.")
        self.verdict.show_good(text.replace("%1", texts.plain(name)))
        self.changed.emit()

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)
        self.changed.emit()

    @Slot()
    def _open_page(self) -> None:
        self._context.controller.open_address(self.settings.server.url)


FACILITY, NAME = "instrument.facility", "instrument.name"
CONTACT, EMAIL = "instrument.contact_name", "instrument.contact_email"


class InstrumentStep(WizardStep):
    """Asks for the facility and the instrument, which the server lists."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.title = self.tr("Which instrument?")
        self.explanation = self.tr("The server shows datasets under the name of their instrument.")
        self._known: tuple[str, ...] | None = None  # instruments of the chosen facility
        self.facility = QComboBox(self)
        self.instrument = QComboBox(self)
        self.instrument.setEditable(True)
        self.instrument.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.contact, self.email = QLineEdit(self), QLineEdit(self)
        self._facility_verdict = self.add_field(self.tr("&Facility"), self.facility, key=FACILITY)
        self.verdict = self.add_field(self.tr("&Instrument"), self.instrument, key=NAME)
        self._contact_verdict = self.add_field(
            self.tr("&Contact person, for questions about this instrument"),
            self.contact,
            key=CONTACT,
        )
        self._email_verdict = self.add_field(
            self.tr("&E-mail of the contact person"), self.email, key=EMAIL
        )
        self.add_space()

        self.facility.activated.connect(self._ask)
        self.instrument.editTextChanged.connect(self._judge)
        self.contact.textEdited.connect(self._judge)
        self.email.textEdited.connect(self._judge)

    @property
    def readiness(self) -> Readiness:
        if self.check.running:
            return Readiness.CHECKING
        entered = all(self.changes().values()) and self._known is not None
        wrong = any(self.find_wrong(key, value) for key, value in self.changes().items())
        return Readiness.READY if entered and not wrong else Readiness.LACKING

    def fill(self, beginning: SetupState) -> None:
        instrument = self.settings.instrument
        _list(self.facility, (instrument.facility,) if instrument.facility else ())
        self.instrument.setEditText(instrument.name)
        self.contact.setText(instrument.contact_name)
        self.email.setText(instrument.contact_email)
        for editor, verdict in self._fields():
            self.guard(editor, verdict)

    def begin(self) -> None:
        self.instrument.setFocus()
        self._ask()

    def changes(self) -> dict[str, object]:
        return {
            FACILITY: self.facility.currentText(),
            NAME: self.instrument.currentText().strip(),
            CONTACT: self.contact.text().strip(),
            EMAIL: self.email.text().strip(),
        }

    def is_done(self, beginning: SetupState) -> bool:
        settings = beginning.loaded.settings
        return all(settings.value(key) for key in (FACILITY, NAME, CONTACT, EMAIL))

    def _fields(self) -> tuple[tuple[QWidget, CheckLabel], ...]:
        return (
            (self.facility, self._facility_verdict),
            (self.instrument, self.verdict),
            (self.contact, self._contact_verdict),
            (self.email, self._email_verdict),
        )

    @Slot()
    def _ask(self) -> None:
        self._known = None
        chosen = self.facility.currentText()
        server = self.settings.server
        find = partial(list_instruments, self.config, server, chosen)
        self.run_check(find, self._show_place, self._show_failure)
        self._facility_verdict.show_checking(self.tr("Loading the facilities…"))
        self.changed.emit()

    def _show_place(self, place: InstrumentChoices) -> None:
        chosen, name = self.facility.currentText(), self.instrument.currentText()
        names = [facility.name for facility in place.facilities]
        _list(self.facility, names)
        self.facility.setCurrentText(chosen if chosen in names else names[0])
        self._known = tuple(place.instruments)
        _list(self.instrument, place.instruments)
        self.instrument.setEditText(name)
        self._facility_verdict.show_good(
            self.tr("Your account manages %Ln facility(s).", None, len(names))
        )
        self._judge()

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self._facility_verdict.show_problem(error.problem)
        self.changed.emit()

    @Slot()
    def _judge(self) -> None:
        """Show for each field whether it is valid."""
        name = self.instrument.currentText().strip()
        if not name or self._known is None:
            self.verdict.clear()
        elif name in self._known:
            self.verdict.show_good(self.tr("The server knows this instrument."))
        else:
            text = self.tr("New: the instrument “%1” will be made.")
            self.verdict.show_good(text.replace("%1", texts.plain(name)))
        wrong = self.find_wrong(EMAIL, self.email.text())
        if wrong:
            self._email_verdict.show_wrong(self.tr("The address %1.").replace("%1", wrong))
        else:
            self._email_verdict.clear()
        self.changed.emit()


def _list(box: QComboBox, names: Iterable[str]) -> None:
    """Offer these names instead of the earlier ones; the user has changed nothing."""
    with QSignalBlocker(box):
        box.clear()
        box.addItems(list(names))


def find_account_name(config: Path | None, server: Server, key: str, cancel: CancelSignal) -> str:
    """Return the full name of the account, or else its username; raises `UploaderError`."""
    user = onboarding.check_account(onboarding.Credentials(server, config, key), cancel)
    return user.full_name or user.username


class InstrumentChoices(NamedTuple):
    """The facilities of an account, and the names of the instruments of the chosen one."""

    facilities: Sequence[Facility]
    instruments: Sequence[str]


def list_instruments(
    config: Path | None, server: Server, chosen: str, cancel: CancelSignal
) -> InstrumentChoices:
    """Return the facilities, and the instruments of the chosen one or else of the first."""
    login = onboarding.Credentials(server, config)
    facilities = onboarding.list_facilities(login, cancel)
    facility = next((it for it in facilities if it.name == chosen), facilities[0])
    return InstrumentChoices(facilities, onboarding.list_instruments(login, facility, cancel))
