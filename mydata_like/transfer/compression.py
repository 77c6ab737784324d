"""Decides whether to compress, and writes zstd: only where the network is the bottleneck.

The decision uses measurements of the current session: the time per byte on the network, the time to
compress a byte, and the rate of payloads sent either way. Callers pass in the time.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from mydata_like.core.errors import FileChangedError
from mydata_like.ssh.session import CommandResult, Stream
from mydata_like.transfer import tar
from mydata_like.transfer.file_source import open_source
from mydata_like.transfer.worker_messages import Member

if TYPE_CHECKING:
    from zstandard import ZstdCompressor


_MEMORY: Final = 32 * 1024 * 1024  # bytes after which earlier measurements count half
_ENOUGH: Final = 16 * 1024 * 1024  # bytes, or
_LONG_ENOUGH: Final = 1.0  # seconds, after which a cost is known; shorter times are too noisy
_SMALL: Final = 128 * 1024  # bytes; less is sent before another process has started
_LARGE: Final = 32 * 1024 * 1024  # bytes; justifies frames while the cost is unknown
_PROBED: Final = 1024 * 1024  # bytes; justifies a probe of the network
_PROBES: Final = (64 * 1024, 1024 * 1024)  # bytes; on a fast network the first takes too little
_PROBE_ENOUGH: Final = 0.03  # seconds; a probe that takes longer is not repeated with more bytes
_MARGIN: Final = 2.0  # compression must save this many times its cost
_GAIN: Final = 0.9  # a compressed payload may take at most this part of the uncompressed time
_PAUSE: Final = 60.0  # seconds without compression after it did not pay; doubles each time
_NEAR: Final = 16.0  # times the cost of compression; below this the gain is checked again:
_AGAIN: Final = 8  # one in so many payloads is sent uncompressed
_USUAL: Final = 2.5e-9  # seconds per byte, assumed before the first measurement

# Times in seconds that do not depend on the network: create a remote file, end its script.
_FILE: Final = 100e-6
_ENDING: Final = 0.01


def estimate_overhead(files: int, round_trip: float) -> float:
    """Return the seconds that so many files take on any network."""
    return files * _FILE + _ENDING + (round_trip if math.isfinite(round_trip) else 0.0)


class ByteCost:
    """The recent time per byte."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._bytes = 0.0

    def add(self, count: int, seconds: float) -> None:
        """Add bytes and the seconds they took."""
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
        """Seconds per byte; 0 before the first byte."""
        return self.seconds / self._bytes if self._bytes else 0.0


