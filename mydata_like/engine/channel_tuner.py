"""The search for the number of channels with the highest throughput."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final, NamedTuple

from mydata_like.core.formatting import format_size
from mydata_like.core.model import Payload
from mydata_like.core.ports import Clock
from mydata_like.engine.pipeline import Lock


class ThroughputSample(NamedTuple):
    """The totals at one moment; `busy` is the sum of the seconds that each channel was active.

    `idle` is the sum of the idle seconds of this computer's processors, None if it is not measured.
    """

    moment: float
    bytes: float
    files: float
    busy: float
    idle: float | None = None


class ThroughputMeter:
    """Totals that channels update as they send; safe to use from any thread.

    `measure_idle` returns the sum of the processors' idle seconds, None if unknown.
    """

    def __init__(
        self, clock: Clock, measure_idle: Callable[[], float | None] = lambda: None
    ) -> None:
        self._clock = clock
        self._lock = Lock()
        self._sample = ThroughputSample(clock.monotonic(), 0.0, 0.0, 0.0)
        self._at_work = 0
        self._measure_idle = measure_idle

    def read(self) -> ThroughputSample:
        """Return the current totals."""
        idle = self._measure_idle()
        with self._lock:
            return self._update()._replace(idle=idle)

    @contextmanager
    def one_at_work(self) -> Iterator[None]:
        """Count a channel as active in this context."""
        self._change(+1)
        try:
            yield
        finally:
            self._change(-1)

    def add(self, size: float, files: float) -> None:
        """Count bytes and files that have been sent."""
        with self._lock:
            sample = self._sample
            self._sample = sample._replace(bytes=sample.bytes + size, files=sample.files + files)

    def _change(self, step: int) -> None:
        with self._lock:
            self._update()
            self._at_work += step

    def _update(self) -> ThroughputSample:
        moment = self._clock.monotonic()
        busy = self._sample.busy + self._at_work * (moment - self._sample.moment)
        self._sample = self._sample._replace(moment=moment, busy=busy)
        return self._sample


START: Final = 2
# (minimum round trip in seconds, initial number of channels)
LONG_ROUND_TRIPS: Final = ((0.02, 8), (0.005, 4))
LARGE: Final = 8 * 1024 * 1024  # bytes; several such files are hashed together, which takes less
LARGE_START: Final = 8  # processor time, so a run that begins with one starts with more channels

WARM_UP: Final = 1.0  # active seconds before measuring: TCP windows open, other connections adapt
WINDOW: Final = 2.0  # seconds that are measured together
LONGEST_WINDOW: Final = 16.0  # seconds; long enough for a mix of large and tiny files
BUSY: Final = (0.8, 1.1)  # active channels, as a share of the intended number
LIMITED: Final = 0.75  # share of the bandwidth limit from which on the limit determines the speed

SPARE: Final = 0.3  # processors; if fewer are idle, more channels would only compete for them

# The cost of a file in addition to its bytes, in bytes. Channels on one machine send 20,000 tiny
# files or about 400 MB in a second.
FILE_WORTH: Final = 20_000
ALIKE: Final = 0.35  # by which the share of the work due to the number of files may differ

GAIN: Final = 1.05  # a smaller gain counts as none: fewer channels are as good
WORSE: Final = 1.5  # by which two channels must beat four before one is tried: a run slows by less
INCONCLUSIVE: Final = (0.92, 1.15)  # gains that one window cannot tell from none
WINDOWS: Final = 3  # windows that can
NEAR: Final = 0.8  # share of the best speed from which on the numbers in between may be better

EXPECTED: Final = (0.6, 1.6)  # share of the known speed; outside of it, conditions have changed
RETURNS: Final = 2  # times that the best number is measured again
SEARCH_PAUSE: Final = 30.0  # seconds between searches; doubled after each unsuccessful one
PROBE_AFTER: Final = 300.0  # seconds after which other numbers are tried in any case


class ChannelSpeed(NamedTuple):
    """Throughput per second."""

    bytes: float
    files: float

    @property
    def work(self) -> float:
        """Bytes and files as one figure, weighted by their cost."""
        return self.bytes + FILE_WORTH * self.files

    @property
    def part_of_files(self) -> float:
        """The share of the work that is due to the number of files."""
        return FILE_WORTH * self.files / self.work if self.work else 0.0

    def is_like(self, other: "ChannelSpeed") -> bool:
        """Return whether both measure the same kind of work and can be compared."""
        return abs(self.part_of_files - other.part_of_files) <= ALIKE


class ChannelTuner:
    """The search for the best number of channels, driven by throughput samples.

    `channels` is the number to use now. A number is judged by windows in which all channels were
    active, and compared with the known numbers below and above it. The best number stays in use
    until the work or the link changes, or a long time has passed. Without an initial number, the
    search starts with one that depends on the round trip.
    """

    def __init__(self, channels: int = 0) -> None:
        self.channels = channels or START
        self._begun = self._started = bool(channels)
        self._window = _SpeedSample()
        self._seconds = WINDOW
        self._speeds: dict[int, ChannelSpeed] = {}  # by number of channels, as far as comparable
        self._windows = 0  # windows behind the speed of the current number
        self._settled = -inf
        self._searching = True
        self._origin = self.channels  # where the search began
        self._usual = START  # the number that a run over this link starts with
        self._pause = SEARCH_PAUSE
        self._returns = 0
        self._unexpected = 0
        self._full = False  # whether the processors were fully used in the last window
        self._held_back = False  # whether only full processors ended the search

    def interrupt(self) -> None:
        """Discard the current window: the run is waiting."""
        self._window = _SpeedSample()

    def begin(self, round_trip: float, ceiling: int) -> str:
        """Start with more channels if the round trip is long, since waiting costs nothing.

        Return the reason, as `look` does. Only the first call with a known `round_trip` (seconds, 0
        while unknown) has an effect.
        """
        if self._begun or not round_trip:
            return ""
        self._begun = True
        wanted = next((number for far, number in LONG_ROUND_TRIPS if round_trip >= far), START)
        return self._start_with(wanted, ceiling, f"a round trip takes {round_trip * 1e3:.0f} ms")

    def expect(self, payload: Payload, ceiling: int) -> str:
        """Start with more channels if the first payload is a large file; return the reason."""
        started, self._started = self._started, True
        if started or payload.batched or payload.size < LARGE:
            return ""
        return self._start_with(LARGE_START, ceiling, "large files")

    def _start_with(self, wanted: int, ceiling: int, why: str) -> str:
        """Start with a higher number as far as it is allowed; return the reason, if so."""
        wanted = min(wanted, ceiling)
        if wanted <= self.channels:
            return ""
        self._move(wanted)
        self._origin = self._usual = wanted
        return f"{why}: starting with {wanted}"

    def look(self, sample: ThroughputSample, ceiling: int, bandwidth: float = 0.0) -> str:
        """Process a sample; return why `channels` has changed, or an empty text.

        At most `ceiling` channels are allowed, and `bandwidth` bytes a second, 0 for no limit.
        """
        if self.channels > ceiling:
            self._move(ceiling)
            self._origin = min(self._origin, ceiling)
            self._speeds = {number: s for number, s in self._speeds.items() if number <= ceiling}
        window = self._window
        speed = window.add(sample, self.channels, self._seconds)
        if speed is None or not speed.work:  # a stalled link gives no information
            return ""
        if bandwidth and speed.bytes > LIMITED * bandwidth:
            return ""
        self._full = window.spare is not None and window.spare < SPARE
        if self._searching:
            return self._search(speed, ceiling, sample.moment)
        return self._watch(speed, ceiling, sample.moment)

    def _search(self, speed: ChannelSpeed, ceiling: int, moment: float) -> str:
        if not all(speed.is_like(known) for known in self._speeds.values()):
            return self._start_over(moment)
        self._learn(speed)
        # The comparison with the best other number may need more windows.
        others = [known.work for number, known in self._speeds.items() if number != self.channels]
        least, most = (share * max(others, default=inf) for share in INCONCLUSIVE)
        if self._windows < WINDOWS and least < self._speeds[self.channels].work < most:
            return ""
        return self._choose(ceiling, moment)

    def _start_over(self, moment: float) -> str:
        """Restart the search at its origin, with windows long enough for more kinds of files.

        Earlier measurements do not apply to the new files.
        """
        here = self.channels
        self._forget()
        self._move(self._origin)
        self._seconds *= 2
        if self._seconds > LONGEST_WINDOW:
            self._seconds = LONGEST_WINDOW
            self._settle(moment)
        return f"different files: back to {self.channels}" if here != self.channels else ""

    def _watch(self, speed: ChannelSpeed, ceiling: int, moment: float) -> str:
        """Restart the search when it is due."""
        known = self._speeds.get(self.channels, speed)
        least, most = (share * known.work for share in EXPECTED)
        if speed.is_like(known) and least <= speed.work <= most:
            self._unexpected = 0
            self._learn(speed)
        else:
            self._unexpected += 1
        rested = moment - self._settled
        freed = self._held_back and not self._full
        if freed or rested >= PROBE_AFTER or (self._unexpected > 1 and rested >= self._pause):
            latest = speed if self._unexpected else self._speeds[self.channels]
            self._searching, self._origin = True, self.channels
            self._forget()
            self._learn(latest)
            return self._choose(ceiling, moment)
        return ""

    def _forget(self) -> None:
        self._speeds.clear()
        self._windows = 0
        self._returns = 0

    def _learn(self, speed: ChannelSpeed) -> None:
        """Add a window to the current number's speed, the average of the last few windows."""
        weight = 1 / min(self._windows + 1, WINDOWS)
        known = self._speeds.get(self.channels, speed)
        self._windows += 1
        self._speeds[self.channels] = ChannelSpeed(
            *(old + weight * (new - old) for old, new in zip(known, speed, strict=True))
        )

    def _choose(self, ceiling: int, moment: float) -> str:
        """Move to the next number to be measured, or else to the best one.

        The best one is measured again before the search ends: a run slows down when the server
        begins to verify, so early measurements may look better than later ones.
        """
        most = max(speed.work for speed in self._speeds.values())
        # The smallest number that is as fast as any:
        best = min(n for n, speed in self._speeds.items() if speed.work * GAIN >= most)
        stale = self._returns and best != self.channels
        self._held_back = self._full and max(self._speeds) == best < ceiling
        unknown = None if stale else self._find_unknown(best, ceiling)
        wanted = unknown or best
        reason = self._explain(wanted)
        self._returns += unknown is None
        self._move(wanted)
        if unknown is None and (not reason or self._returns > RETURNS):
            self._settle(moment)
        return reason

    def _find_unknown(self, best: int, ceiling: int) -> int | None:
        """Return the number to try next, None if there is none.

        First comes twice the best number, unless the processors are full. If that is slower, or the
        processors are full with more channels than a run starts with, half the number follows; a
        single channel is tried only if more are far slower. Numbers between the best one and a
        neighbor nearly as good come last.
        """
        above = min((number for number in self._speeds if number > best), default=0)
        below = max((number for number in self._speeds if number < best), default=0)
        if not above and best < ceiling and not self._full:
            return min(2 * best, ceiling)
        margin = GAIN if best > START else WORSE
        is_too_much = above and self._share(above, best) * margin < 1
        if not below and (is_too_much or (self._full and best > self._usual)):
            return best // 2 or None
        rivals = [
            number
            for number in (above, below)
            if abs(number - best) >= max(best / 2, 2) and self._share(number, best) > NEAR
        ]
        if not rivals:
            return None
        return (best + max(rivals, key=lambda number: self._share(number, best))) // 2

    def _share(self, number: int, best: int) -> float:
        """Return the speed of a number relative to that of the best one; 0 if unknown."""
        known = self._speeds.get(number)
        return known.work / self._speeds[best].work if known else 0.0

    def _explain(self, wanted: int) -> str:
        """Return why the number of channels changes to `wanted`; empty if it does not."""
        here = self.channels
        if wanted == here:
            return ""
        decision = f"back to {wanted}" if wanted in self._speeds else f"trying {wanted}"
        carried = f"{'carry' if here > 1 else 'carries'} {self._format_speed(here)}: {decision}"
        others = self._speeds.keys() - {here}
        if not others:
            return f"{_count(here)} {carried}"
        other = max(others, key=lambda number: self._speeds[number].work)
        return f"{_count(other)} carried {self._format_speed(other)}, {here} {carried}"

    def _format_speed(self, number: int) -> str:
        speed = self._speeds[number]
        if speed.part_of_files > 0.5:
            return f"{speed.files:,.0f} files/s"
        return f"{format_size(speed.bytes)}/s"

    def _move(self, channels: int) -> None:
        if channels != self.channels:
            self.channels = channels
            self._windows = 0
            self.interrupt()

    def _settle(self, moment: float) -> None:
        in_vain = self.channels == self._origin and not self._held_back
        self._pause = min(2 * self._pause, PROBE_AFTER) if in_vain else SEARCH_PAUSE
        self._searching = False
        self._settled = moment
        self._unexpected = 0


