"""The gate at which a whole run waits, and the delays between attempts."""

from collections.abc import Callable
from math import inf
from random import Random
from typing import TypeVar

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
)
from mydata_like.core.events import RunPaused, RunResumed
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.engine.pipeline import Lock

T = TypeVar("T")

SHORTEST_DELAY = 1.0
LONGEST_DELAY = 300.0
FIRST_PROBE = 5.0
LONGEST_PROBE = 60.0
CHECK_INTERVAL = 0.5  # seconds between checks by those who wait at the gate

_CONDITION = "condition"  # name of the reason while one caller is probing

# Errors that pause the whole run until the cause is fixed elsewhere.
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
    intervals, and the others wait until it succeeds. Each condition is reported once.

    A hold has less effect: nothing new is sent until it is released, but transfers in progress are
    finished, registered and verified. Several holds with different names may exist at once. The
    newest of all reasons is reported, and the end of the pause once none is left.
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
        self._hurried = False
        self._holdable = True
        self._closed_at = 0.0
        self.stopped = 0.0  # total seconds for which conditions have stopped all callers

    def call(self, action: Callable[[], T]) -> T:
        """Return the result of `action`, after as many pauses as necessary.

        Errors that concern one file only are raised to the caller. A condition that lasts longer
        than the patience for it (seconds, possibly none) is raised as well.
        """
        while True:
            self._wait_open()
            try:
                return action()
            except UploaderError as error:
                if self.cancel.is_set():  # the failure is a result of the cancellation
                    raise Cancelled from error
                if not isinstance(error, PAUSING) or self._patience(error) <= 0:
                    raise
                if self._close(error.problem):
                    return self._probe(action, error)

    def delay(self, attempt: int, asked: float = 0.0) -> float:
        """Return a random delay after so many failures; it keeps uploaders from retrying in step.

        It is at least what the server `asked` for (`TransientError.retry_after`).
        """
        upper = min(LONGEST_DELAY, SHORTEST_DELAY * 3.0 ** min(attempt, 9))
        return max(asked, self._random.uniform(SHORTEST_DELAY, upper))

    def rest(self, seconds: float) -> None:
        """Wait for so many seconds; raises `Cancelled` if the run is cancelled."""
        if self.cancel.wait(seconds):
            raise Cancelled

    def hold(self, name: str, problem: Problem) -> None:
        """Send nothing new until `release` of this name; a different problem is reported again."""
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
            for name in self._reasons.keys() - {_CONDITION}:
                self._remove_reason(name)

    @property
    def held(self) -> bool:
        """Whether nothing new may be sent now."""
        with self._lock:
            return len(self._reasons) > (_CONDITION in self._reasons)

    @property
    def waits(self) -> bool:
        """Whether the run waits for anything."""
        return bool(self._reasons)

    def wait_released(self) -> None:
        """Wait until no hold is left; call this before sending."""
        while self.held:
            self.rest(CHECK_INTERVAL)

    def hurry(self) -> None:
        """Probe immediately whether a condition has ended."""
        with self._lock:
            self._hurried = _CONDITION in self._reasons

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

    def _wait_open(self) -> None:
        while _CONDITION in self._reasons:
            self.rest(CHECK_INTERVAL)
        if self.cancel.is_set():
            raise Cancelled

    def _close(self, problem: Problem) -> bool:
        """Return whether the caller is to probe, as no one else does yet."""
        with self._lock:
            if _CONDITION in self._reasons:
                return False
            self._add_reason(_CONDITION, problem)
            self._closed_at = self.clock.monotonic()
            return True

    def _probe(self, action: Callable[[], T], error: RunError) -> T:
        begun = self.clock.monotonic()
        interval, given_up = FIRST_PROBE, False
        try:
            while True:
                if self.clock.monotonic() - begun >= self._patience(error):
                    given_up = True
                    raise error
                self._rest_until_probe(interval)
                interval = min(interval * 2, LONGEST_PROBE)
                try:
                    return action()
                except PAUSING as again:
                    error = again
                    self._report_change(again.problem)
        finally:
            self._open(report=not given_up)

    def _rest_until_probe(self, interval: float) -> None:
        due = self.clock.monotonic() + interval
        while (rest := due - self.clock.monotonic()) > 0 and not self._hurried:
            self.rest(min(rest, CHECK_INTERVAL))
        self._hurried = False

    def _report_change(self, problem: Problem) -> None:
        with self._lock:
            if self._reasons[_CONDITION].code != problem.code:
                self._add_reason(_CONDITION, problem)

    def _open(self, *, report: bool) -> None:
        """Let all callers continue; this is not reported if the run ends here."""
        with self._lock:
            self.stopped += self.clock.monotonic() - self._closed_at
            if report:
                self._remove_reason(_CONDITION)
            else:
                self._reasons.pop(_CONDITION, None)
