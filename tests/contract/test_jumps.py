"""Staging hosts that are reached through others, by whatever stack speaks to them in the end."""

import os

import psutil
import pytest

from mydata_like.core.errors import AccessDeniedError, HostKeyError, TransientError
from mydata_like.ssh.connect import connect, fetch_host_key
from mydata_like.ssh.hosts import accept_host_key
from mydata_like.ssh.keys import load_key
from tests.faults.tcpproxy import TcpProxy
from tests.sshd_fixture import STACKS, STALL, endpoint_of, needs_sshd, open_session, sshd_with

pytestmark = needs_sshd


def logins():
    return [child for child in psutil.Process().children() if child.name() == "ssh"]


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


def test_no_login_outlives_a_session(endpoint):
    with open_session(endpoint) as session:
        assert session.run(b"true").status == 0
        found = logins()
        assert found
    psutil.wait_procs(found, timeout=5)
    assert logins() == []


def test_files_go_by_sftp_behind_another_host(endpoint, tmp_path):
    with open_session(endpoint) as session:
        file = session.open_sftp().open_file(os.fsencode(tmp_path / "there"))
        file.write(b"content")
        file.close()
    assert (tmp_path / "there").read_bytes() == b"content"


def test_the_key_of_a_host_behind_another_can_be_learnt(endpoint, target):
    assert fetch_host_key(endpoint) == target.host_key


def test_a_host_between_that_nobody_vouches_for_stops_everything(endpoint, jump):
    stranger = endpoint._replace(via=endpoint.via._replace(host_keys=()))
    with pytest.raises(HostKeyError) as raised:
        connect(stranger)
    assert raised.value.problem_code == "host-key.unknown"
    assert jump.fingerprint in raised.value.message
    vouched = stranger.via._replace(also_trusted=(jump.fingerprint,))
    connect(endpoint._replace(via=vouched)).close()
    accept_host_key(endpoint.known_hosts, jump.host, jump.port, jump.host_key)
    connect(stranger).close()


def test_a_host_behind_another_is_checked_too(endpoint):
    with pytest.raises(HostKeyError):
        connect(endpoint._replace(host_keys=("SHA256:" + "A" * 43,)))


def test_the_host_that_refuses_us_is_named(endpoint):
    with pytest.raises(AccessDeniedError, match="for nobody"):
        connect(endpoint._replace(via=endpoint.via._replace(username="nobody")))


def test_a_next_host_that_is_away_is_told_with_the_one_before_it(endpoint):
    with TcpProxy(1) as proxy:
        port = proxy.port
    with pytest.raises(TransientError, match=f"port {port}") as raised:
        connect(endpoint._replace(port=port))
    assert raised.value.problem_code == "link.refused"


def test_a_host_between_that_forwards_nothing_is_told(endpoint, tmp_path):
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
