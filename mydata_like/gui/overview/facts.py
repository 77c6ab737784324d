"""Small cards with one fact each: what exists only here, the last run, the next one."""

from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from mydata_like.core.deletion import Safety
from mydata_like.core.model import AtRisk
from mydata_like.gui.look import words
from mydata_like.gui.look.labels import LARGE, PlainLabel
from mydata_like.gui.state import PastRun, RunState


class FactCard(QFrame):
    """A title, a fact in large type, and a line that explains it."""

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._title = PlainLabel(title, self)
        self._fact = PlainLabel("", self)
        self._fact.scale(LARGE * 0.8, bold=True)
        self._more = PlainLabel("", self)
        self._more.setWordWrap(True)
        layout = QVBoxLayout(self)
        for label in (self._title, self._fact, self._more):
            layout.addWidget(label)
        layout.addStretch(1)

    def show_fact(self, fact: str, more: str = "") -> None:
        """Show a fact."""
        self._fact.setText(fact)
        self._more.setText(more)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self.palette().mid().color())
        painter.setBrush(self.palette().base())
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)


class FactRow(QWidget):
    """The three facts that matter when nothing goes on."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._risk = FactCard(self.tr("Only on this computer"), self)
        self._last = FactCard(self.tr("Last run"), self)
        self._next = FactCard(self.tr("Next run"), self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for card in (self._risk, self._last, self._next):
            layout.addWidget(card, 1)

    def show_state(self, state: RunState) -> None:
        """Show how things stand."""
        self._risk.show_fact(*self._tell_risk(state))
        self._last.show_fact(*self._tell_last(state))
        self._next.show_fact(*self._tell_next(state))

    def _tell_risk(self, state: RunState) -> tuple[str, str]:
        """Return what exists only here; that it is nothing only where that is known."""
        if state.at_work and (under_way := self._tell_open(state)):
            return under_way
        if state.data_problem is not None:
            more = words.plain(state.data_problem.message)
            return self.tr("Cannot be read"), more
        if state.at_risk.files:
            return self._tell_files(state.at_risk)
        return self._tell_left(state) or self._tell_nothing(state)

    def _tell_open(self, state: RunState) -> tuple[str, str] | None:
        """Return what the run at work has found and not verified; None where more is known."""
        left = max(0, state.sums.found - state.sums.verified - state.sums.skipped)
        if not left or left < state.at_risk.files:
            return None
        size = max(0, state.sums.found_bytes - state.sums.verified_bytes)
        return self.tr("%Ln file(s)", None, left), words.size(size)

    def _tell_files(self, at_risk: AtRisk) -> tuple[str, str]:
        fact = self.tr("%Ln file(s)", None, at_risk.files)
        size = words.size(at_risk.bytes)
        if at_risk.oldest is None:
            return fact, size
        more = self.tr("%1; the oldest was made %2").replace("%1", size)
        return fact, more.replace("%2", words.moment(at_risk.oldest))

    def _tell_left(self, state: RunState) -> tuple[str, str] | None:
        """Return what the newest run left although the ledger names no file."""
        last = state.interrupted or state.last
        if last is not None and last.left_behind:
            fact = self.tr("%Ln left out", None, last.left_behind)
            return fact, self.tr("Files and folders that nobody left out on purpose.")
        if state.sources:
            fact = self.tr("%Ln folder(s) or file(s)", None, len(state.sources))
            return fact, self.tr("They were added and are not finished.")
        if last is not None and last.unsafe:
            return self.tr("%Ln file(s)", None, last.unsafe), ""
        return None

    def _tell_nothing(self, state: RunState) -> tuple[str, str]:
        """Return whether nothing is only here, where no file is known that is."""
        whole = state.newest_whole
        if state.last is None:
            return self.tr("Not known yet"), self.tr("The first run finds out.")
        if whole is None or not whole.safe or state.safety in (Safety.AT_RISK, Safety.PROBLEM):
            return self.tr("Not known yet"), self.tr("The next run finds out.")
        if not whole.found:
            return self.tr("No files"), self.tr("The last run found none.")
        if whole.skipped:
            more = self.tr("But for %Ln file(s) left out on purpose.", None, whole.skipped)
        else:
            more = self.tr("Every file that was found is on the server.")
        return self.tr("Nothing"), more

    def _tell_last(self, state: RunState) -> tuple[str, str]:
        last, cut_off = state.last, state.interrupted
        if cut_off is not None and (last is None or cut_off.started > last.started):
            more = self.tr(
                "It was cut off; %Ln of its file(s) are verified.", None, cut_off.verified
            )
            return words.moment(cut_off.started), more
        if last is None or last.finished is None:
            return self.tr("None yet"), ""
        if not last.sent:
            return words.moment(last.finished), self._tell_nothing_sent(last)
        more = self.tr("%Ln file(s), %1 in %2", None, last.sent)
        more = more.replace("%1", words.size(last.bytes)).replace("%2", words.span(last.seconds))
        return words.moment(last.finished), more

    def _tell_nothing_sent(self, last: PastRun) -> str:
        """Return why a run has sent nothing."""
        if last.problem is not None:
            return self.tr("It ended early and sent nothing.")
        if last.failed or last.waiting or last.left_behind:
            return self.tr("It sent nothing, and not all files are safe.")
        return self.tr("Nothing had to be sent.")

    def _tell_next(self, state: RunState) -> tuple[str, str]:
        if state.next_start is not None:
            return words.moment(state.next_start), ""
        if state.schedule == "watch":
            return self.tr("With new files"), self.tr("A run starts when they have settled.")
        more = self.tr("Start, or the settings' schedule, begins one.")
        return self.tr("Not planned"), more
