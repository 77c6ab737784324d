"""A process that fills one SSH session with test bytes, as a channel worker would.

It connects on request, reports how long that took, and starts to send on a second request.
The bytes are random and come from memory: no disk, no checksum, and no effect of compression.
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
_TICK: Final = 0.01  # seconds between two progress records
_MINE: Final = Path("/proc/thread-self/schedstat")
_NOTHING: Final = (
    b"exec sh -c 'cat /proc/$PPID/schedstat 2>/dev/null; echo; cat >/dev/null; "
    b"cat /proc/$PPID/schedstat 2>/dev/null; echo'"
)


class FloodOrder(NamedTuple):
    """A flood of one session: the number of streams, and the seconds or bytes after which it ends.

    If the host has no shell, each stream writes one of `files` over SFTP and removes it again.
    """

    endpoint: Endpoint
    streams: int
    seconds: float
    most: int
    files: tuple[bytes, ...] = ()


class FloodReady(NamedTuple):
    """The session is connected; `set_up` is the time that took in seconds."""

    set_up: float
    cipher: str


class FloodProgress(NamedTuple):
    """The number of bytes sent after a number of seconds."""

    seconds: float
    bytes: float


class CpuTime(NamedTuple):
    """Processor time in seconds, and the time spent waiting for a free processor."""

    seconds: float
    waited: float


class FloodResult(NamedTuple):
    """The progress and the processor time of a flood; `there` is None if the host reports none."""

    ticks: tuple[FloodProgress, ...]
    here: CpuTime
    there: CpuTime | None


class FloodRefused(NamedTuple):
    """A flood that failed."""

    message: str


Answer = FloodReady | FloodResult | FloodRefused


def main() -> None:
    """Execute one flood after another until the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the test decides what an interrupt means
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sys.setswitchinterval(_SWITCH)
    gc.enable()  # all imports are done
    pipe = take_standard_streams()
    with suppress(EOFError, OSError):
        while flood := pipe.receive():
            try:
                _run_order(flood, pipe)
            except UploaderError as error:
                pipe.send(FloodRefused(error.message))
    os._exit(0)  # threads may still be inside a library that a normal exit would tear down


def _run_order(flood: FloodOrder, pipe: Pipe) -> None:
    began = time.monotonic()
    with closing(connect(flood.endpoint)) as session, ExitStack() as stack:
        set_up = time.monotonic() - began
        sinks = [stack.enter_context(sink) for sink in _open_sinks(session, flood)]
        pipe.send(FloodReady(set_up, session.cipher))
        pipe.receive()
        used, watch = time.process_time(), _CpuTimer(flood)
        ticks = watch.run(sinks)
        here = CpuTime(time.process_time() - used, watch.waited)
        outputs = [sink.end() for sink in sinks]
    pipe.send(FloodResult(ticks, here, count_there(outputs)))


class _Sink:
    """The target of the bytes of one stream."""

    def __init__(self, write: Callable[[bytes], None], end: Callable[[], bytes]) -> None:
        self.write = write
        self.end = end  # waits until all bytes are sent; returns the host's output

    def __enter__(self) -> "_Sink":
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the stream is closed with its session."""


def _open_sinks(session: SshSession, flood: FloodOrder) -> Iterator[_Sink]:
    if not flood.files:
        for _ in range(flood.streams):
            yield _open_discarding(session.start(_NOTHING))
        return
    sftp = session.open_sftp()
    for name in flood.files[: flood.streams]:
        file = sftp.open_file(name)

        def end(name: bytes = name, close: Callable[[], None] = file.close) -> bytes:
            close()
            sftp.remove(name)
            return b""

        yield _Sink(file.write, end)


def _open_discarding(stream: Stream) -> _Sink:
    return _Sink(stream.write, lambda: stream.finish().output)


class _CpuTimer:
    """The bytes that all streams of a session have sent over time, and their processor time."""

    def __init__(self, flood: FloodOrder) -> None:
        self._flood = flood
        self._counting = Lock()
        self._moved = 0
        self.waited = 0.0  # seconds, by all threads, for a processor
        self._ticks = [FloodProgress(0.0, 0)]
        self._error: UploaderError | None = None

    def run(self, sinks: list[_Sink]) -> tuple[FloodProgress, ...]:
        """Fill all streams. Raises the error of a stream that failed."""
        piece = os.urandom(_PIECE)
        began = time.monotonic()
        threads = [Thread(target=self._fill, args=(sink, piece, began)) for sink in sinks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error:
            raise self._error
        return (*self._ticks, FloodProgress(time.monotonic() - began, self._moved))

    def _fill(self, sink: _Sink, piece: bytes, began: float) -> None:
        try:
            wanted = True
            while wanted:
                sink.write(piece)
                wanted = self._count(len(piece), time.monotonic() - began)
        except UploaderError as error:
            self._error = error
        with self._counting, suppress(OSError, ValueError):
            self.waited += _read_line(_MINE.read_bytes()).waited

    def _count(self, moved: int, seconds: float) -> bool:
        """Count sent bytes; return whether to send more. At least one piece is always sent."""
        with self._counting:
            self._moved += moved
            if seconds >= self._ticks[-1].seconds + _TICK:
                self._ticks.append(FloodProgress(seconds, self._moved))
            return seconds < self._flood.seconds and self._moved < self._flood.most


_REPORT: Final = 64 * 1024  # bytes of the host's output for a session; two lines are needed


def count_there(outputs: list[bytes]) -> CpuTime | None:
    """Return the processor time of the host's sshd for this session, or None if unknown.

    Its line in /proc/PID/schedstat is printed before and after the flood: nanoseconds running, and
    nanoseconds waiting for a processor. A session is one process without further threads.
    """
    try:
        reports = [
            [line for line in text[:_REPORT].splitlines() if line.strip()] for text in outputs
        ]
        before = min(_read_line(report[0]) for report in reports)
        after = max(_read_line(report[1]) for report in reports)
    except (IndexError, ValueError):
        return None
    if not after.seconds:  # a kernel without these statistics
        return None
    return CpuTime(after.seconds - before.seconds, after.waited - before.waited)


def _read_line(line: bytes) -> CpuTime:
    at_work, waited = map(parse_count, line.split()[:2])
    if at_work is None or waited is None:
        raise ValueError("not a line of schedstat")
    return CpuTime(at_work / 1e9, waited / 1e9)
