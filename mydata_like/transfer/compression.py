"""Decides whether to compress, and writes zstd: only where the network is the bottleneck.

All of it is measured while payloads go: how long the line takes for a byte, how long compressing
one takes, and how fast payloads went in each way. Times are given, never asked for.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from mydata_like.core.errors import FileChangedError
from mydata_like.ssh.session import CommandResult, Stream
from mydata_like.transfer import tar
from mydata_like.transfer.file_source import open_source
from mydata_like.transfer.worker_messages import Member

if TYPE_CHECKING:
    from zstandard import ZstdCompressor


_MEMORY: Final = 32 * 1024 * 1024  # bytes after which what was measured before counts half
_ENOUGH: Final = 16 * 1024 * 1024  # bytes, or
_LONG_ENOUGH: Final = 1.0  # seconds of it, after which a pace is known; a busy processor hiccups
_SMALL: Final = 128 * 1024  # less is sent before another process has started
_LARGE: Final = 32 * 1024 * 1024  # so much is worth a sample while the line is unknown
_MARGIN: Final = 2.0  # times its cost is what compressing must save
_GAIN: Final = 0.9  # of the time without it is the most that a payload may take with it
_PAUSE: Final = 60.0  # seconds without it where it did not pay; the next pause is twice as long
_NEAR: Final = 16.0  # times what compressing costs; a line that takes less is compared again:
_AGAIN: Final = 8  # payloads of which one goes as it is
_USUAL: Final = 2.5e-9  # seconds a byte, before the first was compressed

# What no line is to blame for, in seconds: making a file on the other side, ending its script.
_FILE: Final = 100e-6
_ENDING: Final = 0.01


def excuse(files: int, round_trip: float) -> float:
    """Return the seconds that so many files may take on any line."""
    return files * _FILE + _ENDING + (round_trip if math.isfinite(round_trip) else 0.0)


class ByteCost:
    """How long a byte takes, as it was lately."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._bytes = 0.0

    def add(self, count: int, seconds: float) -> None:
        """Count so many bytes that took so long."""
        self._bytes += count
        self.seconds += seconds
        if self._bytes > _MEMORY:
            self._bytes /= 2
            self.seconds /= 2

    @property
    def known(self) -> bool:
        return self._bytes >= _ENOUGH or self.seconds >= _LONG_ENOUGH

    @property
    def each(self) -> float:
        """Seconds a byte; 0 before there was one."""
        return self.seconds / self._bytes if self._bytes else 0.0


class Compression:
    """What one session has measured, and what follows for its payloads and their pieces.

    Its channels use it at the same time; a count that is lost when two count at the very same
    moment does no harm. `writing` are those that wait for the line just now.
    """

    def __init__(self, *, available: bool) -> None:
        self.writing: set[int] = set()
        self._available = available
        self._line = ByteCost()  # of bytes as they went over the line
        self._packing = ByteCost()  # of bytes that were compressed
        self._plain = ByteCost()  # of a payload's bytes, sent as they are
        self._packed = ByteCost()  # of a payload's bytes, compressed and sent
        self._rests_until = 0.0
        self._pause = _PAUSE
        self._payloads = 0  # that would have gained

    def give_up(self) -> None:
        """Compress nothing any more."""
        self._available = False

    def may_suit(self, size: int, now: float) -> bool:
        """Return whether a payload of this size would gain if its content shrinks."""
        if not self._available or size < _SMALL:
            return False
        if not self._line.known:
            return size >= _LARGE
        return self.pays(0.0, now) and not self._is_to_be_compared()

    def pays(self, ratio: float, now: float) -> bool:
        """Return whether to compress what shrinks to `ratio`; not while the line is unknown."""
        if not self._line.known or now < self._rests_until:
            return False
        saved = self._line.each * (1 - ratio)
        return saved > _MARGIN * self._cost

    @property
    def _cost(self) -> float:
        return self._packing.each or _USUAL

    def _is_to_be_compared(self) -> bool:
        """Return whether a payload goes as it is to tell what that takes, where it is a near thing.

        While all is compressed, a slow disk or a busy processor on the other side looks as a
        slow line does, and the first moments of a connection would be believed forever.
        """
        self._payloads += 1
        return self._payloads % _AGAIN == 0 and self._line.each < _NEAR * self._cost

    def note_packing(self, count: int, seconds: float) -> None:
        """Count bytes and the time that compressing them took."""
        self._packing.add(count, seconds)

    def note_plain(self, count: int, seconds: float) -> None:
        """Count bytes that went as they are, or with none the time until the last had arrived."""
        self._line.add(count, seconds)
        self._plain.add(count, seconds)

    def note_packed(self, count: int, sent: int, seconds: float, now: float) -> None:
        """Count bytes that went as so many fewer, or with none the time until all had arrived.

        What does not pay after all rests for a while: it may be the other side's disk that is
        slow, which looks as a slow line does.
        """
        self._line.add(sent, seconds)
        self._packed.add(count, seconds + count * self._packing.each)
        too_slow = self._packed.each > _GAIN * self._plain.each
        if too_slow and self._packed.seconds > _LONG_ENOUGH and self._plain.known:
            self._packed = ByteCost()
            self._rests_until = now + self._pause
            self._pause *= 2


