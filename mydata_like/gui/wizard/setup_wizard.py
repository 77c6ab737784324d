"""The set-up wizard: its steps in order; each is saved when it is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from mydata_like.app import onboarding, service_setup, settings_edit, settings_service
from mydata_like.app.onboarding import SetupState
from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE, TITLE
from mydata_like.gui.theme.widgets import PlainLabel, icon
from mydata_like.gui.wizard.folders_step import FoldersStep
from mydata_like.gui.wizard.key_step import KeyStep
from mydata_like.gui.wizard.schedule_step import ScheduleStep
from mydata_like.gui.wizard.server_steps import AccountStep, AddressStep, InstrumentStep
from mydata_like.gui.wizard.step_base import CheckIcon, CheckLabel, Readiness, WizardStep
from mydata_like.settings.fields import plain_value
from mydata_like.settings.pending_changes import SecretChange


class StepIndicator(QFrame):
    """The names of the pages; icons and weights show which are done."""

    def __init__(self, names: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        column = QVBoxLayout(self)
        column.setSpacing(SPACE)
        self._rows: list[tuple[CheckIcon, PlainLabel]] = []
        for number, name in enumerate(names, start=1):
            sign, label = CheckIcon(self), PlainLabel(f"{number}  {name}", self)
            line = QHBoxLayout()
            line.addWidget(sign)
            line.addWidget(label, 1)
            column.addLayout(line)
            self._rows.append((sign, label))
        column.addStretch(1)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * 22)

    def show_place(self, place: int) -> None:
        """Mark the page of this index as the current one."""
        for index, (sign, label) in enumerate(self._rows):
            if index < place:
                sign.show_icon("check", "good")
            else:
                sign.show_icon("right" if index == place else "")
            font = QFont(label.font())
            font.setBold(index == place)
            label.setFont(font)


class SetupWizard(QDialog):
    """Six short pages; it opens on the first incomplete one."""

    demo_wanted = Signal()
    start_wanted = Signal()  # the set-up is complete, and the first run should start

    def __init__(
        self, context: AppContext, parent: QWidget | None = None, *, first: int | None = None
    ) -> None:
        """`first` is the page to open on; by default the first incomplete one."""
        super().__init__(parent)
        self._first = first
        self._context = context
        self._eager = False  # Next was pressed during a check
        self._focus: QWidget | None = None  # the focus when the page was saved
        self._reading = self._keeping = BackgroundTask()
        self.setWindowTitle(self.tr("Set up mydata-like"))
        self.address = AddressStep(context)
        self.account = AccountStep(context)
        self.place = InstrumentStep(context)
        self.folders = FoldersStep(context)
        self.schedule = ScheduleStep(context)
        self.key = KeyStep(context)
        self.steps: tuple[WizardStep, ...] = (
            self.address,
            self.account,
            self.place,
            self.folders,
            self.schedule,
            self.key,
        )
        self._make_frame()

        buttons = QHBoxLayout()
        buttons.addWidget(self.later)
        buttons.addWidget(self.again)
        buttons.addStretch(1)
        buttons.addWidget(self.back)
        buttons.addWidget(self.start_now)
        buttons.addWidget(self.next)
        right = QVBoxLayout()
        right.addWidget(self._title)
        right.addWidget(self._explanation)
        right.addWidget(self._stack, 1)
        right.addWidget(self.verdict)
        right.addLayout(buttons)
        layout = QHBoxLayout(self)
        layout.addWidget(self._trail)
        layout.addLayout(right, 1)
        layout.setSpacing(LARGE_SPACE)
        self._choose_size()

        self.next.clicked.connect(self._go_on)
        self.again.clicked.connect(self._check_again)
        self.back.clicked.connect(self._go_back)
        self.later.clicked.connect(self.reject)
        self.start_now.clicked.connect(self._start_now)
        self.address.demo_wanted.connect(self.demo_wanted)
        for step in self.steps:
            step.changed.connect(self._follow)
            step.taken_over.connect(self._start_with)

        self._read()

    @property
    def step(self) -> WizardStep:
        """The current page."""
        return self.steps[self._stack.currentIndex()]

    def done(self, result: int) -> None:
        self._reading.cancel()
        self._keeping.cancel()
        self.step.end()
        self._context.controller.reload_settings()
        super().done(result)

    def _stack_up(self) -> QStackedWidget:
        """Return the pages; in the tab order they come before all buttons."""
        stack = QStackedWidget(self)
        for step in self.steps:
            area = QScrollArea(stack)
            area.setWidgetResizable(True)
            area.setFrameShape(QFrame.Shape.NoFrame)
            area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            area.setWidget(step)
            area.verticalScrollBar().rangeChanged.connect(step.keep_gap)
            stack.addWidget(area)
        return stack

    def _make_frame(self) -> None:
        """Build the frame around the pages."""
        self._trail = StepIndicator(self._name_steps(), self)
        self._stack = self._stack_up()
        self._title = PlainLabel("", self)
        self._title.scale(TITLE, bold=True)
        self._title.setWordWrap(True)
        self._explanation = PlainLabel("", self)
        self._explanation.setWordWrap(True)
        self.verdict = CheckLabel(self, keeps_place=False)
        self.later = QPushButton(self.tr("&Later"), self)
        self.again = QPushButton(icon("refresh"), self.tr("Check a&gain"), self)
        self.back = QPushButton(self.tr("&Back"), self)
        self.start_now = QPushButton(icon("start"), self.tr("Start &now"), self)
        self.next = QPushButton(self.tr("&Next"), self)
        for button in (self.later, self.again, self.back, self.start_now):
            button.setAutoDefault(False)
        self.next.setDefault(True)

    def _name_steps(self) -> list[str]:
        return [
            self.tr("Server"),
            self.tr("Account"),
            self.tr("Instrument"),
            self.tr("Data"),
            self.tr("When"),
            self.tr("Approval"),
        ]

    def _choose_size(self) -> None:
        """Resize to the preferred size of the pages, within the screen."""
        metrics = self.fontMetrics()
        liked = QSize(metrics.averageCharWidth() * 130, metrics.height() * 44)
        parent = self.parentWidget()
        room = parent.window().size() if parent else self.screen().availableSize()
        self.resize(liked.boundedTo(room))

    def _read(self) -> None:
        """Read the current settings."""
        self._stack.setEnabled(False)
        self.next.setEnabled(False)
        self.back.setEnabled(False)
        self.verdict.show_checking(self.tr("Reading the settings…"))
        begin = partial(onboarding.find_setup_state, self._context.controller.config)
        self._reading = self._context.tasks.run(begin, self._start_with, self._show_failure)

    @Slot(object)
    def _start_with(self, beginning: SetupState) -> None:
        """Show the settings, and the first incomplete page."""
        self.verdict.clear()
        self._take(beginning)
        undone = (index for index, step in enumerate(self.steps) if not step.is_done(beginning))
        found = next(undone, len(self.steps) - 1)
        self._show_step(found if self._first is None else self._first)
        self._first = None

    def _take(self, beginning: SetupState) -> None:
        for step in self.steps:
            step.take(beginning)

    def _show_step(self, index: int) -> None:
        self.step.end()
        self._eager = False
        self._stack.setEnabled(True)
        self._stack.setCurrentIndex(index)
        self._title.setText(self.step.title)
        self._explanation.setText(self.step.explanation)
        self._trail.show_place(index)
        self.back.setVisible(index > 0)
        self.back.setEnabled(True)
        self.step.begin()
        self._follow()

    @Slot()
    def _follow(self) -> None:
        """Enable Next as soon as the page is complete."""
        readiness = self.step.readiness
        self.next.setEnabled(readiness is not Readiness.LACKING and not self._keeping.running)
        self.again.setVisible(self.step.lost and self.step is not self.key)
        self._name_next()
        if readiness is Readiness.CHECKING or not self._eager:
            return
        self._eager = False
        if readiness is Readiness.READY:
            self._go_on()

    def _name_next(self) -> None:
        self.start_now.setVisible(self.step is self.key and self.key.ready)
        if self.step is not self.key:
            self.next.setText(self.tr("&Next"))
            self.later.setVisible(True)
            return
        text = self.tr("&Finish") if self.key.approved else self.tr("Cl&ose and wait")
        self.next.setText(text)
        self.later.setVisible(False)
        if self.key.proved:
            self.next.setFocus()

    @Slot()
    def _go_on(self) -> None:
        """Save the page, then show the next one; wait for a running check first."""
        if self.step is self.key:
            self.accept()
            return
        self._eager = self.step.readiness is Readiness.CHECKING
        if self._eager:
            return
        self._focus = self.focusWidget()
        self.next.setEnabled(False)
        self._stack.setEnabled(False)
        self.verdict.clear()
        config = self._context.controller.config
        keep = partial(save_setup, config, self._find_changes(), self.step.new_key())
        self._keeping = self._context.tasks.run(keep, self._take_kept, self._refuse, writes=True)

    @Slot()
    def _start_now(self) -> None:
        self.accept()
        self.start_wanted.emit()

    def _find_changes(self) -> dict[str, object]:
        """Return the changes to the current settings."""
        settings = self.step.settings
        return {
            key: value
            for key, value in self.step.changes().items()
            if value != plain_value(settings.value(key))
        }

    def _take_kept(self, beginning: SetupState) -> None:
        self._take(beginning)
        self._show_step(self._stack.currentIndex() + 1)

    def _refuse(self, error: UploaderError) -> None:
        """Stay on the page: it could not be saved."""
        self._stack.setEnabled(True)
        if self._focus is not None:
            self._focus.setFocus()
        if not self.step.show_refusal(error):
            self.verdict.show_problem(error.problem)
        self._follow()

    @Slot()
    def _check_again(self) -> None:
        self.step.begin()

    @Slot()
    def _go_back(self) -> None:
        self.verdict.clear()
        self._keeping.cancel()
        self._show_step(self._stack.currentIndex() - 1)

    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)


def save_setup(
    config: Path | None, changes: Mapping[str, object], key: SecretChange | None
) -> SetupState:
    """Save the entries of a step, and store the API key; raises `SettingsError`."""
    if changes:
        settings_service.save_settings(config, changes)
    state = onboarding.find_setup_state(config)
    if settings_edit.AUTOSTART in changes:
        service_setup.apply_autostart(state.loaded.settings)
    if key is None:
        return state
    settings_edit.apply_secret_change(state.loaded.settings, key, config)
    return onboarding.find_setup_state(config)
