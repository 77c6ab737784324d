"""The cards of the Overview: unsafe files, last run, next run."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QGridLayout, QPushButton, QSizePolicy, QWidget

from mydata_like.core.deletion import Safety
from mydata_like.core.extra_sources import KnownSource
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import RunState
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SECTION, SPACE
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, Panel, PlainLabel, Question, icon


class SummaryCard(Panel):
    """A title, a fact in large type, and a line of explanation."""

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        name = PlainLabel(title, self)
        self._fact = PlainLabel("", self, heading=SECTION)
        self._more = PlainLabel("", self, wrap=True)
        vbox(name, self._fact, self._more, 1, inside=self)

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
        cards = (self._risk, self._last, self._next)
        frameless(hbox(*((card, 1) for card in cards), inside=self, spacing=SPACE))

    def show_state(self, state: RunState) -> None:
        """Show the current state."""
        self._risk.show_fact(*self._describe_risk(state))
        self._last.show_fact(*self._describe_last(state))
        self._next.show_fact(*self._describe_next(state))

    def _describe_risk(self, state: RunState) -> tuple[str, str]:
        """Return which files are only on this computer; "nothing" only if that is certain."""
        sums, risk = state.sums, state.at_risk
        unverified = max(0, sums.found - sums.verified - sums.skipped)
        if state.at_work and unverified and unverified >= risk.files:  # else the ledger has more
            size = max(0, sums.found_bytes - sums.verified_bytes)
            return self.tr("%Ln file(s)", None, unverified), texts.size(size)
        if state.data_problem is not None:
            more = texts.with_labels(texts.engine_text(state.data_problem.message))
            return self.tr("Cannot be read"), more
        if risk.files:
            more = texts.size(risk.bytes)
            if risk.oldest is not None and not state.at_work:  # then counts come from both
                both = self.tr("%1; the oldest is from %2")
                more = texts.filled(both, more, texts.moment(risk.oldest))
            if state.kept:
                more += self.tr(
                    "; %Ln more file(s) differ from the server's copies, which you kept",
                    None,
                    state.kept,
                )
            return self.tr("%Ln file(s)", None, risk.files), more
        newest = state.interrupted or state.last
        if newest is not None and newest.left_behind:
            fact = self.tr("%Ln left out", None, newest.left_behind)
            return fact, self.tr("Files and folders that were not left out on purpose.")
        if state.sources:
            fact = self.tr("%Ln upload(s)", None, len(state.sources))
            return fact, self.tr("You added them, and they are not finished.")
        if newest is not None and newest.unsafe:
            return self.tr("%Ln file(s)", None, newest.unsafe), ""
        return self._describe_nothing(state)

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
        more = self.tr("Every file that was found is on the server.")
        if whole.skipped:
            more = self.tr("Except for %Ln file(s) that were left out.", None, whole.skipped)
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
        if last.sent:
            more = self.tr("%Ln file(s), %1 in %2", None, last.sent)
            size, span = texts.size(last.bytes - last.omitted), texts.span(last.seconds)
            more = texts.filled(more, size, span)
        elif last.problem is not None:
            more = self.tr("It ended early, and no file was sent completely.")
        elif last.failed or last.waiting or last.left_behind:
            more = self.tr("No file was sent completely, and not all files are safe.")
        else:
            more = self.tr("Nothing had to be sent.")
        return texts.moment(last.finished), more

    def _describe_next(self, state: RunState) -> tuple[str, str]:
        if state.watches_files:
            more = self.tr("A run starts when they no longer change.")
            if state.next_start is not None:
                more = self.tr("A run starts when they no longer change, or %1.")
                more = more.replace("%1", texts.moment(state.next_start))
            return self.tr("With new files"), more
        if state.next_start is not None:
            return texts.moment(state.next_start), ""
        more = self.tr("Press Start, or set a schedule in the settings.")
        return self.tr("Not planned"), more


ICON_SCALE = 1.4  # times the icons of buttons
MAX_ROWS = 20  # rows; Start continues with all


class UnfinishedList(Panel):
    """A list of the added folders that are not finished; hidden if there are none."""

    def __init__(self, controller: WindowController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._controller = controller
        self._sources: Sequence[KnownSource] = ()
        self.rows: list[UnfinishedRow] = []
        title = PlainLabel(self.tr("Added folders that are not finished"), self)
        self._rest = PlainLabel("", self)
        self._lines = vbox(spacing=SPACE)
        vbox(title, self._lines, self._rest, inside=self)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Show the unfinished folders; their buttons work while no run is active."""
        if tuple(state.sources) != self._sources:
            self._sources = tuple(state.sources)
            self._make_rows()
        for line in self.rows:
            line.allow(continuing=state.can_start, removing=not state.at_work)
        self.setVisible(bool(self._sources))

    def _make_rows(self) -> None:
        for line in self.rows:
            self._lines.removeWidget(line)
            line.hide()
            line.deleteLater()
        shown = self._sources[:MAX_ROWS]
        self.rows = [UnfinishedRow(source, self._controller, self) for source in shown]
        for line in self.rows:
            self._lines.addWidget(line)
        more = len(self._sources) - len(self.rows)
        self._rest.setText(self.tr("and %Ln more; Start continues with all", "", more))
        self._rest.setVisible(more > 0)


class UnfinishedRow(QWidget):
    """One folder: its path, its dataset, its unverified files, and two buttons."""

    def __init__(self, source: KnownSource, controller: WindowController, parent: QWidget) -> None:
        super().__init__(parent)
        self._source, self._controller = source, controller
        path = texts.plain(source.path)
        name = ElidedLabel(path, self)
        name.scale(1, bold=True)
        about = PlainLabel(self._describe(source), self, wrap=True, quiet=True)
        self._continue = QPushButton(icon("start"), self.tr("Continue"), self)
        self._remove = QPushButton(icon("delete"), self.tr("Remove…"), self)
        for button in (self._continue, self._remove):
            button.setAccessibleName(f"{button.text().rstrip('…')}: {path}")

        shape = IconLabel(ICON_SCALE, self)
        shape.show_icon(icon("folder", "waiting"))
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(SPACE)
        layout.setVerticalSpacing(0)
        layout.addWidget(shape, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(name, 0, 1)
        layout.addWidget(about, 1, 1)
        layout.addLayout(hbox(self._continue, self._remove, spacing=SPACE), 0, 2, 2, 1)
        layout.setColumnStretch(1, 1)

        self._continue.clicked.connect(self._continue_it)
        self._remove.clicked.connect(self._ask_to_remove)

    def allow(self, *, continuing: bool, removing: bool) -> None:
        """Enable or disable the buttons."""
        self._continue.setEnabled(continuing)
        self._remove.setEnabled(removing)

    def _describe(self, source: KnownSource) -> str:
        names = " / ".join(filter(None, source.destination))
        target = self.tr("uploaded as %1").replace("%1", texts.plain(names))
        if source.open_files is None:
            left = self.tr("not scanned yet")
        elif not source.open_files:
            left = self.tr("the next run checks whether everything is on the server")
        else:
            left = self.tr("%Ln file(s), %1, not verified yet", "", source.open_files)
            left = left.replace("%1", texts.size(source.open_bytes or 0))
        return f"{target} · {left}"

    @Slot()
    def _continue_it(self) -> None:
        self._controller.add_source(self._source.path, *self._source.destination)

    @Slot()
    def _ask_to_remove(self) -> None:
        question = RemoveQuestion(self._source, self.window())
        question.confirmed.connect(self._controller.remove_source)
        question.open()


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
