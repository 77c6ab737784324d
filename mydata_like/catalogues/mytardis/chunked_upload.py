"""Upload of large files in chunks, with the upload service of the server's MyData app.

The record must exist before the first chunk. Until the last one has arrived it has a checksum and
a time that no file has, so that it cannot be mistaken for a complete one. A later attempt
continues at the offset that the server reports.
"""

import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import xxhash

from mydata_like.catalogues.mytardis.client import ApiClient, json_request, plain
from mydata_like.catalogues.mytardis.http import HttpRequest
from mydata_like.catalogues.mytardis.http_upload import (
    Body,
    adopt,
    answer_timeout,
    draft_record,
    find_records,
    read_checksum,
)
from mydata_like.catalogues.mytardis.serializers import expect
from mydata_like.core.errors import RejectedError, TransientError, UnansweredError
from mydata_like.core.model import NO_CHECKSUM, FileRecord
from mydata_like.core.ports import Progress
from mydata_like.core.token_bucket import TokenBucket

_NEVER: Final = "1970-01-01T00:00:00+00:00"
_LARGEST: Final = 100 * 1024 * 1024
_BUFFER: Final = 1024 * 1024


class _Status(NamedTuple):
    """The offset of the first missing byte, and the size of the chunks."""

    offset: int
    size: int


class _Slot(NamedTuple):
    """An unfinished record, and its replica that receives the chunks."""

    datafile: int
    replica: int


class ChunkedUpload:
    """Uploads one large file into the approved storage box `box`."""

    def __init__(self, client: ApiClient, box: str) -> None:
        self._client = client
        self._box = box

    def __call__(
        self, wanted: FileRecord, source: Body, bucket: TokenBucket, progress: Progress
    ) -> str:
        """Upload a file, or its missing part, and return its checksum."""
        found = find_records(self._client, wanted)
        if not found:
            self._client.prove()
            self._make(wanted)
            found = find_records(self._client, wanted)
        size = wanted.file.size
        slot: _Slot | None = None
        for record, row in found:
            unfinished = (record.checksum, record.size) == (NO_CHECKSUM, size)
            if unfinished and record.replicas and record.replicas[0].location == self._box:
                slot = _Slot(record.id, expect(row["replicas"][0], "id", int))
                break
        if slot is None:
            progress(size, size)
            return adopt(found[0][0] if found else None, wanted, read_checksum(source))
        status = self._ask_status(slot)
        omitted = min(status.offset, size)
        progress(omitted, omitted)
        for start, chunk in _cut(status, source):
            self._send(slot, start, _Body(chunk, bucket), size)
            progress(start + len(chunk), omitted)
        checksum = source.finish()
        # The checksum first: the server compares it as soon as the chunks are joined.
        modified = draft_record(self._client, wanted)["modification_time"]
        document = {"md5sum": checksum, "modification_time": modified}
        self._client.change("PATCH", f"mydata_dataset_file/{slot.datafile}/", document)
        service = f"mydata_upload/{slot.replica}/complete/"
        _check_success(self._client.fetch(service, _parse_success))
        return checksum

    def _make(self, wanted: FileRecord) -> None:
        """Create the unfinished record; after a lost reply, check whether it exists."""
        document = draft_record(self._client, wanted)
        document |= {"md5sum": NO_CHECKSUM, "modification_time": _NEVER}
        replica = {"url": wanted.remote, "location": self._box, "protocol": "file"}
        document["replicas"] = [replica]
        request = json_request("POST", "mydata_dataset_file/", document)
        begun = self._client.now()
        try:
            self._client.check(self._client.submit(request), (201,))
        except UnansweredError as lost:
            if not self._client.outlast(
                begun, lost, lambda: find_records(self._client, wanted) or None
            ):
                raise
        except TransientError:
            if not find_records(self._client, wanted):
                raise

    def _ask_status(self, slot: _Slot) -> _Status:
        return self._client.fetch(f"mydata_upload/{slot.replica}/", _parse_status)

    def _send(self, slot: _Slot, start: int, chunk: "_Body", total: int) -> None:
        request = HttpRequest(
            "POST",
            f"mydata_upload/{slot.replica}/upload/",
            body=chunk,
            headers={
                "Content-Type": "application/octet-stream",
                "Checksum": chunk.checksum,
                "Content-Range": f"{start}-{start + len(chunk)}/{total}",
            },
            answer_timeout=answer_timeout(len(chunk)),
        )
        end = start + len(chunk)
        reply = self._client.insist(request, lambda: self._ask_status(slot).offset >= end)
        if reply is not None:
            _check_success(self._client.decode(reply, _parse_success))


def _cut(status: _Status, source: Body) -> Iterator[tuple[int, bytes]]:
    """Yield the missing bytes, in chunks of the size that the server requests."""
    chunk, position = bytearray(), 0
    for piece in source.chunks(bytearray(_BUFFER)):
        chunk += piece[max(0, status.offset - position) :]
        position += len(piece)
        while len(chunk) >= status.size:
            yield position - len(chunk), bytes(chunk[: status.size])
            del chunk[: status.size]
    if chunk:
        yield position - len(chunk), bytes(chunk)


class _Body:
    """A chunk as the body of a request, limited to the rate of a token bucket."""

    def __init__(self, chunk: bytes, bucket: TokenBucket) -> None:
        self._chunk = chunk
        self._bucket = bucket
        self.checksum = xxhash.xxh3_64_hexdigest(chunk)

    def __len__(self) -> int:
        return len(self._chunk)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._bucket.pieces(memoryview(self._chunk))  # type: ignore[misc]  # a view works as well


def _parse_status(answer: Any) -> _Status:
    _check_success(_parse_success(answer))
    if expect(answer, "completed", bool):
        return _Status(sys.maxsize, _LARGEST)
    if expect(answer, "checksum", str) != "xxh3_64":
        raise RejectedError("The server requires a chunk checksum that is not supported.")
    return _Status(
        expect(answer, "offset", int), min(max(expect(answer, "size", int), 1), _LARGEST)
    )


def _parse_success(answer: Any) -> str:
    """Return the server's error message; the status is always 200."""
    if expect(answer, "success", bool):
        return ""
    error = expect(answer, "error", str)
    return "" if error == "Chunk already uploaded." else plain(error, 200)


def _check_success(complaint: str) -> None:
    if complaint:
        raise TransientError(f"The server did not accept a chunk: {complaint}", code="http.chunk")
