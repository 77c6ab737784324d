"""`HttpTransport`: uploads over HTTP, for uploaders without SSH access.

Each file and its record are sent in one multipart request. The record's JSON comes last, since the
checksum is known only after the bytes. Large files are sent in chunks if the server supports them
and has approved a storage box.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from mydata_like.catalogues.mytardis.client import ApiClient, Query
from mydata_like.catalogues.mytardis.get_or_create import number_of
from mydata_like.catalogues.mytardis.http import BrokenOffError, HttpRequest
from mydata_like.catalogues.mytardis.serializers import (
    datafile_document,
    page_parser,
    parse_datafile,
)
from mydata_like.core.errors import (
    HELD,
    FileChangedError,
    ItemError,
    Problem,
    RejectedError,
    TransientError,
    UnansweredError,
    describe_strange_record,
)
from mydata_like.core.file_transport import FileChannel, FileTransport
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import Reading
from mydata_like.core.model import Datafile, DatasetId, FileRecord, Replacement
from mydata_like.core.parsing import moment_of_ns
from mydata_like.core.ports import Emit, Progress, SentFile, UnsentFile
from mydata_like.core.token_bucket import TokenBucket

_BUFFER: Final = 256 * 1024
_ROOM: Final = b"0" * 32  # placeholder for the checksum until it is known


class Body(Protocol):
    """A source that is read once: a local file, or an archive of several.

    Raises `FileChangedError` if a file has changed.
    """

    def chunks(self, buffer: bytearray) -> Iterator[memoryview]:
        """Yield the bytes as views of `buffer`, each valid until the next."""

    def finish(self) -> str:
        """Return the checksum of all bytes, after checking that the file has not changed."""


class Guarded:
    """A source that calls `check_open` before each chunk, which may raise to stop it."""

    def __init__(self, source: Body, check_open: Callable[[], None]) -> None:
        self._source = source
        self._check_open = check_open

    def chunks(self, buffer: bytearray) -> Iterator[memoryview]:
        for chunk in self._source.chunks(buffer):
            self._check_open()
            if chunk:
                yield chunk

    def finish(self) -> str:
        return self._source.finish()


class Multipart:
    """The body of one upload, with a known length; it is generated while it is sent.

    It is sent at the rate of the token bucket.

    `close` is called before the last piece is sent, after which the server may act on the
    request. Its result becomes `sent_at`, which is None before.
    """

    def __init__(
        self,
        record: Mapping[str, object],
        size: int,
        source: Body,
        bucket: TokenBucket,
        progress: Progress,
        close: Callable[[], float],
    ) -> None:
        boundary = uuid.uuid4().hex
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self.checksum = ""
        self.sent_at: float | None = None
        self._close = close
        self._source = source
        self._bucket = bucket
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
            if gone + len(chunk) > self._size:
                gone = -1
                break
            for piece in self._bucket.pieces(chunk):
                gone += len(piece)
                yield piece  # type: ignore[misc]  # a view: sent before the next one is read
                self._progress(gone)
        if gone != self._size:
            # An error here drops the connection, so the server stores nothing.
            raise FileChangedError("The file changed while it was being sent.")
        self.checksum = self._source.finish()
        self.sent_at = self._close()
        yield self._before + self.checksum.encode() + self._after


_SLOWEST_STORAGE: Final = 5_000_000  # bytes a second
_LARGE: Final = 64 * 1024 * 1024


class UploadTarget(Body, Protocol):
    """A source that was just opened for sending."""

    @property
    def inside(self) -> tuple[Reading, ...]:
        """The result of reading each file of an archive, after all is read."""


OpenSource = Callable[[FileRecord], AbstractContextManager[UploadTarget]]


class Uploader(Protocol):
    """Uploads one large file at the rate of the bucket; returns its checksum."""

    def __call__(
        self, wanted: FileRecord, source: Body, bucket: TokenBucket, progress: Progress
    ) -> str: ...


class HttpTransport(FileTransport):
    """A bounded number of channels, each sending one request at a time.

    `chunked` uploads files above 64 MiB, if the server supports chunks. Each upload waits for its
    answer, which includes the server's time, so no round trip is known.
    """

    rung = "http"
    round_trip = 0.0
    can_replace = False

    def __init__(
        self,
        client: ApiClient,
        open_source: OpenSource,
        *,
        channels: int = 4,
        chunked: Uploader | None = None,
        emit: Emit | None = None,
    ) -> None:
        super().__init__(client.wire.host, channels, emit)
        self.client = client
        self.open_source = open_source
        self.chunked = chunked
        # Uploads whose results are not known: when they were sent, and the errors.
        self.unanswered: dict[DatasetId, tuple[float, UnansweredError]] = {}

    def make_channel(self, number: int) -> "HttpChannel":
        return HttpChannel(self, number)

    def cancelled(self) -> BrokenOffError:
        return BrokenOffError("The transfer was cancelled.")


class HttpChannel(FileChannel):
    """A channel that sends payloads to the server, file by file."""

    def __init__(self, transport: HttpTransport, number: int) -> None:
        super().__init__(transport, number)
        self._transport = transport
        self._client = transport.client

    def replace(
        self, replacements: Sequence[Replacement], files: Mapping[bytes, FileRecord]
    ) -> list[SentFile | UnsentFile]:
        """Report failure: HTTP cannot replace files, nor access those that SSH has staged."""
        held = Problem(HELD, "Nothing can be replaced without SSH.")
        return [UnsentFile(index, held, again=False) for index in range(len(replacements))]

    def discard(self, paths: Sequence[str]) -> None:
        """Do nothing: files that SSH has staged cannot be accessed."""

    def send_file(
        self, index: int, wanted: FileRecord, progress: Progress
    ) -> SentFile | UnsentFile:
        """Send one file, unless the server has a record of it, whose content is then compared."""
        try:
            self.check_open()
            with self._transport.open_source(wanted) as opened:
                source, size = Guarded(opened, self.check_open), wanted.file.size
                if self._transport.chunked and size > _LARGE:
                    checksum = self._transport.chunked(wanted, source, self._rate, progress)
                elif existing := (
                    wanted.earlier or self._find(wanted) or self._outlast_earlier(wanted)
                ):
                    progress(size, size)
                    checksum = adopt(existing, wanted, read_checksum(source))
                else:
                    checksum = self._post(wanted, source, progress)
                return SentFile(index, checksum, registered=True, inside=opened.inside)
        except ItemError as error:
            if self.is_cut:
                raise
            return UnsentFile(index, error.problem, again=isinstance(error, TransientError))

    def _post(self, wanted: FileRecord, source: Body, progress: Progress) -> str:
        """Send file and record; after a lost reply, check whether the record exists."""

        def note() -> float:  # the server may create the record from now on
            if self._client.writes:
                self._client.writes.begin(_number(wanted))
            return self._client.now()

        body = Multipart(
            draft_record(self._client, wanted),
            wanted.file.size,
            source,
            self._rate,
            progress,
            note,
        )
        request = HttpRequest(
            "POST",
            "mydata_dataset_file/",
            body=body,
            headers={"Content-Type": body.content_type},
            answer_timeout=answer_timeout(wanted.file.size),
        )
        try:
            self._client.check(self._client.exchange(request), (201,))
            self._forget(wanted, body)
        except (TransientError, RejectedError) as error:
            if isinstance(error, RejectedError) and error.problem_code != "server.duplicate":
                self._forget(wanted, body)
                raise
            if isinstance(error, UnansweredError) and body.sent_at is not None:
                unanswered, number = self._transport.unanswered, _number(wanted)
                unanswered[number] = body.sent_at, error
                found = self._outlast(wanted, body.sent_at, error)
                del unanswered[number]
            else:
                found = self._find(wanted)
            self._forget(wanted, body)
            if found is None or not body.checksum:
                raise
            return adopt(found, wanted, body.checksum)
        return body.checksum

    def _outlast(
        self, wanted: FileRecord, sent_at: float, lost: UnansweredError | None
    ) -> Datafile | None:
        """Return the record if it appears before a request without an answer has ended."""

        def find() -> Datafile | None:
            found = self._find(wanted)
            return None if found and found.fault else found  # before the end it has no path

        work = wanted.file.size / _SLOWEST_STORAGE
        return self._client.outlast(sent_at, lost, find, work)

    def _forget(self, wanted: FileRecord, body: Multipart) -> None:
        if self._client.writes and body.sent_at is not None:
            self._client.writes.end(_number(wanted))

    def _outlast_earlier(self, wanted: FileRecord) -> Datafile | None:
        """Return the record that an earlier request has created, if there was one.

        It may be of an earlier run, or of an attempt that ended before its result was known.
        """
        unanswered, number = self._transport.unanswered, _number(wanted)
        if number in unanswered:
            found = self._outlast(wanted, *unanswered[number])
            del unanswered[number]
            return found
        rest = self._client.writes.find_rest(_number(wanted)) if self._client.writes else 0.0
        if not rest:
            return None
        begun = self._client.now() + rest - self._client.write_timeout
        return self._outlast(wanted, begun, None)

    def _find(self, wanted: FileRecord) -> Datafile | None:
        """Find a record of this name: an existing one must never be created again."""
        found = find_records(self._client, wanted)
        if not found:
            self._client.prove()
        return found[0][0] if found else None


def _number(wanted: FileRecord) -> DatasetId:
    """Return the number that identifies a datafile in the record of writes."""
    return number_of(("datafile", wanted.dataset.id, *place(wanted)))


def find_records(client: ApiClient, wanted: FileRecord) -> list[tuple[Datafile, Any]]:
    """Return the records with a wanted file's name, with their rows."""
    directory, name = place(wanted)
    query: Query = {"dataset__id": wanted.dataset.id, "filename": name, "directory": directory}
    parse = page_parser(lambda row: (parse_datafile(row), row))
    rows = [found for _, found in client.fetch("mydata_dataset_file/", parse, query).rows]
    return [it for it in rows if (it[0].directory or "", it[0].name) == (directory, name)]


