"""A session that is limited by a token bucket, and the time its channel spends on each cause."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any, Final, TypeVar

from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import (
    CommandResult,
    RemoteFile,
    SftpSession,
    SmallFile,
    SshSession,
    Stream,
)
from mydata_like.transfer.interleaved_sender import InterleavedSender, Transmission
from mydata_like.transfer.shared_reader import Content, SharedReader
from mydata_like.transfer.worker_messages import Moving

FAR: Final = 0.005  # seconds; a shorter round trip looks like the server's response time
_LATE: Final = 1.5  # round trips after which the server, not the network, delays an answer

T = TypeVar("T")
Clock = Callable[[], float]
Share = Callable[[float], TimeByCause]  # splits seconds of waiting by cause


class ChannelTimer:
    """The timer of one channel: `begin` and `end` enclose a payload with its timed operations.

    If other threads help to send a payload, the channel's own thread waits for them, and so for
    whatever they wait for.
    """

    def __init__(self, wall: Clock = time.monotonic, work: Clock = time.thread_time) -> None:
        self._wall = wall
        self._work = work
        self._lock = Lock()
        self._thread = 0
        self._before = NOTHING_SPENT  # on earlier payloads
        self._spent = NOTHING_SPENT
        self._begun = (0.0, 0.0)  # wall time and processor time
        self._ours = NOTHING_SPENT  # of this payload, timed in the channel's own thread
        self._others = NOTHING_SPENT  # of this payload, timed in other threads
        self._helped: dict[int, float] = {}  # processor time of other threads by thread
        # Time within timed operations that does not belong to them:
        self._excluded_wall = 0.0
        self._excluded_work = 0.0
        self._round_trip = float("inf")  # the shortest measured

    @property
    def spent(self) -> TimeByCause:
        """The total time by cause; up to now if called in the channel's own thread."""
        self.count_now()
        return self._spent

    def count_now(self) -> None:
        """Count the time up to now, in any thread that works for the payload."""
        if self._thread == get_ident():
            self._update()
        else:
            self._helped[get_ident()] = self._work()

    def begin(self) -> None:
        """Begin a payload, in the thread that sends it."""
        self._before = self._spent
        self._ours = self._others = NOTHING_SPENT
        self._helped = {}
        self._begun = self._wall(), self._work()
        self._thread = get_ident()

    def end(self) -> None:
        """End the payload, in the same thread."""
        self._update()
        self._thread = 0

    def add(self, spent: TimeByCause) -> None:
        """Add time that another timer counted between `end` and `begin`."""
        self._spent = self._spent.plus(spent)

    def throttle(self, seconds: float) -> None:
        """Sleep to keep the bandwidth limit."""
        begun = self._wall()
        time.sleep(seconds)
        self.add_operation(TimeByCause(bandwidth=self._wall() - begun))

    def wait_for_hash(self, seconds: float) -> None:
        """Count time in which another thread hashed bytes for this one."""
        self.add_operation(TimeByCause(hash=seconds))

    def timed(self, share: Share) -> "_TimedOperation":
        """Return a context that times an operation of the session."""
        return _TimedOperation(self, share)

    def exclude(self, made: Iterable[T]) -> Iterator[T]:
        """Yield items; the time to create them does not count for the timed operation."""
        wall, work = self._wall, self._work
        remaining = iter(made)
        while True:
            wall_begun, work_begun = wall(), work()
            each = next(remaining, None)
            self._excluded_wall += wall() - wall_begun
            self._excluded_work += work() - work_begun
            if each is None:
                return
            yield each

    def read_clocks(self) -> tuple[float, float]:
        """Return wall time and processor time, without what was excluded."""
        return self._wall() - self._excluded_wall, self._work() - self._excluded_work

    def learn(self, trips: int) -> Share:
        """Return the share of a reply that takes `trips` round trips, and learn their time."""

        def share(waited: float) -> TimeByCause:
            self._round_trip = min(self._round_trip, waited / trips)
            return self._divide(waited, trips)

        return share

    def answer(self, waited: float) -> TimeByCause:
        """Return the cause of waiting for a reply: the network or the server."""
        return self._divide(waited, _LATE)

    def _divide(self, waited: float, trips: float) -> TimeByCause:
        far = FAR <= self._round_trip < float("inf")
        way = min(waited, trips * self._round_trip) if far else 0.0
        return TimeByCause(channels=way, server=waited - way)

    def add_operation(self, spent: TimeByCause) -> None:
        """Add the time of an operation, in any thread that works for the payload."""
        with self._lock:
            if self._thread == get_ident():
                self._ours = self._ours.plus(spent)
            else:
                self._others = self._others.plus(spent)

    def _update(self) -> None:
        """Count the payload's time until now; unexplained time was waiting for the disk."""
        wall, work = self._begun
        took, worked = self._wall() - wall, self._work() - work
        with self._lock:
            ours, others = self._ours, self._others
        idle = max(0.0, took - worked - (ours.in_all - ours.cipher))
        waited = others._replace(cipher=0.0)
        explained = min(idle, waited.in_all)
        if explained:
            ours = ours.plus(waited.times(explained / waited.in_all))
        helped = max(0.0, sum(self._helped.copy().values()) - others.cipher)
        sums = ours._replace(
            source=max(0.0, idle - explained - helped),
            hash=ours.hash + max(0.0, worked - ours.cipher) + helped,
            cipher=ours.cipher + others.cipher,
        )
        self._spent = self._before.plus(sums)


