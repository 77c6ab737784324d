"""The fields of the settings dialog, one for each type of value.

An editor shows any value, also an invalid one, and signals when the user has changed it. Values
are plain, as a settings file has them.
"""

import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QDate, QSignalBlocker, Qt, QTime, Signal, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDateEdit,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QTimeEdit,
    QWidget,
)

from mydata_like.gui import setting_labels
from mydata_like.gui.theme.widgets import TextArea, choose_file, choose_folder, push_button
from mydata_like.settings.fields import Setting

LINES = 3  # that a list shows at least
DIGITS = 3  # behind the point of a number
ACROSS = 3  # days in one row

Field = TypeVar("Field", bound=QWidget)


class _WithoutWheel:
    """A field over which the wheel scrolls the page, and does not change the value."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Number(_WithoutWheel, QDoubleSpinBox):
    """A number and its unit, without needless zeros."""

    def textFromValue(self, value: float) -> str:
        text = super().textFromValue(value)
        point = self.locale().decimalPoint()
        return text.rstrip("0").removesuffix(point) if point in text else text


class Choice(_WithoutWheel, QComboBox):
    """A list to choose from."""


class ClockFormat(_WithoutWheel, QTimeEdit):
    """A time of day."""


class Calendar(_WithoutWheel, QDateEdit):
    """A day."""


class Editor(QWidget, Generic[Field]):
    """The value of one setting; its `field` takes the focus, and the label belongs to it."""

    edited = Signal()

    def __init__(self, setting: Setting, field_type: type[Field], parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setting = setting
        self.field = field_type(self)
        self.field.setAccessibleName(setting_labels.label_of(setting))
        self.field.setAccessibleDescription(setting_labels.help_of(setting))
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.addWidget(self.field, 1)
        self.setFocusProxy(self.field)

    def value(self) -> object:
        """Return the displayed value."""
        raise NotImplementedError

    def show_value(self, value: object) -> None:
        """Show a value; this does not count as an edit."""
        with QSignalBlocker(self):
            self._show(value)

    def set_fixed(self, *, fixed: bool) -> None:
        """Make the field read-only."""
        self.setEnabled(not fixed)

    def _show(self, value: Any) -> None:
        raise NotImplementedError


class TextEditor(Editor[QLineEdit]):
    """One line of text."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, QLineEdit, parent)
        self.field.textEdited.connect(self.edited)

    def value(self) -> object:
        return self.field.text().strip()

    def set_fixed(self, *, fixed: bool) -> None:
        self.field.setReadOnly(fixed)
        # A read-only field is not in the tab order; its text can be selected by mouse.
        self.field.setFocusPolicy(
            Qt.FocusPolicy.ClickFocus if fixed else Qt.FocusPolicy.StrongFocus
        )

    def _show(self, value: Any) -> None:
        self.field.setText("" if value is None else str(value))
        self.field.setCursorPosition(0)


class PathEditor(TextEditor):
    """A path, typed or picked."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._pick = push_button(self, self.tr("Choose…"), self._choose)
        name = self.tr("Choose: %1").replace("%1", setting_labels.label_of(setting))
        self._pick.setAccessibleName(name)
        self._line.addWidget(self._pick)

    def set_fixed(self, *, fixed: bool) -> None:
        super().set_fixed(fixed=fixed)
        self._pick.setEnabled(not fixed)

    @Slot()
    def _choose(self) -> None:
        title, text = setting_labels.label_of(self.setting), self.field.text()
        start = str(Path(text).parent) if text else ""
        if self.setting.name.endswith("directory"):
            choose_folder(self, title, self._take, start=start)
        else:
            new = self.setting.key == "monitor.signal_file"
            choose_file(self, title, self._take, start=start, new=new)

    def _take(self, path: str) -> None:
        self.field.setText(str(Path(path)))
        self.edited.emit()


class NumberEditor(Editor[Number]):
    """A number within its limits."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, Number, parent)
        lowest, highest = setting.limits
        self.field.setDecimals(0 if setting.kind is int else DIGITS)
        self.field.setRange(lowest or 0, highest if highest is not None else 1e12)
        self.field.setGroupSeparatorShown(True)
        self.field.setStepType(Number.StepType.AdaptiveDecimalStepType)
        if unit := setting_labels.unit_of(setting):
            self.field.setSuffix(f" {unit}")
        self.field.setSpecialValueText(setting_labels.name_zero(setting))
        self.field.valueChanged.connect(self.edited)

    def value(self) -> object:
        value = self.field.value()
        return round(value) if self.setting.kind is int else value

    def _show(self, value: Any) -> None:
        right = isinstance(value, int | float)
        self.field.setValue(float(value if right else self.setting.default))


