"""The wire of the benchmarks: what goes in comes out, no sooner than a real one would let it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.wire import Wire, open_wire

pytestmark = pytest.mark.process

PIECE = bytes(range(256)) * 4096  # 1 MiB


@contextmanager
def echo() -> Iterator[int]:
    """Serve one connection: send back all that comes, then end as the other side has ended."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while chunk := connection.recv(65536):
                connection.sendall(chunk)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        yield listener.getsockname()[1]
        server.join()


def exchange(wire: Wire, piece: bytes) -> tuple[bytes, float]:
    """Send a piece and the end through the wire; return what came back, and the seconds."""
    with echo() as port, open_wire(wire, port) as (near, _):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", near)) as connection:
            sender = threading.Thread(target=send, args=(connection, piece))
            sender.start()
            received = b"".join(iter(lambda: connection.recv(65536), b""))
            seconds = time.monotonic() - began
            sender.join()
    return received, seconds


def send(connection: socket.socket, piece: bytes) -> None:
    connection.sendall(piece)
    connection.shutdown(socket.SHUT_WR)


def test_what_goes_in_comes_out_and_ends_where_it_ended() -> None:
    received, _ = exchange(Wire(), PIECE)

    assert received == PIECE


def test_nothing_comes_back_sooner_than_opening_and_answer_take() -> None:
    received, seconds = exchange(Wire(round_trip=0.03), b"ping")

    assert received == b"ping"
    assert seconds >= 2 * 0.03


def test_bytes_do_not_pass_faster_than_the_rate() -> None:
    received, seconds = exchange(Wire(rate=10e6), PIECE)

    assert received == PIECE
    assert seconds >= len(PIECE) / 10e6


def test_a_connection_has_no_more_under_way_than_its_window() -> None:
    received, seconds = exchange(Wire(round_trip=0.01, window=len(PIECE) // 4), PIECE)

    assert received == PIECE
    assert seconds >= 4 * 0.01