T = TypeVar("T")

NOT_UNPACKED: Final = 97  # the host's zstd failed, or was cut short

_LEVEL: Final = 1  # a higher one takes twice as long for the last twentieth
_SAMPLE: Final = 64 * 1024  # bytes of a file that are tried
_SHRINKS: Final = 0.9  # of its size is what a sample must shrink to
_TRIED: Final = 15  # pieces after which one is compressed though what came before did not shrink

# What has left us is unpacked after our last byte at the latest, while nothing moves on the line.
# No frame is less than this part of its content, so that this does not take forever.
_LEAST: Final = 16

_HEADER: Final = b"\x28\xb5\x2f\xfd\xa0%b"  # a single segment of so many bytes, without a check
_SKIPPED: Final = b"\x50\x2a\x4d\x18%b%b"
_BLOCK: Final = 128 * 1024

# `u` is how zstd ended, `k` how the command did. Where that ends first, zstd is ended by SIGPIPE
# (141), and it is the command that knows why. A command that is content leaves nothing unread.
_UNPACK: Final = (
    b"exec 4>&1; "
    b"u=$({ { zstd -dcq 4>&-; echo $? >&3; } | { (%b) && cat >/dev/null; } >&4 3>&- 4>&-; } 3>&1); "
    b"k=$?; case $u in 0|141) ;; *) exit %d;; esac; [ $k = 0 ]"
)


def unpack(command: bytes, ratio: float | None) -> bytes:
    """Return the script that gives its input to a command, and succeeds as that does.

    With a `ratio` it is unpacked first; where that fails, the script ends with `NOT_UNPACKED`,
    and nothing that the command made or said is a proof.
    """
    return command if ratio is None else _UNPACK % (command, NOT_UNPACKED)


