"""Sends single files to hosts with a shell: whole, resumed, striped or sparse.

One remote script a file makes the directory, says how much of an earlier attempt lies there,
takes the bytes, compares the size and renames. Of the bytes the last chunk is held back until
the local file is known to have stayed the same, so nothing torn ever gets its final name.
"""

import hashlib
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import chain
from queue import SimpleQueue
from threading import Thread
from typing import Final

from mydata_like.core.errors import (
    FileChangedError,
    RejectedError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.capabilities import HostCapabilities, check_space, quote
from mydata_like.ssh.session import CommandResult, Stream
from mydata_like.transfer import tar
from mydata_like.transfer.archive_writer import ArchiveSource, IndexLine, open_content
from mydata_like.transfer.batch_sender import describe
from mydata_like.transfer.compression import NOT_UNPACKED, CompressedWriter, choose, excuse, unpack
from mydata_like.transfer.file_source import FileSource, open_source
from mydata_like.transfer.multi_stream import FAR, LARGE, StreamLimit, StripedWriter
from mydata_like.transfer.remote_shell import (
    DROP,
    MARK,
    NO_GROUND,
    RemoteDirs,
    Shells,
    finish_refused,
    hold_back,
    parent_of,
    part_name,
    read_answer,
)
from mydata_like.transfer.sparse import Extent, measure
from mydata_like.transfer.worker_messages import LOST, Member, MemberResult, Moving
from mydata_like.transfer.zero_runs import find_data

_CHUNK: Final = 256 * 1024  # bytes that a chunk has at most
_AHEAD: Final = 4  # chunks that wait to be sent

_Free = SimpleQueue[bytearray | None]
_Full = SimpleQueue[memoryview | BaseException | None]


@contextmanager
def read_ahead(chunks: Iterator[memoryview], moving: Moving) -> Iterator[Iterator[memoryview]]:
    """Have a thread take chunks while this lasts; yield them, each valid until the next.

    The thread reports each chunk to `moving`, so that its work counts as the payload's.
    """
    free: _Free = SimpleQueue()
    full: _Full = SimpleQueue()
    for _ in range(_AHEAD):
        free.put(bytearray(_CHUNK))
    thread = Thread(target=_read, args=(chunks, moving, free, full), name="ahead", daemon=True)
    thread.start()
    try:
        yield _pass_on(full, free)
    finally:
        free.put(None)
        thread.join()


def _read(chunks: Iterator[memoryview], moving: Moving, free: _Free, full: _Full) -> None:
    try:
        for chunk in chunks:
            moving(0)
            if (buffer := free.get()) is None:
                return
            buffer[: len(chunk)] = chunk
            full.put(memoryview(buffer)[: len(chunk)])
        full.put(None)
    except BaseException as error:  # noqa: BLE001 - the reader of the chunks must get it
        full.put(error)


def _pass_on(full: _Full, free: _Free) -> Iterator[memoryview]:
    while (chunk := full.get()) is not None:
        if isinstance(chunk, BaseException):
            raise chunk
        yield chunk
        assert isinstance(chunk.obj, bytearray)
        free.put(chunk.obj)


RESUMABLE: Final = 8 * 1024 * 1024  # less than this is faster sent again than compared
_LISTING: Final = 1024 * 1024  # bytes of a host's answer that are looked at: 10,000 parts
_STRIPED: Final = -1  # the size of what several streams left behind, which may have gaps
_TELL: Final = (
    b'if [ -f "./$t" ]; then set -- $(ls -ldn "./$t"); a=; [ ! -f "./$t.at" ] || a=:striped; '
    b'echo "mydata:$t:$5$a"; fi'
)
_LIST: Final = b"for t in .mydata-*.part; do " + _TELL + b"; done"


class PartialFiles:
    """Knows what lies in the staging area under temporary names."""

    def __init__(self, ground: RemoteDirs) -> None:
        self._ground = ground
        self._sizes: dict[bytes, dict[bytes, int]] = {}  # by directory, by temporary name

    def find(self, member: Member) -> int:
        """Return how much an earlier attempt left of a large file, 0 for nothing of use.

        A directory is looked at once: what breaks a line later ends this session too.
        """
        parent = parent_of(member)
        if parent not in self._sizes:
            listed = self._ground.start(member, _LIST).finish()
            self._sizes[parent] = dict(_read_leftover(listed.output))
        there = self._sizes[parent].pop(part_name(member), 0)
        if there == _STRIPED:  # others than ours may be at work on theirs
            mended = self._ground.start(member, MEND + _TELL).finish()
            there = dict(_read_leftover(mended.output)).get(part_name(member), 0)
        return there if RESUMABLE <= there <= member.size else 0


def _read_leftover(output: bytes) -> Iterator[tuple[bytes, int]]:
    for line in output[:_LISTING].splitlines():
        mark, _, rest = line.partition(MARK)
        name, _, size = rest.partition(b":")
        if not mark and size.endswith(b":striped"):
            yield name, _STRIPED
        elif not mark and (count := parse_count(size)) is not None:
            yield name, count


_PIECE: Final = 16 * 1024 * 1024

# Tells the checksum of what is there, and what is to be done with it is the next line. An
# answer that does not come, because the line broke, does not drop it.
#
# Hashing takes minutes where much is there. An empty line after each piece shows that it goes on,
# and ends it where nobody listens any more.
_RESUME: Final = (
    b'{ echo "mydata:$({ n=%d; while [ $n -gt 0 ] && dd bs=1048576 count=16 2>/dev/null; do '
    b'echo >&3 || exit; n=$((n - 1)); done; cat; } < "./$t" | %b)"; } 3>&1; IFS= read -r how; '
    b'case $how in append) ;; fresh) rm -f -- "./$t" ;; *) exit 94 ;; esac; '
)


def resume(there: int, checksum: bytes) -> bytes:
    """Return the script that continues with the bytes that are there, if that is wanted.

    `checksum` is the command that prints the MD5 of its input.
    """
    return _RESUME % (there // _PIECE, checksum)


def compare(
    stream: Stream, chunks: Iterable[memoryview], there: int, moving: Moving
) -> tuple[bool, memoryview]:
    """Hash as many bytes as are there, here and there at once.

    Return whether they are the same, and what is left of the last chunk. A script that cannot be
    asked any more is dropped: it would hash on for nobody.
    """
    try:
        ours, rest = _pass(chunks, there, moving)
        theirs = read_answer(stream, moving)
    except UploaderError:
        stream.close()
        raise
    return theirs[:32] == ours.encode(), rest


def _pass(chunks: Iterable[memoryview], length: int, moving: Moving) -> tuple[str, memoryview]:
    """Read so many bytes; return their checksum, and what is left of the last chunk."""
    prefix = hashlib.md5(usedforsecurity=False)
    for chunk in chunks:
        taken = chunk[:length]
        prefix.update(taken)
        length -= len(taken)
        moving(0)
        if not length:
            return prefix.hexdigest(), chunk[len(taken) :]
    return "", memoryview(b"")


_UNIT: Final = 256 * 1024  # bytes that go together
_UNABLE: Final = 97  # this dd knows too little
_UNWRITTEN: Final = 95  # bytes could not be written
_PROBE: Final = (
    b"dd of=/dev/null bs=1 count=0 seek=0 status=none oflag=seek_bytes iflag=fullblock "
    b"</dev/null 2>/dev/null || exit %d; "
) % _UNABLE
_BEGIN_STRIPES: Final = _PROBE + DROP
_GO_ON: Final = _PROBE + b'echo "0 %d" > "./$t.at"'
# A block is only noted when the line after it came: what a broken line ends is a part of one.
_TAKE: Final = (
    b'while IFS=" " read -r o b c; do '
    b'dd of="./$t" bs="$b" count="$c" seek="$o" status=none '
    b"oflag=seek_bytes iflag=fullblock conv=notrunc || exit 95; "
    b'IFS= read -r e && [ "$e" = . ] || exit 94; '
    b'echo "$o $((b * c))" >> "./$t.at"; done'
)
# Leaves of a file what is known to be there from its start on.
MEND: Final = (
    b'p=$(sort -n "./$t.at" | { p=0; while IFS=" " read -r o l; do [ "$o" -le "$p" ] || break; '
    b'[ $((o + l)) -le "$p" ] || p=$((o + l)); done; echo "$p"; }); '
    b'dd of="./$t" bs=1 count=0 seek="$p" </dev/null 2>/dev/null || rm -f -- "./$t"; '
    b'rm -f -- "./$t.at"; '
)


class StripedSender:
    """Sends large files by several streams where one would be slower."""

    def __init__(
        self, shells: Shells, ground: RemoteDirs, rung: HostCapabilities, room: StreamLimit
    ) -> None:
        self._shells = shells
        self._ground = ground
        self._room = room
        self._checksum = rung.checksum
        self._able = rung.tar == "gnu"  # whose dd may know enough

    def suits(self, size: int) -> bool:
        """Return whether several streams may be faster than one: the host is far away."""
        if not self._able or size < LARGE:
            return False
        return FAR <= self._shells.find_round_trip(FAR) < math.inf

    def send(
        self, member: Member, there: int, moving: Moving
    ) -> tuple[IndexLine, CommandResult] | None:
        """Send what follows the bytes that are there; its name is given to the file by others.

        None where this does not work here, or what is there is not ours.
        """
        with open_content(member) as source:
            chunks = source.chunks(bytearray(_UNIT))
            rest = self._begin(member, there, chunks, moving)
            if rest is None:
                return None
            moving(there)
            open_lane = partial(self._open_lane, member)
            crew = StripedWriter(open_lane, self._room, self._shells.round_trip, moving)
            try:
                crew.carry(chain((rest,), chunks), there)
                told = IndexLine("" if source.remaining else source.finish(), source.inside)
            except UploaderError as error:
                crew.dismiss()
                if isinstance(error, FileChangedError):
                    self._ground.drop(member)
                raise
        try:
            crew.finish()
        except _EndedError as error:
            if error.finished.status == _UNWRITTEN:
                self._ground.drop(member)
            return told, error.finished
        return told, CommandResult(0, b"", b"")

    def _begin(
        self, member: Member, there: int, chunks: Iterator[memoryview], moving: Moving
    ) -> memoryview | None:
        """Have streams write beyond what is there; return what was read of that.

        None where they cannot, or what is there is not ours.
        """
        script = resume(there, self._checksum) + _GO_ON % there if there else _BEGIN_STRIPES
        stream = self._ground.start(member, script)
        rest = memoryview(b"")
        if there:
            same, rest = compare(stream, chunks, there, moving)
            if same:
                stream.write(b"append\n")
        begun = stream.finish()
        self._able = begun.status != _UNABLE
        return rest if begun.status == 0 else None

    def _open_lane(self, member: Member, helps: bool) -> "_ShellStripe":  # noqa: FBT001 - as Crew asks
        return _ShellStripe(self._ground.start(member, _TAKE, patient=not helps))


class _EndedError(RejectedError):
    """A script has ended that should have taken more."""

    def __init__(self, finished: CommandResult) -> None:
        super().__init__("The staging host's shell has ended.")
        self.finished = finished


class _ShellStripe:
    """The script `_TAKE` at work; see `crew.Lane`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, offset: int, block: memoryview, moving: Moving) -> None:
        """Send a block to its place; dd takes as many whole units as there are, then the rest."""
        whole = len(block) - len(block) % _UNIT
        try:
            self._send(offset, _UNIT, block[:whole], moving)
            self._send(offset + whole, len(block) - whole, block[whole:], moving)
        except UploaderError as error:
            raise _EndedError(finish_refused(self._stream, error)) from error

    def finish(self) -> None:
        """Wait until everything has been written."""
        finished = self._stream.finish()
        if finished.status != 0:
            raise _EndedError(finished)

    def _send(self, offset: int, unit: int, block: memoryview, moving: Moving) -> None:
        if not block:
            return
        self._stream.write(b"%d %d %d\n" % (offset, unit, len(block) // unit))
        for start in range(0, len(block), unit):
            piece = block[start : start + unit]
            self._stream.write(piece)
            moving(len(piece))
        self._stream.write(b".\n")


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
        room: StreamLimit | None = None,
        *,
        find_zeros: bool = False,
    ) -> None:
        self._shells = shells
        self._compression = shells.compression
        self._rung = rung
        self._ground = RemoteDirs(shells, location)
        self._parts = PartialFiles(self._ground)
        self._striped = StripedSender(shells, self._ground, rung, room or StreamLimit(0))
        self._find_zeros = find_zeros
        self._buffer = bytearray(CHUNK)
        self._spare = False

    def send(
        self, index: int, member: Member, moving: Moving, *, spare: bool = False
    ) -> MemberResult:
        """Carry one file; raises `TransientError` when the line broke.

        With a processor to `spare`, a large file is hashed in parallel with sending.
        """
        self._spare = spare and member.size >= LARGE
        try:
            sent = self._send_sparse(member, moving) or self._send_plain(member, moving)
        except FileChangedError as error:
            return MemberResult(index, "", error.problem)
        told, finished = sent
        if finished.status == NOT_UNPACKED:
            self._compression.give_up()
            return self.send(index, member, moving, spare=spare)
        return self._conclude(index, member, told, finished)

    def _send_plain(self, member: Member, moving: Moving) -> tuple[IndexLine, CommandResult]:
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
        feed = CompressedWriter(
            stream, self._compression, ratio, excuse(1, self._shells.round_trip)
        )
        self._shells.prepare()
        try:
            told = self._send_rest(feed, member, there, moving) if there else None
            if told is None:
                told = self._send_whole(feed, member, moving)
        except FileChangedError:
            self._abandon(stream, member)
            raise
        except TransientError as error:
            return IndexLine(""), finish_refused(stream, error)
        return told, feed.finish()

    def _find_part(self, member: Member) -> int:
        """Return how much an earlier attempt left that may be gone on with."""
        if member.size < RESUMABLE or member.anew or not self._rung.checksum:
            return 0
        return self._parts.find(member)

    def _send_striped(
        self, member: Member, there: int, moving: Moving
    ) -> tuple[IndexLine, CommandResult] | None:
        """Send by several streams; published by a script of its own."""
        sent = self._striped.send(member, there, moving)
        if sent is None or sent[1].status != 0:
            return sent
        publish = _CHECK % member.size + _CLEAR + _publish(member)
        return sent[0], self._ground.start(member, publish).finish()

    def _reading(
        self, source: FileSource | ArchiveSource, moving: Moving
    ) -> AbstractContextManager[Iterator[memoryview]]:
        chunks = source.chunks(self._buffer)
        return read_ahead(chunks, moving) if self._spare else nullcontext(chunks)

    def _send_whole(self, feed: CompressedWriter, member: Member, moving: Moving) -> IndexLine:
        with open_content(member) as source, self._reading(source, moving) as chunks:
            for chunk in hold_back(source, chunks):
                feed.write(chunk)
                moving(len(chunk))
            return IndexLine.of(source)

    def _send_rest(
        self, feed: CompressedWriter, member: Member, there: int, moving: Moving
    ) -> IndexLine | None:
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
            return IndexLine.of(source)

    def _send_sparse(
        self, member: Member, moving: Moving
    ) -> tuple[IndexLine, CommandResult] | None:
        """Send what lies between holes or zeros; None where that is not less, or not understood.

        The file stays open from the first look on, so that it is seen when it changes meanwhile.
        """
        if member.inside or self._rung.tar not in ("gnu", "bsd"):
            return None
        with open_source(member) as source:
            extents = self._find_extents(source, moving)
            return None if extents is None else self._send_extents(source, member, extents, moving)

    def _find_extents(self, source: FileSource, moving: Moving) -> list[Extent] | None:
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
        self, source: FileSource, member: Member, extents: Sequence[Extent], moving: Moving
    ) -> tuple[IndexLine, CommandResult]:
        """Send these parts of a file; published by a second script.

        A tar stream is complete before its end is, so nothing can be held back.
        """
        head = tar.sparse_header(part_name(member), member.size, member.modified, extents)
        length = measure(extents)
        ratio = choose(self._compression, [member], length)
        take = _BEGIN + unpack(_KEEP_SPARSE, ratio) + _OR_DROP + _CHECK % member.size
        stream = self._ground.start(member, take)
        feed = CompressedWriter(
            stream, self._compression, ratio, excuse(1, self._shells.round_trip)
        )

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
            return IndexLine(""), finish_refused(stream, error)
        taken = feed.finish()
        if taken.status != 0:
            return IndexLine(checksum), taken
        return IndexLine(checksum), self._ground.start(member, _publish(member)).finish()

    def _abandon(self, stream: Stream, member: Member) -> None:
        """Drop a file that changed under us, and what the other side has of it."""
        stream.close()
        self._ground.drop(member)

    def _conclude(
        self, index: int, member: Member, told: IndexLine, finished: CommandResult
    ) -> MemberResult:
        if finished.status is None:
            raise TransientError("The staging host did not report how the file arrived.", code=LOST)
        self._ground.note(member, arrived=finished.status == 0)
        if finished.status == 0:
            return MemberResult(index, told.checksum, inside=told.inside)
        said = finished.errors or finished.output
        check_space(said)
        if finished.status == NO_GROUND:
            raise StagingError(
                "No directories can be created in the staging area.",
                hint="The server's administrator can fix its permissions.",
            )
        problem = describe(member.remote, said)
        return MemberResult(index, "", problem, again=problem.code != "staging.denied")


def _publish(member: Member) -> bytes:
    """Return the script that gives a complete temporary file its time, mode and name."""
    stamp = time.strftime("%Y%m%d%H%M.%S", time.gmtime(member.modified)).encode()
    name = quote(b"./" + member.remote.rpartition(b"/")[2])
    return (
        b'chmod 660 "./$t"; TZ=UTC0 touch -t %b "./$t"; '
        b'if [ -d %b ]; then echo "Is a directory" >&2; exit 96; fi; mv -f -- "./$t" %b'
    ) % (stamp, name, name)
