"""Which host keys, keys of ours and files of others count when a session opens."""

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import asyncssh
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa

from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    SettingsError,
    StagingError,
    UploaderError,
)
from mydata_like.core.model import StagingArea
from mydata_like.settings.schema import Transfer
from mydata_like.ssh.connect import connect, fetch_host_key
from mydata_like.ssh.keys import accept_host_key, create_key, load_key
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.ssh.endpoints import build_endpoints
from tests.openssh import on_host
from tests.sshd_fixture import STACKS, endpoint_of, needs_sshd, open_session, sshd_with
from tests.umasks import posix_modes

pytestmark = [needs_sshd, pytest.mark.parametrize("stack", STACKS)]


def write_rsa(path):
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(
        form.Encoding.PEM, form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption()
    )
    path.write_bytes(text)
    on_host(path).chmod(0o600)
    return load_key(path)


@pytest.fixture
def host_rsa(tmp_path):
    return write_rsa(tmp_path / "host_rsa")


@pytest.fixture
def sshd(tmp_path, host_rsa):
    """A host with two keys: Ed25519, which is preferred, and RSA."""
    ed25519 = create_key(tmp_path / "host_ed25519").path
    on_host(ed25519).chmod(0o600)
    options = (f"HostKey {on_host(ed25519)}", f"HostKey {on_host(host_rsa.path)}")
    with sshd_with(tmp_path, *options) as sshd:
        yield sshd


@pytest.fixture
def endpoint(sshd, stack, tmp_path):
    (tmp_path / "keys").mkdir()
    return endpoint_of(sshd, tmp_path / "keys", stack=stack, host_keys=())


def test_a_host_with_several_keys_is_known_by_any_pinned_one(endpoint, host_rsa):
    shown = fetch_host_key(endpoint)
    assert shown.type == "ssh-ed25519"
    for pin in (shown.fingerprint, host_rsa.public.fingerprint, host_rsa.public.line()):
        with open_session(endpoint._replace(host_keys=(pin,))) as session:
            assert session.run(b"echo in").output == b"in\n"


def test_a_server_that_adds_a_type_of_key_does_not_alarm(endpoint, host_rsa):
    accept_host_key(endpoint.known_hosts, endpoint.host, endpoint.port, host_rsa.public)
    connect(endpoint).close()
    assert fetch_host_key(endpoint) == host_rsa.public


def test_a_trusted_key_of_a_host_with_several_is_fetched_rather_than_the_first(endpoint, host_rsa):
    rsa = host_rsa.public
    for trusting in ({"host_keys": (rsa.fingerprint,)}, {"also_trusted": (rsa.fingerprint,)}):
        assert fetch_host_key(endpoint._replace(**trusting)) == rsa
    unknown = endpoint._replace(host_keys=("SHA256:" + "A" * 43,))
    assert fetch_host_key(unknown).type == "ssh-ed25519"


def test_learning_a_host_key_sends_no_identity(sshd, endpoint):
    fetch_host_key(endpoint)
    assert f"for {sshd.username}" not in sshd.log


def test_a_wrong_pin_names_the_key_that_was_shown_first(endpoint):
    with pytest.raises(HostKeyError) as raised:
        connect(endpoint._replace(host_keys=("SHA256:" + "A" * 43,)))
    assert fetch_host_key(endpoint).fingerprint in raised.value.message


def test_a_key_that_only_the_server_names_is_refused_where_another_is_pinned(endpoint, sshd):
    pinned = "SHA256:" + "A" * 43
    shown = fetch_host_key(endpoint).fingerprint
    area = StagingArea(
        box="box",
        location="/",
        username=sshd.username,
        hosts=(sshd.host,),
        port=sshd.port,
        host_keys=(shown,),
    )
    files = {"key_file": endpoint.key_file, "known_hosts": endpoint.known_hosts}
    (vouched,) = build_endpoints(area, Transfer(ssh=endpoint.stack), **files)
    connect(vouched).close()
    choices = Transfer(ssh=endpoint.stack, host_keys=(pinned,))
    (doubted,) = build_endpoints(area, choices, **files)
    with pytest.raises(HostKeyError) as raised:
        connect(doubted)
    assert raised.value.problem_code == "host-key.changed"
    assert shown in raised.value.message
    assert pinned in raised.value.message
    assert "transfer.host_keys" in raised.value.hint


