"""A session that is limited by a token bucket, and the time its channel spends on each cause."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Final, NamedTuple, TypeVar

from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import (
    CommandResult,
    RemoteEntry,
    RemoteFile,
    SftpSession,
    SmallFile,
    SshSession,
    Stream,
)

FAR: Final = 0.005  # seconds; a shorter round trip is not told from what a server takes to answer
_LATE: Final = 1.5  # round trips after which it is not the way that keeps an answer

T = TypeVar("T")
Clock = Callable[[], float]
Share = Callable[[float], TimeByCause]  # what so many seconds of waiting were for


class _Moment(NamedTuple):
    """What the clocks of a thread show: seconds, and those in which it was at work."""

    wall: float = 0.0
    work: float = 0.0

    def since(self, other: "_Moment") -> "_Moment":
        return _Moment(self.wall - other.wall, self.work - other.work)


class ChannelTimer:
    """One channel's: `begin` and `end` enclose a payload, and what is timed lies between.

    Where other threads take part in carrying a payload, the channel's own one waits for them,
    and so for what they wait for.
    """

    def __init__(self, wall: Clock = time.monotonic, work: Clock = time.thread_time) -> None:
        self._wall = wall
        self._work = work
        self._lock = Lock()
        self._thread = 0
        self._before = NOTHING_SPENT  # on earlier payloads
        self._spent = NOTHING_SPENT
        self._begun = _Moment()
        self._ours = NOTHING_SPENT  # of this payload, what was timed in the channel's own thread
        self._others = NOTHING_SPENT  # and in other ones
        self._helped: dict[int, float] = {}  # what other threads have worked for it
        self._apart = _Moment()  # in something timed, what is no part of it
        self._round_trip = float("inf")  # the shortest that was seen

    @property
    def spent(self) -> TimeByCause:
        """What was spent in all; up to now where the channel's own thread asks."""
        self.look()
        return self._spent

    def look(self) -> None:
        """Count up to now, in any thread at work for the payload; others were made for that."""
        if self._thread == get_ident():
            self._bring_up()
        else:
            self._helped[get_ident()] = self._work()

    def begin(self) -> None:
        """Begin a payload, in the thread that carries it."""
        self._before = self._spent
        self._ours = self._others = NOTHING_SPENT
        self._helped = {}
        self._begun = self._now()
        self._thread = get_ident()

    def end(self) -> None:
        """Note that the payload has ended, in its thread."""
        self._bring_up()
        self._thread = 0

    def hold(self, seconds: float) -> None:
        """Sleep because of the configured bandwidth."""
        begun = self._wall()
        time.sleep(seconds)
        self._add(TimeByCause(bandwidth=self._wall() - begun))

    @contextmanager
    def timed(self, share: Share) -> Iterator[None]:
        """Time something that is said over the session."""
        begun, apart = self._now(), self._apart
        try:
            yield
        finally:
            took = self._now().since(begun).since(self._apart.since(apart))
            waited = max(0.0, took.wall - took.work)
            self._add(share(waited)._replace(cipher=took.work))

    def apart(self, made: Iterable[T]) -> Iterator[T]:
        """Yield what is made within something timed, and is no part of it."""
        remaining = iter(made)
        while True:
            begun = self._now()
            each = next(remaining, None)
            took = self._now().since(begun)
            self._apart = _Moment(self._apart.wall + took.wall, self._apart.work + took.work)
            if each is None:
                return
            yield each

    def learn(self, trips: int) -> Share:
        """Return what tells an answer after so many round trips, and learns how long one takes."""

        def share(waited: float) -> TimeByCause:
            self._round_trip = min(self._round_trip, waited / trips)
            return self._divide(waited, trips)

        return share

    def answer(self, waited: float) -> TimeByCause:
        """Return what waiting for an answer was for: the way there and back, or the server."""
        return self._divide(waited, _LATE)

    def _divide(self, waited: float, trips: float) -> TimeByCause:
        far = FAR <= self._round_trip < float("inf")
        way = min(waited, trips * self._round_trip) if far else 0.0
        return TimeByCause(channels=way, server=waited - way)

    def _now(self) -> _Moment:
        return _Moment(self._wall(), self._work())

    def _add(self, spent: TimeByCause) -> None:
        with self._lock:
            if self._thread == get_ident():
                self._ours = self._ours.plus(spent)
            else:
                self._others = self._others.plus(spent)

    def _bring_up(self) -> None:
        """Count the payload's time until now; what nothing explains was waiting for the disk."""
        took = self._now().since(self._begun)
        with self._lock:
            ours, others = self._ours, self._others
        idle = max(0.0, took.wall - took.work - (ours.in_all - ours.cipher))
        waited = others._replace(cipher=0.0)
        explained = min(idle, waited.in_all)
        if explained:
            ours = ours.plus(waited.times(explained / waited.in_all))
        helped = max(0.0, sum(self._helped.copy().values()) - others.cipher)
        sums = ours._replace(
            source=max(0.0, idle - explained - helped),
            hash=max(0.0, took.work - ours.cipher) + helped,
            cipher=ours.cipher + others.cipher,
        )
        self._spent = self._before.plus(sums)


_STARTING = 2  # round trips that the start of a command takes