def choose(compression: Compression, members: Sequence[Member], size: int) -> float | None:
    """Return to what part of its size a payload shrinks, or None where it goes as it is."""
    if not compression.may_suit(size, time.monotonic()):
        return None
    some = {0, len(members) // 2, len(members) - 1}
    sample = b"".join(_look_into(members[index]) for index in some)
    if not sample:
        return None
    ratio = len(_compress(_compressor(), sample, compression)) / len(sample)
    return ratio if ratio < _SHRINKS else None


class CompressedWriter:
    """What the input of a remote command is written to: in frames where there is a `ratio`.

    All the time that its bytes take counts as the line's, from the first to the command's end,
    but for what is `excused`. The first ones go at once, since the line has room for them; how
    long they took is known at the end, which small payloads reach without ever having waited.
    """

    def __init__(
        self,
        stream: Stream,
        compression: Compression,
        ratio: float | None,
        excused: float = 0.0,
    ) -> None:
        self.stream = stream
        self._compression = compression
        self._excused = excused
        self._ratio = ratio or 0.0  # of what was compressed last
        self._compressor = None if ratio is None else _compressor()
        self._untried = 0  # pieces since then

    def write(self, piece: bytes | memoryview) -> None:
        """Write a piece, or the frame that holds it."""
        if not piece:
            return
        if self._compressor is None:
            self._send_plain(piece)
        elif self._is_worth_it():
            self._send_compressed(self._compressor, piece)
        else:
            self._untried += 1
            self._send_plain(store(piece))

    def finish(self) -> CommandResult:
        """End the stream, and return how the command did."""
        finished, seconds = self._time(self.stream.finish)
        if self._compressor is None or self._untried:
            self._compression.note_plain(0, seconds)
        else:
            self._compression.note_packed(0, 0, seconds, time.monotonic())
        return finished

    def _is_worth_it(self) -> bool:
        """Return whether to compress the next piece; now and then one is tried all the same."""
        expected = self._ratio if self._untried < _TRIED else 0.0
        return self._compression.pays(expected, time.monotonic())

    def _send_plain(self, content: bytes | memoryview) -> None:
        _, seconds = self._time(lambda: self.stream.write(content))
        self._compression.note_plain(len(content), seconds)

    def _send_compressed(self, compressor: "ZstdCompressor", piece: bytes | memoryview) -> None:
        frame = fill(_compress(compressor, piece, self._compression), len(piece))
        self._ratio, self._untried = len(frame) / len(piece), 0
        _, seconds = self._time(lambda: self.stream.write(frame))
        self._compression.note_packed(len(piece), len(frame), seconds, time.monotonic())

    def _time(self, wait: Callable[[], T]) -> tuple[T, float]:
        """Wait for the line; also return how long, of the time that channels share."""
        writing = self._compression.writing
        begun = time.monotonic()
        writing.add(id(self))
        try:
            outcome = wait()
        finally:
            sharing = len(writing)
            writing.discard(id(self))
        seconds = (time.monotonic() - begun) / sharing
        excused = min(seconds, self._excused)
        self._excused -= excused
        return outcome, seconds - excused


def fill(frame: bytes, size: int) -> bytes:
    """Return a frame with so much content, and with bytes to be skipped where it is too small."""
    short = size // _LEAST - len(frame)
    return frame + _SKIPPED % (short.to_bytes(4, "little"), bytes(short)) if short > 0 else frame


def store(piece: bytes | memoryview) -> bytes:
    """Return the frame that holds these bytes as they are."""
    view = memoryview(piece)
    parts = [_HEADER % len(view).to_bytes(4, "little")]
    for start in range(0, len(view), _BLOCK):
        block = view[start : start + _BLOCK]
        is_last = start + _BLOCK >= len(view)
        parts += [(len(block) << 3 | is_last).to_bytes(3, "little"), bytes(block)]
    return b"".join(parts)


def _compressor() -> "ZstdCompressor":
    from zstandard import ZstdCompressor  # takes 10 ms, and most sessions never need it

    return ZstdCompressor(_LEVEL, write_checksum=True)


def _compress(
    compressor: "ZstdCompressor", content: bytes | memoryview, compression: Compression
) -> bytes:
    """Return the frame, and let the time that it takes be known."""
    begun = time.monotonic()
    frame = compressor.compress(content)
    compression.note_packing(len(content), time.monotonic() - begun)
    return frame


def _look_into(member: Member) -> bytes:
    """Return a sample of a payload's member with its tar header; nothing if it cannot be read."""
    inside = member.inside
    seen = inside[len(inside) // 2].file if inside else member
    try:
        with open_source(seen) as source:
            os.lseek(source.fileno(), max(0, seen.size - _SAMPLE) // 2, os.SEEK_SET)
            content = os.read(source.fileno(), _SAMPLE)
    except (FileChangedError, OSError):  # which the sending will tell
        return b""
    return tar.header(member.remote, seen.size, member.modified) + content
