"""Connecting to a host with several addresses: one that answers is enough."""

import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.dialing import dial_any
from mydata_like.ssh.session import Endpoint


def endpoint(timeout=5.0):
    return Endpoint(
        host="staging.example.org",
        port=22,
        username="me",
        key_file=Path("key"),
        known_hosts=Path("known"),
        connect_timeout=timeout,
    )


@contextmanager
def listening(family=socket.AF_INET):
    """Yield the address of a host that answers."""
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.create_server((host, 0), family=family) as server:
        yield (family, socket.SOCK_STREAM, 0, "", server.getsockname())


@contextmanager
def silent():
    """Yield the address of a host that never answers: its queue is full."""
    callers = [socket.socket() for _ in range(3)]
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(server.getsockname())
        yield (socket.AF_INET, socket.SOCK_STREAM, 0, "", server.getsockname())
        for caller in callers:
            caller.close()


def refusing():
    """Return the address of a host where nothing listens."""
    with listening() as address:
        return address


def reached(*addresses):
    with dial_any(endpoint(), addresses) as line:
        return line.getpeername()


def test_a_first_address_that_refuses_is_passed_over():
    with listening() as there:
        assert reached(refusing(), refusing(), there) == there[4]


def test_a_first_address_that_is_silent_is_passed_over():
    with silent() as dead, listening() as there:
        assert reached(dead, there) == there[4]


def test_the_other_version_of_addresses_is_tried_second_however_many_there_are():
    with silent() as dead, listening(socket.AF_INET6) as there:
        assert reached(dead, dead, dead, dead, there)[:2] == there[4][:2]


def test_an_address_of_a_kind_that_is_unknown_here_is_passed_over():
    odd = (socket.AF_INET, socket.SOCK_STREAM, 17, "", ("127.0.0.1", 1))
    with listening() as there:
        assert reached(odd, there) == there[4]


def test_when_all_refuse_that_is_said():
    with pytest.raises(TransientError, match="the connection was refused"):
        dial_any(endpoint(), [refusing(), refusing()])


def test_when_all_are_silent_that_is_said_after_the_timeout():
    with silent() as dead, pytest.raises(TransientError, match="it does not answer"):
        dial_any(endpoint(timeout=0.4), [dead, dead])
