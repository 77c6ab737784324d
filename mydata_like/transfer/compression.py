"""Whether compressing pays on one session: only where the line is the limit, not a processor.

All of it is measured while payloads go: how long the line takes for a byte, how long compressing
one takes, and how fast payloads went in each way. Times are given, never asked for.
"""

import math
from typing import Final

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


class Pace:
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
        self._line = Pace()  # of bytes as they went over the line
        self._packing = Pace()  # of bytes that were compressed
        self._plain = Pace()  # of a payload's bytes, sent as they are
        self._packed = Pace()  # of a payload's bytes, compressed and sent
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
            self._packed = Pace()
            self._rests_until = now + self._pause
            self._pause *= 2
