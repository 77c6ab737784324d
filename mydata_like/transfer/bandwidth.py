"""A session that sends no faster than its bucket lets it, whatever is said over it."""

from collections.abc import Iterable, Iterator

from mydata_like.core.bandwidth import Bucket
from mydata_like.core.errors import RejectedError
from mydata_like.ssh.session import Finished, Put, RemoteFile, Session, SftpSession, Stream


class LimitedSession:
    """A session whose streams and files are written through a bucket; see `Session`."""

    def __init__(self, session: Session, bucket: Bucket) -> None:
        self._session = session
        self._bucket = bucket

    @property
    def stack(self) -> str:
        return self._session.stack

    @property
    def cipher(self) -> str:
        return self._session.cipher

    def start(self, command: bytes) -> Stream:
        return _LimitedStream(self._session.start(command), self._bucket)

    def run(self, command: bytes, stdin: bytes = b"") -> Finished:
        return self._session.run(command, stdin)

    def open_sftp(self) -> SftpSession:
        return _LimitedSftp(self._session.open_sftp(), self._bucket)

    def close(self) -> None:
        self._session.close()


class _LimitedStream:
    def __init__(self, stream: Stream, bucket: Bucket) -> None:
        self._stream = stream
        self._bucket = bucket
        self.read = stream.read
        self.read_ready = stream.read_ready
        self.finish = stream.finish
        self.close = stream.close

    def write(self, data: bytes | memoryview) -> None:
        for piece in self._bucket.pieces(memoryview(data)):
            self._stream.write(piece)


class _LimitedSftp:
    def __init__(self, sftp: SftpSession, bucket: Bucket) -> None:
        self._sftp = sftp
        self._bucket = bucket
        self.make_directories = sftp.make_directories
        self.find_size = sftp.find_size
        self.read_file = sftp.read_file
        self.replace = sftp.replace
        self.set_attributes = sftp.set_attributes
        self.remove = sftp.remove
        self.close = sftp.close

    @property
    def round_trip(self) -> float:
        return self._sftp.round_trip

    def put_all(self, puts: Iterable[Put]) -> Iterator[tuple[int, RejectedError | None]]:
        return self._sftp.put_all(map(self._wait, puts))

    def _wait(self, put: Put) -> Put:
        """Let a small file go when all of it may."""
        for _ in self._bucket.pieces(memoryview(put.content)):
            pass
        return put

    def open_file(self, path: bytes, *, keep: bool = False) -> RemoteFile:
        return _LimitedFile(self._sftp.open_file(path, keep=keep), self._bucket)


class _LimitedFile:
    def __init__(self, file: RemoteFile, bucket: Bucket) -> None:
        self._file = file
        self._bucket = bucket
        self.move_to = file.move_to
        self.close = file.close

    def write(self, data: bytes | memoryview) -> None:
        for piece in self._bucket.pieces(memoryview(data)):
            self._file.write(piece)
