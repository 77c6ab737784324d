"""Tries the way to the server, and shows it step by step."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QProgressBar,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.errors import UploaderError
from mydata_like.engine.workers import CancelFlag
from mydata_like.gui.look import words
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.look.palette import Status
from mydata_like.gui.settings import errands
from mydata_like.gui.settings.errands import Attempt
from mydata_like.gui.settings.signs import Sign, fit_to_screen
from mydata_like.gui.tasks import Tasks

if TYPE_CHECKING:
    from mydata_like.bootstrap import Step

WIDE, HIGH = 80, 24  # characters and lines
_ICONS: dict[str, tuple[str, Status]] = {
    "ok": ("check", "good"),
    "unproven": ("waiting", "waiting"),
    "failed": ("problems", "problem"),
}


class Messenger(QObject):
    """Brings the steps from the thread that makes them to the window."""

    told = Signal(object)  # a Step


class TrialDialog(QDialog):
    """Shows what became of each step of a trial; closing it ends the trial."""

    def __init__(self, attempt: Attempt, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Test of the connection"))
        self._cancel = CancelFlag()
        self._messenger = Messenger()
        self._results: list[str] = []
        self._lines: list[str] = []
        self._head = PlainLabel(self.tr("Trying the way to the server"), self)
        self._head.setWordWrap(True)
        self._head.scale(1.2, bold=True)
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self._head.text())
        self._steps = QVBoxLayout()
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._copy = self._buttons.addButton(
            self.tr("Copy as &text"), QDialogButtonBox.ButtonRole.ActionRole
        )
        self._lay_out()
        self._connect()
        work = partial(errands.try_connection, attempt, self._cancel, self._messenger.told.emit)
        tasks.run(work, self._finish, self._fail)

    @property
    def results(self) -> tuple[str, ...]:
        """How the steps ended, in their order."""
        return tuple(self._results)

    @property
    def conclusion(self) -> str:
        """What the whole comes to."""
        return self._head.text()

    def done(self, code: int) -> None:
        self._cancel.set("the test of the connection was closed")
        super().done(code)

    def _lay_out(self) -> None:
        self._steps.setSpacing(self.fontMetrics().averageCharWidth())
        page = QWidget(self)
        column = QVBoxLayout(page)
        column.addLayout(self._steps)
        column.addStretch(1)
        scroll = QScrollArea(self)
        scroll.setWidget(page)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setAccessibleName(self.tr("Steps of the test"))
        layout = QVBoxLayout(self)
        layout.addWidget(self._head)
        layout.addWidget(self._bar)
        layout.addWidget(scroll, 1)
        layout.addWidget(self._buttons)
        fit_to_screen(self, WIDE, HIGH)

    def _connect(self) -> None:
        self._messenger.told.connect(self._show_step)
        self._buttons.rejected.connect(self.reject)
        self._copy.clicked.connect(self._copy_text)

    @Slot(object)
    def _show_step(self, step: "Step") -> None:
        name, status = _ICONS[step.result.value]
        said = words.plain(" ".join(filter(None, (step.message, step.hint))))
        sign = Sign(self, scale=1.0)
        sign.say(f"{self._name_result(step.result.value)}: {said}", name, status)
        self._steps.addWidget(sign)
        self._results.append(step.result.value)
        self._lines.append(sign.text)

    @Slot(object)
    def _finish(self, _: object) -> None:
        worst = max(self._results, key=list(_ICONS).index, default="ok")
        self._conclude(
            {
                "ok": self.tr("The way to the server is open"),
                "unproven": self.tr("Nothing failed, but not all could be proved"),
                "failed": self.tr("Something is wrong"),
            }[worst]
        )

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        sign = Sign(self, scale=1.0)
        sign.say(words.plain(f"{error.message} {error.hint}".strip()), "problems", "problem")
        self._steps.addWidget(sign)
        self._lines.append(sign.text)
        self._conclude(self.tr("Something is wrong"))

    def _conclude(self, sentence: str) -> None:
        self._head.setText(sentence)
        self._bar.hide()
        self._buttons.setStandardButtons(QDialogButtonBox.StandardButton.Close)

    @Slot()
    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText("\n".join((self.conclusion, *self._lines)))

    def _name_result(self, result: str) -> str:
        return {
            "ok": self.tr("Good"),
            "unproven": self.tr("Not proved"),
            "failed": self.tr("Failed"),
        }[result]
