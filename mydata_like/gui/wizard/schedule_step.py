"""The wizard step for when files are uploaded, and for the start at login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTime, Slot
from PySide6.QtWidgets import QButtonGroup, QCheckBox, QRadioButton, QWidget

from mydata_like.gui import setting_labels
from mydata_like.gui.base import AppContext
from mydata_like.gui.settings_editor.editors import ClockFormat
from mydata_like.gui.theme.layouts import hbox
from mydata_like.gui.theme.widgets import PlainLabel
from mydata_like.gui.wizard.step_base import CheckLabel, Field, WizardStep
from mydata_like.settings.schema import settings_by_key

if TYPE_CHECKING:
    from mydata_like.app.onboarding import SetupState

KIND, TIME, AT_LOGIN = "schedule.kind", "schedule.time", "window.start_at_login"
OTHER = "other"  # stands for a kind of schedule that only the settings offer


class ScheduleStep(WizardStep):
    """Asks when files are uploaded: when they have settled, once a day, or manually."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.title = self.tr("When to upload?")
        self.explanation = self.tr(
            "You can start an upload at any time as well. The settings have more schedules."
        )
        self.kinds = {
            "watch": QRadioButton(self.tr("&Soon after new files are complete"), self),
            "daily": QRadioButton(self.tr("Every &day at"), self),
            "manual": QRadioButton(self.tr("&Only when I press Start"), self),
            OTHER: QRadioButton(self),
        }
        self.time = ClockFormat(self)
        self.time.setDisplayFormat("HH:mm")
        self.time.setAccessibleName(self.tr("Time of the daily upload"))
        self.at_login = QCheckBox(self.tr("Start the program in the tray when I log &in"), self)
        self.verdict = CheckLabel(self, keeps_place=False)
        self.note = CheckLabel(self, keeps_place=False)
        self._group = QButtonGroup(self)

        for kind, button in self.kinds.items():
            self._group.addButton(button)
            self.fields.append(Field(KIND, button, self.verdict))
            self.add(hbox(button, self.time, 1) if kind == "daily" else button)
        self.fields.append(Field(AT_LOGIN, self.at_login, self.note))
        self.add(self.verdict, PlainLabel("", self), self.at_login, self.note, 1)

        self._group.buttonToggled.connect(self._show_choice)
        self.at_login.toggled.connect(self._show_choice)

    @property
    def chosen(self) -> str:
        """The chosen kind of schedule."""
        return next(kind for kind, button in self.kinds.items() if button.isChecked())

    def fill(self, beginning: SetupState) -> None:
        schedule = self.settings.schedule
        other = schedule.kind not in self.kinds
        self.kinds[OTHER].setText(
            setting_labels.name_choice(settings_by_key()[KIND], schedule.kind)
        )
        self.kinds[OTHER].setVisible(other)
        self.kinds[OTHER if other else schedule.kind].setChecked(True)
        self.time.setTime(QTime(schedule.time.hour, schedule.time.minute))
        self.at_login.setChecked(self.settings.window.start_at_login)
        self._show_choice()

    def begin(self) -> None:
        self.kinds[self.chosen].setFocus()

    def changes(self) -> dict[str, object]:
        changes: dict[str, object] = {AT_LOGIN: self.at_login.isChecked()}
        if self.chosen != OTHER:
            changes[KIND] = self.chosen
        if self.chosen == "daily":
            changes[TIME] = self.time.time().toString("HH:mm:ss")
        return {key: value for key, value in changes.items() if key not in self._locked_by}

    def is_done(self, beginning: SetupState) -> bool:
        return beginning.loaded.settings.data.directory is not None

    @Slot()
    def _show_choice(self) -> None:
        self.time.setEnabled(self.chosen == "daily" and TIME not in self._locked_by)
        if self.chosen == "manual" or self.at_login.isChecked():
            self.note.clear()
        else:
            self.note.show_note(
                self.tr("Uploads start automatically only while the program is running.")
            )
