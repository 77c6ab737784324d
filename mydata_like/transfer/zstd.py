"""Payloads as zstd: frames that are made here and unpacked by the host's own `zstd`.

A frame holds one piece, compressed or as it is (RFC 8878), so that this can change at any piece
of a stream that is under way. Compressed frames carry a check of their content.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from mydata_like.core.errors import FileChangedError
from mydata_like.ssh.session import CommandResult, Stream
from mydata_like.transfer import tar
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.protocol import Member
from mydata_like.transfer.reading import open_source

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

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


class Feed:
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
