"""Sends batches: many small files as one tar stream that the host extracts and then verifies.

A marker at the end of the stream proves that all members arrived. Without it, the batch is sent
again with `tar -v`, whose output shows for each member whether it was extracted or refused.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from mmap import mmap
from typing import Final, NamedTuple

from mydata_like.core import hashing
from mydata_like.core.errors import (
    FileChangedError,
    StagingError,
    TransientError,
)
from mydata_like.core.openat import FolderCache
from mydata_like.ssh.capabilities import (
    quote,
    says_full,
)
from mydata_like.ssh.dialing import MOST_OUTPUT
from mydata_like.ssh.session import Stream
from mydata_like.transfer import tar
from mydata_like.transfer.archive_writer import TINY, PrefetchedFile, fetch_ahead, read_tiny
from mydata_like.transfer.compression import (
    NOT_UNPACKED,
    CompressedWriter,
    choose,
    estimate_overhead,
    unpack,
)
from mydata_like.transfer.file_source import FileSource, open_source
from mydata_like.transfer.member_results import refuse
from mydata_like.transfer.ssh.remote_shell import (
    NO_DIRECTORY,
    SessionState,
    Shells,
    ancestors,
    enter,
    finish_refused,
    make,
)
from mydata_like.transfer.tiny_files import TinyFilePacker
from mydata_like.transfer.worker_messages import Member, MemberResult, Moving, TaskResult

_TAR: Final = {
    "gnu": b"%b tar -x -o --no-same-permissions %b -f - 2>&1",
    "bsd": b"%b tar -x -o --no-same-permissions %b -f - 2>&1",
    "busybox": b"%b tar -x -o %b -f - 2>&1",
}
# Read as much as a pipe holds at once; the server's sshd then fills it a quarter as often.
_IN_ONE_GO: Final = {"gnu": b"-b 128"}
# Succeeds only if the marker existed. Removes the marker whether or not tar succeeded.
_TAKE_MARKER: Final = b" && exec rm -- %b 2>/dev/null; s=$?; rm -f -- %b; exit $s"

# in addition to the names; a member that is named later is unproven and sent again
_MOST_LINES: Final = 100_000
_MOST_KEPT: Final = 50  # lines of error output kept for each member
_ESCAPES: Final = {
    7: rb"\a", 8: rb"\b", 9: rb"\t", 10: rb"\n", 11: rb"\v", 12: rb"\f", 13: rb"\r", 92: rb"\\",
}  # fmt: skip
_PLAIN: Final = re.compile(rb"[ -\[\]-~]*").fullmatch  # printed unchanged
_PRINTED: Final = tuple(
    _ESCAPES.get(byte) or (bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte)
    for byte in range(256)
)


def make_marker(member: bytes) -> bytes:
    """Return a unique name for a marker next to a member, where the host accepts files."""
    folder, slash, _ = member.rpartition(b"/")
    return b"%b%b.mydata-marker-%b" % (folder, slash, os.urandom(8).hex().encode())


def extract(tar: str, marker: bytes) -> bytes:
    """Return the script that extracts its input and succeeds if all members arrived."""
    there = quote(marker)
    return _TAR[tar] % (b"", _IN_ONE_GO.get(tar, b"")) + _TAKE_MARKER % (there, there)


def extract_named(tar: str) -> bytes:
    """Return the script that extracts its input and prints each member's name for `judge`."""
    return _TAR[tar] % (b"exec", b"-v")


class BatchResult(NamedTuple):
    """The indexes of proven members, and the error output for the others."""

    proven: frozenset[int]
    complaints: dict[int, bytes]


def _all_proven(names: Sequence[bytes]) -> BatchResult:
    return BatchResult(frozenset(range(len(names))), {})


def judge(names: Sequence[bytes], output: bytes, status: int | None, tar: str) -> BatchResult:
    """Return which members an extraction's output proves, given the names in the order sent.

    `status` is None if the connection broke.
    """
    if status == 0 and output == b"".join([name + b"\n" for name in names]):
        return _all_proven(names)  # the common case, without parsing
    named: list[int] = []
    lines_by_place: dict[int, list[bytes]] = {}
    for place, line in _sort(names, islice(_lines(output), len(names) + _MOST_LINES)):
        if line:
            lines = lines_by_place.setdefault(place, [])
            lines[_MOST_KEPT:] = [line + b"\n"]  # beyond the limit, keep only the last line
        else:
            named.append(place)
    complaints = {place: b"".join(lines) for place, lines in lines_by_place.items()}
    if status == 0 and output.count(b"\n") >= len(names):
        return _all_proven(names)
    # Work-around: busybox 1.35.0 prints the names of members late, so that an error may come before
    # the name of its member. No report known; see
    # test_a_failed_busybox_tar_proves_nothing_because_its_output_is_out_of_order.
    # Remove when busybox flushes its output before it prints an error.
    if tar == "busybox" and status is not None:
        named = []
    return BatchResult(frozenset(named[:-1]) - complaints.keys(), complaints)