def test_an_rsa_key_of_ours_lets_us_in(sshd, endpoint, tmp_path):
    key = write_rsa(tmp_path / "MyData")
    sshd.authorize(key.public)
    pin = fetch_host_key(endpoint).fingerprint
    with open_session(endpoint._replace(key_file=key.path, host_keys=(pin,))) as session:
        assert session.run(b"echo in").output == b"in\n"


@posix_modes
def test_a_key_that_others_can_read_is_not_used(endpoint):
    endpoint.key_file.chmod(0o644)
    with pytest.raises(SettingsError):
        connect(endpoint)


def test_no_ssh_configuration_is_read(endpoint, tmp_path):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    trap = tmp_path / "trapped"
    (home / ".ssh" / "config").write_text(
        f"Host *\n  User nobody\n  ProxyCommand touch {trap}; exit 1\n  Port 1\n"
        f'Match exec "touch {trap}"\n  User nobody\n'
    )
    accept_host_key(endpoint.known_hosts, endpoint.host, endpoint.port, fetch_host_key(endpoint))
    program = (
        "from pathlib import Path\nfrom mydata_like.ssh.connect import connect\n"
        "from mydata_like.ssh.session import Endpoint\n"
        "from pathlib import PosixPath, WindowsPath\n"
        f"session = connect({endpoint!r})\n"
        "print(session.run(b'echo in').output)\nsession.close()\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PYTHONPATH": str(root),
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("b'in\\n'\n", "")
    assert not trap.exists()


@pytest.mark.parametrize(
    "only",
    [
        "Ciphers aes256-ctr",
        "KexAlgorithms diffie-hellman-group18-sha512",
        "Ciphers aes256-gcm@openssh.com",
    ],
)
def test_a_host_with_one_strong_algorithm_is_reached(tmp_path, stack, only):
    if stack == "paramiko" and "group18" in only:
        pytest.skip("paramiko does not have it")
    if stack == "libssh" and "gcm" in only:
        stack = "auto"  # most versions of libssh do not check what they receive with it
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, only) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        endpoint = endpoint._replace(ciphers=Transfer().ciphers)
        with open_session(endpoint) as session:
            assert session.run(b"echo in").output == b"in\n"


@pytest.mark.parametrize(
    ("allowed", "method"),
    [
        ("PasswordAuthentication", "password"),
        ("KbdInteractiveAuthentication", "keyboard-interactive"),
    ],
)
def test_a_host_that_wants_a_second_factor_says_so(tmp_path, stack, allowed, method):
    (tmp_path / "keys").mkdir()
    options = f"{allowed} yes", f"AuthenticationMethods publickey,{method}"
    with sshd_with(tmp_path, *options) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with pytest.raises(StagingError) as raised:
            connect(endpoint)
    assert raised.value.problem_code == "ssh.second-factor"
    assert "accepts the uploader's key" in raised.value.message
    assert f"wants {method} as well" in raised.value.message


@pytest.mark.parametrize(
    ("only", "kind"),
    [
        ("KexAlgorithms sntrup761x25519-sha512@openssh.com", "key exchange"),
        ("MACs umac-128-etm@openssh.com", "MAC"),
        ("Ciphers aes256-cbc", "cipher"),
    ],
)
def test_a_host_without_a_common_algorithm_is_reported_with_both_lists(tmp_path, stack, only, kind):
    (tmp_path / "keys").mkdir()
    options = (only,) if kind != "MAC" else (only, "Ciphers aes256-ctr")  # AES-GCM needs no MAC
    with sshd_with(tmp_path, *options) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with pytest.raises(StagingError) as raised:
            connect(endpoint)
    assert raised.value.problem_code == "ssh.no-agreement"
    offered = only.partition(" ")[2]
    assert f"{stack} have no {kind} in common. The host offers {offered};" in raised.value.message
    ours = {"key exchange": "curve25519-sha256", "MAC": "hmac-sha2-256", "cipher": "aes128-gcm"}
    assert ours[kind] in raised.value.message.partition("mydata-like offers")[2]


