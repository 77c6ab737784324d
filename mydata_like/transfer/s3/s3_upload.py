"""Uploads to a bucket: small files in one request, large ones as several parts at once.

Each file is read once, in order. A part is kept in memory until the service has it, so that a
repeated request sends the same bytes. Each request has the MD5 of its bytes, with which the service
compares what it received, and its answer must name the same MD5. The object appears only after the
local file is known to be unchanged.
"""

import hashlib
import io
import logging
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Event, Lock
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mydata_like.core import hashing
from mydata_like.core.destination_files import OCCUPIED
from mydata_like.core.errors import (
    ItemError,
    RejectedError,
    RunError,
    ServerUnavailableError,
    TransientError,
)
from mydata_like.core.formatting import format_size
from mydata_like.core.frozen import frozen
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.transfer.archive_writer import ArchiveSource
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.s3.s3_client import Bucket
from mydata_like.transfer.s3.s3_errors import s3_errors

logger = logging.getLogger(__name__)

PART: Final = 8 * 1024 * 1024  # bytes; the least of a part, and the most that is sent as a whole
PARTS: Final = 10_000  # limit of all services
LARGEST: Final = 5 * 1024**4  # bytes of an object, limit of most services
_AT_ONCE: Final = 4  # parts of one file
_MEMORY: Final = 96 * 1024 * 1024  # bytes of the parts of all files, if each has more than one
_READ: Final = 1024 * 1024  # bytes that are read and hashed at once
SMALL: Final = 64 * 1024  # bytes that are sent without asking the service first
_GLANCE: Final = 0.1  # seconds between two checks while a part waits
_MD5: Final = re.compile(r"[0-9a-f]{32}")
_MD5_TAG: Final = re.compile(r"[0-9a-f]{32}(-[0-9]+)?")

Source = FileSource | ArchiveSource


class CutOff(BaseException):
    """The transfer is to end now; botocore would send again after an `Exception`."""


class PartLimit:
    """How many parts of each file may be in memory, which depends on the number of files."""

    def __init__(self) -> None:
        self._files = 0
        self._lock = Lock()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a file that is sent in parts in this context."""
        with self._lock:
            self._files += 1
        try:
            yield
        finally:
            with self._lock:
                self._files -= 1

    def of_size(self, size: int) -> int:
        """Return the number of parts of this size (bytes) for each file now, at least one."""
        return max(1, min(_AT_ONCE, _MEMORY // (size * max(1, self._files))))


@frozen(kw_only=True, eq=False)
class Flow:
    """What an upload obeys: its rate, the parts at once, a check that raises `CutOff`, progress.

    `progress` is called with the number of bytes of the file that were sent so far. A part that
    fails is sent again after each of the `delays` (seconds), so that a large file need not start
    anew.
    """

    bucket: TokenBucket
    limit: PartLimit
    delays: Sequence[float]
    check_open: Callable[[], None]
    progress: Callable[[int], None]


def part_size(size: int) -> int:
    """Return the size of the parts of an object, a multiple of 1 MiB."""
    return max(PART, -(-size // PARTS // _READ) * _READ)


class Part(NamedTuple):
    """The bytes of one request, with their MD5 in hexadecimal digits."""

    data: bytearray
    checksum: str

    @property
    def header(self) -> str:
        """The value of the header Content-MD5."""
        return b64encode(bytes.fromhex(self.checksum)).decode()


class PartBody(io.RawIOBase):
    """The bytes of a part as they are sent: at the rate of the flow, and again if repeated.

    botocore also reads them for the signature of a request over http; this counts as nothing.
    """

    def __init__(self, data: bytearray, flow: Flow, count: Callable[[int], None]) -> None:
        self._data = memoryview(data)
        self._flow = flow
        self._count = count
        self._position = 0
        self.signing = False

    def __len__(self) -> int:
        return len(self._data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._data)}[whence]
        if not self.signing:
            self._count(start + offset - self._position)
        self._position = start + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes when they may be sent; raises `CutOff`."""
        rest = len(self._data) - self._position
        size = rest if size < 0 else min(size, rest)
        if not self.signing and size:
            self._flow.check_open()
            size = self._flow.bucket.take(size)
            self._count(size)
        start, self._position = self._position, self._position + size
        return bytes(self._data[start : self._position])


