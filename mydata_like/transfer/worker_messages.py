"""The messages between the engine and its channel workers.

A worker has one SSH session and sends payloads over several channels of it. Each message names its
channel. Messages are small dataclasses with plain values, pickled over a pipe. A worker starts
within a fraction of a second because neither this module nor its imports use the settings, the
events or the GUI.
"""

import os
import pickle
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, Any, Final, NamedTuple, Protocol

from mydata_like.core import errors
from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import (
    Problem,
    RejectedError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.frozen import frozen
from mydata_like.core.local_files import ArchiveMember, Reading
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.destination import StagingDestination

_LATEST: Final = 253_402_300_799  # the last second of the year 9999


class _Message:
    """A message: compared by value, never false."""

    __slots__: tuple[str, ...] = ()

    # By position: `pickle` would write all slot names, which makes a message 25 percent longer.
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), tuple([getattr(self, name) for name in self.__slots__])


class Member(NamedTuple):
    """One file of a payload: its local path, as the scan saw it, and its destination.

    `remote` is the path below the staging area's location. With `from_scratch`, bytes from earlier
    attempts are not reused. An archive has no path, but the files `inside`. With `aside`, `remote`
    is a temporary path for a replacement. A host that cannot rename cannot keep the earlier bytes:
    there it is refused, or with `release` only read. The `mark` of the uploader is part of the
    temporary name. Checksums of the file are of its `algorithm`. Of a file that has grown, the
    first `stored_size` bytes were stored at `stored`, in the same folder; 0 for all others.
    """

    path: bytes
    size: int
    modified_ns: int
    device: int
    inode: int
    remote: bytes
    from_scratch: bool = False
    inside: tuple[ArchiveMember, ...] = ()
    aside: bool = False
    mark: bytes = b""
    top: int = 0  # length of the trusted part of the path, see `core.openat`
    interrupted: bool = False  # since the session began, or in a batch of an earlier one
    release: bool = False
    algorithm: Algorithm = Algorithm.MD5
    stored: bytes = b""
    stored_size: int = 0

    @property
    def modified(self) -> int:
        """Whole seconds since 1970, as the staging area stores them, limited to valid dates."""
        return min(max(self.modified_ns // 1_000_000_000, 0), _LATEST)


@frozen()
class WorkerConfig(_Message):
    """The configuration of a worker; it probes the host if `capabilities` is None.

    With `confirm`, it checks at least that its session allows what they name.
    """

    destination: StagingDestination
    capabilities: HostCapabilities | None = None
    confirm: bool = False
    compress: bool = False  # where that is faster
    named: bool = False  # prove what arrived before a connection breaks, since one has broken
    find_zeros: bool = False  # and skip them


@frozen()
class JoinChannel(_Message):
    """Open one more channel."""


@frozen()
class LeaveChannel(_Message):
    """Close the channel, which gets no further payload."""


@frozen()
class SendTask(_Message):
    """Send a payload."""

    members: tuple[Member, ...]
    batched: bool

    # Columns of plain values are pickled and read in less than half the time of named tuples.
    def __reduce__(self) -> tuple[object, ...]:
        return _make_task, (tuple(zip(*self.members, strict=True)), self.batched)


def _make_task(columns: Iterable[Iterable[Any]], *rest: bool) -> SendTask:
    return SendTask(tuple(map(Member._make, zip(*columns, strict=True))), *rest)


class RenameTask(NamedTuple):
    """Move `size` bytes from `source` to `target`, or remove them if it is empty.

    What is at `target` is first renamed to `kept`, unless that is empty or exists with as many
    bytes as `kept_size`. On hosts that cannot rename, `member` is sent instead.
    """

    source: bytes
    target: bytes
    size: int
    kept: bytes = b""
    kept_size: int = 0
    member: Member | None = None


@frozen()
class RenameTasks(_Message):
    """Move replacements into place."""

    moves: tuple[RenameTask, ...]


@frozen()
class RateLimit(_Message):
    """Limit the bytes per second from now on, also for the current payload; 0 is no limit."""

    rate: float


@frozen()
class CancelTask(_Message):
    """Cancel the current payload."""


TaskCommand = SendTask | RenameTasks | RateLimit | CancelTask | LeaveChannel


@frozen()
class ServiceCall(_Message):
    """Call a method of what a `WorkerService` does."""

    name: str
    arguments: tuple[object, ...]


Command = JoinChannel | TaskCommand | ServiceCall


@frozen()
class ChannelOpened(_Message):
    """The session is open and grants the channel; the round trip is 0 if unknown."""

    capabilities: HostCapabilities
    stack: str
    cipher: str
    round_trip: float = 0.0


@frozen()
class BytesSent(_Message):
    """The progress of the payload in bytes; also sent without more bytes.

    `spent` is the time of the channel by cause, for all its payloads. `omitted` is the part of the
    bytes that did not have to be sent, see `Moving`.
    """

    bytes: int
    spent: TimeByCause = NOTHING_SPENT
    omitted: int = 0


class MemberResult(NamedTuple):
    """The result of the member at index `place`: its checksum if it is proven, or a problem.

    `inside` has the reading of each file of an archive.
    """

    place: int
    checksum: str
    problem: Problem | None = None
    again: bool = False
    inside: tuple[Reading, ...] = ()


@frozen()
class TaskResult(_Message):
    """The end of a payload; `broken` if the session ended, and its worker with it."""

    results: tuple[MemberResult, ...]
    broken: bool = False
    spent: TimeByCause = NOTHING_SPENT  # as in `BytesSent`

    def __reduce__(self) -> tuple[object, ...]:
        return _make_done, (tuple(zip(*self.results, strict=True)), self.broken, self.spent)


def _make_done(columns: Iterable[Iterable[Any]], *others: Any) -> TaskResult:
    return TaskResult(tuple(map(MemberResult._make, zip(*columns, strict=True))), *others)


@frozen()
class TaskFailed(_Message):
    """The payload's result is unknown, or no channel was opened."""

    kind: str
    problem: Problem


@frozen()
class ServiceAnswer(_Message):
    """The result of a call."""

    value: Any


Reply = ChannelOpened | BytesSent | TaskResult | TaskFailed | ServiceAnswer

ALL: Final = 0  # the number for every channel of a worker


@frozen()
class ChannelCommand(_Message):
    """A command for a channel."""

    channel: int
    command: Command


@frozen()
class ChannelReply(_Message):
    """A reply of a channel, or of the worker for all channels."""

    channel: int
    reply: Reply


class Moving(Protocol):
    """Called with the number of bytes just sent; 0 reports activity.

    `omitted` bytes need not be sent: the destination has them, or they are holes.
    """

    def __call__(self, count: int, omitted: int = 0, /) -> None: ...


class Sender(Protocol):
    """Sends payloads over one session, depending on the host's capabilities.

    `round_trip` is in seconds, 0 if it is not known.
    """

    @property
    def round_trip(self) -> float: ...

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Send a payload; raises `TransientError` if the connection broke and nothing is known."""

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Move replacements into place; raises `TransientError` if the connection broke."""

    def close(self) -> None: ...


LOST: Final = "channel.lost"
STALLED: Final = "channel.stalled"  # a worker gives no reply
MISSING: Final = "staging.missing"  # a replacement is missing
DROPPED: Final = "channel.dropped"  # its session was closed because of another channel
STREAMS: Final = 8  # per session, with payloads; OpenSSH grants ten, with spare shells


def pack_error(error: UploaderError) -> TaskFailed:
    """Return the message for an error.

    A refusal of the whole session is not a rejection of one file, so it becomes a `StagingError`.
    """
    if isinstance(error, RejectedError):
        code, message, hint = error.problem
        error = StagingError(message, hint=hint, code=code)
    return TaskFailed(type(error).__name__, error.problem)


def unpack_error(failed: TaskFailed) -> UploaderError:
    """Return the error from a message of `pack_error`."""
    code, message, hint = failed.problem
    kind = getattr(errors, failed.kind, TransientError)
    error: UploaderError = kind(message, hint=hint, code=code)
    return error


# Errors of `pickle` for invalid data (its documentation names some of these).
_TORN: Final = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class Pipe:
    """One end of a pipe. One thread at a time may send, and another one receive."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def send(self, message: object) -> None:
        """Send a message; raises `OSError` if the other end is closed."""
        self._outgoing.write(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        self._outgoing.flush()

    def receive(self) -> Any:
        """Wait for a message; raises `EOFError` if the pipe is closed or the message is invalid."""
        try:
            return pickle.load(self._incoming)  # noqa: S301 - only our own processes write it
        except _TORN as error:
            raise EOFError("The other process ended in the middle of a message.") from error

    def close(self) -> None:
        """Close this end and discard unsent data."""
        for stream in (self._outgoing, self._incoming):
            with suppress(OSError):
                stream.close()


def take_standard_streams() -> Pipe:
    """Return the pipe to the parent process, which started this one with pipes."""
    pipe = Pipe(open(os.dup(0), "rb"), open(os.dup(1), "wb"))  # noqa: SIM115, PTH123 - never closed
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    with suppress(OSError):  # a windowed program may have no standard error
        os.dup2(2, 1)
    return pipe


class WorkerService(Protocol):
    """Work of a process that has no session; the process receives it."""

    def serve(self, pipe: Pipe) -> None:
        """Reply to each `ServiceCall` until the other process ends."""
