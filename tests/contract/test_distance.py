"""How much of a server's window a session fills, by how far away the server is."""

import sys
import threading
import time
from contextlib import ExitStack

import pytest

from mydata_like.core.errors import TransientError
from tests.faults.tcpproxy import TcpProxy
from tests.openssh import on_host, run_on_host
from tests.sshd_fixture import endpoint_of, needs_limits, needs_sshd, open_session, sshd_with

pytestmark = needs_sshd

AHEAD = 512 * 1024  # bytes under way to a host near by; the window is four times as large
PATIENCE = 20.0  # seconds
TRIES = 8  # in which even a busy machine answers once within a millisecond


@pytest.fixture
def fills_window(sshd, proxy, tmp_path):
    """Return a function that checks whether a new session fills the window of the server."""
    endpoint = endpoint_of(sshd, tmp_path, stack="libssh", port=proxy.port)
    gate = on_host(tmp_path / "gate")
    run_on_host("mkfifo", gate)

    def ask(late=()):
        with open_session(endpoint) as session:
            proxy.late = [*late]
            stream = session.start(b"read go < %b; exec cat > /dev/null" % bytes(gate))
            before = proxy.passed
            writer = threading.Thread(target=lambda: stream.write(bytes(2 * AHEAD)))
            writer.start()
            until = time.monotonic() + PATIENCE
            while proxy.passed - before < AHEAD and time.monotonic() < until:
                writer.join(0.001)
            gate.write_text("go\n")
            writer.join(PATIENCE)
            assert stream.finish().status == 0
            return not stream.blocked_seconds  # nothing had to wait until the command read

    return ask


def test_a_host_near_by_has_little_under_way(fills_window):
    assert not all(fills_window() for _ in range(TRIES))


def test_a_host_far_away_has_as_much_under_way_as_it_takes(fills_window, proxy):
    proxy.latency = 0.02
    assert any(fills_window() for _ in range(TRIES))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no system tells how near it is")
def test_a_host_near_by_that_is_busy_is_not_far(fills_window):
    assert not all(fills_window(late=[0.005, 0.03] * 10) for _ in range(TRIES))


@pytest.fixture
def open_far(tmp_path):
    """Return a function that opens a session to a far host with these options."""
    (tmp_path / "keys").mkdir()
    with ExitStack() as stack:

        def open_far(*options):
            sshd = stack.enter_context(sshd_with(tmp_path, *options))
            proxy = stack.enter_context(TcpProxy(sshd.port, latency=0.02))
            endpoint = endpoint_of(sshd, tmp_path / "keys", stack="libssh", port=proxy.port)
            session = stack.enter_context(open_session(endpoint))
            session.run_ahead()
            return sshd, proxy, session

        yield open_far


def test_starting_a_command_at_a_far_host_waits_for_no_answer(open_far):
    _, proxy, session = open_far()
    for _ in range(2):  # the first shows that commands run, the second asks for the next channel
        session.run(b"true")

    proxy.stall.set()
    stream = session.start(b"echo answer")
    proxy.stall.clear()

    assert stream.finish().output == b"answer\n"


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_channel_that_is_opened_ahead_takes_no_room_of_others(open_far, most):
    _, _, session = open_far(f"MaxSessions {most}")
    assert session.run(b"echo first").output == b"first\n"

    streams = [session.start(b"cat") for _ in range(most)]
    with pytest.raises(TransientError) as error:
        session.start(b"cat")

    assert error.value.problem_code == "channel.refused"
    for stream in streams:
        stream.write(b"here")
        assert stream.finish().output == b"here"
    assert [session.run(b"echo %d" % at).output for at in range(3)] == [b"0\n", b"1\n", b"2\n"]


@needs_limits
def test_a_command_that_a_far_host_refuses_later_fails_for_now(open_far):
    sshd, _, session = open_far()
    for _ in range(2):
        session.run(b"true")
    sshd.limit_sessions()

    for ask in (session.run, lambda command: session.start(command).read(1)):
        with pytest.raises(TransientError) as error:
            ask(b"echo")

        assert error.value.problem_code == "channel.refused"
