"""The network itself: the throughput of one plain TCP connection."""

import socket
import threading
import time
from collections.abc import Sequence

from benchmarks.arena import Arena
from benchmarks.contest import Entrant
from benchmarks.measure import Sample
from benchmarks.wire import open_wire

_PIECE = 2**20


class PlainTcp:
    """The files' bytes over the same network emulation, to a receiver that discards them."""

    @property
    def entrants(self) -> Sequence[Entrant]:
        return [Entrant("the wire itself, one TCP connection", "wire")]

    def prepare(self, arena: Arena) -> None:
        """Do nothing."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        assert arena.wire
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            open_wire(arena.wire, listener.getsockname()[1]) as (port, _),
        ):
            taking = threading.Thread(target=_take_all, args=(listener,))
            taking.start()
            began, cpu = time.perf_counter(), time.process_time()
            with socket.create_connection(("127.0.0.1", port)) as connection:
                for path in arena.corpus.files:
                    with (arena.corpus.root / path).open("rb") as file:
                        connection.sendfile(file)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)  # the end of the stream: everything has arrived
            seconds = time.perf_counter() - began
            taking.join()
        return [Sample(seconds, time.process_time() - cpu, 0.0, 0)]


def _take_all(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    buffer = bytearray(_PIECE)
    with connection:
        while connection.recv_into(buffer):
            pass
