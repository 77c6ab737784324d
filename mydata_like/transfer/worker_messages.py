"""The messages between the engine and its channel workers.

A worker keeps one SSH session and carries payloads over several channels of it; each order and
each answer says which of them is meant. They are small dataclasses over a pipe, made of plain
values: a worker starts within a fraction of a second because nothing here, or in what it imports,
knows the settings, the events or the GUI.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Final, NamedTuple, Protocol

from mydata_like.core import errors
from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.errors import (
    Problem,
    RejectedError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.local_files import ArchiveMember, Reading
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import Endpoint

_LATEST: Final = 253_402_300_799  # the last second of the year 9999


class _Message:
    """What is sent as a whole: a type of its own, which is compared by value and never false."""

    __slots__: tuple[str, ...] = ()

    # By position: `pickle` names all slots, which makes a message a quarter longer.
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), tuple([getattr(self, name) for name in self.__slots__])


class Member(NamedTuple):
    """One file of a payload: where it is, as the scan saw it, and where it goes.

    `remote` is the path below the staging area's location. With `anew`, no part of it that
    lies there from an earlier attempt is trusted. An archive has no path, but what is `inside`.
    With `aside`, `remote` is not its place yet: where nothing can be renamed, it is only read.
    The `mark` of its uploader is in its temporary name.
    """

    path: bytes
    size: int
    modified_ns: int
    device: int
    inode: int
    remote: bytes
    anew: bool = False
    inside: tuple[ArchiveMember, ...] = ()
    aside: bool = False
    mark: bytes = b""
    top: int = 0  # how much of its path is trusted, as `core.openat` says

    @property
    def modified(self) -> int:
        """Whole seconds since 1970, as the staging area keeps them: no more than dates can tell."""
        return min(max(self.modified_ns // 1_000_000_000, 0), _LATEST)


@dataclass(slots=True)
class WorkerConfig(_Message):
    """What a worker begins with; it probes the host where `rung` is None."""

    endpoint: Endpoint
    location: bytes
    rung: HostCapabilities | None = None
    compress: bool = False  # where that pays
    named: bool = False  # prove what arrives before a line breaks, as one has
    find_zeros: bool = False  # and leave them out


@dataclass(slots=True)
class JoinChannel(_Message):
    """One more channel shall carry payloads."""


@dataclass(slots=True)
class LeaveChannel(_Message):
    """The channel will get no further payload."""


@dataclass(slots=True)
class SendTask(_Message):
    """A payload to be carried; with `spare`, a processor has nothing else to do meanwhile."""

    members: tuple[Member, ...]
    batched: bool
    spare: bool = False

    # Thousands of plain tuples are pickled and read in half the time of as many named ones.
    def __reduce__(self) -> tuple[object, ...]:
        return _make_task, (tuple(map(tuple, self.members)), self.batched, self.spare)


def _make_task(members: Iterable[Iterable[Any]], *rest: bool) -> SendTask:
    return SendTask(tuple(map(Member._make, members)), *rest)


class RenameTask(NamedTuple):
    """So many bytes that lie at `source` are to go to `target`, or away where that is empty.

    Where nothing can be renamed, `member` is sent instead.
    """

    source: bytes
    target: bytes
    size: int
    member: Member | None = None


@dataclass(slots=True)
class RenameTasks(_Message):
    """What was laid aside is to take its places."""

    moves: tuple[RenameTask, ...]


@dataclass(slots=True)
class RateLimit(_Message):
    """So many bytes a second may go from now on, also of the payload under way; 0 is no limit."""

    rate: float


@dataclass(slots=True)
class CancelTask(_Message):
    """The payload under way is not wanted any more."""


Doing = SendTask | RenameTasks | RateLimit | CancelTask | LeaveChannel
Order = JoinChannel | Doing


@dataclass(slots=True)
class ChannelOpened(_Message):
    """The worker's session stands, and grants the channel; the round trip is 0 where unknown."""

    rung: HostCapabilities
    stack: str
    cipher: str
    round_trip: float = 0.0


@dataclass(slots=True)
class BytesSent(_Message):
    """So many bytes of the payload have gone; a sign of life even when there are no more.

    `spent` is what the channel spent its time on, on all its payloads.
    """

    bytes: int
    spent: TimeByCause = NOTHING_SPENT


