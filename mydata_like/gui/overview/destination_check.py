"""The last checks of a destination without a server, on the Overview, and a button for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.parsing import moment_of
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui.base import AppContext
from mydata_like.gui.ledger_query import LedgerQuery
from mydata_like.gui.run_state import RunState
from mydata_like.gui.status_text import describe_problem
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.widgets import FoldedText, IconLabel, PlainLabel, icon, set_tip
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.known_copies import LastRestore, LastVerify
    from mydata_like.app.verify_service import VerifyProgress, WrongFile

MOST_NAMED = 20  # files that are not as they were sent


class CheckResult(NamedTuple):
    """The last checks; after one in this window also what is wrong, and why it ended early."""

    last: LastVerify | None
    restore: LastRestore | None = None
    wrong: Sequence[WrongFile] = ()
    ended: Problem | None = None


def find_last(settings: Settings, config: Path | None) -> CheckResult:
    """Return the last checks of the destination; raises `UploaderError`."""
    # Imported here, in the background, since the window appears without it.
    from mydata_like.app.known_copies import find_checks

    return CheckResult(*find_checks(settings, config))


def check(
    settings: Settings,
    config: Path | None,
    report: Callable[[VerifyProgress], None],
    cancel: CancelFlag,
) -> CheckResult:
    """Check all files at the destination until that is cancelled; raises `UploaderError`."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app.settings_destination import open_place
    from mydata_like.app.verify_service import Surroundings, verify_destination
    from mydata_like.engine.run import INTERRUPTED

    around = Surroundings(SystemClock(), cancel, Random(), report)  # noqa: S311 - no secret
    with suppress(Cancelled):
        found = verify_destination(open_place(settings, config), None, config, around)
        ended = None if found.ended == INTERRUPTED else found.ended
        return find_last(settings, config)._replace(wrong=found.wrong, ended=ended)
    return find_last(settings, config)