class _TimedOperation:
    """Times an operation of the session (a class: cheaper than a generator)."""

    __slots__ = ("_share", "_timer", "_wall", "_work")

    def __init__(self, timer: ChannelTimer, share: Share) -> None:
        self._timer = timer
        self._share = share

    def __enter__(self) -> None:
        self._wall, self._work = self._timer.read_clocks()

    def __exit__(self, *_: object) -> None:
        wall, work = self._timer.read_clocks()
        worked = work - self._work
        waited = max(0.0, wall - self._wall - worked)
        self._timer.add_operation(self._share(waited)._replace(cipher=worked))


_STARTING = 2  # round trips to start a command


class ThrottledSession:
    """A session whose streams and files are limited by a bucket; see `SshSession`.

    The capabilities of the host are known, so a refusal is temporary: `TransientError`.
    """

    def __init__(
        self,
        session: SshSession,
        bucket: TokenBucket,
        timer: ChannelTimer,
        interleaved: InterleavedSender,
        reader: SharedReader,
    ) -> None:
        self.stack = session.stack
        self.cipher = session.cipher
        self.bucket = bucket
        self.timer = timer
        self.interleaved = interleaved
        self._session = session
        self._reader = reader

    @property
    def network_round_trip(self) -> float | None:
        return self._session.network_round_trip

    def start(self, command: bytes) -> "ThrottledStream":
        with self.timer.timed(self.timer.learn(_STARTING)), _refused_for_now():
            stream = self._session.start(command)
        return ThrottledStream(stream, self)

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        with self.timer.timed(self.timer.answer), _refused_for_now():
            return self._session.run(command, stdin)

    def open_sftp(self) -> SftpSession:
        with _refused_for_now():
            sftp = self._session.open_sftp()
        return _ThrottledSftp(sftp, self)

    def pieces(self, content: Content) -> Generator[memoryview, None, None]:
        """Yield the rest of a content; see `SharedReader`."""
        return self._reader.pieces(content, self.timer.wait_for_hash)

    def close(self) -> None:
        self._session.close()


@contextmanager
def _refused_for_now() -> Iterator[None]:
    """Treat a refusal as a temporary lack of resources: the host has allowed the same before."""
    try:
        yield
    except RejectedError as error:
        raise TransientError(error.message, code=NO_CHANNEL) from error


