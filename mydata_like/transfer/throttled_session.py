"""A session that is limited by a token bucket and measures its time."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mydata_like.core.channel_time import TimeByCause
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
from mydata_like.transfer.channel_timing import ChannelTimer

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
