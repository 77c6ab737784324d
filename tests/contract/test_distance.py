"""How much of a server's window a session fills, by how far away the server is."""

import sys
import threading
import time

import pytest

from tests.openssh import on_host, run_on_host
from tests.sshd_fixture import endpoint_of, needs_sshd, open_session

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
