"""One file or folder: how far it has come, where it is, and whether it may be deleted."""

import os

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.file_status import (
    FileSafety,
    FileStatus,
    FolderStatus,
    LocalState,
    PathStatus,
)
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.look.picture import Picture
from mydata_like.gui.where.sentences import Verdict, judge, list_steps
from mydata_like.gui.where.steps import StepList

HEADLINE = 1.15
ICON_SCALE = 1.6  # times the icons of buttons
TITLE = 1.4


class VerdictCard(QFrame):
    """Says whether it may be deleted, with what to do about that."""

    check_wanted = Signal()
    free_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._question = PlainLabel(self.tr("May I delete it?"), self)
        self._shape = Picture(ICON_SCALE, self)
        self._headline = PlainLabel("", self)
        self._reason = PlainLabel("", self)
        self._check = QPushButton(icon("server"), self.tr("Check now"), self)
        self._free = QPushButton(icon("delete"), self.tr("Free space…"), self)
        self._verdict = Verdict("skipped", "info", "")
        self._lay_out()
        self._check.clicked.connect(self.check_wanted)
        self._free.clicked.connect(self.free_wanted)

    @property
    def verdict(self) -> Verdict:
        """What is said."""
        return self._verdict

    def show_verdict(self, verdict: Verdict) -> None:
        """Say this."""
        self._verdict = verdict
        self._shape.show_icon(icon(verdict.icon, verdict.status))
        self._headline.setText(verdict.headline)
        self._reason.setText(verdict.reason)
        self._reason.setVisible(bool(verdict.reason))

    def allow(self, *, check: bool) -> None:
        """Let a person ask the server, where there is something to ask about."""
        self._check.setEnabled(check)
        self._free.setEnabled(check)

    def _lay_out(self) -> None:
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(self.palette().ColorRole.Base)
        self._question.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self._headline.scale(HEADLINE, bold=True)
        for label in (self._headline, self._reason):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = QHBoxLayout()
        buttons.setSpacing(self.fontMetrics().height() // 2)
        buttons.addWidget(self._check)
        buttons.addWidget(self._free)
        buttons.addStretch(1)
        layout = QGridLayout(self)
        layout.setHorizontalSpacing(self.fontMetrics().height())
        layout.setVerticalSpacing(self.fontMetrics().height() // 2)
        layout.addWidget(self._question, 0, 1)
        layout.addWidget(self._shape, 1, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._headline, 1, 1)
        layout.addWidget(self._reason, 2, 1)
        layout.addLayout(buttons, 3, 1)
        layout.setColumnStretch(1, 1)


class StatusView(QWidget):
    """Shows what is known of one file or folder."""

    check_wanted = Signal()
    free_wanted = Signal()
    folder_wanted = Signal()
    page_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._status: PathStatus | None = None
        self._name = PlainLabel("", self)
        self._place = PlainLabel("", self)
        self._steps = StepList(self)
        self._sums = PlainLabel("", self)
        self._sum = PlainLabel("", self)
        self._page = QPushButton(icon("open"), self.tr("Open on the server"), self)
        self._folder = QPushButton(icon("folder"), self.tr("Open folder"), self)
        self._copy = QPushButton(icon("copy"), self.tr("Copy checksum"), self)
        self.card = VerdictCard(self)
        self._lay_out()
        self._connect()

    @property
    def status(self) -> PathStatus | None:
        """What is shown."""
        return self._status

    def show_status(self, status: PathStatus) -> None:
        """Show this in place of what was shown."""
        self._status = status
        self._name.setText(words.plain(status.path.name or str(status.path)))
        self._place.setText(words.plain(os.fsencode(status.path.parent)))
        self._page.setVisible(bool(status.web))
        self._folder.setEnabled(status.path.parent.is_absolute())
        if isinstance(status, FileStatus):
            self._show_file(status)
        else:
            self._show_folder(status)
        self.card.show_verdict(judge(status))
        self.card.allow(check=status.unknown is None and _is_here(status))

    def _show_file(self, status: FileStatus) -> None:
        entry = status.entry
        self._steps.show_steps(list_steps(status))
        self._steps.show()
        # What was sent before has another checksum than the file that is shown.
        other = status.safety in (FileSafety.CHANGED, FileSafety.UNCERTAIN)
        checksum = entry.checksum if entry and not other else ""
        facts = [words.size(status.size)]
        facts += [self.tr("MD5 %1").replace("%1", checksum)] if checksum else []
        self._sum.setText(" · ".join(facts))
        self._copy.setVisible(bool(checksum))
        self._sums.hide()

    def _show_folder(self, status: FolderStatus) -> None:
        self._steps.hide()
        self._copy.hide()
        known = status.known
        self._sum.setText(
            self.tr("%Ln file(s), %1", "", known.files).replace("%1", words.size(known.bytes))
        )
        told = {
            "verified": self.tr("verified by the server"),
            "staged": self.tr("sent"),
            "registered": self.tr("registered"),
            "repaired": self.tr("being replaced"),
            "found": self.tr("found, not sent yet"),
            "changed": self.tr("changed here, not there"),
            "waiting": self.tr("waiting"),
            "skipped": self.tr("left out"),
            "failed": self.tr("failed"),
        }
        lines = [
            f"{words.count(amount.files)} {told.get(state, state)} ({words.size(amount.bytes)})"
            for state, amount in status.states.items()
        ]
        self._sums.setText("\n".join(lines))
        self._sums.setVisible(bool(lines))

    def _lay_out(self) -> None:
        self._name.scale(TITLE, bold=True)
        for label in (self._name, self._place, self._sum):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._place.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        buttons = QHBoxLayout()
        buttons.setSpacing(self.fontMetrics().height() // 2)
        for button in (self._page, self._folder, self._copy):
            buttons.addWidget(button)
        buttons.addStretch(1)
        gap = self.fontMetrics().height()
        layout = QVBoxLayout(self)
        layout.addWidget(self._name)
        layout.addWidget(self._place)
        layout.addSpacing(gap // 2)
        layout.addWidget(self._steps)
        layout.addSpacing(gap // 2)
        layout.addWidget(self._sum)
        layout.addWidget(self._sums)
        layout.addSpacing(gap // 2)
        layout.addLayout(buttons)
        layout.addSpacing(gap)
        layout.addWidget(self.card)
        layout.addStretch(1)

    def _connect(self) -> None:
        self._copy.clicked.connect(self._copy_checksum)
        self._folder.clicked.connect(self.folder_wanted)
        self._page.clicked.connect(self.page_wanted)
        self.card.check_wanted.connect(self.check_wanted)
        self.card.free_wanted.connect(self.free_wanted)

    @Slot()
    def _copy_checksum(self) -> None:
        if isinstance(self._status, FileStatus) and self._status.entry:
            QGuiApplication.clipboard().setText(self._status.entry.checksum)


def _is_here(status: PathStatus) -> bool:
    return isinstance(status, FolderStatus) or status.local is not LocalState.GONE
