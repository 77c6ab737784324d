"""Single files on hosts with a shell: to a temporary name, checked, then into their place.

One remote script a file makes the directory, says how much of an earlier attempt lies there,
takes the bytes, compares the size and renames. Of the bytes the last chunk is held back until
the local file is known to have stayed the same, so nothing torn ever gets its final name.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Final

from mydata_like.core.errors import FileChangedError, StagingError, TransientError
from mydata_like.ssh.capabilities import HostCapabilities, quote
from mydata_like.ssh.session import CommandResult, Stream
from mydata_like.transfer import tar
from mydata_like.transfer.ahead import read_ahead
from mydata_like.transfer.archive import ArchiveSource, Told, open_content
from mydata_like.transfer.compression import excuse
from mydata_like.transfer.crew import LARGE, Room
from mydata_like.transfer.ground import DROP, Ground
from mydata_like.transfer.parts import RESUMABLE, Parts
from mydata_like.transfer.proof import check_space, describe
from mydata_like.transfer.protocol import LOST, Fate, Member, Moving
from mydata_like.transfer.reading import Source, open_source
from mydata_like.transfer.resume import compare, resume
from mydata_like.transfer.sealed import hold_back, part_name
from mydata_like.transfer.shell import NO_GROUND, Shells, finish_refused
from mydata_like.transfer.sparse import Extent, measure
from mydata_like.transfer.striped import StripedSender
from mydata_like.transfer.zeros import find_data
from mydata_like.transfer.zstd import NOT_UNPACKED, Feed, choose, unpack

CHUNK: Final = 256 * 1024

# A file is sent by its extents when they are less of it than this. Zeros that are no holes have to
# be read once more, so they must be worth it.
_HOLES_GAIN: Final = 0.9
_ZEROS_GAIN: Final = 0.5

# Scripts in the file's directory, `$t` its temporary name. Status 94 says that not all bytes came
# (they are kept: the line may have broken), 95 that they could not be written.
_BEGIN: Final = DROP + b"; "
_KEEP: Final = b'cat >> "./$t"'
_KEEP_SPARSE: Final = b"tar -x -o --no-same-permissions -f -"
_OR_DROP: Final = b' || { rm -f -- "./$t"; exit 95; }; '
# What is there after a line broke is kept for the next attempt.
_CHECK: Final = b'set -- $(ls -ldn "./$t"); [ "$5" = %d ] || exit 94; '
_CLEAR: Final = b'rm -f -- "./$t.at"; '


class SingleSender:
    """Sends files one by one over one session; knows which directories it has seen made."""

    def __init__(
        self,
        shells: Shells,
        location: bytes,
        rung: HostCapabilities,
        room: Room | None = None,
        *,
        find_zeros: bool = False,
    ) -> None:
        self._shells = shells
        self._compression = shells.compression
        self._rung = rung
        self._ground = Ground(shells, location)
        self._parts = Parts(self._ground)
        self._striped = StripedSender(shells, self._ground, rung, room or Room(0))
        self._find_zeros = find_zeros
        self._buffer = bytearray(CHUNK)
        self._spare = False

    def send(self, index: int, member: Member, moving: Moving, *, spare: bool = False) -> Fate:
        """Carry one file; raises `TransientError` when the line broke.

        With a processor to `spare`, a large one is hashed beside its sending.
        """
        self._spare = spare and member.size >= LARGE
        try:
            sent = self._send_sparse(member, moving) or self._send_plain(member, moving)
        except FileChangedError as error:
            return Fate(index, "", error.problem)
        told, finished = sent
        if finished.status == NOT_UNPACKED:
            self._compression.give_up()
            return self.send(index, member, moving, spare=spare)
        return self._conclude(index, member, told, finished)

    def _send_plain(self, member: Member, moving: Moving) -> tuple[Told, CommandResult]:
        there = self._find_part(member)
        ratio = choose(self._compression, [member], member.size - there)
        if ratio is None and self._striped.suits(member.size - there):
            sent = self._send_striped(member, there, moving)
            if sent is not None:
                return sent
            there = 0
        begin = resume(there, self._rung.checksum) if there else _BEGIN
        take = begin + unpack(_KEEP, ratio) + _OR_DROP + _CHECK % member.size
        stream = self._ground.start(member, take + _publish(member))
        feed = Feed(stream, self._compression, ratio, excuse(1, self._shells.round_trip))
        self._shells.prepare()
        try:
            told = self._send_rest(feed, member, there, moving) if there else None
            if told is None:
                told = self._send_whole(feed, member, moving)
        except FileChangedError:
            self._abandon(stream, member)
            raise
        except TransientError as error:
            return Told(""), finish_refused(stream, error)
        return told, feed.finish()

    def _find_part(self, member: Member) -> int:
        """Return how much an earlier attempt left that may be gone on with."""
        if member.size < RESUMABLE or member.anew or not self._rung.checksum:
            return 0
        return self._parts.find(member)

    def _send_striped(
        self, member: Member, there: int, moving: Moving
    ) -> tuple[Told, CommandResult] | None:
        """Send by several streams; published by a script of its own."""
        sent = self._striped.send(member, there, moving)
        if sent is None or sent[1].status != 0:
            return sent
        publish = _CHECK % member.size + _CLEAR + _publish(member)
        return sent[0], self._ground.start(member, publish).finish()

    def _reading(
        self, source: Source | ArchiveSource, moving: Moving
    ) -> AbstractContextManager[Iterator[memoryview]]:
        chunks = source.chunks(self._buffer)
        return read_ahead(chunks, moving) if self._spare else nullcontext(chunks)

    def _send_whole(self, feed: Feed, member: Member, moving: Moving) -> Told:
        with open_content(member) as source, self._reading(source, moving) as chunks:
            for chunk in hold_back(source, chunks):
                feed.write(chunk)
                moving(len(chunk))
            return Told.of(source)

    def _send_rest(self, feed: Feed, member: Member, there: int, moving: Moving) -> Told | None:
        """Send what follows the bytes that are there; None when those are not ours."""
        with open_content(member) as source, self._reading(source, moving) as chunks:
            held_back = hold_back(source, chunks)
            same, rest = compare(feed.stream, held_back, there, moving)
            if not same:
                feed.stream.write(b"fresh\n")
                return None
            feed.stream.write(b"append\n")
            moving(there)
            for chunk in chain((rest,), held_back):
                feed.write(chunk)
                moving(len(chunk))
            return Told.of(source)

    def _send_sparse(self, member: Member, moving: Moving) -> tuple[Told, CommandResult] | None:
        """Send what lies between holes or zeros; None where that is not less, or not understood.

        The file stays open from the first look on, so that it is seen when it changes meanwhile.
        """
        if member.inside or self._rung.tar not in ("gnu", "bsd"):
            return None
        with open_source(member) as source:
            extents = self._find_extents(source, moving)
            return None if extents is None else self._send_extents(source, member, extents, moving)

    def _find_extents(self, source: Source, moving: Moving) -> list[Extent] | None:
        """Return where the data lies if that saves much."""
        if source.may_have_holes:
            extents = source.find_extents()
            if measure(extents) < source.size * _HOLES_GAIN:
                return extents
        if self._find_zeros:
            extents = find_data(source, moving)
            if measure(extents) < source.size * _ZEROS_GAIN:
                return extents
        return None

    def _send_extents(
        self, source: Source, member: Member, extents: Sequence[Extent], moving: Moving
    ) -> tuple[Told, CommandResult]:
        """Send these parts of a file; published by a second script.

        A tar stream is complete before its end is, so nothing can be held back.
        """
        head = tar.sparse_header(part_name(member), member.size, member.modified, extents)
        length = measure(extents)
        ratio = choose(self._compression, [member], length)
        take = _BEGIN + unpack(_KEEP_SPARSE, ratio) + _OR_DROP + _CHECK % member.size
        stream = self._ground.start(member, take)
        feed = Feed(stream, self._compression, ratio, excuse(1, self._shells.round_trip))

        def write(chunk: bytes | memoryview) -> None:
            feed.write(chunk)
            moving(len(chunk))

        try:
            chunks = source.chunks(self._buffer, extents)
            tar.write_member(write, head, length, chunks)
            checksum = source.finish()
            feed.write(tar.END)
        except FileChangedError:
            self._abandon(stream, member)
            raise
        except TransientError as error:
            return Told(""), finish_refused(stream, error)
        taken = feed.finish()
        if taken.status != 0:
            return Told(checksum), taken
        return Told(checksum), self._ground.start(member, _publish(member)).finish()

    def _abandon(self, stream: Stream, member: Member) -> None:
        """Drop a file that changed under us, and what the other side has of it."""
        stream.close()
        self._ground.drop(member)

    def _conclude(self, index: int, member: Member, told: Told, finished: CommandResult) -> Fate:
        if finished.status is None:
            raise TransientError("The staging host did not say how the file arrived.", code=LOST)
        self._ground.note(member, arrived=finished.status == 0)
        if finished.status == 0:
            return Fate(index, told.checksum, inside=told.inside)
        said = finished.errors or finished.output
        check_space(said)
        if finished.status == NO_GROUND:
            raise StagingError(
                "The staging area's folder takes no new directories.",
                hint="The server's administrator can mend its permissions.",
            )
        problem = describe(member.remote, said)
        return Fate(index, "", problem, again=problem.code != "staging.denied")


def _publish(member: Member) -> bytes:
    """Return the script that gives a complete temporary file its time, mode and name."""
    stamp = time.strftime("%Y%m%d%H%M.%S", time.gmtime(member.modified)).encode()
    name = quote(b"./" + member.remote.rpartition(b"/")[2])
    return (
        b'chmod 660 "./$t"; TZ=UTC0 touch -t %b "./$t"; '
        b'if [ -d %b ]; then echo "Is a directory" >&2; exit 96; fi; mv -f -- "./$t" %b'
    ) % (stamp, name, name)
