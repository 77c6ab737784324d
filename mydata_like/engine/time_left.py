"""The time that a run still needs, learnt as the run goes on.

Sending takes time for each byte and for each file, and the server takes time for each record while
files are sent. Small files first and large ones afterwards, or the other way round, would make an
estimate by bytes or by files alone wrong by any factor.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

FILE_COSTS: Final = tuple(0.0001 * 10 ** (step / 8) for step in range(41))  # 0.1 ms to 10 s
BELIEF: Final = 0.0005  # weight of what earlier runs have shown against what this one shows
SAMPLES: Final = 64  # of the run so far, spread evenly
SPACING: Final = 1.0  # seconds between samples, at first
EARLIEST: Final = 3.0  # seconds until the first estimate of a run without history
FLOW: Final = 5.0  # seconds of work after which the speed of this run counts, no earlier one's
RECENT: Final = 8.0  # seconds over which the present rates are measured
LEAST, MOST = 0.5, 3.0  # an estimate, at least and at most, by the time at the present rates
BACKLOG: Final = 10  # files that wait for the server while its own speed can be measured,
FULL: Final = 40  # the same, if requests are full and several of them are on their way
RECORDS: Final = 50  # records for which an earlier run counts against those of this run,
GUESS: Final = 3  # and for which a guess counts
SMOOTHING: Final = 3.0  # seconds in which an estimate follows a change
RISE: Final = 1.2  # factor by which an estimate may rise at once without more work
SHORT: Final = 10.0  # seconds below which a rise does not matter


class Work(NamedTuple):
    """An amount of work: bytes and files to send, and records that the server must verify."""

    bytes: int
    files: float
    records: int


NO_WORK: Final = Work(0, 0.0, 0)


class Costs(NamedTuple):
    """The seconds for sending a byte and a file, and for a record on the server."""

    byte: float
    file: float
    record: float

    def seconds_for(self, work: Work) -> float:
        """Return how long the work takes; the server works while files are sent."""
        return max(self.byte * work.bytes + self.file * work.files, self.record * work.records)


USUAL: Final = Costs(0.0, 0.005, 0.001)  # of a file and a record, where no run has shown them yet
_KEYS: Final = tuple(f"{name}_cost" for name in Costs._fields)


def find_costs(runs: Iterable[Mapping[str, object]]) -> Costs | None:
    """Return the costs in the first of these records of runs that has any."""
    for run in runs:
        costs = [cost for key in _KEYS if isinstance(cost := run.get(key), float)]
        if len(costs) == len(_KEYS) and all(0 <= cost < math.inf for cost in costs) and costs[1]:
            return Costs(*costs)
    return None


def record_costs(costs: Costs) -> dict[str, float]:
    """Return costs as `find_costs` finds them in the record of a run."""
    return dict(zip(_KEYS, costs, strict=True))


class TimeLeft:
    """The estimate for one run. Times are in seconds of any clock that never goes back."""

    def __init__(self) -> None:
        self.history: Costs | None = None  # of an earlier run
        self.measured: Costs | None = None  # of this run
        self._samples: list[tuple[float, Work]] = []  # seconds of work, and the work done
        self._spacing = SPACING
        self._recent: deque[tuple[float, Work]] = deque()  # the same, since the limit is the same
        self._limit = 0.0
        self._busy = 0.0  # seconds in which the run was not paused since it began to work
        self._seen: tuple[float, Work, int] | None = None  # the latest moment, work, backlog
        self._shown: tuple[float, float, Work] | None = None  # busy seconds, estimate, work left
        # The server's time for its records, from one to the next while more files waited.
        self._served = self._records = 0.0
        self._waiting_since: float | None = None

    def estimate(
        self,
        now: float,
        done: Work,
        left: Work,
        *,
        backlog: int,
        paused: bool,
        limit: float = 0.0,
    ) -> float | None:
        """Return the seconds for the work that is left, None if they are not known yet.

        `backlog` is the number of files that have arrived and are not verified; `limit` is that of
        all channels in bytes a second, 0 for none. The estimate follows a change slowly, unless
        there is more work or another limit, and as far as the present rates allow.
        """
        same = limit == self._limit
        if not same:
            self._limit = limit
            self._recent.clear()
        if any(done) or self._seen is not None:
            self._observe(now, done, backlog, paused=paused)
        if not left.records:
            return 0.0
        expected = before = passed = 0.0
        steady = same and self._shown is not None and not _exceeds(left, self._shown[2])
        if self._shown is not None:
            then, before, _ = self._shown
            passed = self._busy - then
            expected = max(0.0, before - passed)
            if steady and passed < SPACING:
                return expected
        guessed = self.measured is None
        costs = self._find_costs(done)
        if costs is None:
            return None
        steady = steady and (self.measured is None or not guessed)
        # If fewer files arrive now than on average later, because large ones are sent first, the
        # server works longest after these.
        lasted, recent = self._measure_recent(done)
        arrivals = recent.files / max(SPACING, lasted)
        large = costs.byte * left.bytes
        late = max(0.0, left.files - arrivals * large)
        seconds = max(costs.seconds_for(left), large + costs.record * late)
        if steady:
            seconds = expected + (seconds - expected) * (1 - math.exp(-passed / SMOOTHING))
            seconds = min(seconds, max(SHORT, before * RISE))
        seconds = self._bound(seconds, done, left, backlog)
        self._shown = self._busy, seconds, left
        return seconds

    def _observe(self, now: float, done: Work, backlog: int, *, paused: bool) -> None:
        """Take a sample of the work, and the time of new records.

        While few files wait, requests are not full, so a record takes longer than it needs to; that
        counts less.
        """
        then, before, waited = self._seen or (now, done, 0)
        self._busy += 0.0 if paused else now - then
        if records := done.records - before.records:
            if self._waiting_since is not None:
                share = min(1.0, waited / FULL) ** 2
                self._served += (self._busy - self._waiting_since) * share
                self._records += records * share
            self._waiting_since = self._busy
        if backlog < BACKLOG:
            self._waiting_since = None
        self._seen = now, done, backlog
        if not self._recent or self._busy - self._recent[-1][0] >= SPACING:
            self._recent.append((self._busy, done))
        while len(self._recent) > 1 and self._recent[1][0] <= self._busy - RECENT:
            self._recent.popleft()
        if not self._samples or self._busy - self._samples[-1][0] >= self._spacing:
            self._samples.append((self._busy, done))
        if len(self._samples) > SAMPLES:
            del self._samples[1::2]
            self._spacing *= 2

    def _find_costs(self, done: Work) -> Costs | None:
        """Return the costs that explain the run so far, at first together with earlier ones.

        Those of a byte and a file follow if sending has become faster or slower recently.
        """
        early = self._busy < (FLOW if self.history else EARLIEST)
        if early or not _exceeds(done, self._samples[0][1]):
            return self.history
        usual, weight = self.history or USUAL, RECORDS if self.history else GUESS
        record = (self._served + weight * usual.record) / (self._records + weight)
        costs = min(
            (self._explain(done, Costs(0.0, file, record)) for file in FILE_COSTS),
            key=lambda it: self._error(it) + BELIEF * math.log(it.file / usual.file) ** 2,
        )
        lasted, recent = self._measure_recent(done)
        if lasted >= FLOW and _exceeds(recent, NO_WORK):
            sending = costs._replace(record=0.0).seconds_for(recent)
            trend = lasted / (sending or lasted)
            costs = costs._replace(byte=costs.byte * trend, file=costs.file * trend)
        if lasted >= FLOW and recent.records > 0:  # the server is at least that fast
            costs = costs._replace(record=min(record, lasted / recent.records))
        self.measured = costs
        return costs

    def _measure_recent(self, done: Work) -> tuple[float, Work]:
        """Return the last seconds of work, as far as the limit was the same, and what they did."""
        if not self._recent:
            return 0.0, NO_WORK
        began, before = self._recent[0]
        files, records = done.files - before.files, done.records - before.records
        return self._busy - began, Work(done.bytes - before.bytes, files, records)

    def _bound(self, seconds: float, done: Work, left: Work, backlog: int) -> float:
        """Return an estimate within what the present rates and the limit say about what is left.

        If the costs stay the same, sending takes neither longer than bytes or files by their rate,
        whichever takes longer, nor less than the other.
        """
        lasted, recent = self._measure_recent(done)
        rate = recent.bytes / lasted if lasted >= FLOW else 0.0
        if lasted >= FLOW and (recent.bytes > 0 or recent.files > 0):
            spans = [
                amount * lasted / moved if moved > 0 else math.inf
                for amount, moved in zip(left[:2], recent[:2], strict=True)
                if amount > 0 or moved > 0
            ]
            if recent.records > 0:
                server = left.records * lasted / recent.records
            else:
                server = math.inf if backlog >= BACKLOG else 0.0
            least, most = min(spans), max(*spans, server)
            if least < math.inf:
                seconds = min(max(seconds, LEAST * least), MOST * most)
        # What is compressed on its way passes a limit faster.
        return max(seconds, left.bytes / max(self._limit, rate)) if self._limit else seconds

    def _explain(self, done: Work, costs: Costs) -> Costs:
        """Return the costs by which what was sent took as long as it did; `file` is a maximum."""
        began, before = self._samples[0]
        seconds = self._busy - began
        size, files = done.bytes - before.bytes, done.files - before.files
        if size <= 0 or costs.file * files > seconds:
            return costs._replace(file=seconds / files if files > 0 else costs.file)
        return costs._replace(byte=(seconds - costs.file * files) / size)

    def _error(self, costs: Costs) -> float:
        """Return the mean squared error of the times of all samples, as a share of the time."""
        began, first = self._samples[0]
        took = began - costs.byte * first.bytes - costs.file * first.files
        errors = (
            busy - took - costs.byte * work.bytes - costs.file * work.files
            for busy, work in self._samples
        )
        return sum(error * error for error in errors) / len(self._samples) / self._busy**2


def _exceeds(work: Work, other: Work) -> bool:
    """Return whether there is more of one kind of work and no less of the others."""
    return work != other and all(mine >= its for mine, its in zip(work, other, strict=True))
