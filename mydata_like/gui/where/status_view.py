"""Shows the status of one file or folder, in sentences and as its steps."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QGridLayout,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from mydata_like.core.checksums import Algorithm
from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.file_status import (
    FileSafety,
    FileStatus,
    FolderStatus,
    LocalState,
    PathStatus,
    UnknownReason,
)
from mydata_like.core.model import EntryState
from mydata_like.core.parsing import moment_of
from mydata_like.gui.tables.columns import moment
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status, status_colour
from mydata_like.gui.theme.layouts import Gap, hbox, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SECTION, SPACE
from mydata_like.gui.theme.widgets import IconLabel, Panel, PlainLabel, drawing, icon
from mydata_like.gui.where.status_tasks import CleanupResults

translate = QCoreApplication.translate

_COMPLETED_STEPS = {
    EntryState.FAILED: 1,
    EntryState.CHANGED: 1,
    EntryState.STAGED: 2,
    EntryState.REGISTERED: 3,
    EntryState.REPAIRED: 3,
    EntryState.VERIFIED: 4,
}


class TimelineStep(NamedTuple):
    """One step of a file: its name, its icon (empty for a future step), and its time or reason."""

    word: str
    icon: str
    status: Status
    note: str


class StatusText(NamedTuple):
    """Whether a file may be deleted, in a headline and its reasons."""

    status: Status
    icon: str
    headline: str
    reason: str = ""


def list_steps(status: FileStatus, *, takes_tree: bool = False) -> list[TimelineStep]:
    """Return all steps of a file, including future ones.

    It is not registered at a destination that `takes_tree`.
    """
    entry, outcome, times = status.entry, status.outcome, status.evidence.times
    modified = moment_of(status.modified_ns // 10**9)
    found = moment(outcome.at or None) if outcome else ""
    if entry is not None and entry.archive:
        found = translate("where", "stored with other files in the archive %1")
        found = found.replace("%1", texts.plain(entry.archive))
    names = [
        (translate("where", "Changed here"), texts.moment(modified) if status.modified_ns else ""),
        (translate("where", "Found by a run"), found),
        (translate("where", "Sent"), moment(times.staged)),
        (translate("where", "Registered on the server"), moment(times.registered)),
        (translate("where", "Verified by the server"), moment(times.verified)),
    ]
    completed = _count_completed(status)
    if takes_tree:
        del names[3]
        completed -= completed > 2
    steps = [TimelineStep(word, "check", "good", note) for word, note in names[: completed + 1]]
    future = [TimelineStep(word, "", "skipped", "") for word, _ in names[completed + 1 :]]
    if future:
        future[0] = _explain_next(status, future[0])
    return steps + future


def _count_completed(status: FileStatus) -> int:
    """Return how many steps after the first the current version of the file has completed."""
    entry, safety = status.entry, status.safety
    if safety is FileSafety.CHANGED or safety is FileSafety.UNKNOWN:
        return 0  # the ledger describes another version
    if entry is None or safety in (FileSafety.UNCERTAIN, FileSafety.DOUBTFUL, FileSafety.UNSENT):
        return 1 if entry or status.outcome else 0
    if entry.state is EntryState.VERIFIED and not status.evidence.verified:
        return 1
    return _COMPLETED_STEPS[entry.state]


def _explain_next(status: FileStatus, step: TimelineStep) -> TimelineStep:
    """Add the reason why the next step has not been completed."""
    if outcome := status.outcome:
        note = texts.problem_text(outcome.problem)
        if outcome.kind in ("failed", "folder-failed"):
            return TimelineStep(step.word, "error", "problem", note)
        if outcome.kind in ("found", "waiting"):
            return TimelineStep(step.word, "waiting", "waiting", note)
        return TimelineStep(step.word, "skipped", "skipped", note)
    notes = {
        FileSafety.CHANGED: translate("where", "not in this version; the next run sends it"),
        FileSafety.UNCERTAIN: translate(
            "where", "it may have changed since; the next run checks it"
        ),
        FileSafety.PENDING: translate("where", "not yet; the next run continues here"),
    }
    note = notes.get(status.safety, translate("where", "not yet"))
    return TimelineStep(step.word, "waiting", "waiting", note)


def judge_deletion(status: PathStatus) -> StatusText:
    """Return whether a file or folder may be deleted, from local data alone; never a yes."""
    if isinstance(status, FolderStatus):
        return _describe_unknown(status.unknown) if status.unknown else _describe_folder(status)
    if status.safety is FileSafety.UNKNOWN:
        return _describe_unknown(status.unknown or UnknownReason.UNSEEN)
    return _describe_file(status)


def _describe_unknown(why: UnknownReason) -> StatusText:
    reasons = {
        UnknownReason.OUTSIDE: translate(
            "where", "It is not in the data folder, and was never added in this window."
        ),
        UnknownReason.UNSEEN: translate(
            "where", "No run has found it. It may be new, or excluded by the layout."
        ),
        UnknownReason.ABSENT: translate(
            "where", "It is neither on this computer nor in the list of sent files."
        ),
    }
    headline = translate("where", "No: as far as is known, it exists only on this computer")
    if why is UnknownReason.ABSENT:
        headline = translate("where", "There is no such file")
    return StatusText("problem", "error", headline, reasons[why])


def _describe_file(status: FileStatus) -> StatusText:
    safety = status.safety
    outcome = texts.problem_text(status.outcome.problem) if status.outcome else ""
    if safety is FileSafety.GONE_VERIFIED:
        headline = translate("where", "It is no longer on this computer")
        reason = translate("where", "The server had a verified copy when it was last checked.")
        return StatusText("good", "info", headline, reason)
    if safety is FileSafety.GONE:
        headline = translate("where", "It is no longer on this computer")
        reason = translate("where", "As far as is known, the server has no verified copy.")
        return StatusText("problem", "warning", headline, outcome or reason)
    if safety is FileSafety.VERIFIED:
        headline = translate("where", "It was safe when the server was last checked")
        reason = translate("where", "Use Check now to find out whether you may delete it.")
        if status.compared is not None:
            compared = translate("where", "Last compared with the server: %1.")
            reason = f"{compared.replace('%1', texts.moment(status.compared))} {reason}"
        return StatusText("waiting", "info", headline, reason)
    headlines = {
        FileSafety.CHANGED: translate("where", "No: it has changed since it was sent"),
        FileSafety.UNCERTAIN: translate("where", "No: it may have changed since it was verified"),
        FileSafety.PENDING: translate("where", "No: the server has not verified it yet"),
        FileSafety.DOUBTFUL: translate("where", "No: the server contradicts that it is safe"),
        FileSafety.UNSENT: translate("where", "No: it is not on the server"),
        FileSafety.UNREADABLE: translate("where", "It cannot be read now"),
    }
    if status.entry and status.entry.state is EntryState.CHANGED:
        headlines[safety] = translate("where", "No: the server has an earlier version")
    reasons = {
        FileSafety.CHANGED: translate("where", "The next run sends the current version."),
        FileSafety.UNCERTAIN: translate(
            "where", "The next run checks it, and sends it if it has changed."
        ),
        FileSafety.UNREADABLE: translate(
            "where", "Check that its drive is connected, and that you may read it."
        ),
    }
    return StatusText("problem", "error", headlines[safety], outcome or reasons.get(safety, ""))


def _describe_folder(status: FolderStatus) -> StatusText:
    left = status.known.files - status.verified.files
    if left:
        headline = translate("where", "No: %Ln file(s) in it are not safe yet", None, left)
        reason = translate("where", "Use Check now to find out which of the others you may delete.")
        return StatusText("problem", "error", headline, reason)
    headline = translate(
        "where", "All files that runs found in it were safe when the server was last checked"
    )
    reason = translate("where", "Use Check now to find out whether you may delete it.")
    return StatusText("waiting", "info", headline, reason)


def describe_check(results: CleanupResults) -> StatusText:
    """Return whether the files of a new check may be deleted; only this can be a yes."""
    checked_at = texts.moment(datetime.now(tz=UTC))
    if not results.freed and not results.kept:
        return StatusText("problem", "warning", translate("where", "There are no files in it"))
    if results.kept:
        return _describe_kept(results)
    if len(results.freed) == 1:
        headline = translate("where", "Yes, you may delete it")
        reason = translate(
            "where",
            "The server has a verified copy with the same size and checksum, and the local file "
            "was read again (%1). Free space lets the server verify its copy again before it "
            "deletes.",
        )
    else:
        count = len(results.freed)
        headline = translate("where", "Yes, you may delete all %Ln file(s)", None, count)
        reason = translate(
            "where",
            "The server has a verified copy of each, with the same size and checksum, and the "
            "local files were read again (%1). Free space lets the server verify its copies "
            "again before it deletes.",
        )
    return StatusText("good", "check", headline, reason.replace("%1", checked_at))


def _describe_kept(results: CleanupResults) -> StatusText:
    first = results.kept[0]
    why = texts.problem_text(first.problem)
    if not results.freed and len(results.kept) == 1:
        return StatusText("problem", "error", translate("where", "No: keep it"), why)
    headline = translate("where", "No: %Ln file(s) must be kept", None, len(results.kept))
    text = translate(
        "where",
        "%Ln file(s) can be deleted. The first one to keep is %1: %2",
        None,
        len(results.freed),
    )
    reason = texts.filled(text, texts.plain(first.key), why)
    return StatusText("problem", "error", headline, reason)


def keep_reason(result: DeletedFile | KeptFile) -> str:
    """Return why a file is kept; empty if it is not."""
    return texts.engine_text(result.problem.message) if isinstance(result, KeptFile) else ""


MARK_SCALE = 1.3  # the mark's height in lines of text


class Timeline(QWidget):
    """A list of steps, the first on top."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[QWidget] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(0)
        self._grid.setHorizontalSpacing(self.fontMetrics().averageCharWidth() * 2)
        self._grid.setColumnStretch(2, 1)

    def show_steps(self, steps: Sequence[TimelineStep]) -> None:
        """Replace the displayed steps."""
        for widget in self._rows:
            self._grid.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._rows = []
        for number, step in enumerate(steps):
            mark = _Mark(step, self)
            mark.above = steps[number - 1].status if number else None
            mark.below = step.status if number + 1 < len(steps) else None
            future = step.status == "skipped"
            word = PlainLabel(step.word, self, heading=0 if future else 1, quiet=future)
            note = PlainLabel(step.note, self, wrap=True, quiet=True, selectable=True)
            for column, widget in enumerate((mark, word, note)):
                self._grid.addWidget(widget, number, column)
                widget.show()
                self._rows.append(widget)


