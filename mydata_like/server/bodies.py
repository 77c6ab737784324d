"""The bodies of uploads, made while they are sent: a file's bytes, its record after them."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from mydata_like.core.errors import FileChangedError
from mydata_like.core.ports import Progress
from mydata_like.core.token_bucket import TokenBucket

_BUFFER: Final = 256 * 1024
_ROOM: Final = b"0" * 32  # stands for the checksum until it is known


class Source(Protocol):
    """What is read once, a local file or an archive of several.

    Raises `FileChangedError` when a file is not what it was.
    """

    def chunks(self, buffer: bytearray) -> Iterator[memoryview]:
        """Yield the file's bytes as views of `buffer`, each valid until the next."""

    def finish(self) -> str:
        """Return the checksum of all the bytes, once the file has stayed as it was."""


class Guarded:
    """A source that asks before each chunk whether it may go on; what that raises ends it."""

    def __init__(self, source: Source, check_open: Callable[[], None]) -> None:
        self._source = source
        self._check_open = check_open

    def chunks(self, buffer: bytearray) -> Iterator[memoryview]:
        for chunk in self._source.chunks(buffer):
            self._check_open()
            if chunk:
                yield chunk

    def finish(self) -> str:
        return self._source.finish()


class Limited:
    """A source whose bytes come no faster than a bucket lets them go."""

    def __init__(self, source: Source, bucket: TokenBucket) -> None:
        self._source = source
        self._bucket = bucket
        self.finish = source.finish

    def chunks(self, buffer: bytearray) -> Iterator[memoryview]:
        for chunk in self._source.chunks(buffer):
            yield from self._bucket.pieces(chunk)


class Multipart:
    """The body of one upload, of a length known beforehand; it is made while it is sent.

    `close` is called before its last piece goes, from when on the server may act on it; it
    returns what `sent_at` is then, which is None before.
    """

    def __init__(
        self,
        record: Mapping[str, object],
        size: int,
        source: Source,
        progress: Progress,
        close: Callable[[], float],
    ) -> None:
        boundary = uuid.uuid4().hex
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self.checksum = ""
        self.sent_at: float | None = None
        self._close = close
        self._source = source
        self._progress = progress
        self._size = size
        self._head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="attached_file"; '
            'filename="file"\r\nContent-Type: application/octet-stream\r\n\r\n'
        ).encode()
        document = json.dumps({**record, "md5sum": _ROOM.decode()})
        before, _, after = document.encode().rpartition(_ROOM)
        field = f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="json_data"\r\n\r\n'
        self._before = field.encode() + before
        self._after = after + f"\r\n--{boundary}--\r\n".encode()

    def __len__(self) -> int:
        frame = len(self._head) + len(self._before) + len(_ROOM) + len(self._after)
        return frame + self._size

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        gone = 0
        for chunk in self._source.chunks(bytearray(_BUFFER)):
            gone += len(chunk)
            if gone > self._size:
                break
            yield chunk  # type: ignore[misc]  # a view: sent before the next one is read
            self._progress(gone)
        if gone != self._size:
            # An error here drops the connection, so that the server keeps nothing.
            raise FileChangedError("The file changed while it was sent.")
        self.checksum = self._source.finish()
        self.sent_at = self._close()
        yield self._before + self.checksum.encode() + self._after
