"""Batches: many small files as one tar stream, extracted straight into their places."""

from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Final

from mydata_like.core.errors import FileChangedError, StagingError, TransientError
from mydata_like.ssh.remote import Rung
from mydata_like.ssh.session import Stream
from mydata_like.transfer import tar
from mydata_like.transfer.proof import Verdict, check_space, describe, judge
from mydata_like.transfer.protocol import Done, Fate, Member, Moving
from mydata_like.transfer.reading import open_source
from mydata_like.transfer.shell import NO_GROUND, Shells, ancestors, enter, finish_refused, make
from mydata_like.transfer.tiny import TINY, Fetched, fetch_ahead, read_tiny
from mydata_like.transfer.zstd import NOT_UNPACKED, Feed, choose, unpack

_WRITE: Final = 256 * 1024  # bytes that go together; a quarter faster than 64 KiB

_EXTRACT: Final = {
    "gnu": b"exec tar -x -v -o --no-same-permissions -f - 2>&1",
    "bsd": b"exec tar -x -v -o --no-same-permissions -f - 2>&1",
    "busybox": b"exec tar -x -v -o -f - 2>&1",
}


class BatchSender:
    """Sends batches by tar over one session; knows which directories it has seen made."""

    def __init__(self, shells: Shells, location: bytes, rung: Rung) -> None:
        self._shells = shells
        self._compression = shells.compression
        self._location = location
        self._tar = rung.tar
        self._known: set[bytes] = set()

    def send(self, members: Sequence[Member], moving: Moving) -> Done:
        """Carry small files; raises `TransientError` when the line broke and none is proven."""
        missing = self._missing(members)
        ratio = choose(self._compression, members, sum(member.size for member in members))
        extract = unpack(_EXTRACT[self._tar], ratio)
        started = self._shells.start(enter(self._location) + make(missing) + extract)
        stream = _Coalesced(started, Feed(started, self._compression, ratio), moving)
        sending = _Sending(stream, members)
        try:
            self._shells.prepare()
            sending.write_all()
            status, rest = stream.finish()
        except TransientError as error:
            try:
                status, rest = stream.finish_refused(error)
            except TransientError:
                return self._salvage(sending, stream, error)
        if status == NOT_UNPACKED:
            self._compression.give_up()
            return self.send(members, moving)
        output = bytes(stream.output + rest)
        if status == NO_GROUND:
            check_space(output)
            raise StagingError(
                "The staging area's folder takes no new directories.",
                hint="The server's administrator can mend its permissions.",
            )
        verdict = judge(sending.names, output, status, self._tar)
        if not verdict.complaints:
            self._known.update(missing)
        return Done(sending.fates(verdict), broken=status is None)

    def _salvage(self, sending: "_Sending", stream: "_Coalesced", error: TransientError) -> Done:
        """Return what was proven before the line broke, or raise where nothing was."""
        verdict = judge(sending.names, stream.received(), None, self._tar)
        if not verdict.proven:
            raise error
        return Done(sending.fates(verdict), broken=True)

    def _missing(self, members: Sequence[Member]) -> list[bytes]:
        """Return the directories that are not known to be there, each after its parent."""
        wanted: dict[bytes, None] = {}
        for parent in {member.remote.rpartition(b"/")[0] for member in members} - self._known:
            wanted.update(dict.fromkeys(ancestors(parent + b"/")))
        return sorted(directory for directory in wanted if directory not in self._known)


class _Coalesced:
    """A stream that is written to in large pieces, and whose output is taken in meanwhile."""

    def __init__(self, stream: Stream, feed: Feed, moving: Moving) -> None:
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
        self.output += self._stream.read_ready()

    def finish(self) -> tuple[int | None, bytes]:
        """Write what is left, end the stream, and return its status and the last output."""
        self.flush()
        finished = self._stream.finish()
        return finished.status, finished.output

    def finish_refused(self, error: TransientError) -> tuple[int | None, bytes]:
        """Return how an extraction failed that took no more, or raise where the line did."""
        finished = finish_refused(self._stream, error)
        return finished.status, finished.output

    def received(self) -> bytes:
        """Return what came back before the line broke."""
        with suppress(TransientError):
            while more := self._stream.read_ready():
                self.output += more
        self._stream.close()
        return bytes(self.output)


class _Sending:
    """One batch on its way: what was written, in order, and what could not be."""

    def __init__(self, stream: _Coalesced, members: Sequence[Member]) -> None:
        self._stream = stream
        self._members = members
        self._written: list[tuple[int, str]] = []  # index and checksum, as in the stream
        self._refused: dict[int, Fate] = {}

    @property
    def names(self) -> list[bytes]:
        return [self._members[index].remote for index, _ in self._written]

    def write_all(self) -> None:
        """Write the members and the end; those that cannot be read fail alone."""
        with closing(fetch_ahead(self._members)) as ahead:
            for index, fetched in enumerate(ahead):
                try:
                    if self._members[index].size <= TINY:
                        self._write_tiny(index, fetched)
                    else:
                        self._write_large(index)
                except FileChangedError as error:
                    self._refused[index] = Fate(index, "", error.problem)
        self._stream.write(tar.END)

    def _write_tiny(self, index: int, fetched: Fetched | None) -> None:
        member = self._members[index]
        content, checksum = read_tiny(member, fetched)
        stream = self._stream
        buffer = stream.buffer
        buffer += tar.header(member.remote, member.size, member.modified)
        buffer += content
        self._written.append((index, checksum))
        stream.write(tar.padding(member.size))

    def _write_large(self, index: int) -> None:
        """Write a member piece by piece; its place is taken before its checksum is known."""
        member = self._members[index]
        buffer = bytearray(_WRITE)
        with open_source(*member[:5]) as source:
            head = tar.header(member.remote, member.size, member.modified)
            place = len(self._written)
            self._written.append((index, ""))
            tar.write_member(self._stream.write, head, member.size, source.chunks(buffer))
            self._written[place] = (index, source.finish())

    def fates(self, verdict: Verdict) -> tuple[Fate, ...]:
        """Return the fate of each member, in their order."""
        fates = dict(self._refused)
        for place, (index, checksum) in enumerate(self._written):
            if index in fates:
                continue
            if checksum and place in verdict.proven:
                fates[index] = Fate(index, checksum)
                continue
            said = verdict.complaints.get(place, b"")
            problem = describe(self._members[index].remote, said)
            fates[index] = Fate(index, "", problem, again=problem.code != "staging.denied")
        for index in range(len(self._members)):
            if index not in fates:  # the line broke before its turn
                problem = describe(self._members[index].remote, b"")
                fates[index] = Fate(index, "", problem, again=True)
        return tuple(fates[index] for index in range(len(self._members)))
