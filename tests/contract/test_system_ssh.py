"""What only the system's ssh can do, and what must never come of starting it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from mydata_like.core.errors import AccessDeniedError, SettingsError
from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import load_key
from tests.sshd_fixture import endpoint_of, needs_sshd, open_session, sshd_with

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("server")) as sshd:
        yield sshd


@pytest.fixture
def endpoint(sshd, tmp_path):
    return endpoint_of(sshd, tmp_path, stack="system")


@pytest.fixture
def agent(tmp_path_factory):
    """An ssh-agent of this test's own: the path of its socket."""
    socket = tmp_path_factory.mktemp("a") / "s"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
    process.stdout.readline()  # it listens before it says so
    yield str(socket)
    process.kill()
    process.communicate()


def ssh_add(agent, *words):
    subprocess.run(["ssh-add", "-q", *words], env={"SSH_AUTH_SOCK": agent}, check=True)


def hand_over(endpoint, agent):
    """Let an agent keep the key; return an endpoint that has its public half only."""
    ssh_add(agent, endpoint.key_file)
    public = endpoint.key_file.with_name("public")
    public.write_text(load_key(endpoint.key_file).public.line("kept by the agent") + "\n")
    endpoint.key_file.unlink()
    return endpoint._replace(key_file=public, agent=agent)


def find_ssh_process():
    (ssh,) = (child for child in psutil.Process().children() if child.name() == "ssh")
    return ssh


def control_of(ssh):
    (name,) = (word for word in ssh.cmdline() if word.startswith("ControlPath="))
    return Path(ssh.cwd()) / name.partition("=")[2]


def test_an_agent_may_keep_the_key(endpoint, agent):
    with open_session(hand_over(endpoint, agent)) as session:
        assert session.run(b"echo in").output == b"in\n"


def test_a_key_that_an_agent_keeps_is_none_for_the_libraries(endpoint, agent):
    with pytest.raises(SettingsError) as raised:
        connect(hand_over(endpoint, agent)._replace(stack="auto"))
    assert raised.value.problem_code == "key.elsewhere"


def test_an_agent_without_the_key_lets_nobody_in(endpoint, agent):
    kept = hand_over(endpoint, agent)
    ssh_add(agent, "-D")
    with pytest.raises(AccessDeniedError):
        connect(kept)


def test_other_keys_of_an_agent_are_not_shown_to_the_staging_host(sshd, endpoint, agent):
    other = endpoint.key_file.with_name("other")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    ssh_add(agent, other)
    sshd.forbid_all()
    sshd.authorize(load_key(other).public)
    with pytest.raises(AccessDeniedError):
        connect(endpoint._replace(agent=agent))
    with open_session(endpoint._replace(agent=agent, any_key=True)) as session:
        assert session.run(b"echo as a host between").status == 0


def test_nothing_is_left_where_ssh_was_started(endpoint):
    with open_session(endpoint) as session:
        control = control_of(find_ssh_process())
        (left,) = control.parent.glob(f"{control.name}*")
        assert left.is_socket()  # and the key and the host's key are gone already
        assert session.run(b"true").status == 0
    assert not control.exists()


def test_what_killed_processes_left_long_ago_is_swept_up(endpoint):
    with open_session(endpoint) as session:
        control = control_of(find_ssh_process())
        (key, torn) = (control.with_name(f"old-{os.getpid()}{end}") for end in (".key", ""))
        key.write_text("")
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(torn))
        for path in (control, key, torn):
            os.utime(path, (0, 0))
        connect(endpoint).close()
        assert [path.exists() for path in (control, key, torn)] == [True, False, False]
        assert session.run(b"true").status == 0


def test_ssh_ends_with_whoever_started_it_however_that_ends(endpoint):
    program = (
        "from pathlib import PosixPath\nfrom mydata_like.ssh.connect import connect\n"
        "from mydata_like.ssh.session import Endpoint\n"
        f"session = connect({endpoint!r})\nstream = session.start(b'exec sleep 100')\n"
        "print('ready', flush=True)\nstream.read(1)\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"ready\n"
    children = psutil.Process(process.pid).children(recursive=True)
    assert [child.name() for child in children] == ["ssh"]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert (len(gone), alive) == (1, [])


def test_its_surroundings_tell_ssh_nothing(endpoint):
    with open_session(endpoint):
        ssh = find_ssh_process()
        assert set(ssh.environ()) == {"PATH", "LC_ALL"}
        assert str(endpoint.key_file) not in " ".join(ssh.cmdline())
