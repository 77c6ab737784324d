"""The page Speed test: the slowest part, and recommendations."""

from functools import partial
from time import monotonic

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Slot
from PySide6.QtWidgets import (
    QProgressBar,
    QPushButton,
    QStackedWidget,
    QWidget,
)

from mydata_like.app import settings_service, speedtest_records
from mydata_like.core.errors import Problem, UploaderError
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.engine_process import Record
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.speed_test import speedtest_process, speedtest_texts
from mydata_like.gui.speed_test.result_view import ResultsTable, ResultView
from mydata_like.gui.speed_test.speedtest_process import (
    AppliedAdvice,
    SpeedTestProcess,
    SpeedTestReport,
    read_comparison,
    read_figure,
)
from mydata_like.gui.speed_test.speedtest_texts import as_figure, interpret
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import hbox, scrolled
from mydata_like.gui.theme.metrics import SECTION
from mydata_like.gui.theme.widgets import (
    EmptyMessage,
    IconLabel,
    Panel,
    PlainLabel,
    icon,
    push_button,
)

translate = QCoreApplication.translate

# Problems that the user may override.
OVERRIDABLE = ("limits.quiet-hours", "limits.acquisition", "limits.bandwidth")
SECOND = 1000  # milliseconds
FULL_SECONDS, QUICK_SECONDS = 60, 20  # maximum durations
EMPTY, RUNNING, RESULT = range(3)  # the pages of the main area