class Compression:
    """The measurements of one session, and the decisions for its payloads and their pieces.

    Channels use it concurrently. A count that is lost in a race does no harm. `writing` has the
    writers that currently wait for the network.
    """

    def __init__(self, *, available: bool) -> None:
        self.writing: set[int] = set()
        self._available = available
        self._line = ByteCost()  # of bytes as sent over the network
        self._packing = ByteCost()  # of bytes that were compressed
        self._plain = ByteCost()  # of a payload's bytes, sent uncompressed
        self._packed = ByteCost()  # of a payload's bytes, compressed and sent
        self._paused_until = 0.0
        self._pause = _PAUSE
        self._payloads = 0  # payloads that compression would have helped
        self._probing = Lock()
        self._is_probed = False

    @property
    def is_known(self) -> bool:
        """Whether the time per byte on the network is known."""
        return self._is_probed or self._line.known

    def probe(self, send: Callable[[bytes], float]) -> None:
        """Measure the network if it is unknown, once for all channels.

        `send` sends bytes, and returns the seconds until the host had them; infinity if this does
        not tell the time per byte.
        """
        with self._probing:
            for size in _PROBES:
                if self.is_known:
                    return
                seconds = send(os.urandom(size))
                if seconds == math.inf:
                    return
                if seconds > _PROBE_ENOUGH or size == _PROBES[-1]:
                    self._line.add(size, seconds)
                    self._is_probed = True

    def give_up(self) -> None:
        """Stop compressing in this session."""
        self._available = False

    def may_suit(self, size: int, now: float, least: int = _LARGE) -> bool:
        """Return whether a payload of this size would benefit if its content compresses well.

        `least` is the size from which it may while the network is unknown.
        """
        if not self._available or size < _SMALL:
            return False
        if not self.is_known:
            return size >= least
        return self.pays(0.0, now) and not self._is_to_be_compared()

    def pays(self, ratio: float, now: float) -> bool:
        """Return whether to compress data that shrinks to `ratio`; False if costs are unknown."""
        if not self.is_known or now < self._paused_until:
            return False
        saved = self._line.each * (1 - ratio)
        return saved > _MARGIN * self._cost

    @property
    def _cost(self) -> float:
        return self._packing.each or _USUAL

    def _is_to_be_compared(self) -> bool:
        """Return whether to send a payload uncompressed to measure the time, if the gain is small.

        If everything is compressed, a slow disk or a busy processor on the host looks like a slow
        network, and the first measurements of a connection would never be corrected.
        """
        self._payloads += 1
        return self._payloads % _AGAIN == 0 and self._line.each < _NEAR * self._cost

    def note_packing(self, count: int, seconds: float) -> None:
        """Add bytes and the seconds that compressing them took."""
        self._packing.add(count, seconds)

    def note_plain(self, count: int, seconds: float) -> None:
        """Add bytes that were sent uncompressed; `count` is 0 for the wait at the end."""
        self._line.add(count, seconds)
        self._plain.add(count, seconds)

    def note_packed(self, count: int, sent: int, seconds: float, now: float) -> None:
        """Add bytes that were sent compressed; `count` is 0 for the wait at the end.

        If compression does not pay, it is paused: the host's disk may be slow, which looks like a
        slow network.
        """
        self._line.add(sent, seconds)
        self._packed.add(count, seconds + count * self._packing.each)
        too_slow = self._packed.each > _GAIN * self._plain.each
        if too_slow and self._packed.seconds > _LONG_ENOUGH and self._plain.known:
            self._packed = ByteCost()
            self._paused_until = now + self._pause
            self._pause *= 2


T = TypeVar("T")

NOT_UNPACKED: Final = 97  # the host's zstd failed or its input was truncated

_LEVEL: Final = 1  # a higher level takes twice as long for the last 5 percent
_SAMPLE: Final = 64 * 1024  # bytes of a file in the sample
_SHRINKS: Final = 0.9  # a sample must shrink to less than this part of its size
_TRIED: Final = 15  # pieces sent uncompressed after which one is compressed as a test

# The host may still unpack after our last byte, while nothing moves on the network. A frame is
# therefore never smaller than this part of its content, which bounds the time.
_LEAST: Final = 16

_HEADER: Final = b"\x28\xb5\x2f\xfd\xa0%b"  # a single segment of so many bytes, without a check
_SKIPPED: Final = b"\x50\x2a\x4d\x18%b%b"
_BLOCK: Final = 128 * 1024

# `u` is the exit status of zstd, `k` that of the command. If the command ends first, zstd is ended
# by SIGPIPE (141), and the command's status counts. A successful command leaves nothing unread.
_UNPACK: Final = (
    b"exec 4>&1; "
    b"u=$({ { zstd -dcq 4>&-; echo $? >&3; } | { (%b) && cat >/dev/null; } >&4 3>&- 4>&-; } 3>&1); "
    b"k=$?; case $u in 0|141) ;; *) exit %d;; esac; [ $k = 0 ]"
)


def unpack(command: bytes, ratio: float | None) -> bytes:
    """Return the script that passes its input to a command and has its exit status.

    With a `ratio`, the input is unpacked first. If that fails, the script ends with `NOT_UNPACKED`,
    and the effects and output of the command prove nothing.
    """
    return command if ratio is None else _UNPACK % (command, NOT_UNPACKED)


