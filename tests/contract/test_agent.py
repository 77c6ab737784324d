"""Keys that an SSH agent holds, or a device behind it, against a real sshd."""

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from mydata_like.core.errors import AccessDeniedError, SettingsError
from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import PublicKey, load_key
from tests.faults.tcpproxy import seconds_for
from tests.ssh_agent import move_into_agent, running_agent, ssh_add
from tests.sshd_fixture import STACKS, STALL, endpoint_of, needs_sshd, open_session, sshd_with

pytestmark = [
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="SSH agents cannot be used on Windows"),
]


@pytest.fixture(params=STACKS)
def stack(request):
    return request.param


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("server")) as sshd:
        yield sshd


@pytest.fixture
def endpoint(sshd, tmp_path):
    sshd.forbid_all()
    return endpoint_of(sshd, tmp_path)


@pytest.fixture
def agent(tmp_path_factory):
    """The path of an ssh-agent's socket."""
    with running_agent(tmp_path_factory.mktemp("a")) as path:
        yield path


def make_key(path, kind="ed25519", comment=b"other"):
    words = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", comment, "-f", path]
    subprocess.run(words, check=True)
    return path


def hand_over(endpoint, agent, *words, key_file=None):
    """Let the agent hold the key; return an endpoint that has its public half only."""
    public = move_into_agent(key_file or endpoint.key_file, agent, *words)
    return endpoint._replace(key_file=public, agent=agent)


@contextmanager
def security_key(treated="touched"):
    """Run an agent with FIDO keys, an Ed25519 and an ECDSA one; yield its socket and them."""
    # A socket's path may have some hundred bytes.
    path = Path("/tmp") / f"security-key-{os.getpid()}"
    path.unlink(missing_ok=True)
    words = [sys.executable, "-m", "tests.security_key_agent", path, treated]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=root)
    try:
        lines = iter(process.stdout.readline, "\n")
        yield str(path), [PublicKey.parse(line) for line in lines]
    finally:
        process.kill()
        process.communicate()
        path.unlink(missing_ok=True)


def named_by(public, endpoint, agent):
    """Return an endpoint whose key file names a key that the agent holds."""
    key_file = endpoint.key_file.with_name("public")
    key_file.write_text(public.line() + "\n")
    return endpoint._replace(key_file=key_file, agent=agent)


def run_echo(endpoint, stack="paramiko"):
    with open_session(endpoint) as session:
        assert session.stack == stack
        assert session.run(b"echo in").output == b"in\n"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_an_agent_may_hold_the_key(sshd, endpoint, agent, kind, stack):
    key_file = make_key(endpoint.key_file.with_name(kind), kind, b"caf\xe9")
    sshd.forbid_all()
    sshd.authorize(load_key(key_file).public)
    run_echo(hand_over(endpoint, agent, key_file=key_file)._replace(stack=stack), stack)


def test_the_host_is_offered_one_key_of_an_agent(sshd, endpoint, agent, stack):
    for number in range(7):  # more than the host would allow
        ssh_add(agent, make_key(endpoint.key_file.with_name(f"wrong{number}")))
    run_echo(hand_over(endpoint, agent)._replace(stack=stack), stack)


@pytest.mark.parametrize("number", [0, 1], ids=["ed25519", "ecdsa"])
def test_a_fido_key_behind_an_agent_lets_us_in(sshd, endpoint, number):
    with security_key() as (agent, keys):
        sshd.authorize(keys[number])
        run_echo(named_by(keys[number], endpoint, agent))


def test_a_fido_key_opens_a_jump_host_too(sshd, endpoint, tmp_path):
    (tmp_path / "jump").mkdir()
    with sshd_with(tmp_path / "jump") as gate, security_key() as (agent, keys):
        gate.authorize(keys[0])
        way = endpoint._replace(
            port=gate.port, host_keys=(gate.fingerprint,), agent=agent, any_key=True
        )
        with open_session(endpoint._replace(agent=agent, via=way)) as session:
            assert session.run(b"echo in").output == b"in\n"


def test_a_fido_key_that_is_not_touched_is_refused(sshd, endpoint):
    with security_key("untouched") as (agent, keys):
        sshd.authorize(keys[0])
        with pytest.raises(AccessDeniedError):
            connect(named_by(keys[0], endpoint, agent))


