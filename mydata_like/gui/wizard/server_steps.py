"""The wizard steps for the server address, the account, facility and instrument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QWidget

from mydata_like.app import onboarding
from mydata_like.app.onboarding import ServerCheckResult, SetupState
from mydata_like.core.errors import UploaderError
from mydata_like.core.ports import CancelSignal
from mydata_like.gui.base import AppContext
from mydata_like.gui.settings_editor.secret_row import (
    NO_KEYRING,
    FormerKeyButton,
    SecretPlace,
    locate_secret,
)
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import hbox
from mydata_like.gui.theme.widgets import PlainLabel, choose_file, icon, push_button
from mydata_like.gui.wizard.mydata_import_dialog import MyDataImportDialog
from mydata_like.gui.wizard.step_base import WizardStep
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
        self.address = QLineEdit(self)
        self.address.setPlaceholderText("mytardis.example.org")
        self.verdict = self.add_field(self.tr("Server &address"), self.address, key=URL)
        self.better = QPushButton(self)
        self.better.hide()
        self._old = PlainLabel("", self, wrap=True)
        self.import_button = QPushButton(icon("import"), self.tr("&Import from MyData…"), self)
        self._choose_button = push_button(self, self.tr("&Choose a MyData.cfg…"), self._choose_file)
        self.demo = push_button(self, self.tr("&Try the demo"), self.demo_wanted, "start")
        others = hbox(self.import_button, self._choose_button, 1, self.demo)
        self.add(self.better, 1, self._old, others)

        self.address.textEdited.connect(self.look_typed)
        self.better.clicked.connect(self._take_better)
        self.import_button.clicked.connect(self._import_found)

    def fill(self, beginning: SetupState) -> None:
        self.import_button.setVisible(beginning.legacy is not None)
        text = self.tr("Have you used MyData before? Its settings can be imported.")
        if beginning.legacy is not None:
            text = self.tr("MyData was used on this computer: %1")
            text = text.replace("%1", texts.plain(str(beginning.legacy)))
        self._old.setText(text)

    def begin(self) -> None:
        self.address.setFocus()
        if self.address.text():
            self.look()

    def changes(self) -> dict[str, object]:
        return {URL: self._found}

    def open_takeover(self, source: Path | None) -> MyDataImportDialog:
        """Show what MyData's settings would change, and import them if the user agrees."""
        sheet = MyDataImportDialog(self._context, source, self)
        sheet.carried_over.connect(self.taken_over)
        sheet.open()
        return sheet

    def look(self, *, typed: bool = False) -> None:
        self.better.hide()
        text = self.address.text().strip()
        if text:
            find = partial(onboarding.check_address, self.settings.server, text)
            checking = self.tr("Connecting to the server…")
            self.run_check(self.verdict, checking, find, self._show_found, typed=typed)
        else:
            self.verdict.clear()
            self.stop_check()

    def _show_found(self, reached: ServerCheckResult) -> bool:
        self._found = reached.url
        if reached.problem is None:
            said = self.tr("This is a MyTardis server: %1").replace("%1", reached.url)
            self.verdict.show_good(said)
            return True
        self.verdict.show_wrong(texts.engine_text(reached.problem.message))
        self.better.setText(self.tr("&Use %1").replace("%1", texts.plain(reached.url)))
        self.better.show()
        return False

    @Slot()
    def _take_better(self) -> None:
        self.address.setText(self._found)
        self.address.setFocus()
        self.look()

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
        self._has_key = False
        self.username = QLineEdit(self)
        self.key = QLineEdit(self)
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        page = push_button(self, self.tr("&Open the server's page"), self._open_page, "open")
        self.add_field(self.tr("&Account"), self.username, key=USERNAME)
        self.verdict = self.add_field(self.tr("API &key"), self.key, page)
        self.into_file = QCheckBox(
            self.tr("Keep the key in a &file that only you can read (not encrypted)"), self
        )
        self.into_file.hide()
        self.former = FormerKeyButton(self.config, context.tasks, self)
        self.add(self.into_file, self.former, 1)

        self.username.textEdited.connect(self.look_typed)
        self.key.textEdited.connect(self.look_typed)
        self.former.used.connect(self._take_former)
        self.former.failed.connect(self._show_refused_copy)

    def fill(self, beginning: SetupState) -> None:
        self._has_key = beginning.has_key
        self.key.clear()
        self._show_stored()

    def begin(self) -> None:
        field = self.key if self.username.text() and not self._has_key else self.username
        field.setFocus()
        self.look()
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
        return beginning.has_key and super().is_done(beginning)

    def _offer_former(self, place: SecretPlace) -> None:
        """Offer the key that is stored for another address of the server."""
        self.former.offer(self.settings, place.former)

    @Slot()
    def _take_former(self) -> None:
        self._has_key = True
        self.username.setText(self.settings.server.username)
        self._show_stored()
        self.look()

    @Slot(object)
    def _show_refused_copy(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)

    def _show_stored(self) -> None:
        kept = self.tr("Already stored; leave empty to use it")
        self.key.setPlaceholderText(kept if self._has_key else "")

    def look(self, *, typed: bool = False) -> None:
        username, key = self.username.text().strip(), self.key.text().strip()
        kept = self._has_key and username == self.settings.server.username
        if username and (key or kept):
            server = self.settings.server.with_values(username=username)
            ask = partial(find_account_name, self.config, server, key)
            checking = self.tr("Checking the account…")
            self.run_check(self.verdict, checking, ask, self._show_name, typed=typed)
        else:
            self.verdict.clear()
            self.stop_check()

    def _show_name(self, name: str) -> bool:
        text = self.tr("You are signed in as %1.")
        self.verdict.show_good(text.replace("%1", texts.plain(name)))
        return True

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
        contact = self.tr("&Contact person, for questions about this instrument")
        email = self.tr("&E-mail of the contact person")
        self._facility_verdict = self.add_field(self.tr("&Facility"), self.facility, key=FACILITY)
        self.verdict = self.add_field(self.tr("&Instrument"), self.instrument, key=NAME)
        self.add_field(contact, self.contact, key=CONTACT)
        self._email_verdict = self.add_field(email, self.email, key=EMAIL)
        self.add(1)

        self.facility.activated.connect(self.look_typed)
        self.instrument.editTextChanged.connect(self._judge)
        self.contact.textEdited.connect(self._judge)
        self.email.textEdited.connect(self._judge)

    def fill(self, beginning: SetupState) -> None:
        instrument = self.settings.instrument
        _list(self.facility, (instrument.facility,) if instrument.facility else ())
        self.instrument.setEditText(instrument.name)

    def begin(self) -> None:
        self.instrument.setFocus()
        self.look()

    def changes(self) -> dict[str, object]:
        return {
            FACILITY: self.facility.currentText(),
            NAME: self.instrument.currentText().strip(),
            CONTACT: self.contact.text().strip(),
            EMAIL: self.email.text().strip(),
        }

    def look(self, *, typed: bool = False) -> None:
        self._known = None
        find = partial(
            list_instruments, self.config, self.settings.server, self.facility.currentText()
        )
        loading = self.tr("Loading the facilities…")
        del typed  # a facility is chosen
        self.run_check(self._facility_verdict, loading, find, self._show_place)

    def _show_place(self, place: tuple[list[str], Sequence[str]]) -> bool:
        chosen, name = self.facility.currentText(), self.instrument.currentText()
        names, instruments = place
        _list(self.facility, names)
        self.facility.setCurrentText(chosen if chosen in names else names[0])
        self._known = tuple(instruments)
        _list(self.instrument, instruments)
        self.instrument.setEditText(name)
        self._facility_verdict.show_good(
            self.tr("Your account manages %Ln facility(s).", None, len(names))
        )
        self._judge()
        return self.checked

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
        entered = self.changes()
        valid = not any(self.find_wrong(key, value) for key, value in entered.items())
        self.checked = self._known is not None and all(entered.values()) and valid
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


def list_instruments(
    config: Path | None, server: Server, chosen: str, cancel: CancelSignal
) -> tuple[list[str], Sequence[str]]:
    """Return the account's facilities, and the instruments of the chosen or else the first one."""
    login = onboarding.Credentials(server, config)
    facilities = onboarding.list_facilities(login, cancel)
    facility = next((it for it in facilities if it.name == chosen), facilities[0])
    instruments = onboarding.list_instruments(login, facility, cancel)
    return [facility.name for facility in facilities], instruments
