"""The active run in the window: its progress, and its throughput over time."""

from collections import deque
from typing import Final, NamedTuple

from mydata_like.core.ports import Clock
from mydata_like.engine.progress import ActiveTransfer, RunProgress

HISTORY_SECONDS: Final = 600.0
SAMPLE_SECONDS: Final = 0.45  # the minimum length of a sample


class ChannelRates(NamedTuple):
    """The throughput of each channel at one moment, in bytes per second."""

    at: float
    rates: dict[int, float]


class LiveView(NamedTuple):
    """The transfers and the throughput at one moment."""

    transfers: tuple[ActiveTransfer, ...]
    samples: tuple[ChannelRates, ...]


class LiveRun:
    """One active run; `progress` consumes its events."""

    def __init__(self, clock: Clock) -> None:
        self.progress = RunProgress(clock)
        self._clock = clock
        self._sampled_at = clock.monotonic()
        self._sampled: dict[int, int] = {}  # bytes by channel at that time
        self._samples: deque[ChannelRates] = deque()
        self._rates: dict[int, float] = {}  # smoothed, by transfer

    def sample(self) -> None:
        """Measure the channels since the previous sample, unless that is too recent."""
        now = self._clock.monotonic()
        passed = now - self._sampled_at
        if passed < SAMPLE_SECONDS:
            return
        sent = self.progress.bytes_by_channel
        more = {number: sent[number] - self._sampled.get(number, 0) for number in sent}
        rates = {number: carried / passed for number, carried in more.items() if carried}
        self._sampled_at, self._sampled = now, sent
        self._samples.append(ChannelRates(now, rates))
        while now - self._samples[0].at > HISTORY_SECONDS:
            self._samples.popleft()
        before = self._rates
        self._rates = {
            each.number: 0.7 * before.get(each.number, 0.0) + 0.3 * rates.get(each.channel, 0.0)
            for each in self.progress.transfers
        }

    def view(self) -> LiveView:
        """Return the current view."""
        transfers = (
            each._replace(rate=self._rates.get(each.number, 0.0))
            for each in self.progress.transfers
        )
        return LiveView(tuple(transfers), tuple(self._samples))
