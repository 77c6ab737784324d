"""The files of a destination that is a bucket: objects, and what the service says about them."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar
from uuid import uuid4

from mydata_like.core import hashing
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import (
    OCCUPIED,
    OWN_FOLDER,
    SERVICE,
    DestinationFiles,
    Placement,
    ProvenFile,
    StoredContent,
    StoredFile,
    TreeFolder,
    TreeLink,
)
from mydata_like.core.errors import Problem, RejectedError, SettingsError
from mydata_like.transfer.destination_problems import check_own, check_path
from mydata_like.transfer.s3.s3_client import Bucket
from mydata_like.transfer.s3.s3_errors import s3_errors
from mydata_like.transfer.s3.s3_transport import (
    NewObjects,
    decode_key,
    describe_origin,
    find_object,
    remove_old_uploads,
)
from mydata_like.transfer.s3.s3_upload import is_encrypted
from mydata_like.transfer.tar import is_plain

AT_ONCE: Final = 16  # requests
_CHUNK: Final = 1 << 20
_MD5: Final = re.compile("[0-9a-f]{32}")
_MTIME: Final = re.compile(r"-?\d{1,11}(\.\d{1,9})?")  # seconds since 1970
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNREADABLE: Final = frozenset(
    {"NoSuchKey", "404", "PreconditionFailed", "412", "InvalidObjectState", "AccessDenied"}
)
T = TypeVar("T")


def probe_bucket(client: Any, bucket: Bucket) -> tuple[bool, bool]:
    """Return whether the service obeys If-None-Match, and whether its ETags are checksums.

    An object is made and removed. Raises what `s3_errors` raises.
    """
    content = b"x\n"
    checksum = hashlib.md5(content, usedforsecurity=False)
    where = {"Bucket": bucket.name, "Key": bucket.key(f".mydata-like/probe-{uuid4()}")}
    body = {"Body": content, "ContentMD5": b64encode(checksum.digest()).decode()}
    with s3_errors(bucket):
        answer = client.put_object(**where, **body)
        try:
            client.put_object(**where, **body, IfNoneMatch="*")
            conditional = False
        except client.exceptions.ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status not in (412, 501):
                raise
            conditional = status == 412
        finally:
            client.delete_object(**where)
    return conditional, _tag(answer) == checksum.hexdigest() and not is_encrypted(answer)


class BucketFiles(DestinationFiles):
    """The objects below the prefix of a bucket; see `DestinationFiles`.

    An ETag is the MD5 that the service has computed of an object of one part. `new.checksums` has
    the MD5s for other tags, empty if there is none. What has no MD5 is read back, and with `reads`
    all is.
    """

    attributes_complete = True
    has_temporary_names = False

    def __init__(
        self, client: Any, bucket: Bucket, new: NewObjects, *, reads: bool = False
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._new = new
        self._reads = reads

    @property
    def evidence(self) -> str:
        """`service`, or `read-back-cached` if all objects are read."""
        return "read-back-cached" if self._reads else SERVICE

    def use(self, algorithm: Algorithm) -> None:
        """Raise `SettingsError` for anything but MD5, of which ETags are made."""
        if algorithm is not Algorithm.MD5:
            raise SettingsError(
                f"Objects in a bucket have no {algorithm.label} checksums: their ETags are MD5s.",
                hint="Copy without --checksum, or to a host or folder.",
                code="destination.checksum",
            )

    def find_own(self, paths: Sequence[bytes]) -> list[bool]:
        """Return which objects have the metadata of `describe_origin`."""

        def is_own(path: bytes) -> bool:
            found = self._find(path) or {}
            origin = describe_origin(self._bucket, path.decode("utf-8", "replace"))
            return set(origin.items()) <= set(found.get("Metadata", {}).items())

        return self._run(is_own, paths)

    def recall(self, proven: Iterable[ProvenFile], evidence: str) -> None:
        """Learn the checksums of objects of several parts, and which tags are no checksums."""
        for file, checksum in proven:
            if file.tag != checksum:
                attested = evidence == SERVICE and "-" in file.tag
                self._new.checksums[file.tag] = checksum if attested else ""

    def open(self, *, create: bool) -> None:
        """Check that the bucket can be listed."""
        with s3_errors(self._bucket):
            self._client.list_objects_v2(
                Bucket=self._bucket.name, Prefix=self._bucket.key(""), MaxKeys=1
            )

    def list_files(self, folder: bytes) -> Iterator[StoredFile]:
        """Yield the objects below a folder, except keys that no file here could have."""
        for file in self._list(folder):
            if file.path.split(b"/")[0] != OWN_FOLDER:
                yield file

    def _list(self, folder: bytes) -> Iterator[StoredFile]:
        if folder:
            check_path(folder)
        try:
            first = self._bucket.key(decode_key(folder) + "/" if folder else "")
        except RejectedError:
            return  # no key is like this
        start = len(self._bucket.key("").encode())
        with s3_errors(self._bucket):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket.name, Prefix=first
            )
            for found in (it for page in pages for it in page.get("Contents", ())):
                path = found["Key"].encode()[start:]
                if is_plain(path):
                    yield _file(path, found, found["Size"])

    def look(self, paths: Sequence[bytes]) -> list[StoredFile | None]:
        """Return the attributes of objects in the order given."""

        def look(path: bytes) -> StoredFile | None:
            found = self._find(path)
            return _file(path, found, found["ContentLength"]) if found else None

        return self._run(look, paths)

    def _find(self, path: bytes) -> Any:
        """Return the headers of an object; None if it is missing, or no key can be like this."""
        check_path(path)
        try:
            key = self._bucket.key(decode_key(path))
        except RejectedError:
            return None
        with s3_errors(self._bucket):
            return find_object(self._client, self._bucket, key)

    def _run(self, action: Callable[[bytes], T], paths: Sequence[bytes]) -> list[T]:
        """Return the result of an action for each path, several at once."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="s3") as threads:
            return list(threads.map(action, paths))

    def sync(self) -> None:
        """Do nothing: a service answers when it has stored an object."""

    def prove(self, paths: Sequence[bytes]) -> list[ProvenFile | None]:
        """Return objects with the checksums that the service has of them, or of their bytes."""
        return self._run(self._prove, paths)

    def _prove(self, path: bytes) -> ProvenFile | None:
        found = self._find(path)
        if not found:
            return None
        file, checksum = _file(path, found, found["ContentLength"]), ""
        if not (self._reads or is_encrypted(found)):
            own = file.tag if _MD5.fullmatch(file.tag) else ""
            checksum = self._new.checksums.get(file.tag, own)
        checksum = checksum or self._hash(path, found["ETag"])
        return ProvenFile(file, checksum) if checksum else None

    def _hash(self, path: bytes, tag: str) -> str:
        """Return the MD5 of the bytes of an object; empty if they cannot be read as tagged."""
        found = hashing.new()
        with s3_errors(self._bucket):
            try:
                body = self._client.get_object(
                    Bucket=self._bucket.name, Key=self._bucket.key(path.decode()), IfMatch=tag
                )["Body"]
            except self._client.exceptions.ClientError as error:
                if error.response.get("Error", {}).get("Code") in _UNREADABLE:
                    return ""
                raise
            with closing(body):
                for piece in body.iter_chunks(_CHUNK):
                    found.update(piece)
        return found.hexdigest()

    @contextmanager
    def open_content(self, path: bytes, offset: int = 0) -> Iterator[StoredContent | None]:
        """Open an object for reading from an offset on."""
        found = self._find(path)
        if not found:
            yield None
            return
        key = {"Bucket": self._bucket.name, "Key": self._bucket.key(path.decode())}
        part = {"Range": f"bytes={offset}-"} if 0 < offset < found["ContentLength"] else {}
        with s3_errors(self._bucket):
            body = self._client.get_object(**key, **part, IfMatch=found["ETag"])["Body"]
            with closing(body):
                pieces = body.iter_chunks(_CHUNK) if part or not offset else iter(())
                yield StoredContent(path, pieces, modified_ns=_read_mtime(found))

    def place(self, placements: Sequence[Placement]) -> list[StoredFile | Problem]:
        """Not supported; see `has_temporary_names`."""
        raise NotImplementedError

    def set_mode(self, paths: Sequence[bytes], mode: int) -> None:
        """Do nothing: objects have no permissions."""

    def remove(self, paths: Sequence[bytes]) -> None:
        """Remove objects below `.mydata-like`; missing ones count as removed."""
        for path in paths:
            check_own(path)
            with s3_errors(self._bucket):
                self._client.delete_object(
                    Bucket=self._bucket.name, Key=self._bucket.key(path.decode())
                )

    def read(self, path: bytes) -> bytes | None:
        """Return the content of an object below `.mydata-like`; None if it is missing."""
        check_own(path)
        with s3_errors(self._bucket):
            try:
                body = self._client.get_object(
                    Bucket=self._bucket.name, Key=self._bucket.key(path.decode())
                )["Body"]
            except self._client.exceptions.NoSuchKey:
                return None
            with closing(body):
                return bytes(body.read())

    def list_own(self, folder: bytes) -> list[bytes]:
        """Return the sorted paths of the objects below a folder below `.mydata-like`."""
        check_own(folder)
        return sorted(file.path[len(folder) + 1 :] for file in self._list(folder))

    def write(self, path: bytes, content: bytes, *, replace: bool = False) -> bool:
        """Write an object below `.mydata-like`; return False if it must not be replaced."""
        check_own(path)
        if not (replace or self._new.conditional) and self._find(path):
            return False
        condition = {} if replace or not self._new.conditional else {"IfNoneMatch": "*"}
        checksum = hashlib.md5(content, usedforsecurity=False).digest()
        try:
            with s3_errors(self._bucket):
                self._client.put_object(
                    Bucket=self._bucket.name,
                    Key=self._bucket.key(path.decode()),
                    Body=content,
                    ContentMD5=b64encode(checksum).decode(),
                    **condition,
                )
        except RejectedError as error:
            if error.problem_code != OCCUPIED:
                raise
            return False
        return True

    def make_tree(self, folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> list[Problem]:
        """Do nothing: there are no folders or links in a bucket."""
        return []

    def clear(self, folder: bytes) -> bool:
        """Remove the parts of uploads that began long ago."""
        remove_old_uploads(self._client, self._bucket, lambda: datetime.now(UTC))
        return True

    def close(self) -> None:
        """Close idle connections; the next request opens others."""
        self._client.close()


def _tag(found: Any) -> str:
    return str(found.get("ETag", "")).strip('"').lower()


def _read_mtime(found: Any) -> int | None:
    """Return the time of the original from the metadata of an object, as rclone keeps it."""
    text = str(found.get("Metadata", {}).get("mtime", ""))
    return int(Decimal(text).scaleb(9)) if _MTIME.fullmatch(text) else None


def _file(path: bytes, found: Any, size: int) -> StoredFile:
    """Return an object; listings may tell its time more exactly than its own headers."""
    seconds = (found["LastModified"] - _EPOCH) // timedelta(seconds=1)
    return StoredFile(path, size, seconds * 10**9, 0, 0, _tag(found))
