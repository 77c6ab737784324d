"""The time that a run still needs, learnt as the run goes on.

Sending takes time for each byte and for each file, and the server takes time for each record while
files are sent. Small files first and large ones afterwards, or the other way round, would make an
estimate by bytes or by files alone wrong by any factor.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

FILE_COSTS: Final = tuple(0.0001 * 10 ** (step / 8) for step in range(41))  # 0.1 ms to 10 s
BELIEF: Final = 0.0005  # weight of what earlier runs have shown against what this one shows
SAMPLES: Final = 64  # of the run so far, spread evenly
SPACING: Final = 1.0  # seconds between samples, at first
EARLIEST: Final = 3.0  # seconds until the first estimate of a run without history
RECENT: Final = 10.0  # seconds, or a quarter of the run, from which the speed is taken
BACKLOG: Final = 10  # files that wait for the server while its own speed can be measured,
FULL: Final = 40  # the same, if requests are full and several of them are on their way
RECORDS: Final = 50  # records for which an earlier run counts against those of this run,
GUESS: Final = 3  # and for which a guess counts
FORGETTING: Final = 60.0  # seconds of the server's work after which they count a third as much
SMOOTHING: Final = 4.0  # seconds in which an estimate follows a change
RISE: Final = 1.2  # factor by which an estimate may rise at once without more work
SHORT: Final = 10.0  # seconds below which a rise does not matter


class Work(NamedTuple):
    """An amount of work: bytes and files to send, and records that the server must verify."""

    bytes: int
    files: float
    records: int


class Costs(NamedTuple):
    """The seconds for sending a byte and a file, and for a record on the server."""

    byte: float
    file: float
    record: float

    def seconds_for(self, work: Work) -> float:
        """Return how long the work takes; the server works while files are sent."""
        return max(self.byte * work.bytes + self.file * work.files, self.record * work.records)

    def mixed(self, share: float, other: "Costs") -> "Costs":
        """Return costs between these, which count for so much of them, and others."""
        pairs = zip(self, other, strict=True)
        return Costs(*(mine * share + their * (1 - share) for mine, their in pairs))


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
        self._busy = 0.0  # seconds in which the run was not paused since it began to work
        self._seen: tuple[float, Work] | None = None  # when it was looked at last, the work done
        self._server = _ServerCost()
        self._shown: tuple[float, float, Work] | None = None  # busy seconds, estimate, work left

    def estimate(
        self, now: float, done: Work, left: Work, *, backlog: int, paused: bool
    ) -> float | None:
        """Return the seconds for the work that is left, None if they are not known yet.

        `backlog` is the number of files that have arrived and are not verified.
        """
        self._observe(now, done, backlog, paused=paused)
        if not left.records:
            return 0.0
        if self._shown is not None:
            then, seconds, had = self._shown
            if self._busy - then < SPACING and not _exceeds(left, had):
                return max(0.0, seconds - (self._busy - then))
        costs = self._find_costs(done)
        if costs is None:
            return None
        return self._smooth(self._seconds_for(costs, done, left), left)

    def _observe(self, now: float, done: Work, backlog: int, *, paused: bool) -> None:
        if self._seen is None and not any(done):
            return
        if self._seen is not None and not paused:
            then, _ = self._seen
            self._busy += now - then
        self._server.observe(self._busy, done.records, backlog)
        self._seen = now, done
        if not self._samples or self._busy - self._samples[-1][0] >= self._spacing:
            self._samples.append((self._busy, done))
        if len(self._samples) > SAMPLES:
            del self._samples[1::2]
            self._spacing *= 2

    def _find_costs(self, done: Work) -> Costs | None:
        """Return the costs that explain the run so far, at first together with earlier ones."""
        if self._busy < EARLIEST or not _exceeds(done, self._samples[0][1]):
            return self.history
        usual = self.history or USUAL
        weight = RECORDS if self.history else GUESS
        record = self._server.find_cost(self._busy, usual.record, weight)
        likely = (self._explain(done, Costs(0.0, file, record)) for file in FILE_COSTS)
        explained = min(
            likely, key=lambda it: self._error(it) + BELIEF * math.log(it.file / usual.file) ** 2
        )
        trend = self._find_trend(done, explained)
        self.measured = explained._replace(byte=explained.byte * trend, file=explained.file * trend)
        if self.history is None:
            return self.measured
        share = min(1.0, self._busy / (10 * EARLIEST))  # the beginning of a run says little
        return self.measured.mixed(share, self.history)._replace(record=record)

    def _seconds_for(self, costs: Costs, done: Work, left: Work) -> float:
        """Return how long what is left takes.

        If fewer files arrive now than on average later, because large ones are sent first, the
        server works longest after these.
        """
        large = costs.byte * left.bytes
        late = max(0.0, left.files - self._find_arrivals(done) * large)
        return max(costs.seconds_for(left), large + costs.record * late)

    def _find_arrivals(self, done: Work) -> float:
        """Return how many files have been sent in a second recently."""
        if not self._samples:
            return 0.0
        recent = self._busy - max(RECENT, self._busy / 4)
        began, before = next(
            (it for it in reversed(self._samples) if it[0] <= recent), self._samples[0]
        )
        return (done.files - before.files) / max(SPACING, self._busy - began)

    def _explain(self, done: Work, costs: Costs) -> Costs:
        """Return the costs by which what was sent took as long as it did; `file` is a maximum."""
        began, before = self._samples[0]
        seconds = self._busy - began
        size, files = done.bytes - before.bytes, done.files - before.files
        if size <= 0 or costs.file * files > seconds:
            return costs._replace(file=seconds / files if files > 0 else costs.file)
        return costs._replace(byte=(seconds - costs.file * files) / size)

    def _find_trend(self, done: Work, costs: Costs) -> float:
        """Return by which factor sending takes longer now than in the whole run so far."""
        recent = self._busy - max(RECENT, self._busy / 4)
        earlier = [it for it in self._samples if it[0] <= recent and _exceeds(done, it[1])]
        if not earlier:
            return 1.0
        began, before = earlier[-1]
        sent = Work(done.bytes - before.bytes, done.files - before.files, 0)
        expected = costs.seconds_for(sent)
        return (self._busy - began) / expected if expected else 1.0

    def _error(self, costs: Costs) -> float:
        """Return the mean squared error of the times of all samples, as a share of the time."""
        began, first = self._samples[0]
        took = began - costs.byte * first.bytes - costs.file * first.files
        errors = (
            busy - took - costs.byte * work.bytes - costs.file * work.files
            for busy, work in self._samples
        )
        return sum(error * error for error in errors) / len(self._samples) / self._busy**2

    def _smooth(self, seconds: float, left: Work) -> float:
        """Return an estimate that follows a new one slowly, unless there is more work."""
        if self._shown is not None:
            then, before, had = self._shown
            passed = self._busy - then
            expected = max(0.0, before - passed)
            if not _exceeds(left, had):
                seconds = expected + (seconds - expected) * (1 - math.exp(-passed / SMOOTHING))
                seconds = min(seconds, max(SHORT, before * RISE))
        self._shown = self._busy, seconds, left
        return seconds


class _ServerCost:
    """The seconds for a record, measured from one record to the next while more files wait.

    The time until the first of them is that of a request. While few wait, requests are not full, so
    a record takes longer than it needs to; that counts less.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._records = 0.0
        self._latest = 0  # how many came at once
        self._total = 0
        self._backlog = 0
        self._since: float | None = None  # when the latest came, if others have waited since

    def observe(self, busy: float, total: int, backlog: int) -> None:
        """Take in how many records there are after so many seconds of work."""
        if total > self._total:
            self._latest = total - self._total
            if self._since is not None:
                kept = math.exp(-(busy - self._since) / FORGETTING)
                share = min(1.0, self._backlog / FULL) ** 2
                self._seconds = self._seconds * kept + (busy - self._since) * share
                self._records = self._records * kept + self._latest * share
            self._since = busy
        self._total, self._backlog = total, backlog
        if backlog < BACKLOG:
            self._since = None

    def find_cost(self, busy: float, usual: float, weight: float) -> float:
        """Return the seconds for a record; the usual ones count for so many records."""
        seconds, records = self._seconds + weight * usual, self._records + weight
        if self._since is None:
            return seconds / records
        coming = (seconds + busy - self._since) / (records + self._latest)
        return max(seconds / records, coming)


def _exceeds(work: Work, other: Work) -> bool:
    """Return whether there is more of one kind of work and no less of the others."""
    return work != other and all(mine >= its for mine, its in zip(work, other, strict=True))
