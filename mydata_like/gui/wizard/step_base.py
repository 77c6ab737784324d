"""The base class of wizard steps, and the label that shows a check."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLayout,
    QPushButton,
    QSizePolicy,
    QStyle,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.errors import Problem, UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.tasks import TYPING, BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.widgets import PlainLabel, icon, set_tip
from mydata_like.settings.pending_changes import SecretChange
from mydata_like.settings.schema import Settings, check_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from mydata_like.app.onboarding import SetupState


class CheckIcon(QWidget):
    """A small icon in the colour of its status in the current theme."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._name = ""
        self._status: Status | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_icon(self, name: str, status: Status | None = None) -> None:
        """Show the icon of this name; an empty one shows nothing."""
        self._name, self._status = name, status
        self.update()

    def sizeHint(self) -> QSize:
        side = self.style().pixelMetric(QStyle.PixelMetric.PM_SmallIconSize)
        return QSize(side, max(side, self.fontMetrics().height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._name:
            icon(self._name, self._status).paint(QPainter(self), self.rect())


class CheckLabel(QWidget):
    """One sentence with an icon; below a field it keeps its space while empty."""

    def __init__(self, parent: QWidget, *, keeps_place: bool = True) -> None:
        super().__init__(parent)
        self._keeps_place = keeps_place
        self.setVisible(keeps_place)
        self._sign = CheckIcon(self)
        self._text = PlainLabel("", self)
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._text, 1)

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
        self._sign.show_icon(name, status)
        self._text.setText(texts.plain(text))
        self.setVisible(self._keeps_place or bool(text))


class Readiness(Enum):
    """Whether the user can leave a page."""

    LACKING = "lacking"  # a value is missing or invalid
    CHECKING = "checking"  # a check is running
    READY = "ready"


class WizardStep(QWidget):
    """One page: it asks for some settings, and checks them while the user types."""

    changed = Signal()  # its readiness may have changed
    taken_over = Signal(object)  # a Beginning: settings came from elsewhere

    title = ""
    explanation = ""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.check = BackgroundTask()  # the latest check
        self.settings = Settings()
        self._locked_by: Mapping[str, str] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

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
        return Readiness.READY

    @property
    def lost(self) -> bool:
        """Whether the check got no answer, so that it is worth repeating."""
        return self.check.failed

    def take(self, beginning: SetupState) -> None:
        """Show the current settings."""
        self.settings = beginning.loaded.settings
        self._locked_by = beginning.loaded.locked_by
        self.fill(beginning)

    def fill(self, beginning: SetupState) -> None:
        """Fill the fields with the current settings."""

    def begin(self) -> None:
        """Check the fields when the page becomes visible."""

    def end(self) -> None:
        """Cancel checks when the user leaves the page."""
        self.check.cancel()

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
        del beginning
        return False

    def minimumSizeHint(self) -> QSize:
        """Return the height for this width; Qt assumes the maximum height of each text."""
        needed = self._column.minimumSize()
        return QSize(needed.width(), self._column.minimumHeightForWidth(self.width()))

    def run_check(
        self,
        function: Callable[..., Any],
        done: Callable[[Any], object],
        failed: Callable[[UploaderError], object],
        *,
        progress: Callable[[Any], object] | None = None,
        typed: bool = False,
    ) -> None:
        """Start a check that replaces the previous one; if `typed`, after a pause in typing."""
        self.check.cancel()
        self.check = self._context.tasks.run(
            function, done, failed, progress=progress, cancel=True, delay=TYPING if typed else 0
        )

    def add_field(self, label: str, editor: QWidget, *beside: QWidget, key: str = "") -> CheckLabel:
        """Add a field with its label above and its result below; `key` is that of its setting."""
        caption = PlainLabel(label, self)
        caption.setBuddy(editor)
        line = QHBoxLayout()
        line.addWidget(editor, 1)
        for widget in beside:
            line.addWidget(widget)
        verdict = CheckLabel(self)
        self._column.addWidget(caption)
        self._column.addLayout(line)
        self._column.addWidget(verdict)
        self._column.addSpacing(self.fontMetrics().height() // 3)
        editor.setProperty("setting", key)
        return verdict

    def add(self, part: QWidget | QLayout) -> None:
        """Add another widget."""
        if isinstance(part, QPushButton):
            self._column.addWidget(part, 0, Qt.AlignmentFlag.AlignLeft)
        elif isinstance(part, QWidget):
            self._column.addWidget(part)
        else:
            self._column.addLayout(part)

    def add_space(self) -> None:
        """Add stretchable space."""
        self._column.addStretch(1)

    def guard(self, editor: QWidget, verdict: CheckLabel) -> None:
        """Disable the fields that an administrator has set."""
        who = self._locked_by.get(str(editor.property("setting")), "")
        editor.setEnabled(not who)
        set_tip(editor, "")
        if who:
            said = self.tr("Set by %1.").replace("%1", texts.plain(who))
            verdict.show_caution(said)
            set_tip(editor, said)

    def find_wrong(self, key: str, value: object) -> str:
        """Return why a value of a setting is invalid; empty if it is valid."""
        _, problems = check_values({key: value})
        return texts.engine_text(problems[0].message) if problems else ""
