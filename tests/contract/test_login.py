"""Logins with the user's own OpenSSH configuration, keys, agent and known hosts, to real sshds."""

import os
import pickle
import subprocess
from contextlib import suppress

import pytest

from mydata_like.core.copy_arguments import HostTarget
from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    SettingsError,
    StagingError,
    TransientError,
)
from mydata_like.ssh.connect import connect
from mydata_like.ssh.credentials import LoginCredentials
from mydata_like.ssh.keys import PublicKey, create_key, known_keys, load_key
from mydata_like.ssh.login import Trust, log_in
from mydata_like.ssh.user_config import find_login
from tests.asking_sshd import asking_sshd, needs_pam
from tests.faults.tcpproxy import TcpProxy
from tests.ssh_agent import running_agent, ssh_add
from tests.sshd_fixture import STACKS, needs_sshd, open_session, sshd_with

pytestmark = [
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="uses the programs of OpenSSH on this computer"),
]


class User:
    """A user with a home folder, whose OpenSSH is configured for some hosts."""

    def __init__(self, home):
        self.home = home
        self.folder = home / ".ssh"
        self.folder.mkdir(mode=0o700, parents=True)
        self.own_key = home / "state" / "id_ed25519"
        self.own_known_hosts = home / "state" / "known_hosts"
        self.environment = {"LOGNAME": "me"}

    def configure(self, text):
        (self.folder / "config").write_text(text)
        (self.folder / "config").chmod(0o600)

    def make_key(self, name, passphrase="", kind="ed25519"):
        """Make a key with a comment, as ssh-keygen does; return its public key."""
        path = self.folder / name
        words = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", path]
        subprocess.run(words, check=True)
        return PublicKey.parse(path.with_name(f"{name}.pub").read_text())

    def know(self, *lines):
        with (self.folder / "known_hosts").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def know_host(self, sshd):
        self.know(line_of(sshd))

    def find_login(self, host, port=None, username=""):
        target = HostTarget(host, b"", username, port)
        return find_login(
            target, self.home, self.environment, system_folder=self.home / "etc" / "ssh"
        )

    def log_in(self, host, port=None, username="", *, ask=None, **trust):
        login = self.find_login(host, port, username)
        known = Trust(self.own_known_hosts, **trust)
        return log_in(login, self.own_key, known, LoginCredentials(ask))


class Typed:
    """Types one answer after the other, and keeps the questions."""

    def __init__(self, *answers):
        self.answers = [*answers]
        self.questions = []

    def __call__(self, question, *, shown):
        self.questions.append(question)
        return self.answers.pop(0)


def line_of(sshd, key=None):
    return f"[{sshd.host}]:{sshd.port} {(key or sshd.host_key).line()}"


def alias_of(name, sshd, *options):
    """Return the lines of an alias in a configuration."""
    lines = (f"HostName {sshd.host}", f"Port {sshd.port}", f"User {sshd.username}", *options)
    return "\n    ".join((f"Host {name}", *lines)) + "\n"


def run_echo(endpoint):
    with open_session(endpoint) as session:
        return session.run(b"echo in").output == b"in\n"


def use_until_it_has_ended(endpoint):
    """Use a login that breaks; its end is not noticed at once."""
    for _ in range(1000):
        with suppress(TransientError):
            run_echo(endpoint)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("server")) as sshd:
        yield sshd


@pytest.fixture
def sshd(server):
    server.forbid_all()
    return server


@pytest.fixture
def user(tmp_path, sshd):
    """A user that has an alias `store` for the server."""
    user = User(tmp_path / "home")
    user.configure(alias_of("store", sshd))
    return user


@pytest.fixture
def agent(tmp_path_factory, user):
    with running_agent(tmp_path_factory.mktemp("a")) as path:
        user.environment["SSH_AUTH_SOCK"] = path
        yield path


