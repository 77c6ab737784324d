"""The tray icon: one shape for each state, in colours for light and dark panels.

Each shape is one plain area with the glyph cut out of it, so that the panel shows through; none
needs to know which colour the panel has.
"""

import sys
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPainterPath, QPen, QPixmap, QPolygonF

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.gui.run_state import Phase, RunState

SIZES: Final = (16, 22, 24, 32, 44, 48, 64)  # pixels that panels ask for
STEP: Final = 5  # percent between two pictures of a ring: finer is not seen
_GRID: Final = 32.0  # the shapes are drawn on a square of this side
_BOX: Final = QRectF(1.5, 1.5, 29, 29)
_RING: Final = QRectF(3.5, 3.5, 25, 25)


class TrayState(Enum):
    """What the icon tells."""

    IDLE = "idle"
    WORKING = "working"
    AT_RISK = "at risk"  # or not known to be safe
    PAUSED = "paused"
    WAITING = "waiting"  # for somebody: an approval
    PROBLEM = "problem"
    OFFLINE = "offline"


# At least 3:1 against white and against the black of dark panels.
COLOURS: Final = {
    TrayState.IDLE: "#2a9058",
    TrayState.WORKING: "#2b7de9",
    TrayState.AT_RISK: "#b07a00",
    TrayState.PAUSED: "#7d7d7d",
    TrayState.WAITING: "#8a63d2",
    TrayState.PROBLEM: "#d9453d",
    TrayState.OFFLINE: "#7d7d7d",
}


