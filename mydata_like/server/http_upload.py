"""`HttpTransport`: bytes carried by HTTP, where no SSH has been granted.

Each file and its record travel in one multipart request; the record's JSON comes last, since
the checksum is known only when the bytes have passed. Large files go in chunks where the
server takes them and has approved a storage box.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final, Protocol

from mydata_like.core.errors import (
    FileChangedError,
    ItemError,
    RejectedError,
    TransientError,
)
from mydata_like.core.events import ChannelChanged
from mydata_like.core.format import format_path
from mydata_like.core.model import Datafile, LocalFile, Payload, Wanted
from mydata_like.core.ports import Emit, Progress, Sent, Unsent
from mydata_like.server.client import Client, Query
from mydata_like.server.drafts import datafile_document
from mydata_like.server.records import page_parser, parse_datafile
from mydata_like.server.wire import Request

_BUFFER: Final = 256 * 1024
_LARGE: Final = 64 * 1024 * 1024
_ROOM: Final = b"0" * 32  # stands for the checksum until it is known


class Source(Protocol):
    """A local file that is read once; raises `FileChangedError` when it is not what it was."""

    def chunks(self, buffer: bytearray) -> Iterator[memoryview]:
        """Yield the file's bytes as views of `buffer`, each valid until the next."""

    def finish(self) -> str:
        """Return the checksum of all the bytes, once the file has stayed as it was."""


OpenSource = Callable[[LocalFile], AbstractContextManager[Source]]


class Carrier(Protocol):
    """A way to carry one large file; returns its checksum."""

    def __call__(self, wanted: Wanted, source: Source, progress: Progress) -> str: ...


class HttpTransport:
    """A bounded number of channels, each carrying one request at a time.

    `chunked` carries files above 64 MiB, where the server can take them in chunks.
    """

    def __init__(
        self,
        client: Client,
        open_source: OpenSource,
        *,
        channels: int = 4,
        chunked: Carrier | None = None,
        emit: Emit | None = None,
    ) -> None:
        self._emit = emit
        self.client = client
        self.open_source = open_source
        self.chunked = chunked
        self.closed = False
        self._channels = channels
        self._numbers = count(1)

    @property
    def capacity(self) -> int:
        return self._channels

    def open_channel(self) -> "HttpChannel":
        """Return one more channel; no connection is made before it sends."""
        if self.closed:
            raise closed()
        channel = HttpChannel(self, next(self._numbers))
        if self._emit:
            host = self.client.wire.host
            self._emit(ChannelChanged(channel=channel.number, state="open", host=host, rung="http"))
        return channel

    def close(self) -> None:
        """Make sends under way raise `TransientError` with their next bytes."""
        self.closed = True


class HttpChannel:
    """One line over which payloads go to the server, file by file."""

    def __init__(self, transport: HttpTransport, number: int) -> None:
        self._transport = transport
        self._client = transport.client
        self._number = number

    @property
    def number(self) -> int:
        return self._number

    def send(self, payload: Payload, progress: Progress) -> list[Sent | Unsent]:
        """Carry the members one after another; each one's fate is its own."""
        fates: list[Sent | Unsent] = []
        gone = 0
        for index, wanted in enumerate(payload.members):
            start = gone
            fates.append(self._fate(index, wanted, lambda size, at=start: progress(at + size)))  # type: ignore[misc]
            gone += wanted.file.size
        return fates

    def _fate(self, index: int, wanted: Wanted, progress: Progress) -> Sent | Unsent:
        try:
            return Sent(index, self._send(wanted, progress), registered=True)
        except ItemError as error:
            if self._transport.closed:
                raise
            return Unsent(index, error.problem, again=isinstance(error, TransientError))

    def _send(self, wanted: Wanted, progress: Progress) -> str:
        with self._transport.open_source(wanted.file) as source:
            guarded = _Guarded(self._transport, source)
            if self._transport.chunked and wanted.file.size > _LARGE:
                return self._transport.chunked(wanted, guarded, progress)
            existing = wanted.datafile or self._find(wanted)
            if existing is None:
                return self._post(wanted, guarded, progress)
            return adopt(existing, wanted, read_checksum(guarded))

    def _post(self, wanted: Wanted, source: Source, progress: Progress) -> str:
        """Send file and record; what became of a lost reply is settled by looking."""
        body = _Multipart(self._client, wanted, source, progress)
        request = Request(
            "POST",
            "mydata_dataset_file/",
            body=body,
            headers={"Content-Type": body.content_type},
            patience=patience(wanted.file.size),
        )
        try:
            self._client.check(self._client.exchange(request), (201,))
        except (TransientError, RejectedError) as error:
            if isinstance(error, RejectedError) and error.problem_code != "server.duplicate":
                raise
            found = self._find(wanted)
            if found is None or not body.checksum:
                raise
            return adopt(found, wanted, body.checksum)
        return body.checksum

    def _find(self, wanted: Wanted) -> Datafile | None:
        """Look for a record of this name: one that exists must never be made again."""
        found = find_records(self._client, wanted)
        if not found:
            self._client.prove()
        return found[0][0] if found else None


