"""Broken, silent and refusing links, against a real sshd behind a proxy: nothing waits for ever."""

import gc
import os
import socket
import threading
from contextlib import suppress
from hashlib import md5

import pytest

from mydata_like.core.errors import AccessDeniedError, HostKeyError, TransientError
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.connect import connect
from mydata_like.transfer.interleaved_sender import InterleavedSender
from mydata_like.transfer.shared_reader import SharedReader
from mydata_like.transfer.throttled_session import ChannelTimer, ThrottledSession
from tests.faults.tcpproxy import ClosingServer, SilentServer, TcpProxy, seconds_for
from tests.privileges import count_descriptors
from tests.sshd_fixture import (
    STACKS,
    STALL,
    endpoint_of,
    needs_limits,
    needs_sshd,
    open_session,
    sshd_with,
)

pytestmark = [needs_sshd, pytest.mark.parametrize("stack", STACKS)]

CHUNK = bytes(256 * 1024)
SOON = STALL + 1.5  # seconds within which a stall must have been noticed


@pytest.fixture
def endpoint(sshd, proxy, stack, tmp_path):
    return endpoint_of(sshd, tmp_path, stack=stack, port=proxy.port, stall_timeout=STALL)


def expect_failure(action, code, within):
    """Do something that must fail soon, with this code."""
    with pytest.raises(TransientError) as raised:
        assert seconds_for(action) < within
    assert raised.value.problem_code == code
    return raised.value


def timed_failure(action, code):
    """Do something that must fail of a stall, not much later than it may."""
    failures = []

    def fail():
        try:
            action()
        except TransientError as error:
            failures.append(error.problem_code)

    assert seconds_for(fail) < SOON
    assert failures == [code]


def write_for_ever(stream):
    while True:
        stream.write(CHUNK)


def test_a_host_that_sends_no_banner_is_given_up(sshd, stack, tmp_path):
    with SilentServer() as server:
        endpoint = endpoint_of(sshd, tmp_path, stack=stack, port=server.port, stall_timeout=STALL)
        timed_failure(lambda: connect(endpoint), "link.stalled")


def test_waits_are_limited_further_for_a_while(sshd, stack, tmp_path):
    endpoint = endpoint_of(sshd, tmp_path, stack=stack, stall_timeout=1000.0)
    with open_session(endpoint) as session:
        with session.limit_waits(STALL):
            assert session.run(b"echo usable").output == b"usable\n"
        stalled = pytest.raises(TransientError, match=f"for {STALL:g} seconds")
        with session.limit_waits(STALL), session.limit_waits(5000.0), stalled:
            session.run(b"exec sleep 1000")


def test_a_command_may_end_at_any_moment_of_a_write(endpoint, proxy):
    """The last words and the end come together; which call takes them in is left to chance."""
    with open_session(endpoint) as session:
        for _ in range(60):
            proxy.latency = 0.0
            stream = session.start(b"head -c 5000 /dev/zero; echo no >&2; exit 1")
            proxy.latency = 0.01
            for _ in range(2000):
                stream.write(b"x")
            status, output, errors = stream.finish()
            assert (status, len(output), errors) == (1, 5000, b"no\n")


def test_nothing_that_listens_is_said_plainly(sshd, stack, tmp_path):
    with TcpProxy(sshd.port) as proxy:
        port = proxy.port
    endpoint = endpoint_of(sshd, tmp_path, stack=stack, port=port)
    with pytest.raises(TransientError, match="the connection was refused") as raised:
        connect(endpoint)
    assert raised.value.problem_code == "link.refused"


@pytest.mark.parametrize(
    "greeting", [b"", b"SSH-2.0-OpenSSH_9.9\r\n", b"Not allowed at this time\r\n"]
)
@pytest.mark.parametrize("resets", [False, True])
def test_a_host_that_ends_the_key_exchange_is_not_said_to_be_down(
    sshd, stack, tmp_path, greeting, resets
):
    with (
        ClosingServer(greeting, resets=resets) as server,
        pytest.raises(TransientError) as raised,
    ):
        connect(endpoint_of(sshd, tmp_path, stack=stack, port=server.port))
    assert raised.value.problem_code == "link.refused"
    assert raised.value.message == (
        f"127.0.0.1 closed the connection on port {server.port} during the key exchange."
    )
    assert "MaxStartups" in raised.value.hint
    assert "fail2ban" in raised.value.hint


def test_an_unknown_name_is_reported_plainly(sshd, stack, tmp_path):
    endpoint = endpoint_of(sshd, tmp_path, stack=stack, host="host..invalid")
    with pytest.raises(TransientError, match="its name cannot be resolved"):
        connect(endpoint)


