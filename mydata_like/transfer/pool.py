"""The transport over SSH: a bounded pool of channels, several to a session and its process."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from threading import Condition
from typing import Final, NamedTuple

from mydata_like.core.errors import (
    AccessDeniedError,
    Problem,
    ServerUnavailableError,
    TransientError,
    UploaderError,
)
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Emit
from mydata_like.core.spent import NOTHING_SPENT, Spent
from mydata_like.settings.schema import Transfer
from mydata_like.ssh.links import NO_CHANNEL, REFUSED
from mydata_like.ssh.remote import Rung
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.channel import SshChannel
from mydata_like.transfer.endpoints import build_endpoints
from mydata_like.transfer.process import WorkerProcess, build_command
from mydata_like.transfer.protocol import STREAMS, Join, Leave, Opened, Plan
from mydata_like.transfer.rota import Rota
from mydata_like.transfer.sessions import FAR, FURTHER, count_cpus, count_sessions

_STARTING: Final = 15.0  # seconds that starting a process may take on a busy machine
_PATIENCE: Final = 1.5  # times the time limit that a worker keeps by itself
_MANY: Final = 16  # channels for which no further session is shared
_AWAY: Final = (TransientError, ServerUnavailableError)


class _Place(NamedTuple):
    """A channel's place in a session, which it may have `founded`."""

    worker: WorkerProcess
    endpoint: Endpoint
    founded: bool


