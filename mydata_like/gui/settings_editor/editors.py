"""The fields of the settings dialog, one for each type of value.

An editor shows any value, also an invalid one, and signals when the user has changed it. Values
are plain, as a settings file has them.
"""

import datetime
from pathlib import Path

from PySide6.QtCore import QDate, QSignalBlocker, Qt, QTime, Signal, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDateEdit,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QTimeEdit,
    QVBoxLayout,
    QWidget,
)

from mydata_like.gui import setting_labels
from mydata_like.gui.theme.widgets import TextArea
from mydata_like.settings.fields import Setting

LINES = 3  # that a list shows at least
DIGITS = 3  # behind the point of a number


class Editor(QWidget):
    """A field for the value of one setting."""

    edited = Signal()

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setting = setting
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    @property
    def field(self) -> QWidget:
        """The widget that takes the focus, and that the label belongs to."""
        raise NotImplementedError

    def value(self) -> object:
        """Return the displayed value."""
        raise NotImplementedError

    def show_value(self, value: object) -> None:
        """Show a value; this does not count as an edit."""
        raise NotImplementedError

    def set_fixed(self, *, fixed: bool) -> None:
        """Make the field read-only."""
        self.setEnabled(not fixed)

    def _place(self, field: QWidget) -> None:
        field.setAccessibleName(setting_labels.label_of(self.setting))
        field.setAccessibleDescription(setting_labels.help_of(self.setting))
        self._column.addWidget(field)
        self.setFocusProxy(field)


class TextEditor(Editor):
    """One line of text."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._line = QLineEdit(self)
        self._place(self._line)
        self._line.textEdited.connect(self.edited)

    @property
    def field(self) -> QWidget:
        return self._line

    def value(self) -> object:
        return self._line.text().strip()

    def show_value(self, value: object) -> None:
        self._line.setText("" if value is None else str(value))
        self._line.setCursorPosition(0)

    def set_fixed(self, *, fixed: bool) -> None:
        self._line.setReadOnly(fixed)
        # A read-only field is not in the tab order; its text can be selected by mouse.
        self._line.setFocusPolicy(
            Qt.FocusPolicy.ClickFocus if fixed else Qt.FocusPolicy.StrongFocus
        )


class PathEditor(TextEditor):
    """A path, typed or picked."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._pick = QPushButton(self.tr("Choose…"), self)
        name = self.tr("Choose: %1").replace("%1", setting_labels.label_of(setting))
        self._pick.setAccessibleName(name)
        line = QHBoxLayout()
        line.addWidget(self._line, 1)
        line.addWidget(self._pick)
        self._column.addLayout(line)
        self._pick.clicked.connect(self._choose)

    def set_fixed(self, *, fixed: bool) -> None:
        super().set_fixed(fixed=fixed)
        self._pick.setEnabled(not fixed)

    @Slot()
    def _choose(self) -> None:
        dialog = QFileDialog(self, setting_labels.label_of(self.setting))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if self.setting.name.endswith("directory"):
            dialog.setFileMode(QFileDialog.FileMode.Directory)
            dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        elif self.setting.key == "monitor.signal_file":
            dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        else:
            dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        if self._line.text():
            dialog.setDirectory(str(Path(self._line.text()).parent))
        dialog.fileSelected.connect(self._take)
        dialog.open()

    @Slot(str)
    def _take(self, path: str) -> None:
        self._line.setText(str(Path(path)))
        self.edited.emit()