def test_an_alias_names_host_port_user_and_key(user, sshd):
    user.know_host(sshd)
    user.configure(alias_of("store", sshd, "IdentityFile ~/.ssh/%r key"))
    sshd.authorize(user.make_key(f"{sshd.username} key"))
    user.make_key("id_ed25519")

    endpoint = user.log_in("store")

    assert (endpoint.host, endpoint.port) == (sshd.host, sshd.port)
    assert endpoint.username == sshd.username
    assert endpoint.key_file == user.folder / f"{sshd.username} key"
    assert run_echo(endpoint)
    assert not user.own_key.exists()


def test_a_given_user_and_port_count_instead_of_the_configured_ones(user, sshd):
    user.configure(f"Host *\n User nobody\n Port 1\n HostName {sshd.host}\n")

    login = user.find_login("store", 22, "me")

    assert (login.port, login.username) == (22, "me")


def test_the_keys_with_standard_names_are_tried_without_a_configuration(user, sshd):
    user.know_host(sshd)
    (user.folder / "config").unlink()
    sshd.authorize(user.make_key("id_rsa", kind="rsa"))
    user.make_key("id_ed25519")

    endpoint = user.log_in(sshd.host, sshd.port, sshd.username)

    assert endpoint.key_file == user.folder / "id_rsa"
    assert run_echo(endpoint)


def test_several_keys_are_tried_over_one_connection(user, sshd):
    user.know_host(sshd)
    names = ("a", "b", "c")
    user.configure(alias_of("store", sshd, *(f"IdentityFile ~/.ssh/{name}" for name in names)))
    keys = [user.make_key(name) for name in names]
    sshd.authorize(keys[-1])

    with TcpProxy(sshd.port) as proxy:
        user.know(f"[{sshd.host}]:{proxy.port} {sshd.host_key.line()}")
        endpoint = user.log_in("store", proxy.port)
        assert proxy.connections == 1

    assert endpoint.key_file == user.folder / "c"


def test_more_keys_than_the_host_allows_are_tried_over_another_connection(user, tmp_path):
    names = [f"k{number}" for number in range(5)]
    with sshd_with(tmp_path, "MaxAuthTries 2") as strict:
        user.configure(
            alias_of("store", strict, *(f"IdentityFile ~/.ssh/{name}" for name in names))
        )
        user.know_host(strict)
        keys = [user.make_key(name) for name in names]
        strict.authorize(keys[-1])

        assert user.log_in("store").key_file == user.folder / names[-1]


def test_no_more_than_eight_keys_are_tried(user, sshd):
    names = [f"k{number}" for number in range(9)]
    user.configure(alias_of("store", sshd, *(f"IdentityFile ~/.ssh/{name}" for name in names)))
    user.know_host(sshd)
    keys = [user.make_key(name) for name in names]
    sshd.authorize(keys[-1])

    with pytest.raises(AccessDeniedError) as raised:
        user.log_in("store")

    assert "k7" in raised.value.message
    assert "k8" not in raised.value.message


def test_an_agent_alone_may_have_the_key(user, sshd, agent):
    user.know_host(sshd)
    sshd.authorize(user.make_key("elsewhere"))
    ssh_add(agent, user.folder / "elsewhere")
    for name in ("elsewhere", "elsewhere.pub"):
        (user.folder / name).unlink()

    endpoint = user.log_in("store")

    assert (endpoint.agent, endpoint.any_key) == (agent, False)
    assert endpoint.key_file.parent.parent == user.own_key.parent
    assert run_echo(endpoint)


def test_other_keys_of_an_agent_are_not_used_with_identities_only(user, sshd, agent):
    user.know_host(sshd)
    user.configure(alias_of("store", sshd, "IdentitiesOnly yes"))
    sshd.authorize(user.make_key("elsewhere"))
    ssh_add(agent, user.folder / "elsewhere")

    with pytest.raises(AccessDeniedError, match="There is no key"):
        user.log_in("store")
    user.configure(alias_of("store", sshd, "IdentitiesOnly yes\nIdentityFile ~/.ssh/elsewhere.pub"))
    assert run_echo(user.log_in("store"))


