"""Sends single files to hosts with a shell: whole, resumed, striped or sparse.

One remote script per file creates the directory, reports the size of an earlier attempt, receives
the bytes, compares the size and renames the file. Of a file that has grown, the host first copies
what is stored, and only the rest is sent. The last chunk is held back until the local file is found
unchanged, so an inconsistent file never gets its final name.
"""

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from mydata_like.core.errors import (
    FileChangedError,
    RejectedError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.capabilities import quote, says_full
from mydata_like.ssh.session import CommandResult, Stream
from mydata_like.transfer import tar
from mydata_like.transfer.archive_writer import ArchiveSource, IndexLine, open_content
from mydata_like.transfer.compression import (
    NOT_UNPACKED,
    CompressedWriter,
    choose,
    estimate_overhead,
    unpack,
)
from mydata_like.transfer.file_source import FileSource, may_have_grown, open_source
from mydata_like.transfer.member_results import refuse
from mydata_like.transfer.sparse import Extent, measure
from mydata_like.transfer.ssh.multi_stream import (
    FAR,
    LARGE,
    StripedWriter,
    takes_long,
)
from mydata_like.transfer.ssh.remote_shell import (
    DROP,
    MARK,
    NO_DIRECTORY,
    RemoteDirs,
    SessionState,
    Shells,
    finish_refused,
    hold_back,
    parent_of,
    read_answer,
)
from mydata_like.transfer.temporary_files import beginning_name, part_name
from mydata_like.transfer.throttled_session import ThrottledStream
from mydata_like.transfer.worker_messages import LOST, Member, MemberResult, Moving
from mydata_like.transfer.zero_runs import find_data

RESUMABLE: Final = 8 * 1024 * 1024  # bytes; less is sent again faster than it is compared
_CHUNK: Final = 256 * 1024  # bytes that are read at once
_LISTING: Final = 1024 * 1024  # bytes of a listing that are parsed: 10,000 temporary files
_STRIPED: Final = -1  # stands for the size of a striped file, which may have gaps
_PRINT_SIZE: Final = (
    b'if [ -f "./$t" ]; then set -- $(ls -ldn "./$t"); a=; [ ! -f "./$t.at" ] || a=:striped; '
    b'echo "mydata:$t:$5$a"; fi'
)
_TAKE: Final = b'mv -f -- ./%b "./$t" || exit; ' + _PRINT_SIZE
_LIST: Final = b"for t in .mydata-*.part; do " + _PRINT_SIZE + b"; done"
_PIECE: Final = 16 * 1024 * 1024
# Copies the input. Many bytes take minutes: an empty line after each piece reports progress, and
# ends the script if the connection is closed.
_PIECES: Final = (
    b"n=%d; while [ $n -gt 0 ] && dd bs=1048576 count=16 2>/dev/null; do "
    b"echo >&3 || exit; n=$((n - 1)); done; cat"
)
# A clone takes no time and no space. `cp` must not make the file, with the mode of the stored one.
_COPY_STORED: Final = (
    b"echo; " + DROP + b'; s=%b; if [ -f "$s" ] && [ ! -h "$s" ]; then : > "./$t"; '
    b'cp --reflink=always -- "$s" "./$t" 2>/dev/null '
    b"|| { " + _PIECES + b'; } 3>&1 < "$s" > "./$t" 2>/dev/null || rm -f -- "./$t"; fi; '
) + _PRINT_SIZE


class PartialFiles:
    """The temporary files in the staging area."""

    def __init__(self, dirs: RemoteDirs) -> None:
        self._dirs = dirs
        self._sizes: dict[bytes, dict[bytes, int]] = {}  # by directory, by temporary name

    def find(self, member: Member, moving: Moving) -> int:
        """Return the size of what may be the beginning of a large file, 0 if there is nothing.

        An earlier attempt left it, perhaps when the file was smaller, or it is a copy of what is
        stored of a file that has grown. Each directory is listed once, because a connection that
        breaks later ends this session too, and again for a file that was interrupted.
        """
        parent = parent_of(member)
        if parent not in self._sizes or member.interrupted:
            listed = self._dirs.start(member, _LIST).finish()
            self._sizes[parent] = dict(_read_leftover(listed.output))
        existing = self._sizes[parent].pop(part_name(member), 0)
        if existing == _STRIPED:  # only this file: other uploaders may be writing theirs
            trimmed = self._dirs.start(member, TRIM + _PRINT_SIZE).finish()
            existing = dict(_read_leftover(trimmed.output)).get(part_name(member), 0)
        beginning = beginning_name(member)
        if not existing and self._sizes[parent].pop(beginning, member.size + 1) <= member.size:
            taken = self._dirs.start(member, _TAKE % beginning).finish()
            existing = dict(_read_leftover(taken.output)).get(part_name(member), 0)
        if member.stored_size >= RESUMABLE and existing < member.stored_size:
            existing = self._copy_stored(member, moving)
        return existing if RESUMABLE <= existing <= member.size else 0

    def give_up(self, member: Member) -> None:
        """Remove what was sent of a file that has changed; keep it if the file may have grown."""
        self._sizes.pop(parent_of(member), None)
        if member.size >= RESUMABLE and not member.inside and may_have_grown(member):
            self._dirs.start(member, _KEEP_BEGINNING % beginning_name(member)).finish()
        else:
            self._dirs.drop(member)

    def _copy_stored(self, member: Member, moving: Moving) -> int:
        """Have the host copy the stored bytes; return their size, 0 if that failed."""
        name = quote(b"./" + member.stored.rpartition(b"/")[2])
        stream = self._dirs.start(member, _COPY_STORED % (name, member.stored_size // _PIECE))
        output = b""
        try:
            while more := stream.read(4096):
                output = (output + more)[-_LISTING:]
                moving(0)
        except UploaderError:
            stream.close()
            raise
        stream.finish()
        return dict(_read_leftover(output)).get(part_name(member), 0)


def _read_leftover(output: bytes) -> Iterator[tuple[bytes, int]]:
    for line in output[:_LISTING].splitlines():
        mark, _, rest = line.partition(MARK)
        name, _, size = rest.partition(b":")
        if not mark and size.endswith(b":striped"):
            yield name, _STRIPED
        elif not mark and (count := parse_count(size)) is not None:
            yield name, count


# Prints the checksum of the existing bytes, then reads a line that says whether to keep them. If
# the connection breaks before that line, the bytes are kept.
_RESUME: Final = (
    b'{ echo "mydata:$({ ' + _PIECES + b'; } < "./$t" | %b)"; } 3>&1; IFS= read -r how; '
    b'case $how in append) ;; fresh) rm -f -- "./$t" ;; *) exit 94 ;; esac; '
)


def resume(existing: int, checksum: bytes) -> bytes:
    """Return the script that appends to the existing bytes, if they are confirmed.

    `checksum` is the command that prints the checksum of its input.
    """
    return _RESUME % (existing // _PIECE, checksum)


def compare(
    stream: Stream, source: FileSource | ArchiveSource, existing: int, moving: Moving
) -> bool:
    """Hash the first `existing` bytes on both sides concurrently; return whether they are equal.

    The script is closed after an error; it would continue to hash otherwise.
    """
    try:
        end = source.remaining - existing
        while source.remaining > end:
            source.checksum.update(source.read(min(_CHUNK, source.remaining - end)))
            moving(0)
        if not source.remaining:
            source.finish()
        theirs = read_answer(stream, moving)
    except UploaderError:
        stream.close()
        raise
    ours = source.checksum.hexdigest().encode()
    return theirs[: len(ours)] == ours


_UNIT: Final = 256 * 1024  # bytes per write
_DD_UNSUPPORTED: Final = 97  # dd lacks a required option
_WRITE_FAILED: Final = 95  # bytes could not be written
_PROBE: Final = (
    b"dd of=/dev/null bs=1 count=0 seek=0 status=none oflag=seek_bytes iflag=fullblock "
    b"</dev/null 2>/dev/null || exit %d; "
) % _DD_UNSUPPORTED
_BEGIN_STRIPES: Final = _PROBE + DROP
_CONTINUE_STRIPES: Final = _PROBE + b'echo "0 %d" > "./$t.at"'
# A block is recorded only after the line that follows it; a broken connection leaves a partial one.
_RECEIVE_BLOCKS: Final = (
    b'while IFS=" " read -r o b c; do '
    b'dd of="./$t" bs="$b" count="$c" seek="$o" status=none '
    b"oflag=seek_bytes iflag=fullblock conv=notrunc || exit 95; "
    b'IFS= read -r e && [ "$e" = . ] || exit 94; '
    b'echo "$o $((b * c))" >> "./$t.at"; done'
)
# Truncates a striped file to the bytes that have arrived without gaps.
TRIM: Final = (
    b'p=$(sort -n "./$t.at" | { p=0; while IFS=" " read -r o l; do [ "$o" -le "$p" ] || break; '
    b'[ $((o + l)) -le "$p" ] || p=$((o + l)); done; echo "$p"; }); '
    b'dd of="./$t" bs=1 count=0 seek="$p" </dev/null 2>/dev/null || rm -f -- "./$t"; '
    b'rm -f -- "./$t.at"; '
)
_KEEP_BEGINNING: Final = b'if [ -f "./$t.at" ]; then ' + TRIM + b'fi; mv -f -- "./$t" ./%b'


class StripedSender:
    """Sends large files over several streams where one would be slower."""

    def __init__(
        self, shells: Shells, dirs: RemoteDirs, parts: PartialFiles, state: SessionState
    ) -> None:
        self._shells = shells
        self._dirs = dirs
        self._parts = parts
        self._limit = state.limit
        self._capabilities = state.capabilities
        self._able = state.capabilities.tar == "gnu"  # its dd is likely to have the options

    def suits(self, size: int) -> bool:
        """Return whether several streams may be faster than one.

        The host is far away, and no other payload of the session uses the connection, or none will
        in the end.
        """
        if not self._able or size < LARGE:
            return False
        round_trip = self._shells.find_round_trip(FAR)
        if not FAR <= round_trip < math.inf:
            return False
        return takes_long(size, round_trip) or not self._limit.is_shared

    def send(
        self, member: Member, existing: int, moving: Moving
    ) -> tuple[IndexLine, CommandResult] | None:
        """Send the bytes after `existing`; the caller renames the file.

        Return None if the host does not support it, or the existing bytes differ.
        """
        with open_content(member) as source:
            if not self._begin(member, existing, source, moving):
                return None
            moving(0, existing)
            open_stream = partial(self._open_stream, member)
            writer = StripedWriter(open_stream, self._limit, self._shells.round_trip, moving)
            try:
                writer.write(source.chunks(bytearray(_UNIT)), existing)
                line = IndexLine("" if source.remaining else source.finish(), source.inside)
            except UploaderError as error:
                writer.abort()
                if isinstance(error, FileChangedError):
                    self._parts.give_up(member)
                raise
        try:
            writer.finish()
        except _EndedError as error:
            if error.finished.status == _WRITE_FAILED:
                self._dirs.drop(member)
            return line, error.finished
        return line, CommandResult(0, b"", b"")

    def _begin(
        self, member: Member, existing: int, source: FileSource | ArchiveSource, moving: Moving
    ) -> bool:
        """Prepare the file for streams, and read what is there already.

        Return False if the host does not support it, or the existing bytes differ.
        """
        script = _BEGIN_STRIPES
        if existing:
            checksum = self._capabilities.find_checksum(member.algorithm)
            script = resume(existing, checksum) + _CONTINUE_STRIPES % existing
        stream = self._dirs.start(member, script)
        if existing and compare(stream, source, existing, moving):
            stream.write(b"append\n")
        begun = stream.finish()
        self._able = begun.status != _DD_UNSUPPORTED
        return begun.status == 0

    def _open_stream(self, member: Member, optional: bool) -> "_ShellStripe":  # noqa: FBT001 - by position
        return _ShellStripe(self._dirs.start(member, _RECEIVE_BLOCKS, retry=not optional))


class _EndedError(RejectedError):
    """A script ended before it received all its input."""

    def __init__(self, finished: CommandResult) -> None:
        super().__init__("The staging host's shell has ended.")
        self.finished = finished


class _ShellStripe:
    """The running script `_RECEIVE_BLOCKS`; see `StripeStream`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, offset: int, block: memoryview, moving: Moving) -> None:
        """Send a block to its offset: dd takes all whole units first, then the rest."""
        whole = len(block) - len(block) % _UNIT
        try:
            self._send(offset, _UNIT, block[:whole], moving)
            self._send(offset + whole, len(block) - whole, block[whole:], moving)
        except UploaderError as error:
            raise _EndedError(finish_refused(self._stream, error)) from error

    def finish(self) -> None:
        """Wait until everything is written."""
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


# A file is sent by its extents if these are less than this part of it. Zeros that are no holes cost
# an additional read, so they must save more.
_HOLES_GAIN: Final = 0.9
_ZEROS_GAIN: Final = 0.5

# Scripts in the file's directory; `$t` is its temporary name. Exit status 94: not all bytes arrived
# (they are kept, since the connection may have broken). 95: bytes could not be written.
_BEGIN: Final = DROP + b"; "
_KEEP: Final = b'cat >> "./$t"'
_KEEP_SPARSE: Final = b"tar -x -o --no-same-permissions -f -"
_OR_DROP: Final = b' || { rm -f -- "./$t"; exit 95; }; '
# After a broken connection, the bytes are kept for the next attempt.
_CHECK: Final = b'set -- $(ls -ldn "./$t"); [ "$5" = %d ] || exit 94; '
_CLEAR: Final = b'rm -f -- "./$t.at"; '


class SingleSender:
    """Sends files one by one over one session; remembers which directories exist."""

    def __init__(self, shells: Shells, state: SessionState) -> None:
        self._shells = shells
        self._compression = shells.compression
        self._capabilities = state.capabilities
        self._dirs = RemoteDirs(shells, state.location)
        self._parts = PartialFiles(self._dirs)
        self._striped = StripedSender(shells, self._dirs, self._parts, state)
        self._find_zeros = state.find_zeros
        self._buffer = bytearray(_CHUNK)

    def send(self, index: int, member: Member, moving: Moving) -> MemberResult:
        """Send one file; raises `TransientError` if the connection broke."""
        try:
            sent = self._send_sparse(member, moving) or self._send_plain(member, moving)
        except FileChangedError as error:
            return MemberResult(index, "", error.problem)
        line, finished = sent
        if finished.status == NOT_UNPACKED:
            self._compression.give_up()
            return self.send(index, member, moving)
        return self._conclude(index, member, line, finished)

    def _choose(self, member: Member, size: int) -> float | None:
        return choose(self._compression, [member], size, self._shells.time_sending)

    def _send_plain(self, member: Member, moving: Moving) -> tuple[IndexLine, CommandResult]:
        existing = 0  # bytes that are there and may be continued
        checksum = self._capabilities.find_checksum(member.algorithm)
        if member.size >= RESUMABLE and not member.from_scratch and checksum:
            existing = self._parts.find(member, moving)
        ratio = self._choose(member, member.size - existing)
        if ratio is None and self._striped.suits(member.size - existing):
            sent = self._striped.send(member, existing, moving)
            if sent is not None and sent[1].status == 0:  # another script renames the file
                publish = _CHECK % member.size + _CLEAR + _publish(member)
                return sent[0], self._dirs.start(member, publish).finish()
            if sent is not None:
                return sent
            existing = 0
        begin = resume(existing, checksum) if existing else _BEGIN
        take = begin + unpack(_KEEP, ratio) + _OR_DROP + _CHECK % member.size
        stream = self._dirs.start(member, take + _publish(member))
        writer = CompressedWriter(
            stream, self._compression, ratio, estimate_overhead(1, self._shells.round_trip)
        )
        self._shells.prepare()
        try:
            line = self._send_rest(writer, member, existing, moving) if existing else None
            if line is None:
                with open_content(member) as source:
                    line = self._send_content(writer, source, moving)
        except FileChangedError:
            stream.close()
            self._parts.give_up(member)
            raise
        except TransientError as error:
            return IndexLine(""), finish_refused(stream, error)
        return line, writer.finish()

    def _send_rest(
        self, writer: CompressedWriter, member: Member, existing: int, moving: Moving
    ) -> IndexLine | None:
        """Send the bytes after `existing`; None if the existing bytes differ."""
        with open_content(member) as source:
            if not compare(writer.stream, source, existing, moving):
                writer.stream.write(b"fresh\n")
                return None
            writer.stream.write(b"append\n")
            moving(0, existing)
            return self._send_content(writer, source, moving)

    def _send_content(
        self, writer: CompressedWriter, source: FileSource | ArchiveSource, moving: Moving
    ) -> IndexLine:
        """Send what was not read yet, the last bytes only if the file has not changed.

        The line has no checksum if the script ended before it had all.
        """
        if isinstance(writer.stream, ThrottledStream) and not writer.compresses:
            complete = writer.stream.send(source, moving)
            return IndexLine.of(source) if complete else IndexLine("")
        for chunk in hold_back(source, source.chunks(self._buffer)):
            writer.write(chunk)
            moving(len(chunk))
        return IndexLine.of(source)

    def _send_sparse(
        self, member: Member, moving: Moving
    ) -> tuple[IndexLine, CommandResult] | None:
        """Send only the data between holes or zeros; None if that saves too little.

        The file stays open from the first check on, so that a change is detected.
        """
        if member.inside or self._capabilities.tar not in ("gnu", "bsd"):
            return None
        with open_source(member, member.algorithm) as source:
            if source.may_have_holes:
                extents = source.find_extents()
                if measure(extents) < source.size * _HOLES_GAIN:
                    return self._send_extents(source, member, extents, moving)
            if self._find_zeros:
                extents = find_data(source, moving)
                if measure(extents) < source.size * _ZEROS_GAIN:
                    return self._send_extents(source, member, extents, moving)
        return None

    def _send_extents(
        self, source: FileSource, member: Member, extents: Sequence[Extent], moving: Moving
    ) -> tuple[IndexLine, CommandResult]:
        """Send these extents of a file; a second script renames it.

        A tar stream is complete before its end marker, so no chunk can be held back.
        """
        head = tar.sparse_header(part_name(member), member.size, member.modified, extents)
        length = measure(extents)
        ratio = self._choose(member, length)
        take = _BEGIN + unpack(_KEEP_SPARSE, ratio) + _OR_DROP + _CHECK % member.size
        stream = self._dirs.start(member, take)
        writer = CompressedWriter(
            stream, self._compression, ratio, estimate_overhead(1, self._shells.round_trip)
        )

        def write(chunk: bytes | memoryview) -> None:
            writer.write(chunk)
            moving(len(chunk))

        moving(0, member.size - length)
        try:
            chunks = source.chunks(self._buffer, extents)
            tar.write_member(write, head, length, chunks)
            checksum = source.finish()
            writer.write(tar.END)
        except FileChangedError:
            stream.close()
            self._dirs.drop(member)
            raise
        except TransientError as error:
            return IndexLine(""), finish_refused(stream, error)
        taken = writer.finish()
        if taken.status != 0:
            return IndexLine(checksum), taken
        return IndexLine(checksum), self._dirs.start(member, _publish(member)).finish()

    def _conclude(
        self, index: int, member: Member, line: IndexLine, finished: CommandResult
    ) -> MemberResult:
        if finished.status is None:
            raise TransientError("The staging host did not report how the file arrived.", code=LOST)
        arrived = finished.status == 0 and line.checksum != ""
        self._dirs.note(member, arrived=arrived)
        if arrived:
            return MemberResult(index, line.checksum, inside=line.inside)
        output = finished.errors or finished.output
        if finished.status == NO_DIRECTORY and not says_full(output):
            raise StagingError(
                "No directories can be created in the staging area.",
                hint="The server's administrator can fix its permissions.",
            )
        return refuse(index, member.remote, output)


def _publish(member: Member) -> bytes:
    """Return the script that sets a complete temporary file's time and mode and renames it."""
    stamp = time.strftime("%Y%m%d%H%M.%S", time.gmtime(member.modified)).encode()
    name = quote(b"./" + member.remote.rpartition(b"/")[2])
    return (
        b'chmod 660 "./$t"; TZ=UTC0 touch -t %b "./$t"; '
        b'if [ -d %b ]; then echo "Is a directory" >&2; exit 96; fi; mv -f -- "./$t" %b'
    ) % (stamp, name, name)
