"""The wizard step for facility, instrument and contact."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Slot
from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.theme import texts
from mydata_like.gui.wizard import wizard_services
from mydata_like.gui.wizard.step_base import CheckLabel, Readiness, WizardStep
from mydata_like.gui.wizard.wizard_services import InstrumentChoices

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mydata_like.app.onboarding import SetupState

FACILITY, NAME = "instrument.facility", "instrument.name"
CONTACT, EMAIL = "instrument.contact_name", "instrument.contact_email"


class InstrumentStep(WizardStep):
    """Asks for facility and instrument, both picked from what the server has."""

    def __init__(self, desk: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.title = self.tr("Which instrument?")
        self.explanation = self.tr(
            "Datasets are shown on the server under the name of their instrument."
        )
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
        self._connect()

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

    def _connect(self) -> None:
        self.facility.activated.connect(self._ask)
        self.instrument.editTextChanged.connect(self._judge)
        self.contact.textEdited.connect(self._judge)
        self.email.textEdited.connect(self._judge)

    @Slot()
    def _ask(self) -> None:
        self._known = None
        chosen = self.facility.currentText()
        server = self.settings.server
        find = partial(wizard_services.find_place, self.config, server, chosen)
        self.run_check(find, self._show_place, self._show_failure)
        self._facility_verdict.show_checking(self.tr("Asking the server for its facilities…"))
        self.changed.emit()

    @Slot(object)
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
        """Say of each field whether it is well."""
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
    """Offer these names instead of those before, which is no change by the person."""
    with QSignalBlocker(box):
        box.clear()
        box.addItems(list(names))