def test_a_stall_is_noticed_while_connecting(proxy, endpoint):
    proxy.stall.set()
    timed_failure(lambda: connect(endpoint), "link.stalled")


def test_a_stall_is_noticed_while_a_channel_opens(proxy, endpoint):
    with open_session(endpoint) as session:
        proxy.stall.set()
        timed_failure(lambda: session.start(b"cat"), "link.stalled")


def test_a_stall_is_noticed_while_writing(proxy, endpoint):
    with open_session(endpoint) as session:
        stream = session.start(b"cat > /dev/null")
        stream.write(CHUNK)
        proxy.stall.set()
        timed_failure(lambda: write_for_ever(stream), "link.stalled")
        with pytest.raises(TransientError):
            stream.finish()


def test_a_stall_is_noticed_while_reading(proxy, endpoint):
    with open_session(endpoint) as session:
        stream = session.start(b"cat")
        proxy.stall.set()
        timed_failure(lambda: stream.read(1), "link.stalled")


def test_a_stall_is_noticed_while_finishing(proxy, endpoint):
    with open_session(endpoint) as session:
        stream = session.start(b"cat")
        stream.write(b"x")
        proxy.stall.set()
        timed_failure(stream.finish, "link.stalled")


def test_closing_over_a_stalled_link_does_not_wait(proxy, endpoint):
    session = connect(endpoint)
    stream = session.start(b"cat")
    stream.write(CHUNK * 8)
    proxy.stall.set()
    assert seconds_for(lambda: (stream.close(), session.close())) < 1.5


def test_a_stall_while_keys_are_renewed_is_noticed(stack, tmp_path):
    if os.name == "nt" and stack == "libssh":
        # The engine ends a channel worker that gives no sign of life: unit/transfer/test_pool.
        pytest.skip("a socket that is shut down does not wake who waits for it in libssh")
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, "RekeyLimit 1M") as sshd, TcpProxy(sshd.port) as proxy:
        endpoint = endpoint_of(
            sshd, tmp_path / "keys", stack=stack, port=proxy.port, stall_timeout=STALL
        )
        with open_session(endpoint) as session:
            stream = session.start(b"cat > /dev/null")
            proxy.stall_after_answer = 600  # its offer of algorithms; our answer gets no reply
            timed_failure(lambda: write_for_ever(stream), "link.stalled")


def test_a_command_that_reads_no_more_is_a_stall_too(endpoint):
    with open_session(endpoint) as session:
        stream = session.start(b"sleep 30")
        timed_failure(lambda: write_for_ever(stream), "link.stalled")


def test_a_slow_link_is_not_a_stalled_one(proxy, endpoint):
    proxy.bandwidth, proxy.latency = 400_000, 0.05
    with open_session(endpoint) as session:
        stream = session.start(b"cat | wc -c")
        for _ in range(4):
            stream.write(CHUNK)
        assert stream.finish().output.strip() == b"%d" % (4 * len(CHUNK))


def test_a_reset_is_noticed_at_once(proxy, endpoint):
    with open_session(endpoint) as session:
        stream = session.start(b"cat > /dev/null")
        stream.write(CHUNK)
        proxy.reset_all()
        expect_failure(lambda: write_for_ever(stream), "link.lost", STALL)


def test_a_polite_end_is_noticed_at_once(proxy, endpoint):
    with open_session(endpoint) as session:
        stream = session.start(b"cat > /dev/null")
        stream.write(CHUNK)
        proxy.fin_all()
        expect_failure(lambda: write_for_ever(stream), "link.lost", STALL)


def test_a_link_cut_at_any_place_fails_and_never_hangs(proxy, endpoint):
    for limit in (0, 10, 500, 2000, 4000, 100_000, 1_000_000):
        proxy.cut_after = limit
        with pytest.raises(TransientError) as raised, open_session(endpoint) as session:
            write_for_ever(session.start(b"cat > /dev/null"))
        assert raised.value.problem_code in ("link.lost", "link.refused")


def test_a_session_killed_on_the_server_is_lost(sshd, stack, tmp_path):
    endpoint = endpoint_of(sshd, tmp_path, stack=stack)
    with open_session(endpoint) as session:
        stream = session.start(b"cat > /dev/null")
        stream.write(CHUNK)
        sshd.kill_sessions()
        expect_failure(lambda: write_for_ever(stream), "link.lost", 2)
        expect_failure(stream.finish, "link.lost", 2)
        expect_failure(lambda: session.run(b"true"), "link.lost", 2)


