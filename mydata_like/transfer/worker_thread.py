"""A channel worker in a thread of the engine, for a login that cannot be made twice."""

from queue import SimpleQueue
from threading import Thread
from typing import Any

from mydata_like.transfer.worker import process
from mydata_like.transfer.worker_messages import Pipe


class _QueuePipe(Pipe):
    """One end of a pipe within a process; None is its end."""

    def __init__(self, incoming: SimpleQueue[Any], outgoing: SimpleQueue[Any]) -> None:
        self._received = incoming
        self._sent = outgoing

    def send(self, message: object) -> None:
        self._sent.put(message)

    def receive(self) -> Any:
        message = self._received.get()
        if message is None:
            raise EOFError
        return message

    def close(self) -> None:
        self._sent.put(None)
        self._received.put(None)


class WorkerThread:
    """The thread, with those methods of `subprocess.Popen` that a `WorkerProcess` calls."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._thread = Thread(target=self._work, name="worker", daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Let the thread end; its session is closed."""
        self._pipe.close()

    def wait(self, timeout: float) -> None:
        """Wait for the end of the thread, up to `timeout` seconds."""
        self._thread.join(timeout)

    def poll(self) -> int | None:
        """Return None until the thread has ended."""
        return None if self._thread.is_alive() else 0

    def _work(self) -> None:
        process(self._pipe, exits=False)
        self._pipe.close()


def start_thread() -> tuple[WorkerThread, Pipe]:
    """Start a worker; return it with the pipe to it."""
    there: SimpleQueue[Any] = SimpleQueue()
    back: SimpleQueue[Any] = SimpleQueue()
    return WorkerThread(_QueuePipe(there, back)), _QueuePipe(back, there)
