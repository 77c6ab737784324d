"""The cards of the Overview: unsafe files, last run, next run."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.deletion import Safety
from mydata_like.core.extra_sources import KnownSource
from mydata_like.core.model import AtRisk
from mydata_like.gui.run_state import PastRunState, RunState
from mydata_like.gui.setting_labels import with_labels
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.metrics import SECTION, SPACE
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, Panel, PlainLabel, Question, icon


class SummaryCard(Panel):
    """A title, a fact in large type, and a line of explanation."""

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._title = PlainLabel(title, self)
        self._fact = PlainLabel("", self)
        self._fact.scale(SECTION, bold=True)
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


class SummaryRow(QWidget):
    """The three cards that are shown while the program is idle."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._risk = SummaryCard(self.tr("Only on this computer"), self)
        self._last = SummaryCard(self.tr("Last run"), self)
        self._next = SummaryCard(self.tr("Next run"), self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE)
        for card in (self._risk, self._last, self._next):
            layout.addWidget(card, 1)

    def show_state(self, state: RunState) -> None:
        """Show the current state."""
        self._risk.show_fact(*self._describe_risk(state))
        self._last.show_fact(*self._describe_last(state))
        self._next.show_fact(*self._describe_next(state))

    def _describe_risk(self, state: RunState) -> tuple[str, str]:
        """Return which files are only on this computer; "nothing" only if that is certain."""
        if state.at_work and (under_way := self._describe_open(state)):
            return under_way
        if state.data_problem is not None:
            more = with_labels(texts.engine_text(state.data_problem.message))
            return self.tr("Cannot be read"), more
        if state.at_risk.files:
            fact, more = self._describe_files(state.at_risk)
            return fact, f"{more}{self._describe_kept(state.kept)}"
        return self._describe_left_out(state) or self._describe_nothing(state)

    def _describe_open(self, state: RunState) -> tuple[str, str] | None:
        """Return the unverified files of the active run; None if the ledger has more."""
        left = max(0, state.sums.found - state.sums.verified - state.sums.skipped)
        if not left or left < state.at_risk.files:
            return None
        size = max(0, state.sums.found_bytes - state.sums.verified_bytes)
        return self.tr("%Ln file(s)", None, left), texts.size(size)

    def _describe_files(self, at_risk: AtRisk) -> tuple[str, str]:
        fact = self.tr("%Ln file(s)", None, at_risk.files)
        size = texts.size(at_risk.bytes)
        if at_risk.oldest is None:
            return fact, size
        more = self.tr("%1; the oldest is from %2").replace("%1", size)
        return fact, more.replace("%2", texts.moment(at_risk.oldest))

    def _describe_kept(self, files: int) -> str:
        """Return what to add to the unsafe files; empty if the user keeps no copy."""
        if not files:
            return ""
        return self.tr(
            "; %Ln more file(s) differ from the server's copies, which you kept", None, files
        )

    def _describe_left_out(self, state: RunState) -> tuple[str, str] | None:
        """Return what the newest run left out, for the case that the ledger has no unsafe file."""
        last = state.interrupted or state.last
        if last is not None and last.left_behind:
            fact = self.tr("%Ln left out", None, last.left_behind)
            return fact, self.tr("Files and folders that were not left out on purpose.")
        if state.sources:
            fact = self.tr("%Ln folder(s) or file(s)", None, len(state.sources))
            return fact, self.tr("They were added and are not finished.")
        if last is not None and last.unsafe:
            return self.tr("%Ln file(s)", None, last.unsafe), ""
        return None

    def _describe_nothing(self, state: RunState) -> tuple[str, str]:
        """Return the text for the case that no file is known to exist only here."""
        whole = state.newest_whole
        if state.last is None:
            return self.tr("Not known yet"), self.tr("The first run finds out.")
        if whole is None or not whole.safe or state.safety in (Safety.AT_RISK, Safety.PROBLEM):
            return self.tr("Not known yet"), self.tr("The next run finds out.")
        if not whole.found:
            return self.tr("No files"), self.tr("The last run found none.")
        if state.kept:
            fact = self.tr("%Ln file(s)", None, state.kept)
            return fact, self.tr("Different from the server's copies, which you kept.")
        if whole.skipped:
            more = self.tr("Except for %Ln file(s) left out on purpose.", None, whole.skipped)
        else:
            more = self.tr("Every file that was found is on the server.")
        return self.tr("Nothing"), more

    def _describe_last(self, state: RunState) -> tuple[str, str]:
        last, interrupted = state.last, state.interrupted
        if interrupted is not None and (last is None or interrupted.started > last.started):
            more = self.tr(
                "It was interrupted; %Ln of its file(s) are verified.", None, interrupted.verified
            )
            return texts.moment(interrupted.started), more
        if last is None or last.finished is None:
            return self.tr("None yet"), ""
        if not last.sent:
            return texts.moment(last.finished), self._explain_nothing_sent(last)
        more = self.tr("%Ln file(s), %1 in %2", None, last.sent)
        size = texts.size(last.bytes - last.omitted)
        more = more.replace("%1", size).replace("%2", texts.span(last.seconds))
        return texts.moment(last.finished), more

    def _explain_nothing_sent(self, last: PastRunState) -> str:
        """Return why a run has sent no file."""
        if last.problem is not None:
            return self.tr("It ended early, and no file was sent completely.")
        if last.failed or last.waiting or last.left_behind:
            return self.tr("No file was sent completely, and not all files are safe.")
        return self.tr("Nothing had to be sent.")

    def _describe_next(self, state: RunState) -> tuple[str, str]:
        if state.next_start is not None:
            return texts.moment(state.next_start), ""
        if state.schedule == "watch":
            return self.tr("With new files"), self.tr("A run starts when they no longer change.")
        more = self.tr("Press Start, or set a schedule in the settings.")
        return self.tr("Not planned"), more


