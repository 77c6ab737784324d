"""Throughput to the staging host, measured with several processes as in a run."""

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

PUMP: Final = "--speed-test-pump"  # to the program itself, where that is all there is
_WARM: Final = 0.25  # of a flood, in which windows and buffers fill, says nothing
SLOW: Final = 8  # round trips in which TCP widens its window to that of SSH: nor do these
_MOST: Final = 0.7  # of a flood that may be left out for them
_LISTEN: Final = 0.1  # seconds between two looks whether the test is still wanted
_PATIENCE: Final = 60.0  # seconds that a pump may be silent


class FloodSpec(NamedTuple):
    """How one flood went over all its sessions: bytes a second in each look, processor seconds.

    `cost` is for one byte.
    """

    looks: tuple[float, ...]
    cost: CpuCost
    set_up: tuple[float, ...]
    cipher: str


class FloodPool:
    """Processes that flood the staging host, started when they are needed, ended by `close`."""

    def __init__(
        self, endpoint: Endpoint, budget: SpeedTestBudget, *, sessions: int, round_trip: float = 0.0
    ) -> None:
        self._endpoint = endpoint
        self._budget = budget
        self._warm_up = SLOW * round_trip
        self.sessions = sessions
        self._pumps: list[_FloodProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._pumps:
            one.kill()

    def flood(
        self,
        channels: int,
        ciphers: tuple[str, ...] = (),
        files: Sequence[bytes] = (),
        share: float = 1.0,
    ) -> FloodSpec:
        """Flood over so many channels; sessions share them as they do in a run.

        It takes a `share` of the time and of the bytes that a flood may take.
        Raises `TransientError` where a session does not come about, or breaks.
        """
        effort = self._budget.effort
        sessions = min(channels, self.sessions)
        endpoint = self._endpoint._replace(ciphers=ciphers or self._endpoint.ciphers)
        seconds = self._warm_up + share * effort.seconds * effort.looks / (1 - _WARM)
        # Several take longer to fill.
        size = int(share * effort.flood) * min(channels, 2) // sessions
        self._budget.take(size * sessions)
        pumps = self._take(sessions)
        try:
            for number, one in enumerate(pumps):
                streams = len(range(number, channels, sessions))
                mine = tuple(files[number::sessions])
                one.tell(FloodOrder(endpoint, streams, seconds, size, mine))
            ready = [one.hear(self._budget) for one in pumps]
            for one in pumps:
                one.tell(None)
            flooded = [one.hear(self._budget) for one in pumps]
        except BaseException:
            self._drop(pumps)  # they are out of step
            raise
        rates = slice_up(_list_ticks(flooded), effort.looks, self._warm_up)
        return _sum_up(ready, flooded, rates)

    def _take(self, count: int) -> list["_FloodProcess"]:
        while len(self._pumps) < count:
            self._pumps.append(_FloodProcess())
        return self._pumps[:count]

    def _drop(self, pumps: list["_FloodProcess"]) -> None:
        for one in pumps:
            one.kill()
        self._pumps = [one for one in self._pumps if one not in pumps]


class _FloodProcess:
    """One process, and the pipe to it."""

    def __init__(self) -> None:
        command = build_command("mydata_like.speedtest.flood_worker", PUMP)
        self._process, self._pipe = start_process(command)
        self._answers: SimpleQueue[Answer | None] = SimpleQueue()  # None is the end
        self._listener = Thread(target=self._listen, name="hear a pump", daemon=True)
        self._listener.start()

    def tell(self, order: FloodOrder | None) -> None:
        try:
            self._pipe.send(order)
        except OSError as error:
            raise _lost() from error

    def hear(self, budget: SpeedTestBudget) -> Answer:
        """Wait for an answer, as long as the test is wanted."""
        answer: Answer | None = None
        for _ in range(round(_PATIENCE / _LISTEN)):
            budget.check()
            with suppress(Empty):
                answer = self._answers.get(timeout=_LISTEN)
                break
        if answer is None:
            raise _lost()
        if isinstance(answer, FloodRefused):
            raise TransientError(answer.message, code="channel.lost")
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._listener.join()
        self._pipe.close()
        self._process.wait()

    def _listen(self) -> None:
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
    """Return the seconds at work and waiting of all of them, where each one tells."""
    told = [work for work in works if work]
    if len(told) < len(works):
        return None, None
    return sum(work.seconds for work in told), sum(work.waited for work in told)


def slice_up(
    floods: Sequence[Sequence[FloodProgress]], looks: int, warm_up: float = 0.0
) -> tuple[float, ...]:
    """Return the bytes a second of all floods together, in looks at as many bytes each.

    The beginning is left out, in bytes and in time, since buffers on the way may swallow much at
    once; also so many seconds, as far as enough goes after them; and what came after the first of
    them had ended.
    """
    end = min(ticks[-1].seconds for ticks in floods)
    moments = sorted({tick.seconds for ticks in floods for tick in ticks if tick.seconds <= end})
    sums = [sum(_find(ticks, moment) for ticks in floods) for moment in moments]
    whole = [FloodProgress(moment, moved) for moment, moved in zip(moments, sums, strict=True)]
    slow = min(_find(whole, max(warm_up, _WARM * end)), _MOST * sums[-1])
    size = (sums[-1] - max(slow, _WARM * sums[-1])) / looks
    edges = [sums[-1] - size * number for number in range(looks, -1, -1)]
    times = [
        _find([FloodProgress(moved, moment) for moment, moved in whole], edge) for edge in edges
    ]
    return tuple(size / (after - before) for before, after in pairwise(times))


def _find(line: Sequence[FloodProgress], place: float) -> float:
    """Return the second coordinate of a line at its first one, between two points in proportion."""
    after = bisect_left(line, place, key=lambda point: point[0])
    if after in (0, len(line)):
        return line[min(after, len(line) - 1)][1]
    (left, low), (right, high) = line[after - 1], line[after]
    return low + (high - low) * (place - left) / (right - left)
