"""The engine's end of a channel worker: its process and the pipe to it."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final, Protocol

from mydata_like.core.errors import TransientError
from mydata_like.transfer.destination import StagingDestination
from mydata_like.transfer.worker_messages import (
    ALL,
    DROPPED,
    LOST,
    STALLED,
    ChannelCommand,
    ChannelReply,
    Command,
    Pipe,
    Reply,
    TaskFailed,
    WorkerConfig,
    WorkerService,
    pack_error,
    unpack_error,
)

WORKER: Final = "--channel-worker"  # option of the bundled program, which starts itself
# Imports create no garbage, so collection is off until they are done.
_BEGIN: Final = (
    "import gc, sys; gc.disable(); sys.path[:] = sys.argv[1:]; from {} import main; main()"
)
# On Windows, without a console: a hidden one would be another process for each worker. In Wine 8,
# that process keeps the pipes of a worker that is killed while it starts. A worker starts no
# programs; their consoles would be visible.
_DETACHED: Final = getattr(subprocess, "DETACHED_PROCESS", 0)


def build_command(module: str = "mydata_like.transfer.worker", word: str = WORKER) -> Sequence[str]:
    """Return the command that runs `main` of a module in a new process, by default a worker.

    A bundle starts itself with the `word`, which `__main__` handles.

    The process receives `sys.path`, so it does not search for packages again. It starts without the
    launcher of a virtual environment, which is an additional process on Windows.
    """
    if getattr(sys, "frozen", False):
        return (sys.executable, word)
    python = getattr(sys, "_base_executable", None) or sys.executable
    return (python, "-S", "-c", _BEGIN.format(module), *sys.path)


def start_process(
    command: Sequence[str], keeps: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], Pipe]:
    """Start one of our processes, which keeps these descriptors open.

    Returns it with the pipe to its input and output.
    """
    with _interrupts_held():
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            creationflags=_DETACHED,
            pass_fds=keeps,
        )
    assert process.stdin
    assert process.stdout
    return process, Pipe(process.stdout, process.stdin)


class WorkerHandle(Protocol):
    """What is known of a worker's process, as of `subprocess.Popen`."""

    def kill(self) -> None: ...

    def wait(self, timeout: float) -> object: ...

    def poll(self) -> int | None: ...


Start = Callable[[], tuple[WorkerHandle, Pipe]]

DYING: Final = 5.0  # seconds for a killed process to end; milliseconds are usual