def choose(
    compression: Compression,
    members: Sequence[Member],
    size: int,
    send: Callable[[bytes], float] | None = None,
) -> float | None:
    """Return the expected compression ratio of a payload, or None to send it uncompressed.

    With `send`, an unknown network is probed for a payload that shrinks; see `Compression.probe`.
    """
    if not compression.may_suit(size, time.monotonic(), _PROBED if send else _LARGE):
        return None
    some = {0, len(members) // 2, len(members) - 1}
    sample = b"".join(_read_sample(members[index]) for index in some)
    if not sample:
        return None
    ratio = len(_compress(_compressor(), sample, compression)) / len(sample)
    if ratio >= _SHRINKS:
        return None
    if not compression.is_known and send:
        compression.probe(send)
        if compression.is_known and not compression.pays(ratio, time.monotonic()):
            return None
    return ratio if compression.is_known or size >= _LARGE else None


class CompressedWriter:
    """A writer of a remote command's input; writes zstd frames if there is a `ratio`.

    The time from the first byte to the end of the command counts as network time, except for
    `overhead` seconds. The first writes return at once because buffers are empty. Their real time
    is known at the end, which small payloads reach without having waited.
    """

    def __init__(
        self,
        stream: Stream,
        compression: Compression,
        ratio: float | None,
        overhead: float = 0.0,
    ) -> None:
        self.stream = stream
        self._compression = compression
        self._overhead = overhead
        self._ratio = ratio or 0.0  # of the piece that was compressed last
        self._compressor = None if ratio is None else _compressor()
        self._untried = 0  # uncompressed pieces since then

    @property
    def compresses(self) -> bool:
        """Whether frames are written."""
        return self._compressor is not None

    def write(self, piece: bytes | memoryview) -> None:
        """Write a piece, or the frame that contains it."""
        if not piece:
            return
        if self._compressor is None:
            self._send_plain(piece)
        elif self._pays_now():
            self._send_compressed(self._compressor, piece)
        else:
            self._untried += 1
            self._send_plain(store(piece))

    def finish(self) -> CommandResult:
        """End the stream and return the result of the command."""
        finished, seconds = self._time(self.stream.finish)
        if self._compressor is None or self._untried:
            self._compression.note_plain(0, seconds)
        else:
            self._compression.note_packed(0, 0, seconds, time.monotonic())
        return finished

    def _pays_now(self) -> bool:
        """Return whether to compress the next piece; occasionally one is tried anyway."""
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
        """Wait for the network; also return the seconds, divided by the channels that wait."""
        writing = self._compression.writing
        begun = time.monotonic()
        writing.add(id(self))
        try:
            outcome = wait()
        finally:
            sharing = len(writing)
            writing.discard(id(self))
        seconds = (time.monotonic() - begun) / sharing
        overhead = min(seconds, self._overhead)
        self._overhead -= overhead
        return outcome, seconds - overhead


def fill(frame: bytes, size: int) -> bytes:
    """Return a frame for so much content, padded with a skippable frame if it is too small."""
    short = size // _LEAST - len(frame)
    return frame + _SKIPPED % (short.to_bytes(4, "little"), bytes(short)) if short > 0 else frame


def store(piece: bytes | memoryview) -> bytes:
    """Return a frame that stores these bytes uncompressed."""
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
    """Return the compressed frame and record the time it took."""
    begun = time.monotonic()
    frame = compressor.compress(content)
    compression.note_packing(len(content), time.monotonic() - begun)
    return frame


def _read_sample(member: Member) -> bytes:
    """Return a sample of a member with its tar header; empty if it cannot be read."""
    inside = member.inside
    seen = inside[len(inside) // 2].file if inside else member
    try:
        with open_source(seen) as source:
            os.lseek(source.fileno(), max(0, seen.size - _SAMPLE) // 2, os.SEEK_SET)
            content = os.read(source.fileno(), _SAMPLE)
    except (FileChangedError, OSError):  # reported when it is sent
        return b""
    return tar.header(member.remote, seen.size, member.modified) + content