def place(wanted: FileRecord) -> tuple[str, str]:
    """Return a file's directory and name as they are sent to the server."""
    try:
        return wanted.file.directory.decode(), wanted.file.name.decode()
    except UnicodeDecodeError as error:
        raise RejectedError(
            f"The name {format_path(wanted.file.name)} contains bytes that are not text.",
            hint="Rename it on the disk.",
            code="name.unfit",
        ) from error


def draft_record(client: ApiClient, wanted: FileRecord) -> dict[str, object]:
    """Return the record of a wanted file without its checksum."""
    modified = moment_of_ns(wanted.file.modified_ns).isoformat()
    return {
        "dataset": client.wire.uri("dataset", wanted.dataset.id),
        **datafile_document(*place(wanted)),
        "size": wanted.file.size,
        "created_time": modified,
        "modification_time": modified,
    }


def read_checksum(source: Body) -> str:
    """Return the checksum of a local file without sending it."""
    for _ in source.chunks(bytearray(_BUFFER)):
        pass
    return source.finish()


def adopt(record: Datafile | None, wanted: FileRecord, checksum: str) -> str:
    """Return the checksum if an existing record has our bytes; raise otherwise."""
    if (
        record
        and record.replicas
        and (record.size, record.checksum) == (wanted.file.size, checksum)
    ):
        return checksum
    if record and record.fault:
        problem = describe_strange_record(record.fault)
        raise TransientError(problem.message, hint=problem.hint, code=problem.code)
    raise cannot_repair(wanted)


def cannot_repair(wanted: FileRecord) -> RejectedError:
    """Return the error that the bytes of an existing record cannot be replaced over HTTP."""
    return RejectedError(
        f"The server has different content for {format_path(wanted.file.key)}, "
        "which cannot be replaced without SSH.",
        hint="Ask the facility's administrator to approve this uploader's key.",
        code="http.cannot-repair",
    )


def answer_timeout(size: int) -> float:
    """Return how long the server may process a file before it answers: at least 5 MB/s."""
    return 60.0 + size / _SLOWEST_STORAGE