class WorkerProcess:
    """A channel worker, which starts with `begin` and ends with `kill` and `reap`.

    Its pool maintains what it knows of it: the `destination`, the numbers of its `channels`, the
    one of them that is its `founder`, whether its session `is_open`, whether it `takes_guests`
    (large files of other workers' channels), and whether it was started with capabilities
    `recalled` from an earlier run.
    """

    def __init__(self, command: Sequence[str] | Start, name: str) -> None:
        self._process, self._pipe = command() if callable(command) else start_process(command)
        self.destination: StagingDestination | None = None
        self.channels: set[int] = set()
        self.founder = 0
        self.is_open = False
        self.takes_guests = True
        self.recalled = False
        self._inboxes: dict[int, SimpleQueue[Reply]] = {}
        self._last: TaskFailed | None = None  # the reply for every channel from now on
        self._dropped = False  # whether it ends because of one channel or `kill`
        self._inbox_lock = Lock()  # for the inboxes
        self._send_lock = Lock()  # for sending to the pipe
        self._process_lock = Lock()  # for the process, which is killed while the pipe is in use
        self._reaped = False
        self._ending = 0.0  # until when `reap` waits for the end of the process
        self._listener = Thread(target=self._listen, name=f"hear {name}", daemon=True)
        self._listener.start()

    @property
    def host(self) -> str:
        return self.destination.host if self.destination else ""

    @property
    def is_closed(self) -> bool:
        """Whether the process was ended by its pool."""
        return self._reaped

    def begin(self, plan: WorkerConfig | WorkerService) -> None:
        """Send the worker its configuration, or the work of another kind."""
        self._send(plan)

    def send(self, channel: int, command: Command) -> None:
        """Send a command to a channel, from any thread; call `begin` first."""
        self._send(ChannelCommand(channel, command))

    def receive(self, channel: int, timeout: float) -> Reply:
        """Wait up to `timeout` seconds for a reply of a channel.

        Raises the channel's failure, or `TransientError` if the worker has ended or does not reply.
        """
        try:
            reply = self._inbox(channel).get(timeout=timeout)
        except Empty:
            raise TransientError(
                f"A channel did not respond for {timeout:.0f} seconds.", code=STALLED
            ) from None
        if isinstance(reply, TaskFailed):
            raise unpack_error(reply)
        return reply

    def await_end(self, seconds: float) -> None:
        """Wait until the process has ended, at most so long."""
        self._listener.join(seconds)

    def kill(self) -> None:
        """Kill the process; threads that wait for it get an error, at the latest from `reap`."""
        self._dropped = True
        with self._process_lock:
            if not self._reaped:
                self._process.kill()
                self._ending = time.monotonic() + DYING

    def reap(self) -> None:
        """Release the resources of a killed process; can be called repeatedly from any thread.

        A process that waits for a lost folder in a system call cannot be ended. It is left behind,
        and released when it has ended.
        """
        with self._send_lock, self._process_lock:
            if self._reaped:
                return
            self._reaped = True
            self._listener.join(max(0.0, self._ending - time.monotonic()))
            if self._listener.is_alive():
                self._fail_all(pack_error(_dropped()))
            else:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(DYING)
            if not self.release_if_ended():
                _left.add(self)

    def release_if_ended(self) -> bool:
        """Release the resources of a killed process, if it has ended by now."""
        if self._listener.is_alive() or self._process.poll() is None:
            return False
        self._pipe.close()
        return True

    def _send(self, message: WorkerConfig | WorkerService | ChannelCommand) -> None:
        with self._send_lock:
            if self._reaped:
                raise _dropped()
            try:
                self._pipe.send(message)
            except OSError as error:
                raise (_dropped() if self._dropped else _lost()) from error

    def _listen(self) -> None:
        """Put replies into the inboxes of their channels until the pipe ends."""
        try:
            while True:
                message: ChannelReply = self._pipe.receive()
                if message.channel == ALL:
                    assert isinstance(message.reply, TaskFailed)
                    self._fail_all(message.reply)
                else:
                    self._dropped |= isinstance(message.reply, TaskFailed)
                    self._inbox(message.channel).put(message.reply)
        except (EOFError, OSError):
            self._fail_all(pack_error(_dropped() if self._dropped else _lost()))

    def _inbox(self, channel: int) -> "SimpleQueue[Reply]":
        with self._inbox_lock:
            if channel not in self._inboxes:
                self._inboxes[channel] = SimpleQueue()
                if self._last:
                    self._inboxes[channel].put(self._last)
            return self._inboxes[channel]

    def _fail_all(self, failed: TaskFailed) -> None:
        with self._inbox_lock:
            self._last = self._last or failed
            for inbox in self._inboxes.values():
                inbox.put(self._last)


class _LeftBehind:
    """The processes that could not be ended yet."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: list[WorkerProcess] = []

    def add(self, process: WorkerProcess) -> None:
        """Add one, and release those that have ended."""
        with self._lock:
            self._processes.append(process)
        self.count()

    def count(self) -> int:
        """Release those that have ended; return the number of the others."""
        with self._lock:
            self._processes = [one for one in self._processes if not one.release_if_ended()]
            return len(self._processes)


_left: Final = _LeftBehind()


def count_left_behind() -> int:
    """Return the number of processes that were killed and have not ended."""
    return _left.count()


class WorkerStarter:
    """Starts workers, optionally the first one before it is needed.

    `most` is the number of channels if all of them have to share one session, else 0.
    """

    def __init__(self, command: Sequence[str] | Start = (), most: int = 0) -> None:
        self._command = command or build_command()
        self.most = most
        self._lock = Lock()
        self._early: WorkerProcess | None = None
        self._first: Start | None = None
        self.started = False  # whether the first one was started, or is not wanted

    def start_early(self) -> None:
        """Start the first process, unless it was started already."""
        with self._lock:
            if not self.started:
                self.started = True
                self._early = WorkerProcess(self._command, "session 1")

    @property
    def is_expected(self) -> bool:
        """Whether there is something to send, as far as is known."""
        return self.started or self._first is not None

    def start_first_with(self, start: Start) -> None:
        """Start the first one in another way, unless it was started already."""
        with self._lock:
            self._first = None if self.started else start

    def start(self, name: str) -> WorkerProcess:
        """Return a process that waits for its configuration."""
        with self._lock:
            first, self._first = self._first, None
        return self._take_early() or WorkerProcess(first or self._command, name)

    def close(self) -> None:
        """End a process that was not needed."""
        if early := self._take_early():
            early.kill()
            early.reap()

    def _take_early(self) -> WorkerProcess | None:
        with self._lock:
            early, self._early, self.started = self._early, None, True
        return early


def _lost() -> TransientError:
    return TransientError("The process of a channel ended during its work.", code=LOST)


def _dropped() -> TransientError:
    return TransientError(
        "The session of a channel was closed because another channel failed.", code=DROPPED
    )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Protect a starting process from Ctrl-C; later it ignores the signal itself."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
