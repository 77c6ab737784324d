"""The pipeline strip: what each stage has done, and which one holds up the others."""

from collections import deque
from time import monotonic

from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from mydata_like.core.events import RunProgressed, StagesMeasured
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import LARGE, SMALL, PlainLabel
from mydata_like.gui.look.palette import accent
from mydata_like.gui.look.picture import Picture
from mydata_like.gui.look.sentences import limit_sentence
from mydata_like.gui.overview.counts import Stage, stages_of

RECENT = 5.0  # seconds of the past that rates are taken from


class PipelineStrip(QWidget):
    """Five stages side by side, and in words what the limit is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cards = {
            "scan": StageCard(self.tr("Scan"), "where", self),
            "check": StageCard(self.tr("Check"), "server", self),
            "send": StageCard(self.tr("Send"), "transfers", self),
            "register": StageCard(self.tr("Register"), "dataset", self),
            "verify": StageCard(self.tr("Verify"), "check", self),
        }
        self._said = PlainLabel("", self)
        row = QHBoxLayout()
        for card in self._cards.values():
            row.addWidget(card, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(row)
        layout.addWidget(self._said)

    def show_sums(self, sums: RunProgressed, measured: StagesMeasured | None) -> None:
        """Show how far a run has come, and what holds it up."""
        limit = measured.stage if measured else ""
        for stage in stages_of(sums):
            self._cards[stage.name].show_stage(stage, limit=stage.name == limit)
        # A label that comes and goes would move the page.
        self._said.setText(limit_sentence(measured) or " ")


class StageCard(QFrame):
    """One stage: its count, its rate, what waits before it."""

    def __init__(self, title: str, icon_name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._is_limit = False
        self._past: deque[tuple[float, int]] = deque()
        self._picture = Picture(1.0, self)
        self._picture.show_icon(icon(icon_name))
        self._heading = PlainLabel(title, self)
        self._count = PlainLabel("", self)
        self._count.scale(LARGE, bold=True)
        self._rate = PlainLabel("", self)
        self._queue = PlainLabel("", self)
        self._queue.scale(SMALL)
        top = QHBoxLayout()
        top.addWidget(self._picture)
        top.addWidget(self._heading, 1)
        layout = QVBoxLayout(self)
        layout.addLayout(top)
        for label in (self._count, self._rate, self._queue):
            layout.addWidget(label)

    def show_stage(self, stage: Stage, *, limit: bool) -> None:
        """Show these numbers; the limit is told by a word and a frame."""
        self._count.setText(words.count(stage.done))
        rate = self._follow(stage.done)
        self._rate.setText(self.tr("%1 files/s").replace("%1", words.count(round(rate))))
        queue = self.tr("%Ln waiting", None, stage.queue) if stage.queue else " "
        if limit:
            queue = (
                self.tr("The limit: %1").replace("%1", queue)
                if stage.queue
                else self.tr("The limit")
            )
        self._queue.setText(queue)
        if limit != self._is_limit:
            self._is_limit = limit
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = self.palette()
        edge = QPen(accent(), 2.0) if self._is_limit else QPen(palette.mid().color(), 1.0)
        painter.setPen(edge)
        painter.setBrush(palette.base())
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -2, -2), 6, 6)

    def _follow(self, done: int) -> float:
        """Return how many files a second came through of late."""
        now = monotonic()
        if self._past and done < self._past[-1][1]:
            self._past.clear()  # another run
        self._past.append((now, done))
        while now - self._past[0][0] > RECENT:
            self._past.popleft()
        passed = now - self._past[0][0]
        return (done - self._past[0][1]) / passed if passed > 0 else 0.0
