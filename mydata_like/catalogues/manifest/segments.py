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
import json
import logging
import re
import secrets
import time
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, NamedTuple

from mydata_like.catalogues.manifest.withdrawal import WITHDRAW
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
AT_ONCE: Final = 16  # files that are written again with one request
LARGEST: Final = 50_000  # files of a segment
_CHECKSUM: Final = re.compile("[0-9a-f]{32}|[0-9a-f]{64}")
_NO_SIZE: Final = 1 << 63  # which no file has
_ENDING: Final = b".jsonl"
_ESCAPED: Final = b"-escaped"
_LISTS: Final = (b".md5", b".sha256")  # endings of the files for people
_ESCAPE: Final = re.compile(rb"\\([\\nr])")
_TOKENS: Final = re.compile(rb'^\["([A-Za-z0-9+/=]+)"', re.MULTILINE).findall
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
        self._listed: _ListedPaths | None = None  # once it was needed
        self._last: int | None = None  # the number of our newest segment, once it was looked for
        self._withdrawn: set[bytes] = set()  # in this run, and not listed since

    def add(self, proven: Sequence[ProvenFile], at: int) -> None:
        """Add a segment with these files; they are listed when this returns."""
        with self._lock:
            for start in range(0, len(proven), LARGEST):
                part = proven[start : start + LARGEST]
                algorithm = self._files.algorithm
                content = format_segment(part, self._files.evidence, at, algorithm)
                plain, escaped = format_checksums(part)
                number = self._find_next()
                ending = b"." + algorithm.value.encode()
                while not self._write_segment(number, ending, plain, escaped, content):
                    number += 1  # another program with our state has written one
                name = self._own + b"%06d" % number
                self._last = number
                if self._listed:
                    self._listed.add(name, [_encode(it.file.path) for it in part])
                self._withdrawn.difference_update(it.file.path for it in part)
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

    def _write_segment(
        self, number: int, ending: bytes, plain: bytes, escaped: bytes, content: bytes
    ) -> bool:
        """Write the files of a segment; return False if it is of another program.

        It counts once its last file is there, so that no other is missing.
        """
        name = self._own + b"%06d" % number
        others = [(name + _ESCAPED + ending, escaped)] if escaped else []
        others.append((name + _ENDING, content))
        if self._files.write_new(name + ending, plain, others):
            return True
        if self._files.read(name + ending) != plain:
            return False
        self._files.write_all(others)  # an attempt whose answer was lost
        return True

    def _write_new(self, name: bytes, content: bytes) -> bool:
        """Write a file unless another one has its name."""
        if self._files.write(name, content):
            return True
        return self._files.read(name) == content  # an attempt whose answer was lost

    def find_segments(self) -> set[str]:
        """Return the names of all segments, as those of `read_segments`."""
        return {_show(name) for name in self._list() if name.endswith(_ENDING)}

    def read(self) -> Iterator[Listed]:
        """Yield what all uploaders have listed; a later line of a path replaces earlier ones."""
        for _, listed in self.read_segments():
            yield from listed

    def read_segments(self) -> Iterator[tuple[str, Iterator[Listed]]]:
        """Yield the name of each segment, such as `UPLOADER/000001`, and what it lists."""
        for name in self._list():
            if name.endswith(_ENDING):
                yield _show(name), iter(self._read(name))

    def withdraw(self, paths: Collection[bytes]) -> None:
        """Write the segments again that list one of these files, without them."""
        with self._lock:
            if not (self._files.has_python and self._withdraw_there(paths)):
                self._withdraw(paths)
            if self._listed:
                self._listed.remove(paths)
            self._withdrawn.update(paths)

    def _withdraw_there(self, paths: Collection[bytes]) -> bool:
        """Let the host do it; return whether it has done all."""
        with self._alone():
            answer = self._files.run_python(WITHDRAW, b"".join([it + b"\0" for it in paths]))
        return answer == b"end"

    def _withdraw(self, paths: Collection[bytes]) -> None:
        names = list(self._list())
        segments = set(chain.from_iterable(self._look(names).find(paths).values()))
        # What people check goes first: it never says more than what counts.
        names = sorted(
            (it for it in names if _find_segment(it) in segments),
            key=lambda name: name.endswith(_ENDING),
        )
        if not names:
            return
        tokens = set(map(_encode, paths))
        with self._alone():
            for start in range(0, len(names), AT_ONCE):
                part = names[start : start + AT_ONCE]
                changed = []
                for name, content in zip(part, self._files.read_all(part), strict=True):
                    rest = content and _remove(name, content, paths, tokens)
                    if rest is not None and rest != content:
                        changed.append((name, rest))
                self._files.write_all(changed)

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
            left = [path for path in paths if path not in self._withdrawn]
            listed = self._find_listed().find(left) if left else {}
        if listed:
            self.withdraw(listed)

    def find_of_others(self, paths: Collection[bytes]) -> set[bytes]:
        """Return those of these paths that another uploader had listed before this run."""
        with self._lock:
            listed = self._find_listed().find(paths)
        own = self._own
        return {
            path for path, found in listed.items() if not all(it.startswith(own) for it in found)
        }

    def _find_listed(self) -> "_ListedPaths":
        return self._listed or self._look(list(self._list()))

    def _look(self, names: Sequence[bytes]) -> "_ListedPaths":
        """Learn what is listed in segments that have come since the last time."""
        listed = self._listed = self._listed or _ListedPaths()
        new = [it for it in names if _find_segment(it) not in listed.whole]
        counted = [it for it in new if it.endswith(_ENDING)]
        for name, content in zip(counted, self._files.read_all(counted), strict=True):
            tokens = _find_tokens(content or b"")
            if tokens is None:
                self._parse(name, content)  # which reports it
            else:
                listed.add(_find_segment(name), tokens)
        for name in new:  # of a segment that is damaged, or does not count yet
            if not name.endswith(_ENDING) and _find_segment(name) not in listed.whole:
                lines = parse_checksums(self._files.read(name) or b"")
                listed.add(_find_segment(name), [_encode(it) for it, _ in lines], whole=False)
        return listed

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


