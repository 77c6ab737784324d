"""Lets several threads wait for data on one socket.

A library that keeps a connection lets one thread in at a time, and what it takes in for one may
be news for another. So one of those who wait watches the socket for all, and whoever used the
library calls the others for whom something has come.
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

_GLANCE: Final = 0.1  # seconds of one wait
_UNHEARD: Final = 0.5  # seconds that what has come waits to be taken in, at most


class _Waiter:
    """A thread that waits until something `is_ready`, which may also fail."""

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self._is_ready = is_ready
        self._error: Exception | None = None
        self.called = Event()
        self.done = False

    def look(self) -> bool:
        """Return whether the wait has just come to its end; only in a turn."""
        if self.done:
            return False
        try:
            self.done = self._is_ready()
        except Exception as error:  # noqa: BLE001 - the waiting thread must get it
            self._error, self.done = _without_frames(error), True
        return self.done

    def conclude(self) -> None:
        """Raise what the question was answered with, if it failed.

        The error's traceback refers to this object, which must not refer to the error: only the
        garbage collector would free what the frames hold, in any thread and outside of a turn.
        """
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error


def _without_frames(error: Exception) -> Exception:
    """Return an error that another thread is to have, without the frames of this one.

    They hold what their functions were given, such as views of a buffer, which cannot be resized
    as long as there are any.
    """
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = each.__context__ = None
        each = each.__cause__
    return error


class SharedSocket(ABC):
    """A connection whose library takes turns, and whose socket many threads may wait for."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._lock = Lock()
        self._waiting: list[_Waiter] = []
        self._retired: list[list[Any]] = []  # with what uses the library once more, to end
        self._watcher: _Waiter | None = None
        self._watches_pending = False
        self._moved = 0.0
        self._bell, self._rope = socket.socketpair()
        for end in (self._bell, self._rope):
            end.settimeout(0)
            weakref.finalize(self, end.close)

    @abstractmethod
    def pump(self) -> None:
        """Let the library take in what has arrived; called in turns, may raise."""

    @abstractmethod
    def is_pending(self) -> bool:
        """Return whether the library has bytes that could not go yet; called in turns."""

    def turn(self) -> Self:
        """Have the library to oneself in a `with` block."""
        # No `contextmanager`: of what a chunk costs, its generators took an eighth.
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
            if kind is None and self._waiting:
                self._call()
        finally:
            self._lock.release()

    def tend(self) -> None:
        """Let the library take in what comes from now on, though nobody may wait for anything.

        So a server that asks whether we are still there is answered, whatever our threads do.
        """
        gone = Event()
        weakref.finalize(self, gone.set)
        line = weakref.ref(self)
        Thread(target=_tend, args=(line, gone), name="ssh-vigil", daemon=True).start()

    def retire(self, held: list[Any]) -> None:
        """Empty a list in the next turn, which has the only references to things of the library.

        Any thread may call this at any time, even in a turn. A list, because the caller may keep
        its own reference to that for a moment longer.
        """
        self._retired.append(held)

    def wait(self, is_ready: Callable[[], bool], patience: float, *, in_all: bool = False) -> bool:
        """Wait until something is ready; it is asked for in turns, by any thread.

        Return False once nothing has moved for so many seconds, or after that time `in_all`.
        What is asked may raise, and so may the library.
        """
        waiter = _Waiter(is_ready)
        with self.turn():
            if waiter.look():
                waiter.conclude()
                return True
            self._waiting.append(waiter)
        began = time.monotonic()
        try:
            while not waiter.done:
                since = began if in_all else max(began, self._moved)
                if time.monotonic() - since >= patience:
                    return False
                self._attend(waiter, min(patience, _GLANCE), in_all=in_all)
        finally:
            self._leave(waiter)
        waiter.conclude()
        return True

    def _attend(self, waiter: _Waiter, seconds: float, *, in_all: bool) -> None:
        """Watch the socket, or wait a moment to be called by the one who does."""
        with self._lock:
            pending = self.is_pending()
            if self._watcher is not None and pending and not self._watches_pending:
                self._ring()  # it has to look for one more thing
            watches = self._watcher is None
            if watches:
                self._watcher, self._watches_pending = waiter, pending
        if not watches:
            waiter.called.wait(seconds)
            waiter.called.clear()
            return
        if in_all:
            dialing.hurry(self._line)
        try:
            moved = self._watch(seconds, writable=pending)
        finally:
            self._watcher = None
        if moved:
            self._moved = time.monotonic()
        with self.turn():
            self.pump()

    def _watch(self, seconds: float, *, writable: bool) -> bool:
        """Wait for the socket or the bell; return whether it was the socket."""
        ready = dialing.wait_ready(self._line, self._bell, writable=writable, seconds=seconds)
        with suppress(BlockingIOError):
            self._bell.recv(4096)
        return ready

    def _leave(self, waiter: _Waiter) -> None:
        """Wait no more; somebody else has to watch from now on."""
        with self._lock:
            self._waiting.remove(waiter)
            if self._waiting and self._watcher is None:
                self._waiting[0].called.set()

    def _call(self) -> None:
        """Call those who need not wait any longer."""
        for waiter in self._waiting:
            if waiter.look():
                waiter.called.set()
                if waiter is self._watcher:
                    self._ring()

    def _ring(self) -> None:
        with suppress(BlockingIOError):
            self._rope.send(b"\0")


def _tend(line: "weakref.ref[SharedSocket]", gone: Event) -> None:
    """Process arrived data at intervals; users of a broken connection notice it themselves."""
    with suppress(UploaderError):
        while not gone.wait(_UNHEARD) and (vigil := line()) is not None:
            with vigil.turn():
                vigil.pump()
            del vigil
