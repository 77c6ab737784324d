"""A process that fills one SSH session with test bytes, as a channel worker would.

It connects on request, reports how long that took, and starts sending on a second request.
Bytes are random and come from memory: no disk, no checksum, nothing that could be compressed.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Final, NamedTuple

from mydata_like.core.errors import UploaderError
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.connect import connect
from mydata_like.ssh.session import Endpoint, SshSession, Stream
from mydata_like.transfer.worker_messages import Pipe, take_standard_streams

_PIECE: Final = 256 * 1024
_SWITCH: Final = 0.0002  # seconds, as in a channel worker
_TICK: Final = 0.01  # seconds between two notes of how much has gone
_MINE: Final = Path("/proc/thread-self/schedstat")
_NOTHING: Final = (
    b"exec sh -c 'cat /proc/$PPID/schedstat 2>/dev/null; echo; cat >/dev/null; "
    b"cat /proc/$PPID/schedstat 2>/dev/null; echo'"
)


class FloodOrder(NamedTuple):
    """What is to go over one session: so many streams, until it was so long or so much.

    Where there is no shell, `files` are written by SFTP, one a stream, and removed again.
    """

    endpoint: Endpoint
    streams: int
    seconds: float
    most: int
    files: tuple[bytes, ...] = ()


class FloodReady(NamedTuple):
    """The session stands; that took so many seconds."""

    set_up: float
    cipher: str


class FloodProgress(NamedTuple):
    """So many bytes had gone after so many seconds."""

    seconds: float
    bytes: float


class CpuTime(NamedTuple):
    """For how many seconds somebody was at work, and waited for a processor."""

    seconds: float
    waited: float


class FloodResult(NamedTuple):
    """How it went, and what processors it took; `there` is None where the host does not tell."""

    ticks: tuple[FloodProgress, ...]
    here: CpuTime
    there: CpuTime | None


class FloodRefused(NamedTuple):
    """Nothing went, or not to the end."""

    message: str


Answer = FloodReady | FloodResult | FloodRefused


def main() -> None:
    """Execute one flood after another until the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the test decides what an interrupt means
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sys.setswitchinterval(_SWITCH)
    gc.enable()  # all is imported
    pipe = take_standard_streams()
    with suppress(EOFError, OSError):
        while flood := pipe.receive():
            try:
                _carry_out(flood, pipe)
            except UploaderError as error:
                pipe.send(FloodRefused(error.message))
    os._exit(0)  # streams may be in the middle of a library that would be torn down


def _carry_out(flood: FloodOrder, pipe: Pipe) -> None:
    began = time.monotonic()
    with closing(connect(flood.endpoint)) as session, ExitStack() as stack:
        set_up = time.monotonic() - began
        mouths = [stack.enter_context(mouth) for mouth in _open_mouths(session, flood)]
        pipe.send(FloodReady(set_up, session.cipher))
        pipe.receive()
        used, watch = time.process_time(), _CpuTimer(flood)
        ticks = watch.run(mouths)
        here = CpuTime(time.process_time() - used, watch.waited)
        said = [mouth.end() for mouth in mouths]
    pipe.send(FloodResult(ticks, here, count_there(said)))


class _Sink:
    """Where the bytes of one stream go."""

    def __init__(self, write: Callable[[bytes], None], end: Callable[[], bytes]) -> None:
        self.write = write
        self.end = end  # waits for all of it; returns what the host said

    def __enter__(self) -> "_Sink":
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the stream to its session, which is closed next."""


def _open_mouths(session: SshSession, flood: FloodOrder) -> Iterator[_Sink]:
    if not flood.files:
        for _ in range(flood.streams):
            yield _into_nothing(session.start(_NOTHING))
        return
    sftp = session.open_sftp()
    for name in flood.files[: flood.streams]:
        file = sftp.open_file(name)

        def end(name: bytes = name, close: Callable[[], None] = file.close) -> bytes:
            close()
            sftp.remove(name)
            return b""

        yield _Sink(file.write, end)


def _into_nothing(stream: Stream) -> _Sink:
    return _Sink(stream.write, lambda: stream.finish().output)


class _CpuTimer:
    """Notes how much all streams of a session have moved, while they do."""

    def __init__(self, flood: FloodOrder) -> None:
        self._flood = flood
        self._counting = Lock()
        self._moved = 0
        self.waited = 0.0  # seconds, by all threads, for a processor
        self._ticks = [FloodProgress(0.0, 0)]
        self._error: UploaderError | None = None

    def run(self, mouths: list[_Sink]) -> tuple[FloodProgress, ...]:
        """Fill all streams; raises what one of them failed with."""
        piece = os.urandom(_PIECE)
        began = time.monotonic()
        threads = [Thread(target=self._fill, args=(mouth, piece, began)) for mouth in mouths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error:
            raise self._error
        return (*self._ticks, FloodProgress(time.monotonic() - began, self._moved))

    def _fill(self, mouth: _Sink, piece: bytes, began: float) -> None:
        try:
            going_on = True
            while going_on:
                mouth.write(piece)
                going_on = self._count(len(piece), time.monotonic() - began)
        except UploaderError as error:
            self._error = error
        with self._counting, suppress(OSError, ValueError):
            self.waited += _read_line(_MINE.read_bytes()).waited

    def _count(self, moved: int, seconds: float) -> bool:
        """Count what has gone; return whether more is wanted. Something always goes."""
        with self._counting:
            self._moved += moved
            if seconds >= self._ticks[-1].seconds + _TICK:
                self._ticks.append(FloodProgress(seconds, self._moved))
            return seconds < self._flood.seconds and self._moved < self._flood.most


_REPORT: Final = 64 * 1024  # bytes of what a host prints of a session; two lines are wanted


def count_there(said: list[bytes]) -> CpuTime | None:
    """Return what the host's sshd did for this session, if it could be asked.

    Its line in /proc/PID/schedstat is printed before and after: nanoseconds at work, and ready
    for it. A session is one process without further threads.
    """
    try:
        reports = [[line for line in text[:_REPORT].splitlines() if line.strip()] for text in said]
        before = min(_read_line(report[0]) for report in reports)
        after = max(_read_line(report[1]) for report in reports)
    except (IndexError, ValueError):
        return None
    if not after.seconds:  # a kernel that does not count
        return None
    return CpuTime(after.seconds - before.seconds, after.waited - before.waited)


def _read_line(line: bytes) -> CpuTime:
    at_work, waited = map(parse_count, line.split()[:2])
    if at_work is None or waited is None:
        raise ValueError("no line of schedstat")
    return CpuTime(at_work / 1e9, waited / 1e9)
