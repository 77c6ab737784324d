"""The list of problem kinds, most serious first, and the card of one kind."""

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QCoreApplication, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QListWidget,
    QPushButton,
    QWidget,
)

from mydata_like.core.errors import Problem
from mydata_like.core.problems import INTENDED, Action, Fixer, find_problem_info
from mydata_like.core.queries import ProblemGroup
from mydata_like.gui.status_text import describe_problem
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import fill, frameless, hbox, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SECTION, SMALL_SPACE, SPACE
from mydata_like.gui.theme.widgets import (
    FoldedText,
    IconLabel,
    Panel,
    PlainLabel,
    RowIcon,
    icon,
    mark_of,
)
from mydata_like.gui.window_state import WindowState

translate = QCoreApplication.translate
WORST_FIRST = ("failed", "folder-failed", "found", "waiting", "skipped", "folder-skipped")

_KIND_ALIASES = {"found": "waiting"}


def count_of_group(group: ProblemGroup) -> str:
    """Return the number of affected files or folders as text."""
    if group.kind.startswith("folder-"):
        return translate("problems", "%Ln folder(s)", "", group.files)
    return translate("problems", "%Ln file(s)", "", group.files)


def describe_group(group: ProblemGroup) -> str:
    """Return the number of affected files or folders, and their size, as text."""
    count = count_of_group(group)
    return f"{count}, {texts.size(group.size)}" if group.size else count


def mark_of_group(group: ProblemGroup) -> RowIcon:
    """Return the mark of a group's state."""
    return mark_of(group.kind) or RowIcon(texts.plain(group.kind), "error", "problem")


def severity(group: ProblemGroup) -> tuple[bool, int, int, str]:
    """Return a key that sorts the most serious groups first."""
    known = group.kind in WORST_FIRST
    rank = WORST_FIRST.index(group.kind) if known else len(WORST_FIRST)
    return group.problem.code in INTENDED, rank, -group.files, group.problem.code


HIDDEN = "problems/hidden"  # the key of the hidden kinds in the window state


