"""Gauges what all channels carry together, and how busy they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mydata_like.core.model import Payload
from mydata_like.core.ports import Clock
from mydata_like.engine.workers import Lock


class Sight(NamedTuple):
    """What has been carried until a moment, in all; `busy` sums the seconds of each channel.

    `idle` are the seconds for which this computer's processors had nothing to do, each by itself;
    None where nobody counts them.
    """

    moment: float
    bytes: float
    files: float
    busy: float
    idle: float | None = None


class Gauge:
    """Counts as the channels carry; safe to use from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._sight = Sight(clock.monotonic(), 0.0, 0.0, 0.0)
        self._at_work = 0
        self._measure_idle: Callable[[], float | None] = lambda: None

    def count_idle(self, measure: Callable[[], float | None]) -> None:
        """Tell of the processors' idle time, too, as this measures it."""
        self._measure_idle = measure

    def read(self) -> Sight:
        """Return the sums of now."""
        idle = self._measure_idle()
        with self._lock:
            return self._bring_up()._replace(idle=idle)

    @contextmanager
    def one_at_work(self) -> Iterator[None]:
        """Count a channel as busy while this lasts."""
        self._change(+1)
        try:
            yield
        finally:
            self._change(-1)

    def add(self, size: float, files: float) -> None:
        """Count bytes and files that have gone."""
        with self._lock:
            sight = self._sight
            self._sight = sight._replace(bytes=sight.bytes + size, files=sight.files + files)

    def _change(self, step: int) -> None:
        with self._lock:
            self._bring_up()
            self._at_work += step

    def _bring_up(self) -> Sight:
        moment = self._clock.monotonic()
        busy = self._sight.busy + self._at_work * (moment - self._sight.moment)
        self._sight = self._sight._replace(moment=moment, busy=busy)
        return self._sight


class Progress:
    """Counts one payload as it travels; of its files, as many as of its bytes have gone."""

    def __init__(self, gauge: Gauge, payload: Payload) -> None:
        self._gauge = gauge
        self._size = payload.size
        self._files = sum(len(member.files) for member in payload.members)
        self._share = 0.0

    def reach(self, size: int) -> None:
        """Note that so many bytes of the payload have gone, in all."""
        share = size / self._size if self._size else 1.0
        step, self._share = share - self._share, share
        self._gauge.add(step * self._size, step * self._files)
