"""From where to where: the instrument, the server, and whether the server answers."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import Phase, RunState, ServerIndicator
from mydata_like.gui.server_indicator import indicator_mark
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status, status_colour
from mydata_like.gui.theme.layouts import Gap, frameless, hbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE
from mydata_like.gui.theme.widgets import IconLabel, PlainLabel, icon, set_tip

WAITING = (ServerIndicator.SILENT, ServerIndicator.NOT_APPROVED)
MAX_LENGTH = 40  # average characters of a name, if the other one is as long


class RouteRow(QWidget):
    """The names of the instrument and the server, with an arrow between them."""

    def __init__(
        self, controller: WindowController, parent: QWidget, longest: int = MAX_LENGTH
    ) -> None:
        super().__init__(parent)
        self._controller = controller
        self._longest = longest
        self._instrument, self._server = (
            PlainLabel("", self, heading=1),
            PlainLabel("", self, heading=1),
        )
        self._arrow = _Arrow(self)
        self._mark = IconLabel(1.0, self)
        self._word = PlainLabel("", self, wrap=True)
        computer, server = IconLabel(1.2, self), IconLabel(1.2, self)
        computer.show_icon(icon("computer"))
        server.show_icon(icon("server"))
        ends = (computer, self._instrument, self._arrow, server, self._server)
        state = (Gap(LARGE_SPACE), self._mark, (self._word, 1))
        frameless(hbox(*ends, *state, inside=self, spacing=SPACE))

        controller.settings_changed.connect(self._on_settings_changed)
        self._on_settings_changed()

    def show_state(self, state: RunState) -> None:
        """Show whether bytes travel, and what is known of the server."""
        mark = indicator_mark(state)
        self._mark.show_icon(mark.icon)
        self._word.setText(mark.word)
        self._mark.setVisible(bool(mark.word))
        status: Status = "working" if state.at_work else "skipped"
        if state.phase is Phase.BROKEN or state.server is ServerIndicator.UNREACHABLE:
            status = "problem"
        elif state.phase is Phase.PAUSED or state.server in WAITING:
            status = "waiting"
        self._arrow.show_status(status)

    @Slot()
    def _on_settings_changed(self) -> None:
        settings = self._controller.settings
        name = texts.plain(settings.instrument.name) or self.tr("This computer")
        host = texts.plain(settings.server.url).partition("://")[2].strip("/")
        if settings.destination.takes_tree:
            host = texts.plain(settings.destination.name)
        self._show_name(self._instrument, name, host)
        self._show_name(self._server, host, name)

    def _show_name(self, shown: PlainLabel, name: str, other: str) -> None:
        """Show a name; it may also use the room that the other name leaves."""
        metrics = shown.fontMetrics()
        half = metrics.averageCharWidth() * self._longest
        width = max(half, 2 * half - metrics.horizontalAdvance(other))
        elided = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, width)
        shown.setText(elided)
        set_tip(shown, "" if elided == name else name)


class _Arrow(QWidget):
    """An arrow in the colour of a status: bytes travel, are held up or cannot; or at rest."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._status: Status = "skipped"
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * 4, line)

    def show_status(self, status: Status) -> None:
        if status != self._status:
            self._status = status
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(status_colour(self._status), 2.0)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        area = QRectF(self.rect()).adjusted(2, 0, -2, 0)
        tip = QPointF(area.right(), area.center().y())
        painter.drawLine(QPointF(area.left(), tip.y()), tip)
        head = area.height() / 4
        painter.drawPolyline(
            [QPointF(tip.x() - head, tip.y() - head), tip, QPointF(tip.x() - head, tip.y() + head)]
        )