class SpeedPage(Page):
    """Runs speed tests and shows their results."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._controller = context.controller
        self._process = SpeedTestProcess(context.controller, self)
        self._quick = False  # whether the last test was a quick one
        self._started_at = 0.0
        self._problem: Problem | None = None  # why the last test failed
        self._sentence = PlainLabel("", self, wrap=True, heading=SECTION)
        self._test = push_button(self, self.tr("&Test now"), self._test_fully, "speed")
        self._test_quickly = push_button(self, self.tr("&Quick test"), self._run_quick_test)
        self._test_quickly.setToolTip(self.tr("About 15 seconds; less accurate"))
        self._cancel = push_button(self, self.tr("Ca&ncel"), self._cancel_test, "cancel")
        self._progress = QProgressBar(self)
        self._progress.setTextVisible(False)
        self._progress.setAccessibleName(self.tr("The speed test is in progress"))
        self._status = PlainLabel("", self)
        self._notice = _Notice(self)
        self._result = ResultView(self)
        self._partial = ResultsTable(self)
        self._empty = EmptyMessage("speed", self)
        self._empty.setText(
            self.tr(
                "Find out how fast each part of an upload is, and which settings are faster. "
                "A test takes a minute at most, and leaves nothing on the server."
            )
        )
        self._test_first = QPushButton(icon("speed"), self._test.text(), self._empty)
        self._empty.add_button(self._test_first)
        self._middle = QStackedWidget(self)
        for widget in (self._empty, self._partial, scrolled(self._result, self)):
            self._middle.addWidget(widget)
        self._progress_timer = QTimer(self, interval=SECOND)
        title = PageTitle(translate("pages", "Speed test"), self)
        head = hbox((title, 1), hbox(self._test, self._test_quickly, self._cancel))
        state = (self._sentence, self._progress, self._status, self._notice)
        page_layout(self, head, *state, (self._middle, 1))

        self._test_first.clicked.connect(self._test_fully)
        self._notice.anyway.clicked.connect(self._override_problem)
        self._progress_timer.timeout.connect(self._show_progress)
        self._process.measured.connect(self._take_figure)
        self._process.ended.connect(self._take_end)
        self._result.apply_requested.connect(self._apply)
        self._result.undo_requested.connect(self._undo)
        self._result.report_chosen.connect(self._show_sentence)
        self._controller.run_changed.connect(self._show_state)
        self._controller.settings_changed.connect(self._show_settings)
        self._show_state(context.controller.state)

    def show_page(self) -> None:
        self._show_settings()
        self._load()

    @Slot()
    def _test_fully(self) -> None:
        self._start(quick=False)

    @Slot()
    def _run_quick_test(self) -> None:
        self._start(quick=True)

    @Slot()
    def _override_problem(self) -> None:
        self._start(quick=self._quick, anyway=True)

    def _start(self, *, quick: bool, anyway: bool = False) -> None:
        self._quick = quick
        self._partial.figures.show(())
        self._middle.setCurrentIndex(RUNNING)
        self._sentence.setText(self.tr("Measuring each part of an upload…"))
        self._process.test(quick=quick, anyway=anyway)
        self._started_at = monotonic()
        self._problem = None
        self._progress.setRange(0, QUICK_SECONDS if quick else FULL_SECONDS)
        self._cancel.setEnabled(True)
        self._progress_timer.start()
        self._show_progress()
        self._show_state(self._controller.state)

    @Slot()
    def _apply(self) -> None:
        apply = partial(
            speedtest_records.apply_advice, self._controller.settings, self._controller.config
        )
        self._context.tasks.run(apply, self._take_changed, self._show_failure, writes=True)

    def _take_changed(self, _: None) -> None:
        """Show settings that were applied or restored."""
        self._controller.reload_settings()
        self._load()

    @Slot()
    def _cancel_test(self) -> None:
        self._cancel.setEnabled(False)
        self._status.setText(self.tr("Ending the test, and removing what it wrote on the server…"))
        self._progress_timer.stop()
        self._process.cancel()

    @Slot()
    def _show_progress(self) -> None:
        elapsed = monotonic() - self._started_at
        self._progress.setValue(min(int(elapsed), self._progress.maximum()))
        figures = self._partial.figures.rowCount()
        text = self.tr("%1 of at most %2; %Ln figure(s) so far", None, figures)
        text = text.replace("%2", texts.span(self._progress.maximum()))
        self._status.setText(text.replace("%1", texts.span(elapsed)))

    @Slot(object)
    def _take_figure(self, record: Record) -> None:
        compared = record["event"] == "settings_compared"
        figure = as_figure(read_comparison(record)) if compared else read_figure(record)
        self._partial.figures.append([figure])

    @Slot(object)
    def _take_end(self, problem: Problem | None) -> None:
        self._progress_timer.stop()
        self._problem = problem
        self._controller.reload_settings()
        self._load()

    def _load(self) -> None:
        """Read the stored tests in the background."""
        load = partial(
            speedtest_process.load_reports, self._controller.settings, self._controller.config
        )
        self._context.tasks.run(load, self._show_reports, self._show_failure)

    def _show_reports(self, reports: list[SpeedTestReport]) -> None:
        if self._process.at_work:
            return  # they are read again at the end of the test
        self._result.show_reports(reports)
        self._middle.setCurrentIndex(RESULT if reports else EMPTY)
        self._show_sentence()
        self._show_state(self._controller.state)

    @Slot()
    def _show_sentence(self) -> None:
        if not self._process.at_work:
            report = self._result.report
            self._sentence.setText(speedtest_texts.limit_sentence(report) if report else "")

    @Slot()
    def _show_settings(self) -> None:
        loaded = self._controller.loaded
        self._result.show_settings(self._controller.settings, loaded.locked_by if loaded else {})

    @Slot(object)
    def _undo(self, applied: AppliedAdvice) -> None:
        restore = partial(settings_service.save_settings, self._controller.config, applied.replaced)
        self._context.tasks.run(restore, self._take_changed, self._show_failure, writes=True)

    def _show_failure(self, error: UploaderError) -> None:
        self._problem = error.problem
        self._show_state(self._controller.state)

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        """Enable the available actions, or show why there are none."""
        busy, obstacle = self._process.at_work, self._find_obstacle(state)
        can_test = not busy and not obstacle and state.phase is not Phase.LOADING
        for button in (self._test, self._test_quickly, self._test_first, self._notice.anyway):
            button.setEnabled(can_test)
        self._result.rest(resting=can_test)
        for widget in (self._cancel, self._progress, self._status):
            widget.setVisible(busy)
        for button in (self._test, self._test_quickly):
            button.setVisible(not busy and self._middle.currentIndex() == RESULT)
        if obstacle or busy or self._problem is None:
            self._notice.show_text(obstacle)
        else:
            self._notice.show_problem(self._problem)

    def _find_obstacle(self, state: RunState) -> str:
        if state.phase is Phase.UNSET:
            return self.tr("Set up the program before you run a speed test.")
        if state.at_work:
            return self.tr(
                "A run is active and would distort the test. Test again when it has ended."
            )
        return ""


class _Notice(Panel):
    """A notice of why there is no test, with a button to override it where that is allowed."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.anyway = QPushButton(self.tr("Test an&yway"), self)
        self._text = PlainLabel("", self, wrap=True)
        sign = IconLabel(1.0, self)
        sign.show_icon(icon("info"))
        top = Qt.AlignmentFlag.AlignTop
        hbox((sign, top), (self._text, 1), (self.anyway, top), inside=self)

    @property
    def text(self) -> str:
        return self._text.text()

    def show_text(self, text: str) -> None:
        """Show this text; an empty text hides the notice."""
        self._text.setText(text)
        self.anyway.hide()
        self.setVisible(bool(text))

    def show_problem(self, problem: Problem) -> None:
        """Show the problem; a button replaces the hint for the command line."""
        overridable = problem.code in OVERRIDABLE
        hint = "" if overridable else problem.hint
        said = " ".join(interpret(text) for text in (problem.message, hint) if text)
        self.show_text(texts.with_labels(said))
        self.anyway.setVisible(overridable)
