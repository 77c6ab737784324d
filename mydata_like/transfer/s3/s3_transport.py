"""`S3Transport`: uploads to object storage, with threads of the engine process."""

import hashlib
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from mydata_like.core.destination_files import OCCUPIED, describe_occupied
from mydata_like.core.errors import (
    FULL,
    ItemError,
    Problem,
    RejectedError,
    StagingError,
    TransientError,
)
from mydata_like.core.file_transport import FileChannel, FileTransport
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.model import FileRecord, Payload, Replacement
from mydata_like.core.ports import Emit, Progress, SentFile, UnsentFile
from mydata_like.core.staging_path import is_kept
from mydata_like.transfer.archive_writer import open_content
from mydata_like.transfer.channel import CUT, describe_member
from mydata_like.transfer.destination_problems import (
    describe_refusal,
)
from mydata_like.transfer.member_results import describe_held
from mydata_like.transfer.s3.s3_client import Bucket
from mydata_like.transfer.s3.s3_errors import s3_errors
from mydata_like.transfer.s3.s3_upload import (
    PART,
    SMALL,
    CutOff,
    Flow,
    PartLimit,
    S3Upload,
    part_size,
)
from mydata_like.transfer.temporary_files import AGE
from mydata_like.transfer.worker_messages import Member

DELAYS: Final = (1.0, 4.0, 10.0, 20.0)  # seconds before a part is sent again
COPY: Final = 512 * 1024 * 1024  # bytes that the service copies in one request
_KEPT_PREFIX: Final = ".mydata-old"
_GONE: Final = frozenset({"404", "NoSuchKey", "NotFound"})


@frozen()
class NewObjects:
    """How the objects of a destination of `copy` are made: none replaces another one.

    `conditional` is whether the service obeys the header If-None-Match; if not, keys are looked up
    before. `checksums` collects the MD5s of objects of several parts, by their tags.
    """

    checksums: MutableMapping[str, str]
    conditional: bool = True