class ThrottledStream:
    """A stream that is limited by a bucket; see `Stream`."""

    def __init__(self, stream: Stream, session: ThrottledSession) -> None:
        self._stream = stream
        self._session = session
        self._timer = session.timer
        self.read_ready = stream.read_ready
        self.close = stream.close

    @property
    def blocked_seconds(self) -> float:
        return self._stream.blocked_seconds

    def write(self, data: bytes | memoryview) -> None:
        for piece in self._session.bucket.pieces(memoryview(data)):
            blocked_before = self._stream.blocked_seconds

            def share(waited: float, before: float = blocked_before) -> TimeByCause:
                blocked = min(waited, self._stream.blocked_seconds - before)
                return self._timer.answer(blocked)._replace(line=waited - blocked)

            with self._timer.timed(share):
                self._stream.write(piece)

    def send(self, content: Content, moving: Moving) -> bool:
        """Write the rest of a content, in turns with other channels of the session.

        Return False if the command ended before it had all.
        """
        if not content.remaining:
            return True
        own = Transmission(content, self._stream, self._session.bucket, self._timer, moving)
        self._timer.end()
        try:
            return self._session.interleaved.send(own)
        finally:
            self._timer.begin()

    def read(self, size: int, least: int = 1) -> bytes:
        with self._timer.timed(self._timer.answer):
            return self._stream.read(size, least)

    def finish(self) -> CommandResult:
        with self._timer.timed(self._timer.answer):
            return self._stream.finish()


def _answered(name: str) -> Any:
    """Return the method of this name of an SFTP session, which waits for one answer and is timed.

    `SftpSession` has its type.
    """

    def call(self: "_ThrottledSftp", *arguments: Any, **options: Any) -> Any:
        with self._timer.timed(self._timer.answer):
            return getattr(self._sftp, name)(*arguments, **options)

    return call


class _ThrottledSftp:
    def __init__(self, sftp: SftpSession, session: ThrottledSession) -> None:
        self._sftp = sftp
        self._session = session
        self._timer = session.timer
        self.close = sftp.close

    @property
    def round_trip(self) -> float:
        return self._sftp.round_trip

    def put_all(self, puts: Iterable[SmallFile]) -> Iterator[tuple[int, RejectedError | None]]:
        answers = self._sftp.put_all(self._timer.exclude(map(self._wait, puts)))
        while True:
            with self._timer.timed(_for_line):
                answer = next(answers, None)
            if answer is None:
                return
            yield answer

    def open_file(self, path: bytes, *, keep: bool = False) -> RemoteFile:
        with self._timer.timed(self._timer.answer):
            file = self._sftp.open_file(path, keep=keep)
        return _ThrottledFile(file, self._session)

    def find_size(self, path: bytes) -> int | None:
        with self._timer.timed(self._timer.learn(1)):
            return self._sftp.find_size(path)

    read_file = _answered("read_file")
    make_directories = _answered("make_directories")
    find_modified = _answered("find_modified")
    find_free = _answered("find_free")
    list_files = _answered("list_files")
    replace = _answered("replace")
    link = _answered("link")
    set_attributes = _answered("set_attributes")
    remove = _answered("remove")
    remove_directory = _answered("remove_directory")

    def _wait(self, put: SmallFile) -> SmallFile:
        """Wait until a small file may be sent."""
        for _ in self._session.bucket.pieces(memoryview(put.content)):
            pass
        return put


class _ThrottledFile:
    def __init__(self, file: RemoteFile, session: ThrottledSession) -> None:
        self._file = file
        self._bucket = session.bucket
        self._timer = session.timer
        self.move_to = file.move_to

    def write(self, data: bytes | memoryview) -> None:
        for piece in self._bucket.pieces(memoryview(data)):
            with self._timer.timed(_for_line):
                self._file.write(piece)

    def close(self) -> None:
        with self._timer.timed(self._timer.answer):
            self._file.close()


def _for_line(waited: float) -> TimeByCause:
    """Return the cause of waiting while many bytes are in flight: it is unknown which part."""
    return TimeByCause(line=waited)