class MemberResult(NamedTuple):
    """What became of the member at this place: proven with its checksum, or a problem.

    `inside` tells what came of reading each file of an archive.
    """

    place: int
    checksum: str
    problem: Problem | None = None
    again: bool = False
    inside: tuple[Reading, ...] = ()


@dataclass(slots=True)
class TaskResult(_Message):
    """The payload's end; `broken` says that the session died and its worker with it."""

    fates: tuple[MemberResult, ...]
    broken: bool = False
    spent: TimeByCause = NOTHING_SPENT  # as of `BytesSent`

    def __reduce__(self) -> tuple[object, ...]:
        return _make_done, (tuple(map(tuple, self.fates)), self.broken, self.spent)


def _make_done(fates: Iterable[Iterable[Any]], *others: Any) -> TaskResult:
    return TaskResult(tuple(map(MemberResult._make, fates)), *others)


@dataclass(slots=True)
class TaskFailed(_Message):
    """Nothing is known of the payload, or no channel came about."""

    kind: str
    problem: Problem
    retry_after: float = 0.0


Answer = ChannelOpened | BytesSent | TaskResult | TaskFailed

ALL: Final = 0  # the number that stands for every channel of a worker


@dataclass(slots=True)
class ChannelCommand(_Message):
    """An order for a channel."""

    channel: int
    order: Order


@dataclass(slots=True)
class ChannelReply(_Message):
    """An answer of a channel, or what all have to hear."""

    channel: int
    answer: Answer


Moving = Callable[[int], None]  # so many more bytes of the payload have gone; 0 is a sign of life


class Sender(Protocol):
    """Carries payloads over one session, on one rung.

    `round_trip` is in seconds, 0 where it is not known.
    """

    @property
    def round_trip(self) -> float: ...

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Carry a payload; raises `TransientError` when the line broke and nothing is known."""

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Put what was laid aside into its place; raises `TransientError` when the line broke."""

    def close(self) -> None: ...


LOST: Final = "channel.lost"
MISSING: Final = "staging.missing"  # of what was laid aside
DROPPED: Final = "channel.dropped"  # its session was given up, through no fault of its own
STREAMS: Final = 4  # that carry payloads over one session; OpenSSH grants ten, and each may prepare


def pack_error(error: UploaderError) -> TaskFailed:
    """Return an error as it travels through the pipe.

    What refuses us as a whole is no matter of one file.
    """
    if isinstance(error, RejectedError):
        code, message, hint = error.problem
        error = StagingError(message, hint=hint, code=code)
    wait = error.retry_after if isinstance(error, TransientError) else 0.0
    return TaskFailed(type(error).__name__, error.problem, wait)


def unpack_error(failed: TaskFailed) -> UploaderError:
    """Return the error that `pack_error` packed."""
    code, message, hint = failed.problem
    kind = getattr(errors, failed.kind, TransientError)
    error: UploaderError = kind(message, hint=hint, code=code)
    if isinstance(error, TransientError):
        error.retry_after = failed.retry_after
    return error


# What the library raises for bytes that are no message (its documentation names some of these).
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
    """One end of it. One thread at a time may send, and another one receive."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def send(self, message: object) -> None:
        """Send a message; raises `OSError` where the other end is gone."""
        self._outgoing.write(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        self._outgoing.flush()

    def receive(self) -> Any:
        """Wait for a message; raises `EOFError` once there is no other end, or one of no sense."""
        try:
            return pickle.load(self._incoming)  # noqa: S301 - only our own processes write it
        except _TORN as error:
            raise EOFError("The other process ended in the middle of a message.") from error

    def close(self) -> None:
        """Give this end up, with what the other one never took."""
        for stream in (self._outgoing, self._incoming):
            with suppress(OSError):
                stream.close()


def take_standard_streams() -> Pipe:
    """Return the pipe to the parent process, which started this one with pipes as input and output.

    From now on what is printed goes where complaints go, and no child of ours inherits an end.
    """
    pipe = Pipe(open(os.dup(0), "rb"), open(os.dup(1), "wb"))  # noqa: SIM115, PTH123 - for good
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    with suppress(OSError):  # a windowed program may have nowhere to complain
        os.dup2(2, 1)
    return pipe