class _Mark(QWidget):
    """The mark of one step on the line that connects all steps."""

    def __init__(self, step: TimelineStep, parent: QWidget) -> None:
        super().__init__(parent)
        self.above: Status | None = None
        self.below: Status | None = None
        self._step = step
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(step.word)

    def sizeHint(self) -> QSize:
        height = self.fontMetrics().height()
        return QSize(round(height * MARK_SCALE), round(height * 2.2))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = min(self.width(), round(self.fontMetrics().height() * MARK_SCALE))
        middle = QPointF(self.width() / 2, self.height() / 2)
        if self.above is not None:
            self._draw_line(painter, QPointF(middle.x(), 0), middle - QPointF(0, side * 0.6))
        if self.below is not None:
            end = QPointF(middle.x(), self.height())
            self._draw_line(painter, middle + QPointF(0, side * 0.6), end)
        if not self._step.icon:
            painter.setPen(QPen(status_colour(self._step.status), side / 12))
            painter.drawEllipse(middle, side / 5, side / 5)
            return
        square = QRectF(0, 0, side, side)
        square.moveCenter(middle)
        colour = status_colour(self._step.status).name()
        drawing(self._step.icon, colour).render(painter, square)

    def _draw_line(self, painter: QPainter, start: QPointF, end: QPointF) -> None:
        pen = QPen(self.palette().color(self.palette().ColorRole.Mid))
        pen.setWidthF(max(1.5, self.fontMetrics().height() / 10))
        painter.setPen(pen)
        painter.drawLine(start, end)