class ChoiceEditor(Editor[Choice]):
    """One of several choices."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, Choice, parent)
        self.field.setSizeAdjustPolicy(
            Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.field.setMinimumContentsLength(12)
        for choice in setting.choices:
            self.field.addItem(setting_labels.name_choice(setting, choice), choice)
        self.field.activated.connect(self.edited)

    def value(self) -> object:
        return self.field.currentData()

    def _show(self, value: Any) -> None:
        self.field.setCurrentIndex(self.field.findData(value))


class SwitchEditor(Editor[QCheckBox]):
    """Yes or no."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, QCheckBox, parent)
        self.field.toggled.connect(self._show_word)
        self.field.toggled.connect(self.edited)
        self._show_word()

    def value(self) -> object:
        return self.field.isChecked()

    def _show(self, value: Any) -> None:
        self.field.setChecked(value is True)

    @Slot()
    def _show_word(self) -> None:
        self.field.setText(self.tr("On") if self.field.isChecked() else self.tr("Off"))


class ListEditor(Editor[TextArea]):
    """A list of texts, one on each line."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, TextArea, parent)
        self.field.setTabChangesFocus(True)
        self.field.setLineWrapMode(TextArea.LineWrapMode.NoWrap)
        self._fit()
        self.field.textChanged.connect(self._fit)
        self.field.textChanged.connect(self.edited)

    def value(self) -> object:
        lines = (line.strip() for line in self.field.toPlainText().splitlines())
        return [line for line in lines if line]

    def set_fixed(self, *, fixed: bool) -> None:
        self.field.setReadOnly(fixed)

    def _show(self, value: Any) -> None:
        lines = value if isinstance(value, list | tuple) else [value]
        self.field.setPlainText("\n".join(map(str, lines)))
        self._fit()

    @Slot()
    def _fit(self) -> None:
        """Fit the height to the number of lines, within limits."""
        lines = max(LINES, min(self.field.blockCount() + 1, LINES * 3))
        margins = self.field.document().documentMargin() + self.field.frameWidth()
        self.field.setFixedHeight(
            round(self.field.fontMetrics().lineSpacing() * lines + 2 * margins)
        )


class TimeEditor(Editor[ClockFormat]):
    """A local time of day."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, ClockFormat, parent)
        self.field.setDisplayFormat("HH:mm")
        self.field.timeChanged.connect(self.edited)

    def value(self) -> object:
        return self.field.time().toString("HH:mm:ss")

    def _show(self, value: Any) -> None:
        try:
            time = datetime.time.fromisoformat(str(value))
        except ValueError:
            time = self.setting.default
        self.field.setTime(QTime(time.hour, time.minute, time.second))


class DateEditor(Editor[Calendar]):
    """A day, or none."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, Calendar, parent)
        self.field.setCalendarPopup(True)
        self.field.setDisplayFormat("yyyy-MM-dd")
        self.field.setSpecialValueText(self.tr("no day"))
        self._none = self.field.minimumDate()
        self.field.dateChanged.connect(self.edited)

    def value(self) -> object:
        date = self.field.date()
        return None if date == self._none else date.toString("yyyy-MM-dd")

    def _show(self, value: Any) -> None:
        date = QDate.fromString(str(value), "yyyy-MM-dd")
        self.field.setDate(date if date.isValid() else self._none)


class DaysEditor(Editor[QWidget]):
    """Any of several choices, such as the days of the week."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, QWidget, parent)
        grid = QGridLayout(self.field)
        grid.setContentsMargins(0, 0, 0, 0)
        self._switches: dict[str, QCheckBox] = {}
        for number, choice in enumerate(setting.choices):
            switch = QCheckBox(setting_labels.name_choice(setting, choice), self.field)
            switch.toggled.connect(self.edited)
            grid.addWidget(switch, number // ACROSS, number % ACROSS)
            self._switches[choice] = switch
        self.field.setFocusProxy(self._switches[setting.choices[0]])

    def value(self) -> object:
        return [choice for choice, switch in self._switches.items() if switch.isChecked()]

    def _show(self, value: Any) -> None:
        chosen = value if isinstance(value, list | tuple) else ()
        for choice, switch in self._switches.items():
            switch.setChecked(choice in chosen)


_BY_KIND: dict[type, type[TextEditor | NumberEditor | SwitchEditor | DateEditor | TimeEditor]] = {
    bool: SwitchEditor,
    int: NumberEditor,
    float: NumberEditor,
    Path: PathEditor,
    datetime.date: DateEditor,
    datetime.time: TimeEditor,
}


def make_editor(setting: Setting, parent: QWidget | None = None) -> Editor[Any]:
    """Return the field that fits the kind of a setting."""
    if setting.many:
        return (DaysEditor if setting.choices else ListEditor)(setting, parent)
    if setting.choices:
        return ChoiceEditor(setting, parent)
    return _BY_KIND.get(setting.kind, TextEditor)(setting, parent)