class ThrottledSession:
    """A session whose streams and files are written through a bucket; see `SshSession`.

    Its host's rung is known, so a refusal concerns the moment: `TransientError`.
    """

    def __init__(self, session: SshSession, bucket: TokenBucket, sheet: ChannelTimer) -> None:
        self._session = session
        self._bucket = bucket
        self._sheet = sheet

    @property
    def stack(self) -> str:
        return self._session.stack

    @property
    def cipher(self) -> str:
        return self._session.cipher

    def start(self, command: bytes) -> Stream:
        with self._sheet.timed(self._sheet.learn(_STARTING)), _refused_for_now():
            stream = self._session.start(command)
        return _ThrottledStream(stream, self._bucket, self._sheet)

    def run(self, command: bytes, stdin: bytes = b"") -> CommandResult:
        with self._sheet.timed(self._sheet.answer), _refused_for_now():
            return self._session.run(command, stdin)

    def open_sftp(self) -> SftpSession:
        with _refused_for_now():
            sftp = self._session.open_sftp()
        return _ThrottledSftp(sftp, self._bucket, self._sheet)

    def close(self) -> None:
        self._session.close()


@contextmanager
def _refused_for_now() -> Iterator[None]:
    """Take a refusal for want of room, as of processes: the host has allowed the same before."""
    try:
        yield
    except RejectedError as error:
        raise TransientError(error.message, code=NO_CHANNEL) from error


class _ThrottledStream:
    def __init__(self, stream: Stream, bucket: TokenBucket, sheet: ChannelTimer) -> None:
        self._stream = stream
        self._bucket = bucket
        self._sheet = sheet
        self.read_ready = stream.read_ready
        self.close = stream.close

    @property
    def shut(self) -> float:
        return self._stream.shut

    def write(self, data: bytes | memoryview) -> None:
        for piece in self._bucket.pieces(memoryview(data)):
            self._write(piece)

    def read(self, size: int) -> bytes:
        with self._sheet.timed(self._sheet.answer):
            return self._stream.read(size)

    def finish(self) -> CommandResult:
        with self._sheet.timed(self._sheet.answer):
            return self._stream.finish()

    def _write(self, piece: memoryview) -> None:
        shut = self._stream.shut

        def share(waited: float) -> TimeByCause:
            for_room = min(waited, self._stream.shut - shut)
            return self._sheet.answer(for_room)._replace(line=waited - for_room)

        with self._sheet.timed(share):
            self._stream.write(piece)


class _ThrottledSftp:
    def __init__(self, sftp: SftpSession, bucket: TokenBucket, sheet: ChannelTimer) -> None:
        self._sftp = sftp
        self._bucket = bucket
        self._sheet = sheet
        self.close = sftp.close

    @property
    def round_trip(self) -> float:
        return self._sftp.round_trip

    def put_all(self, puts: Iterable[SmallFile]) -> Iterator[tuple[int, RejectedError | None]]:
        answers = self._sftp.put_all(self._sheet.apart(map(self._wait, puts)))
        while True:
            with self._sheet.timed(_for_line):
                answer = next(answers, None)
            if answer is None:
                return
            yield answer

    def open_file(self, path: bytes, *, keep: bool = False) -> RemoteFile:
        with self._sheet.timed(self._sheet.answer):
            file = self._sftp.open_file(path, keep=keep)
        return _ThrottledFile(file, self._bucket, self._sheet)

    def read_file(self, path: bytes) -> bytes:
        with self._sheet.timed(self._sheet.answer):
            return self._sftp.read_file(path)

    def make_directories(self, path: bytes, mode: int) -> None:
        with self._sheet.timed(self._sheet.answer):
            self._sftp.make_directories(path, mode)

    def find_size(self, path: bytes) -> int | None:
        with self._sheet.timed(self._sheet.learn(1)):
            return self._sftp.find_size(path)

    def find_modified(self, path: bytes) -> int:
        with self._sheet.timed(self._sheet.answer):
            return self._sftp.find_modified(path)

    def list_files(self, path: bytes) -> list[RemoteEntry]:
        with self._sheet.timed(self._sheet.answer):
            return self._sftp.list_files(path)

    def replace(self, source: bytes, target: bytes) -> None:
        with self._sheet.timed(self._sheet.answer):
            self._sftp.replace(source, target)

    def set_attributes(self, path: bytes, *, mode: int, modified: float) -> None:
        with self._sheet.timed(self._sheet.answer):
            self._sftp.set_attributes(path, mode=mode, modified=modified)

    def remove(self, path: bytes) -> None:
        with self._sheet.timed(self._sheet.answer):
            self._sftp.remove(path)

    def _wait(self, put: SmallFile) -> SmallFile:
        """Let a small file go when all of it may."""
        for _ in self._bucket.pieces(memoryview(put.content)):
            pass
        return put


class _ThrottledFile:
    def __init__(self, file: RemoteFile, bucket: TokenBucket, sheet: ChannelTimer) -> None:
        self._file = file
        self._bucket = bucket
        self._sheet = sheet
        self.move_to = file.move_to

    def write(self, data: bytes | memoryview) -> None:
        for piece in self._bucket.pieces(memoryview(data)):
            with self._sheet.timed(_for_line):
                self._file.write(piece)

    def close(self) -> None:
        with self._sheet.timed(self._sheet.answer):
            self._file.close()


def _for_line(waited: float) -> TimeByCause:
    """Return what waiting is for while many bytes are under way: nobody knows of which kind."""
    return TimeByCause(line=waited)