def test_a_touch_is_waited_for_within_the_time_limit(sshd, endpoint):
    with security_key("ignored") as (agent, keys):
        sshd.authorize(keys[0])
        impatient = named_by(keys[0], endpoint, agent)._replace(stall_timeout=STALL)

        def fail():
            with pytest.raises(AccessDeniedError) as raised:
                connect(impatient)
            assert raised.value.problem_code == "ssh.key-refused"
            assert "timed out" in raised.value.message

        assert seconds_for(fail) < 3 * STALL


def test_a_key_that_is_held_elsewhere_needs_an_agent(endpoint, agent):
    with pytest.raises(SettingsError) as raised:
        connect(hand_over(endpoint, agent)._replace(agent=""))
    assert raised.value.problem_code == "key.elsewhere"


def test_a_fido_key_needs_paramiko(endpoint):
    with security_key() as (agent, keys), pytest.raises(SettingsError) as raised:
        connect(named_by(keys[0], endpoint, agent)._replace(stack="libssh"))
    assert raised.value.problem_code == "key.elsewhere"
    assert "FIDO" in raised.value.hint


def test_an_agent_without_the_key_is_reported(endpoint, agent, stack):
    held = hand_over(endpoint, agent)._replace(stack=stack)
    ssh_add(agent, "-D")
    with pytest.raises(AccessDeniedError, match="does not have it"):
        connect(held)


def test_an_agent_that_refuses_to_sign_is_named(endpoint, agent, stack):
    with pytest.raises(AccessDeniedError, match="the agent refused") as raised:
        connect(
            hand_over(endpoint, agent, "-c")._replace(stack=stack)
        )  # there is no one to confirm
    assert raised.value.problem_code == "ssh.key-refused"


def test_an_agent_that_has_ended_or_is_silent_is_reported(endpoint, agent, tmp_path_factory, stack):
    held = hand_over(endpoint, agent)._replace(stall_timeout=STALL, stack=stack)
    path = str(tmp_path_factory.mktemp("b") / "s")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        for broken in (path, f"{path}-none"):
            with pytest.raises(SettingsError) as raised:
                connect(held._replace(agent=broken))
            assert raised.value.problem_code == "ssh.no-agent"


def test_a_jump_host_refuses_us_when_the_agent_does_not_sign(sshd, endpoint, agent, tmp_path):
    (tmp_path / "jump").mkdir()
    with sshd_with(tmp_path / "jump") as gate:
        gate.authorize(load_key(endpoint.key_file).public)
        held = hand_over(endpoint, agent, "-c")
        way = held._replace(port=gate.port, host_keys=(gate.fingerprint,), any_key=True)
        with pytest.raises(AccessDeniedError) as raised:
            connect(held._replace(via=way))
    assert raised.value.problem_code == "ssh.key-refused"
    assert "Accepted publickey" not in gate.log


def test_other_keys_of_an_agent_are_not_shown_to_the_staging_host(sshd, endpoint, agent):
    other = make_key(endpoint.key_file.with_name("other"))
    ssh_add(agent, other)
    sshd.forbid_all()
    sshd.authorize(load_key(other).public)
    with pytest.raises(AccessDeniedError):
        connect(endpoint._replace(stack="paramiko", agent=agent))
    run_echo(endpoint._replace(stack="paramiko", agent=agent, any_key=True))


def test_a_key_that_is_not_signed_with_does_not_keep_others_from_being_tried(sshd, endpoint, agent):
    refused, good = (make_key(endpoint.key_file.with_name(name)) for name in ("one", "two"))
    ssh_add(agent, "-c", refused)
    ssh_add(agent, good)
    sshd.forbid_all()
    for key_file in (refused, good):
        sshd.authorize(load_key(key_file).public)
    run_echo(endpoint._replace(stack="paramiko", agent=agent, any_key=True))


def test_a_host_that_has_seen_too_many_keys_has_refused_us(sshd, endpoint, agent):
    for number in range(7):
        ssh_add(agent, make_key(endpoint.key_file.with_name(f"wrong{number}")))
    sshd.forbid_all()
    with pytest.raises(AccessDeniedError) as raised:
        connect(endpoint._replace(stack="paramiko", agent=agent, any_key=True))
    assert raised.value.problem_code == "ssh.key-refused"
