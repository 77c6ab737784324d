"""The throughput to the staging host, measured with several processes as in a run."""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NamedTuple, Self

from mydata_like.core.errors import TransientError
from mydata_like.speedtest.flood_worker import (
    Answer,
    CpuTime,
    FloodOrder,
    FloodProgress,
    FloodReady,
    FloodRefused,
    FloodResult,
)
from mydata_like.speedtest.results import CpuCost, SpeedTestBudget
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.worker_process import build_command, start_process

PUMP: Final = "--speed-test-pump"  # option of the packaged program, which has no interpreter
_WARM: Final = 0.25  # of a flood that is not counted, while windows and buffers fill
SLOW: Final = 8  # round trips that are not counted, while TCP widens its window to that of SSH
_MOST: Final = 0.7  # of a flood that may be left out for these round trips
_POLL: Final = 0.1  # seconds between two checks whether the test was cancelled
_TIMEOUT: Final = 60.0  # seconds to wait for an answer of a flood process


class FloodSpec(NamedTuple):
    """The result of one flood over all its sessions: bytes a second of each sample, and costs."""

    samples: tuple[float, ...]
    cost: CpuCost
    set_up: tuple[float, ...]
    cipher: str


class FloodPool:
    """Processes that flood the staging host, started when needed and ended with the context."""

    def __init__(
        self, endpoint: Endpoint, budget: SpeedTestBudget, *, sessions: int, round_trip: float = 0.0
    ) -> None:
        self._endpoint = endpoint
        self._budget = budget
        self._warm_up = SLOW * round_trip
        self.sessions = sessions
        self._processes: list[_FloodProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._processes:
            one.kill()

    def flood(
        self,
        channels: int,
        ciphers: tuple[str, ...] = (),
        files: Sequence[bytes] = (),
        share: float = 1.0,
    ) -> FloodSpec:
        """Flood over `channels` channels, shared by sessions as in a run.

        It uses a `share` of the time and of the bytes of a full flood. Raises `TransientError` if a
        session cannot be opened or breaks.
        """
        effort = self._budget.effort
        sessions = min(channels, self.sessions)
        endpoint = self._endpoint
        if ciphers:  # those of what the host sends do not matter
            endpoint = endpoint._replace(ciphers=ciphers, inward=endpoint.allowed_inward)
        seconds = self._warm_up + share * effort.seconds * effort.samples / (1 - _WARM)
        # Several channels take longer to fill.
        size = int(share * effort.flood) * min(channels, 2) // sessions
        self._budget.take(size * sessions)
        processes = self._take(sessions)
        try:
            for number, one in enumerate(processes):
                streams = len(range(number, channels, sessions))
                mine = tuple(files[number::sessions])
                one.send(FloodOrder(endpoint, streams, seconds, size, mine))
            ready = [one.receive(self._budget) for one in processes]
            for one in processes:
                one.send(None)
            flooded = [one.receive(self._budget) for one in processes]
        except BaseException:
            self._drop(processes)  # their protocol is out of step
            raise
        rates = slice_up(_list_ticks(flooded), effort.samples, self._warm_up)
        return _sum_up(ready, flooded, rates)

    def _take(self, count: int) -> list["_FloodProcess"]:
        while len(self._processes) < count:
            self._processes.append(_FloodProcess())
        return self._processes[:count]

    def _drop(self, processes: list["_FloodProcess"]) -> None:
        for one in processes:
            one.kill()
        self._processes = [one for one in self._processes if one not in processes]


class _FloodProcess:
    """A flood process and the pipe to it."""

    def __init__(self) -> None:
        command = build_command("mydata_like.speedtest.flood_worker", PUMP)
        self._process, self._pipe = start_process(command)
        self._answers: SimpleQueue[Answer | None] = SimpleQueue()  # None is the end
        self._reader = Thread(target=self._read_answers, name="flood process", daemon=True)
        self._reader.start()

    def send(self, order: FloodOrder | None) -> None:
        try:
            self._pipe.send(order)
        except OSError as error:
            raise _lost() from error

    def receive(self, budget: SpeedTestBudget) -> Answer:
        """Wait for an answer. Raises `TransientError` if the process does not answer."""
        answer: Answer | None = None
        for _ in range(round(_TIMEOUT / _POLL)):
            budget.check()
            with suppress(Empty):
                answer = self._answers.get(timeout=_POLL)
                break
        if answer is None:
            raise _lost()
        if isinstance(answer, FloodRefused):
            raise TransientError(answer.message, code="channel.lost")
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._reader.join()
        self._pipe.close()
        self._process.wait()

    def _read_answers(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._answers.put(self._pipe.receive())
        self._answers.put(None)


def _lost() -> TransientError:
    return TransientError(
        "A process of the speed test ended or stopped responding.", code="channel.lost"
    )


def _list_ticks(flooded: list[Answer]) -> list[tuple[FloodProgress, ...]]:
    return [answer.ticks for answer in flooded if isinstance(answer, FloodResult)]


def _sum_up(ready: list[Answer], flooded: list[Answer], rates: tuple[float, ...]) -> FloodSpec:
    stood = [answer for answer in ready if isinstance(answer, FloodReady)]
    went = [answer for answer in flooded if isinstance(answer, FloodResult)]
    moved = sum(one.ticks[-1].bytes for one in went)
    here = _sum_work([one.here for one in went])
    there = _sum_work([one.there for one in went])
    cost = CpuCost(
        *(seconds and seconds / moved for seconds in (here[0], there[0], here[1], there[1]))
    )
    return FloodSpec(rates, cost, tuple(one.set_up for one in stood), stood[0].cipher)


def _sum_work(works: Sequence[CpuTime | None]) -> tuple[float | None, float | None]:
    """Return the sums of the seconds running and waiting; None if one of them is unknown."""
    known = [work for work in works if work]
    if len(known) < len(works):
        return None, None
    return sum(work.seconds for work in known), sum(work.waited for work in known)


def slice_up(
    floods: Sequence[Sequence[FloodProgress]], samples: int, warm_up: float = 0.0
) -> tuple[float, ...]:
    """Return the bytes a second of all floods together, in samples of the same number of bytes.

    Left out are: the beginning, in bytes and in time, because buffers can take much at once; the
    first `warm_up` seconds, if enough bytes follow; and everything after the first flood has ended.
    """
    end = min(ticks[-1].seconds for ticks in floods)
    moments = sorted({tick.seconds for ticks in floods for tick in ticks if tick.seconds <= end})
    sums = [sum(_find(ticks, moment) for ticks in floods) for moment in moments]
    whole = [FloodProgress(moment, moved) for moment, moved in zip(moments, sums, strict=True)]
    slow = min(_find(whole, max(warm_up, _WARM * end)), _MOST * sums[-1])
    size = (sums[-1] - max(slow, _WARM * sums[-1])) / samples
    edges = [sums[-1] - size * number for number in range(samples, -1, -1)]
    times = [
        _find([FloodProgress(moved, moment) for moment, moved in whole], edge) for edge in edges
    ]
    return tuple(size / (after - before) for before, after in pairwise(times))


def _find(line: Sequence[FloodProgress], place: float) -> float:
    """Return the second coordinate of a line at `place`, interpolated between two points."""
    after = bisect_left(line, place, key=lambda point: point[0])
    if after in (0, len(line)):
        return line[min(after, len(line) - 1)][1]
    (left, low), (right, high) = line[after - 1], line[after]
    return low + (high - low) * (place - left) / (right - left)
