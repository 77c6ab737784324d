"""Holds a run at its gate while the instrument's own work is to be spared."""

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

LOOK: Final = 3.0  # seconds between two looks
STEADY: Final = 30.0  # seconds for which a verdict on pressure lasts at least
EASED: Final = 0.5  # of the limit: below it the pressure has gone

QUIET_HOURS: Final = "limits.quiet-hours"
ACQUISITION: Final = "limits.acquisition"
PRESSURE: Final = "limits.pressure"

UNKNOWN: Final = Problem(
    "limits.pressure-unknown",
    "This system does not tell how long programs wait for its disks.",
    "limits.pause_under_pressure has no effect here; limits.pause_while_running has.",
)


class LoadGuard:
    """Looks again and again whether anything of what the settings name is the case.

    Each reason is a hold of its own at the gate, so that they come and go by themselves.
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
        """Look once, and hold or release the run."""
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
            f"Other programs wait for disk or memory more than {self._limit:g} % of the time: "
            "nothing new is sent.",
            "It goes on by itself when they wait for less than half of that.",
        )


class PressureFilter:
    """Whether a computer is under pressure: decided with patience, so that it does not flap."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._strained = False
        self._decided = -inf

    def update(self, share: float, now: float) -> bool:
        """Return the verdict once the others are known to wait this share of the time, in %."""
        changed = share < self._limit * EASED if self._strained else share > self._limit
        if changed and now - self._decided >= STEADY:
            self._strained = not self._strained
            self._decided = now
        return self._strained


def judge_hours(periods: Sequence[Period], local: datetime) -> Problem | None:
    """Return that these are quiet hours, and until when in local time, if they are."""
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
        "It goes on by itself then; limits.quiet_hours says when these hours are.",
    )


def judge_program(running: str | None) -> Problem | None:
    """Return that a program is running during which nothing is sent, if one is."""
    if running is None:
        return None
    return Problem(
        ACQUISITION,
        f"{running} is running: nothing new is sent.",
        "It goes on by itself when the program has ended.",
    )


RENEW_INTERVAL: Final = 1.0  # seconds between two looks
DROWSY: Final = 30.0  # seconds without a byte after which the computer may sleep


class SleepGuard:
    """Looks again and again whether bytes have moved; a held or waiting run keeps nobody awake."""

    def __init__(self, wakefulness: Wakefulness, progress: RunProgress, clock: Clock) -> None:
        self._wakefulness = wakefulness
        self._progress = progress
        self._clock = clock
        self._moved_at: float | None = None

    def __call__(self) -> None:
        """Look once."""
        now = self._clock.monotonic()
        if self._progress.totals.byte_rate:
            self._moved_at = now
            self._wakefulness.keep()
        elif self._moved_at is not None and now - self._moved_at >= DROWSY:
            self._moved_at = None
            self._wakefulness.end()
