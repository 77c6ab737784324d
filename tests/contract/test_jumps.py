"""Staging hosts that are reached through others, by whatever stack speaks to them in the end."""

import gc
import os
import threading

import pytest

from mydata_like.core.errors import AccessDeniedError, HostKeyError, TransientError
from mydata_like.ssh import dialing
from mydata_like.ssh.connect import connect, fetch_host_key
from mydata_like.ssh.jump_host import JumpHost
from mydata_like.ssh.keys import accept_host_key, create_key, load_key
from mydata_like.ssh.session import HOST_KEYS
from mydata_like.ssh.session_paramiko import ParamikoTransport
from tests.faults.tcpproxy import TcpProxy, seconds_for
from tests.legacy import write_old_key
from tests.openssh import on_host
from tests.privileges import count_descriptors
from tests.sshd_fixture import STACKS, STALL, endpoint_of, needs_sshd, open_session, sshd_with

pytestmark = needs_sshd


def key_of(endpoint):
    return load_key(endpoint.key_file).public


def through(sshd, endpoint, via=None):
    """Return a host on the way to an endpoint."""
    return endpoint._replace(port=sshd.port, host_keys=(sshd.fingerprint,), via=via)


def write_for_ever(stream):
    while True:
        stream.write(bytes(256 * 1024))


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("target")) as sshd:
        yield sshd


@pytest.fixture(scope="module")
def jump(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("jump")) as sshd:
        yield sshd


@pytest.fixture(params=STACKS)
def endpoint(request, target, jump, tmp_path):
    """The target, through one host that is known and lets the same key in."""
    (tmp_path / "keys").mkdir()
    endpoint = endpoint_of(target, tmp_path / "keys", stack=request.param)
    jump.authorize(key_of(endpoint))
    return endpoint._replace(via=through(jump, endpoint))


def test_what_is_sent_arrives_behind_another_host(endpoint):
    content = os.urandom(3_000_000)
    with open_session(endpoint) as session:
        assert session.stack == endpoint.stack
        assert session.run(b"cat", content) == (0, content, b"")
        assert session.run(b"echo $SSH_CONNECTION").output.split()[3] == b"%d" % endpoint.port


def test_the_host_between_is_logged_in_to_once(endpoint, jump):
    before = jump.log.count("Accepted publickey")
    with open_session(endpoint):
        assert jump.log.count("Accepted publickey") == before + 1


def await_relays(names="ssh-"):
    for thread in threading.enumerate():
        if thread.name.startswith(names):
            thread.join(60)


def test_no_login_outlives_a_session(endpoint, jump):
    jump.await_sessions()  # of tests before
    with open_session(endpoint) as session:
        assert session.run(b"true").status == 0
        assert jump.session_pids
    jump.await_sessions()


def test_nothing_is_left_behind_by_sessions_that_ended_or_broke(endpoint, jump):
    def count():
        gc.collect()
        await_relays()
        return count_descriptors(), threading.active_count()

    def use_and_break():
        with open_session(endpoint) as session:
            assert session.run(b"true").status == 0
        with open_session(endpoint) as session:
            jump.kill_sessions()
            with pytest.raises(TransientError):
                write_for_ever(session.start(b"cat > /dev/null"))

    use_and_break()
    before = count()
    for _ in range(3):
        use_and_break()
    assert count() == before


def test_each_key_of_the_next_host_is_asked_for_over_one_login(endpoint, jump, tmp_path):
    rsa = write_old_key(tmp_path / "rsa").path
    on_host(rsa).chmod(0o600)
    before = jump.log.count("Accepted publickey")
    with sshd_with(tmp_path, f"HostKey {on_host(rsa)}") as both:
        both.authorize(key_of(endpoint))
        pin = load_key(rsa).public.fingerprint
        with open_session(endpoint._replace(port=both.port, host_keys=(pin,))) as session:
            assert session.run(b"echo in").output == b"in\n"
    assert jump.log.count("Accepted publickey") == before + 1


def test_connections_one_after_the_other_may_have_the_same_number(endpoint):
    """The host numbers channels, and uses the numbers of closed ones again."""
    line = ParamikoTransport(endpoint.via, dialing.dial(endpoint.via))
    line.handshake(HOST_KEYS)
    line.authenticate(load_key(endpoint.key_file))
    with JumpHost(line) as host:
        for _ in range(3):
            with host.dial(endpoint) as wire, wire.makefile("rb") as answers:
                wire.settimeout(5)
                assert answers.readline().startswith(b"SSH-")
                wire.sendall(b"SSH-2.0-test\r\n")
                assert answers.read(4)  # which comes only when ours has arrived
            await_relays("ssh-jump")