class DestinationCheck(QWidget):
    """When the files at a destination without a server were last checked, and the result.

    Hidden for a MyTardis server, and before the first run.
    """

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._context = context
        self._task = BackgroundTask()
        self._has_news = False  # of a check in this window, which the records do not have
        self._icon = IconLabel(1.0, self)
        self._text = PlainLabel("", self, wrap=True)
        self._details = FoldedText(self)
        self._button = QPushButton(self)
        set_tip(self._button, self.tr("Read all files there and compare their checksums"))
        self._button.clicked.connect(self._begin_or_stop)
        text = vbox(self._text, self._details, spacing=0)
        frameless(hbox(self._icon, (text, 1), self._button, inside=self, spacing=SPACE))
        context.controller.settings_changed.connect(self._forget)
        query = LedgerQuery(context, parent, find_last, self._ask)
        query.answered.connect(self._show_known)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Show this as soon as a run may have sent something there."""
        self.setVisible(self._ask() is not None and state.last is not None)

    def _ask(self) -> tuple[()] | None:
        """Return what to ask about, which is nothing for a MyTardis server."""
        return () if self._context.controller.settings.destination.takes_tree else None

    @Slot()
    def _forget(self) -> None:
        """Stop what concerns the former destination; the records are read again."""
        self._task.cancel()
        self._has_news = False

    @Slot()
    def _begin_or_stop(self) -> None:
        if self._task.running:
            self._task.stop()
            return
        self._details.setText("")
        self._task = self._context.tasks.run(
            partial(check, *self._context.controller.place),
            self._show_result,
            self._show_error,
            progress=self._show_progress,
            cancel=True,
        )
        self._show(self.tr("Connecting"), "working", "working")

    @Slot(object)
    def _show_progress(self, progress: VerifyProgress) -> None:
        match progress.step:
            case "manifest":
                text = self.tr("Reading the list: %Ln file(s)", None, progress.files)
            case "files":
                files = texts.count(progress.files), texts.count(progress.of)
                sizes = texts.size(progress.size), texts.size(progress.of_size)
                text = texts.filled(self.tr("Checked %1 of %2 files, %3 of %4"), *files, *sizes)
            case _:
                text = self.tr("Looking for other files: %Ln seen", None, progress.files)
        self._show(text, "working", "working")

    @Slot(object)
    def _show_error(self, error: UploaderError) -> None:
        self._show_result(CheckResult(None, ended=error.problem))

    @Slot(object)
    def _show_known(self, result: CheckResult) -> None:
        """Show the last check as it was recorded."""
        if not (self._task.running or self._has_news):
            self._show_result(result)

    @Slot(object)
    def _show_result(self, result: CheckResult) -> None:
        self._has_news = bool(result.wrong or result.ended)
        if result.wrong:  # the ledger doubts these files now
            self._context.controller.ledger_changed.emit()
        named = [self._name(it) for it in result.wrong[:MOST_NAMED]]
        more = len(result.wrong) - len(named)
        if more:
            named.append(self.tr("and %Ln more", None, more))
        self._details.setText("\n".join(named))
        if result.ended is not None:
            problem = describe_problem(result.ended)
            self._show(f"{problem.sentence} {problem.hint}".strip(), "warning", "waiting")
            return
        last, restore = result.last, result.restore
        text = self.tr("The files there were not checked since they arrived.")
        if last is not None:
            text = self._describe(last)
        if last is not None and not last.is_good:
            advice = self.tr("The next run sends or lists again what is still on this computer.")
            text = f"{text} {advice}"
        if restore is not None:
            text = f"{text}\n{self._describe_restore(restore)}"
        if (last is not None and not last.is_good) or (restore is not None and restore.wrong):
            self._show(text, "warning", "waiting")
        elif last is not None:
            self._show(text, "check", "good")
        else:
            self._show(text)

    def _name(self, file: WrongFile) -> str:
        words = {
            "missing": self.tr("Missing: %1"),
            "changed": self.tr("Other bytes: %1"),
            "unreadable": self.tr("Cannot be read: %1"),
        }
        return texts.filled(words[file.fault.value], texts.plain(file.path))

    def _describe(self, last: LastVerify) -> str:
        """Return when the last check was, and its result."""
        numbers = (
            (last.missing, self.tr("%Ln missing", None, last.missing)),
            (last.changed, self.tr("%Ln with other bytes", None, last.changed)),
            (last.unreadable, self.tr("%Ln that cannot be read", None, last.unreadable)),
        )
        wrong = ", ".join(text for number, text in numbers if number)
        files = self.tr("%Ln file(s) checked", None, last.checked)
        if last.checked < last.listed:
            files = self.tr("%1 of %Ln file(s) checked", None, last.listed)
            files = files.replace("%1", texts.count(last.checked))
        text = self.tr("%1 %2: all as they were sent.")
        if not last.read:
            text = self.tr("%1 by ETags %2: all as they were sent.")
        if not last.is_good:
            text = self.tr("%1 %2: %3.")
            wrong = wrong or self.tr("%Ln part(s) of their list damaged", None, last.damaged)
        said = texts.filled(text, files, texts.moment(moment_of(last.at)), wrong)
        return said if last.complete else f"{said} {self.tr('The check was not completed.')}"

    def _describe_restore(self, restore: LastRestore) -> str:
        """Return when files were last fetched to compare them, and the result."""
        text = self.tr("Proved restorable %1: %2 of %3 files came back as they were sent.")
        if restore.wrong:
            text = self.tr("Restore test %1: only %2 of %3 files came back as they were sent.")
        files = texts.count(restore.restored), texts.count(restore.chosen)
        said = texts.filled(text, texts.moment(moment_of(restore.at)), *files)
        return said if restore.complete else f"{said} {self.tr('The test was not completed.')}"

    def _show(self, text: str, name: str = "info", status: Status = "skipped") -> None:
        """Show a text, quiet unless it is a warning."""
        running, warns = self._task.running, status == "waiting"
        self._icon.show_icon(icon(name, status))
        self._text.setText(text)
        role = QPalette.ColorRole.WindowText if warns else QPalette.ColorRole.PlaceholderText
        self._text.setForegroundRole(role)
        self._button.setText(self.tr("Stop") if running else self.tr("Check now"))
