"""The sessions that channels share, and over which hosts they are spread."""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from math import inf
from threading import Condition, Lock
from typing import Final, NamedTuple

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.worker_messages import STREAMS, ChannelOpened, LeaveChannel
from mydata_like.transfer.worker_process import WorkerProcess

REST: Final = 60.0  # seconds for which a host that failed comes last


class HostRotation:
    """Spreads channels evenly over the hosts; one that failed rests while others work.

    May be asked from any thread. A host that rests is still better than none, so a host that
    is alone is always asked.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._now = now
        self._lock = Lock()
        self._channels: Counter[str] = Counter()
        self._rests_until: dict[str, float] = {}

    def take(self, tried: Collection[Endpoint] = ()) -> Endpoint | None:
        """Return the host for one more channel, but none of those tried; None after the last."""
        with self._lock:
            left = [endpoint for endpoint in self.endpoints if endpoint not in tried]
            if not left:
                return None
            now = self._now()
            taken = min(left, key=lambda it: self._burden(it.host, now))
            self._channels[taken.host] += 1
            return taken

    def leave(self, endpoint: Endpoint, *, failed: bool) -> None:
        """Give a channel back that the host had, or was to have."""
        with self._lock:
            self._channels[endpoint.host] -= 1
            if failed:
                self._rests_until[endpoint.host] = self._now() + REST

    def _burden(self, host: str, now: float) -> tuple[float, int]:
        rest = max(self._rests_until.get(host, now) - now, 0.0)
        return rest, self._channels[host]


_LONG: Final = 0.02  # seconds of a round trip from which on a session is held to TCP's window
_FURTHER: Final = 4  # sessions then, at least; more are more logins than hosts like at once
_MANY: Final = 16  # channels for which no further session is shared
_ASK_AGAIN: Final = 60.0  # seconds after which a session that was refused is asked for again


def count_sessions(cpus: Collection[int], round_trip: float) -> int:
    """Return how many sessions there should be: encryption takes a processor on either side.

    `cpus` are the processors of both sides, as far as they are known, and `round_trip` is in
    seconds, 0 while unknown. A long way wants more: on a TCP connection some 4 MiB are under way
    at most (Linux: tcp_wmem and tcp_rmem), which is less than the streams of a session may have.
    """
    near = max(1, min(cpus))
    return max(near, _FURTHER) if round_trip >= _LONG else near


def count_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class SessionSlot(NamedTuple):
    """A channel's place in a session, which it may have `founded`."""

    worker: WorkerProcess
    endpoint: Endpoint
    founded: bool