class S3Upload:
    """The upload of one file to one key.

    The object gets the `metadata`. Unless it `may_replace` another one, the service is asked to
    refuse that, and an object that it damaged is removed again. After `send`, `tag` is the ETag
    that the object has if the service makes it of checksums.
    """

    def __init__(
        self,
        client: Any,
        bucket: Bucket,
        key: str,
        flow: Flow,
        metadata: Mapping[str, str] = MappingProxyType({}),
        *,
        may_replace: bool = True,
    ) -> None:
        self.tag = ""
        self._client = client
        self._bucket = bucket
        self._where = {"Bucket": bucket.name, "Key": key}
        self._metadata = {"Metadata": dict(metadata)} if metadata else {}
        self._condition = {} if may_replace else {"IfNoneMatch": "*"}
        self._flow = flow
        self._sent = 0
        self._furthest = 0
        self._lock = Lock()
        self._ended = Event()  # set when a part has failed, which ends the others

    def send(self, source: Source) -> str:
        """Send all bytes of a source; return their MD5.

        Raises `FileChangedError`, `CutOff`, and what `s3_errors` raises. Nothing appears in the
        bucket then, except that a lost answer may belong to a complete object.
        """
        if source.size > LARGEST:
            raise RejectedError(
                f"Object storage has no objects above {format_size(LARGEST)}.",
                hint="Divide the file.",
                code="s3.too-large",
            )
        if source.size <= PART:
            return self._send_whole(source)
        with s3_errors(self._bucket):
            answer = self._client.create_multipart_upload(**self._where, **self._metadata)
            upload = answer["UploadId"]
        try:
            with self._flow.limit.one_more():
                tags = self._send_parts(source, upload)
            checksum = source.finish()
            self._complete(upload, tags, source.size)
        except BaseException:
            self._abort(upload)
            raise
        return checksum

    def _send_whole(self, source: Source) -> str:
        data = self._read(source, source.size, None)
        part = Part(data, source.finish())
        body: bytes | PartBody = PartBody(data, self._flow, self._count)
        if len(data) <= SMALL:
            body = self._wait(bytes(data))
        self.tag = part.checksum
        options = {"ContentMD5": part.header, **self._metadata, **self._condition}
        try:
            with s3_errors(self._bucket):
                answer = self._client.put_object(**self._where, Body=body, **options)
        except RejectedError as error:
            # An attempt whose answer was lost may have put it there.
            if error.problem_code != OCCUPIED or not self._is_there(self.tag, source.size):
                raise
        else:
            self._accept(answer)
        return part.checksum

    def _wait(self, data: bytes) -> bytes:
        """Return bytes when they may be sent; the service is not asked first, as for a body."""
        self._flow.check_open()
        for _ in self._flow.bucket.pieces(memoryview(data)):
            self._flow.check_open()
        self._count(len(data))
        return data

    def _send_parts(self, source: Source, upload: str) -> list[str]:
        """Send all parts, some of them at once; return their tags in order."""
        size = part_size(source.size)
        sent: list[Future[str]] = []
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="s3") as threads:
            try:
                for part in self._parts(source, size):
                    sent.append(threads.submit(self._send_part, upload, len(sent) + 1, part))
                    _settle(sent, self._flow.limit.of_size(size) - 1)
                _settle(sent, 0)
            except BaseException:
                self._ended.set()
                raise
        return [future.result() for future in sent]

    def _parts(self, source: Source, size: int) -> Iterator[Part]:
        """Yield the parts in order; the last one only if the file has not changed."""
        while source.remaining:
            own = hashing.new()
            data = self._read(source, min(size, source.remaining), own)
            if not source.remaining:
                source.finish()
            yield Part(data, own.hexdigest())

    def _read(self, source: Source, size: int, own: hashing.Checksum | None) -> bytearray:
        """Return the next bytes of a source; add them to its checksum and to that of a part."""
        data, filled = bytearray(size), 0
        checksums = [source.checksum] if own is None else [source.checksum, own]
        while filled < size:
            self._check()
            piece = source.read(min(_READ, size - filled))
            hashing.update_all([(checksum, piece) for checksum in checksums])
            data[filled : filled + len(piece)] = piece
            filled += len(piece)
        return data

    def _send_part(self, upload: str, number: int, part: Part) -> str:
        """Send a part, repeatedly if its connection or the service fails; return its tag."""
        for delay in self._flow.delays:
            try:
                return self._try_part(upload, number, part)
            except (TransientError, ServerUnavailableError) as error:
                logger.info("Part %d is sent again in %g s: %s", number, delay, error)
            self._rest(delay)
        return self._try_part(upload, number, part)

    def _rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            self._check()
            self._ended.wait(min(rest, _GLANCE))

    def _try_part(self, upload: str, number: int, part: Part) -> str:
        body = PartBody(part.data, replace(self._flow, check_open=self._check), self._count)
        self._check()
        with s3_errors(self._bucket):
            answer = self._client.upload_part(
                **self._where,
                UploadId=upload,
                PartNumber=number,
                Body=body,
                ContentMD5=part.header,
            )
            tag: str = answer["ETag"]
        _compare(answer, part.checksum)
        return tag.strip('"')

    def _complete(self, upload: str, tags: list[str], size: int) -> None:
        """Make the object of its parts; after a lost answer, look whether it is there."""
        self._check()
        self.tag = combine(tags)
        parts = [{"PartNumber": number, "ETag": f'"{it}"'} for number, it in enumerate(tags, 1)]
        options = {"UploadId": upload, "MultipartUpload": {"Parts": parts}, **self._condition}
        try:
            with s3_errors(self._bucket):
                answer = self._client.complete_multipart_upload(**self._where, **options)
        except (ItemError, RunError):
            if not self._is_there(self.tag, size):
                raise
        else:
            self._accept(answer)

    def _accept(self, answer: Any) -> None:
        """Raise `TransientError` if the service has made an object of other bytes."""
        try:
            _compare(answer, self.tag)
        except TransientError:
            if self._condition:
                version = {"VersionId": it} if (it := answer.get("VersionId")) else {}
                with suppress(ItemError, RunError), s3_errors(self._bucket):
                    self._client.delete_object(**self._where, **version)
            raise

    def _is_there(self, tag: str, size: int) -> bool:
        try:
            with s3_errors(self._bucket):
                found = self._client.head_object(**self._where)
        except (ItemError, RunError):
            return False
        same = found["ETag"].strip('"') == tag or (self._condition and is_encrypted(found))
        return bool(same) and found["ContentLength"] == size

    def _abort(self, upload: str) -> None:
        """Remove the parts; those that stay are removed by a later run."""
        with suppress(ItemError, RunError), s3_errors(self._bucket):
            self._client.abort_multipart_upload(**self._where, UploadId=upload)

    def _check(self) -> None:
        if self._ended.is_set():
            raise CutOff
        self._flow.check_open()

    def _count(self, size: int) -> None:
        """Count bytes that were sent, or with a negative number, that are sent again."""
        with self._lock:
            self._sent += size
            if self._sent <= self._furthest:
                return
            self._furthest = self._sent
        self._flow.progress(self._furthest)