class TrayIcon(NamedTuple):
    """One picture; `percent` is how far the work is, where the shape is a ring and it is known."""

    shape: TrayState
    percent: int | None = None

    @classmethod
    def of(cls, shape: TrayState, share: float | None = None) -> "TrayIcon":
        """Return the picture of a share between 0 and 1, in steps that can be told apart."""
        if share is None or shape is not TrayState.WORKING:
            return cls(shape)
        return cls(shape, int(max(0.0, min(1.0, share)) * 100) // STEP * STEP)


def draw_emblem(emblem: TrayIcon) -> QIcon:
    """Return the icon in every size that panels ask for."""
    icon = QIcon()
    for size in SIZES:
        icon.addPixmap(_draw(emblem, size))
    icon.setIsMask(sys.platform == "darwin")  # there the menu bar gives the colour
    return icon


def _draw(emblem: TrayIcon, size: int) -> QPixmap:
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(size / _GRID, size / _GRID)
    colour = QColor(COLOURS[emblem.shape])
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    if emblem.shape is TrayState.WORKING:
        _draw_ring(painter, colour, emblem.percent)
    else:
        _DRAWINGS[emblem.shape](painter)
    painter.end()
    return pixmap


def _draw_ring(painter: QPainter, colour: QColor, percent: int | None) -> None:
    """Draw an arrow upwards in a ring, filled so far; in three parts where that is not known."""
    painter.drawPolygon(_polygon((16, 8), (22.5, 15.5), (9.5, 15.5)))
    painter.drawRect(QRectF(13.5, 15, 5, 8.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    faint = QColor(colour)
    faint.setAlphaF(0.35)
    painter.setPen(QPen(faint, 4))
    painter.drawEllipse(_RING)
    painter.setPen(QPen(colour, 4, c=Qt.PenCapStyle.FlatCap))
    arcs = [(30, 60), (150, 60), (270, 60)] if percent is None else [(90, -percent * 3.6)]
    for start, span in arcs:  # degrees, which Qt counts in sixteenths
        painter.drawArc(_RING, start * 16, round(span * 16))


def _draw_tick(painter: QPainter) -> None:
    painter.drawEllipse(_BOX)
    _cut(painter, 4)
    painter.drawPolyline(_polygon((9, 16.5), (14, 21.5), (23, 11.5)))


def _draw_exclamation(painter: QPainter) -> None:
    painter.drawPolygon(_polygon((16, 0.5), (31.5, 16), (16, 31.5), (0.5, 16)))
    _cut(painter, 4)
    painter.drawLine(QPointF(16, 8.5), QPointF(16, 17.5))
    painter.drawPoint(QPointF(16, 23.5))


def _draw_bars(painter: QPainter) -> None:
    painter.drawEllipse(_BOX)
    _cut(painter, 4.5)
    painter.drawLine(QPointF(12, 11), QPointF(12, 21))
    painter.drawLine(QPointF(20, 11), QPointF(20, 21))


def _draw_person(painter: QPainter) -> None:
    painter.drawRoundedRect(_BOX, 7, 7)
    _cut(painter, 0)
    painter.drawEllipse(QPointF(16, 11.5), 4.6, 4.6)
    painter.drawChord(QRectF(7.5, 18, 17, 16), 0, 180 * 16)


def _draw_warning(painter: QPainter) -> None:
    painter.setPen(QPen(painter.brush(), 4, j=Qt.PenJoinStyle.RoundJoin))
    painter.drawPolygon(_polygon((16, 4), (29, 27.5), (3, 27.5)))
    _cut(painter, 4)
    painter.drawLine(QPointF(16, 12.5), QPointF(16, 18.5))
    painter.drawPoint(QPointF(16, 24.5))


def _draw_cloud(painter: QPainter) -> None:
    cloud = QPainterPath()
    cloud.setFillRule(Qt.FillRule.WindingFill)
    cloud.addEllipse(QRectF(1.5, 12.5, 13, 13))
    cloud.addEllipse(QRectF(7.5, 5, 16, 16))
    cloud.addEllipse(QRectF(18, 12, 12.5, 13.5))
    cloud.addRect(QRectF(8, 15, 16, 10.5))
    painter.drawPath(cloud)
    colour = painter.brush()
    _cut(painter, 8.5)
    painter.drawLine(QPointF(7, 3.5), QPointF(27, 28.5))
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
    painter.setPen(QPen(colour, 3.5, c=Qt.PenCapStyle.RoundCap))
    painter.drawLine(QPointF(6, 3.5), QPointF(26, 28.5))


def _cut(painter: QPainter, width: float) -> None:
    """Take away from now on what is drawn; without a width only areas are."""
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Clear)
    pen = QPen(Qt.GlobalColor.black, width, c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen if width else QPen(Qt.PenStyle.NoPen))


def _polygon(*points: tuple[float, float]) -> QPolygonF:
    return QPolygonF([QPointF(x, y) for x, y in points])


_DRAWINGS: Final[dict[TrayState, Callable[[QPainter], None]]] = {
    TrayState.IDLE: _draw_tick,
    TrayState.AT_RISK: _draw_exclamation,
    TrayState.PAUSED: _draw_bars,
    TrayState.WAITING: _draw_person,
    TrayState.PROBLEM: _draw_warning,
    TrayState.OFFLINE: _draw_cloud,
}


# Pauses that somebody asked for.
_WISHED: Final = ("limits.", "run.paused", "run.stopping", "run.interrupted")
# Temporary problems: the server or the network is unavailable for a while.
_PASSING: Final = (
    "link.",
    "channel.",
    "server.unreachable",
    "server.unavailable",
    "server.slow",
    "server.busy",
    "server.error",
    "server.throttled",
    "server.connection-lost",
)
_AWAITING: Final = ("uploader.not-approved", "uploader.not-admitted")
# Things to know, about which nobody need do anything.
_REMARKS: Final = (
    "schedule.",
    "settings.from-server",
    "settings.server-ignored",
    "staging.moved",
    "staging.no-tar",
    "archive.unreadable",
    "ledger.damaged",
    "monitor.all-well",
)
_SHAPES: Final = (
    (_WISHED, TrayState.PAUSED),
    (_PASSING, TrayState.OFFLINE),
    (_AWAITING, TrayState.WAITING),
)

# Phases with one shape, as long as no problem tells more.
_PLAIN: Final = {
    Phase.LOADING: TrayState.WORKING,
    Phase.UNSET: TrayState.WAITING,
    Phase.STARTING: TrayState.WORKING,
    Phase.STOPPING: TrayState.WORKING,
    Phase.TESTING: TrayState.WORKING,
    Phase.PAUSED: TrayState.PAUSED,
    Phase.BROKEN: TrayState.PROBLEM,
}


def choose_emblem(state: RunState) -> TrayIcon:
    """Return the picture that tells how things stand."""
    phase, problem, sums = state.phase, state.problem, state.sums
    if phase in _PLAIN:
        return TrayIcon(find_shape(problem) if problem else _PLAIN[phase])
    if phase is Phase.IDLE:
        return TrayIcon(_find_rest(state))
    share = sums.sent_bytes / sums.wanted_bytes if sums.wanted_bytes else None
    return TrayIcon.of(TrayState.WORKING, share)


def find_shape(problem: Problem) -> TrayState:
    """Return what kind of problem this is: one that was wished for, that passes, that waits."""
    for codes, shape in _SHAPES:
        if problem.code.startswith(codes):
            return shape
    return TrayState.PROBLEM


def needs_somebody(problem: Problem) -> bool:
    """Return whether the user has to do something."""
    return find_shape(problem) is TrayState.PROBLEM and not problem.code.startswith(_REMARKS)


def _find_rest(state: RunState) -> TrayState:
    last = state.last
    if state.data_problem is not None:
        return TrayState.PROBLEM
    if state.awaited is not None:
        return TrayState.WAITING
    if state.safety is Safety.PROBLEM:
        problem = last.problem if last is not None else None
        return find_shape(problem) if problem is not None else TrayState.PROBLEM
    return TrayState.IDLE if state.safety is Safety.SAFE else TrayState.AT_RISK
