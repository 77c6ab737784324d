"""Lets several threads wait for data on one socket.

The library of a connection is used by one thread at a time, and the data it processes for one
thread may be for another. So one of the waiting threads watches the socket for all. A thread that
used the library wakes the threads whose data has arrived.
"""

import socket
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Final, Self

from mydata_like.core.errors import UploaderError
from mydata_like.ssh import dialing

_POLL_INTERVAL: Final = 0.1  # seconds of one wait
_PUMP_INTERVAL: Final = 0.5  # seconds after which arrived data is processed, at most


class _Waiter:
    """A thread that waits until `is_ready`, which may also raise."""

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self._is_ready = is_ready
        self._error: Exception | None = None
        self.woken = Event()
        self.done = False

    def check(self) -> bool:
        """Return whether the wait has just ended; only in a turn."""
        if self.done:
            return False
        try:
            self.done = self._is_ready()
        except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
            self._error, self.done = _without_frames(error), True
        return self.done

    def raise_error(self) -> None:
        """Raise the error of `is_ready`, if it failed.

        The error's traceback refers to this object, which must not refer to the error: such a cycle
        would be freed only by the garbage collector, in any thread and outside of a turn.
        """
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error


def _without_frames(error: Exception) -> Exception:
    """Return an error for another thread, without the frames of this one.

    Frames hold the arguments of their functions, such as views of a buffer, which prevent it from
    being resized.
    """
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = each.__context__ = None
        each = each.__cause__
    return error


class SharedSocket(ABC):
    """A connection whose library is used in turns, and whose socket many threads wait for."""

    def __init__(self, connection: socket.socket) -> None:
        self._watched_socket = connection
        self._lock = Lock()
        self._waiting: list[_Waiter] = []
        self._retired: list[list[Any]] = []  # with objects that use the library when they are freed
        self._watcher: _Waiter | None = None
        self._watches_pending = False
        self.moved = 0.0  # when data has last arrived or left while a thread waited
        self._wake_receiver, self._wake_sender = socket.socketpair()
        for end in (self._wake_receiver, self._wake_sender):
            end.settimeout(0)
            weakref.finalize(self, end.close)

    @abstractmethod
    def pump(self) -> None:
        """Let the library process arrived data; called in turns, may raise."""

    @abstractmethod
    def is_pending(self) -> bool:
        """Return whether the library has unsent bytes; called in turns."""

    def turn(self) -> Self:
        """Use the library exclusively in a `with` block."""
        # Not a `contextmanager`: its generators took an eighth of the time of a chunk.
        return self

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            while self._retired:
                self._retired.pop().clear()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for waiter in self._waiting:
                    if waiter.check():  # its wait has ended
                        waiter.woken.set()
                        if waiter is self._watcher:
                            self._wake_watcher()
        finally:
            self._lock.release()

    def start_pump(self) -> None:
        """Process arrived data from now on in the background, even if no thread waits.

        This answers a server's keepalive requests whatever our threads do.
        """
        gone = Event()
        weakref.finalize(self, gone.set)
        connection = weakref.ref(self)
        Thread(
            target=_pump_repeatedly, args=(connection, gone), name="ssh-vigil", daemon=True
        ).start()

    def retire(self, held: list[Any]) -> None:
        """Empty a list with the only references to objects of the library, in the next turn.

        Any thread may call this at any time, even in a turn. It is a list because the caller may
        keep its own reference to it for a moment longer.
        """
        self._retired.append(held)

    def wait(self, is_ready: Callable[[], bool], timeout: float, *, in_all: bool = False) -> bool:
        """Wait until `is_ready`, which is called in turns, by any thread.

        Return False after `timeout` seconds without progress, or with `in_all`, after that time in
        total. `is_ready` and the library may raise.
        """
        waiter = _Waiter(is_ready)
        with self.turn():
            if waiter.check():
                waiter.raise_error()
                return True
            self._waiting.append(waiter)
        began = time.monotonic()
        try:
            while not waiter.done:
                since = began if in_all else max(began, self.moved)
                if time.monotonic() - since >= timeout:
                    return False
                self._wait_once(waiter, min(timeout, _POLL_INTERVAL), in_all=in_all)
        finally:
            with self._lock:
                self._waiting.remove(waiter)
                if self._waiting and self._watcher is None:
                    self._waiting[0].woken.set()  # it has to watch the socket from now on
        waiter.raise_error()
        return True

    def _wait_once(self, waiter: _Waiter, seconds: float, *, in_all: bool) -> None:
        """Watch the socket, or wait briefly to be woken by the thread that does."""
        with self._lock:
            pending = self.is_pending()
            if self._watcher is not None and pending and not self._watches_pending:
                self._wake_watcher()  # it must also wait until the socket is writable
            watches = self._watcher is None
            if watches:
                self._watcher, self._watches_pending = waiter, pending
        if not watches:
            waiter.woken.wait(seconds)
            waiter.woken.clear()
            return
        if in_all:
            dialing.acknowledge_at_once(self._watched_socket)
        try:
            moved = dialing.wait_ready(
                self._watched_socket, self._wake_receiver, writable=pending, seconds=seconds
            )
            with suppress(BlockingIOError):
                self._wake_receiver.recv(4096)
        finally:
            self._watcher = None
        if moved:
            self.moved = time.monotonic()
        with self.turn():
            self.pump()

    def _wake_watcher(self) -> None:
        with suppress(BlockingIOError):
            self._wake_sender.send(b"\0")


def _pump_repeatedly(connection: "weakref.ref[SharedSocket]", gone: Event) -> None:
    """Process arrived data at intervals; users of a broken connection notice it themselves."""
    with suppress(UploaderError):
        while not gone.wait(_PUMP_INTERVAL) and (shared := connection()) is not None:
            with shared.turn():
                shared.pump()
            del shared
