"""Emulate a distant or slow network on one machine, by a TCP proxy that delays and paces bytes.

    python -m benchmarks.wire PORT --round-trip 28 --rate 100     # milliseconds, Mbit/s

It prints the port on which it listens, and runs until its standard input ends. All connections
share the wire. Each direction has half of the round trip and its own rate: bytes are sent one after
the other, and senders wait while the queue in front of the wire is full. As in TCP, a connection
opens after one round trip, starts slowly, and has at most a window of bytes in flight, by default 4
MiB as in Linux. Nothing is lost, and headers are not counted.
"""

import argparse
import heapq
import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TextIO

_HOST = "127.0.0.1"
_CHUNK = 256 * 1024
_SEGMENT = 1460
_FIRST_WINDOW = 10 * _SEGMENT  # as TCP starts
_QUEUE = 0.05  # seconds that a byte may wait for the wire
_GRAIN = 0.002  # seconds of the wire that a connection uses before the next one has its turn


class Wire(NamedTuple):
    """A network: round trip in seconds, rate in bytes a second (0: no limit), window in bytes."""

    round_trip: float = 0.0
    rate: float = 0.0
    window: int = 4 * 2**20


@contextmanager
def open_wire(wire: Wire, port: int) -> Iterator[tuple[int, int]]:
    """Start a proxy for a local port; yield the port on which it listens, and its process id."""
    command = [
        *(sys.executable, "-m", "benchmarks.wire", str(port)),
        *("--round-trip", str(wire.round_trip * 1e3)),
        *("--rate", str(wire.rate * 8e-6), "--window", str(wire.window)),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.stdin.close()


class Agenda:
    """Planned actions, ordered by time."""

    def __init__(self) -> None:
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def plan(self, moment: float, action: Callable[[], None]) -> None:
        """Plan an action for a time, after earlier ones for the same time."""
        self._count += 1
        heapq.heappush(self._planned, (moment, self._count, action))

    def do_due(self) -> None:
        """Execute all due actions."""
        while self._planned and self._planned[0][0] <= time.monotonic():
            heapq.heappop(self._planned)[2]()

    def next_moment(self) -> float:
        return self._planned[0][0] if self._planned else float("inf")


class Way:
    """One direction of the wire."""

    def __init__(self, wire: Wire, agenda: Agenda) -> None:
        self.agenda = agenda
        self.delay = wire.round_trip / 2
        self.window = wire.window
        self._rate = wire.rate or float("inf")
        self._free = 0.0  # when all that was put on the wire will have left
        self.grain = min(_CHUNK, max(_SEGMENT, int(self._rate * _GRAIN))) if wire.rate else _CHUNK

    def opens(self) -> float:
        """Return the time from which the queue has room, which may be in the past."""
        return self._free - _QUEUE

    def carry(self, size: int, arrive: Callable[[], None]) -> None:
        """Send `size` bytes; call `arrive` when the last one has arrived at the other end."""
        self._free = max(self._free, time.monotonic()) + size / self._rate
        self.agenda.plan(self._free + self.delay, arrive)


class Flow:
    """One direction of one connection, from a source socket to a sink socket."""

    def __init__(self, way: Way, source: socket.socket, sink: socket.socket) -> None:
        self.way = way
        self.source = source
        self.sink = sink
        self.reading = False
        self.ended = False
        self.arrived: deque[memoryview] = deque()
        self._last = False  # whether the end of the stream has arrived
        self._window = min(_FIRST_WINDOW, way.window)
        self._under_way = 0

    @property
    def may_send(self) -> bool:
        return self.reading and self._under_way < self._window

    def take(self) -> int:
        """Receive from the source as much as may be sent now; return the number of bytes."""
        try:
            chunk = self.source.recv(min(self.way.grain, self._window - self._under_way))
        except ConnectionError:
            chunk = b""
        if 0 < len(chunk) < _SEGMENT:  # the sender may wait for an ACK before it sends more
            self.source.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        self._under_way += len(chunk)
        self.reading = bool(chunk)
        self.way.carry(len(chunk), partial(self._arrive, chunk))
        return len(chunk)

    def give(self) -> None:
        """Send arrived bytes to the sink, as many as it accepts."""
        try:
            while self.arrived:
                self._acknowledge(self.sink.send(self.arrived[0]))
            if self._last:
                self.sink.shutdown(socket.SHUT_WR)
                self.ended = True
        except BlockingIOError:
            return
        except OSError:  # the receiver is gone
            self.arrived.clear()
            self.reading = False
            self.ended = True

    def _arrive(self, chunk: bytes) -> None:
        if chunk:
            self.arrived.append(memoryview(chunk))
        else:
            self._last = True
        self.give()

    def _acknowledge(self, size: int) -> None:
        """Acknowledge bytes that the sink has received, after the delay of the way back."""
        rest = self.arrived.popleft()[size:]
        if rest:
            self.arrived.appendleft(rest)
        self.way.agenda.plan(time.monotonic() + self.way.delay, partial(self._widen, size))

    def _widen(self, size: int) -> None:
        """Widen the window: it doubles with each round trip up to its full size."""
        self._under_way -= size
        self._window = min(self._window + size, self.way.window)


class Proxy:
    """A proxy that passes connections to a local port over an emulated network."""

    def __init__(self, wire: Wire, port: int, log: TextIO | None = None) -> None:
        self._wire = wire
        self._target = port
        self._log = log
        self._agenda = Agenda()
        self._there = Way(wire, self._agenda)
        self._back = Way(wire, self._agenda)
        self._flows: list[Flow] = []
        self._listener = socket.create_server((_HOST, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]

    def serve(self) -> None:
        """Serve until the standard input ends."""
        while True:
            self._agenda.do_due()
            self._close_ended()
            sending, pause = self._find_sending()
            full = {flow.sink: flow for flow in self._flows if flow.arrived}
            sources = [sys.stdin, self._listener, *sending]
            readable, writable, _ = select.select(sources, list(full), [], pause)
            if sys.stdin in readable:
                return
            if self._listener in readable:
                self._accept()
            for sink in writable:
                full[sink].give()
            self._take([flow for source, flow in sending.items() if source in readable])

    def _find_sending(self) -> tuple[dict[socket.socket, Flow], float | None]:
        """Return the flows that may send now, and the seconds until the next action."""
        now = time.monotonic()
        moments = [self._agenda.next_moment()]
        sending = {}
        for flow in self._flows:
            if flow.may_send and flow.way.opens() <= now:
                sending[flow.source] = flow
            elif flow.may_send:
                moments.append(flow.way.opens())
        first = min(moments)
        return sending, None if first == float("inf") else max(first - now, 0)

    def _take(self, ready: list[Flow]) -> None:
        """Receive once from each ready flow, and move it to the end of the queue."""
        for flow in ready:
            if flow.way.opens() > time.monotonic():
                continue
            size = flow.take()
            self._flows.remove(flow)
            self._flows.append(flow)
            if self._log:
                near, arrow = (flow.source, ">") if flow.way is self._there else (flow.sink, "<")
                print(f"{time.monotonic():.6f} {near.fileno()} {arrow} {size}", file=self._log)

    def _accept(self) -> None:
        """Accept a connection, which opens after one round trip."""
        near, _ = self._listener.accept()
        self._agenda.plan(time.monotonic() + self._wire.round_trip, partial(self._open, near))

    def _open(self, near: socket.socket) -> None:
        far = socket.socket()
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there, back = Flow(self._there, near, far), Flow(self._back, far, near)
        there.reading = True
        self._flows += [there, back]
        self._there.carry(0, partial(self._reach, back))

    def _reach(self, back: Flow) -> None:
        """Open the connection at the far end, as the third packet of TCP does."""
        back.source.connect((_HOST, self._target))
        back.source.setblocking(False)
        back.sink.setblocking(False)
        back.reading = True

    def _close_ended(self) -> None:
        """Close connections that have ended in both directions or lost one end."""
        over = {flow.sink for flow in self._flows if flow.ended}
        for flow in [flow for flow in self._flows if {flow.source, flow.sink} <= over]:
            self._flows.remove(flow)
            flow.source.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wire", description=__doc__)
    parser.add_argument("port", type=int, help="target of the connections")
    parser.add_argument("--round-trip", type=float, default=0.0, help="milliseconds")
    parser.add_argument("--rate", type=float, default=0.0, help="Mbit/s each way; 0 for no limit")
    parser.add_argument(
        "--window", type=int, default=Wire().window, help="bytes in flight of a connection"
    )
    parser.add_argument("--log", type=argparse.FileType("w"), help="log the bytes passed over time")
    options = parser.parse_args()
    wire = Wire(options.round_trip / 1e3, options.rate / 8e-6, options.window)
    proxy = Proxy(wire, options.port, options.log)
    print(proxy.port, flush=True)
    proxy.serve()


if __name__ == "__main__":
    main()
