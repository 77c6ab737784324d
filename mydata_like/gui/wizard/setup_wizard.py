"""The set-up wizard: its steps in order; each is saved when it is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QIcon, QPalette
from PySide6.QtWidgets import QDialog, QFrame, QScrollArea, QStackedWidget, QWidget

from mydata_like.app import onboarding, service_setup, settings_edit, settings_service
from mydata_like.app.onboarding import SetupState
from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme.layouts import hbox, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE, TITLE
from mydata_like.gui.theme.widgets import IconLabel, PlainLabel, icon, push_button
from mydata_like.gui.wizard.destination_steps import BucketStep, FolderStep, HostStep, KindStep
from mydata_like.gui.wizard.folders_step import FoldersStep
from mydata_like.gui.wizard.key_step import KeyStep
from mydata_like.gui.wizard.schedule_step import ScheduleStep
from mydata_like.gui.wizard.server_steps import AccountStep, AddressStep, InstrumentStep
from mydata_like.gui.wizard.step_base import CHECK_ICON, CheckLabel, Readiness, WizardStep
from mydata_like.settings.fields import plain_value
from mydata_like.settings.pending_changes import SecretChange


class StepIndicator(QFrame):
    """The names of the pages; icons and weights show which are done."""

    def __init__(self, most: int, parent: QWidget) -> None:
        """`most` is the highest number of pages."""
        super().__init__(parent)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self._rows = [(IconLabel(CHECK_ICON, self), PlainLabel("", self)) for _ in range(most)]
        lines = [hbox(sign, (label, 1)) for sign, label in self._rows]
        self._lines = vbox(*lines, 1, inside=self)
        self._lines.setSpacing(SPACE)

    def show_place(self, names: Sequence[str], place: int) -> None:
        """Show the names of the pages, with that of this index as the current one."""
        for index, (sign, label) in enumerate(self._rows):
            label.setText(f"{index + 1}  {names[index]}" if index < len(names) else "")
            done = icon("check", "good") if index < place else QIcon()
            sign.show_icon(icon("right") if index == place else done)
            font = QFont(label.font())
            font.setBold(index == place)
            label.setFont(font)
        needed = self._lines.minimumSize().width()
        self.setMinimumWidth(max(needed, self.fontMetrics().averageCharWidth() * 22))


class SetupWizard(QDialog):
    """A few short pages; it opens on the first incomplete one.

    The first page asks for the kind of destination, which decides which others follow.
    """

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
        self._starting = False  # the first run starts once the last page is saved
        self._focus: QWidget | None = None  # the focus when the page was saved
        self._reading = self._keeping = BackgroundTask()
        self.setWindowTitle(self.tr("Set up mydata-like"))
        self.kind = KindStep(context)
        self.address = AddressStep(context)
        self.account = AccountStep(context)
        self.place = InstrumentStep(context)
        self.targets = {it.kind: it(context) for it in (HostStep, FolderStep, BucketStep)}
        self.folders = FoldersStep(context)
        self.schedule = ScheduleStep(context)
        self.key = KeyStep(context)
        self._names: dict[WizardStep, str] = {
            self.kind: self.tr("Destination"),
            self.address: self.tr("Server"),
            self.account: self.tr("Account"),
            self.place: self.tr("Instrument"),
            **{target: self.tr("Address") for target in self.targets.values()},
            self.folders: self.tr("Data"),
            self.schedule: self.tr("When"),
            self.key: self.tr("Approval"),
        }
        self.steps = tuple(self._names)
        self._trail = StepIndicator(len(self.steps) - len(self.targets), self)
        self._stack = self._stack_up()
        self._title = PlainLabel("", self, wrap=True, heading=TITLE)
        self._explanation = PlainLabel("", self, wrap=True)
        self.verdict = CheckLabel(self, keeps_place=False)
        self.later = push_button(self, self.tr("&Later"), self.reject)
        self.again = push_button(self, self.tr("Check a&gain"), self._check_again, "refresh")
        self.back = push_button(self, self.tr("&Back"), self._go_back)
        self.start_now = push_button(self, self.tr("Start &now"), self._start_now, "start")
        self.next = push_button(self, self.tr("&Next"), self._go_on)
        for button in (self.later, self.again, self.back, self.start_now):
            button.setAutoDefault(False)
        self.next.setDefault(True)
        buttons = hbox(self.later, self.again, 1, self.back, self.start_now, self.next)
        page = (self._title, self._explanation, (self._stack, 1), self.verdict, buttons)
        hbox(self._trail, (vbox(*page), 1), inside=self).setSpacing(LARGE_SPACE)
        metrics = self.fontMetrics()
        wanted = QSize(metrics.averageCharWidth() * 130, metrics.height() * 44)
        room = parent.window().size() if parent else self.screen().availableSize()
        self.resize(wanted.boundedTo(room))

        self.address.demo_wanted.connect(self.demo_wanted)
        self.kind.changed.connect(self._show_trail)
        for step in self.steps:
            step.changed.connect(self._follow)
            step.taken_over.connect(self._start_with)

        self._stack.setEnabled(False)
        self.next.setEnabled(False)
        self.back.setEnabled(False)
        self.verdict.show_checking(self.tr("Reading the settings…"))
        begin = partial(onboarding.find_setup_state, context.controller.config)
        self._reading = context.tasks.run(begin, self._start_with, self._show_failure)

    @property
    def step(self) -> WizardStep:
        """The current page."""
        return self.steps[self._stack.currentIndex()]

    @property
    def path(self) -> tuple[WizardStep, ...]:
        """The pages for the chosen kind of destination."""
        target = self.targets.get(self.kind.chosen)
        if target is not None:
            return self.kind, target, self.folders, self.schedule
        server = (self.address, self.account, self.place)
        return (self.kind, *server, self.folders, self.schedule, self.key)

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

    @Slot(object)
    def _start_with(self, beginning: SetupState) -> None:
        """Show the settings, and the first incomplete page."""
        self.verdict.clear()
        self._take(beginning)
        path = self.path
        undone = (index for index, step in enumerate(path) if not step.is_done(beginning))
        # With nothing undone, the user wants to see why the login fails.
        found = next(undone, path.index(self.key) if self.key in path else 1)
        self._show_step(found if self._first is None else self._first)
        self._first = None

    def _take(self, beginning: SetupState) -> None:
        for step in self.steps:
            step.take(beginning)

    def _show_step(self, index: int) -> None:
        self.step.end()
        self._eager = False
        self._stack.setEnabled(True)
        self._stack.setCurrentIndex(self.steps.index(self.path[index]))
        self._title.setText(self.step.title)
        self._explanation.setText(self.step.explanation)
        self._show_trail()
        self.back.setVisible(index > 0)
        self.back.setEnabled(True)
        self.step.begin()
        self._follow()

    @Slot()
    def _show_trail(self) -> None:
        path = self.path
        if self.step in path:
            self._trail.show_place([self._names[step] for step in path], path.index(self.step))

    @Slot()
    def _follow(self) -> None:
        """Enable Next as soon as the page is complete."""
        readiness, last = self.step.readiness, self.step is self.path[-1]
        approving = self.step is self.key
        self.next.setEnabled(readiness is not Readiness.LACKING and not self._keeping.running)
        self.again.setVisible(self.step.lost and not last)
        self.start_now.setVisible(last and (self.key.ready or not approving))
        self.later.setVisible(not last)
        waiting = approving and not self.key.approved
        finish = self.tr("Cl&ose and wait") if waiting else self.tr("&Finish")
        self.next.setText(finish if last else self.tr("&Next"))
        if approving and self.key.proved:
            self.next.setFocus()
        if readiness is Readiness.CHECKING or not self._eager:
            return
        self._eager = False
        if readiness is Readiness.READY:
            self._go_on()

    @Slot()
    def _go_on(self) -> None:
        """Save the page, then show the next one; wait for a running check first."""
        if self.step is self.key:
            self.accept()
            return
        self.step.confirm()
        self._eager = self.step.readiness is Readiness.CHECKING
        if self._eager:
            return
        self._focus = self.focusWidget()
        self.next.setEnabled(False)
        self._stack.setEnabled(False)
        self.verdict.clear()
        config, settings = self._context.controller.config, self.step.settings
        entered = self.step.changes().items()
        changes = {
            key: value for key, value in entered if value != plain_value(settings.value(key))
        }
        keep = partial(save_setup, config, changes, self.step.new_key())
        self._keeping = self._context.tasks.run(keep, self._take_kept, self._refuse, writes=True)

    @Slot()
    def _start_now(self) -> None:
        self._starting = True
        self._go_on()

    def accept(self) -> None:
        super().accept()
        if self._starting:
            self.start_wanted.emit()

    def _take_kept(self, beginning: SetupState) -> None:
        self._take(beginning)
        following = self.path.index(self.step) + 1
        if following < len(self.path):
            self._show_step(following)
        else:
            self.accept()

    def _refuse(self, error: UploaderError) -> None:
        """Stay on the page: it could not be saved."""
        self._starting = False
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
        self._show_step(self.path.index(self.step) - 1)

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
