"""The dialog that gets a file or folder back from where it was copied to."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QHeaderView,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QTableView,
    QWidget,
)

from mydata_like.core.destination_files import OCCUPIED
from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import STOPPED_BY_USER
from mydata_like.gui.status_text import describe_problem
from mydata_like.gui.table_model import Column, RowsModel, set_up_table
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SECTION, SPACE
from mydata_like.gui.theme.widgets import PathLineEdit, PlainLabel, Question, choose_folder, icon
from mydata_like.gui.where.free_dialog import PROGRESS_INTERVAL
from mydata_like.gui.where.status_tasks import GetOffer, GetProgress, get_back

if TYPE_CHECKING:
    from mydata_like.app.get_service import FileProblem, GetReport

STEPS = 1000  # of the progress bar


class GetProblemsModel(RowsModel["FileProblem"]):
    """The files that did not come back, and why."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = (
            Column("name", self.tr("File"), _describe_name, width=44, tip=_describe_name),
            Column("reason", self.tr("Reason"), _describe_reason, tip=_describe_reason),
        )


def _describe_name(failed: "FileProblem") -> str:
    return texts.plain(failed.path)


def _describe_reason(failed: "FileProblem") -> str:
    return texts.engine_text(failed.problem.message)


class ReplaceHereQuestion(Question):
    """Asks whether to replace local files that differ from their copies."""

    def __init__(self, files: int, parent: QWidget) -> None:
        super().__init__(files, parent)
        self.setWindowTitle(self.tr("Replace local files"))
        self.setText(self.tr("Replace %Ln file(s) on this computer?", "", files))
        self.setInformativeText(
            self.tr(
                "Each gets the content that was copied. What is in it now is lost, unless it was "
                "copied as well."
            )
        )
        self.offer(self.tr("&Replace"), self.tr("&Cancel"))


