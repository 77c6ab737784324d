"""The panel Details of the Overview: the stages of the active run, and its throughput."""

from collections import deque
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QSizePolicy, QWidget

from mydata_like.core.events import RunProgressed
from mydata_like.gui.overview.throughput_chart import ThroughputChart, are_tiny
from mydata_like.gui.run_state import ChannelRates, RunState
from mydata_like.gui.status_text import limit_sentence
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SMALL, TITLE
from mydata_like.gui.theme.widgets import FoldButton, IconLabel, Panel, PlainLabel, icon
from mydata_like.gui.window_state import WindowState

STATE = "overview/details"  # the key in the window state
OPEN = "open"


class DetailsPanel(QWidget):
    """A button that shows and hides the stages and the throughput of the active run."""

    changed = Signal()  # it was opened or closed

    def __init__(self, memory: WindowState, parent: QWidget) -> None:
        super().__init__(parent)
        self._memory = memory
        self._button = FoldButton(self.tr("Details"), self)
        self._content = QWidget(self)
        self._strip = PipelineStrip(self._content)
        self._chart = ThroughputChart(self._content)
        frameless(vbox(self._strip, (self._chart, 1), inside=self._content))
        frameless(vbox(self._button, (self._content, 1), inside=self))
        self._button.setChecked(memory.value(STATE) == OPEN)
        self._show_content()
        self._button.clicked.connect(self._on_click)

    def show_state(self, state: RunState) -> None:
        """Show the progress of the stages."""
        self._strip.show_state(state)
        self._chart.setVisible(state.ours)

    def show_samples(self, samples: Sequence[ChannelRates]) -> None:
        """Show the throughput."""
        if self._chart.isVisible():
            self._chart.show_samples(samples)

    @property
    def is_open(self) -> bool:
        """Whether more than the button is shown."""
        return self._button.isChecked()

    def toggle(self) -> None:
        """Open or close it."""
        self._button.click()

    @Slot()
    def _on_click(self) -> None:
        self._show_content()
        self.changed.emit()
        self._memory.setValue(STATE, OPEN if self.is_open else "")

    def _show_content(self) -> None:
        is_open = self.is_open
        self._content.setVisible(is_open)
        vertical = QSizePolicy.Policy.Expanding if is_open else QSizePolicy.Policy.Maximum
        self.setSizePolicy(QSizePolicy.Policy.Expanding, vertical)


class StageCount(NamedTuple):
    """One stage of the pipeline: files that have passed it, and files that wait for it."""

    name: str
    done: int
    queue: int


def count_stages(sums: RunProgressed) -> list[StageCount]:
    """Return the stages in order."""
    already_stored = max(0, sums.checked - sums.wanted - sums.waiting - sums.skipped)
    verified = max(0, sums.verified - already_stored)
    registered = max(sums.registered, verified)  # the HTTP fallback registers as it sends
    sent = max(sums.sent, registered)
    return [
        StageCount("scan", sums.found, 0),
        StageCount("check", sums.checked, max(0, sums.found - sums.checked)),
        StageCount("send", sent, max(0, sums.wanted - sent)),
        StageCount("register", registered, sent - registered),
        StageCount("verify", verified, registered - verified),
    ]


RECENT = 5.0  # seconds over which rates are measured
SHORTEST = 0.2  # seconds; a rate over less would be by chance


class PipelineStrip(QWidget):
    """Five stages side by side, and a text that names the bottleneck."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cards = {
            "scan": StageCard(self.tr("Scan"), "where", self),
            "check": StageCard(self.tr("Check"), "server", self),
            "send": StageCard(self.tr("Send"), "transfers", self),
            "register": StageCard(self.tr("Register"), "dataset", self),
            "verify": StageCard(self.tr("Verify"), "check", self),
        }
        self._limit_label = PlainLabel("", self)
        cards = hbox(*((card, 1) for card in self._cards.values()))
        frameless(vbox(cards, self._limit_label, inside=self))

    def show_state(self, state: RunState) -> None:
        """Show the progress of the run and its bottleneck."""
        sums = state.sums
        limit = state.measured.stage if state.measured else ""
        for stage in count_stages(sums):
            self._cards[stage.name].show_stage(stage, limit=stage.name == limit)
        if sums.wanted and not are_tiny(sums.wanted, sums.wanted_bytes):
            self._cards["send"].show_bytes(sums.transferred_bytes, state.speed)
        # A label that appears and disappears would move the page.
        self._limit_label.setText(limit_sentence(state.measured) or " ")


class StageCard(Panel):
    """One stage: its count, its rate, and the files that wait for it."""

    def __init__(self, title: str, icon_name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._samples: deque[tuple[float, int]] = deque()
        self._icon = IconLabel(1.0, self)
        self._icon.show_icon(icon(icon_name))
        name = PlainLabel(title, self)
        self._count = PlainLabel("", self, heading=TITLE)
        self._rate = PlainLabel("", self)
        self._queue = PlainLabel("", self)
        self._queue.scale(SMALL)
        head = hbox(self._icon, (name, 1))
        vbox(head, self._count, self._rate, self._queue, inside=self)

    def show_stage(self, stage: StageCount, *, limit: bool) -> None:
        """Show these numbers; a word and a frame mark the bottleneck."""
        self._count.setText(texts.count(stage.done))
        rate = self._measure_rate(stage.done)
        self._rate.setText(self.tr("%1 files/s").replace("%1", texts.count(round(rate))))
        queue = self.tr("%Ln waiting", None, stage.queue) if stage.queue else " "
        self._queue.setText(self.tr("The limit") if limit else queue)
        self.mark(marked=limit)

    def show_bytes(self, done: int, speed: float) -> None:
        """Show bytes instead of files, and bytes per second."""
        self._count.setText(texts.size(done))
        self._rate.setText(texts.rate(speed))

    def _measure_rate(self, done: int) -> float:
        """Return the recent rate in files per second."""
        now = monotonic()
        if self._samples and done < self._samples[-1][1]:
            self._samples.clear()  # another run
        self._samples.append((now, done))
        while now - self._samples[0][0] > RECENT:
            self._samples.popleft()
        elapsed = now - self._samples[0][0]
        return (done - self._samples[0][1]) / elapsed if elapsed > SHORTEST else 0.0
