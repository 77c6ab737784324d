"""The sums of a run at one moment, and how fast they grow."""

from collections import deque
from dataclasses import dataclass

from mydata_like.core.events import RunProgressed
from mydata_like.core.ports import Clock

RATE_SECONDS = 10.0  # of the recent past that rates are taken from
RATE_STEP = 0.25


@dataclass(slots=True, kw_only=True)
class Totals:
    """The sums at one moment; found = verified + waiting + skipped + failed + open.

    `open` is what has no outcome yet. Rates are per second; `remaining` is seconds, None
    where nobody can tell.
    """

    found: int = 0
    found_bytes: int = 0
    known: int = 0  # of the verified: those that needed nothing in this run
    verified: int = 0
    verified_bytes: int = 0
    waiting: int = 0
    skipped: int = 0
    left_behind: int = 0  # files and folders; see `RunFinished`
    failed: int = 0
    wanted: int = 0
    wanted_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0
    registered: int = 0
    byte_rate: float = 0.0
    file_rate: float = 0.0
    remaining: float | None = None
    seconds: float = 0.0

    @property
    def open(self) -> int:
        return self.found - self.verified - self.waiting - self.skipped - self.failed

    @property
    def pending(self) -> int:
        """How many files were registered in this run and are not verified yet."""
        return max(0, self.registered - (self.verified - self.known))

    def as_progress(self) -> RunProgressed:
        """Return this as it is told while a run goes on."""
        return RunProgressed(
            found=self.found,
            found_bytes=self.found_bytes,
            checked=min(self.found, self.known + self.wanted + self.waiting + self.skipped),
            verified=self.verified,
            verified_bytes=self.verified_bytes,
            waiting=self.waiting,
            skipped=self.skipped,
            failed=self.failed,
            wanted=self.wanted,
            wanted_bytes=self.wanted_bytes,
            sent=self.sent,
            sent_bytes=self.sent_bytes,
            registered=self.registered,
            byte_rate=self.byte_rate,
            file_rate=self.file_rate,
            remaining=self.remaining,
            seconds=self.seconds,
        )


class Rate:
    """How much comes in a second, taken from the last seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: float | None = None
        self._steps: deque[tuple[float, int]] = deque()  # start of the step, amount

    def add(self, amount: int) -> None:
        now = self._clock.monotonic()
        self._first = now if self._first is None else self._first
        if self._steps and now - self._steps[-1][0] < RATE_STEP:
            begun, sum_so_far = self._steps[-1]
            self._steps[-1] = begun, sum_so_far + amount
        else:
            self._steps.append((now, amount))
            self._forget(now)

    def per_second(self) -> float:
        now = self._clock.monotonic()
        self._forget(now)
        if self._first is None:
            return 0.0
        span = min(RATE_SECONDS, max(now - self._first, RATE_STEP))
        return sum(amount for _, amount in self._steps) / span

    def _forget(self, now: float) -> None:
        while self._steps and now - self._steps[0][0] > RATE_SECONDS:
            self._steps.popleft()
