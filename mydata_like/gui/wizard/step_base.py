"""The base class of wizard steps, and the label that shows a check."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
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
from mydata_like.gui.theme.widgets import PlainLabel, icon
from mydata_like.settings.pending_changes import ApiKeyChange
from mydata_like.settings.schema import Settings, check_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from mydata_like.app.onboarding import SetupState


class CheckIcon(QWidget):
    """A small icon in the colour of its status, and in that of the theme in force."""

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
    """One sentence with a sign; below a field it keeps its place while it says nothing."""

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
        """What is said."""
        return self._text.text()

    def clear(self) -> None:
        """Say nothing."""
        self._say("", "", None)

    def show_checking(self, text: str) -> None:
        """Say that an answer is awaited."""
        self._say("working", text, "working")

    def show_good(self, text: str) -> None:
        """Say that all is well."""
        self._say("check", text, "good")

    def show_caution(self, text: str) -> None:
        """Say what should be known, though it keeps nobody from going on."""
        self._say("warning", text, "waiting")

    def show_wrong(self, text: str) -> None:
        """Show what has to be fixed."""
        self._say("error", text, "problem")

    def show_note(self, text: str) -> None:
        """Say what explains the field."""
        self._say("info", text, "skipped")

    def show_waiting(self, text: str) -> None:
        """Say for whom or what it waits."""
        self._say("waiting", text, "waiting")

    def show_problem(self, problem: Problem) -> None:
        """Say what went wrong, and what to do."""
        self.show_wrong(tell(problem))

    def _say(self, name: str, text: str, status: Status | None) -> None:
        self._sign.show_icon(name, status)
        self._text.setText(texts.plain(text))
        self.setVisible(self._keeps_place or bool(text))


def tell(problem: Problem) -> str:
    """Return a problem and its advice as one text."""
    return " ".join(filter(None, (problem.message, problem.hint)))


class Readiness(Enum):
    """Whether a page can be left."""

    LACKING = "lacking"  # something is missing or wrong
    CHECKING = "checking"  # an answer is awaited
    READY = "ready"


class WizardStep(QWidget):
    """One page: it asks for some settings, and checks them while they are typed."""

    changed = Signal()  # its readiness may be another
    taken_over = Signal(object)  # a Beginning: settings came from elsewhere

    title = ""
    explanation = ""

    def __init__(self, desk: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.check = BackgroundTask()  # the latest
        self.settings = Settings()
        self._locked_by: Mapping[str, str] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    @property
    def config(self) -> Path | None:
        """The settings file."""
        return self._desk.controller.config

    @property
    def readiness(self) -> Readiness:
        return Readiness.READY

    @property
    def lost(self) -> bool:
        """Whether the check brought no answer, so that it is worth asking again."""
        return self.check.failed

    def take(self, beginning: SetupState) -> None:
        """Show what is set already."""
        self.settings = beginning.loaded.settings
        self._locked_by = beginning.loaded.locked_by
        self.fill(beginning)

    def fill(self, beginning: SetupState) -> None:
        """Put what is set into the fields."""

    def begin(self) -> None:
        """The page has become visible: look at what its fields hold."""

    def end(self) -> None:
        """The page is left: nothing is asked for it any more."""
        self.check.cancel()

    def changes(self) -> dict[str, object]:
        """Return the settings that were entered here, by their keys."""
        return {}

    def new_key(self) -> ApiKeyChange | None:
        """Return the API key that was entered here."""
        return None

    def show_refusal(self, error: UploaderError) -> bool:
        """Show why what was entered cannot be kept, if that concerns this page."""
        del error
        return False

    def is_done(self, beginning: SetupState) -> bool:
        """Return whether what this page asks for is there."""
        del beginning
        return False

    def minimumSizeHint(self) -> QSize:
        """Return what the page needs at its width; Qt counts with every text at its tallest."""
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
        """Check in the background, in place of the check before; once typing pauses if `typed`."""
        self.check.cancel()
        self.check = self._desk.tasks.run(
            function, done, failed, progress=progress, cancel=True, delay=TYPING if typed else 0
        )

    def add_field(self, label: str, editor: QWidget, *beside: QWidget, key: str = "") -> CheckLabel:
        """Add a field with its label above and its verdict below; `key` is its setting's."""
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
        """Add something of the page's own."""
        if isinstance(part, QPushButton):
            self._column.addWidget(part, 0, Qt.AlignmentFlag.AlignLeft)
        elif isinstance(part, QWidget):
            self._column.addWidget(part)
        else:
            self._column.addLayout(part)

    def add_space(self) -> None:
        """Leave the rest of the page empty, or what is between its parts."""
        self._column.addStretch(1)

    def guard(self, editor: QWidget, verdict: CheckLabel) -> None:
        """Let nobody change what an administrator has decided."""
        who = self._locked_by.get(str(editor.property("setting")), "")
        editor.setEnabled(not who)
        editor.setToolTip("")
        if who:
            said = self.tr("Set by %1.").replace("%1", texts.plain(who))
            verdict.show_caution(said)
            editor.setToolTip(texts.tip(said))

    def find_wrong(self, key: str, value: object) -> str:
        """Return what is wrong with a single value of a setting; empty if it is valid."""
        _, problems = check_values({key: value})
        return problems[0].message if problems else ""