def test_files_go_by_sftp_behind_another_host(endpoint, tmp_path):
    with open_session(endpoint) as session:
        file = session.open_sftp().open_file(bytes(on_host(tmp_path / "there")))
        file.write(b"content")
        file.close()
    assert (tmp_path / "there").read_bytes() == b"content"


def test_the_key_of_a_host_behind_another_can_be_learnt(endpoint, target):
    assert fetch_host_key(endpoint) == target.host_key


def test_a_host_between_that_is_not_known_stops_everything(endpoint, jump):
    stranger = endpoint._replace(via=endpoint.via._replace(host_keys=()))
    with pytest.raises(HostKeyError) as raised:
        connect(stranger)
    assert raised.value.problem_code == "host-key.unknown"
    assert jump.fingerprint in raised.value.message
    vouched = stranger.via._replace(also_trusted=(jump.fingerprint,))
    connect(endpoint._replace(via=vouched)).close()
    accept_host_key(endpoint.known_hosts, jump.host, jump.port, jump.host_key)
    connect(stranger).close()


def test_a_jump_host_with_another_key_than_before_is_not_logged_in_to(endpoint, jump, tmp_path):
    other = create_key(tmp_path / "other").public
    before = jump.log.count("publickey")
    accept_host_key(endpoint.known_hosts, jump.host, jump.port, other)
    for changed in ((), (other.fingerprint,)):
        with pytest.raises(HostKeyError) as raised:
            connect(endpoint._replace(via=endpoint.via._replace(host_keys=changed)))
        assert raised.value.problem_code == "host-key.changed"
    assert jump.log.count("publickey") == before


def test_a_jump_host_that_is_away_is_reported(endpoint):
    with TcpProxy(1) as proxy:
        port = proxy.port
    with pytest.raises(TransientError, match=f"port {port}") as raised:
        connect(endpoint._replace(via=endpoint.via._replace(port=port)))
    assert raised.value.problem_code == "link.refused"


def test_a_jump_host_that_says_nothing_is_given_up(endpoint, jump):
    with TcpProxy(jump.port) as proxy:
        proxy.stall.set()
        via = endpoint.via._replace(port=proxy.port, stall_timeout=STALL)

        def fail():
            with pytest.raises(TransientError) as raised:
                connect(endpoint._replace(via=via))
            assert raised.value.problem_code in {"link.stalled", "link.refused"}

        assert seconds_for(fail) < 5 * STALL


def test_a_jump_host_that_dies_breaks_the_session(endpoint, jump):
    with TcpProxy(jump.port) as proxy:
        via = endpoint.via._replace(port=proxy.port)
        with open_session(endpoint._replace(via=via)) as session:
            stream = session.start(b"cat > /dev/null")
            proxy.reset_all()
            with pytest.raises(TransientError) as raised:
                write_for_ever(stream)
    assert raised.value.problem_code == "link.lost"


def test_a_host_behind_another_is_checked_too(endpoint):
    with pytest.raises(HostKeyError):
        connect(endpoint._replace(host_keys=("SHA256:" + "A" * 43,)))


def test_the_host_that_refuses_us_is_named(endpoint):
    with pytest.raises(AccessDeniedError, match="for unknown-user"):
        connect(endpoint._replace(via=endpoint.via._replace(username="unknown-user")))


def test_a_next_host_that_is_away_is_reported_with_the_one_before_it(endpoint):
    with TcpProxy(1) as proxy:
        port = proxy.port
    with pytest.raises(TransientError, match=f"port {port}") as raised:
        connect(endpoint._replace(port=port))
    assert raised.value.problem_code == "link.refused"


def test_a_host_between_that_forwards_nothing_is_reported(endpoint, tmp_path):
    with sshd_with(tmp_path, "AllowTcpForwarding no") as closed:
        closed.authorize(key_of(endpoint))
        with pytest.raises(TransientError) as raised:
            connect(endpoint._replace(via=through(closed, endpoint)))
    assert raised.value.problem_code == "link.refused"


def test_a_way_that_stalls_is_given_up(endpoint, jump):
    with TcpProxy(jump.port) as proxy:
        way = endpoint.via._replace(port=proxy.port, stall_timeout=STALL)
        with open_session(endpoint._replace(via=way, stall_timeout=STALL)) as session:
            stream = session.start(b"cat > /dev/null")
            proxy.stall.set()
            with pytest.raises(TransientError) as raised:
                write_for_ever(stream)
    assert raised.value.problem_code == "link.stalled"


def test_two_hosts_may_lie_between(endpoint, tmp_path):
    with sshd_with(tmp_path) as second:
        second.authorize(key_of(endpoint))
        way = through(second, endpoint, via=endpoint.via)
        with open_session(endpoint._replace(via=way)) as session:
            assert session.run(b"echo far").output == b"far\n"
        assert "Accepted publickey" in second.log
