"""The transport over SSH: a bounded pool of channels, each a process with a session of its own."""

import os
from pathlib import Path
from threading import Lock
from typing import Final

from mydata_like.core.errors import (
    Problem,
    RunError,
    ServerUnavailableError,
    TransientError,
    UploaderError,
)
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.model import Payload, StagingArea, Wanted
from mydata_like.core.ports import Emit, Progress, Sent, Unsent
from mydata_like.settings.schema import Transfer
from mydata_like.ssh.links import NO_CHANNEL
from mydata_like.ssh.remote import Rung
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.process import Work, WorkerProcess
from mydata_like.transfer.protocol import (
    Done,
    Fate,
    Member,
    Moved,
    Opened,
    Plan,
    Task,
)
from mydata_like.transfer.worker import work

_STARTING: Final = 15.0  # seconds that starting a process may take on a busy machine
_PATIENCE: Final = 1.5  # times the time limit that a worker keeps by itself
_AWAY: Final = (TransientError, ServerUnavailableError)


class SshTransport:
    """Carries payloads to the staging area over up to `capacity` SSH sessions.

    Any number of threads may use it, each its own channels.
    """

    def __init__(  # noqa: PLR0913 - `work` is for tests
        self,
        area: StagingArea,
        settings: Transfer,
        *,
        key_file: Path,
        known_hosts: Path,
        emit: Emit,
        work: Work = work,
    ) -> None:
        self._endpoints = build_endpoints(
            area, settings, key_file=key_file, known_hosts=known_hosts
        )
        self._location = os.fsencode(area.location)
        self._wanted_channels = settings.channels
        self.patience = settings.stall_timeout * _PATIENCE
        self._opening_patience = _STARTING + settings.connect_timeout + 2 * self.patience
        self.emit = emit
        self._work = work
        self._rungs: dict[str, Rung] = {}
        self._probing = Lock()  # the first to connect probes for all
        self._lock = Lock()
        self._workers: set[WorkerProcess] = set()
        self._opened = 0
        self._noticed = False
        self._closed = False

    @property
    def capacity(self) -> int:
        """How many channels there may be at once; known better once the first is open."""
        limits = [_count_cpus()]
        limits += [rung.cpus for rung in self._rungs.values() if rung.cpus]
        if self._wanted_channels:
            limits.append(self._wanted_channels)
        return max(1, min(limits))

    def open_channel(self) -> "SshChannel":
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
            workers = list(self._workers)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.reap()
        self._workers.difference_update(workers)

    def open_worker(self, number: int, turn: int) -> WorkerProcess:
        """Start a worker and wait for its session, on the first host from `turn` that answers."""
        for attempt in range(len(self._endpoints)):
            endpoint = self._endpoints[(turn + attempt) % len(self._endpoints)]
            try:
                return self._connect(number, endpoint)
            except _AWAY:
                if attempt == len(self._endpoints) - 1:
                    raise
        raise ServerUnavailableError("The staging area has no host.", code="staging.no-host")

    def drop(self, worker: WorkerProcess) -> None:
        """Give a worker up for good."""
        worker.kill()
        worker.reap()
        with self._lock:
            self._workers.discard(worker)

    def _connect(self, number: int, endpoint: Endpoint) -> WorkerProcess:
        worker = WorkerProcess(self._work, f"channel {number}")
        with self._lock:
            self._workers.add(worker)
            closed = self._closed
        try:
            if closed:
                raise _closed()
            opened = self._begin(worker, endpoint)
        except UploaderError:
            self.drop(worker)
            raise
        self._announce(number, endpoint.host, opened)
        return worker

    def _begin(self, worker: WorkerProcess, endpoint: Endpoint) -> Opened:
        """Let a worker connect; it probes where no other has, while others wait for that."""
        if endpoint.host in self._rungs:
            return self._order(worker, endpoint)
        with self._probing:
            return self._order(worker, endpoint)

    def _order(self, worker: WorkerProcess, endpoint: Endpoint) -> Opened:
        worker.tell(Plan(endpoint, self._location, self._rungs.get(endpoint.host)))
        opened = worker.hear(self._opening_patience)
        assert isinstance(opened, Opened)
        self._rungs[endpoint.host] = opened.rung
        return opened

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
        if rung.rung == "shell" and not rung.tar and not self._noticed:
            self._noticed = True
            message = f"{host} has no tar that is known: small files are sent one by one."
            self.emit(Notice(problem=Problem("staging.no-tar", message)))


class SshChannel:
    """One line to the staging area; after a failure the next send opens another."""

    def __init__(self, transport: SshTransport, number: int) -> None:
        self._transport = transport
        self._number = number
        self._turn = 0  # which host comes first
        self._worker: WorkerProcess | None = None

    @property
    def number(self) -> int:
        return self._number

    def open(self) -> WorkerProcess:
        """Make sure that there is a worker with a session."""
        if self._worker is None:
            self._worker = self._transport.open_worker(self._number, self._turn)
        return self._worker

    def send(self, payload: Payload, progress: Progress) -> list[Sent | Unsent]:
        """Carry a payload, as `core.ports.Channel` promises."""
        worker = self.open()
        try:
            worker.tell(Task(tuple(map(_describe, payload.members)), payload.batched))
            done = self._wait(worker, payload.size, progress)
        except UploaderError as error:
            self._give_up(worker, error)
            raise
        if done.broken:
            self._give_up(worker, TransientError("The line broke.", code="channel.lost"))
        return [_tell(fate) for fate in done.fates]

    def _wait(self, worker: WorkerProcess, size: int, progress: Progress) -> Done:
        while True:
            answer = worker.hear(self._transport.patience)
            if isinstance(answer, Done):
                return answer
            assert isinstance(answer, Moved)
            progress(min(answer.bytes, size))

    def _give_up(self, worker: WorkerProcess, error: UploaderError) -> None:
        self._transport.drop(worker)
        self._worker = None
        if not isinstance(error, RunError):
            self._turn += 1
        self._transport.emit(
            ChannelChanged(channel=self._number, state="lost", detail=error.message)
        )


def build_endpoints(
    area: StagingArea, settings: Transfer, *, key_file: Path, known_hosts: Path
) -> list[Endpoint]:
    """Return how each host before the staging area is reached."""
    return [
        Endpoint(
            host=host,
            port=area.port,
            username=area.username,
            key_file=key_file,
            known_hosts=known_hosts,
            host_keys=(*area.host_keys, *settings.host_keys),
            ciphers=settings.ciphers,
            connect_timeout=settings.connect_timeout,
            stall_timeout=settings.stall_timeout,
            stack=settings.ssh,
        )
        for host in area.hosts
    ]


def _describe(wanted: Wanted) -> Member:
    file = wanted.file
    remote = wanted.remote.encode("utf-8", "surrogateescape")
    return Member(
        file.path,
        file.size,
        file.modified_ns,
        file.device,
        file.inode,
        remote,
        anew=wanted.round > 0,
    )


def _tell(fate: Fate) -> Sent | Unsent:
    if fate.problem is None:
        return Sent(fate.place, fate.checksum)
    return Unsent(fate.place, fate.problem, fate.again)


def _closed() -> TransientError:
    return TransientError("The channels are closed.", code="channel.closed")


def _count_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
