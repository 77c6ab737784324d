"""The transport to the staging area: a pool of channels that share sessions and processes."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from threading import Condition, Lock
from typing import Final, Protocol

from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    Problem,
    ServerUnavailableError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.model import Payload, StagingArea
from mydata_like.core.ports import Emit
from mydata_like.settings.schema import Transfer
from mydata_like.ssh.capabilities import HostCapabilities, allows_nothing
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.transfer.channel import StagingChannel
from mydata_like.transfer.destination import StagingDestination
from mydata_like.transfer.temporary_files import owner_mark
from mydata_like.transfer.worker_messages import (
    DROPPED,
    STREAMS,
    ChannelOpened,
    JoinChannel,
    LeaveChannel,
    WorkerConfig,
)
from mydata_like.transfer.worker_process import (
    WorkerProcess,
    WorkerStarter,
)

REST: Final = 60.0  # seconds for which a failed host is used last
_LONG: Final = 0.02  # seconds; from this round trip on, TCP's window limits a session
_FURTHER: Final = 4  # the minimum of sessions then; hosts may refuse more logins at once
_MANY: Final = 16  # above this number of channels, sessions are not shared
_FRESH: Final = 60.0  # seconds for which a prepared session is used
_ASK_AGAIN: Final = 60.0  # seconds after which a refused session is requested again
_STARTING: Final = 15.0  # seconds to start a process on a busy machine
_TIMEOUT_FACTOR: Final = 1.5  # times the worker's own timeout
_UNREACHABLE: Final = (TransientError, ServerUnavailableError)
_DROPPED_AT_MOST: Final = 3  # times that another channel may end the session that one joins


class HostMemory(Protocol):
    """The capabilities of hosts that earlier runs have found."""

    def find(self, host: str) -> HostCapabilities | None:
        """Return the capabilities of a host, unless they are unknown or out of date."""

    def keep(self, host: str, capabilities: HostCapabilities | None) -> None:
        """Store the capabilities of a host, or remove them."""


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


class StagingTransport:
    """Sends payloads to the staging area over up to `capacity` channels; owns their workers.

    Each session has its own process. There are as many sessions as both sides have processors, and
    some more over a long distance. Further channels share sessions: a slow acknowledgement needs
    more data in flight, not more logins. Large files may be sent over another session than that of
    their channel (see `open_shared`).

    Any number of threads may use it, each with its own channels. `build` returns the destinations
    of an area. `explain` is called to find out
    why the staging hosts refuse our key, `renew` to find out which keys the server names for a host
    that has another key. `owner` is the uuid in temporary names. `visiting` is
    called with the folders below the location in which temporary files may be left.

    Two things save time at the start: the capabilities of hosts in `memory`, which earlier runs
    have found, and a worker of the `starter` that runs already. After any failure with remembered
    capabilities, the host is probed, and what failed is sent again.
    """

    def __init__(
        self,
        area: StagingArea,
        settings: Transfer,
        *,
        build: Callable[[StagingArea], Sequence[StagingDestination]],
        emit: Emit,
        explain: Callable[[AccessDeniedError], UploaderError] = lambda error: error,
        renew: Callable[[], tuple[str, ...]] | None = None,
        owner: str = "",
        algorithm: Algorithm = Algorithm.MD5,
        visiting: Callable[[Iterable[str]], object] = frozenset,
        memory: HostMemory | None = None,
        starter: WorkerStarter | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.timeout = settings.stall_timeout * _TIMEOUT_FACTOR  # seconds for a worker's reply
        self.emit = emit
        self.mark = owner_mark(owner)
        self.algorithm = algorithm  # of the checksums of files
        self.can_replace = True
        self.spent = NOTHING_SPENT  # the time of all channels by cause
        self.round_trip = 0.0  # seconds, the shortest measured when a channel was opened
        self._area = area
        self._build = build
        self._destinations = build(area)
        self._settings = settings
        self._explain = explain
        self._renew = renew
        self._renewing = Lock()
        self._counting = Lock()
        self._visiting = visiting
        self._memory = memory
        self._recalled: set[str] = set()  # the hosts whose capabilities come from the memory
        self._starter = starter or WorkerStarter()
        self._now = now
        self._changed = Condition()  # for all that follows
        self._opened = 0  # channels so far
        self._wanted = 0  # number of channels that are to be opened in all, as far as known
        self._workers: list[WorkerProcess] = []
        self._prepared: tuple[WorkerProcess, float] | None = None  # and since when
        self._capabilities_by_host: dict[str, HostCapabilities] = {}
        self._rests_until: dict[str, float] = {}  # by host that failed
        self._granted: tuple[int, float] = (0, -inf)  # sessions, and until when
        self._broke = False  # whether an open session broke, since the next may break as well
        self._failure: UploaderError | None = None  # the last one
        self._noticed: set[str] = set()
        self._closed = False

    @property
    def capacity(self) -> int:
        """The maximum number of channels; more accurate once the first is open."""
        sessions = self._count_sessions()
        return min(sessions * self._count_places(), max(sessions, _MANY))

    def describe_capacity(self) -> str:
        """Return the maximum number of channels, and the processors that it depends on."""
        sessions, (here, *there) = self._count_sessions(), self._cpus
        theirs = f", {min(there)} there" if there else ""
        return (
            f"{self.capacity} channels over {sessions} session{'s' * (sessions != 1)} "
            f"({here} processor{'s' * (here != 1)} here{theirs})"
        )

    def prepare(self) -> None:
        """Start to open the first session before it is needed, to save that time.

        Other channels wait until the first one has joined it.
        """
        with self._changed:
            if self._opened or self._workers or self._closed:
                return
            if (destination := self._choose_destination(())) is not None:
                with suppress(ServerUnavailableError):  # opening the channel reports it
                    self._prepared = self._start_worker(1, destination), self._now()

    def open_channel(self, wanted: int = 0) -> StagingChannel:
        """Open one more channel; see `core.ports.Transport`."""
        with self._changed:
            self._wanted = wanted or self._wanted
            self._opened += 1
            channel = StagingChannel(self, self._opened)
        channel.open()
        return channel

    def close(self) -> None:
        """End all workers at once; active sends raise `TransientError`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            workers = self._workers[:]
        for worker in workers:
            worker.kill()
        for worker in workers:
            self._drop(worker)

    def open_worker(self, number: int) -> WorkerProcess:
        """Return the worker that a channel has joined, on the first host that accepts the login.

        A host with a changed host key (`HostKeyError`) raises, unless the server now names this key
        for it; no other host is tried. While a session is open, other refusals have the code
        `channel.refused`: a host at its limit of sessions, processes or space may give any reason.
        """
        named = self._area.host_keys
        try:
            return self._open_worker(number)
        except HostKeyError:
            if not self._has_other_keys(named):
                raise
            return self._open_worker(number)
        except (*_UNREACHABLE, StagingError) as error:
            if self._closed or not any(worker.is_open for worker in self._workers):
                raise
            raise TransientError(error.message, hint=error.hint, code=NO_CHANNEL) from error

    def _has_other_keys(self, named: tuple[str, ...]) -> bool:
        """Return whether the server names other host keys than these now, which are then used.

        If keys are pinned in the settings, those of the server do not count.
        """
        if self._renew is None or self._settings.host_keys:
            return False
        with self._renewing:
            if self._area.host_keys == named:  # as no other channel has asked in the meantime
                self._area = replace(self._area, host_keys=self._renew())
                self._destinations = self._build(self._area)
            return self._area.host_keys != named

    def _open_worker(self, number: int) -> WorkerProcess:
        """Join the first worker that grants the channel; the one that founded it ends it for all.

        A session that is closed because of another channel says nothing about its host, and one
        whose capabilities were remembered may allow another kind of access: both are tried again.
        """
        errors: list[UploaderError] = []
        tried: set[str] = set()  # hosts
        crowded: set[str] = set()  # hosts whose sessions grant no further channel
        dropped = 0
        prepared = self._take_prepared(number)
        while worker := prepared or self._find_worker(number, tried, crowded):
            prepared = None
            try:
                opened = self._join(number, worker)
            except UploaderError as error:
                if error.problem_code == DROPPED and dropped < _DROPPED_AT_MOST:
                    dropped += 1
                    self._drop(worker, failed=True)
                    continue
                self._failure = error
                if worker.founder != number:
                    self.leave(worker, number)
                    crowded.add(worker.host)
                else:
                    self._drop(worker, failed=True)
                    if worker.recalled and error.problem_code == NO_CHANNEL:
                        self._forget(worker.host)
                        continue
                if not isinstance(error, (*_UNREACHABLE, AccessDeniedError)):
                    raise
                tried.add(worker.host)
                errors.append(error)
                continue
            for each in errors:  # a host may refuse our key while another one accepts it
                if isinstance(each, AccessDeniedError):
                    self._notice(each.problem)
            self._announce(number, worker.host, opened)
            return worker
        raise self._choose_error(errors)

    def _take_prepared(self, number: int) -> WorkerProcess | None:
        """Return the channel's prepared session, unless it is so old that it may be broken."""
        with self._changed:
            if self._prepared is None or number not in self._prepared[0].channels:
                return None
            (worker, since), self._prepared = self._prepared, None
        if self._now() - since < _FRESH:
            return worker
        self._drop(worker)
        return None

    def _find_worker(
        self, number: int, tried: Collection[str], crowded: Collection[str]
    ) -> WorkerProcess | None:
        """Return a worker for one more channel: its own, or the one with the fewest channels.

        Waits for sessions that are being opened. Returns None if no host is left, every session has
        all its channels, or the sessions that were waited for have failed.
        """
        with self._changed:
            while not self._closed:
                if len(self._workers) < self._count_sessions():
                    if (destination := self._choose_destination(tried)) is not None:
                        return self._start_worker(number, destination)
                    near = count_sessions(self._cpus, 0.0)
                    if sum(worker.is_open for worker in self._workers) < near:
                        return None
                    self._granted = len(self._workers), self._now() + _ASK_AGAIN
                left = [it for it in self._workers if it.host not in crowded]
                worker = min(left, key=lambda it: len(it.channels), default=None)
                if worker is None or len(worker.channels) >= self._count_places():
                    return None
                if worker.is_open:
                    worker.channels.add(number)
                    return worker
                self._changed.wait()
                if not self._workers and len(self._destinations) == 1:
                    return None  # it would fail for this channel as well
        raise TransientError("The channels are closed.", code="channel.closed")

    def _choose_destination(self, tried: Collection[str]) -> StagingDestination | None:
        """Return the host with the fewest sessions, except those tried; None if none is left.

        A host that failed comes last for a while: it is still better than none.
        """
        now = self._now()

        def rank(destination: StagingDestination) -> tuple[float, int]:
            sessions = sum(worker.host == destination.host for worker in self._workers)
            return max(0.0, self._rests_until.get(destination.host, now) - now), sessions

        left = [it for it in self._destinations if it.host not in tried]
        return min(left, key=rank, default=None)

    def _start_worker(self, number: int, destination: StagingDestination) -> WorkerProcess:
        """Start a process that opens a session for a channel, which gets its errors.

        Raises `ServerUnavailableError` if the destination allows no further session now.
        """
        destination.require_ready()
        host = destination.host
        known = self._capabilities_by_host.get(host)
        if known is None and self._memory and (known := self._memory.find(host)):
            self._recalled.add(host)
        worker = self._starter.start(f"session {number}")
        worker.founder, worker.destination = number, destination
        worker.recalled = known is not None and host in self._recalled
        worker.channels.add(number)
        config = WorkerConfig(
            destination.suit(known),
            known,
            confirm=any(other.is_open for other in self._workers),
            compress=self._settings.compression == "auto",
            named=self._broke,
            find_zeros=self._settings.find_zeros,
        )
        self._workers.append(worker)
        with suppress(TransientError):
            worker.begin(config)
            worker.send(number, JoinChannel())
        return worker

    def _join(self, number: int, worker: WorkerProcess) -> ChannelOpened:
        """Let a channel join a worker, which may still be connecting.

        The worker probes the host if its capabilities are not known yet; waiting for another
        worker's probe would take longer.
        """
        if worker.founder != number:
            worker.send(number, JoinChannel())
        assert worker.destination
        with worker.destination.answering():
            limit = worker.destination.limit_opening(self.timeout)
            opened = worker.receive(number, _STARTING + limit)
        assert isinstance(opened, ChannelOpened)
        if worker.recalled:
            self._recalled.add(worker.host)
        elif worker.founder == number:
            self._recalled.discard(worker.host)
            if self._memory:
                self._memory.keep(worker.host, opened.capabilities)
        with self._changed:
            self._capabilities_by_host[worker.host] = opened.capabilities
            if opened.round_trip:
                self.round_trip = min(self.round_trip or inf, opened.round_trip)
            worker.is_open = worker in self._workers
            if opened.stack == "paramiko":  # it encrypts on one processor only
                worker.takes_guests = False
            self._changed.notify_all()
        return opened

    def _forget(self, host: str) -> None:
        """Let the next session probe a host."""
        self._recalled.discard(host)
        self._capabilities_by_host.pop(host, None)
        if self._memory:
            self._memory.keep(host, None)

    def _choose_error(self, errors: list[UploaderError]) -> UploaderError:
        """Return the most important error of all hosts: a refused key comes first."""
        if not (errors or self._workers) and self._failure:
            errors = [self._failure]
        for error in errors:
            if isinstance(error, AccessDeniedError):
                return self._explain(error)
        if errors and errors[-1].problem_code == NO_CHANNEL and not self._workers:
            return allows_nothing(errors[-1])
        if errors:
            return errors[-1]
        if self._workers:
            return TransientError("Every session has all its channels.", code=NO_CHANNEL)
        return ServerUnavailableError("The staging area has no host.", code="staging.no-host")

    def open_shared(self, number: int, own: WorkerProcess) -> WorkerProcess | None:
        """Return another worker for a channel's large files; None if its own one sends them.

        Half of the sessions to a near host send the large files of all its channels. This takes
        less processor time on both sides: more files are hashed together, and fewer processes
        alternate. Only the sender for shells sends several files in one thread.
        """
        with self._changed:
            capabilities = self._capabilities_by_host.get(own.host)
            if capabilities is None or capabilities.access != "shell" or self.round_trip >= _LONG:
                return None
            if not self.may_share:
                return None
            sessions = [it for it in self._workers if it.host == own.host]
            shared = sessions[: max(1, len(sessions) // 2)]
            if own not in sessions or own in shared:
                return None
            free = [it for it in shared if it.is_open and it.takes_guests]
            worker = min(free, key=lambda it: len(it.channels), default=None)
            if worker is None or len(worker.channels) >= self._count_places():
                return None
            worker.channels.add(number)
        try:
            self._join(number, worker)
        except UploaderError:  # the channel's own session sends them; this one is not asked again
            worker.takes_guests = False
            self.leave(worker, number)
            return None
        return worker

    @property
    def may_share(self) -> bool:
        """Whether the sessions have places for more than the channels of their own."""
        return self._wanted <= STREAMS

    def note_closed(self) -> None:
        """Record that a channel was closed: no more are wanted than those that are left."""
        with self._changed:
            left = set().union(*(worker.channels for worker in self._workers))
            self._wanted = min(self._wanted, len(left))

    def announce(self, payload: Payload) -> None:
        """Report the folders of a payload in which its files get temporary names."""
        hosts = list(self._capabilities_by_host.values())
        by_tar = payload.batched and hosts and all(it.tar for it in hosts)
        named = [wanted for wanted in payload.members if wanted.replaces or not by_tar]
        if named:
            self._visiting({wanted.remote.rpartition("/")[0] for wanted in named})

    def count_spent(self, spent: TimeByCause) -> None:
        """Add the time that a channel has spent."""
        with self._counting:
            self.spent = self.spent.plus(spent)

    def leave(self, worker: WorkerProcess, number: int) -> None:
        """Remove an idle channel from its worker; the last one ends the worker."""
        with self._changed:
            worker.channels.discard(number)
            if worker.founder == number:
                worker.founder = 0
            deserted = not worker.channels
        if deserted:
            self._drop(worker)
            return
        with suppress(TransientError):  # a process that has ended needs no message
            worker.send(number, LeaveChannel())

    def give_up(self, worker: WorkerProcess, *, failed: bool) -> None:
        """Close a worker after a payload; after a failure, other hosts are preferred for a while.

        If its capabilities were remembered, the host is probed again.
        """
        if worker.recalled:
            self._forget(worker.host)
        self._drop(worker, failed=failed)

    def _drop(self, worker: WorkerProcess, *, failed: bool = False) -> None:
        worker.kill()
        worker.reap()
        with self._changed:
            if worker in self._workers:
                self._workers.remove(worker)
                if failed:
                    self._rests_until[worker.host] = self._now() + REST
                    self._broke |= worker.is_open
            worker.is_open = False
            self._changed.notify_all()

    @property
    def _cpus(self) -> list[int]:
        """The known processor counts of both sides."""
        known, hosts = list(self._capabilities_by_host.values()), len(self._destinations)
        return [count_cpus(), *(it.cpus * hosts for it in known if it.cpus)]

    def _count_sessions(self) -> int:
        """Return the number of sessions that are useful and granted."""
        if self._starter.most:
            return 1
        granted, until = self._granted
        if self._now() >= until:
            return count_sessions(self._cpus, self.round_trip)
        return max(count_sessions(self._cpus, 0.0), granted)

    def _count_places(self) -> int:
        """Return the channels per session; one for scp, which opens a new one for each payload."""
        hosts = list(self._capabilities_by_host.values())
        if any(it.access == "scp" for it in hosts):
            return 1
        return self._starter.most or STREAMS

    def _announce(self, number: int, host: str, opened: ChannelOpened) -> None:
        capabilities = opened.capabilities
        detail = ", ".join(text for text in (opened.stack, capabilities.why) if text)
        self.emit(
            ChannelChanged(
                channel=number,
                state="open",
                host=host,
                rung=capabilities.access,
                cipher=opened.cipher,
                detail=detail,
            )
        )
        for problem in list_limits(host, capabilities):
            self._notice(problem)

    def _notice(self, problem: Problem) -> None:
        """Report a problem, once in this run."""
        if problem.message not in self._noticed:
            self._noticed.add(problem.message)
            self.emit(Notice(problem=problem))


def list_limits(host: str, capabilities: HostCapabilities) -> Iterator[Problem]:
    """Yield what a host lacks that makes a difference to its users."""
    if capabilities.gcm_only:
        yield Problem(
            "ssh.paramiko",
            f"{host} is reached with paramiko, which is slower: the installed libssh does not "
            "check what it receives with AES-GCM, and both sides allow no other cipher.",
            "If the host offers aes128-ctr, add it to transfer.ciphers.",
        )
    if capabilities.access == "shell" and not capabilities.tar:
        message = f"{host} has no supported tar: small files are sent one by one."
        yield Problem("staging.no-tar", message)
    if capabilities.lacks:
        message = f"The shell of {host} is not used, since it has no {capabilities.lacks}."
        yield Problem("staging.no-programs", message)
    if not capabilities.times:
        message = f"{host} does not set times: files there get the time of their transfer."
        yield Problem("staging.no-times", message)
    why = ""
    if capabilities.access == "scp":
        why = "allows only scp"
    elif not capabilities.renames:
        why = "does not rename and remove files"
    elif capabilities.access == "shell" and not capabilities.checksum:
        why = "has no program for checksums"
    if why:
        message = f"{host} {why}: interrupted transfers start again from the beginning."
        yield Problem("staging.no-resume", message)
