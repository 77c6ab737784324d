"""The steps of a file as a line from top to bottom, with a mark at every step."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from mydata_like.gui.look.icons import drawing
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.look.palette import Status, status_colour
from mydata_like.gui.where.sentences import Step

SIDE = 1.3  # the mark's height in lines of text


class StepList(QWidget):
    """Shows steps, the first on top."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[QWidget] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(0)
        self._grid.setHorizontalSpacing(self.fontMetrics().averageCharWidth() * 2)
        self._grid.setColumnStretch(2, 1)

    def show_steps(self, steps: Sequence[Step]) -> None:
        """Show these steps in place of those before."""
        for widget in self._rows:
            self._grid.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._rows = []
        for number, step in enumerate(steps):
            mark = _Mark(step, self)
            mark.above = steps[number - 1].status if number else None
            mark.below = step.status if number + 1 < len(steps) else None
            self._add(number, [mark, *self._make_labels(step)])

    def _make_labels(self, step: Step) -> list[QWidget]:
        word = PlainLabel(step.word, self)
        note = PlainLabel(step.note, self)
        note.setWordWrap(True)
        note.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if step.status == "skipped":
            word.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        else:
            word.scale(1, bold=True)
        return [word, note]

    def _add(self, row: int, widgets: Sequence[QWidget]) -> None:
        for column, widget in enumerate(widgets):
            self._grid.addWidget(widget, row, column)
            widget.show()
        self._rows += widgets


class _Mark(QWidget):
    """The mark of one step on the line that joins all of them."""

    def __init__(self, step: Step, parent: QWidget) -> None:
        super().__init__(parent)
        self.above: Status | None = None
        self.below: Status | None = None
        self._step = step
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(step.word)

    def sizeHint(self) -> QSize:
        height = self.fontMetrics().height()
        return QSize(round(height * SIDE), round(height * 2.2))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = min(self.width(), round(self.fontMetrics().height() * SIDE))
        middle = QPointF(self.width() / 2, self.height() / 2)
        if self.above is not None:
            self._draw_line(painter, QPointF(middle.x(), 0), middle - QPointF(0, side * 0.6))
        if self.below is not None:
            end = QPointF(middle.x(), self.height())
            self._draw_line(painter, middle + QPointF(0, side * 0.6), end)
        if not self._step.icon:
            painter.setPen(QPen(status_colour(self._step.status), side / 12))
            painter.drawEllipse(middle, side / 5, side / 5)
            return
        square = QRectF(0, 0, side, side)
        square.moveCenter(middle)
        colour = status_colour(self._step.status).name()
        drawing(self._step.icon, colour).render(painter, square)

    def _draw_line(self, painter: QPainter, start: QPointF, end: QPointF) -> None:
        pen = QPen(self.palette().color(self.palette().ColorRole.Mid))
        pen.setWidthF(max(1.5, self.fontMetrics().height() / 10))
        painter.setPen(pen)
        painter.drawLine(start, end)
