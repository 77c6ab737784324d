"""The engine's end of one channel worker: its process and the pipe to it."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from threading import Lock

from mydata_like.core.errors import TransientError
from mydata_like.transfer.protocol import (
    LOST,
    Allowance,
    Answer,
    Failed,
    Plan,
    Task,
    unpack_error,
)

Order = Plan | Task | Allowance
Work = Callable[
    ["Connection[Answer, Task | Allowance]", Plan], None
]  # importable: processes are spawned


def wait_for_plan(work: Work, pipe: "Connection[Answer, Task | Allowance]") -> None:
    """Do the work once the plan has come; the process has started up meanwhile."""
    try:
        plan = pipe.recv()
    except (EOFError, OSError, KeyboardInterrupt):
        return  # the engine is gone, or an interrupt came that is the engine's to answer
    assert isinstance(plan, Plan)
    work(pipe, plan)


class WorkerProcess:
    """One channel worker, which begins with its plan; ends for good with `kill` and `reap`."""

    def __init__(self, work: Work, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=wait_for_plan, args=(work, theirs), name=name, daemon=True
        )
        self._telling = Lock()  # of the pipe's way there
        self._hearing = Lock()  # of the pipe's way back
        self._handle = Lock()  # of the process, which is killed while the pipe is in use
        self._reaped = False
        with _interrupts_held():
            self._process.start()
        theirs.close()

    def tell(self, order: Order) -> None:
        """Give the worker its plan, then a task; an allowance at any time, from any thread."""
        with self._telling:
            if self._reaped:
                raise _lost()
            try:
                self._pipe.send(order)
            except OSError as error:
                raise _lost() from error

    def hear(self, patience: float) -> Answer:
        """Wait so many seconds for the worker to say something.

        Raises what the worker failed with, or `TransientError` where it is gone or silent.
        """
        with self._hearing:
            answer = self._receive(patience)
        if isinstance(answer, Failed):
            raise unpack_error(answer)
        return answer

    def _receive(self, patience: float) -> Answer:
        if self._reaped:
            raise _lost()
        try:
            if self._pipe.poll(patience):
                answer: Answer = self._pipe.recv()
                return answer
        except (EOFError, OSError) as error:
            raise _lost() from error
        raise TransientError(
            f"A channel said nothing for {patience:.0f} seconds.", code="channel.stalled"
        )

    def kill(self) -> None:
        """End the process at once; whoever waits to hear from it hears that it is gone."""
        with self._handle:
            if not self._reaped:
                self._process.kill()

    def reap(self) -> None:
        """Give back all that a killed process took; again and again, from any thread."""
        with self._telling, self._hearing, self._handle:
            if self._reaped:
                return
            self._reaped = True
            self._pipe.close()
            self._process.join()
            self._process.close()


def _lost() -> TransientError:
    return TransientError("A channel's process ended while it was at work.", code=LOST)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C from a process that is just starting; it soon ignores it by itself."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
