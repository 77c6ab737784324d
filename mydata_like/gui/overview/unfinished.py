"""The added folders that are not finished: what is left of each, to continue or to remove."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QMessageBox,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from mydata_like.core.extra_sources import KnownSource
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import ElidedLabel, PlainLabel
from mydata_like.gui.look.picture import Picture
from mydata_like.gui.state import RunState

ICON_SCALE = 1.4  # times the icons of buttons
MOST = 20  # rows; Start continues with all


class UnfinishedList(QFrame):
    """Lists the added folders that are not finished; hidden where there are none."""

    continue_wanted = Signal(object)  # a KnownSource
    remove_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._sources: Sequence[KnownSource] = ()
        self.rows: list[UnfinishedRow] = []
        self._title = PlainLabel(self.tr("Added folders that are not finished"), self)
        self._rest = PlainLabel("", self)
        self._lines = QVBoxLayout()
        self._lines.setSpacing(self.fontMetrics().height() // 2)
        layout = QVBoxLayout(self)
        layout.addWidget(self._title)
        layout.addLayout(self._lines)
        layout.addWidget(self._rest)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Show what is not finished, and let the user act on it while no run is at work."""
        if tuple(state.sources) != self._sources:
            self._sources = tuple(state.sources)
            self._make_rows()
        for row in self.rows:
            row.allow(continuing=state.can_start, removing=not state.at_work)
        self.setVisible(bool(self._sources))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self.palette().mid().color())
        painter.setBrush(self.palette().base())
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)

    def _make_rows(self) -> None:
        for row in self.rows:
            self._lines.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = [UnfinishedRow(source, self) for source in self._sources[:MOST]]
        for row in self.rows:
            row.continue_wanted.connect(self.continue_wanted)
            row.remove_wanted.connect(self.remove_wanted)
            self._lines.addWidget(row)
        more = len(self._sources) - len(self.rows)
        self._rest.setText(self.tr("and %Ln more; Start continues with all", "", more))
        self._rest.setVisible(more > 0)


class UnfinishedRow(QWidget):
    """One folder: its path, what it becomes, how much of it is not verified, and two buttons."""

    continue_wanted = Signal(object)
    remove_wanted = Signal(object)

    def __init__(self, source: KnownSource, parent: QWidget) -> None:
        super().__init__(parent)
        self._source = source
        path = words.plain(source.path)
        self._path = ElidedLabel(path, self)
        self._path.scale(1, bold=True)
        self._about = PlainLabel(self._describe(source), self)
        self._about.setWordWrap(True)
        self._about.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self._continue = QPushButton(icon("start"), self.tr("Continue"), self)
        self._remove = QPushButton(icon("delete"), self.tr("Remove…"), self)
        for button in (self._continue, self._remove):
            name = f"{button.text().rstrip('…')}: {path}"
            button.setAccessibleName(name)
        self._lay_out()
        self._continue.clicked.connect(self._continue_it)
        self._remove.clicked.connect(self._remove_it)

    def allow(self, *, continuing: bool, removing: bool) -> None:
        """Let the user continue with it, or remove it."""
        self._continue.setEnabled(continuing)
        self._remove.setEnabled(removing)

    def _lay_out(self) -> None:
        shape = Picture(ICON_SCALE, self)
        shape.show_icon(icon("folder", "waiting"))
        buttons = QHBoxLayout()
        buttons.setSpacing(self.fontMetrics().height() // 2)
        buttons.addWidget(self._continue)
        buttons.addWidget(self._remove)
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(self.fontMetrics().height() // 2)
        layout.setVerticalSpacing(0)
        layout.addWidget(shape, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._path, 0, 1)
        layout.addWidget(self._about, 1, 1)
        layout.addLayout(buttons, 0, 2, 2, 1)
        layout.setColumnStretch(1, 1)

    def _describe(self, source: KnownSource) -> str:
        names = " / ".join(filter(None, source.destination))
        becomes = self.tr("becomes %1").replace("%1", words.plain(names))
        return f"{becomes} · {self._tell_open(source)}"

    def _tell_open(self, source: KnownSource) -> str:
        if source.open_files is None:
            return self.tr("no run has looked at it yet")
        if not source.open_files:
            return self.tr("the next run checks whether all of it is on the server")
        text = self.tr("%Ln file(s), %1, not verified yet", "", source.open_files)
        return text.replace("%1", words.size(source.open_bytes or 0))

    @Slot()
    def _continue_it(self) -> None:
        self.continue_wanted.emit(self._source)

    @Slot()
    def _remove_it(self) -> None:
        self.remove_wanted.emit(self._source)


class RemoveQuestion(QMessageBox):
    """Asks whether a folder is to be forgotten; `confirmed` tells which one."""

    confirmed = Signal(object)  # a KnownSource

    def __init__(self, source: KnownSource, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._source = source
        self.setIcon(QMessageBox.Icon.Question)
        self.setWindowTitle(self.tr("Remove from the list"))
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(
            self.tr("Do not upload %1 any further?").replace("%1", words.plain(source.path))
        )
        self.setInformativeText(
            self.tr(
                "Nothing is deleted, here or on the server. Files of it that are not on the server "
                "yet stay on this computer only, and no run takes them until it is added again."
            )
        )
        role = QMessageBox.ButtonRole
        self._remove = self.addButton(self.tr("&Remove"), role.DestructiveRole)
        keep = self.addButton(self.tr("&Keep"), role.RejectRole)
        self.setDefaultButton(keep)
        self.setEscapeButton(keep)
        self.buttonClicked.connect(self._answer)

    @Slot(QAbstractButton)
    def _answer(self, button: QAbstractButton) -> None:
        if button is self._remove:
            self.confirmed.emit(self._source)