class _SpeedSample:
    """A period in which all channels were active.

    `spare` is the number of idle processors of this computer in the last one, None if unknown.
    """

    def __init__(self) -> None:
        self.spare: float | None = None
        self._last: ThroughputSample | None = None
        self._busy_since: float | None = None
        self._begin: ThroughputSample | None = None

    def add(self, sample: ThroughputSample, channels: int, length: float) -> ChannelSpeed | None:
        """Return the speed once the period has the requested length."""
        last, self._last = self._last, sample
        if last is None or not _all_busy(last, sample, channels):
            self._busy_since = self._begin = None
            return None
        if self._busy_since is None:
            self._busy_since = last.moment
        if self._begin is None:
            if sample.moment - self._busy_since >= WARM_UP:
                self._begin = sample
            return None
        seconds = sample.moment - self._begin.moment
        if seconds < length:
            return None
        begin, self._begin = self._begin, sample
        if begin.idle is not None and sample.idle is not None:
            self.spare = (sample.idle - begin.idle) / seconds
        return ChannelSpeed(
            (sample.bytes - begin.bytes) / seconds, (sample.files - begin.files) / seconds
        )


def _all_busy(before: ThroughputSample, after: ThroughputSample, channels: int) -> bool:
    """Return whether all channels were active, and no more than intended."""
    seconds = after.moment - before.moment
    least, most = (share * channels * seconds for share in BUSY)
    return seconds > 0 and least <= after.busy - before.busy <= most


def _count(channels: int) -> str:
    return f"{channels} channel{'s' * (channels != 1)}"
