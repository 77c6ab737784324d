"""The gate at which a whole run waits, the backoff between attempts, and the guards of a run."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import inf
from random import Random
from typing import Final, TypeVar

from mydata_like.core.errors import (
    AccessDeniedError,
    Cancelled,
    HostKeyError,
    NotApprovedError,
    Problem,
    RunError,
    ServerUnavailableError,
    StagingError,
    UploaderError,
    WaitRequestedError,
)
from mydata_like.core.events import Notice, RetryScheduled, RunPaused, RunResumed
from mydata_like.core.ports import CancelSignal, Clock, Emit, SystemLoad, Wakefulness
from mydata_like.engine.pipeline import Lock
from mydata_like.engine.progress import RunProgress
from mydata_like.settings.schedule_section import WEEKDAYS, Period, find_end, parse_period
from mydata_like.settings.transfer_sections import Limits

T = TypeVar("T")

SHORTEST_DELAY = 1.0
LONGEST_DELAY = 300.0
FIRST_PROBE = 5.0
LONGEST_PROBE = 60.0
CHECK_INTERVAL = 0.5  # seconds between checks by those who wait at the gate

# Names of the reasons while one caller is probing.
_SERVER: Final = "server"  # it stops all callers
_STAGING: Final = "staging"  # it stops those that use the staging hosts
_CONDITIONS: Final = frozenset({_SERVER, _STAGING})

# Errors for which a run waits until the cause is fixed elsewhere.
PAUSING = (
    AccessDeniedError,
    NotApprovedError,
    HostKeyError,
    StagingError,
    ServerUnavailableError,
)


class Gate:
    """A gate where a run waits: for the next attempt, for the user, or for a condition to end.

    A condition that stops one caller stops all: one of them probes repeatedly, at growing
    intervals, and the others wait until it succeeds. Each condition is reported once. A condition
    of the staging hosts stops only callers that use them: what has arrived there is registered and
    verified in the meantime.

    A hold has less effect: nothing is sent until it is released, transfers in progress wait where
    they are (`ChannelPool.keep`), and what has arrived is registered and verified. Several holds
    with different names may exist at once. The newest of all reasons is reported, and the end of
    the pause once none is left.
    """

    def __init__(
        self,
        clock: Clock,
        cancel: CancelSignal,
        emit: Emit,
        random: Random,
        *,
        patience: Callable[[RunError], float] = lambda error: inf,
    ) -> None:
        self.clock = clock
        self.cancel = cancel
        self._emit = emit
        self._random = random
        self._patience = patience
        self._lock = Lock()
        self._reasons: dict[str, Problem] = {}  # why the run waits, by name, the newest last
        self._reported: Problem | None = None
        self._hurried: set[str] = set()  # conditions to probe at once
        self._given_up: set[str] = set()  # conditions that lasted longer than the patience
        self._holdable = True
        self._closed_at = 0.0
        self.stopped = 0.0  # total seconds for which conditions have stopped all callers

    def call(self, action: Callable[[], T], *, staging: bool = False) -> T:
        """Return the result of `action`, after as many pauses as necessary.

        `staging` is whether it uses the staging hosts. Errors that concern one file only are raised
        to the caller. A condition that lasts longer than the patience for it (seconds, possibly
        none) is raised as well, to all callers.
        """
        condition = _STAGING if staging else _SERVER
        while True:
            self._wait_open(condition)
            try:
                return action()
            except UploaderError as error:
                if self.cancel.is_set():  # the failure is a result of the cancellation
                    raise Cancelled from error
                if not isinstance(error, PAUSING) or self._patience(error) <= 0:
                    raise
                if condition in self._given_up:
                    raise
                if self._close(_describe_outage(error), condition):
                    return self._probe(action, error, condition)

    def pause(self, error: RunError, look: Callable[[], None]) -> None:
        """Stop all callers after an error until `look` succeeds, or longer than the patience.

        Raises the error if another caller is probing already.
        """
        if self._patience(error) <= 0 or _SERVER in self._given_up:
            raise error
        if not self._close(_describe_outage(error), _SERVER):
            raise error
        self._probe(look, error, _SERVER)

    def backoff(self, attempt: int) -> float:
        """Return a delay after so many failures: exponential, and random (jitter).

        So uploaders do not retry in step.
        """
        upper = min(LONGEST_DELAY, SHORTEST_DELAY * 3.0 ** min(attempt, 9))
        return self._random.uniform(SHORTEST_DELAY, upper)

    def rest(self, seconds: float) -> None:
        """Wait for so many seconds; raises `Cancelled` if the run is cancelled."""
        if self.cancel.wait(seconds):
            raise Cancelled

    def hold(self, name: str, problem: Problem) -> None:
        """Send nothing until `release` of this name; a different problem is reported again."""
        with self._lock:
            if self._holdable and self._reasons.get(name) != problem:
                self._add_reason(name, problem)

    def release(self, name: str) -> None:
        """End the hold of this name, if it exists."""
        with self._lock:
            self._remove_reason(name)

    def lift_holds(self) -> None:
        """Release all holds and refuse new ones: the run is ending."""
        with self._lock:
            self._holdable = False
            for name in self._reasons.keys() - _CONDITIONS:
                self._remove_reason(name)

    @property
    def held(self) -> bool:
        """Whether nothing may be sent now."""
        with self._lock:
            return not self._reasons.keys() <= _CONDITIONS

    @property
    def waits(self) -> bool:
        """Whether the run waits for anything."""
        return bool(self._reasons)

    @property
    def problem(self) -> Problem | None:
        """Why the run waits, as last reported; None if it does not wait."""
        return self._reported

    def wait_released(self) -> None:
        """Wait until no hold is left; call this before sending."""
        while self.held:
            self.rest(CHECK_INTERVAL)

    def hurry(self) -> None:
        """Probe immediately whether a condition has ended."""
        with self._lock:
            self._hurried.update(_CONDITIONS & self._reasons.keys())

    def _add_reason(self, name: str, problem: Problem) -> None:
        self._reasons.pop(name, None)
        self._reasons[name] = problem
        self._report()

    def _remove_reason(self, name: str) -> None:
        if self._reasons.pop(name, None):
            self._report()

    def _report(self) -> None:
        """Report why the run waits now, or that it continues, unless that was the last report."""
        newest = next(reversed(self._reasons.values()), None)
        if newest == self._reported:
            return
        self._reported = newest
        if newest is not None:
            self._emit(RunPaused(problem=newest))
        elif not self.cancel.is_set():
            self._emit(RunResumed())

    def _wait_open(self, condition: str) -> None:
        while _SERVER in self._reasons or condition in self._reasons:
            self.rest(CHECK_INTERVAL)
        if self.cancel.is_set():
            raise Cancelled

    def _close(self, problem: Problem, condition: str) -> bool:
        """Return whether the caller is to probe, as no one else does yet."""
        with self._lock:
            if condition in self._reasons:
                return False
            self._add_reason(condition, problem)
            if condition == _SERVER:
                self._closed_at = self.clock.monotonic()
            return True

    def _probe(self, action: Callable[[], T], error: RunError, condition: str) -> T:
        begun = self.clock.monotonic()
        interval, given_up = FIRST_PROBE, False
        reported, reported_until = error, begun + _find_rest(error)
        try:
            while True:
                left = begun + self._patience(error) - self.clock.monotonic()
                if left <= 0:
                    given_up = True
                    self._given_up.add(condition)
                    raise error
                # A server that asks us to wait is asked again before only if that takes long.
                wanted = _find_rest(error) or interval
                interval *= 2  # exponential backoff
                delay = min(wanted, LONGEST_PROBE, left)
                self._emit(RetryScheduled(at=self.clock.now() + timedelta(seconds=delay)))
                due = self.clock.monotonic() + delay
                while (rest := due - self.clock.monotonic()) > 0 and condition not in self._hurried:
                    self.rest(min(rest, CHECK_INTERVAL))
                self._hurried.discard(condition)
                try:
                    return action()
                except PAUSING as again:
                    error = again
                    now = self.clock.monotonic()
                    if again.problem_code != reported.problem_code or 0 < reported_until <= now:
                        with self._lock:
                            self._add_reason(condition, _describe_outage(again))
                        reported, reported_until = again, now + _find_rest(again)
        finally:
            with self._lock:
                if condition == _SERVER:
                    self.stopped += self.clock.monotonic() - self._closed_at
                if given_up:  # the run ends here
                    self._reasons.pop(condition, None)
                else:
                    self._remove_reason(condition)


def _find_rest(error: RunError) -> float:
    """Return for how many seconds the server asks us to wait; 0 if it does not."""
    return error.rest if isinstance(error, WaitRequestedError) else 0.0


def _describe_outage(error: UploaderError) -> Problem:
    """Return the problem of a condition; that of an outage says when the run tries again.

    So does that of a staging area. What ends a run must not promise that.
    """
    problem = error.problem
    if not isinstance(error, ServerUnavailableError | StagingError):
        return problem
    again = f"The run tries again automatically, {LONGEST_PROBE:.0f} seconds later at most."
    return problem._replace(hint=f"{problem.hint} {again}".strip())


LOAD_CHECK_INTERVAL: Final = 3.0  # seconds between two checks
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
        self._strained = False
        self._decided = -inf  # when that was last decided
        self._load = load
        self._gate = gate
        self._emit = emit

    def __call__(self) -> None:
        """Check once, and hold or release the run."""
        local = self._gate.clock.now().astimezone()
        problems = {QUIET_HOURS: judge_hours(self._hours, local)}
        if self._programs:
            problems[ACQUISITION] = judge_program(self._load.find_program(self._programs))
        if self._limit:
            problems[PRESSURE] = self._judge_pressure()
        for name, problem in problems.items():
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
        # Hysteresis, against rapid changes:
        limit, now = self._limit, self._gate.clock.monotonic()
        changed = share < limit * RELEASE_SHARE if self._strained else share > limit
        if changed and now - self._decided >= STEADY:
            self._strained = not self._strained
            self._decided = now
        if not self._strained:
            return None
        return Problem(
            PRESSURE,
            f"Other programs wait for disk or memory more than {limit:g} % of the time. "
            "Nothing new is sent.",
            "Sending resumes automatically when they wait less than half of that.",
        )


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
        f"Quiet hours: nothing is sent until {day}{end:%H:%M}.",
        "Sending resumes automatically then. The hours are set in limits.quiet_hours.",
    )


def judge_program(running: str | None) -> Problem | None:
    """Return a problem if a program is running during which nothing is sent."""
    if running is None:
        return None
    return Problem(
        ACQUISITION,
        f"{running} is running: nothing is sent.",
        "Sending resumes automatically when the program ends.",
    )


RENEW_INTERVAL: Final = 1.0  # seconds between two checks
IDLE_TIME: Final = 30.0  # seconds without progress after which the computer may sleep


class SleepGuard:
    """A guard that prevents sleep while files are sent and verified.

    It does not do so while a run is held or waits. The progress says whether it works.
    """

    def __init__(self, wakefulness: Wakefulness, progress: RunProgress, clock: Clock) -> None:
        self._wakefulness = wakefulness
        self._progress = progress
        self._clock = clock
        self._moved_at: float | None = None
        self._verified = 0  # in this run

    def __call__(self) -> None:
        """Check once."""
        now = self._clock.monotonic()
        totals, verified = self._progress.totals, self._verified
        self._verified = totals.done.records
        if totals.byte_rate or self._verified > verified:
            self._moved_at = now
            self._progress.awake = self._wakefulness.keep()
        elif self._moved_at is not None and now - self._moved_at >= IDLE_TIME:
            self._moved_at = None
            self._progress.awake = False
            self._wakefulness.end()