def _lines(output: bytes) -> Iterator[bytes]:
    """Yield the complete lines; text after the last newline may be truncated."""
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        yield output[start:end]
        start = end + 1


def _sort(names: Sequence[bytes], lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the index of each printed member, and other lines with the index they follow."""
    places: dict[bytes, int] = {}
    for place, name in enumerate(names):
        shown = name if _PLAIN(name) else printed(name)
        places[name] = places[shown] = places[b"x " + shown] = place
    latest = -1
    for line in lines:
        place = places.get(line, -1)
        if place > latest:
            latest = place
            yield place, b""
        elif line:
            yield latest, line


def printed(name: bytes) -> bytes:
    """Return a name as GNU tar and bsdtar print it in the C locale."""
    return b"".join(map(_PRINTED.__getitem__, name))


_WRITE: Final = 256 * 1024  # bytes per write; a quarter faster than 64 KiB
_REMOVED: Final = 500  # names in one command
_TOGETHER: Final = 16 * 1024 * 1024  # bytes of files that are held in memory to be hashed together


class BatchSender:
    """Sends batches by tar over one session; remembers which directories exist.

    With `named`, the host prints the members' names from the first batch on, not only after a
    failure. Members that arrived before a broken connection are then proven.
    """

    def __init__(
        self, shells: Shells, state: SessionState, packer: TinyFilePacker | None = None
    ) -> None:
        self._shells = shells
        self._compression = shells.compression
        self._location = state.location
        self._tar = state.capabilities.tar
        self._named = state.named
        self._known: set[bytes] = set()
        self._packer = packer or TinyFilePacker()
        # Kept, since new memory takes as long as reading, and mapped, so that none is used before.
        self._held = memoryview(mmap(-1, _TOGETHER))

    def send(self, members: Sequence[Member], moving: Moving) -> TaskResult:
        """Send small files; raises `TransientError` if the connection broke and none is proven."""
        missing = self._missing(members)
        sending = self._start(members, missing, moving)
        try:
            try:
                self._shells.prepare()
                sending.write_all()
                status, output = sending.stream.finish()
            except TransientError as error:
                status, output = sending.stream.finish_refused(error)
        except TransientError as error:
            return self._collect_proven(sending, error)
        if status == NOT_UNPACKED:
            self._compression.give_up()
            return self.send(members, moving)
        if status == NO_DIRECTORY:
            if says_full(output):
                complaints = dict.fromkeys(range(len(sending.names)), output)
                return TaskResult(sending.results(BatchResult(frozenset(), complaints)))
            raise StagingError(
                "No directories can be created in the staging area.",
                hint="The server's administrator can fix its permissions.",
            )
        if sending.marker and status != 0:
            self._named = True
            return self.send(members, moving)
        if sending.marker:
            result = _all_proven(sending.names)
        else:
            result = judge(sending.names, output, status, self._tar)
        if not result.complaints:
            self._known.update(missing)
        if status is not None:
            self._remove(sending.spoilt + sending.find_cut(result))
        return TaskResult(sending.results(result), broken=status is None)

    def _remove(self, names: Sequence[bytes]) -> None:
        """Remove files that nothing will use, many at once."""
        words = [quote(b"./" + name) for name in names]
        for start in range(0, len(words), _REMOVED):
            rm = b"rm -f -- " + b" ".join(words[start : start + _REMOVED])
            self._shells.start(enter(self._location) + rm).finish()

    def _start(
        self, members: Sequence[Member], missing: Sequence[bytes], moving: Moving
    ) -> "_Sending":
        """Start the extraction in the staging area's location."""
        marker = None if self._named else make_marker(members[0].remote)
        command = extract(self._tar, marker) if marker else extract_named(self._tar)
        ratio = choose(self._compression, members, sum(member.size for member in members))
        script = enter(self._location) + make(missing) + unpack(command, ratio)
        stream = self._shells.start(script)
        overhead = estimate_overhead(len(members), self._shells.round_trip)
        writer = CompressedWriter(stream, self._compression, ratio, overhead)
        coalesced = _Coalesced(stream, writer, moving)
        return _Sending(coalesced, members, marker, self._packer, self._held)

    def _collect_proven(self, sending: "_Sending", error: TransientError) -> TaskResult:
        """Return what was proven before the connection broke, or raise if nothing was."""
        if sending.marker:
            raise error
        result = judge(sending.names, sending.stream.received(), None, self._tar)
        if not result.proven:
            raise error
        return TaskResult(sending.results(result), broken=True)

    def _missing(self, members: Sequence[Member]) -> list[bytes]:
        """Return the directories that may not exist yet, each after its parent."""
        wanted: dict[bytes, None] = {}
        for parent in {member.remote.rpartition(b"/")[0] for member in members} - self._known:
            wanted.update(dict.fromkeys(ancestors(parent + b"/")))
        return sorted(directory for directory in wanted if directory not in self._known)


class _Coalesced:
    """A stream that writes in large pieces and reads its output while writing."""

    def __init__(self, stream: Stream, writer: CompressedWriter, moving: Moving) -> None:
        self._stream = stream
        self._writer = writer
        self.moving = moving
        self.buffer = bytearray()
        self.output = bytearray()

    def write(self, piece: bytes | memoryview) -> None:
        """Write a piece immediately, or together with later ones."""
        if len(piece) >= _WRITE:
            self.flush()
            self._pass_on(piece)
            return
        self.buffer += piece
        if len(self.buffer) >= _WRITE:
            self.flush()

    def flush(self) -> None:
        if self.buffer:
            with memoryview(self.buffer) as view:
                self._pass_on(view)
            del self.buffer[:]

    def _pass_on(self, piece: bytes | memoryview) -> None:
        self._writer.write(piece)
        self.moving(len(piece))
        self._keep(self._stream.read_ready())

    def finish(self) -> tuple[int | None, bytes]:
        """Write the remaining bytes, end the stream, and return its status and all output."""
        self.flush()
        finished = self._writer.finish()
        return finished.status, bytes(self.output + finished.output)

    def finish_refused(self, error: TransientError) -> tuple[int | None, bytes]:
        """Return the status and output of an ended extraction, or raise if the connection broke."""
        finished = finish_refused(self._stream, error)
        return finished.status, bytes(self.output + finished.output)

    def _keep(self, more: bytes) -> None:
        """Append to the output; raises `TransientError` if the host prints too much."""
        self.output += more
        if len(self.output) > MOST_OUTPUT:
            message = "The staging host printed too much output for a batch."
            raise TransientError(message, code="staging.flood")

    def received(self) -> bytes:
        """Return the output received before the connection broke."""
        with suppress(TransientError):
            while more := self._stream.read_ready():
                self._keep(more)
        self._stream.close()
        return bytes(self.output)


class _Sending:
    """One batch being sent: the written members in order, and the members that failed.

    Without a `marker`, the host prints the name of each member.
    """

    def __init__(
        self,
        stream: _Coalesced,
        members: Sequence[Member],
        marker: bytes | None,
        packer: TinyFilePacker,
        held: memoryview,
    ) -> None:
        self.stream = stream
        self.marker = marker
        self._packer = packer
        self._held = held
        self._members = members
        self._written: list[tuple[int, str]] = []  # index and checksum, as in the stream
        self._refused: dict[int, MemberResult] = {}

    @property
    def spoilt(self) -> list[bytes]:
        """Replacements that changed while they were sent; nothing will use their paths again."""
        written = (self._members[index] for index, _ in self._written if index in self._refused)
        return [member.remote for member in written if member.aside]

    @property
    def names(self) -> list[bytes]:
        return [self._members[index].remote for index, _ in self._written]

    def write_all(self) -> None:
        """Write the members, the marker and the end; a member that cannot be read fails alone."""
        with FolderCache() as folders:
            self._write_all_tiny(folders)
        for indexes in _group([(member.size, n) for n, member in enumerate(self._members)]):
            if len(indexes) > 1:
                self._write_together(indexes)
                continue
            with self._refusing(indexes[0]):
                self._write_large(indexes[0])
        if self.marker:
            self.stream.write(tar.header(self.marker, 0, 0))
        self.stream.write(tar.END)

    def _write_all_tiny(self, folders: FolderCache) -> None:
        tiny = [index for index, member in enumerate(self._members) if member.size <= TINY]
        for part, packed in self._packer.pack(self._members, tiny, folders):
            self._written += packed
            self.stream.write(part)
        written = {index for index, _ in self._written}
        rest = [index for index in tiny if index not in written]
        with closing(fetch_ahead([self._members[index] for index in rest], folders)) as ahead:
            for index, fetched in zip(rest, ahead, strict=True):
                try:  # faster than `_refusing`
                    self._write_tiny(index, folders, fetched)
                except FileChangedError as error:
                    self._refused[index] = MemberResult(index, "", error.problem)

    def _write_tiny(self, index: int, folders: FolderCache, fetched: PrefetchedFile | None) -> None:
        member = self._members[index]
        content, checksum = read_tiny(member, folders, fetched, algorithm=member.algorithm)
        stream = self.stream
        buffer = stream.buffer
        buffer += tar.header(member.remote, member.size, member.modified)
        buffer += content
        self._written.append((index, checksum))
        stream.write(tar.padding(member.size))

    @contextmanager
    def _refusing(self, index: int) -> Iterator[None]:
        """Record a member that cannot be read as it was found."""
        try:
            yield
        except FileChangedError as error:
            self._refused[index] = MemberResult(index, "", error.problem)

    def _write_together(self, indexes: Sequence[int]) -> None:
        """Write members after they were read and hashed together, in a fraction of the time."""
        with ExitStack() as opened:
            reading: dict[int, tuple[FileSource, memoryview]] = {}
            free = self._held
            for index in indexes:
                with self._refusing(index):
                    member = self._members[index]
                    source = opened.enter_context(open_source(member, member.algorithm))
                    reading[index] = source, free[: source.size]
                    free = free[source.size :]
            while self._read_pieces(reading):
                pass
            for index, (source, content) in reading.items():
                with self._refusing(index):
                    checksum = source.finish()
                if index not in self._refused:
                    self._write_content(index, checksum, content)

    def _read_pieces(self, reading: dict[int, tuple[FileSource, memoryview]]) -> bool:
        """Read a piece of each file; return whether there was one."""
        fresh = []
        for index, (source, content) in list(reading.items()):
            if not source.remaining:
                continue
            with self._refusing(index):
                place = content[-source.remaining :][:_WRITE]
                count = source.read_into(place)
                fresh.append((source.checksum, place[:count]))
            if index in self._refused:
                del reading[index]
        hashing.update_all(fresh)
        self.stream.moving(0)  # work goes on, although nothing was written
        return bool(fresh)

    def _write_content(self, index: int, checksum: str, content: memoryview) -> None:
        member = self._members[index]
        self._written.append((index, checksum))
        self.stream.write(tar.header(member.remote, member.size, member.modified))
        for start in range(0, len(content), _WRITE):
            self.stream.write(content[start : start + _WRITE])
        self.stream.write(tar.padding(member.size))

    def _write_large(self, index: int) -> None:
        """Write a member in pieces; its index is recorded before its checksum is known."""
        member = self._members[index]
        buffer = bytearray(_WRITE)
        with open_source(member, member.algorithm) as source:
            head = tar.header(member.remote, member.size, member.modified)
            place = len(self._written)
            self._written.append((index, ""))
            tar.write_member(self.stream.write, head, member.size, source.chunks(buffer))
            self._written[place] = (index, source.finish())

    def find_cut(self, result: BatchResult) -> list[bytes]:
        """Return the members of which only a part may have had space."""
        full = (
            place for place, text in result.complaints.items() if place >= 0 and says_full(text)
        )
        return [self.names[place] for place in full]

    def results(self, result: BatchResult) -> tuple[MemberResult, ...]:
        """Return the result of each member, in their order."""
        results: list[MemberResult | None] = [None] * len(self._members)
        for place, (index, checksum) in enumerate(self._written):
            if checksum and place in result.proven:
                results[index] = MemberResult(index, checksum)
            elif text := result.complaints.get(place):
                results[index] = refuse(index, self._members[index].remote, text)
        for index, refusal in self._refused.items():
            results[index] = refusal
        return tuple(
            # Without a complaint, it is unproven: the connection may have broken before its turn.
            it or refuse(index, self._members[index].remote, b"")
            for index, it in enumerate(results)
        )


def _group(members: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield the indexes of members, given by size and index, in groups to be hashed together.

    The sizes in a group differ little, so that all lanes are in use; tiny members are left out.
    """
    group: list[int] = []
    held = 0
    for size, index in sorted((it for it in members if it[0] > TINY), reverse=True):
        if group and (len(group) == hashing.LANES or held + size > _TOGETHER):
            yield group
            group, held = [], 0
        group.append(index)
        held += size
    if group:
        yield group
