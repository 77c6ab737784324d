"""Single files on hosts with a shell: to a temporary name, checked, then into their place.

One remote script a file makes the directory, says how much of an earlier attempt lies there,
takes the bytes, compares the size and renames. Of the bytes the last chunk is held back until
the local file is known to have stayed the same, so nothing torn ever gets its final name.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from mydata_like.core.errors import FileChangedError, StagingError, TransientError, UploaderError
from mydata_like.ssh.remote import Rung, quote
from mydata_like.ssh.session import Finished, Stream
from mydata_like.transfer import striped, tar
from mydata_like.transfer.archive import Told, open_content
from mydata_like.transfer.compression import excuse
from mydata_like.transfer.proof import check_space, describe
from mydata_like.transfer.protocol import LOST, Fate, Member, Moving
from mydata_like.transfer.reading import Source, open_source
from mydata_like.transfer.sealed import Sealed, alive, chain, part_name, pass_prefix
from mydata_like.transfer.shell import NO_GROUND, Shells, ancestors, enter, finish_refused, make
from mydata_like.transfer.sparse import Extent, find_extents
from mydata_like.transfer.striped import Room
from mydata_like.transfer.zstd import NOT_UNPACKED, Feed, choose, unpack

CHUNK: Final = 256 * 1024
RESUMABLE: Final = 8 * 1024 * 1024  # less than this is faster sent again than compared
_SPARSE_GAIN: Final = 0.9  # a file is sent by its extents when they are less of it than this
_STRIPED: Final = -1  # the size of what several streams left behind, which may have gaps
_NOISE: Final = 64 * 1024  # of a login script, at most, before the script's own answer
_MARK: Final = b"mydata:"

# Scripts in the file's directory, `$t` its temporary name. Status 92 is shell.NO_GROUND, 94 says
# that not all bytes came (they are kept: the line may have broken), 95 that they could not be
# written, 96 that the file has no place.
_DROP: Final = b'rm -f -- "./$t" "./$t.at"'
_BEGIN: Final = _DROP + b"; "
_RESUME: Final = (
    b'echo "mydata:$(%b < "./$t")"; IFS= read -r how; [ "$how" = append ] || rm -f -- "./$t"; '
)
_KEEP: Final = b'cat >> "./$t"'
_KEEP_SPARSE: Final = b"tar -x -o --no-same-permissions -f -"
_OR_DROP: Final = b' || { rm -f -- "./$t"; exit 95; }; '
# What is there after a line broke is kept for the next attempt.
_CHECK: Final = b'set -- $(ls -ldn "./$t"); [ "$5" = %d ] || exit 94; '
_TELL_PART: Final = (
    b'if [ -f "./$t" ]; then set -- $(ls -ldn "./$t"); a=; [ ! -f "./$t.at" ] || a=:striped; '
    b'echo "mydata:$t:$5$a"; fi'
)
_LIST_PARTS: Final = b"for t in .mydata-*.part; do " + _TELL_PART + b"; done"


class SingleSender:
    """Sends files one by one over one session; knows which directories it has seen made."""

    def __init__(
        self, shells: Shells, location: bytes, rung: Rung, room: Room | None = None
    ) -> None:
        self._shells = shells
        self._room = room or Room(0)
        self._stripes = rung.tar == "gnu"  # whose dd may know enough
        self._compression = shells.compression
        self._location = location
        self._rung = rung
        self._known: set[bytes] = set()
        self._parts: dict[bytes, dict[bytes, int]] = {}  # by directory: size by temporary name
        self._buffer = bytearray(CHUNK)

    def send(self, index: int, member: Member, moving: Moving) -> Fate:
        """Carry one file; raises `TransientError` when the line broke."""
        try:
            extents = self._extents(member)
            if extents is None:
                told, finished = self._send_plain(member, moving)
            else:
                told, finished = self._send_sparse(member, extents, moving)
        except FileChangedError as error:
            return Fate(index, "", error.problem)
        if finished.status == NOT_UNPACKED:
            self._compression.give_up()
            return self.send(index, member, moving)
        return self._conclude(index, member, told, finished)

    def _extents(self, member: Member) -> list[Extent] | None:
        """Return where the data lies if that saves much, and the server understands it."""
        with open_content(member) as source:
            if not isinstance(source, Source) or not source.may_have_holes:
                return None
            if self._rung.tar not in ("gnu", "bsd"):
                return None
            extents = find_extents(source.fileno(), source.size)
            data = sum(length for _, length in extents)
            return extents if data < source.size * _SPARSE_GAIN else None

    def _send_plain(self, member: Member, moving: Moving) -> tuple[Told, Finished]:
        there = self._find_part(member)
        ratio = choose(self._compression, [member], member.size - there)
        if ratio is None and self._may_stripe(member.size - there):
            sent = self._send_striped(member, there, moving)
            if sent is not None:
                return sent
            there = 0
        begin = _RESUME % self._rung.checksum if there else _BEGIN
        take = begin + unpack(_KEEP, ratio) + _OR_DROP + _CHECK % member.size
        stream = self._start(member, take + _publish(member))
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

    def _may_stripe(self, size: int) -> bool:
        """Return whether several streams may be faster than one."""
        far = striped.FAR <= self._shells.round_trip < math.inf
        return self._stripes and far and size >= striped.LARGE

    def _send_striped(
        self, member: Member, there: int, moving: Moving
    ) -> tuple[Told, Finished] | None:
        """Send by several streams; None where that does not work, or what is there is not ours.

        It is published by a script of its own, once the file is known to have stayed the same.
        """
        with open_content(member) as source:
            chunks = source.chunks(self._buffer)
            ours, rest = pass_prefix(chunks, there, moving) if there else ("", memoryview(b""))
            begin = striped.BEGIN
            if there:
                begin = striped.GO_ON % (self._rung.checksum, ours.encode(), there)
            begun = self._start(member, begin).finish()
            if begun.status != 0:
                self._stripes = begun.status != striped.UNABLE
                return None
            moving(there)
            crew = striped.Crew(
                lambda helps: self._start(member, striped.TAKE, patient=not helps),
                self._room,
                self._shells.round_trip,
                moving,
            )
            try:
                crew.carry(chain(rest, chunks), there)
                told = Told("" if source.remaining else source.finish(), source.inside)
            except UploaderError as error:
                crew.dismiss()
                if isinstance(error, FileChangedError):
                    self._start(member, _DROP).finish()
                raise
        if failed := crew.finish():
            if failed.status == striped.UNWRITTEN:
                self._start(member, _DROP).finish()
            return told, failed
        publish = _CHECK % member.size + b'rm -f -- "./$t.at"; ' + _publish(member)
        return told, self._start(member, publish).finish()

    def _find_part(self, member: Member) -> int:
        """Return how much an earlier attempt left of a large file, 0 for nothing of use.

        A directory is looked at once: what breaks a line later ends this session too.
        """
        if member.size < RESUMABLE or member.anew or not self._rung.checksum:
            return 0
        parent = member.remote.rpartition(b"/")[0]
        if parent not in self._parts:
            listed = self._start(member, _LIST_PARTS).finish()
            self._parts[parent] = dict(_read_parts(listed.output))
        there = self._parts[parent].pop(part_name(member), 0)
        if there == _STRIPED:  # others than ours may be at work on theirs
            mended = self._start(member, striped.MEND + _TELL_PART).finish()
            there = dict(_read_parts(mended.output)).get(part_name(member), 0)
        return there if RESUMABLE <= there <= member.size else 0

    def _send_whole(self, feed: Feed, member: Member, moving: Moving) -> Told:
        with open_content(member) as source:
            sealed = Sealed(source, source.chunks(self._buffer))
            for chunk in sealed:
                feed.write(chunk)
                moving(len(chunk))
            return sealed.told

    def _send_rest(self, feed: Feed, member: Member, there: int, moving: Moving) -> Told | None:
        """Send what follows the bytes that are there; None when those are not ours."""
        with open_content(member) as source:
            sealed = Sealed(source, source.chunks(self._buffer))
            ours, rest = pass_prefix(sealed, there, moving)
            if _read_answer(feed.stream)[:32] != ours.encode():
                feed.stream.write(b"fresh\n")
                return None
            feed.stream.write(b"append\n")
            moving(there)
            for chunk in chain(rest, sealed):
                feed.write(chunk)
                moving(len(chunk))
            return sealed.told

    def _send_sparse(
        self, member: Member, extents: Sequence[Extent], moving: Moving
    ) -> tuple[Told, Finished]:
        """Send the data between the holes; published by a second script.

        A tar stream is complete before its end is, so nothing can be held back.
        """
        part = part_name(member)
        head = tar.sparse_header(part, member.size, member.modified, extents)
        length = sum(length for _, length in extents)
        ratio = choose(self._compression, [member], length)
        take = _BEGIN + unpack(_KEEP_SPARSE, ratio) + _OR_DROP + _CHECK % member.size
        stream = self._start(member, take)
        feed = Feed(stream, self._compression, ratio, excuse(1, self._shells.round_trip))

        def write(chunk: bytes | memoryview) -> None:
            feed.write(chunk)
            moving(len(chunk))

        try:
            with open_source(*member[:5]) as source:
                chunks = source.chunks(self._buffer, extents)
                tar.write_member(write, head, length, alive(chunks, moving))
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
        return Told(checksum), self._start(member, _publish(member)).finish()

    def _start(self, member: Member, script: bytes, *, patient: bool = True) -> Stream:
        """Start a script in the file's directory, which is made where it is not known."""
        parent = member.remote.rpartition(b"/")[0]
        directories = [] if parent in self._known else ancestors(member.remote)
        into = b"cd -- %b || exit 96; " % quote(b"./" + parent)
        name = b"t=%b; " % part_name(member)
        ground = enter(self._location) + make(directories)
        return self._shells.start(ground + into + name + script, patient=patient)

    def _abandon(self, stream: Stream, member: Member) -> None:
        """Drop a file that changed under us, and what the other side has of it."""
        stream.close()
        self._start(member, _DROP).finish()

    def _conclude(self, index: int, member: Member, told: Told, finished: Finished) -> Fate:
        parent = member.remote.rpartition(b"/")[0]
        if finished.status is None:
            raise TransientError("The staging host did not say how the file arrived.", code=LOST)
        if finished.status == 0:
            self._known.add(parent)
            return Fate(index, told.checksum, inside=told.inside)
        self._known.discard(parent)
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


def _read_parts(output: bytes) -> Iterator[tuple[bytes, int]]:
    for line in output.splitlines():
        mark, _, rest = line.partition(_MARK)
        name, _, size = rest.partition(b":")
        if not mark and size.endswith(b":striped"):
            yield name, _STRIPED
        elif not mark and size.isdigit():
            yield name, int(size)


def _read_answer(stream: Stream) -> bytes:
    """Return what the script answered; what a login script says before is skipped."""
    received = b""
    while len(received) < _NOISE:
        more = stream.read(4096)
        if not more:
            break
        received += more
        found = received.rpartition(_MARK)
        if found[1] and found[2].endswith(b"\n"):
            return found[2].strip()
    with suppress(TransientError):
        stream.close()
    raise TransientError("The staging host's shell gave no answer.", code="staging.shell")