@pytest.mark.parametrize("public", [True, False], ids=["with .pub", "without"])
def test_a_key_with_a_passphrase_is_used_from_the_agent(user, sshd, agent, public):
    user.know_host(sshd)
    user.configure(alias_of("store", sshd, "IdentitiesOnly yes\nIdentityFile ~/.ssh/work"))
    sshd.authorize(user.make_key("work"))
    ssh_add(agent, user.folder / "work")
    encrypt = ["ssh-keygen", "-q", "-p", "-N", "secret", "-f", user.folder / "work"]
    subprocess.run(encrypt, check=True, stdout=subprocess.DEVNULL)
    if not public:
        (user.folder / "work.pub").unlink()

    endpoint = user.log_in("store")

    assert endpoint.agent == agent
    assert run_echo(endpoint)


def test_a_key_with_a_passphrase_that_no_agent_has_is_named(user, sshd):
    user.know_host(sshd)
    sshd.authorize(user.make_key("id_ed25519", passphrase="secret"))

    with pytest.raises(AccessDeniedError) as raised:
        user.log_in("store")

    assert f"{user.folder / 'id_ed25519'} (it has a passphrase" in raised.value.message


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_passphrase_is_asked_for_once_and_every_session_uses_the_key(user, sshd, kind):
    user.know_host(sshd)
    user.configure(alias_of("store", sshd, "IdentityFile ~/.ssh/work"))
    sshd.authorize(user.make_key("work", passphrase="secret", kind=kind))
    typed = Typed("wrong", "secret")

    endpoint = user.log_in("store", ask=typed)

    assert (
        typed.questions == [f"Passphrase of {user.folder / 'work'} (empty: without this key): "] * 2
    )
    in_worker = pickle.loads(pickle.dumps(endpoint))
    for stack in STACKS:
        assert run_echo(in_worker._replace(stack=stack))
    assert "secret" not in repr(endpoint)
    kept = [path for path in user.home.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"secret" in path.read_bytes()]


def test_a_passphrase_is_not_asked_for_if_another_key_is_accepted(user, sshd):
    user.know_host(sshd)
    user.make_key("id_ed25519", passphrase="secret")
    sshd.authorize(user.make_key("id_rsa", kind="rsa"))

    assert run_echo(user.log_in("store", ask=Typed()))


def test_a_key_whose_passphrase_is_not_given_is_named(user, sshd):
    user.know_host(sshd)
    sshd.authorize(user.make_key("id_ed25519", passphrase="secret"))

    with pytest.raises(AccessDeniedError, match="its passphrase was not given"):
        user.log_in("store", ask=Typed(""))


def test_a_passphrase_serves_the_jump_host_and_the_host(user, sshd, tmp_path):
    with sshd_with(tmp_path) as gate:
        user.configure(alias_of("gate", gate) + alias_of("store", sshd, "ProxyJump gate"))
        public = user.make_key("id_ed25519", passphrase="secret")
        for host in (gate, sshd):
            user.know_host(host)
            host.authorize(public)

        assert run_echo(user.log_in("store", ask=Typed("secret")))


WAYS = {
    "answers alone": ("KbdInteractiveAuthentication yes", "PubkeyAuthentication no"),
    "a password": ("PasswordAuthentication yes", "PubkeyAuthentication no"),
    "after a key": (
        "KbdInteractiveAuthentication yes",
        "AuthenticationMethods publickey,keyboard-interactive",
    ),
}


