"""What a check found, in a sentence below its field; the shape before it tells it at a glance."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStyle, QWidget

from mydata_like.core.errors import Problem
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.look.palette import Status


class Sign(QWidget):
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


class Verdict(QWidget):
    """One sentence with a sign; below a field it keeps its place while it says nothing."""

    def __init__(self, parent: QWidget, *, keeps_place: bool = True) -> None:
        super().__init__(parent)
        self._keeps_place = keeps_place
        self.setVisible(keeps_place)
        self._sign = Sign(self)
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
        """Say what has to be mended."""
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
        self._text.setText(words.plain(text))
        self.setVisible(self._keeps_place or bool(text))


def tell(problem: Problem) -> str:
    """Return a problem and its advice as one text."""
    return " ".join(filter(None, (problem.message, problem.hint)))