class ProblemFilter(QWidget):
    """A list of kinds, the most serious first, one of which is selected."""

    chosen = Signal()  # another kind is selected, or the selected kind has changed

    def __init__(self, memory: WindowState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._memory = memory
        self._all: Sequence[ProblemGroup] = ()
        self.groups: list[ProblemGroup] = []  # in the list
        self._hidden = list_hidden(memory)
        self._last_hidden = ""  # the name of a kind
        self._selected = self._requested = ""  # names of kinds
        self._list = QListWidget(self)
        self._show_hidden = QCheckBox(self)

        self._list.setAccessibleName(self.tr("Kinds of problems"))
        self._list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._list.setWordWrap(True)
        self._list.setResizeMode(QListWidget.ResizeMode.Adjust)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setSpacing(SMALL_SPACE)
        self._list.setMinimumWidth(self.fontMetrics().averageCharWidth() * 14)
        self._show_hidden.setVisible(False)
        frameless(vbox((self._list, 1), self._show_hidden, inside=self))

        self._list.currentRowChanged.connect(self._save_selection)
        self._show_hidden.toggled.connect(self._show_filtered)

    @property
    def group(self) -> ProblemGroup | None:
        """The selected kind."""
        row = self._list.currentRow()
        return self.groups[row] if 0 <= row < len(self.groups) else None

    @property
    def empty(self) -> bool:
        """Whether there are no kinds, shown or hidden."""
        return not self._all

    def show_groups(self, groups: Sequence[ProblemGroup]) -> None:
        """Show these kinds, except hidden ones."""
        self._all = groups
        self._show_filtered()

    def look_for(self, kind: str) -> None:
        """Select a kind by its name, or the first with an outcome, now or once there is one."""
        self._requested = kind
        self._select()

    def is_hidden(self, group: ProblemGroup) -> bool:
        """Return whether a kind is shown only because the user shows hidden kinds."""
        return name_of_group(group) in self._hidden

    def hide_chosen(self) -> None:
        """Hide the selected kind, or unhide it if it was hidden."""
        if self.group is not None:
            self._last_hidden = name_of_group(self.group)
            self._set_hidden(self._hidden ^ {self._last_hidden})

    @Slot()
    def unhide(self) -> None:
        """Undo the last hiding."""
        self._set_hidden(self._hidden - {self._last_hidden})

    @Slot()
    def _show_filtered(self) -> None:
        hidden = [group for group in self._all if self.is_hidden(group)]
        show_all = self._show_hidden.isChecked()
        self._show_hidden.setText(self.tr("Show %Ln hidden kind(s)", "", len(hidden)))
        self._show_hidden.setVisible(bool(hidden))
        before = list(map(name_of_group, self.groups))
        shown = [group for group in self._all if show_all or group not in hidden]
        self.groups = sorted(shown, key=severity)
        same = list(map(name_of_group, self.groups)) == before
        with QSignalBlocker(self._list):
            if not same:
                self._list.clear()
                self._list.addItems([""] * len(shown))
            for number, group in enumerate(self.groups):
                item, mark = self._list.item(number), mark_of_group(group)
                message = describe_problem(group.problem).sentence
                said = f"{mark.word}, {describe_group(group)}: {message}"
                item.setText(f"{texts.count(group.files)}   {message}")
                item.setIcon(mark.icon)
                item.setData(Qt.ItemDataRole.AccessibleTextRole, said)
        if same:
            self.chosen.emit()
        else:
            self._select()

    def _find(self, name: str) -> int:
        """Return the row of a kind, or of the first with an outcome; -1 if there is none.

        Folders count as files, and files that were found and not sent count as waiting.
        """
        kind, _, code = name.partition(":")
        for number, group in enumerate(self.groups):
            kinds = (group.kind, group.kind.removeprefix("folder-"), _KIND_ALIASES.get(group.kind))
            if kind in kinds and (not code or group.problem.code == code):
                return number
        return -1

    def _select(self) -> None:
        """Select the requested kind, the previous one or the first, in this order of preference."""
        requested = self._find(self._requested) if self._requested else -1
        if requested >= 0:
            self._requested = ""
        previous = self._find(self._selected) if self._selected else -1
        row = next((row for row in (requested, previous) if row >= 0), 0)
        with QSignalBlocker(self._list):
            self._list.setCurrentRow(row)
        self._save_selection()

    @Slot()
    def _save_selection(self) -> None:
        if self.group is not None:
            self._selected = name_of_group(self.group)
        self.chosen.emit()

    def _set_hidden(self, names: set[str]) -> None:
        self._hidden = names
        self._memory.setValue(HIDDEN, sorted(names))
        self._show_filtered()


def name_of_group(group: ProblemGroup) -> str:
    """Return the outcome and the code of a group, as `list_hidden` and `look_for` take it."""
    return f"{group.kind}:{group.problem.code}"


def list_hidden(memory: WindowState) -> set[str]:
    """Return the names of the kinds that the user has hidden."""
    stored = memory.value(HIDDEN)
    names = [stored] if isinstance(stored, str) else stored  # `QSettings` reads a list of one so
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


ICON_SCALE = 1.4  # times the icons of buttons


class ProblemCard(Panel):
    """A card with one problem; `acted` reports the action of its button."""

    acted = Signal(object)  # the ProblemInfo

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.problem: Problem | None = None  # the displayed one
        self._info = find_problem_info("")
        self._about = ""
        self._retry_allowed = True
        self._icon = IconLabel(ICON_SCALE, self)
        self._message = PlainLabel("", self, heading=SECTION, wrap=True, selectable=True)
        self._hint = PlainLabel("", self, wrap=True, selectable=True)
        self._details = FoldedText(self)
        self._footer = PlainLabel("", self, wrap=True, quiet=True, selectable=True)
        self._button = QPushButton(self)
        self._copy = QPushButton(icon("copy"), self.tr("Copy as text"), self)
        self._choices = hbox(spacing=SPACE)

        layout = QGridLayout(self)
        layout.addWidget(self._icon, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        for line, part in enumerate((self._message, self._hint, self._details, self._footer)):
            layout.addWidget(part, line, 1)
        layout.addLayout(self._choices, 4, 1)
        layout.addLayout(hbox(self._button, self._copy, 1, spacing=SPACE), 5, 1)
        layout.setColumnStretch(1, 1)
        layout.setHorizontalSpacing(LARGE_SPACE)

        self._button.clicked.connect(self._emit_acted)
        self._copy.clicked.connect(self._copy_text)

    def show_problem(self, problem: Problem, mark: RowIcon, about: str = "") -> None:
        """Show a problem; `about` describes what it affects."""
        self.problem, self._about = problem, about
        self._info = info = find_problem_info(problem.code)
        self._icon.show_icon(mark.icon)
        self._icon.setAccessibleName(mark.word)
        text = describe_problem(problem)
        self._message.setText(text.sentence)
        self._hint.setText(text.hint)
        self._hint.setVisible(bool(text.hint))
        self._details.setText(text.details)
        fixers = {
            Fixer.USER: self.tr("You can fix this."),
            Fixer.ADMINISTRATOR: self.tr("Your administrator can fix this."),
            Fixer.SERVER: self.tr("The server has to recover. The program retries automatically."),
            Fixer.NOBODY: self.tr("Nothing needs to be fixed."),
        }
        self._footer.setText(" · ".join(filter(None, (about, fixers[info.fixer]))))
        actions = {
            Action.TRY_AGAIN: self.tr("Try again"),
            Action.START_RUN: self.tr("Start"),
            Action.OPEN_FOLDER: self.tr("Open folder"),
            Action.OPEN_SETTINGS: self.tr("Open settings…"),
            Action.SET_UP: self.tr("Check key and approval…"),
        }
        self._button.setVisible(info.action is not Action.NOTHING)
        self._button.setText(actions.get(info.action, ""))
        self.allow_retry(allowed=self._retry_allowed)

    def add_buttons(self, *buttons: QPushButton) -> None:
        """Add buttons in a row above the others."""
        fill(self._choices, *buttons, 1)
        for before, after in pairwise((*buttons, self._button, self._copy)):
            self.setTabOrder(before, after)

    def allow_retry(self, *, allowed: bool) -> None:
        """Enable or disable the retry, which may be impossible now."""
        self._retry_allowed = allowed
        retries = self._info.action in (Action.TRY_AGAIN, Action.START_RUN)
        self._button.setEnabled(allowed or not retries)

    def as_text(self) -> str:
        """Return the whole problem as text for a report to someone who can fix it."""
        if self.problem is None:
            return ""
        shown = (self._hint.text(), self._details.text(), self._footer.text())
        lines = (self._about, f"{self._message.text()} ({self.problem.code})", *shown)
        return "\n".join(filter(None, lines))

    @Slot()
    def _emit_acted(self) -> None:
        self.acted.emit(self._info)

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.as_text())
