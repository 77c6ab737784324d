"""The tray icon: one shape for each state, in colours for light and dark panels.

Each icon is a filled shape with its glyph cut out, so it works on panels of any colour.
"""

import sys
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPainterPath, QPen, QPixmap, QPolygonF

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.core.problems import Fixer, find_problem_info
from mydata_like.gui.run_state import Phase, RunState

SIZES: Final = (16, 22, 24, 32, 44, 48, 64)  # pixels that panels request
STEP: Final = 5  # percent between two icons of a ring; a finer step is not visible
_GRID: Final = 32.0  # the shapes are drawn on a square of this side
_BOX: Final = QRectF(1.5, 1.5, 29, 29)
_RING: Final = QRectF(3.5, 3.5, 25, 25)


class TrayState(Enum):
    """The states that the icon can show."""

    IDLE = "idle"
    WORKING = "working"
    AT_RISK = "at risk"  # not safe, or not known to be safe
    PAUSED = "paused"
    WAITING = "waiting"  # for an approval or the set-up
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
    """An icon; `percent` is the progress of WORKING, None if unknown."""

    state: TrayState
    percent: int | None = None

    @classmethod
    def of(cls, state: TrayState, progress: float | None = None) -> "TrayIcon":
        """Return the icon for a progress between 0 and 1, rounded down to a visible step."""
        if progress is None or state is not TrayState.WORKING:
            return cls(state)
        return cls(state, int(max(0.0, min(1.0, progress)) * 100) // STEP * STEP)


def draw_icon(icon_spec: TrayIcon) -> QIcon:
    """Return the icon in every size that panels request."""
    icon = QIcon()
    for size in SIZES:
        icon.addPixmap(_draw(icon_spec, size))
    icon.setIsMask(sys.platform == "darwin")  # there the menu bar gives the colour
    return icon


def _draw(icon_spec: TrayIcon, size: int) -> QPixmap:
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(size / _GRID, size / _GRID)
    colour = QColor(COLOURS[icon_spec.state])
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    if icon_spec.state is TrayState.WORKING:
        _draw_ring(painter, colour, icon_spec.percent)
    else:
        _DRAW_FUNCTIONS[icon_spec.state](painter)
    painter.end()
    return pixmap


def _draw_ring(painter: QPainter, colour: QColor, percent: int | None) -> None:
    """Draw an upward arrow in a progress ring, or in three arcs if the progress is unknown."""
    painter.drawPolygon(_polygon((16, 8), (22.5, 15.5), (9.5, 15.5)))
    painter.drawRect(QRectF(13.5, 15, 5, 8.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    pale = QColor(colour)
    pale.setAlphaF(0.35)
    painter.setPen(QPen(pale, 4))
    painter.drawEllipse(_RING)
    painter.setPen(QPen(colour, 4, c=Qt.PenCapStyle.FlatCap))
    arcs = [(30, 60), (150, 60), (270, 60)] if percent is None else [(90, -percent * 3.6)]
    for start, span in arcs:  # degrees; Qt uses sixteenths
        painter.drawArc(_RING, start * 16, round(span * 16))


def _draw_tick(painter: QPainter) -> None:
    painter.drawEllipse(_BOX)
    _start_erasing(painter, 4)
    painter.drawPolyline(_polygon((9, 16.5), (14, 21.5), (23, 11.5)))


def _draw_exclamation(painter: QPainter) -> None:
    painter.drawPolygon(_polygon((16, 0.5), (31.5, 16), (16, 31.5), (0.5, 16)))
    _start_erasing(painter, 4)
    painter.drawLine(QPointF(16, 8.5), QPointF(16, 17.5))
    painter.drawPoint(QPointF(16, 23.5))


def _draw_bars(painter: QPainter) -> None:
    painter.drawEllipse(_BOX)
    _start_erasing(painter, 4.5)
    painter.drawLine(QPointF(12, 11), QPointF(12, 21))
    painter.drawLine(QPointF(20, 11), QPointF(20, 21))


def _draw_user(painter: QPainter) -> None:
    painter.drawRoundedRect(_BOX, 7, 7)
    _start_erasing(painter, 0)
    painter.drawEllipse(QPointF(16, 11.5), 4.6, 4.6)
    painter.drawChord(QRectF(7.5, 18, 17, 16), 0, 180 * 16)


def _draw_warning(painter: QPainter) -> None:
    painter.setPen(QPen(painter.brush(), 4, j=Qt.PenJoinStyle.RoundJoin))
    painter.drawPolygon(_polygon((16, 4), (29, 27.5), (3, 27.5)))
    _start_erasing(painter, 4)
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
    _start_erasing(painter, 8.5)
    painter.drawLine(QPointF(7, 3.5), QPointF(27, 28.5))
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
    painter.setPen(QPen(colour, 3.5, c=Qt.PenCapStyle.RoundCap))
    painter.drawLine(QPointF(6, 3.5), QPointF(26, 28.5))


def _start_erasing(painter: QPainter, width: float) -> None:
    """Let the next shapes erase; a width of 0 disables the outline."""
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Clear)
    pen = QPen(Qt.GlobalColor.black, width, c=Qt.PenCapStyle.RoundCap, j=Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen if width else QPen(Qt.PenStyle.NoPen))


def _polygon(*points: tuple[float, float]) -> QPolygonF:
    return QPolygonF([QPointF(x, y) for x, y in points])


_DRAW_FUNCTIONS: Final[dict[TrayState, Callable[[QPainter], None]]] = {
    TrayState.IDLE: _draw_tick,
    TrayState.AT_RISK: _draw_exclamation,
    TrayState.PAUSED: _draw_bars,
    TrayState.WAITING: _draw_user,
    TrayState.PROBLEM: _draw_warning,
    TrayState.OFFLINE: _draw_cloud,
}


# Pauses that the user or the settings requested.
_REQUESTED_PAUSES: Final = ("limits.", "run.paused", "run.stopping", "run.interrupted")
_WAITING: Final = ("uploader.not-approved", "uploader.not-admitted")
# An administrator can change it, but nobody has to.
_INFORMATIONAL: Final = (
    *("settings.from-server", "settings.server-ignored", "archive.unreadable"),
    *("staging.no-tar", "staging.no-programs", "staging.no-times", "staging.no-resume"),
)

# The states of phases without a problem.
_STATES_BY_PHASE: Final = {
    Phase.LOADING: TrayState.WORKING,
    Phase.UNSET: TrayState.WAITING,
    Phase.STARTING: TrayState.WORKING,
    Phase.STOPPING: TrayState.WORKING,
    Phase.TESTING: TrayState.WORKING,
    Phase.PAUSED: TrayState.PAUSED,
    Phase.BROKEN: TrayState.PROBLEM,
}


def choose_icon(state: RunState) -> TrayIcon:
    """Return the icon for a state of the program."""
    phase, problem, sums = state.phase, state.problem, state.sums
    if phase in _STATES_BY_PHASE:
        return TrayIcon(classify_problem(problem) if problem else _STATES_BY_PHASE[phase])
    if phase is Phase.IDLE:
        return TrayIcon(_idle_state(state))
    progress = sums.transferred_bytes / sums.wanted_bytes if sums.wanted_bytes else None
    return TrayIcon.of(TrayState.WORKING, progress)


def classify_problem(problem: Problem) -> TrayState:
    """Return the state that a problem causes: paused, offline, waiting or a problem."""
    if problem.code.startswith(_REQUESTED_PAUSES):
        return TrayState.PAUSED
    if problem.code in _WAITING:
        return TrayState.WAITING
    if problem.code.startswith("link.") or find_problem_info(problem.code).fixer is Fixer.SERVER:
        return TrayState.OFFLINE
    return TrayState.PROBLEM


def needs_user(problem: Problem) -> bool:
    """Return whether the user has to do something."""
    fixable = find_problem_info(problem.code).fixer is not Fixer.NOBODY
    real = classify_problem(problem) is TrayState.PROBLEM and problem.code not in _INFORMATIONAL
    return fixable and real


def _idle_state(state: RunState) -> TrayState:
    last = state.last
    if state.data_problem is not None:
        return TrayState.PROBLEM
    if state.awaited is not None:
        return TrayState.WAITING
    if state.safety is Safety.PROBLEM:
        problem = last.problem if last is not None else None
        return classify_problem(problem) if problem is not None else TrayState.PROBLEM
    return TrayState.IDLE if state.safety is Safety.SAFE else TrayState.AT_RISK