@needs_pam
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_what_a_host_asks_is_answered_once_for_all_sessions(user, tmp_path, options):
    with asking_sshd(tmp_path, "secret", *options) as asking:
        user.configure(alias_of("store", asking))
        user.know_host(asking)
        asking.authorize(user.make_key("id_ed25519"))
        typed = Typed("wrong", "secret")

        endpoint = user.log_in("store", ask=typed)

        assert typed.questions == [f"({endpoint.account}) Password: "] * 2
        assert run_echo(pickle.loads(pickle.dumps(endpoint)))
        assert run_echo(endpoint)
        assert "secret" not in repr(endpoint)


@needs_pam
def test_wrong_answers_end_the_login(user, tmp_path):
    with asking_sshd(tmp_path, "secret", *WAYS["answers alone"]) as asking:
        user.configure(alias_of("store", asking))
        user.know_host(asking)

        with pytest.raises(StagingError, match="did not accept the answers") as raised:
            user.log_in("store", ask=Typed("a", "b", "c"))

    assert raised.value.problem_code == "ssh.second-factor"


@needs_pam
def test_where_nobody_can_answer_the_remedy_is_named(user, tmp_path):
    with asking_sshd(tmp_path, "secret", *WAYS["after a key"]) as asking:
        user.configure(alias_of("store", asking))
        user.know_host(asking)
        asking.authorize(user.make_key("id_ed25519"))

        with pytest.raises(StagingError) as raised:
            user.log_in("store")

    assert "Run the command on a terminal" in raised.value.hint


@needs_pam
def test_a_host_that_wants_another_code_for_each_session_gets_one_session(user, tmp_path):
    with asking_sshd(tmp_path, "111 222 333", *WAYS["answers alone"]) as asking:
        user.configure(alias_of("store", asking))
        user.know_host(asking)
        endpoint = user.log_in("store", ask=Typed("111"))

        with open_session(endpoint):  # whose end leaves the login
            assert run_echo(endpoint)
        assert asking.log.count("Accepted keyboard-interactive") == 1
        asking.kill_sessions()
        with pytest.raises(StagingError, match="wants a new code"):
            use_until_it_has_ended(endpoint)


@needs_pam
def test_a_code_for_a_jump_host_is_asked_for_once(user, sshd, tmp_path):
    with asking_sshd(tmp_path, "111 222 333", *WAYS["after a key"]) as gate:
        user.configure(alias_of("gate", gate) + alias_of("store", sshd, "ProxyJump gate"))
        public = user.make_key("id_ed25519")
        for host in (gate, sshd):
            user.know_host(host)
            host.authorize(public)

        endpoint = user.log_in("store", ask=Typed("111"))

        assert run_echo(endpoint)
        assert run_echo(endpoint)


def test_an_agent_that_does_not_answer_is_named(user, sshd):
    user.know_host(sshd)
    user.environment["SSH_AUTH_SOCK"] = str(user.home / "none")
    sshd.authorize(user.make_key("id_ed25519"))

    assert user.log_in("store").agent == ""
    sshd.forbid_all()
    with pytest.raises(AccessDeniedError, match=r"the agent \(it does not answer"):
        user.log_in("store")


def test_our_own_key_is_the_last_one(user, sshd):
    user.know_host(sshd)
    user.make_key("id_ed25519")
    sshd.authorize(create_key(user.own_key).public)

    endpoint = user.log_in("store")

    assert endpoint.key_file == user.own_key
    assert run_echo(endpoint)


def test_where_no_key_is_accepted_our_own_is_made_and_shown(user, sshd):
    user.know_host(sshd)
    user.make_key("id_ed25519")
    user.make_key("id_rsa", passphrase="secret", kind="rsa")

    with pytest.raises(AccessDeniedError) as raised:
        user.log_in("store")

    problem = raised.value.problem
    ours = load_key(user.own_key).public
    assert problem.code == "ssh.key-refused"
    assert f"Tried: {user.folder / 'id_ed25519'}." in problem.message
    assert f"Not tried: {user.folder / 'id_rsa'} (it has a passphrase" in problem.message
    assert problem.hint.endswith(ours.line("mydata-like"))
    assert "authorized_keys" in problem.hint
    sshd.authorize(PublicKey.parse(problem.hint.partition(": ")[2]))
    assert user.log_in("store").key_file == user.own_key


