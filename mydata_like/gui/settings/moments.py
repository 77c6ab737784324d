"""The fields for days and times, and the choice of the right field for a setting."""

import datetime
from pathlib import Path

from PySide6.QtCore import QDate, QSignalBlocker, QTime, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QCheckBox, QDateEdit, QGridLayout, QTimeEdit, QWidget

from mydata_like.gui.settings import terms
from mydata_like.gui.settings.editors import (
    ChoiceEditor,
    Editor,
    ListEditor,
    NumberEditor,
    PathEditor,
    SwitchEditor,
    TextEditor,
)
from mydata_like.settings.fields import Setting

ACROSS = 3  # days that stand side by side


class Clock(QTimeEdit):
    """A time of day; the wheel scrolls the page, not the time."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class TimeEditor(Editor):
    """A local time of day."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._clock = Clock(self)
        self._clock.setDisplayFormat("HH:mm")
        self._place(self._clock)
        self._clock.timeChanged.connect(self.edited)

    @property
    def field(self) -> QWidget:
        return self._clock

    def value(self) -> object:
        return self._clock.time().toString("HH:mm:ss")

    def show_value(self, value: object) -> None:
        try:
            time = datetime.time.fromisoformat(str(value))
        except ValueError:
            time = self.setting.default
        with QSignalBlocker(self._clock):
            self._clock.setTime(QTime(time.hour, time.minute, time.second))


class Calendar(QDateEdit):
    """A day; the wheel scrolls the page, not the day."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class DateEditor(Editor):
    """A day, or none."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._calendar = Calendar(self)
        self._calendar.setCalendarPopup(True)
        self._calendar.setDisplayFormat("yyyy-MM-dd")
        self._calendar.setSpecialValueText(self.tr("no day"))
        self._none = self._calendar.minimumDate()
        self._place(self._calendar)
        self._calendar.dateChanged.connect(self.edited)

    @property
    def field(self) -> QWidget:
        return self._calendar

    def value(self) -> object:
        date = self._calendar.date()
        return None if date == self._none else date.toString("yyyy-MM-dd")

    def show_value(self, value: object) -> None:
        date = QDate.fromString(str(value), "yyyy-MM-dd")
        with QSignalBlocker(self._calendar):
            self._calendar.setDate(date if date.isValid() else self._none)


class DaysEditor(Editor):
    """Any of several words, such as the days of the week."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        box = QWidget(self)
        grid = QGridLayout(box)
        grid.setContentsMargins(0, 0, 0, 0)
        self._switches = {}
        for number, choice in enumerate(setting.choices):
            switch = QCheckBox(terms.name_choice(setting, choice), box)
            switch.clicked.connect(self._tell)
            grid.addWidget(switch, number // ACROSS, number % ACROSS)
            self._switches[choice] = switch
        self._place(box)
        self.setFocusProxy(self._switches[setting.choices[0]])

    @property
    def field(self) -> QWidget:
        return self._switches[self.setting.choices[0]]

    def value(self) -> object:
        return [choice for choice, switch in self._switches.items() if switch.isChecked()]

    def show_value(self, value: object) -> None:
        chosen = value if isinstance(value, list | tuple) else ()
        for choice, switch in self._switches.items():
            switch.setChecked(choice in chosen)

    @Slot()
    def _tell(self) -> None:
        self.edited.emit()


_BY_KIND: dict[type, type[Editor]] = {
    bool: SwitchEditor,
    int: NumberEditor,
    float: NumberEditor,
    Path: PathEditor,
    datetime.date: DateEditor,
    datetime.time: TimeEditor,
}


def make_editor(setting: Setting, parent: QWidget | None = None) -> Editor:
    """Return the field that fits the kind of a setting."""
    if setting.many:
        return (DaysEditor if setting.choices else ListEditor)(setting, parent)
    if setting.choices:
        return ChoiceEditor(setting, parent)
    return _BY_KIND.get(setting.kind, TextEditor)(setting, parent)
