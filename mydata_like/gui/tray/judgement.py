"""What tray and messages make of how things stand."""

from typing import Final

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.gui.state import Phase, RunState
from mydata_like.gui.tray.emblem import Emblem, Shape

# Pauses that somebody asked for.
_WISHED: Final = ("limits.", "run.paused", "run.stopping", "run.interrupted")
# What passes by itself: the server, or the way to it, is away for a while.
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
    (_WISHED, Shape.PAUSED),
    (_PASSING, Shape.OFFLINE),
    (_AWAITING, Shape.WAITING),
)

# Phases with one shape, as long as no problem tells more.
_PLAIN: Final = {
    Phase.LOADING: Shape.WORKING,
    Phase.UNSET: Shape.WAITING,
    Phase.STARTING: Shape.WORKING,
    Phase.STOPPING: Shape.WORKING,
    Phase.TESTING: Shape.WORKING,
    Phase.PAUSED: Shape.PAUSED,
    Phase.BROKEN: Shape.PROBLEM,
}


def choose_emblem(state: RunState) -> Emblem:
    """Return the picture that tells how things stand."""
    phase, problem, sums = state.phase, state.problem, state.sums
    if phase in _PLAIN:
        return Emblem(find_shape(problem) if problem else _PLAIN[phase])
    if phase is Phase.IDLE:
        return Emblem(_find_rest(state))
    share = sums.sent_bytes / sums.wanted_bytes if sums.wanted_bytes else None
    return Emblem.of(Shape.WORKING, share)


def find_shape(problem: Problem) -> Shape:
    """Return what kind of problem this is: one that was wished for, that passes, that waits."""
    for codes, shape in _SHAPES:
        if problem.code.startswith(codes):
            return shape
    return Shape.PROBLEM


def needs_somebody(problem: Problem) -> bool:
    """Return whether a person has to do something, rather than wait or know."""
    return find_shape(problem) is Shape.PROBLEM and not problem.code.startswith(_REMARKS)


def _find_rest(state: RunState) -> Shape:
    last = state.last
    if state.data_problem is not None:
        return Shape.PROBLEM
    if state.awaited is not None:
        return Shape.WAITING
    if state.safety is Safety.PROBLEM:
        problem = last.problem if last is not None else None
        return find_shape(problem) if problem is not None else Shape.PROBLEM
    return Shape.IDLE if state.safety is Safety.SAFE else Shape.AT_RISK
