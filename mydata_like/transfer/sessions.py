"""The sessions that channels share, and their distribution over the hosts."""

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
from mydata_like.transfer.staging_folder import StagingFolder
from mydata_like.transfer.worker_messages import STREAMS, ChannelOpened, JoinChannel, LeaveChannel
from mydata_like.transfer.worker_process import WorkerProcess

Destination = Endpoint | StagingFolder  # a host, or a folder in its place

REST: Final = 60.0  # seconds for which a failed host is used last


class HostRotation:
    """Distributes channels evenly over the hosts; a failed host is used last for a while.

    Callable from any thread. A failed host is still better than none, so a single host is always
    used.
    """

    def __init__(
        self, endpoints: Sequence[Destination], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._now = now
        self._lock = Lock()
        self._channels: Counter[str] = Counter()
        self._rests_until: dict[str, float] = {}

    def take(self, tried: Collection[Destination] = ()) -> Destination | None:
        """Return the host for one more channel, except those tried; None if none is left."""
        with self._lock:
            left = [endpoint for endpoint in self.endpoints if endpoint not in tried]
            if not left:
                return None
            now = self._now()
            taken = min(left, key=lambda it: self._rank(it.host, now))
            self._channels[taken.host] += 1
            return taken

    def leave(self, endpoint: Destination, *, failed: bool) -> None:
        """Return a channel that was taken with `take`."""
        with self._lock:
            self._channels[endpoint.host] -= 1
            if failed:
                self._rests_until[endpoint.host] = self._now() + REST

    def _rank(self, host: str, now: float) -> tuple[float, int]:
        rest = max(self._rests_until.get(host, now) - now, 0.0)
        return rest, self._channels[host]


_LONG: Final = 0.02  # seconds; from this round trip on, TCP's window limits a session
_FURTHER: Final = 4  # the minimum of sessions then; hosts may refuse more logins at once
_MANY: Final = 16  # above this number of channels, sessions are not shared
_FRESH: Final = 60.0  # seconds for which a prepared session is used
_ASK_AGAIN: Final = 60.0  # seconds after which a refused session is requested again


def count_sessions(cpus: Collection[int], round_trip: float) -> int:
    """Return the number of sessions: each one uses a processor on both sides for encryption.

    `cpus` are the known processor counts of both sides. `round_trip` is in seconds, 0 while
    unknown. A long distance needs more sessions: a TCP connection has at most about 4 MiB in flight
    (Linux: tcp_wmem and tcp_rmem), less than the streams of a session could have.
    """
    near = max(1, min(cpus))
    return max(near, _FURTHER) if round_trip >= _LONG else near


def count_cpus() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class SessionSlot(NamedTuple):
    """A channel's place in a session; `is_new` if the channel started the session.

    `joined` is whether the worker knows of the channel.
    """

    worker: WorkerProcess
    endpoint: Destination
    is_new: bool
    joined: bool = False


class Sessions:
    """The open sessions, each with its own process, and the channels that share them.

    Callable from any thread. `start` starts a process with a name, which opens a session to a host.
    `broken` is True after a connection broke, since the next may break as well.
    """

    def __init__(
        self,
        endpoints: Sequence[Destination],
        start: Callable[[str, Destination], WorkerProcess],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capabilities_by_host: dict[str, HostCapabilities] = {}
        self.round_trip = 0.0  # seconds, the shortest measured when a channel was opened
        self.broken = False
        self.closed = False
        self.failure: UploaderError | None = None  # the last failure
        self._rotation = HostRotation(endpoints)
        self._start = start
        self._now = now
        self._changed = Condition()
        self._workers: dict[WorkerProcess, Destination] = {}
        self._open: set[WorkerProcess] = set()
        self._private: set[WorkerProcess] = set()  # send the files of their own channels only
        self._prepared: tuple[SessionSlot, float] | None = None  # and since when
        self._granted: tuple[int, float] = (0, -inf)  # sessions, and until when

    def __bool__(self) -> bool:
        """Whether there are sessions, including those that are being opened."""
        return bool(self._workers)

    @property
    def serves(self) -> bool:
        """Whether a session is open."""
        return bool(self._open)

    @property
    def capacity(self) -> int:
        """The maximum number of channels; more accurate once the first session is open."""
        sessions = self._count()
        return min(sessions * self._count_channels(), max(sessions, _MANY))

    def count_open_channels(self) -> int:
        """Return the number of channels, each once if it uses two sessions."""
        with self._changed:
            return len(set[int]().union(*(worker.channels for worker in self._workers)))

    def describe_capacity(self) -> str:
        """Return the capacity, and the processors that it depends on, for the user."""
        sessions, (here, *there) = self._count(), self._cpus
        theirs = f", {min(there)} there" if there else ""
        return (
            f"{self.capacity} channels over {sessions} session{'s' * (sessions != 1)} "
            f"({here} processor{'s' * (here != 1)} here{theirs})"
        )

    def replace_endpoints(self, endpoints: Sequence[Destination]) -> None:
        """Open further sessions with these endpoints of the same hosts."""
        self._rotation.endpoints = tuple(endpoints)

    def prepare(self, number: int) -> None:
        """Start to open the first session for a channel that will ask for it.

        Others wait until that channel has joined it.
        """
        with self._changed:
            if self._workers or self.closed:
                return
            endpoint = self._rotation.take()
            if endpoint is None:
                return
            slot = self._start_session(number, endpoint)._replace(joined=True)
            with suppress(TransientError):  # the channel gets the error
                slot.worker.send(number, JoinChannel())
            self._prepared = slot, self._now()

    def take_prepared(self, number: int) -> SessionSlot | None:
        """Return the channel's prepared session, unless it is so old that it may be broken."""
        with self._changed:
            if self._prepared is None or number not in self._prepared[0].worker.channels:
                return None
            (slot, since), self._prepared = self._prepared, None
        if self._now() - since < _FRESH:
            return slot
        self.drop(slot.worker)
        return None

    def find_slot(self, number: int, failed: Sequence[SessionSlot]) -> SessionSlot | None:
        """Return a place for one more channel: in its own session, or in the one with the fewest.

        Waits for sessions that are being opened. `failed` are places where the channel was not
        granted. Returns None if no host is left, every session has all its channels, or the
        sessions that were waited for have failed.
        """
        tried = [slot.endpoint for slot in failed]
        crowded = [slot.endpoint for slot in failed if not slot.is_new]
        with self._changed:
            while not self.closed:
                if len(self._workers) < self._count():
                    if (endpoint := self._rotation.take(tried)) is not None:
                        return self._start_session(number, endpoint)
                    if len(self._open) < self._count_near():
                        return None
                    self._granted = len(self._workers), self._now() + _ASK_AGAIN
                worker = self._find_emptiest(crowded)
                if worker is None:
                    return None
                if worker in self._open:
                    worker.channels.add(number)
                    return SessionSlot(worker, self._workers[worker], is_new=False)
                self._changed.wait()
                if not self._workers and len(self._rotation.endpoints) == 1:
                    return None  # it would fail for this channel as well
        raise TransientError("The channels are closed.", code="channel.closed")

    def find_shared(self, number: int, own: WorkerProcess) -> SessionSlot | None:
        """Return a place in another session for the large files of a channel; None if its own does.

        Half of the sessions to a near host send the large files of all its channels. This takes
        less processor time on both sides: more files are hashed together, and fewer processes
        alternate.
        """
        with self._changed:
            endpoint = self._workers.get(own)
            sessions = [it for it, theirs in self._workers.items() if theirs == endpoint]
            shared = sessions[: max(1, len(sessions) // 2)]
            if endpoint is None or own in shared or not self._shares(endpoint):
                return None
            free = [it for it in shared if it in self._open - self._private]
            worker = min(free, key=lambda it: len(it.channels), default=None)
            if worker is None or len(worker.channels) >= self._count_channels():
                return None
            worker.channels.add(number)
            return SessionSlot(worker, endpoint, is_new=False)

    def refuse_shared(self, number: int, worker: WorkerProcess) -> None:
        """Leave a session that did not grant a place for large files; it is not asked again."""
        with self._changed:
            self._private.add(worker)
        self.leave(worker, number)

    def mark_open(self, slot: SessionSlot, opened: ChannelOpened) -> None:
        """Record that a session is open, and the capabilities of its host."""
        with self._changed:
            self.capabilities_by_host[slot.endpoint.host] = opened.capabilities
            if opened.round_trip:
                self.round_trip = min(self.round_trip or inf, opened.round_trip)
            if slot.worker in self._workers:
                self._open.add(slot.worker)
                if opened.stack == "paramiko":  # it encrypts on one processor only
                    self._private.add(slot.worker)
            self._changed.notify_all()

    def give_up(self, number: int, slot: SessionSlot, failure: UploaderError) -> None:
        """Leave a session that refused the channel; the channel that started it ends it for all."""
        self.failure = failure
        if slot.is_new:
            self.drop(slot.worker, failed=True)
        else:
            self.leave(slot.worker, number)

    def leave(self, worker: WorkerProcess, number: int) -> None:
        """Remove an idle channel from its session; the last one ends the session."""
        with self._changed:
            worker.channels.discard(number)
            deserted = not worker.channels
        if deserted:
            self.drop(worker)
            return
        with suppress(TransientError):  # a process that has ended needs no message
            worker.send(number, LeaveChannel())

    def drop(self, worker: WorkerProcess, *, failed: bool = False) -> None:
        """Close a session; after a failure, its host is used last for a while."""
        worker.kill()
        worker.reap()
        with self._changed:
            endpoint = self._workers.pop(worker, None)
            self.broken |= failed and worker in self._open
            self._open.discard(worker)
            self._private.discard(worker)
            self._changed.notify_all()
        if endpoint is not None:
            self._rotation.leave(endpoint, failed=failed)

    def host_of(self, worker: WorkerProcess) -> str:
        """Return the host of a session; empty after it was closed."""
        with self._changed:
            endpoint = self._workers.get(worker)
        return endpoint.host if endpoint else ""

    def close(self) -> None:
        """Close all sessions at once and open no more."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            workers = list(self._workers)
        for worker in workers:
            worker.kill()
        for worker in workers:
            self.drop(worker)

    def _shares(self, endpoint: Destination) -> bool:
        """Return whether large files share sessions to this host.

        Only the sender for shells sends several files in one thread.
        """
        host = self.capabilities_by_host.get(endpoint.host)
        return host is not None and host.access == "shell" and self.round_trip < _LONG

    def _start_session(self, number: int, endpoint: Destination) -> SessionSlot:
        worker = self._start(f"session {number}", endpoint)
        self._workers[worker] = endpoint
        worker.channels.add(number)
        return SessionSlot(worker, endpoint, is_new=True)

    def _find_emptiest(self, crowded: Collection[Destination]) -> WorkerProcess | None:
        """Return the session with the fewest channels that may have one more."""
        workers = [worker for worker, host in self._workers.items() if host not in crowded]
        emptiest = min(workers, key=lambda worker: len(worker.channels), default=None)
        if emptiest is None or len(emptiest.channels) >= self._count_channels():
            return None
        return emptiest

    def _count(self) -> int:
        """Return the number of sessions that are useful and granted."""
        granted, until = self._granted
        wanted = count_sessions(self._cpus, self.round_trip)
        return wanted if self._now() >= until else max(self._count_near(), granted)

    def _count_near(self) -> int:
        return count_sessions(self._cpus, 0.0)

    @property
    def _cpus(self) -> list[int]:
        """The known processor counts of both sides."""
        hosts = len(self._rotation.endpoints)
        theirs = [it.cpus * hosts for it in list(self.capabilities_by_host.values()) if it.cpus]
        return [count_cpus(), *theirs]

    def _count_channels(self) -> int:
        """Return the channels per session; one for scp, which opens a new one for each payload."""
        hosts = list(self.capabilities_by_host.values())
        return 1 if any(it.access == "scp" for it in hosts) else STREAMS
