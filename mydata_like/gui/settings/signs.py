"""Small words beside a field: where a value is from, what is wrong, what helps."""

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from mydata_like.gui.look import palette
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import SMALL, PlainLabel
from mydata_like.gui.look.palette import Status
from mydata_like.gui.look.picture import Picture

ROOM = 0.85  # of the screen that a dialog takes at most


class QuietLabel(PlainLabel):
    """Wrapped text in the colour of what explains, or of a status, in every theme."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._status: Status | None = None
        self.setWordWrap(True)
        self._paint()

    def tint(self, status: Status | None) -> None:
        """Take the colour of a status, or none."""
        self._status = status
        self._paint()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._paint()

    def _paint(self) -> None:
        colour = palette.status_colour(self._status) if self._status else palette.quiet()
        colours = QPalette(self.palette())
        if colours.color(QPalette.ColorRole.WindowText) != colour:
            colours.setColor(QPalette.ColorRole.WindowText, colour)
            self.setPalette(colours)


class Sign(QWidget):
    """An icon and a sentence, by default in small type."""

    def __init__(self, parent: QWidget, scale: float = SMALL) -> None:
        super().__init__(parent)
        self._picture = Picture(parent=self)
        self._text = QuietLabel("", self)
        self._text.scale(scale)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(self._text, 1)
        self.say("")

    @property
    def text(self) -> str:
        """What is said."""
        return self._text.text()

    def say(self, text: str, name: str = "", status: Status | None = None) -> None:
        """Say a sentence, with the icon of this name, as a status asks for; or say nothing."""
        self.setVisible(bool(text))
        self._text.setText(text)
        self._text.tint(status)
        self._picture.setVisible(bool(name))
        if name:
            self._picture.show_icon(icon(name, status))


class Aside(QWidget):
    """What stands among the settings and is none: a label, an explanation, and what is beside."""

    def __init__(self, title: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.label = PlainLabel(title, self)
        self.help = QuietLabel(text, self)
        self.column = lay_side_by_side(self, self.label, self.help)

    def matches(self, sought: str) -> bool:
        """Return whether all words of a search are found here."""
        return fits(sought, f"{self.label.text()} {self.help.text()}")


def fits(sought: str, said: str) -> bool:
    """Return whether all words of a search are found in what is said."""
    folded = said.casefold()
    return all(word in folded for word in sought.casefold().split())


def fit_to_screen(window: QWidget, characters: int, lines: int) -> None:
    """Make a window so wide and high, but leave some room around it on a small screen."""
    metrics, room = window.fontMetrics(), window.screen().availableSize() * ROOM
    wanted = QSize(metrics.averageCharWidth() * characters, metrics.lineSpacing() * lines)
    window.resize(wanted.boundedTo(room))


def lay_side_by_side(whole: QWidget, label: PlainLabel, text: QuietLabel) -> QVBoxLayout:
    """Put label and explanation to the left; return the column to the right, for the field."""
    text.scale(SMALL)
    label.setWordWrap(True)
    gap = whole.fontMetrics().averageCharWidth()
    left, right = QVBoxLayout(), QVBoxLayout()
    left.setSpacing(gap // 4)
    right.setSpacing(gap // 4)
    left.addWidget(label)
    left.addWidget(text)
    left.addStretch(1)
    line = QHBoxLayout(whole)
    line.setContentsMargins(0, gap // 2, 0, gap // 2)
    line.setSpacing(gap * 3)
    line.addLayout(left, 1)
    line.addLayout(right, 1)
    return right