def test_a_host_that_is_away_is_reported_before_a_key_is_made(user):
    with TcpProxy(1) as proxy:
        port = proxy.port

    with pytest.raises(TransientError):
        user.log_in("127.0.0.1", port)

    assert not user.own_key.exists()


def test_jump_hosts_are_logged_in_to_as_their_own_aliases_say(user, sshd, tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    with sshd_with(tmp_path / "first") as first, sshd_with(tmp_path / "second") as second:
        user.configure(
            alias_of("one", first, "IdentityFile ~/.ssh/one")
            + alias_of("two", second, "IdentityFile ~/.ssh/two", "ProxyJump nowhere")
            + alias_of("store", sshd, "IdentityFile ~/.ssh/store", "ProxyJump one,two")
        )
        for name, host in (("one", first), ("two", second), ("store", sshd)):
            user.know_host(host)
            host.authorize(user.make_key(name))

        endpoint = user.log_in("store")

        assert [host.port for host in endpoint.way] == [first.port, second.port, sshd.port]
        assert [host.key_file.name for host in endpoint.way] == ["one", "two", "store"]
        with open_session(endpoint) as session:
            ports = session.run(b"echo $SSH_CONNECTION").output.split()
            assert ports[3] == b"%d" % sshd.port
        assert "Accepted publickey" in first.log
        assert "Accepted publickey" in second.log


def test_a_jump_host_that_accepts_no_key_is_named(user, sshd, tmp_path):
    with sshd_with(tmp_path) as gate:
        user.configure(alias_of("gate", gate) + alias_of("store", sshd, "ProxyJump gate"))
        user.know_host(gate)

        with pytest.raises(AccessDeniedError, match=f"port {gate.port}"):
            user.log_in("store")


def test_jump_hosts_that_lead_in_a_circle_are_refused(user, sshd):
    user.configure(
        alias_of("store", sshd, "ProxyJump one")
        + "Host one\n ProxyJump two\nHost two\n ProxyJump one\n"
    )

    with pytest.raises(SettingsError, match="circle: store, one, two, one") as raised:
        user.log_in("store")

    assert raised.value.problem_code == "ssh.config"


def test_a_jump_host_for_all_hosts_is_itself_reached_directly(user):
    user.configure("Host *\n ProxyJump gate\n")

    login = user.find_login("store")

    assert login.via is not None
    assert (login.via.host, login.via.via) == ("gate", None)
    assert user.find_login("gate").via is None


def test_hashed_names_of_hosts_are_found(user, sshd):
    user.know_host(sshd)
    known = user.folder / "known_hosts"
    subprocess.run(["ssh-keygen", "-H", "-f", known], check=True, capture_output=True)
    assert known.read_text().startswith("|1|")
    sshd.authorize(user.make_key("id_ed25519"))

    assert run_echo(user.log_in("store"))
    assert not user.own_known_hosts.exists()


@pytest.mark.parametrize(
    "line",
    ["[127.0.0.*]:{port} {key}", "elsewhere,127.0.0.1 {key}", "*,!elsewhere {key}"],
    ids=["pattern", "without port", "negated"],
)
def test_a_host_is_known_as_openssh_knows_it(user, sshd, line):
    user.know(line.format(port=sshd.port, key=sshd.host_key.line()))
    sshd.authorize(user.make_key("id_ed25519"))

    assert run_echo(user.log_in("store"))


def test_the_alias_of_a_host_key_is_looked_up_instead_of_the_host(user, sshd):
    user.configure(alias_of("store", sshd, "HostKeyAlias cluster"))
    user.know(f"cluster {sshd.host_key.line()}")
    sshd.authorize(user.make_key("id_ed25519"))

    assert run_echo(user.log_in("store"))


def test_another_known_hosts_file_may_be_configured(user, sshd):
    user.configure(alias_of("store", sshd, "UserKnownHostsFile ~/other /dev/null"))
    (user.home / "other").write_text(line_of(sshd) + "\n")
    sshd.authorize(user.make_key("id_ed25519"))

    assert run_echo(user.log_in("store"))


def test_a_changed_host_key_is_refused_whatever_the_user_accepts(user, sshd, tmp_path):
    old = create_key(tmp_path / "old").public
    user.know(line_of(sshd, old))
    sshd.authorize(user.make_key("id_ed25519"))
    before = sshd.log.count("publickey")

    with pytest.raises(HostKeyError) as raised:
        user.log_in("store", accepted=(sshd.fingerprint,), confirm=lambda *_: True)

    problem = raised.value.problem
    assert problem.code == "host-key.changed"
    assert old.fingerprint in problem.message
    assert sshd.fingerprint in problem.message
    assert sshd.log.count("publickey") == before
    assert not user.own_known_hosts.exists()
    known_hosts = user.folder / "known_hosts"
    remedy = f'ssh-keygen -R "[{sshd.host}]:{sshd.port}" -f "{known_hosts}"'
    assert problem.hint.endswith(remedy)
    subprocess.run(remedy, shell=True, check=True, capture_output=True)
    assert user.log_in("store", accepted=(sshd.fingerprint,))


def test_an_unknown_host_key_is_refused(user, sshd):
    sshd.authorize(user.make_key("id_ed25519"))

    with pytest.raises(HostKeyError) as raised:
        user.log_in("store", accepted=("SHA256:" + "A" * 43,))

    assert raised.value.problem_code == "host-key.unknown"
    assert raised.value.hint.endswith(f"command with --accept-host-key {sshd.fingerprint}")
    assert not user.own_known_hosts.exists()


def test_an_accepted_host_key_is_stored_in_our_own_file(user, sshd):
    sshd.authorize(user.make_key("id_ed25519"))

    endpoint = user.log_in("store", accepted=(sshd.fingerprint,))

    assert known_keys(endpoint) == [sshd.host_key]
    assert not (user.folder / "known_hosts").exists()
    assert run_echo(user.log_in("store"))


def test_an_unknown_host_key_can_be_confirmed(user, sshd):
    sshd.authorize(user.make_key("id_ed25519"))
    asked = []

    def answer(*question):
        asked.append(question)
        return len(asked) > 1

    with pytest.raises(HostKeyError):
        user.log_in("store", confirm=answer)
    assert run_echo(user.log_in("store", confirm=answer))
    assert run_echo(user.log_in("store", confirm=answer))
    assert asked == [(sshd.host, sshd.fingerprint, "ssh-ed25519")] * 2


def test_a_key_that_our_own_file_has_is_replaced_only_by_an_accepted_one(user, tmp_path):
    with sshd_with(tmp_path) as renewed:
        user.configure(alias_of("store", renewed))
        renewed.authorize(user.make_key("id_ed25519"))
        user.log_in("store", accepted=(renewed.fingerprint,))
        renewed.restart(new_host_key=True)

        with pytest.raises(HostKeyError) as raised:
            user.log_in("store", confirm=lambda *_: True)
        assert raised.value.problem_code == "host-key.changed"
        assert raised.value.hint.endswith(f"command with --accept-host-key {renewed.fingerprint}")
        assert run_echo(user.log_in("store", accepted=(renewed.fingerprint,)))


@pytest.mark.parametrize("hosts", ["*", "[127.0.0.1]:{port}"])
def test_a_revoked_host_key_is_never_trusted(user, sshd, hosts):
    user.know(f"@revoked {hosts.format(port=sshd.port)} {sshd.host_key.line()}")
    user.know_host(sshd)
    sshd.authorize(user.make_key("id_ed25519"))
    trust = {"accepted": (sshd.fingerprint,), "confirm": lambda *_: True}

    with pytest.raises(HostKeyError) as raised:
        user.log_in("store", **trust)

    assert raised.value.problem_code == "host-key.revoked"


def test_a_key_that_our_own_file_has_is_not_trusted_once_it_is_revoked(user, sshd):
    sshd.authorize(user.make_key("id_ed25519"))
    endpoint = user.log_in("store", accepted=(sshd.fingerprint,))
    connect(endpoint).close()
    user.know(f"@revoked * {sshd.host_key.line()}")

    with pytest.raises(HostKeyError, match="revoked"):
        user.log_in("store", accepted=(sshd.fingerprint,))


def test_a_certificate_authority_is_not_a_host_key(user, sshd):
    user.know(f"@cert-authority * {sshd.host_key.line()}")

    with pytest.raises(HostKeyError) as raised:
        user.log_in("store")

    assert raised.value.problem_code == "host-key.unknown"


def test_the_known_key_of_a_host_with_several_is_asked_for_first(user, tmp_path):
    user.make_key("host_rsa", kind="rsa")
    user.make_key("host_ed25519")
    rsa, ed25519 = (user.folder / name for name in ("host_rsa", "host_ed25519"))
    with sshd_with(tmp_path, f"HostKey {ed25519}", f"HostKey {rsa}") as both:
        user.configure(alias_of("store", both))
        user.know(line_of(both, load_key(rsa).public))
        both.authorize(user.make_key("id_ed25519"))
        with TcpProxy(both.port) as proxy:
            user.know(f"[{both.host}]:{proxy.port} {load_key(rsa).public.line()}")

            connect(user.log_in("store", proxy.port)).close()

            assert proxy.connections == 1


def test_no_command_of_the_configuration_is_run(user, sshd):
    touched = user.home / "touched"
    user.configure(
        f'Match exec "touch {touched}"\n    Port 1\n'
        f'Match !exec "touch {touched}"\n    Port 2\n'
        f"Match host * EXEC 'touch {touched}'\n    Port 3\n"
        + alias_of("store", sshd, f"LocalCommand touch {touched}", "PermitLocalCommand yes")
        + f"    RemoteCommand touch {touched}\n    KnownHostsCommand /usr/bin/touch {touched}\n"
        + "    RequestTTY force\n    ForwardX11 yes\n"
    )
    user.know_host(sshd)
    sshd.authorize(user.make_key("id_ed25519"))

    login = user.find_login("store")
    assert run_echo(user.log_in("store"))

    assert not touched.exists()
    assert [note.partition(": ")[2] for note in login.notes] == [
        "a Match with exec is not evaluated, so it does not apply."
    ] * 3


def test_a_proxy_command_is_refused_and_not_run(user, sshd):
    touched = user.home / "touched"
    user.configure(alias_of("store", sshd, f"ProxyCommand touch {touched}"))

    with pytest.raises(SettingsError, match="ProxyCommand") as raised:
        user.log_in("store")

    assert raised.value.problem_code == "ssh.config"
    assert "ProxyJump" in raised.value.hint
    assert not touched.exists()
    user.configure(alias_of("store", sshd, "ProxyCommand none"))
    assert user.find_login("store").via is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Host store\n HostName 'a\n", "line 2"),
        ("Port\n", "line 1: port has no value"),
        ("Port 70000\n", "port 70000"),
        ("HostName -oProxyCommand=x\n", "HostName"),
        ("ProxyJump -x\n", "ProxyJump"),
    ],
)
def test_an_invalid_configuration_is_reported(user, text, message):
    user.configure(text)

    with pytest.raises(SettingsError, match=message) as raised:
        user.find_login("store")

    assert raised.value.problem_code == "ssh.config"


def test_a_configuration_that_others_can_change_is_refused(user):
    (user.folder / "config").chmod(0o666)

    with pytest.raises(SettingsError, match="can be changed by other users"):
        user.find_login("store")
