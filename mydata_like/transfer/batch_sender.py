"""Sends batches: many small files as one tar stream that the host extracts and then verifies.

A marker at the end of the stream proves all of it. Where that fails, the batch goes once more with
its members named, which tells one by one what arrived and what was refused.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Final, NamedTuple

from mydata_like.core.errors import FileChangedError, Problem, StagingError, TransientError
from mydata_like.core.formatting import format_path
from mydata_like.core.openat import FolderCache
from mydata_like.ssh.capabilities import (
    LINE_END,
    HostCapabilities,
    check_space,
    quote,
    says_full,
)
from mydata_like.ssh.dialing import MOST_OUTPUT
from mydata_like.ssh.session import Stream
from mydata_like.transfer import tar
from mydata_like.transfer.archive_writer import TINY, PrefetchedFile, fetch_ahead, read_tiny
from mydata_like.transfer.compression import NOT_UNPACKED, CompressedWriter, choose, excuse, unpack
from mydata_like.transfer.file_source import open_source
from mydata_like.transfer.remote_shell import (
    NO_GROUND,
    Shells,
    ancestors,
    enter,
    finish_refused,
    make,
)
from mydata_like.transfer.worker_messages import Member, MemberResult, Moving, TaskResult

# What somebody has set for all tars of the host might leave members out and end well.
_TAR: Final = {
    "gnu": b"unset TAR_OPTIONS; %b tar -x -o --no-same-permissions %b -f - 2>&1",
    "bsd": b"%b tar -x -o --no-same-permissions %b -f - 2>&1",
    "busybox": b"%b tar -x -o %b -f - 2>&1",
}
# As much as a pipe holds, read at once: the server's sshd has to fill it a quarter as often.
_IN_ONE_GO: Final = {"gnu": b"-b 128"}
# Ends well only where the marker was there to be removed; removes it whatever comes of tar.
_TAKE_MARKER: Final = b" && exec rm -- %b 2>/dev/null; s=$?; rm -f -- %b; exit $s"

_DENIED: Final = (
    b"Permission denied",
    b"Operation not permitted",
    b"Read-only file system",
    b"File too large",
    b"File name too long",
    b"Not a directory",
    b"Is a directory",
)
_SAYS_DENIED: Final = re.compile(LINE_END % b"|".join(_DENIED)).search
# Beyond the names; a member that is named later is not proven, and sent again.
_MOST_LINES: Final = 100_000
_MOST_SAID: Final = 50  # lines of complaint about one member that are kept
_ESCAPES: Final = {
    7: rb"\a", 8: rb"\b", 9: rb"\t", 10: rb"\n", 11: rb"\v", 12: rb"\f", 13: rb"\r", 92: rb"\\",
}  # fmt: skip
_PLAIN: Final = re.compile(rb"[ -\[\]-~]*").fullmatch  # printed as it is
_PRINTED: Final = tuple(
    _ESCAPES.get(byte) or (bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte)
    for byte in range(256)
)


def make_marker(beside: bytes) -> bytes:
    """Return the name of a marker that no other has, where a member may be written as well."""
    folder, slash, _ = beside.rpartition(b"/")
    return b"%b%b.mydata-marker-%b" % (folder, slash, os.urandom(8).hex().encode())


def extract(tar: str, marker: bytes) -> bytes:
    """Return the script that extracts its input, and succeeds where all of it came."""
    there = quote(marker)
    return _TAR[tar] % (b"", _IN_ONE_GO.get(tar, b"")) + _TAKE_MARKER % (there, there)


def extract_named(tar: str) -> bytes:
    """Return the script that extracts its input and names each member, to be judged."""
    return _TAR[tar] % (b"exec", b"-v")


class BatchResult(NamedTuple):
    """Which members are proven, by place, and what was said about those that are not."""

    proven: frozenset[int]
    complaints: dict[int, bytes]


def all_proven(names: Sequence[bytes]) -> BatchResult:
    """Return the results if everything succeeded."""
    return BatchResult(frozenset(range(len(names))), {})


def judge(names: Sequence[bytes], output: bytes, status: int | None, tar: str) -> BatchResult:
    """Tell what an extraction's output proves about the members it was sent, in order.

    `status` is None where the line broke. Raises `StagingError` when the staging area is full.
    """
    if status == 0 and output == b"".join([name + b"\n" for name in names]):
        return all_proven(names)  # told at once
    named: list[int] = []
    said: dict[int, list[bytes]] = {}
    may_be_full = says_full(output)  # or a member has such a name
    for place, line in _sort(names, islice(_lines(output), len(names) + _MOST_LINES)):
        if line:
            if may_be_full:
                check_space(line)
            its = said.setdefault(place, [])
            its[_MOST_SAID:] = [line + b"\n"]  # of more, only the last one
        else:
            named.append(place)
    complaints = {place: b"".join(its) for place, its in said.items()}
    if status == 0 and output.count(b"\n") >= len(names):
        return all_proven(names)
    # busybox names its members late: what it complains of may stand before the name.
    if tar == "busybox" and status is not None:
        named = []
    return BatchResult(frozenset(named[:-1]) - complaints.keys(), complaints)


def _lines(output: bytes) -> Iterator[bytes]:
    """Yield the lines; what follows the last newline may be cut."""
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        yield output[start:end]
        start = end + 1


def _sort(names: Sequence[bytes], lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the place of each member named, and each other line with the place it follows."""
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