ICON_SCALE = 1.6  # times the icons of buttons


class StatusCard(Panel):
    """Whether the file may be deleted, with the available actions."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        question = PlainLabel(self.tr("May I delete it?"), self, quiet=True)
        self._icon = IconLabel(ICON_SCALE, self)
        self._headline = PlainLabel("", self, heading=SECTION, wrap=True, selectable=True)
        self._reason = PlainLabel("", self, wrap=True, selectable=True)
        self.check = QPushButton(icon("server"), self.tr("Check now"), self)
        self.free = QPushButton(icon("delete"), self.tr("Free space…"), self)
        self._verdict = StatusText("skipped", "info", "")

        layout = QGridLayout(self)
        layout.setHorizontalSpacing(LARGE_SPACE)
        layout.setVerticalSpacing(SPACE)
        layout.addWidget(question, 0, 1)
        layout.addWidget(self._icon, 1, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._headline, 1, 1)
        layout.addWidget(self._reason, 2, 1)
        layout.addLayout(hbox(self.check, self.free, 1, spacing=SPACE), 3, 1)
        layout.setColumnStretch(1, 1)

    @property
    def verdict(self) -> StatusText:
        """The displayed verdict."""
        return self._verdict

    def show_verdict(self, verdict: StatusText) -> None:
        """Show this verdict."""
        self._verdict = verdict
        self._icon.show_icon(icon(verdict.icon, verdict.status))
        self._headline.setText(verdict.headline)
        self._reason.setText(verdict.reason)
        self._reason.setVisible(bool(verdict.reason))

    def allow(self, *, check: bool) -> None:
        """Enable or disable the actions, which query the server."""
        self.check.setEnabled(check)
        self.free.setEnabled(check)


class StatusView(QWidget):
    """Shows the status of one file or folder."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._status: PathStatus | None = None
        self.takes_tree = False  # the destination is no server with pages of its datasets
        self._name = PlainLabel("", self, heading=SECTION, wrap=True, selectable=True)
        self._folder_label = PlainLabel("", self, wrap=True, quiet=True, selectable=True)
        self._steps = Timeline(self)
        self._state_counts = PlainLabel("", self)
        self._facts = PlainLabel("", self, wrap=True, selectable=True)
        self.page = QPushButton(icon("open"), self.tr("Open on the server"), self)
        self.folder = QPushButton(icon("folder"), self.tr("Open folder"), self)
        self._copy = QPushButton(icon("copy"), self.tr("Copy checksum"), self)
        self.get = QPushButton(icon("import"), self.tr("Get it back…"), self)
        self.receipt = QPushButton(icon("export"), self.tr("Save a receipt…"), self)
        self.get.hide()
        self._copy.clicked.connect(self._copy_checksum)
        self.card = StatusCard(self)
        gap = self.fontMetrics().height()
        vbox(
            self._name,
            self._folder_label,
            Gap(gap // 2),
            self._steps,
            Gap(gap // 2),
            self._facts,
            self._state_counts,
            Gap(gap // 2),
            hbox(self.page, self.folder, self._copy, self.get, self.receipt, 1, spacing=SPACE),
            Gap(gap),
            self.card,
            1,
            inside=self,
        )

    @property
    def status(self) -> PathStatus | None:
        """The displayed status."""
        return self._status

    def show_status(self, status: PathStatus) -> None:
        """Replace the displayed status."""
        self._status = status
        self._name.setText(texts.plain(status.path.name or str(status.path)))
        self._folder_label.setText(texts.plain(os.fsencode(status.path.parent)))
        self.page.setVisible(bool(status.web) and not self.takes_tree)
        self.receipt.setEnabled(status.path.is_absolute())
        self.folder.setEnabled(status.path.parent.is_absolute())
        if isinstance(status, FileStatus):
            self._show_file(status)
        else:
            self._show_folder(status)
        self.card.show_verdict(judge_deletion(status))
        gone = isinstance(status, FileStatus) and status.local is LocalState.GONE
        self.card.allow(check=status.unknown is None and not gone)

    def _show_file(self, status: FileStatus) -> None:
        entry = status.entry
        self._steps.show_steps(list_steps(status, takes_tree=self.takes_tree))
        self._steps.show()
        # The checksum is that of an earlier version, not of the displayed file.
        other = status.safety in (FileSafety.CHANGED, FileSafety.UNCERTAIN)
        checksum = entry.checksum if entry and not other else ""
        facts = [texts.size(status.size)]
        facts += [f"{Algorithm.of(checksum).label} {checksum}"] if checksum else []
        earlier = self.tr("An earlier version (%1) is kept until %2.")
        kept = [texts.filled(earlier, texts.size(it.size), moment(it.until)) for it in status.kept]
        if status.restored:
            restored = self.tr("It was brought back to this computer: %1.")
            kept = [restored.replace("%1", texts.moment(status.restored)), *kept]
        self._facts.setText("\n".join([" · ".join(facts), *kept]))
        self._copy.setVisible(bool(checksum))
        self._state_counts.hide()

    def _show_folder(self, status: FolderStatus) -> None:
        self._steps.hide()
        self._copy.hide()
        known = status.known
        self._facts.setText(
            self.tr("%Ln file(s), %1", "", known.files).replace("%1", texts.size(known.bytes))
        )
        words = {
            "verified": self.tr("verified by the server"),
            "staged": self.tr("sent"),
            "registered": self.tr("registered"),
            "repaired": self.tr("being replaced"),
            "found": self.tr("found, not sent yet"),
            "changed": self.tr("changed on this computer only"),
            "waiting": self.tr("waiting"),
            "skipped": self.tr("left out"),
            "failed": self.tr("failed"),
        }
        lines = [
            f"{texts.count(amount.files)} {words.get(state, state)} ({texts.size(amount.bytes)})"
            for state, amount in status.states.items()
        ]
        self._state_counts.setText("\n".join(lines))
        self._state_counts.setVisible(bool(lines))

    @Slot()
    def _copy_checksum(self) -> None:
        if isinstance(self._status, FileStatus) and self._status.entry:
            QGuiApplication.clipboard().setText(self._status.entry.checksum)
