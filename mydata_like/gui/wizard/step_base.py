"""The base class of wizard steps, and the label that shows a check."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QLayout, QLineEdit, QPushButton, QSizePolicy, QWidget

from mydata_like.core.errors import Problem, UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.tasks import TYPING, BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.layouts import Gap, frameless, hbox, vbox
from mydata_like.gui.theme.widgets import IconLabel, PlainLabel, icon, set_tip
from mydata_like.settings.pending_changes import SecretChange
from mydata_like.settings.schema import Settings, check_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from mydata_like.app.onboarding import SetupState

CHECK_ICON = 0.9  # the size of the icon of a check, times that of icons next to a text


class CheckLabel(QWidget):
    """One sentence with an icon; below a field it keeps its space while empty."""

    def __init__(self, parent: QWidget, *, keeps_place: bool = True) -> None:
        super().__init__(parent)
        self._keeps_place = keeps_place
        self.setVisible(keeps_place)
        self._sign = IconLabel(CHECK_ICON, self)
        self._text = PlainLabel("", self, wrap=True, selectable=True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        frameless(hbox((self._sign, Qt.AlignmentFlag.AlignTop), (self._text, 1), inside=self))

    @property
    def text(self) -> str:
        """The text."""
        return self._text.text()

    def clear(self) -> None:
        """Show nothing."""
        self._show_text("", "", None)

    def show_checking(self, text: str) -> None:
        """Show that a check is running."""
        self._show_text("working", text, "working")

    def show_good(self, text: str) -> None:
        """Show a success."""
        self._show_text("check", text, "good")

    def show_caution(self, text: str) -> None:
        """Show a warning that does not block the next step."""
        self._show_text("warning", text, "waiting")

    def show_wrong(self, text: str) -> None:
        """Show an error that the user must fix."""
        self._show_text("error", text, "problem")

    def show_note(self, text: str) -> None:
        """Show an explanation of the field."""
        self._show_text("info", text, "skipped")

    def show_waiting(self, text: str) -> None:
        """Show what it waits for."""
        self._show_text("waiting", text, "waiting")

    def show_problem(self, problem: Problem) -> None:
        """Show a problem and its advice."""
        self.show_wrong(texts.problem_text(problem))

    def _show_text(self, name: str, text: str, status: Status | None) -> None:
        self._sign.show_icon(icon(name, status) if name else QIcon())
        self._text.setText(texts.plain(text))
        self.setVisible(self._keeps_place or bool(text))


class Readiness(Enum):
    """Whether the user can leave a page."""

    LACKING = "lacking"  # a value is missing or invalid
    CHECKING = "checking"  # a check is running
    READY = "ready"


class Field(NamedTuple):
    """The widget for the setting `key`, and the label below it."""

    key: str
    editor: QWidget
    verdict: CheckLabel


class WizardStep(QWidget):
    """One page: it asks for some settings, and checks them while the user types."""

    changed = Signal()  # its readiness may have changed
    taken_over = Signal(object)  # a Beginning: settings came from elsewhere

    title = ""
    explanation = ""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.fields: list[Field] = []
        self.check = BackgroundTask()  # the latest check
        self.checked = True  # the values are complete, and the latest check has found nothing wrong
        self.settings = Settings()
        self._locked_by: Mapping[str, str] = {}
        self._column = frameless(vbox(inside=self))

    @Slot(int, int)
    def keep_gap(self, _lowest: int, highest: int) -> None:
        """Keep a gap to the scroll bar if there is one, given its range."""
        gap = self.fontMetrics().height() // 2 if highest else 0
        self._column.setContentsMargins(0, 0, gap, 0)

    @property
    def config(self) -> Path | None:
        """The settings file."""
        return self._context.controller.config

    @property
    def readiness(self) -> Readiness:
        if self.check.running:
            return Readiness.CHECKING
        return Readiness.READY if self.checked else Readiness.LACKING

    @property
    def lost(self) -> bool:
        """Whether the check got no answer, so that it is worth repeating."""
        return self.check.failed

    def take(self, beginning: SetupState) -> None:
        """Show the current settings; disable the fields that an administrator has set."""
        self.settings = beginning.loaded.settings
        self._locked_by = beginning.loaded.locked_by
        for key, editor, _ in self.fields:
            if isinstance(editor, QLineEdit):
                editor.setText(str(self.settings.value(key) or ""))
        self.fill(beginning)
        for key, editor, verdict in self.fields:
            who = self._locked_by.get(key, "")
            editor.setEnabled(not who)
            said = self.tr("Set by %1.").replace("%1", texts.plain(who)) if who else ""
            set_tip(editor, said)
            if who:
                verdict.show_caution(said)

    def fill(self, beginning: SetupState) -> None:
        """Fill the fields that are not a line of text with the current settings."""

    def begin(self) -> None:
        """Check the fields when the page becomes visible."""

    def end(self) -> None:
        """Cancel checks when the user leaves the page."""
        self.check.cancel()

    def look(self, *, typed: bool = False) -> None:
        """Check the fields; if `typed`, the user is typing."""

    @Slot()
    def look_typed(self) -> None:
        """Check the fields after a pause in typing."""
        self.look(typed=True)

    def confirm(self) -> None:
        """Start a check that is due before the page is left."""

    def changes(self) -> dict[str, object]:
        """Return the entered settings by their keys."""
        return {}

    def new_key(self) -> SecretChange | None:
        """Return the entered API key."""
        return None

    def show_refusal(self, error: UploaderError) -> bool:
        """Show why a value cannot be saved, if it is on this page."""
        del error
        return False

    def is_done(self, beginning: SetupState) -> bool:
        """Return whether the page is complete."""
        settings = beginning.loaded.settings
        return bool(self.fields) and all(settings.value(field.key) for field in self.fields)

    def minimumSizeHint(self) -> QSize:
        """Return the height for this width; Qt assumes the maximum height of each text."""
        needed = self._column.minimumSize()
        return QSize(needed.width(), self._column.minimumHeightForWidth(self.width()))

    def run_check(
        self,
        verdict: CheckLabel,
        text: str,
        function: Callable[..., Any],
        done: Callable[[Any], bool],
        *,
        failed: Callable[[UploaderError], object] | None = None,
        progress: Callable[[Any], object] | None = None,
        typed: bool = False,
    ) -> None:
        """Start a check that replaces the previous one; if `typed`, after a pause in typing.

        The verdict shows a text until it ends, and then what failed, unless `failed` shows that.
        `done` shows the result, and returns whether the page is complete.
        """
        self.check.cancel()
        self.checked = False
        verdict.show_checking(text)
        self.check = self._context.tasks.run(
            function,
            partial(self._take_result, done),
            failed or partial(self._take_failure, verdict),
            progress=progress,
            cancel=True,
            delay=TYPING if typed else 0,
        )
        self.changed.emit()

    def stop_check(self) -> None:
        """Cancel the check; the page is not complete."""
        self.check.cancel()
        self.checked = False
        self.changed.emit()

    def _take_result(self, done: Callable[[Any], bool], result: object) -> None:
        self.checked = done(result)
        self.changed.emit()

    def _take_failure(self, verdict: CheckLabel, error: UploaderError) -> None:
        verdict.show_problem(error.problem)
        self.changed.emit()

    def add_field(self, label: str, editor: QWidget, *beside: QWidget, key: str = "") -> CheckLabel:
        """Add a field with its label above and its result below; `key` is that of its setting."""
        caption = PlainLabel(label, self)
        caption.setBuddy(editor)
        verdict = CheckLabel(self)
        self.add(caption, hbox((editor, 1), *beside), verdict)
        self._column.addSpacing(self.fontMetrics().height() // 3)
        if key:
            self.fields.append(Field(key, editor, verdict))
        return verdict

    def add(self, *parts: QWidget | QLayout | Gap | int) -> None:
        """Add other widgets; a number is an empty space that stretches."""
        for part in parts:
            if isinstance(part, int):
                self._column.addStretch(part)
            elif isinstance(part, Gap):
                self._column.addSpacing(part.pixels)
            elif isinstance(part, QPushButton):
                self._column.addWidget(part, 0, Qt.AlignmentFlag.AlignLeft)
            elif isinstance(part, QWidget):
                self._column.addWidget(part)
            else:
                self._column.addLayout(part)

    def find_wrong(self, key: str, value: object) -> str:
        """Return why a value of a setting is invalid; empty if it is valid."""
        _, problems = check_values({key: value})
        return texts.engine_text(problems[0].message) if problems else ""