class GetDialog(Dialog):
    """Asks where a file or folder should go, gets it back, and says what has arrived.

    The rest of the window can be used in the meantime.
    """

    received = Signal()  # files may have arrived

    def __init__(self, context: AppContext, offer: GetOffer, parent: QWidget) -> None:
        super().__init__(self.tr("Get it back"), parent, 110, 20)
        self._context = context
        self._offer = offer
        self._task = BackgroundTask()
        self._progress = GetProgress()
        self._number = next(context.controller.gets)
        self._headline = PlainLabel(texts.plain(offer.path.name), self, wrap=True, heading=SECTION)
        folder = texts.plain(os.fsencode(offer.path.parent))
        asked = self.tr("Where should it go?")
        self._explanation = PlainLabel(f"{folder}\n\n{asked}", self, wrap=True)
        self._choice = QWidget(self)
        self._home = QRadioButton(self.tr("To its own &place, as far as it is missing there"), self)
        self._other = QRadioButton(self.tr("To &another folder:"), self)
        self._folder = PathLineEdit(self)
        self._browse = QPushButton(icon("folder"), self.tr("&Choose…"), self)
        self._bar = QProgressBar(self, maximum=STEPS, textVisible=False)
        self._problems = GetProblemsModel(self)
        self._table = set_up_table(
            QTableView(self), self._problems, self.tr("What did not come back")
        )
        self._replace = QPushButton(self.tr("&Replace…"), self)
        self._start = QPushButton(icon("import"), self.tr("&Get it back"), self)
        self._close = QPushButton(self.tr("Cancel"), self)
        self._timer = QTimer(self, interval=PROGRESS_INTERVAL)

        self.setModal(False)
        self._bar.setAccessibleName(self.tr("Progress"))
        self._folder.setAccessibleName(self.tr("Target folder"))
        self._table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        (self._home if offer.missing else self._other).setChecked(True)
        other = hbox(self._other, (self._folder, 1), self._browse, spacing=SPACE)
        frameless(vbox(self._home, other, inside=self._choice, spacing=SPACE))
        buttons = hbox(1, self._replace, self._start, self._close)
        head = (self._headline, self._explanation, self._choice, self._bar)
        vbox(*head, (self._table, 1), 0, buttons, inside=self).setSpacing(SPACE)
        for hidden in (self._bar, self._table, self._replace):
            hidden.hide()
        self._start.setObjectName("start")
        self._start.setDefault(True)

        self._browse.clicked.connect(self._choose)
        self._other.toggled.connect(self._update)
        self._folder.textChanged.connect(self._update)
        self._start.clicked.connect(self._begin)
        self._replace.clicked.connect(self._ask_to_replace)
        self._close.clicked.connect(self.reject)
        self._timer.timeout.connect(self._show_progress)
        self._update()

    def reject(self) -> None:
        """Stop what is in progress, else close the dialog."""
        if self._task.running:
            self._task.stop()
        else:
            super().reject()

    @property
    def _target(self) -> Path | None:
        return Path(self._folder.text()) if self._other.isChecked() else None

    @Slot()
    def _update(self) -> None:
        target = self._target
        for field in (self._folder, self._browse):
            field.setEnabled(target is not None)
        self._start.setEnabled(target is None or target.is_absolute())

    @Slot()
    def _choose(self) -> None:
        choose_folder(self, self.tr("Where should it go?"), self._folder.setText)

    @Slot()
    def _begin(self) -> None:
        self._get(replace=False)

    @Slot(object)
    def _replace_all(self, _: int) -> None:
        self._get(replace=True)

    def _get(self, *, replace: bool) -> None:
        for hidden in (self._choice, self._start, self._table, self._replace):
            hidden.hide()
        self._progress = GetProgress()
        self._bar.setValue(0)
        self._bar.show()
        self._close.setText(self.tr("Cancel"))
        self._explanation.setText(self.tr("Connecting"))
        self._timer.start()
        call = partial(
            get_back,
            *self._context.controller.place,
            self._offer.path,
            self._progress,
            target=self._target,
            replace=replace,
        )
        self._task = self._context.tasks.run(
            call, self._show_result, self._show_error, cancel=True, writes=True
        )

    @Slot()
    def _show_progress(self) -> None:
        run = self._progress.run
        run.sample()
        self._context.controller.show_got(self._number, run.view().transfers)
        progress = self._progress.latest
        if progress is None:
            return
        if progress.step == "manifest":
            text = self.tr("Reading the list: %Ln file(s)", "", progress.files)
        else:
            files = texts.count(progress.files), texts.count(progress.of)
            sizes = texts.size(progress.size), texts.size(progress.of_size)
            text = texts.filled(self.tr("%1 of %2 files, %3 of %4"), *files, *sizes)
            self._bar.setValue(round(STEPS * progress.size / max(1, progress.of_size)))
        self._explanation.setText(text)

    @Slot(object)
    def _show_error(self, error: UploaderError) -> None:
        self._end(self.tr("Nothing came back"), [texts.error_text(error)], ())

    @Slot(object)
    def _show_result(self, report: "GetReport | None") -> None:
        nothing = self.tr("Nothing came back")
        stopped = self.tr("It was stopped. The next time, it continues.")
        if report is None:
            self._end(nothing, [stopped], ())
            return
        text = self.tr("%Ln file(s), %1, are back in %2", "", report.received)
        place = self._target or self._offer.path.parent
        size, where = texts.size(report.received_size), texts.plain(os.fsencode(place))
        headline = texts.filled(text, size, where)
        said = [self.tr("Each was compared with what was proven.")] if report.received else []
        if report.here:
            said.append(self.tr("%Ln file(s) were here already.", "", report.here))
        if not report.received:
            all_here = 0 < report.here == report.found
            headline = self.tr("Everything was here already") if all_here else nothing
        if report.failed:
            said.append(self.tr("%Ln file(s) did not come back:", "", report.failed))
        if report.ended and report.ended.code == STOPPED_BY_USER:
            said.append(stopped)
        elif report.ended:
            problem = describe_problem(report.ended)
            said.append(f"{problem.sentence} {problem.hint}".strip())
        said += [texts.engine_text(it.message) for it in report.damaged]
        self._end(headline, said, report.problems)

    def _end(self, headline: str, said: Sequence[str], problems: "Sequence[FileProblem]") -> None:
        self._timer.stop()
        self._context.controller.show_got(self._number, ())
        self._bar.hide()
        self._close.setText(self.tr("Close"))
        self._headline.setText(headline)
        self._explanation.setText("\n".join(said))
        self._problems.show(problems)
        self._table.setVisible(bool(problems))
        self._replace.setVisible(self._count_occupied() > 0)
        self.received.emit()

    def _count_occupied(self) -> int:
        return sum(it.problem.code == OCCUPIED for it in self._problems.rows)

    @Slot()
    def _ask_to_replace(self) -> None:
        question = ReplaceHereQuestion(self._count_occupied(), self)
        question.confirmed.connect(self._replace_all)
        question.open()