class SshTransport:
    """Carries payloads to the staging area over up to `capacity` channels.

    There are as many sessions, each with a process, as both sides have processors, or some more
    over a long way. Further channels share those: what the other side is slow to acknowledge
    wants more in flight, not more logins.

    Any number of threads may use it, each its own channels. `explain` is asked why the staging
    hosts refuse our key.
    """

    def __init__(  # noqa: PLR0913 - `worker` is for tests
        self,
        area: StagingArea,
        settings: Transfer,
        *,
        key_file: Path,
        known_hosts: Path,
        emit: Emit,
        explain: Callable[[AccessDeniedError], UploaderError] = lambda error: error,
        worker: Sequence[str] = (),
    ) -> None:
        self._rota = Rota(
            build_endpoints(area, settings, key_file=key_file, known_hosts=known_hosts)
        )
        self._location = os.fsencode(area.location)
        self._settings = settings
        self.round_trip = 0.0  # seconds, the shortest that a channel saw as it was opened
        self.patience = settings.stall_timeout * _PATIENCE
        self._opening_patience = _STARTING + settings.connect_timeout + 2 * self.patience
        self.emit = emit
        self._explain = explain
        self._command = worker or build_command()
        self._rungs: dict[str, Rung] = {}
        self._granted = FURTHER  # sessions, of those that only a long way wants
        self._lock = Condition()
        self._workers: dict[WorkerProcess, Endpoint] = {}
        self._spare: WorkerProcess | None = None  # has started, and waits for its plan
        self._opened = 0
        self._carried = 0  # payloads under way
        self._broken = False  # whether a line has been; the next may be as weak
        self._noticed: set[str] = set()
        self._closed = False
        self._spent = NOTHING_SPENT

    @property
    def spent(self) -> Spent:
        """On what all channels have spent their time."""
        return self._spent

    @property
    def capacity(self) -> int:
        """How many channels there may be at once; known better once the first is open."""
        sessions = self._most_sessions(self.round_trip if self._rungs else FAR)
        return min(sessions * self._most_together(), max(sessions, _MANY))

    def prepare(self) -> None:
        """Start the first worker's process, so that it has started when a channel is wanted."""
        with self._lock:
            if not (self._workers or self._spare or self._closed):
                self._spare = WorkerProcess(self._command, "session 1")

    def open_channel(self) -> SshChannel:
        """Open one more channel.

        Raises `TransientError` with the code `channel.refused` where others work and the
        host grants no more.
        """
        with self._lock:
            self._opened += 1
            number = self._opened
            others = bool(self._workers)
        channel = SshChannel(self, number)
        try:
            channel.open()
        except _AWAY as error:
            if not others or self._closed:
                raise
            raise TransientError(
                f"The staging host grants no more channels: {error.message}",
                code=NO_CHANNEL,
            ) from error
        return channel

    def close(self) -> None:
        """End all workers at once; sends under way raise `TransientError`."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            workers = [*self._workers, *([self._spare] if self._spare else [])]
            self._spare = None
        for worker in workers:
            worker.kill()
        for worker in workers:
            self.drop(worker)

    def open_worker(self, number: int) -> WorkerProcess:
        """Return the worker that a channel has joined, one on the first host that lets us in.

        A host that is not the one we know (`HostKeyError`) is no matter of taking another.
        """
        failures: list[tuple[Endpoint, UploaderError]] = []
        while place := self._take_place(number, [tried for tried, _ in failures]):
            try:
                opened = self._enter(number, place)
            except UploaderError as error:
                self._leave_place(number, place)
                if not isinstance(error, (*_AWAY, AccessDeniedError)):
                    raise
                if place.founded and isinstance(error, _AWAY) and self._do_without():
                    continue
                failures.append((place.endpoint, error))
                continue
            for _, failure in failures:
                self._tell_refusal(failure)
            self._announce(number, place.endpoint.host, opened)
            return place.worker
        raise self._worst([failure for _, failure in failures])

    @contextmanager
    def carrying(self) -> Iterator[bool]:
        """Carry a payload while this lasts; yield whether fewer are carried than processors are."""
        with self._lock:
            self._carried += 1
            spare = self._carried < count_cpus()
        try:
            yield spare
        finally:
            with self._lock:
                self._carried -= 1

    def count_spent(self, spent: Spent) -> None:
        """Count what a channel has spent its time on."""
        with self._lock:
            self._spent = self._spent.plus(spent)

    def leave(self, worker: WorkerProcess, number: int) -> None:
        """Let a channel that carries nothing leave its worker, and the last one end it."""
        with self._lock:
            worker.channels.discard(number)
            deserted = not worker.channels
        if deserted:
            self.drop(worker)
            return
        with suppress(TransientError):  # one that has ended needs not be told
            worker.tell(number, Leave())

    def drop(self, worker: WorkerProcess, *, failed: bool = False) -> None:
        """Give a worker up for good; after a failure its host rests."""
        worker.kill()
        worker.reap()
        with self._lock:
            endpoint = self._workers.pop(worker, None)
            self._broken |= failed
            self._lock.notify_all()
        if endpoint is not None:
            self._rota.leave(endpoint, failed=failed)

    def host_of(self, worker: WorkerProcess) -> str:
        """Return the host of a worker's session; empty for one that was given up."""
        with self._lock:
            endpoint = self._workers.get(worker)
        return endpoint.host if endpoint else ""

    def _most_sessions(self, round_trip: float) -> int:
        return max(self._most_near(), min(self._granted, self._count_sessions(round_trip)))

    def _most_near(self) -> int:
        return self._count_sessions(0.0)

    def _count_sessions(self, round_trip: float) -> int:
        hosts = len(self._rota.endpoints)
        theirs = [rung.cpus * hosts for rung in self._rungs.values() if rung.cpus]
        return count_sessions([count_cpus(), *theirs], round_trip)

    def _do_without(self) -> bool:
        """Note that no further session is granted; return whether others can be shared instead."""
        with self._lock:
            if len(self._workers) < self._most_near():
                return False
            self._granted = len(self._workers)
            return True

    def _most_together(self) -> int:
        """Return how many channels a session has; one where each is asked for by every payload."""
        return 1 if any(rung.rung == "scp" for rung in self._rungs.values()) else STREAMS

    def _take_place(self, number: int, tried: Collection[Endpoint]) -> _Place | None:
        """Return where one more channel belongs: in a session of its own, or in the emptiest one.

        None after the last host, or where every session has all its channels. Before the first one
        stands nobody knows whether the way is long, and none can be shared, either.
        """
        with self._lock:
            while not (self._rungs or self._closed) and len(self._workers) >= self._most_near():
                self._lock.wait()
            if self._closed:
                raise _closed()
            if len(self._workers) < self._most_sessions(self.round_trip):
                if (endpoint := self._rota.take(tried)) is None:
                    return None
                worker = self._spare or WorkerProcess(self._command, f"session {number}")
                self._spare = None
                self._workers[worker] = endpoint
                place = _Place(worker, endpoint, founded=True)
            elif (shared := self._find_room(tried)) is not None:
                place = _Place(shared, self._workers[shared], founded=False)
            else:
                return None
            place.worker.channels.add(number)
            return place

    def _find_room(self, tried: Collection[Endpoint]) -> WorkerProcess | None:
        """Return the session with the fewest channels that may have one more."""
        workers = [worker for worker, host in self._workers.items() if host not in tried]
        emptiest = min(workers, key=lambda worker: len(worker.channels), default=None)
        if emptiest is None or len(emptiest.channels) >= self._most_together():
            return None
        return emptiest

    def _leave_place(self, number: int, place: _Place) -> None:
        """Give up what could not be entered; who founded the session ends it for all."""
        if place.founded:
            self.drop(place.worker, failed=True)
        else:
            self.leave(place.worker, number)

    def _worst(self, errors: list[UploaderError]) -> UploaderError:
        """Return what keeps us from every host: most telling is that our key is refused."""
        for error in errors:
            if isinstance(error, AccessDeniedError):
                return self._explain(error)
        if errors and errors[-1].problem_code == NO_CHANNEL and not self._workers:
            # Hosts that let us in and then do nothing for us are as good as away.
            return TransientError(errors[-1].message, code=REFUSED)
        if errors:
            return errors[-1]
        if self._workers:
            return TransientError("Every session has all its channels.", code=NO_CHANNEL)
        return ServerUnavailableError("The staging area has no host.", code="staging.no-host")

    def _tell_refusal(self, error: UploaderError) -> None:
        """Tell once of a host that refuses our key while another takes it."""
        if isinstance(error, AccessDeniedError) and error.message not in self._noticed:
            self._noticed.add(error.message)
            self.emit(Notice(problem=error.problem))

    def _enter(self, number: int, place: _Place) -> Opened:
        """Let a channel join a worker, which may have to connect before.

        It probes the host where no other has done so yet: to wait for one that is about to would
        take longer.
        """
        worker, endpoint, founded = place
        if founded:
            worker.begin(self._plan(endpoint))
        worker.tell(number, Join())
        opened = worker.hear(number, self._opening_patience)
        assert isinstance(opened, Opened)
        with self._lock:
            self._rungs[endpoint.host] = opened.rung
            self.round_trip = min(self.round_trip or inf, opened.round_trip)
            self._lock.notify_all()
        return opened

    def _plan(self, endpoint: Endpoint) -> Plan:
        return Plan(
            endpoint,
            self._location,
            self._rungs.get(endpoint.host),
            compress=self._settings.compression == "auto",
            named=self._broken,
            find_zeros=self._settings.find_zeros,
        )

    def _announce(self, number: int, host: str, opened: Opened) -> None:
        rung = opened.rung
        detail = ", ".join(text for text in (opened.stack, rung.why) if text)
        self.emit(
            ChannelChanged(
                channel=number,
                state="open",
                host=host,
                rung=rung.rung,
                cipher=opened.cipher,
                detail=detail,
            )
        )
        message = f"{host} has no tar that is known: small files are sent one by one."
        if rung.rung == "shell" and not rung.tar and message not in self._noticed:
            self._noticed.add(message)
            self.emit(Notice(problem=Problem("staging.no-tar", message)))


def _closed() -> TransientError:
    return TransientError("The channels are closed.", code="channel.closed")
