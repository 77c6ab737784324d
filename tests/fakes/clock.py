"""A clock that moves only when code waits on it."""

from datetime import UTC, datetime, timedelta

MONDAY = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FakeClock:
    """A clock for tests; waiting on one of its cancel flags moves it."""

    def __init__(self, start: datetime = MONDAY) -> None:
        self._start = start
        self._passed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    def move(self, seconds: float) -> None:
        self._passed += seconds

    def cancel(self) -> "FakeCancel":
        """Return a cancel flag whose waits move this clock."""
        return FakeCancel(self)


class FakeCancel:
    """A cancel flag; `waits` has the seconds of all waits that were not interrupted."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._due: float | None = None
        self.reason = ""
        self.waits: list[float] = []

    def set(self, reason: str = "") -> None:
        self.set_after(0.0, reason)

    def set_after(self, seconds: float, reason: str = "") -> None:
        if self._due is None:
            self._due = self._clock.monotonic() + seconds
            self.reason = reason

    def is_set(self) -> bool:
        return self._due is not None and self._clock.monotonic() >= self._due

    def wait(self, timeout: float) -> bool:
        if self._due is not None and self._due <= self._clock.monotonic() + timeout:
            self._clock.move(max(0.0, self._due - self._clock.monotonic()))
            return True
        self._clock.move(timeout)
        self.waits.append(timeout)
        return False
