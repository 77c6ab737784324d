"""A TCP proxy on loopback with faults: slow, stalled, cut or reset connections."""

import socket
import struct
import threading
import time
from contextlib import suppress

_CHUNK = 64 * 1024
_POLL = 0.005  # seconds between checks whether a stall has ended


class TcpProxy:
    """A proxy for a port of this machine; a context manager.

    `latency` is in seconds each way, `bandwidth` in bytes a second each way (0: no limit); both can
    be changed at any time.
    `late`: delays in seconds of the next answers, one after another.
    `stall`: if set, nothing passes any more, and connections stay open.
    `stall_after_answer`: set `stall` after the server has sent so many bytes at once.
    `cut_after`: reset a connection after so many bytes towards the server.
    `down_on`: when a request has this in it, do not pass that part, and go `down`.
    `most`: limit of connections at once; others are closed before the server sends anything.
    """

    def __init__(self, port, *, latency=0.0, bandwidth=0, cut_after=None, buffer=0):
        self.latency = latency
        self.bandwidth = bandwidth
        self.late = []
        self.cut_after = cut_after
        self.stall_after_answer = None
        self.down_on = None
        self._forgotten = set()
        self._buffer = buffer  # bytes of the system for what was not read; 0 for the usual size
        self.most = None
        self.refused = 0
        self._under_way = 0
        self.stall = threading.Event()
        self.passed = 0  # bytes that went towards the server
        self.connections = 0
        self._target = port
        self._pairs = []
        self._threads = []
        self._closing = threading.Event()
        self.port = 0
        self._listen()

    def __enter__(self):
        self._spawn(self._accept)
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._close_listener()
        self.fin_all()
        for thread in self._threads:
            thread.join(60)

    def reset_all(self):
        """Reset all connections."""
        for side in self._sides():
            with suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._close_all()

    def fin_all(self):
        """Shut down all connections normally."""
        for side in self._sides():
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        self._close_all()

    def forget_all(self):
        """Drop all that comes on the present connections, as a firewall that has forgotten them."""
        self._forgotten |= set(self._sides())

    def down(self):
        """Reset all connections and refuse new ones, as the system of a killed server."""
        self._close_listener()
        self.reset_all()

    def up(self):
        """Accept connections again."""
        self._listen()
        self._spawn(self._accept)

    def _listen(self):
        self._listener = socket.create_server(("127.0.0.1", self.port))
        if self._buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._buffer)
        self.port = self._listener.getsockname()[1]

    def _close_listener(self):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _close_all(self):
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for side in pair:
                # A thread in recv() would keep the connection alive beyond close().
                side.close()

    def _sides(self):
        return [side for pair in self._pairs for side in pair]

    def _spawn(self, target, *arguments):
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._closing.wait(2 * self.latency)  # earlier connections are closed by then
                if self.most is not None and self._under_way >= self.most:
                    self.refused += 1
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._target))
                for side in (near, far):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    side.settimeout(0.05)
                self.connections += 1
                self._under_way += 1
                self._pairs.append((near, far))
                if self._closing.is_set():  # perhaps after those of the list were closed
                    self._close_all()
                self._spawn(self._pass, near, far, True)
                self._spawn(self._pass, far, near, False)

    def _pass(self, source, target, upwards):
        self._copy(source, target, upwards)
        self._under_way -= upwards

    def _copy(self, source, target, upwards):
        passed = 0
        with suppress(OSError, ValueError):
            while True:
                self._hold()
                try:
                    data = source.recv(_CHUNK)
                except TimeoutError:
                    continue
                self._hold()
                if source in self._forgotten:
                    continue
                if upwards and self.down_on and self.down_on in data:
                    self.down_on = None
                    self.down()
                    return
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                self._delay(len(data), upwards)
                if upwards and self.cut_after is not None and passed + len(data) > self.cut_after:
                    self._send(target, data[: self.cut_after - passed])
                    self.reset_all()
                    return
                self._send(target, data)
                passed += len(data)
                if upwards:
                    self.passed += len(data)
                elif self.stall_after_answer and len(data) >= self.stall_after_answer:
                    self.stall.set()

    def _send(self, target, data):
        view = memoryview(data)
        while view:
            with suppress(TimeoutError):
                view = view[target.send(view) :]

    def _hold(self):
        while self.stall.is_set() and not self._closing.is_set():
            self._closing.wait(_POLL)

    def _delay(self, count, upwards):
        pause = self.latency + (count / self.bandwidth if self.bandwidth else 0)
        if self.late and not upwards:
            pause += self.late.pop(0)
        if pause:
            self._closing.wait(pause)


class SilentServer:
    """A server that accepts connections and sends nothing; a context manager."""

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        return self

    def __exit__(self, *_):
        self._listener.close()


class ClosingServer(SilentServer):
    """A server that sends a greeting to its first caller, and ends the connection at its answer."""

    def __init__(self, greeting=b"", *, resets=False):
        self._greeting = greeting
        self._resets = resets

    def __enter__(self):
        super().__enter__()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        super().__exit__(*error)
        self._thread.join(60)

    def _serve(self):
        caller, _ = self._listener.accept()
        with caller, suppress(OSError):
            caller.sendall(self._greeting)
            caller.recv(_CHUNK)
            if self._resets:
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def seconds_for(action):
    """Return the duration of an action in seconds."""
    start = time.monotonic()
    action()
    return time.monotonic() - start
