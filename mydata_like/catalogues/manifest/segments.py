"""The manifest: what is proven to be at a destination, in files beside the bytes.

A segment is two files that never change: `N.jsonl`, which counts, and `N.md5` for people, which
`md5sum -c` reads in the folder of the destination. Names that GNU md5sum escapes are in
`N-escaped.md5`. Where checksums are SHA-256, these end with `.sha256`, for `sha256sum -c`. A file
is listed once its bytes are proven; before they are replaced, the segments that list it are written
again without it. So after an interruption at any moment a file may be missing from the manifest,
but is never listed with bytes that it does not have.
"""

import base64
import binascii
import hashlib
import json
import logging
import re
import secrets
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import (
    DESTINATION_MARKER,
    OWN_FOLDER,
    DestinationFiles,
    ProvenFile,
    StoredFile,
)
from mydata_like.core.errors import Problem, StagingError
from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import parse_json
from mydata_like.engine.pipeline import Lock

logger = logging.getLogger(__name__)

MARKER: Final = OWN_FOLDER + b"/" + DESTINATION_MARKER
TEMPORARY: Final = OWN_FOLDER + b"/tmp/"
MANIFEST: Final = OWN_FOLDER + b"/manifest/"
TURN: Final = OWN_FOLDER + b"/withdrawing"  # names the uploader that writes segments again
LONGEST_TURN: Final = 120.0  # seconds after which it counts as killed
LOOK_AGAIN: Final = 0.1  # seconds
FORMAT: Final = 1
NOT_MD5: Final = 2  # the format of a marker that versions which know only MD5 refuse
LARGEST: Final = 50_000  # files of a segment
_CHECKSUM: Final = re.compile("[0-9a-f]{32}|[0-9a-f]{64}")
_NO_SIZE: Final = 1 << 63  # which no file has
_ENDING: Final = b".jsonl"
_ESCAPED: Final = b"-escaped"
_LISTS: Final = (b".md5", b".sha256")  # endings of the files for people
_ESCAPE: Final = re.compile(rb"\\([\\nr])")
_ESCAPES: Final = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}


class Listed(NamedTuple):
    """A file in the manifest: how it was when it was proven, how, and when.

    `at` is in seconds since 1970, by the clock of the computer that proved it.
    """

    proven: ProvenFile
    evidence: str
    at: int

    @property
    def path(self) -> bytes:
        return self.proven.file.path


def format_segment(
    proven: Iterable[ProvenFile], evidence: str, at: int, algorithm: Algorithm = Algorithm.MD5
) -> bytes:
    """Return the content of `N.jsonl`: a line about all files, and one for each."""
    lines = []
    for file, checksum in proven:
        path, size, modified_ns, ctime_ns, inode, tag = file
        name = binascii.b2a_base64(path, newline=False).decode()
        more = f",{json.dumps(tag)}" if tag else ""
        # A fifth of the time that `json` takes; names and checksums need no escapes.
        lines.append(f'["{name}",{size},"{checksum}",{modified_ns},{ctime_ns},{inode}{more}]')
    head = {"format": FORMAT, "evidence": evidence, "at": at, "files": len(lines)}
    return "\n".join([json.dumps(head | {"checksum": algorithm.value}), *lines, ""]).encode()


def parse_segment(content: bytes, algorithm: Algorithm = Algorithm.MD5) -> Iterator[Listed]:
    """Yield the files of a segment, which has checksums of this algorithm.

    Raises ValueError if it is damaged, of a newer version or has others.
    """
    lines = content.decode("ascii").splitlines()
    head = parse_json(lines[0]) if lines else None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ValueError("it is not of a known format")
    evidence, at = str(head["evidence"]), int(head["at"])
    if head.get("files", len(lines) - 1) != len(lines) - 1:
        raise ValueError("lines of it are missing")
    if head.get("checksum", Algorithm.MD5.value) != algorithm.value:
        raise ValueError("its checksums are of another kind than those of the destination")
    for line in lines[1:]:
        name, size, checksum, modified_ns, ctime_ns, inode, *tag = parse_json(line)
        known = _CHECKSUM.fullmatch(checksum) and len(checksum) == algorithm.digits
        if not known or not 0 <= size < _NO_SIZE:
            raise ValueError("a line of it is damaged")
        path = base64.b64decode(name, validate=True)
        file = StoredFile(path, int(size), int(modified_ns), int(ctime_ns), int(inode), *tag)
        yield Listed(ProvenFile(file, str(checksum)), evidence, at)


def format_checksums(proven: Sequence[ProvenFile]) -> tuple[bytes, bytes]:
    """Return the lines for `md5sum -c` or `sha256sum -c`, and those of names that they escape.

    The format is that of GNU coreutils, "md5sum invocation": a line with escapes begins with a
    backslash. Paths begin with `./`, since a file called `-` would be the standard input.
    """
    lines = b"".join([b"%b  ./%b\n" % (it.checksum.encode(), it.file.path) for it in proven])
    if b"\\" not in lines and b"\r" not in lines and lines.count(b"\n") == len(proven):
        return lines, b""
    plain, escaped = [], []
    for file, checksum in proven:
        path, line = b"./" + file.path, checksum.encode() + b"  "
        if b"\\" in path or b"\n" in path or b"\r" in path:
            for character, escape in ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r")):
                path = path.replace(character, escape)
            escaped.append(b"\\" + line + path + b"\n")
        else:
            plain.append(line + path + b"\n")
    return b"".join(plain), b"".join(escaped)