ICON_SCALE = 1.4  # times the icons of buttons
MAX_ROWS = 20  # rows; Start continues with all


class UnfinishedList(Panel):
    """A list of the added folders that are not finished; hidden if there are none."""

    continue_wanted = Signal(object)  # a KnownSource
    remove_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._sources: Sequence[KnownSource] = ()
        self.rows: list[UnfinishedRow] = []
        self._title = PlainLabel(self.tr("Added folders that are not finished"), self)
        self._rest = PlainLabel("", self)
        self._lines = QVBoxLayout()
        self._lines.setSpacing(SPACE)
        layout = QVBoxLayout(self)
        layout.addWidget(self._title)
        layout.addLayout(self._lines)
        layout.addWidget(self._rest)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Show the unfinished folders; their buttons work while no run is active."""
        if tuple(state.sources) != self._sources:
            self._sources = tuple(state.sources)
            self._make_rows()
        for row in self.rows:
            row.allow(continuing=state.can_start, removing=not state.at_work)
        self.setVisible(bool(self._sources))

    def _make_rows(self) -> None:
        for row in self.rows:
            self._lines.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = [UnfinishedRow(source, self) for source in self._sources[:MAX_ROWS]]
        for row in self.rows:
            row.continue_wanted.connect(self.continue_wanted)
            row.remove_wanted.connect(self.remove_wanted)
            self._lines.addWidget(row)
        more = len(self._sources) - len(self.rows)
        self._rest.setText(self.tr("and %Ln more; Start continues with all", "", more))
        self._rest.setVisible(more > 0)


class UnfinishedRow(QWidget):
    """One folder: its path, its dataset, its unverified files, and two buttons."""

    continue_wanted = Signal(object)
    remove_wanted = Signal(object)

    def __init__(self, source: KnownSource, parent: QWidget) -> None:
        super().__init__(parent)
        self._source = source
        path = texts.plain(source.path)
        self._path = ElidedLabel(path, self)
        self._path.scale(1, bold=True)
        self._about = PlainLabel(self._describe(source), self)
        self._about.setWordWrap(True)
        self._about.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self._continue = QPushButton(icon("start"), self.tr("Continue"), self)
        self._remove = QPushButton(icon("delete"), self.tr("Remove…"), self)
        for button in (self._continue, self._remove):
            name = f"{button.text().rstrip('…')}: {path}"
            button.setAccessibleName(name)

        shape = IconLabel(ICON_SCALE, self)
        shape.show_icon(icon("folder", "waiting"))
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACE)
        buttons.addWidget(self._continue)
        buttons.addWidget(self._remove)
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(SPACE)
        layout.setVerticalSpacing(0)
        layout.addWidget(shape, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._path, 0, 1)
        layout.addWidget(self._about, 1, 1)
        layout.addLayout(buttons, 0, 2, 2, 1)
        layout.setColumnStretch(1, 1)

        self._continue.clicked.connect(self._continue_it)
        self._remove.clicked.connect(self._remove_it)

    def allow(self, *, continuing: bool, removing: bool) -> None:
        """Enable or disable the buttons."""
        self._continue.setEnabled(continuing)
        self._remove.setEnabled(removing)

    def _describe(self, source: KnownSource) -> str:
        names = " / ".join(filter(None, source.destination))
        target = self.tr("uploaded as %1").replace("%1", texts.plain(names))
        return f"{target} · {self._describe_open(source)}"

    def _describe_open(self, source: KnownSource) -> str:
        if source.open_files is None:
            return self.tr("not scanned yet")
        if not source.open_files:
            return self.tr("the next run checks whether everything is on the server")
        text = self.tr("%Ln file(s), %1, not verified yet", "", source.open_files)
        return text.replace("%1", texts.size(source.open_bytes or 0))

    @Slot()
    def _continue_it(self) -> None:
        self.continue_wanted.emit(self._source)

    @Slot()
    def _remove_it(self) -> None:
        self.remove_wanted.emit(self._source)


class RemoveQuestion(Question):
    """Asks whether to remove a folder, a `KnownSource`, from the list."""

    def __init__(self, source: KnownSource, parent: QWidget) -> None:
        super().__init__(source, parent)
        self.setWindowTitle(self.tr("Remove from the list"))
        self.setText(self.tr("Stop uploading %1?").replace("%1", texts.plain(source.path)))
        self.setInformativeText(
            self.tr(
                "Nothing is deleted, here or on the server. Files that are not on the server yet "
                "stay only on this computer, and no run uploads them until the folder is added "
                "again."
            )
        )
        self.offer(self.tr("&Remove"), self.tr("&Keep"))