class Sessions:
    """Which sessions there are, each with a process of its own, and which channels share them.

    Any number of threads may ask. `start` begins a process under a name. `rungs` is what is known
    of the hosts, and `broken` whether a line has been: the next may be as weak.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        start: Callable[[str], WorkerProcess],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rungs: dict[str, HostCapabilities] = {}
        self.round_trip = 0.0  # seconds, the shortest that a channel saw as it was opened
        self.broken = False
        self.closed = False
        self.failure: UploaderError | None = None  # of what was given up last
        self._rota = HostRotation(endpoints)
        self._start = start
        self._now = now
        self._changed = Condition()
        self._workers: dict[WorkerProcess, Endpoint] = {}
        self._standing: set[WorkerProcess] = set()
        self._spare: WorkerProcess | None = None  # has started, and waits for its plan
        self._granted: tuple[int, float] = (0, -inf)  # sessions, until then

    def __bool__(self) -> bool:
        """Whether there are sessions, if only some that are about to be."""
        return bool(self._workers)

    @property
    def capacity(self) -> int:
        """How many channels may share sessions; known better once the first stands."""
        sessions = self._count()
        return min(sessions * self._count_together(), max(sessions, _MANY))

    def prepare(self) -> None:
        """Start the first session's process, so that it has started when a channel is wanted."""
        with self._changed:
            if not (self._workers or self._spare or self.closed):
                self._spare = self._start("session 1")

    def find_place(self, number: int, failed: Sequence[SessionSlot]) -> SessionSlot | None:
        """Return where one more channel belongs: in a session of its own, or in the emptiest one.

        A session that is about to be is waited for. `failed` are places where the channel was
        not granted. None where no host is left, where every session has all its channels, and
        where the sessions that were waited for have failed.
        """
        tried = [place.endpoint for place in failed]
        crowded = [place.endpoint for place in failed if not place.founded]
        with self._changed:
            while not self.closed:
                if len(self._workers) < self._count():
                    if (endpoint := self._rota.take(tried)) is not None:
                        return self._found(number, endpoint)
                    if len(self._standing) < self._count_near():
                        return None
                    self._granted = len(self._workers), self._now() + _ASK_AGAIN
                worker = self._find_emptiest(crowded)
                if worker is None:
                    return None
                if worker in self._standing:
                    worker.channels.add(number)
                    return SessionSlot(worker, self._workers[worker], founded=False)
                self._changed.wait()
                if not self._workers and len(self._rota.endpoints) == 1:
                    return None  # what failed for others would fail for this one, too
        raise TransientError("The channels are closed.", code="channel.closed")

    def stand(self, place: SessionSlot, opened: ChannelOpened) -> None:
        """Note that a session stands, and what it tells of its host."""
        with self._changed:
            self.rungs[place.endpoint.host] = opened.rung
            if opened.round_trip:
                self.round_trip = min(self.round_trip or inf, opened.round_trip)
            if place.worker in self._workers:
                self._standing.add(place.worker)
            self._changed.notify_all()

    def give_up(self, number: int, place: SessionSlot, failure: UploaderError) -> None:
        """Leave what could not be entered; who founded the session ends it for all."""
        self.failure = failure
        if place.founded:
            self.drop(place.worker, failed=True)
        else:
            self.leave(place.worker, number)

    def leave(self, worker: WorkerProcess, number: int) -> None:
        """Let a channel that carries nothing leave its session, and the last one end it."""
        with self._changed:
            worker.channels.discard(number)
            deserted = not worker.channels
        if deserted:
            self.drop(worker)
            return
        with suppress(TransientError):  # one that has ended needs not be told
            worker.tell(number, LeaveChannel())

    def drop(self, worker: WorkerProcess, *, failed: bool = False) -> None:
        """Give a session up for good; after a failure its host rests."""
        worker.kill()
        worker.reap()
        with self._changed:
            endpoint = self._workers.pop(worker, None)
            self.broken |= failed and worker in self._standing
            self._standing.discard(worker)
            self._changed.notify_all()
        if endpoint is not None:
            self._rota.leave(endpoint, failed=failed)

    def host_of(self, worker: WorkerProcess) -> str:
        """Return the host of a session; empty for one that was given up."""
        with self._changed:
            endpoint = self._workers.get(worker)
        return endpoint.host if endpoint else ""

    def close(self) -> None:
        """End all sessions at once, and let no more begin."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            workers = [*self._workers, *([self._spare] if self._spare else [])]
            self._spare = None
        for worker in workers:
            worker.kill()
        for worker in workers:
            self.drop(worker)

    def _found(self, number: int, endpoint: Endpoint) -> SessionSlot:
        worker = self._spare or self._start(f"session {number}")
        self._spare = None
        self._workers[worker] = endpoint
        worker.channels.add(number)
        return SessionSlot(worker, endpoint, founded=True)

    def _find_emptiest(self, crowded: Collection[Endpoint]) -> WorkerProcess | None:
        """Return the session with the fewest channels that may have one more."""
        workers = [worker for worker, host in self._workers.items() if host not in crowded]
        emptiest = min(workers, key=lambda worker: len(worker.channels), default=None)
        if emptiest is None or len(emptiest.channels) >= self._count_together():
            return None
        return emptiest

    def _count(self) -> int:
        """Return how many sessions there should be, as far as they are granted."""
        granted, until = self._granted
        wanted = count_sessions(self._cpus, self.round_trip)
        return wanted if self._now() >= until else max(self._count_near(), granted)

    def _count_near(self) -> int:
        return count_sessions(self._cpus, 0.0)

    @property
    def _cpus(self) -> list[int]:
        """The processors of both sides, as far as they are known."""
        hosts = len(self._rota.endpoints)
        theirs = [rung.cpus * hosts for rung in list(self.rungs.values()) if rung.cpus]
        return [count_cpus(), *theirs]

    def _count_together(self) -> int:
        """Return how many channels a session has; one where each is asked for by every payload."""
        return 1 if any(rung.rung == "scp" for rung in list(self.rungs.values())) else STREAMS