def parse_checksums(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield path and line of each line for people; a damaged one has no meaningful path."""
    for line in content.removesuffix(b"\n").split(b"\n") if content else ():
        path = line.partition(b"  ")[2].removeprefix(b"./")
        if line.startswith(b"\\"):
            path = _ESCAPE.sub(lambda found: _ESCAPES[found[1]], path)
        yield path, line + b"\n"


class Manifest:
    """The manifest of a destination; `uploader` names our own segments in it.

    The number of each segment that is added is given to `note`. What cannot be read is reported,
    and its files count as not listed. `rest` waits for some seconds; what it raises ends the wait
    for other uploaders. Safe to call from any thread.
    """

    def __init__(
        self,
        files: DestinationFiles,
        uploader: str,
        report: Callable[[Problem], None],
        note: Callable[[int], object] = id,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self._files = files
        self._own = MANIFEST + uploader.encode() + b"/"
        self._report = report
        self._note = note
        self._rest = rest
        self._lock = Lock()
        self._earlier: array[int] | None = None  # sorted numbers of the paths listed before,
        self._others = array("Q")  # and of those by other uploaders
        self._last: int | None = None  # the number of our newest segment, once it was looked for

    def add(self, proven: Sequence[ProvenFile], at: int) -> None:
        """Add a segment with these files; they are listed when this returns."""
        with self._lock:
            for start in range(0, len(proven), LARGEST):
                part = proven[start : start + LARGEST]
                algorithm = self._files.algorithm
                content = format_segment(part, self._files.evidence, at, algorithm)
                plain, escaped = format_checksums(part)
                number = self._find_next()
                # The segment counts once its last file is there, so that no other is missing.
                ending = b"." + algorithm.value.encode()
                while not self._write_new(self._own + b"%06d" % number + ending, plain):
                    number += 1  # another program with our state has written one
                name = self._own + b"%06d" % number
                if escaped:
                    self._files.write(name + _ESCAPED + ending, escaped, replace=True)
                self._files.write(name + _ENDING, content, replace=True)
                self._last = number
                self._note(number)

    def _find_next(self) -> int:
        """Return the number of the next segment; what an interruption has left is removed."""
        if self._last is None:
            names = self._files.list_own(self._own.rstrip(b"/"))
            own = _number_segments(names)
            left = [it for it in names if it[:6].isdigit() and int(it[:6]) not in own]
            self._files.remove([self._own + name for name in left])
            self._last = max(own, default=0)
        return self._last + 1

    def _write_new(self, name: bytes, content: bytes) -> bool:
        """Write a file unless another one has its name."""
        if self._files.write(name, content):
            return True
        return self._files.read(name) == content  # an attempt whose answer was lost

    def find_own(self) -> set[int]:
        """Return the numbers of our own segments."""
        return _number_segments(self._files.list_own(self._own.rstrip(b"/")))

    def read(self) -> Iterator[Listed]:
        """Yield what all uploaders have listed; a later line of a path replaces earlier ones."""
        for _, listed in self.read_segments():
            yield from listed

    def read_segments(self) -> Iterator[tuple[str, Iterator[Listed]]]:
        """Yield the name of each segment, such as `UPLOADER/000001`, and what it lists."""
        for name in self._list():
            if name.endswith(_ENDING):
                shown = name.removeprefix(MANIFEST).removesuffix(_ENDING)
                yield shown.decode("utf-8", "backslashreplace"), iter(self._read(name))

    def withdraw(self, paths: Collection[bytes]) -> None:
        """Write the segments again that list one of these files, without them."""
        with self._lock, self._alone():
            # What people check goes first: it never says more than what counts.
            names = list(self._list())
            for name in names:
                if not name.endswith(_ENDING):
                    self._withdraw_checksums(name, paths)
            for name in names:
                if name.endswith(_ENDING):
                    self._withdraw_listed(name, paths)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other uploader writes segments again: each would undo what the other does.

        Our own earlier turn was interrupted by a kill.
        """
        mine = self._own + secrets.token_hex(8).encode()
        seen, since = b"", time.monotonic()
        while not self._write_new(TURN, mine):
            found = self._files.read(TURN) or b""
            if found != seen:
                seen, since = found, time.monotonic()
            if found.startswith(self._own) or time.monotonic() - since > LONGEST_TURN:
                self._files.remove([TURN])
            else:
                self._rest(LOOK_AGAIN)
        try:
            yield
        finally:
            if self._files.read(TURN) == mine:
                self._files.remove([TURN])

    def withdraw_earlier(self, paths: Collection[bytes]) -> None:
        """Withdraw those of these files that were listed before this run."""
        with self._lock:
            if not self._find_earlier():
                return
            earlier = {path for path in paths if _has(self._find_earlier(), _number(path))}
        if earlier:
            self.withdraw(earlier)

    def is_of_another(self, path: bytes) -> bool:
        """Return whether another uploader had listed this path before this run."""
        with self._lock:
            self._find_earlier()
            return _has(self._others, _number(path))

    def _find_earlier(self) -> "array[int]":
        if self._earlier is None:
            own, others = array("Q"), array("Q")
            for name, path in self._find_names():
                (own if name.startswith(self._own) else others).append(_number(path))
            self._others = array("Q", sorted(others))
            self._earlier = array("Q", sorted(own + others))
        return self._earlier

    def _find_names(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the name of a segment's file and each path in it, for all segments."""
        read: set[bytes] = set()
        names = list(self._list())
        segments = [name for name in names if name.endswith(_ENDING)]
        for name, content in zip(segments, self._files.read_all(segments), strict=True):
            if listed := self._parse(name, content):
                read.add(name.removesuffix(_ENDING))
                yield from ((name, it.path) for it in listed)
        for name in names:
            if not name.endswith(_ENDING) and _find_segment(name) not in read:
                lines = parse_checksums(self._files.read(name) or b"")
                yield from ((name, path) for path, _ in lines)

    def _withdraw_checksums(self, name: bytes, paths: Collection[bytes]) -> None:
        listed = list(parse_checksums(self._files.read(name) or b""))
        kept = [line for path, line in listed if path not in paths]
        if len(kept) < len(listed):
            self._files.write(name, b"".join(kept), replace=True)

    def _withdraw_listed(self, name: bytes, paths: Collection[bytes]) -> None:
        listed = self._read(name)
        kept = [it.proven for it in listed if it.path not in paths]
        if len(kept) < len(listed):
            first = listed[0]
            content = format_segment(kept, first.evidence, first.at, self._files.algorithm)
            self._files.write(name, content, replace=True)

    def _list(self) -> Iterator[bytes]:
        """Yield the paths of the files of all segments."""
        for name in self._files.list_own(MANIFEST.rstrip(b"/")):
            if name.endswith((_ENDING, *_LISTS)):
                yield MANIFEST + name

    def _read(self, name: bytes) -> list[Listed]:
        return self._parse(name, self._files.read(name))

    def _parse(self, name: bytes, content: bytes | None) -> list[Listed]:
        """Return what a segment lists; nothing if it is damaged."""
        try:
            listed = list(parse_segment(content or b"", self._files.algorithm))
        except (ValueError, TypeError, KeyError) as error:
            logger.warning("A segment of the manifest cannot be read: %s", error)
            self._report(
                Problem(
                    "destination.manifest",
                    f"{format_path(name)} at the destination cannot be read: {error}.",
                    "The files that it lists are compared again. Keep it, and check the storage "
                    "of the destination.",
                )
            )
            return []
        if listed:
            self._files.recall((it.proven for it in listed), listed[0].evidence)
        return listed


def _number_segments(names: Iterable[bytes]) -> set[int]:
    return {int(name[:6]) for name in names if name.endswith(_ENDING) and name[:6].isdigit()}


def _find_segment(name: bytes) -> bytes:
    return name.rpartition(b".")[0].removesuffix(_ESCAPED)


def _number(path: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(path, digest_size=8).digest(), "big")


def _has(numbers: "array[int]", number: int) -> bool:
    place = bisect_left(numbers, number)
    return place < len(numbers) and numbers[place] == number


class DestinationMarker(NamedTuple):
    """What the marker of a destination says: its id, empty without one, and its checksums."""

    id: str = ""
    algorithm: Algorithm = Algorithm.MD5


def read_marker(content: bytes | None) -> DestinationMarker:
    """Return what the marker of a destination says.

    Raises `StagingError` for a marker that is damaged or of a newer version.
    """
    if content is None:
        return DestinationMarker()
    try:
        found = parse_json(content)
        known = found["format"] in (FORMAT, NOT_MD5)
        algorithm = Algorithm.MD5.value if found["format"] == FORMAT else found["checksum"]
        marker = DestinationMarker(str(found["id"]), Algorithm(algorithm))
    except (ValueError, TypeError, KeyError):
        known, marker = False, DestinationMarker()
    if not known or not marker.id:
        raise StagingError(
            f"{format_path(MARKER)} at the destination is damaged, or a newer version wrote it.",
            hint="Install the newest version. If the file is damaged, remove it and run "
            "again with --accept-missing, which makes a new one.",
            code="destination.marker",
        )
    return marker


def find_algorithm(files: DestinationFiles) -> Algorithm:
    """Return the algorithm of the checksums that a manifest without a marker has; MD5 if none."""
    names = files.list_own(MANIFEST.rstrip(b"/"))
    return Algorithm.SHA256 if any(it.endswith(_LISTS[1]) for it in names) else Algorithm.MD5


def format_marker(marker: DestinationMarker) -> bytes:
    """Return the content of a marker."""
    record = {"format": FORMAT, "id": marker.id}
    if marker.algorithm is not Algorithm.MD5:
        record |= {"format": NOT_MD5, "checksum": marker.algorithm.value}
    return json.dumps(record).encode() + b"\n"
