"""The page Problems: unhealthy files by kind of problem, and what to do."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt, Slot
from PySide6.QtWidgets import (
    QPushButton,
    QStackedWidget,
    QWidget,
)

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import HELD, Problem, UploaderError
from mydata_like.core.model import ChangeChoice
from mydata_like.core.problems import Action, ProblemInfo
from mydata_like.core.queries import FileRow, ProblemGroup, Row, Table, View
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.ledger_query import LedgerQuery
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.tables import table_panel
from mydata_like.gui.tables.columns import SentenceDelegate, problem_columns
from mydata_like.gui.tables.problem_groups import (
    ProblemCard,
    ProblemFilter,
    describe_group,
    mark_of_group,
)
from mydata_like.gui.tables.table_panel import QUEUED, FilesPanel, action_button, path_of
from mydata_like.gui.tables.table_view import WindowedModel
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import frameless, scrolled, vbox
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.widgets import (
    EmptyMessage,
    PlainLabel,
    Question,
    RowIcon,
    Toast,
    action,
    allow_action,
)
from mydata_like.gui.window_state import KeptSplitter
from mydata_like.settings.schema import Settings

translate = QCoreApplication.translate

MAX_RETRIED = 1000  # files of a kind that are retried one by one
MAX_CHOSEN = 10_000  # held files for which a choice is made at once
MIN_LINES = 22  # of text in the height of the selected kind
CUT_OFF = "run.cut-off"


class ProblemsPage(Page):
    """The problem of the run on top, the kinds on the left, and the selected kind on the right."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._controller = context.controller
        self._at_work = False
        self._query = LedgerQuery(context, self, table_panel.group_problems)
        self._run = ProblemCard(self)
        self._kinds = ProblemFilter(context.memory, self)
        self._card = ProblemCard(self)
        self._replace = QPushButton(self.tr("Rep&lace the server's…"), self._card)
        self._keep = QPushButton(self.tr("&Keep the server's"), self._card)
        self._chosen = PlainLabel("", self, wrap=True)
        self._hide = action(self, "skipped", self.tr("Hide this kind"), self._hide_group)
        columns = problem_columns()
        model = WindowedModel(columns, context.tasks, self)
        self._files = FilesPanel(context, "problems", model, self)
        sentences = SentenceDelegate(self._files.table)
        self._files.table.setItemDelegateForColumn(len(columns) - 1, sentences)
        self._toast = Toast()
        self._no_problems = EmptyMessage("problems", self)
        self._ledger_error = ""
        self._stack = QStackedWidget(self)

        self._stack.addWidget(self._make_splitter())
        self._stack.addWidget(self._no_problems)
        self._stack.setCurrentWidget(self._no_problems)
        content = QWidget(self)
        title = PageTitle(translate("pages", "Problems"), content)
        page_layout(content, title, self._run, (self._stack, 1), self._toast)
        # With large text, two problems may not fit.
        frameless(vbox(scrolled(content, self, wide=True), inside=self))

        self._controller.run_changed.connect(self._show_state)
        self._query.answered.connect(self._take)
        self._query.failed.connect(self._fail)
        self._kinds.chosen.connect(self._show_group)
        self._run.acted.connect(self._fix_run)
        self._card.acted.connect(self._fix_group)
        self._replace.clicked.connect(self._ask_to_replace)
        self._keep.clicked.connect(self._keep_copies)
        self._toast.undone.connect(self._kinds.unhide)
        self._show_state(context.controller.state)
        self._show_group()

    def look_for(self, what: str) -> None:
        """Show the first kind with this outcome."""
        self._kinds.look_for(what)

    def _make_splitter(self) -> KeptSplitter:
        """Return the kinds, with the selected one next to them."""
        width = self.fontMetrics().averageCharWidth()
        right = QWidget(self)
        self._files.table.setAccessibleName(self.tr("Files of this kind"))
        self._card.add_buttons(self._replace, self._keep)
        self._chosen.hide()
        hide = action_button(self._hide, right)
        self._files.add_top_widgets(hide)
        vbox(self._card, self._chosen, (self._files, 1), inside=right, margins=(SPACE, 0, 0, 0))
        splitter = KeptSplitter(
            "problems",
            self._context.memory,
            (self._kinds, right),
            self,
            orientation=Qt.Orientation.Horizontal,
            shares=(1, 2),
            sizes=(width * 33, width * 75),
        )
        splitter.setMinimumHeight(self.fontMetrics().height() * MIN_LINES)
        return splitter

    @Slot(object)
    def _take(self, groups: list[ProblemGroup]) -> None:
        at_work = self._controller.state.at_work  # then unsent files are in progress
        self._show_kinds([one for one in groups if not (at_work and one.kind == QUEUED)], "")

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self._show_kinds([], texts.error_text(error))

    def _show_kinds(self, groups: list[ProblemGroup], ledger_error: str) -> None:
        self._ledger_error = ledger_error
        self._kinds.show_groups(groups)
        self._show_no_problems()
        self._stack.setCurrentIndex(1 if self._kinds.empty else 0)

    def _show_no_problems(self) -> None:
        """Show that no file has a problem."""
        if self._controller.loaded is None:  # the ledger cannot be read
            return
        no_run_problem = self._run.isHidden()
        text = self.tr("Nothing else is wrong.")
        if no_run_problem:
            safe = self._controller.state.safety is Safety.SAFE
            text = self.tr("Nothing is wrong.") if safe else self.tr("No problems are known.")
        self._no_problems.setText(self._ledger_error or text)

    @Slot()
    def _show_group(self) -> None:
        group = self._kinds.group
        self._card.setVisible(group is not None)
        self._files.setVisible(group is not None)
        allow_action(self._hide, allowed=group is not None)
        if group is None:
            return
        is_held = group.problem.code == HELD
        for part in (self._replace, self._keep):
            part.setVisible(is_held)
        self._chosen.setVisible(is_held and bool(self._chosen.text()))
        problem = group.problem
        if is_held:  # the engine's hint names the commands
            problem = problem._replace(
                hint=self.tr(
                    "Choose whether to replace the copies or to keep them: for the selected files, "
                    "or else for all that are listed."
                )
            )
        self._card.show_problem(problem, mark_of_group(group), describe_group(group))
        hidden = self._kinds.is_hidden(group)
        self._hide.setText(self.tr("Show this kind") if hidden else self.tr("Hide this kind"))
        kinds = frozenset({group.kind})
        self._files.switch_view(View(table=Table.PROBLEMS, states=kinds, code=group.problem.code))

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        problem = self._find_problem(state)
        for card in (self._run, self._card):
            card.allow_retry(allowed=self._controller.can_retry)
        self._run.setVisible(problem is not None)
        self._show_no_problems()
        if self._at_work is not state.at_work:
            self._at_work = state.at_work
            self._query.refresh()
        if problem is not None:
            self._run.show_problem(problem, *self._describe(state, problem))

    def _describe(self, state: RunState, problem: Problem) -> tuple[RowIcon, str]:
        """Return the mark of a run's problem and its meaning for the run."""
        if state.phase is Phase.PAUSED or state.awaited is problem:
            mark = RowIcon(self.tr("Paused"), "pause", "waiting")
            return mark, self.tr("Nothing is sent for now.")
        if problem.code == CUT_OFF:
            mark = RowIcon(self.tr("Interrupted"), "warning", "waiting")
            return mark, self.tr("The last run did not finish.")
        mark = RowIcon(self.tr("Failed"), "error", "problem")
        if state.phase is Phase.BROKEN:
            return mark, self.tr("No run of this window is active.")
        if state.data_problem is problem:
            return mark, self.tr("None of its files can be sent.")
        return mark, self.tr("The last run ended early.")

    def _find_problem(self, state: RunState) -> Problem | None:
        """Return the problem that pauses the active run, or that ended the last one early."""
        if state.problem is not None or state.at_work:
            return state.problem
        if state.data_problem is not None or state.awaited is not None:
            return state.data_problem or state.awaited
        if state.interrupted is not None:
            return Problem(
                CUT_OFF,
                self.tr("The last run was interrupted: the program or the computer stopped."),
                self.tr("Nothing is lost: the next run continues."),
            )
        return state.last.problem if state.last is not None else None

    @Slot(object)
    def _fix_run(self, info: ProblemInfo) -> None:
        resumes = self._controller.state.at_work
        retry = self._controller.resume if resumes else self._controller.start
        self._fix(info, retry, path_of(self._controller, b""))

    @Slot(object)
    def _fix_group(self, info: ProblemInfo) -> None:
        if group := self._kinds.group:
            path = path_of(self._controller, group.path)
            is_folder = group.kind.startswith("folder-")
            self._fix(info, self._retry_group, path if is_folder else path.parent)

    def _fix(self, info: ProblemInfo, retry: Callable[[], None], folder: Path) -> None:
        match info.action:
            case Action.TRY_AGAIN:
                retry()
            case Action.START_RUN:
                self._controller.start()
            case Action.OPEN_FOLDER:
                self._controller.open_path(folder)
            case Action.OPEN_SETTINGS:
                self._controller.open_page("settings", info.setting)
            case _:
                self._controller.open_page("set-up", info.setting)

    def _retry_group(self) -> None:
        if self._controller.state.ours:
            rows = range(min(MAX_RETRIED, self._files.model.rowCount()))
            self._files.model.read_rows([rows], self._retry_rows)
        else:
            self._controller.start()

    @Slot(object)
    def _retry_rows(self, rows: list[FileRow]) -> None:
        for row in rows:
            self._controller.retry(row.key)

    @Slot()
    def _ask_to_replace(self) -> None:
        listed = min(MAX_CHOSEN, self._files.model.rowCount())
        question = ReplaceQuestion(len(self._files.table.rows()) or listed, self)
        question.confirmed.connect(self._replace_copies)
        question.open()

    @Slot()
    def _replace_copies(self) -> None:
        self._choose_copies(ChangeChoice.REPLACE)

    @Slot()
    def _keep_copies(self) -> None:
        self._choose_copies(ChangeChoice.KEEP)

    def _choose_copies(self, choice: ChangeChoice) -> None:
        """Leave a choice for the selected files, or else for all that are listed."""
        if selected := self._files.table.rows():
            self._choose_rows(choice, selected)
            return
        listed = range(min(MAX_CHOSEN, self._files.model.rowCount()))
        self._files.model.read_rows([listed], partial(self._choose_rows, choice))

    def _choose_rows(self, choice: ChangeChoice, rows: Sequence[Row]) -> None:
        keys = [row.key for row in rows if isinstance(row, FileRow)]
        call = partial(choose_held, *self._controller.place, choice, keys)
        self._context.tasks.run(call, self._show_chosen, self._show_not_chosen, writes=True)

    @Slot(object)
    def _show_chosen(self, number: int) -> None:
        text = self.tr("This is not possible for these files now. Start a run first.")
        if number:
            text = self.tr("The next run does so for %Ln file(s).", "", number)
        self._chosen.setText(text)
        self._chosen.show()
        if number and not self._controller.state.at_work:
            self._controller.start()

    @Slot(object)
    def _show_not_chosen(self, error: UploaderError) -> None:
        self._chosen.setText(texts.error_text(error))
        self._chosen.show()

    @Slot()
    def _hide_group(self) -> None:
        group = self._kinds.group
        if group is not None:
            hiding = not self._kinds.is_hidden(group)
            self._kinds.hide_chosen()
            if hiding:
                self._toast.show_message(self.tr("This kind of problem is hidden."))


class ReplaceQuestion(Question):
    """Asks whether to replace this number of verified copies on the server."""

    def __init__(self, files: int, parent: QWidget) -> None:
        super().__init__(files, parent)
        self.setWindowTitle(self.tr("Replace the server's copies"))
        self.setText(self.tr("Replace the server's copies of %Ln file(s)?", "", files))
        self.setInformativeText(
            self.tr(
                "The next run replaces the verified copies with the files of this computer. Do "
                "this only if the files here are right."
            )
        )
        self.offer(self.tr("&Replace"), self.tr("&Cancel"))


def choose_held(
    settings: Settings, config: Path | None, choice: ChangeChoice, keys: Sequence[bytes]
) -> int:
    """Leave a choice for these held files to the next run; return the number of those it suits.

    Raises `UploaderError` if a ledger cannot be read or the choice cannot be stored.
    """
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.held_service import choose, list_held

    wanted = frozenset(keys)
    chosen = [one for one in list_held(settings, config) if one.changed.key in wanted]
    return len(chosen) - len(choose(chosen, choice))