def is_denied(text: bytes) -> bool:
    """Return whether the remote text says that this path will not be accepted."""
    return _SAYS_DENIED(text) is not None


def describe(remote: bytes, text: bytes) -> Problem:
    """Return the problem of one member that the staging area did not take."""
    said = format_path(text.strip().splitlines()[-1][:300]) if text.strip() else ""
    if is_denied(text):
        return Problem(
            "staging.denied",
            f"The staging area refused {format_path(remote)}: {said}.",
            "The server's administrator can fix its permissions.",
        )
    because = f": {said}" if said else ""
    return Problem(
        "staging.unproven", f"The server did not confirm {format_path(remote)}{because}."
    )


_WRITE: Final = 256 * 1024  # bytes that go together; a quarter faster than 64 KiB


class BatchSender:
    """Sends batches by tar over one session; knows which directories it has seen made.

    `named` has the host name the members from the first batch on, and not only after one where
    something went wrong: what a line that breaks has carried is proven then.
    """

    def __init__(
        self, shells: Shells, location: bytes, rung: HostCapabilities, *, named: bool = False
    ) -> None:
        self._shells = shells
        self._compression = shells.compression
        self._location = location
        self._tar = rung.tar
        self._named = named
        self._known: set[bytes] = set()

    def send(self, members: Sequence[Member], moving: Moving) -> TaskResult:
        """Carry small files; raises `TransientError` when the line broke and none is proven."""
        missing = self._missing(members)
        sending = self._start(members, missing, moving)
        try:
            status, output = self._carry(sending)
        except TransientError as error:
            return self._salvage(sending, error)
        if status == NOT_UNPACKED:
            self._compression.give_up()
            return self.send(members, moving)
        if status == NO_GROUND:
            check_space(output)
            raise StagingError(
                "No directories can be created in the staging area.",
                hint="The server's administrator can fix its permissions.",
            )
        if sending.marker and status != 0:
            check_space(output)
            self._named = True
            return self.send(members, moving)
        verdict = self._judge(sending, output, status)
        if not verdict.complaints:
            self._known.update(missing)
        return TaskResult(sending.fates(verdict), broken=status is None)

    def _start(
        self, members: Sequence[Member], missing: Sequence[bytes], moving: Moving
    ) -> "_Sending":
        """Start the extraction where the members belong."""
        marker = None if self._named else make_marker(members[0].remote)
        command = extract(self._tar, marker) if marker else extract_named(self._tar)
        ratio = choose(self._compression, members, sum(member.size for member in members))
        script = enter(self._location) + make(missing) + unpack(command, ratio)
        stream = self._shells.start(script)
        excused = excuse(len(members), self._shells.round_trip)
        feed = CompressedWriter(stream, self._compression, ratio, excused)
        coalesced = _Coalesced(stream, feed, moving)
        return _Sending(coalesced, members, marker)

    def _carry(self, sending: "_Sending") -> tuple[int | None, bytes]:
        """Send all, and return how the extraction ended and what it said."""
        try:
            self._shells.prepare()
            sending.write_all()
            return sending.stream.finish()
        except TransientError as error:
            return sending.stream.finish_refused(error)

    def _judge(self, sending: "_Sending", output: bytes, status: int | None) -> BatchResult:
        if sending.marker:
            return all_proven(sending.names)
        return judge(sending.names, output, status, self._tar)

    def _salvage(self, sending: "_Sending", error: TransientError) -> TaskResult:
        """Return what was proven before the line broke, or raise where nothing was."""
        if sending.marker:
            raise error
        verdict = judge(sending.names, sending.stream.received(), None, self._tar)
        if not verdict.proven:
            raise error
        return TaskResult(sending.fates(verdict), broken=True)

    def _missing(self, members: Sequence[Member]) -> list[bytes]:
        """Return the directories that are not known to be there, each after its parent."""
        wanted: dict[bytes, None] = {}
        for parent in {member.remote.rpartition(b"/")[0] for member in members} - self._known:
            wanted.update(dict.fromkeys(ancestors(parent + b"/")))
        return sorted(directory for directory in wanted if directory not in self._known)