def find_records(client: Client, wanted: Wanted) -> list[tuple[Datafile, Any]]:
    """Return the records that stand under a wanted file's name, with their rows."""
    directory, name = place(wanted)
    query: Query = {"dataset__id": wanted.dataset.id, "filename": name, "directory": directory}
    parse = page_parser(lambda row: (parse_datafile(row), row))
    rows = [found for _, found in client.fetch("mydata_dataset_file/", parse, query).rows]
    return [it for it in rows if (it[0].directory or "", it[0].name) == (directory, name)]


def place(wanted: Wanted) -> tuple[str, str]:
    """Return a file's directory and name as the server is told them."""
    try:
        return wanted.file.directory.decode(), wanted.file.name.decode()
    except UnicodeDecodeError as error:
        raise RejectedError(
            f"The name {format_path(wanted.file.name)} contains bytes that are no text.",
            hint="Rename it on the disk.",
            code="name.unfit",
        ) from error


def draft_record(client: Client, wanted: Wanted) -> dict[str, object]:
    """Return the record of a wanted file, all but its checksum."""
    modified = datetime.fromtimestamp(wanted.file.modified_ns // 1000 / 1_000_000, UTC).isoformat()
    return {
        "dataset": client.wire.uri("dataset", wanted.dataset.id),
        **datafile_document(*place(wanted)),
        "size": wanted.file.size,
        "created_time": modified,
        "modification_time": modified,
    }


def read_checksum(source: Source) -> str:
    """Return the checksum of a local file whose bytes need not travel."""
    for _ in source.chunks(bytearray(_BUFFER)):
        pass
    return source.finish()


def adopt(record: Datafile | None, wanted: Wanted, checksum: str) -> str:
    """Take a record that exists for ours where it has our bytes."""
    if (
        record
        and record.replicas
        and (record.size, record.checksum) == (wanted.file.size, checksum)
    ):
        return checksum
    raise cannot_repair(wanted)


def cannot_repair(wanted: Wanted) -> RejectedError:
    """Say that the bytes of an existing record cannot be replaced by HTTP."""
    return RejectedError(
        f"The server has another content of {format_path(wanted.file.key)}, "
        "which cannot be replaced without SSH.",
        hint="Ask the facility's administrator to approve this uploader's key.",
        code="http.cannot-repair",
    )


def patience(size: int) -> float:
    """Return how long the server may work on a file before it answers: at least 5 MB/s."""
    return 60.0 + size / 5_000_000


def closed() -> TransientError:
    """Say that the transport was closed under a transfer."""
    return TransientError("The transfer was broken off.", code="transfer.closed")


class _Guarded:
    """A source that ends when its transport is closed."""

    def __init__(self, transport: HttpTransport, source: Source) -> None:
        self._transport = transport
        self._source = source

    def chunks(self, buffer: bytearray) -> Iterator[memoryview]:
        for chunk in self._source.chunks(buffer):
            if self._transport.closed:
                raise closed()
            if chunk:
                yield chunk

    def finish(self) -> str:
        return self._source.finish()


class _Multipart:
    """The body of one upload, of a length known beforehand; it is made while it is sent."""

    def __init__(self, client: Client, wanted: Wanted, source: Source, progress: Progress) -> None:
        boundary = uuid.uuid4().hex
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self.checksum = ""
        self._source = source
        self._progress = progress
        self._size = wanted.file.size
        self._head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="attached_file"; '
            'filename="file"\r\nContent-Type: application/octet-stream\r\n\r\n'
        ).encode()
        record = json.dumps({**draft_record(client, wanted), "md5sum": _ROOM.decode()})
        before, _, after = record.encode().rpartition(_ROOM)
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
        yield self._before + self.checksum.encode() + self._after
