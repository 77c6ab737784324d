"""Shows one file or folder: its progress, where it is, and whether it may be deleted."""

import os
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.file_status import (
    FileSafety,
    FileStatus,
    FolderStatus,
    LocalState,
    PathStatus,
)
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status, status_colour
from mydata_like.gui.theme.widgets import IconLabel, PlainLabel, drawing, icon
from mydata_like.gui.where.status_sentences import StatusText, TimelineStep, judge, list_steps

SIDE = 1.3  # the mark's height in lines of text


class Timeline(QWidget):
    """Shows steps, the first on top."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[QWidget] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(0)
        self._grid.setHorizontalSpacing(self.fontMetrics().averageCharWidth() * 2)
        self._grid.setColumnStretch(2, 1)

    def show_steps(self, steps: Sequence[TimelineStep]) -> None:
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

    def _make_labels(self, step: TimelineStep) -> list[QWidget]:
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

    def __init__(self, step: TimelineStep, parent: QWidget) -> None:
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


HEADLINE = 1.15
ICON_SCALE = 1.6  # times the icons of buttons
TITLE = 1.4


class StatusCard(QFrame):
    """Says whether it may be deleted, with what to do about that."""

    check_wanted = Signal()
    free_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._question = PlainLabel(self.tr("May I delete it?"), self)
        self._shape = IconLabel(ICON_SCALE, self)
        self._headline = PlainLabel("", self)
        self._reason = PlainLabel("", self)
        self._check = QPushButton(icon("server"), self.tr("Check now"), self)
        self._free = QPushButton(icon("delete"), self.tr("Free space…"), self)
        self._verdict = StatusText("skipped", "info", "")
        self._lay_out()
        self._check.clicked.connect(self.check_wanted)
        self._free.clicked.connect(self.free_wanted)

    @property
    def verdict(self) -> StatusText:
        """What is said."""
        return self._verdict

    def show_verdict(self, verdict: StatusText) -> None:
        """Say this."""
        self._verdict = verdict
        self._shape.show_icon(icon(verdict.icon, verdict.status))
        self._headline.setText(verdict.headline)
        self._reason.setText(verdict.reason)
        self._reason.setVisible(bool(verdict.reason))

    def allow(self, *, check: bool) -> None:
        """Enable querying the server if there is something to query."""
        self._check.setEnabled(check)
        self._free.setEnabled(check)

    def _lay_out(self) -> None:
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(self.palette().ColorRole.Base)
        self._question.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self._headline.scale(HEADLINE, bold=True)
        for label in (self._headline, self._reason):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = QHBoxLayout()
        buttons.setSpacing(self.fontMetrics().height() // 2)
        buttons.addWidget(self._check)
        buttons.addWidget(self._free)
        buttons.addStretch(1)
        layout = QGridLayout(self)
        layout.setHorizontalSpacing(self.fontMetrics().height())
        layout.setVerticalSpacing(self.fontMetrics().height() // 2)
        layout.addWidget(self._question, 0, 1)
        layout.addWidget(self._shape, 1, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._headline, 1, 1)
        layout.addWidget(self._reason, 2, 1)
        layout.addLayout(buttons, 3, 1)
        layout.setColumnStretch(1, 1)


class StatusView(QWidget):
    """Shows what is known of one file or folder."""

    check_wanted = Signal()
    free_wanted = Signal()
    folder_wanted = Signal()
    page_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._status: PathStatus | None = None
        self._name = PlainLabel("", self)
        self._place = PlainLabel("", self)
        self._steps = Timeline(self)
        self._sums = PlainLabel("", self)
        self._sum = PlainLabel("", self)
        self._page = QPushButton(icon("open"), self.tr("Open on the server"), self)
        self._folder = QPushButton(icon("folder"), self.tr("Open folder"), self)
        self._copy = QPushButton(icon("copy"), self.tr("Copy checksum"), self)
        self.card = StatusCard(self)
        self._lay_out()
        self._connect()

    @property
    def status(self) -> PathStatus | None:
        """What is shown."""
        return self._status

    def show_status(self, status: PathStatus) -> None:
        """Show this in place of what was shown."""
        self._status = status
        self._name.setText(texts.plain(status.path.name or str(status.path)))
        self._place.setText(texts.plain(os.fsencode(status.path.parent)))
        self._page.setVisible(bool(status.web))
        self._folder.setEnabled(status.path.parent.is_absolute())
        if isinstance(status, FileStatus):
            self._show_file(status)
        else:
            self._show_folder(status)
        self.card.show_verdict(judge(status))
        self.card.allow(check=status.unknown is None and _is_here(status))

    def _show_file(self, status: FileStatus) -> None:
        entry = status.entry
        self._steps.show_steps(list_steps(status))
        self._steps.show()
        # What was sent before has another checksum than the file that is shown.
        other = status.safety in (FileSafety.CHANGED, FileSafety.UNCERTAIN)
        checksum = entry.checksum if entry and not other else ""
        facts = [texts.size(status.size)]
        facts += [self.tr("MD5 %1").replace("%1", checksum)] if checksum else []
        self._sum.setText(" · ".join(facts))
        self._copy.setVisible(bool(checksum))
        self._sums.hide()

    def _show_folder(self, status: FolderStatus) -> None:
        self._steps.hide()
        self._copy.hide()
        known = status.known
        self._sum.setText(
            self.tr("%Ln file(s), %1", "", known.files).replace("%1", texts.size(known.bytes))
        )
        told = {
            "verified": self.tr("verified by the server"),
            "staged": self.tr("sent"),
            "registered": self.tr("registered"),
            "repaired": self.tr("being replaced"),
            "found": self.tr("found, not sent yet"),
            "changed": self.tr("changed here, not there"),
            "waiting": self.tr("waiting"),
            "skipped": self.tr("left out"),
            "failed": self.tr("failed"),
        }
        lines = [
            f"{texts.count(amount.files)} {told.get(state, state)} ({texts.size(amount.bytes)})"
            for state, amount in status.states.items()
        ]
        self._sums.setText("\n".join(lines))
        self._sums.setVisible(bool(lines))

    def _lay_out(self) -> None:
        self._name.scale(TITLE, bold=True)
        for label in (self._name, self._place, self._sum):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._place.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        buttons = QHBoxLayout()
        buttons.setSpacing(self.fontMetrics().height() // 2)
        for button in (self._page, self._folder, self._copy):
            buttons.addWidget(button)
        buttons.addStretch(1)
        gap = self.fontMetrics().height()
        layout = QVBoxLayout(self)
        layout.addWidget(self._name)
        layout.addWidget(self._place)
        layout.addSpacing(gap // 2)
        layout.addWidget(self._steps)
        layout.addSpacing(gap // 2)
        layout.addWidget(self._sum)
        layout.addWidget(self._sums)
        layout.addSpacing(gap // 2)
        layout.addLayout(buttons)
        layout.addSpacing(gap)
        layout.addWidget(self.card)
        layout.addStretch(1)

    def _connect(self) -> None:
        self._copy.clicked.connect(self._copy_checksum)
        self._folder.clicked.connect(self.folder_wanted)
        self._page.clicked.connect(self.page_wanted)
        self.card.check_wanted.connect(self.check_wanted)
        self.card.free_wanted.connect(self.free_wanted)

    @Slot()
    def _copy_checksum(self) -> None:
        if isinstance(self._status, FileStatus) and self._status.entry:
            QGuiApplication.clipboard().setText(self._status.entry.checksum)


def _is_here(status: PathStatus) -> bool:
    return isinstance(status, FolderStatus) or status.local is not LocalState.GONE
