"""One problem in words: what, why, who can mend it, and one button that does it."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QWidget,
)

from mydata_like.core.errors import Problem
from mydata_like.core.problems import Action, Fixer, find_problem_info
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.look.picture import Picture
from mydata_like.gui.settings.terms import with_labels
from mydata_like.gui.tables.marks import Mark

ICON_SCALE = 1.4  # times the icons of buttons


class ProblemCard(QFrame):
    """Shows one problem; `acted` tells what its button is to do."""

    acted = Signal(object)  # the ProblemInfo

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._problem: Problem | None = None
        self._about = ""
        self._retry_allowed = True
        self._shape = Picture(ICON_SCALE, self)
        self._what = PlainLabel("", self)
        self._hint = PlainLabel("", self)
        self._who = PlainLabel("", self)
        self._button = QPushButton(self)
        self._copy = QPushButton(icon("copy"), self.tr("Copy as text"), self)
        self._buttons = QHBoxLayout()
        self._lay_out()
        self._connect()

    @property
    def problem(self) -> Problem | None:
        """The problem that is shown."""
        return self._problem

    def show_problem(self, problem: Problem, mark: Mark, about: str = "") -> None:
        """Show a problem; `about` says what it concerns."""
        self._problem, self._about = problem, about
        info = find_problem_info(problem.code)
        self._shape.show_icon(mark.icon)
        self._shape.setAccessibleName(mark.word)
        self._what.setText(with_labels(words.plain(problem.message)))
        self._hint.setText(with_labels(words.plain(problem.hint)))
        self._hint.setVisible(bool(problem.hint))
        self._who.setText(" · ".join(filter(None, (about, self._say_who(info.fixer)))))
        self._button.setVisible(info.action is not Action.NOTHING)
        self._button.setText(self._say_act(info.action))
        self._enable()

    def allow_retry(self, *, allowed: bool) -> None:
        """Let a person try again, or not because nothing would come of it now."""
        self._retry_allowed = allowed
        self._enable()

    def as_text(self) -> str:
        """Return all of it for a mail to somebody who can mend it."""
        if self._problem is None:
            return ""
        code = f"({self._problem.code})"
        lines = (self._about, f"{self._what.text()} {code}", self._hint.text(), self._who.text())
        return "\n".join(filter(None, lines))

    def _enable(self) -> None:
        runs = (Action.TRY_AGAIN, Action.START_RUN)
        again = self._problem is not None and find_problem_info(self._problem.code).action in runs
        self._button.setEnabled(self._retry_allowed or not again)

    def _lay_out(self) -> None:
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(self.palette().ColorRole.Base)
        self._what.scale(1.1, bold=True)
        for label in (self._what, self._hint, self._who):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._who.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self._buttons.addWidget(self._button)
        self._buttons.addWidget(self._copy)
        self._buttons.addStretch(1)
        layout = QGridLayout(self)
        layout.addWidget(self._shape, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._what, 0, 1)
        layout.addWidget(self._hint, 1, 1)
        layout.addWidget(self._who, 2, 1)
        layout.addLayout(self._buttons, 3, 1)
        layout.setColumnStretch(1, 1)
        layout.setHorizontalSpacing(self.fontMetrics().height())

    def _connect(self) -> None:
        self._button.clicked.connect(self._act)
        self._copy.clicked.connect(self._copy_text)

    def _say_who(self, fixer: Fixer) -> str:
        match fixer:
            case Fixer.USER:
                return self.tr("You can mend this.")
            case Fixer.ADMINISTRATOR:
                return self.tr("Your administrator can mend this.")
            case Fixer.SERVER:
                return self.tr("The server has to recover; the program tries again by itself.")
            case Fixer.NOBODY:
                return self.tr("Nothing needs to be mended.")

    def _say_act(self, action: Action) -> str:
        said = {
            Action.TRY_AGAIN: self.tr("Try again"),
            Action.START_RUN: self.tr("Start"),
            Action.OPEN_FOLDER: self.tr("Open folder"),
            Action.OPEN_SETTINGS: self.tr("Open settings…"),
            Action.SET_UP: self.tr("Check key and approval…"),
        }
        return said.get(action, "")

    @Slot()
    def _act(self) -> None:
        if self._problem is not None:
            self.acted.emit(find_problem_info(self._problem.code))

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.as_text())