class _Coalesced:
    """A stream that is written to in large pieces, and whose output is taken in meanwhile."""

    def __init__(self, stream: Stream, feed: CompressedWriter, moving: Moving) -> None:
        self._stream = stream
        self._feed = feed
        self._moving = moving
        self.buffer = bytearray()
        self.output = bytearray()

    def write(self, piece: bytes | memoryview) -> None:
        """Write a piece now or with those that follow."""
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
        self._feed.write(piece)
        self._moving(len(piece))
        self._keep(self._stream.read_ready())

    def finish(self) -> tuple[int | None, bytes]:
        """Write what is left, end the stream, and return its status and all output."""
        self.flush()
        finished = self._feed.finish()
        return finished.status, bytes(self.output + finished.output)

    def finish_refused(self, error: TransientError) -> tuple[int | None, bytes]:
        """Return how an extraction failed that took no more, or raise where the line did."""
        finished = finish_refused(self._stream, error)
        return finished.status, bytes(self.output + finished.output)

    def _keep(self, more: bytes) -> None:
        """Add to the output; raises `TransientError` where the host prints without end."""
        self.output += more
        if len(self.output) > MOST_OUTPUT:
            message = "The staging host printed more than the names of a batch."
            raise TransientError(message, code="staging.flood")

    def received(self) -> bytes:
        """Return what came back before the line broke."""
        with suppress(TransientError):
            while more := self._stream.read_ready():
                self._keep(more)
        self._stream.close()
        return bytes(self.output)


class _Sending:
    """One batch on its way: what was written, in order, and what could not be.

    Where there is no `marker`, each member is named.
    """

    def __init__(self, stream: _Coalesced, members: Sequence[Member], marker: bytes | None) -> None:
        self.stream = stream
        self.marker = marker
        self._members = members
        self._written: list[tuple[int, str]] = []  # index and checksum, as in the stream
        self._refused: dict[int, MemberResult] = {}

    @property
    def names(self) -> list[bytes]:
        return [self._members[index].remote for index, _ in self._written]

    def write_all(self) -> None:
        """Write the members, the marker and the end; what cannot be read fails alone."""
        with FolderCache() as folders, closing(fetch_ahead(self._members, folders)) as ahead:
            for index, fetched in enumerate(ahead):
                try:
                    if self._members[index].size <= TINY:
                        self._write_tiny(index, folders, fetched)
                    else:
                        self._write_large(index)
                except FileChangedError as error:
                    self._refused[index] = MemberResult(index, "", error.problem)
        if self.marker:
            self.stream.write(tar.header(self.marker, 0, 0))
        self.stream.write(tar.END)

    def _write_tiny(self, index: int, folders: FolderCache, fetched: PrefetchedFile | None) -> None:
        member = self._members[index]
        content, checksum = read_tiny(member, folders, fetched)
        stream = self.stream
        buffer = stream.buffer
        buffer += tar.header(member.remote, member.size, member.modified)
        buffer += content
        self._written.append((index, checksum))
        stream.write(tar.padding(member.size))

    def _write_large(self, index: int) -> None:
        """Write a member piece by piece; its place is taken before its checksum is known."""
        member = self._members[index]
        buffer = bytearray(_WRITE)
        with open_source(member) as source:
            head = tar.header(member.remote, member.size, member.modified)
            place = len(self._written)
            self._written.append((index, ""))
            tar.write_member(self.stream.write, head, member.size, source.chunks(buffer))
            self._written[place] = (index, source.finish())

    def fates(self, verdict: BatchResult) -> tuple[MemberResult, ...]:
        """Return the fate of each member, in their order."""
        fates = dict(self._refused)
        for place, (index, checksum) in enumerate(self._written):
            if index in fates:
                continue
            if checksum and place in verdict.proven:
                fates[index] = MemberResult(index, checksum)
                continue
            said = verdict.complaints.get(place, b"")
            problem = describe(self._members[index].remote, said)
            fates[index] = MemberResult(index, "", problem, again=problem.code != "staging.denied")
        for index in range(len(self._members)):
            if index not in fates:  # the line broke before its turn
                problem = describe(self._members[index].remote, b"")
                fates[index] = MemberResult(index, "", problem, again=True)
        return tuple(fates[index] for index in range(len(self._members)))