def test_a_session_killed_while_we_wait_is_lost(sshd, stack, tmp_path):
    endpoint = endpoint_of(sshd, tmp_path, stack=stack)
    with open_session(endpoint) as session:
        stream = session.start(b"echo ready; exec sleep 30")
        assert stream.read(10) == b"ready\n"
        sshd.kill_sessions()
        expect_failure(stream.finish, "link.lost", 2)


def test_closing_from_another_thread_wakes_waiting_threads(endpoint):
    session = connect(endpoint._replace(stall_timeout=60.0))
    stream = session.start(b"sleep 60")
    closer = threading.Timer(0.2, session.close)
    closer.start()
    expect_failure(lambda: stream.read(1), "link.lost", 5)
    closer.join()


def test_no_more_channels_than_granted_and_more_when_one_ends(stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, "MaxSessions 2") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with open_session(endpoint) as session:
            first, second = session.start(b"cat"), session.start(b"cat")
            expect_failure(lambda: session.start(b"cat"), "channel.refused", 2)
            first.write(b"still")
            assert first.finish().output == b"still"
            assert session.run(b"echo again").output == b"again\n"
            assert second.finish().status == 0


@needs_limits
def test_where_commands_are_known_to_run_a_refusal_is_for_now(stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with (
        sshd_with(tmp_path) as sshd,
        open_session(endpoint_of(sshd, tmp_path / "keys", stack=stack)) as session,
    ):
        sender = InterleavedSender(session, lambda size, seconds: None)
        metered = ThrottledSession(session, TokenBucket(), ChannelTimer(), sender, SharedReader())
        stream = metered.start(b"cat")
        stream.write(b"x")
        assert stream.read(1) == b"x"
        sshd.limit_sessions()
        expect_failure(metered.open_sftp, "channel.refused", 5)
        expect_failure(lambda: metered.start(b"cat"), "channel.refused", 5)
        expect_failure(lambda: metered.run(b"true"), "channel.refused", 5)
        stream.write(b"still")
        assert stream.finish().output == b"still"


def test_too_many_connections_are_refused_for_now(stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, "MaxStartups 2:100:2") as sshd, SlowCallers(sshd.port, 2):
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        expect_failure(lambda: connect(endpoint), "link.refused", 5)


class SlowCallers:
    """Connections that say nothing and so keep the server's places for new ones."""

    def __init__(self, port, count):
        self._port, self._count = port, count

    def __enter__(self):
        self._callers = [self._call() for _ in range(self._count)]

    def _call(self):
        while True:
            caller = socket.create_connection(("127.0.0.1", self._port))
            with suppress(OSError):
                if caller.recv(4) == b"SSH-":
                    return caller
            caller.close()

    def __exit__(self, *_):
        for caller in self._callers:
            caller.close()


def test_keys_renewed_in_mid_stream_are_not_noticed(stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, "RekeyLimit 1M") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with open_session(endpoint) as session:
            stream = session.start(b"cat | md5sum")
            for _ in range(60):
                stream.write(CHUNK)
            assert stream.finish().output[:32] == md5(CHUNK * 60).hexdigest().encode()


def test_a_changed_host_key_stops_before_authentication(stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, "LogLevel VERBOSE") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        before = sshd.fingerprint
        sshd.restart(new_host_key=True)
        with pytest.raises(HostKeyError) as raised:
            connect(endpoint)
        assert raised.value.problem_code == "host-key.changed"
        assert before in raised.value.message
        assert sshd.fingerprint in raised.value.message
        assert "Failed publickey" not in sshd.log
        assert f"for {sshd.username}" not in sshd.log


def test_a_withdrawn_key_is_refused(stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        connect(endpoint).close()
        sshd.forbid_all()
        with pytest.raises(AccessDeniedError) as raised:
            connect(endpoint)
        assert raised.value.problem_code == "ssh.key-refused"


def test_nothing_is_left_behind_by_sessions_that_failed(endpoint, proxy, stack):
    def count():
        gc.collect()  # errors of tests before hold on to their sessions
        for thread in threading.enumerate():
            if thread.name.startswith("ssh-"):
                thread.join(60)  # the session has failed; its threads end a moment later
        return count_descriptors(), threading.active_count()

    def fail_once():
        with open_session(endpoint) as session:
            session.run(b"true")
        proxy.cut_after = 3000
        with pytest.raises(TransientError), open_session(endpoint) as session:
            write_for_ever(session.start(b"cat > /dev/null"))
        proxy.cut_after = None

    fail_once()
    for thread in proxy._threads[1:]:
        thread.join(60)
    before = count()
    for _ in range(5):
        fail_once()
    for thread in proxy._threads[1:]:
        thread.join(60)
    assert count() == before