class Number(QDoubleSpinBox):
    """A number and its unit, without needless zeros; the wheel scrolls the page, not the number."""

    def textFromValue(self, value: float) -> str:
        text = super().textFromValue(value)
        point = self.locale().decimalPoint()
        return text.rstrip("0").removesuffix(point) if point in text else text

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class NumberEditor(Editor):
    """A number within its limits."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._number = Number(self)
        lowest, highest = setting.limits
        self._number.setDecimals(0 if setting.kind is int else DIGITS)
        self._number.setRange(lowest or 0, highest if highest is not None else 1e12)
        self._number.setGroupSeparatorShown(True)
        self._number.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        if unit := setting_labels.unit_of(setting):
            self._number.setSuffix(f" {unit}")
        self._number.setSpecialValueText(setting_labels.name_zero(setting))
        self._place(self._number)
        self._number.valueChanged.connect(self.edited)

    @property
    def field(self) -> QWidget:
        return self._number

    def value(self) -> object:
        value = self._number.value()
        return round(value) if self.setting.kind is int else value

    def show_value(self, value: object) -> None:
        right = isinstance(value, int | float)
        with QSignalBlocker(self._number):
            self._number.setValue(float(value if right else self.setting.default))  # type: ignore[arg-type]


class Choice(QComboBox):
    """A list to choose from; the wheel scrolls the page, not the choice."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class ChoiceEditor(Editor):
    """One of several choices."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._choice = Choice(self)
        self._choice.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._choice.setMinimumContentsLength(12)
        for choice in setting.choices:
            self._choice.addItem(setting_labels.name_choice(setting, choice), choice)
        self._place(self._choice)
        self._choice.activated.connect(self._emit_edited)

    @property
    def field(self) -> QWidget:
        return self._choice

    def value(self) -> object:
        return self._choice.currentData()

    def show_value(self, value: object) -> None:
        self._choice.setCurrentIndex(self._choice.findData(value))

    @Slot()
    def _emit_edited(self) -> None:
        self.edited.emit()


class SwitchEditor(Editor):
    """Yes or no."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._switch = QCheckBox(self)
        self._place(self._switch)
        self._switch.toggled.connect(self._show_word)
        self._switch.clicked.connect(self._emit_edited)
        self._show_word()

    @property
    def field(self) -> QWidget:
        return self._switch

    def value(self) -> object:
        return self._switch.isChecked()

    def show_value(self, value: object) -> None:
        self._switch.setChecked(value is True)

    @Slot()
    def _show_word(self) -> None:
        self._switch.setText(self.tr("On") if self._switch.isChecked() else self.tr("Off"))

    @Slot()
    def _emit_edited(self) -> None:
        self.edited.emit()


class ListEditor(Editor):
    """A list of texts, one on each line."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._lines = TextArea(self)
        self._lines.setTabChangesFocus(True)
        self._lines.setLineWrapMode(TextArea.LineWrapMode.NoWrap)
        self._place(self._lines)
        self._fit()
        self._lines.textChanged.connect(self._emit_edited)

    @property
    def field(self) -> QWidget:
        return self._lines

    def value(self) -> object:
        lines = (line.strip() for line in self._lines.toPlainText().splitlines())
        return [line for line in lines if line]

    def show_value(self, value: object) -> None:
        lines = value if isinstance(value, list | tuple) else [value]
        with QSignalBlocker(self._lines):
            self._lines.setPlainText("\n".join(map(str, lines)))
        self._fit()

    def set_fixed(self, *, fixed: bool) -> None:
        self._lines.setReadOnly(fixed)

    @Slot()
    def _emit_edited(self) -> None:
        self._fit()
        self.edited.emit()

    def _fit(self) -> None:
        """Fit the height to the number of lines, within limits."""
        lines = max(LINES, min(self._lines.blockCount() + 1, LINES * 3))
        margins = self._lines.document().documentMargin() + self._lines.frameWidth()
        self._lines.setFixedHeight(
            round(self._lines.fontMetrics().lineSpacing() * lines + 2 * margins)
        )


ACROSS = 3  # days in one row


class ClockFormat(QTimeEdit):
    """A time of day; the wheel scrolls the page, not the time."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class TimeEditor(Editor):
    """A local time of day."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        self._clock = ClockFormat(self)
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
    """Any of several choices, such as the days of the week."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(setting, parent)
        box = QWidget(self)
        grid = QGridLayout(box)
        grid.setContentsMargins(0, 0, 0, 0)
        self._switches = {}
        for number, choice in enumerate(setting.choices):
            switch = QCheckBox(setting_labels.name_choice(setting, choice), box)
            switch.clicked.connect(self._emit_edited)
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
    def _emit_edited(self) -> None:
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
