"""What one speed test found: the bars, what is behind the limit, what would be faster."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.speed_test import sentences
from mydata_like.gui.speed_test.chart import BarChart, bars_of
from mydata_like.gui.speed_test.figures import FigureTable
from mydata_like.gui.speed_test.report import WORKLOADS, Proof, Report
from mydata_like.gui.speed_test.terms import workload_title
from mydata_like.settings.schema import Settings

ROWS_SHOWN = 12  # of all figures


class ResultView(QWidget):
    """Shows one of several tests, beside another one if a person wants to compare."""

    apply_wanted = Signal(object)  # a Report
    undo_wanted = Signal(object)  # a Proof
    report_chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reports: Sequence[Report] = ()
        self._settings = Settings()
        self._locks: Mapping[str, str] = {}
        self._workloads = self._make_workloads()
        self._shown = QComboBox(self)
        self._earlier = QComboBox(self)
        self._earlier.setObjectName("earlier")
        self._chart = BarChart(self)
        self._behind = self._make_text()
        self._advice = self._make_text()
        self._apply = QPushButton(icon("check"), self.tr("&Apply and measure again"), self)
        self._gained = self._make_text()
        self._undo = QPushButton(icon("undo"), self.tr("&Undo"), self)
        self._unknown = self._make_text()
        self._copy = QPushButton(icon("copy"), self.tr("&Copy as text"), self)
        self._more = QPushButton(self.tr("All &figures"), self)
        self._more.setCheckable(True)
        self._figures = FigureTable(self)
        self._figures.setMinimumHeight(self.fontMetrics().height() * ROWS_SHOWN)
        self._figures.hide()
        self._lay_out()
        self._connect()

    @property
    def report(self) -> Report | None:
        """The test that is shown."""
        number = self._shown.currentIndex()
        return self._reports[number] if 0 <= number < len(self._reports) else None

    def show_reports(self, reports: Sequence[Report]) -> None:
        """Offer these tests, the latest first, and show the latest if there is anything new."""
        if reports == self._reports:
            return
        self._reports = reports
        with QSignalBlocker(self._shown):
            self._shown.clear()
            self._shown.addItems([sentences.report_name(report) for report in reports])
        self._choose_report()

    def show_settings(self, settings: Settings, locks: Mapping[str, str]) -> None:
        """Judge by these settings what can be applied or undone."""
        self._settings, self._locks = settings, locks
        self._show()

    def rest(self, *, resting: bool) -> None:
        """Offer nothing that needs a process of its own while another one is at work."""
        self._apply.setEnabled(resting)
        self._undo.setEnabled(resting)

    def _make_workloads(self) -> QButtonGroup:
        """Return a button for each workload, with its number among them."""
        group = QButtonGroup(self)
        for number, workload in enumerate(WORKLOADS):
            button = QRadioButton(workload_title(workload), self)
            button.setChecked(number == 0)
            group.addButton(button, number)
        return group

    def _make_text(self) -> PlainLabel:
        label = PlainLabel("", self)
        label.setWordWrap(True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(self._make_choices())
        layout.addWidget(self._chart)
        layout.addWidget(self._behind)
        layout.addSpacing(self.fontMetrics().height() // 2)
        layout.addWidget(self._advice)
        layout.addLayout(_row(self._apply))
        layout.addWidget(self._gained)
        layout.addLayout(_row(self._undo))
        layout.addWidget(self._unknown)
        layout.addLayout(_row(self._copy, self._more))
        layout.addWidget(self._figures)
        layout.addStretch(1)

    def _make_choices(self) -> QHBoxLayout:
        row = QHBoxLayout()
        for button in self._workloads.buttons():
            row.addWidget(button)
        row.addStretch(1)
        pairs = ((self.tr("T&est:"), self._shown), (self.tr("Compare &with:"), self._earlier))
        for text, box in pairs:
            label = QLabel(text, self)
            label.setBuddy(box)
            row.addWidget(label)
            row.addWidget(box)
        return row

    def _connect(self) -> None:
        self._workloads.idClicked.connect(self._show)
        self._shown.currentIndexChanged.connect(self._choose_report)
        self._earlier.currentIndexChanged.connect(self._show)
        self._apply.clicked.connect(self._want_apply)
        self._undo.clicked.connect(self._want_undo)
        self._copy.clicked.connect(self._copy_text)
        self._more.toggled.connect(self._figures.setVisible)

    @Slot()
    def _choose_report(self) -> None:
        """Show a test, and offer all others to be compared with it."""
        with QSignalBlocker(self._earlier):
            self._earlier.clear()
            self._earlier.addItem(self.tr("no other"), None)
            for report in self._reports:
                if report is not self.report:
                    self._earlier.addItem(sentences.report_name(report), report)
        self._earlier.setEnabled(self._earlier.count() > 1)
        self._show()
        self.report_chosen.emit()

    @Slot()
    def _show(self) -> None:
        report = self.report
        if report is None:
            return
        workload = WORKLOADS[self._workloads.checkedId()]
        bars = bars_of(report, workload, self._earlier.currentData())
        self._chart.show_bars(bars, tiny=workload == "tiny")
        _say(self._behind, [sentences.behind_sentence(report, workload)])
        advice = sentences.advice_lines(report, self._locks)
        _say(self._advice, _points(self.tr("What would be faster:"), advice))
        _say(self._unknown, _points(self.tr("Not measured:"), sentences.unknown_lines(report)))
        self._apply.setVisible(report is self._reports[0] and bool(self._find_applicable(report)))
        self._show_proof(report.proof)
        self._figures.figures.show_figures(report.figures)

    def _show_proof(self, proof: Proof | None) -> None:
        gains = sentences.gain_lines(proof.gains) if proof else []
        _say(self._gained, _points(self.tr("The settings were changed:"), gains))
        in_force = proof is not None and all(
            self._is_set(key, value) for key, value in proof.changes.items()
        )
        self._undo.setVisible(in_force)

    def _find_applicable(self, report: Report) -> list[str]:
        """Return the keys of what is advised, allowed and not in force yet."""
        return [
            key
            for key, value in report.changes.items()
            if key not in self._locks and not self._is_set(key, value)
        ]

    def _is_set(self, key: str, value: object) -> bool:
        now = self._settings.value(key)
        return (list(now) if isinstance(now, tuple) else now) == value

    @Slot()
    def _want_apply(self) -> None:
        self.apply_wanted.emit(self.report)

    @Slot()
    def _want_undo(self) -> None:
        if self.report and self.report.proof:
            self.undo_wanted.emit(self.report.proof)

    @Slot()
    def _copy_text(self) -> None:
        if self.report:
            QGuiApplication.clipboard().setText(sentences.report_text(self.report))


def _row(*buttons: QPushButton) -> QHBoxLayout:
    row = QHBoxLayout()
    for button in buttons:
        row.addWidget(button)
    row.addStretch(1)
    return row


def _points(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *(f"• {line}" for line in lines)] if lines else []


def _say(label: PlainLabel, lines: Sequence[str]) -> None:
    """Show lines; a label without any takes no room."""
    text = "\n".join(filter(None, lines))
    label.setText(text)
    label.setVisible(bool(text))