def _settle(sent: Sequence[Future[str]], most: int) -> None:
    """Wait until at most so many parts are being sent; raises the error of any part."""
    while True:
        pending = [future for future in sent if not future.done()]
        for future in sent:
            if future.done():
                future.result()
        if len(pending) <= most:
            return
        wait(pending, return_when=FIRST_COMPLETED)


def combine(tags: Sequence[str]) -> str:
    """Return the tag of an object whose parts have these tags; empty if they are no MD5s."""
    if not all(map(_MD5.fullmatch, tags)):
        return ""
    joined = b"".join(map(bytes.fromhex, tags))
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(tags)}"


def is_encrypted(answer: Any) -> bool:
    """Return whether an object is encrypted in a way by which its ETag is no checksum."""
    coding = str(answer.get("ServerSideEncryption", ""))
    return coding.startswith("aws:kms") or "SSECustomerAlgorithm" in answer


def _compare(answer: Any, tag: str) -> None:
    """Raise `TransientError` if an answer names another MD5; encrypted objects have other tags."""
    told = str(answer.get("ETag", "")).strip('"').lower()
    if tag and told != tag and _MD5_TAG.fullmatch(told) and not is_encrypted(answer):
        raise TransientError(
            "The object storage received other bytes than were sent.", code="s3.damaged"
        )
