"""The engine's end of a channel worker: its process and the pipe to it."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final

from mydata_like.core.errors import TransientError
from mydata_like.transfer.worker_messages import (
    ALL,
    DROPPED,
    LOST,
    Answer,
    ChannelCommand,
    ChannelReply,
    Order,
    Pipe,
    TaskFailed,
    WorkerConfig,
    pack_error,
    unpack_error,
)

WORKER: Final = "--channel-worker"  # to the program itself, where that is all there is
# No garbage is looked for until all is imported, none of which ever is any.
_BEGIN: Final = (
    "import gc, sys; gc.disable(); sys.path[:] = sys.argv[1:]; from {} import main; main()"
)
_NO_WINDOW: Final = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # on Windows


def build_command(module: str = "mydata_like.transfer.worker", word: str = WORKER) -> Sequence[str]:
    """Return what starts a process of ours, a channel worker by default: `main` of a module.

    A bundle starts itself with the `word`, which `__main__` knows.

    It gets the paths of our modules instead of searching for packages again, and starts without
    the launcher of a virtual environment, which on Windows is a process more.
    """
    if getattr(sys, "frozen", False):
        return (sys.executable, word)
    python = getattr(sys, "_base_executable", None) or sys.executable
    return (python, "-S", "-c", _BEGIN.format(module), *sys.path)


def start_process(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], Pipe]:
    """Start a process of ours; return it with the pipe that is its input and output."""
    with _interrupts_held():
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            creationflags=_NO_WINDOW,
        )
    assert process.stdin
    assert process.stdout
    return process, Pipe(process.stdout, process.stdin)


class WorkerProcess:
    """One channel worker, which begins with its plan; ends for good with `kill` and `reap`.

    `channels` are the numbers of those that it sends payloads for; the caller maintains them.
    """

    def __init__(self, command: Sequence[str], name: str) -> None:
        self._process, self._pipe = start_process(command)
        self.channels: set[int] = set()
        self._inboxes: dict[int, SimpleQueue[Answer]] = {}
        self._last: TaskFailed | None = None  # what all hear from now on
        self._dropped = False  # whether it ends because of one channel, or by our own hand
        self._sorting = Lock()  # of what was said into the inboxes
        self._telling = Lock()  # of the pipe's way there
        self._handle = Lock()  # of the process, which is killed while the pipe is in use
        self._reaped = False
        self._listener = Thread(target=self._listen, name=f"hear {name}", daemon=True)
        self._listener.start()

    def begin(self, plan: WorkerConfig) -> None:
        """Give the worker its plan."""
        with self._telling:
            self._send(plan)

    def tell(self, channel: int, order: Order) -> None:
        """Give a channel an order, from any thread; not before the plan."""
        with self._telling:
            self._send(ChannelCommand(channel, order))

    def hear(self, channel: int, patience: float) -> Answer:
        """Wait so many seconds for a channel to say something.

        Raises what it failed with, or `TransientError` where the worker is gone or silent.
        """
        try:
            answer = self._inbox(channel).get(timeout=patience)
        except Empty:
            raise TransientError(
                f"A channel did not respond for {patience:.0f} seconds.", code="channel.stalled"
            ) from None
        if isinstance(answer, TaskFailed):
            raise unpack_error(answer)
        return answer

    def kill(self) -> None:
        """Kill the process; threads that wait for it get an error."""
        self._dropped = True
        with self._handle:
            if not self._reaped:
                self._process.kill()

    def reap(self) -> None:
        """Release the resources of a killed process; can be called repeatedly from any thread."""
        with self._telling, self._handle:
            if self._reaped:
                return
            self._reaped = True
            self._listener.join()
            self._pipe.close()
            self._process.wait()

    def _send(self, message: WorkerConfig | ChannelCommand) -> None:
        if self._reaped:
            raise _dropped()
        try:
            self._pipe.send(message)
        except OSError as error:
            raise _lost() from error

    def _listen(self) -> None:
        """Sort what is said until nothing more can come."""
        try:
            while True:
                said: ChannelReply = self._pipe.receive()
                if said.channel == ALL:
                    assert isinstance(said.answer, TaskFailed)
                    self._tell_last(said.answer)
                else:
                    self._dropped |= isinstance(said.answer, TaskFailed)
                    self._inbox(said.channel).put(said.answer)
        except (EOFError, OSError):
            self._tell_last(pack_error(_dropped() if self._dropped else _lost()))

    def _inbox(self, channel: int) -> "SimpleQueue[Answer]":
        with self._sorting:
            if channel not in self._inboxes:
                self._inboxes[channel] = SimpleQueue()
                if self._last:
                    self._inboxes[channel].put(self._last)
            return self._inboxes[channel]

    def _tell_last(self, failed: TaskFailed) -> None:
        with self._sorting:
            self._last = self._last or failed
            for inbox in self._inboxes.values():
                inbox.put(self._last)


def _lost() -> TransientError:
    return TransientError("The process of a channel ended during its work.", code=LOST)


def _dropped() -> TransientError:
    return TransientError(
        "The session of a channel was closed because another channel failed.", code=DROPPED
    )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Protect a starting process from Ctrl-C; later it ignores it itself."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
