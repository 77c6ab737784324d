"""The guard that holds a run at its gate while the instrument's own work has priority."""

from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Final

from mydata_like.core.errors import Problem
from mydata_like.core.events import Notice
from mydata_like.core.ports import Clock, Emit, SystemLoad, Wakefulness
from mydata_like.engine.gate import Gate
from mydata_like.engine.progress import RunProgress
from mydata_like.settings.schedule_section import WEEKDAYS, Period, find_end, parse_period
from mydata_like.settings.transfer_sections import Limits

LOOK: Final = 3.0  # seconds between two checks
STEADY: Final = 30.0  # minimum seconds between changes of the verdict on pressure
RELEASE_SHARE: Final = 0.5  # share of the limit below which the pressure has ended

QUIET_HOURS: Final = "limits.quiet-hours"
ACQUISITION: Final = "limits.acquisition"
PRESSURE: Final = "limits.pressure"

UNKNOWN: Final = Problem(
    "limits.pressure-unknown",
    "This system does not report how long programs wait for its disks.",
    "limits.pause_under_pressure has no effect here; limits.pause_while_running has.",
)


class LoadGuard:
    """A periodic check of the conditions in the settings under which nothing is sent.

    Each reason is a separate hold at the gate and is released independently.
    """

    def __init__(self, limits: Limits, load: SystemLoad, gate: Gate, emit: Emit) -> None:
        self._hours = tuple(map(parse_period, limits.quiet_hours))
        self._programs = limits.pause_while_running
        self._limit = limits.pause_under_pressure
        self._strain = PressureFilter(self._limit)
        self._load = load
        self._gate = gate
        self._emit = emit

    def __call__(self) -> None:
        """Check once, and hold or release the run."""
        self._decide(QUIET_HOURS, judge_hours(self._hours, self._gate.clock.now().astimezone()))
        if self._programs:
            self._decide(ACQUISITION, judge_program(self._load.find_program(self._programs)))
        if self._limit:
            self._decide(PRESSURE, self._judge_pressure())

    def _decide(self, name: str, problem: Problem | None) -> None:
        if problem:
            self._gate.hold(name, problem)
        else:
            self._gate.release(name)

    def _judge_pressure(self) -> Problem | None:
        share = self._load.measure_pressure()
        if share is None:
            self._limit = 0.0
            self._emit(Notice(problem=UNKNOWN))
            return None
        if not self._strain.update(share, self._gate.clock.monotonic()):
            return None
        return Problem(
            PRESSURE,
            f"Other programs wait for disk or memory more than {self._limit:g} % of the time. "
            "Nothing new is sent.",
            "Sending resumes automatically when they wait less than half of that.",
        )


class PressureFilter:
    """A decision whether a computer is under pressure, with hysteresis against rapid changes."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._strained = False
        self._decided = -inf

    def update(self, share: float, now: float) -> bool:
        """Return the verdict, given the share of time in % that other programs wait."""
        changed = share < self._limit * RELEASE_SHARE if self._strained else share > self._limit
        if changed and now - self._decided >= STEADY:
            self._strained = not self._strained
            self._decided = now
        return self._strained


def judge_hours(periods: Sequence[Period], local: datetime) -> Problem | None:
    """Return a problem during quiet hours, with their end in local time."""
    if not any(period.covers(local) for period in periods):
        return None
    end = find_end(periods, local)
    if end is None:
        return Problem(
            QUIET_HOURS,
            "Quiet hours fill the whole week: nothing is ever sent.",
            "Leave some hours free in limits.quiet_hours.",
        )
    day = "" if end.date() == local.date() else f"{WEEKDAYS[end.weekday()].capitalize()} "
    return Problem(
        QUIET_HOURS,
        f"Quiet hours: nothing new is sent until {day}{end:%H:%M}.",
        "Sending resumes automatically then. The hours are set in limits.quiet_hours.",
    )


def judge_program(running: str | None) -> Problem | None:
    """Return a problem if a program is running during which nothing is sent."""
    if running is None:
        return None
    return Problem(
        ACQUISITION,
        f"{running} is running: nothing new is sent.",
        "Sending resumes automatically when the program ends.",
    )


RENEW_INTERVAL: Final = 1.0  # seconds between two checks
IDLE_TIME: Final = 30.0  # seconds without a byte after which the computer may sleep


class SleepGuard:
    """A guard that prevents sleep while bytes are sent, but not while a run is held or waits."""

    def __init__(self, wakefulness: Wakefulness, progress: RunProgress, clock: Clock) -> None:
        self._wakefulness = wakefulness
        self._progress = progress
        self._clock = clock
        self._moved_at: float | None = None

    def __call__(self) -> None:
        """Check once."""
        now = self._clock.monotonic()
        if self._progress.totals.byte_rate:
            self._moved_at = now
            self._wakefulness.keep()
        elif self._moved_at is not None and now - self._moved_at >= IDLE_TIME:
            self._moved_at = None
            self._wakefulness.end()
