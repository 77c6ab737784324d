"""The transport to the staging area: a pool of channels that share sessions and processes."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Protocol

from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    Problem,
    ServerUnavailableError,
    SettingsError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.model import Payload, StagingArea
from mydata_like.core.ports import Emit
from mydata_like.settings.schema import Transfer
from mydata_like.settings.values import parse_jump
from mydata_like.ssh.capabilities import HostCapabilities, allows_nothing
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.channel import StagingChannel
from mydata_like.transfer.remote_shell import owner_mark
from mydata_like.transfer.sessions import Destination, Sessions, SessionSlot
from mydata_like.transfer.staging_folder import StagingFolder
from mydata_like.transfer.worker_messages import (
    DROPPED,
    STREAMS,
    ChannelOpened,
    JoinChannel,
    WorkerConfig,
)
from mydata_like.transfer.worker_process import (
    WorkerProcess,
    WorkerStarter,
    answering,
    require_few_left,
)


def build_destinations(
    area: StagingArea, settings: Transfer, *, key_file: Path, known_hosts: Path
) -> Sequence[Destination]:
    """Return the folder of the settings if files are sent to it, else the endpoint of each host."""
    if settings.method == "folder" and settings.folder is not None:
        return [StagingFolder(os.fsencode(settings.folder), area.box, area.location)]
    return build_endpoints(area, settings, key_file=key_file, known_hosts=known_hosts)


def build_endpoints(
    area: StagingArea, settings: Transfer, *, key_file: Path, known_hosts: Path
) -> list[Endpoint]:
    """Return the endpoint of each host of the staging area.

    If host keys are pinned in the settings, the server's keys are ignored: an attacker who controls
    the server must not be able to add one.
    """
    plain = Endpoint(
        host="",
        port=area.port,
        username=area.username,
        key_file=key_file,
        known_hosts=known_hosts,
        ciphers=settings.ciphers,
        connect_timeout=settings.connect_timeout,
        stall_timeout=settings.stall_timeout,
        stack=settings.ssh,
        agent=_find_agent() if settings.ssh_agent else "",
    )
    via = _find_jump_hosts(plain, settings.ssh_jump, settings.host_keys)
    pinned = plain._replace(
        host_keys=settings.host_keys or area.host_keys,
        pinned_by_server=not settings.host_keys,
        via=via,
    )
    return [pinned._replace(host=host) for host in area.hosts]


def locate(area: StagingArea, destinations: Sequence[Destination]) -> bytes:
    """Return the path of the staging area on its hosts, or that of the folder."""
    for destination in destinations:
        if isinstance(destination, StagingFolder):
            return destination.path
    return os.fsencode(area.location)


def _find_jump_hosts(
    plain: Endpoint, jumps: tuple[str, ...], trusted: tuple[str, ...]
) -> Endpoint | None:
    """Return the last jump host, linked to those before it; None without jump hosts."""
    via = None
    for text in jumps:
        username, host, port = parse_jump(text)
        hop = plain._replace(host=host, port=port, username=username or plain.username, via=via)
        via = hop._replace(also_trusted=trusted, any_key=bool(plain.agent))
    return via


def _find_agent() -> str:
    if agent := os.environ.get("SSH_AUTH_SOCK"):
        return agent
    raise SettingsError(
        "transfer.ssh_agent is on, but there is no agent: SSH_AUTH_SOCK is not set.",
        hint="Start ssh-agent before mydata-like, or switch transfer.ssh_agent off.",
        code="ssh.no-agent",
    )


class HostMemory(Protocol):
    """The capabilities of hosts that earlier runs have found."""

    def find(self, host: str) -> HostCapabilities | None:
        """Return the capabilities of a host, unless they are unknown or out of date."""

    def keep(self, host: str, capabilities: HostCapabilities | None) -> None:
        """Store the capabilities of a host, or remove them."""


class Preparations(NamedTuple):
    """What saves time at the start: the result of earlier probes, and workers that were started."""

    memory: HostMemory | None = None
    workers: WorkerStarter | None = None


NOTHING_PREPARED: Final = Preparations()
_STARTING: Final = 15.0  # seconds to start a process on a busy machine
_TIMEOUT_FACTOR: Final = 1.5  # times the worker's own timeout
_UNREACHABLE: Final = (TransientError, ServerUnavailableError)
_DROPPED_AT_MOST: Final = 3  # times that another channel may end the session that one joins


class StagingTransport:
    """Sends payloads to the staging area over up to `capacity` channels.

    If the settings name a folder for that, no host is contacted: a session is a process that writes
    to the folder.

    Each session has its own process. There are as many sessions as both sides have processors, and
    some more over a long distance. Further channels share sessions: a slow acknowledgement needs
    more data in flight, not more logins. Large files may be sent over another session than that of
    their channel (see `Sessions.find_shared`).

    Any number of threads may use it, each with its own channels. `explain` is called to find out
    why the staging hosts refuse our key, `renew` to find out which keys the server names for a host
    that has another key. `owner` is the uuid in temporary names. `visiting` is
    called with the folders below the location in which temporary files may be left.

    Capabilities of the hosts come from the memory of `preparations`, to save the time of a probe.
    After any failure with them, the host is probed, and what failed is sent again.
    """

    def __init__(
        self,
        area: StagingArea,
        settings: Transfer,
        *,
        key_file: Path,
        known_hosts: Path,
        emit: Emit,
        explain: Callable[[AccessDeniedError], UploaderError] = lambda error: error,
        renew: Callable[[], tuple[str, ...]] | None = None,
        owner: str = "",
        visiting: Callable[[Iterable[str]], object] = frozenset,
        preparations: Preparations = NOTHING_PREPARED,
    ) -> None:
        self._area = area
        self._build = partial(
            build_destinations, settings=settings, key_file=key_file, known_hosts=known_hosts
        )
        destinations = self._build(area)
        self._location = locate(area, destinations)
        self._settings = settings
        self.timeout = settings.stall_timeout * _TIMEOUT_FACTOR
        self._opening_timeout = _STARTING + settings.connect_timeout + 2 * self.timeout
        self.emit = emit
        self._explain = explain
        self._renew = renew
        self._renewing = Lock()
        self.mark = owner_mark(owner)
        self._visiting = visiting
        self._memory = preparations.memory
        self._recalled: set[str] = set()  # the hosts whose capabilities come from the memory
        self._workers = preparations.workers or WorkerStarter()
        self._sessions = Sessions(destinations, self._start_worker)
        self._lock = Lock()
        self._opened = 0
        self._noticed: set[str] = set()
        self._spent = NOTHING_SPENT

    @property
    def spent(self) -> TimeByCause:
        """The time of all channels by cause."""
        return self._spent

    @property
    def capacity(self) -> int:
        """The maximum number of channels; more accurate once the first is open."""
        return self._sessions.capacity

    def describe_capacity(self) -> str:
        """Return the maximum number of channels, and the processors that it depends on."""
        return self._sessions.describe_capacity()

    @property
    def round_trip(self) -> float:
        """The round trip in seconds; 0 while unknown."""
        return self._sessions.round_trip

    def prepare(self) -> None:
        """Start to open the first channel before it is needed, to save that time."""
        with self._lock:
            if not self._opened:
                with suppress(ServerUnavailableError):  # opening the channel reports it
                    self._sessions.prepare(1)

    def open_channel(self) -> StagingChannel:
        """Open one more channel; see `core.ports.Transport`."""
        with self._lock:
            self._opened += 1
            number = self._opened
        channel = StagingChannel(self, number)
        channel.open()
        return channel

    def close(self) -> None:
        """End all workers at once; active sends raise `TransientError`."""
        self._sessions.close()

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
            if not self._sessions.serves or self._sessions.closed:
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
                self._sessions.replace_endpoints(self._build(self._area))
            return self._area.host_keys != named

    def _open_worker(self, number: int) -> WorkerProcess:
        failures: list[tuple[SessionSlot, UploaderError]] = []
        dropped = 0
        for slot in self._find_slots(number, failures):
            try:
                opened = self._join(number, slot)
            except UploaderError as error:
                if error.problem_code == DROPPED and dropped < _DROPPED_AT_MOST:
                    dropped += 1  # which says nothing about the host
                    self._sessions.drop(slot.worker, failed=True)
                    continue
                self._sessions.give_up(number, slot, error)
                if slot.is_new and slot.worker.recalled and error.problem_code == NO_CHANNEL:
                    self._forget(slot.endpoint.host)  # it may allow another kind of access
                    continue
                if not isinstance(error, (*_UNREACHABLE, AccessDeniedError)):
                    raise
                failures.append((slot, error))
                continue
            for _, failure in failures:
                self._report_refusal(failure)
            self._announce(number, slot.endpoint.host, opened)
            return slot.worker
        raise self._choose_error([failure for _, failure in failures])

    def open_shared(self, number: int, own: WorkerProcess) -> WorkerProcess | None:
        """Return another worker for a channel's large files; None if its own one sends them."""
        wanted = min(self._settings.channels, self.capacity)
        if max(wanted, self._sessions.count_open_channels()) > STREAMS:
            return None  # they need all places of the sessions
        slot = self._sessions.find_shared(number, own)
        if slot is None:
            return None
        try:
            self._join(number, slot)
        except UploaderError:  # the channel's own session sends them
            self._sessions.refuse_shared(number, slot.worker)
            return None
        return slot.worker

    def _find_slots(
        self, number: int, failures: Sequence[tuple[SessionSlot, UploaderError]]
    ) -> Iterator[SessionSlot]:
        """Yield the places that a channel may try, without those that failed."""
        if prepared := self._sessions.take_prepared(number):
            yield prepared
        while slot := self._sessions.find_slot(number, [slot for slot, _ in failures]):
            yield slot

    def announce(self, payload: Payload) -> None:
        """Report the folders of a payload in which its files get temporary names."""
        hosts = list(self._sessions.capabilities_by_host.values())
        by_tar = payload.batched and hosts and all(it.tar for it in hosts)
        named = [wanted for wanted in payload.members if wanted.replaces or not by_tar]
        if named:
            self._visiting({wanted.remote.rpartition("/")[0] for wanted in named})

    def count_spent(self, spent: TimeByCause) -> None:
        """Add the time that a channel has spent."""
        with self._lock:
            self._spent = self._spent.plus(spent)

    def leave(self, worker: WorkerProcess, number: int) -> None:
        """Remove an idle channel from its worker; the last one ends the worker."""
        self._sessions.leave(worker, number)

    def drop(self, worker: WorkerProcess, *, failed: bool = False) -> None:
        """Close a worker; after a failure, other hosts are preferred for a while."""
        if worker.recalled:
            self._forget(self._sessions.host_of(worker))
        self._sessions.drop(worker, failed=failed)

    def host_of(self, worker: WorkerProcess) -> str:
        """Return the host of a worker's session; empty after the worker was closed."""
        return self._sessions.host_of(worker)

    def _choose_error(self, errors: list[UploaderError]) -> UploaderError:
        """Return the most important error of all hosts: a refused key comes first."""
        if not (errors or self._sessions) and self._sessions.failure:
            errors = [self._sessions.failure]
        for error in errors:
            if isinstance(error, AccessDeniedError):
                return self._explain(error)
        if errors and errors[-1].problem_code == NO_CHANNEL and not self._sessions:
            return allows_nothing(errors[-1])
        if errors:
            return errors[-1]
        if self._sessions:
            return TransientError("Every session has all its channels.", code=NO_CHANNEL)
        return ServerUnavailableError("The staging area has no host.", code="staging.no-host")

    def _report_refusal(self, error: UploaderError) -> None:
        """Notify once about a host that refuses our key while another accepts it."""
        if isinstance(error, AccessDeniedError) and error.message not in self._noticed:
            self._noticed.add(error.message)
            self.emit(Notice(problem=error.problem))

    def _start_worker(self, name: str, endpoint: Destination) -> WorkerProcess:
        """Start a process that opens a session; a channel that joins it gets its errors.

        Raises `ServerUnavailableError` if too many earlier processes still wait for a lost folder.
        """
        if isinstance(endpoint, StagingFolder):
            require_few_left(endpoint)
        worker, config = self._workers.start(name), self._build_config(endpoint)
        worker.recalled = config.capabilities is not None and endpoint.host in self._recalled
        with suppress(TransientError):
            worker.begin(config)
        return worker

    def _join(self, number: int, slot: SessionSlot) -> ChannelOpened:
        """Let a channel join a worker, which may still be connecting.

        The worker probes the host if its capabilities are not known yet; waiting for another
        worker's probe would take longer.
        """
        if not slot.joined:
            slot.worker.send(number, JoinChannel())
        if isinstance(slot.endpoint, StagingFolder):
            with answering(slot.endpoint):
                opened = slot.worker.receive(number, _STARTING + self.timeout)
        else:
            opened = slot.worker.receive(number, self._opening_timeout)
        assert isinstance(opened, ChannelOpened)
        host = slot.endpoint.host
        if slot.worker.recalled:
            self._recalled.add(host)
        elif slot.is_new:
            self._recalled.discard(host)
            self._keep(host, opened.capabilities)
        self._sessions.mark_open(slot, opened)
        return opened

    def _forget(self, host: str) -> None:
        """Let the next session probe a host."""
        self._recalled.discard(host)
        self._sessions.capabilities_by_host.pop(host, None)
        self._keep(host, None)

    def _keep(self, host: str, capabilities: HostCapabilities | None) -> None:
        if self._memory is not None:
            self._memory.keep(host, capabilities)

    def _find_capabilities(self, host: str) -> HostCapabilities | None:
        known = self._sessions.capabilities_by_host.get(host)
        if known is None and self._memory is not None:
            known = self._memory.find(host)
            if known is not None:
                self._recalled.add(host)
        return known

    def _build_config(self, endpoint: Destination) -> WorkerConfig:
        known = self._find_capabilities(endpoint.host)
        if known and known.gcm_only and isinstance(endpoint, Endpoint) and endpoint.stack == "auto":
            endpoint = endpoint._replace(stack="paramiko")
        return WorkerConfig(
            endpoint,
            self._location,
            known,
            confirm=self._sessions.serves,
            compress=self._settings.compression == "auto",
            named=self._sessions.broken,
            find_zeros=self._settings.find_zeros,
        )

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
    yield from _report_restarts(host, capabilities)


def _report_restarts(host: str, capabilities: HostCapabilities) -> Iterator[Problem]:
    """Yield why interrupted transfers to a host do not resume, if they do not."""
    if capabilities.access == "scp":
        why = "allows only scp"
    elif not capabilities.renames:
        why = "does not rename and remove files"
    elif capabilities.access == "shell" and not capabilities.checksum:
        why = "has no program for checksums"
    else:
        return
    message = f"{host} {why}: interrupted transfers start again from the beginning."
    yield Problem("staging.no-resume", message)