class S3Transport(FileTransport):
    """A bounded number of channels that send to one bucket, each one file at a time.

    Without `new`, objects are those of a MyTardis server: they may replace others.
    """

    rung = "s3"

    def __init__(
        self,
        client: Any,
        bucket: Bucket,
        *,
        channels: int,
        mark: bytes = b"",
        emit: Emit | None = None,
        new: NewObjects | None = None,
    ) -> None:
        super().__init__(bucket.host, channels, emit)
        self.client = client
        self.bucket = bucket
        self.mark = mark  # of this uploader in temporary names
        self.new = new
        # Copies in the parts that they were sent in have the same tags.
        self.copied_at_once = PART if new else COPY
        self.part_limit = PartLimit()
        self.delays = DELAYS
        self.round_trip = 0.0  # the shortest time of a tiny file, which includes the service's own

    def make_channel(self, number: int) -> "S3Channel":
        return S3Channel(self, number)

    def cancelled(self) -> TransientError:
        return TransientError("The transfer was cancelled.", code=CUT)

    def fetch_checksum(self, path: str) -> str:
        """Return the MD5 of the bytes of an object below the prefix."""
        found = hashlib.md5(usedforsecurity=False)
        with s3_errors(self.bucket):
            key = self.bucket.key(path)
            body = self.client.get_object(Bucket=self.bucket.name, Key=key)["Body"]
            with closing(body):
                for piece in body.iter_chunks():
                    found.update(piece)
        return found.hexdigest()

    def remove(self, path: str) -> None:
        """Remove an object below the prefix."""
        with s3_errors(self.bucket):
            self.client.delete_object(Bucket=self.bucket.name, Key=self.key(path))

    def find_size(self, key: str) -> int | None:
        """Return the size of an object, None if it does not exist."""
        found = find_object(self.client, self.bucket, key)
        return None if found is None else int(found["ContentLength"])

    def copy(self, source: str, target: str) -> None:
        """Let the service copy an object; `target` is replaced at the end.

        A large object is copied in parts, so that no answer takes long.
        """
        client, bucket = self.client, self.bucket.name
        found = client.head_object(Bucket=bucket, Key=source)
        size, where = found["ContentLength"], {"Bucket": bucket, "Key": target}
        origin = {
            "CopySource": {"Bucket": bucket, "Key": source},
            "CopySourceIfMatch": found["ETag"],
        }
        if size <= self.copied_at_once:
            client.copy_object(**where, **origin)
            return
        metadata = found.get("Metadata", {})
        answer = client.create_multipart_upload(**where, Metadata=metadata)
        upload = {**where, "UploadId": answer["UploadId"]}
        piece = max(self.copied_at_once, part_size(size))
        parts = []
        try:
            for number, start in enumerate(range(0, size, piece), 1):
                span = f"bytes={start}-{min(start + piece, size) - 1}"
                answer = client.upload_part_copy(
                    **upload, **origin, PartNumber=number, CopySourceRange=span
                )
                parts.append({"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]})
            client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        except BaseException:
            client.abort_multipart_upload(**upload)
            raise

    def key(self, path: str) -> str:
        """Return the key of a path.

        Those of kept objects of a MyTardis server have a prefix of their own, so that a rule of the
        bucket can apply to them.
        """
        apart = is_kept(path) and not self.new
        return self.bucket.key(f"{_KEPT_PREFIX}/{path}" if apart else path)

    def close(self) -> None:
        """Make sends in progress raise `TransientError` at their next bytes."""
        super().close()
        self.client.close()


class S3Channel(FileChannel):
    """A channel that sends payloads to a bucket, file by file."""

    def __init__(self, transport: S3Transport, number: int) -> None:
        super().__init__(transport, number)
        self._transport = transport
        self._client = transport.client
        self._bucket = transport.bucket

    def check_open(self) -> None:
        """Raise `CutOff` if sending is to end."""
        if self.is_cut:
            raise CutOff

    def send(self, payload: Payload, progress: Progress) -> list[SentFile | UnsentFile]:
        """Send the members one after another; each has its own outcome."""
        try:
            return super().send(payload, progress)
        except CutOff:
            raise self._transport.cancelled() from None

    def send_file(
        self, index: int, wanted: FileRecord, progress: Progress
    ) -> SentFile | UnsentFile:
        member = describe_member(wanted, self._transport.mark)
        flow = Flow(
            bucket=self._rate,
            limit=self._transport.part_limit,
            delays=self._transport.delays,
            check_open=self.check_open,
            progress=progress,
        )
        try:
            self.check_open()
            with open_content(member) as source:
                upload = self._start(member, flow, wanted.remote)
                begun = time.monotonic()
                checksum = upload.send(source)
                if source.size <= SMALL:
                    seconds, known = time.monotonic() - begun, self._transport.round_trip
                    self._transport.round_trip = min(seconds, known or seconds)
                if self._transport.new and "-" in upload.tag:
                    self._transport.new.checksums[upload.tag] = checksum
                return SentFile(index, checksum, inside=source.inside)
        except ItemError as error:
            problem = error.problem
            if problem.code == OCCUPIED:
                problem = describe_occupied(member.remote)
            return UnsentFile(index, problem, again=isinstance(error, TransientError))
        except StagingError as error:
            if error.problem_code != FULL:
                raise
            return UnsentFile(index, error.problem, again=True)  # a smaller file may fit

    def _start(self, member: Member, flow: Flow, final: str) -> S3Upload:
        """Return the upload of a file; raises `RejectedError` if its object cannot be made.

        `final` is the path that it gets, perhaps after another object was replaced.
        """
        new = self._transport.new
        key = self._bucket.key(decode_key(member.remote))
        if new is None:
            return S3Upload(self._client, self._bucket, key, flow)
        if not (member.aside or new.conditional):
            with s3_errors(self._bucket):
                if find_object(self._client, self._bucket, key) is not None:
                    raise RejectedError("The key is taken.", code=OCCUPIED)
        modified = f"{Decimal(member.modified_ns).scaleb(-9):f}"  # as rclone keeps it
        return S3Upload(
            self._client,
            self._bucket,
            key,
            flow,
            {"mtime": modified, **describe_origin(self._bucket, final)},
            may_replace=member.aside or not new.conditional,
        )

    def replace(
        self, replacements: Sequence[Replacement], files: Mapping[bytes, FileRecord]
    ) -> list[SentFile | UnsentFile]:
        """Let the service copy replacements to their final keys, and remove the originals.

        It copies the earlier objects first.
        """
        fates: list[SentFile | UnsentFile] = []
        for index, move in enumerate(replacements):
            try:
                fates.append(self._move(index, move))
            except TransientError:
                raise
            except ItemError as error:
                fates.append(UnsentFile(index, error.problem, again=False))
        return fates

    def _move(self, index: int, move: Replacement) -> SentFile | UnsentFile:
        source, target = self._transport.key(move.staged), self._bucket.key(move.remote)
        kept = self._transport.key(move.kept) if move.kept else ""
        with s3_errors(self._bucket):
            there = not kept or self._transport.find_size(kept) == move.kept_size
            found = self._transport.find_size(source)
            if found is None and there and self._transport.find_size(target) == move.size:
                return SentFile(index, move.checksum)  # an interrupted call has moved it
            if found != move.size:
                shown = format_path(move.remote.encode("utf-8", "surrogateescape"))
                missing = Problem("staging.missing", f"The new bytes of {shown} are not there.")
                return UnsentFile(index, missing, again=False)
        if not there and (reason := self._keep(target, kept)):
            return UnsentFile(index, describe_held(reason), again=False)
        with s3_errors(self._bucket):
            self._transport.copy(source, target)
            self._client.delete_object(Bucket=self._bucket.name, Key=source)
        return SentFile(index, move.checksum)

    def _keep(self, target: str, kept: str) -> str:
        """Copy what is at `target`, if anything; return why the service refuses that."""
        try:
            with s3_errors(self._bucket):
                if self._transport.find_size(target) is not None:
                    self._transport.copy(target, kept)
        except TransientError:
            raise
        except (ItemError, StagingError) as error:
            return error.message
        return ""

    def discard(self, paths: Sequence[str]) -> None:
        """Remove what is stored under these paths and no longer wanted."""
        for path in paths:
            self._transport.remove(path)


def describe_origin(bucket: Bucket, path: str) -> dict[str, str]:
    """Return the metadata by which an object that this program has put there is recognised.

    A copy under another key, or in another bucket, does not match.
    """
    text = f"{bucket.name}/{bucket.key(path)}".encode()
    return {"mydata-like": hashlib.blake2b(text, digest_size=16).hexdigest()}


def decode_key(path: bytes) -> str:
    """Return a path as a part of a key; raises `RejectedError` if it is not valid UTF-8."""
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        problem = describe_refusal(path, b"Illegal byte sequence")
        raise RejectedError(problem.message, hint=problem.hint, code=problem.code) from None


def find_object(client: Any, bucket: Bucket, key: str) -> Any:
    """Return the headers of an object, None if it does not exist."""
    from botocore.exceptions import ClientError  # loaded with the client

    try:
        return client.head_object(Bucket=bucket.name, Key=key)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in _GONE:
            return None
        raise


def remove_old_uploads(client: Any, bucket: Bucket, now: Callable[[], datetime]) -> int:
    """Remove the parts of uploads below the prefix that began a week ago; return their number.

    Without a prefix nothing is removed: the uploads of other programs cannot be told from ours.
    """
    if not bucket.prefix:
        return 0
    before = now().astimezone(UTC) - timedelta(seconds=AGE)
    removed = 0
    with s3_errors(bucket):
        pages = client.get_paginator("list_multipart_uploads").paginate(
            Bucket=bucket.name, Prefix=f"{bucket.prefix}/"
        )
        for upload in (it for page in pages for it in page.get("Uploads", ())):
            if upload["Initiated"] <= before:
                client.abort_multipart_upload(
                    Bucket=bucket.name, Key=upload["Key"], UploadId=upload["UploadId"]
                )
                removed += 1
    return removed