def _show(name: bytes) -> str:
    shown = name.removeprefix(MANIFEST).removesuffix(_ENDING)
    return shown.decode("utf-8", "backslashreplace")


def _find_segment(name: bytes) -> bytes:
    return name.rpartition(b".")[0].removesuffix(_ESCAPED)


class _ListedPaths:
    """The segments that list a path, as far as they were read; `whole` are those read completely.

    Each path of a segment is the hash of its token (see `_encode`). A few paths may be found in a
    segment that does not list them.
    """

    def __init__(self) -> None:
        self.whole: set[bytes] = set()
        self._segments: list[bytes] = []
        self._begins: list[int] = []  # of each segment among the hashes
        self._hashes = array("q")
        self._removed: dict[bytes, int] = {}  # how many segments there were, by path

    def add(self, segment: bytes, tokens: Iterable[bytes], *, whole: bool = True) -> None:
        """Learn what a segment lists."""
        self._segments.append(segment)
        self._begins.append(len(self._hashes))
        self._hashes.extend(map(hash, tokens))
        if whole:
            self.whole.add(segment)

    def find(self, paths: Collection[bytes]) -> dict[bytes, list[bytes]]:
        """Return the segments that list these paths; those that none lists are omitted.

        All hashes are looked at, so many paths together take hardly longer than one.
        """
        wanted = [(hash(_encode(path)), path) for path in paths]
        there = {number for number, _ in wanted}.intersection(self._hashes)
        if not there:
            return {}
        places = defaultdict[int, list[int]](list)
        for at, number in enumerate(self._hashes):
            if number in there:
                places[number].append(bisect_right(self._begins, at) - 1)
        found = {}
        for number, path in wanted:
            first = self._removed.get(path, 0)
            if segments := [self._segments[it] for it in places[number] if it >= first]:
                found[path] = segments
        return found

    def remove(self, paths: Iterable[bytes]) -> None:
        """Learn that none of the segments lists these paths any more."""
        self._removed.update(dict.fromkeys(paths, len(self._segments)))


def _encode(path: bytes) -> bytes:
    """Return a path as it is in a segment."""
    return binascii.b2a_base64(path, newline=False)


def _read_head(content: bytes) -> dict[str, Any] | None:
    """Return the line about all files of a segment; None if it is damaged."""
    try:
        head = parse_json(content.partition(b"\n")[0])
    except ValueError:
        return None
    count = _count(content)
    known = isinstance(head, dict) and head.get("format") == FORMAT
    return head if known and head.get("files", count) == count else None


def _find_tokens(content: bytes) -> list[bytes] | None:
    """Return the paths in a segment, as they are there; None if it is damaged."""
    tokens = _TOKENS(content)
    return tokens if _read_head(content) and len(tokens) == _count(content) else None


def _count(content: bytes) -> int:
    """Return the number of lines after the first."""
    return content.removesuffix(b"\n").count(b"\n")


def _remove(
    name: bytes, content: bytes, paths: Collection[bytes], tokens: Collection[bytes]
) -> bytes:
    """Return the content of a file of a segment without these files; `tokens` are their paths."""
    if name.endswith(_ENDING):
        return _remove_listed(content, tokens)
    return _remove_checksums(content, paths)


def _remove_listed(content: bytes, tokens: Collection[bytes]) -> bytes:
    """Return a segment without these files; a damaged one as it is."""
    head = _read_head(content)
    lines = content.removesuffix(b"\n").split(b"\n")[1:]
    kept = [line for line in lines if line[2 : line.find(b'"', 2)] not in tokens]
    if head is None or len(kept) == len(lines):
        return content
    head["files"] = len(kept)
    return b"\n".join([json.dumps(head).encode(), *kept, b""])


def _remove_checksums(content: bytes, paths: Collection[bytes]) -> bytes:
    """Return a file for people without these files."""
    listed = list(parse_checksums(content))
    kept = [line for path, line in listed if path not in paths]
    return b"".join(kept) if len(kept) < len(listed) else content


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