class ExpiredAccount(asyncssh.SSHServer):
    """A server that explains in its banner why the account may not log in, as PAM does.

    Then it refuses the key, or ends the connection.
    """

    text = "Your account has expired; please contact your system administrator.\n"
    ends = False

    def connection_made(self, conn):
        self._connection = conn

    def begin_auth(self, username):
        return True

    def public_key_auth_supported(self):
        return True

    def validate_public_key(self, username, key):
        self._connection.send_auth_banner(self.text)
        if self.ends:
            self._connection.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        return False


class EndedAccount(ExpiredAccount):
    ends = True


class OtherBanner(ExpiredAccount):
    text = "Authorized use only. Passwords are never asked by telephone.\n"


@contextmanager
def served(server, folder):
    """Run an asyncssh server; yield its port and the fingerprint of its key."""
    key = create_key(folder / "host_key")
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()

    def do(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(20)

    async def listen():
        keys = [str(key.path)]
        return await asyncssh.create_server(server, "127.0.0.1", 0, server_host_keys=keys)

    async def close(acceptor):
        acceptor.close()
        await acceptor.wait_closed()

    acceptor = do(listen())
    try:
        yield acceptor.get_port(), key.public.fingerprint
    finally:
        do(close(acceptor))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.parametrize(
    ("server", "code"),
    [
        (ExpiredAccount, "ssh.expired"),
        (EndedAccount, "ssh.expired"),
        (OtherBanner, "ssh.key-refused"),
    ],
)
def test_an_expired_account_is_not_taken_for_a_refused_key(tmp_path, stack, server, code):
    key = create_key(tmp_path / "key")
    with served(server, tmp_path) as (port, fingerprint):
        endpoint = Endpoint(
            "127.0.0.1", port, "me", key.path, tmp_path / "known", (fingerprint,), stack=stack
        )
        with pytest.raises(UploaderError) as raised:
            connect(endpoint)
    assert raised.value.problem_code == code
    assert ("Your account has expired" in raised.value.message) == (code == "ssh.expired")


@pytest.mark.parametrize("old", ["Ciphers aes128-cbc", "KexAlgorithms diffie-hellman-group14-sha1"])
def test_a_host_with_only_broken_algorithms_is_reported_as_such(tmp_path, stack, old):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, old) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with pytest.raises(StagingError) as raised:
            connect(endpoint)
    assert raised.value.problem_code == "ssh.no-agreement"
    assert "docs/ssh.md" in raised.value.hint


def test_a_host_may_have_an_address_of_version_six_only(tmp_path, stack):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, host="::1") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack, host_keys=())
        accept_host_key(endpoint.known_hosts, sshd.host, sshd.port, sshd.host_key)
        assert endpoint.known_hosts.read_text().startswith(f"[::1]:{sshd.port} ssh-ed25519 ")
        with open_session(endpoint) as session:
            assert session.run(b"echo $SSH_CONNECTION").output.startswith(b"::1 ")


OPENSSH_6_5 = (
    "KexAlgorithms curve25519-sha256@libssh.org,ecdh-sha2-nistp256,diffie-hellman-group1-sha1",
    "Ciphers aes128-ctr,aes128-gcm@openssh.com,aes128-cbc",
    "MACs hmac-sha1,hmac-sha2-256",
    "HostKeyAlgorithms ssh-ed25519,ssh-rsa",
    "PubkeyAcceptedAlgorithms ssh-ed25519,ssh-rsa",
)


def test_what_old_hosts_offer_is_enough_for_a_key_that_needs_no_sha1(tmp_path, stack):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, *OPENSSH_6_5) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with open_session(endpoint) as session:
            assert session.run(b"echo in").output == b"in\n"
        rsa = write_rsa(tmp_path / "MyData")
        sshd.authorize(rsa.public)
        with pytest.raises(AccessDeniedError):
            connect(endpoint._replace(key_file=rsa.path))
