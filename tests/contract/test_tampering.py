"""What an attacker changes on the way is refused, in both directions and with each library."""

import asyncio
from contextlib import contextmanager
from itertools import cycle
from threading import Thread

import asyncssh
import pytest
from asyncssh.constants import MSG_KEXINIT
from asyncssh.packet import NameList
from ssh import options

from mydata_like.core.errors import StagingError, TransientError, UploaderError
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.ports import SentFile
from mydata_like.selftest.tampering import TamperingProxy
from mydata_like.settings.values import CIPHERS
from mydata_like.ssh import dialing
from mydata_like.ssh.connect import connect, fetch_host_key
from mydata_like.ssh.keys import create_key, load_key
from mydata_like.ssh.libssh_version import checks_gcm
from mydata_like.ssh.session import HOST_KEYS, Endpoint
from mydata_like.ssh.session_libssh import LibsshTransport
from tests.fakes.place import checksum
from tests.openssh import on_host
from tests.sshd_fixture import STACKS, endpoint_of, needs_sshd, open_session, sshd_with
from tests.staging import Memory, Staging, single
from tests.trials.tamper import (
    ALL_CIPHERS,
    DIRECTIONS,
    GCM,
    PLACES,
    SITUATIONS,
    Hosts,
    is_used,
    tamper,
)

pytestmark = needs_sshd
needs_old_libssh = pytest.mark.skipif(checks_gcm(), reason="this libssh checks AES-GCM")
CTR = ("aes128-ctr", "aes256-ctr")
STALL = 2.0


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("hosts")) as hosts:
        yield hosts


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("cipher", ALL_CIPHERS)
def test_a_changed_bit_is_refused(hosts, cipher, direction, stack):
    inward = DIRECTIONS[direction]
    endpoint = hosts.find(cipher, stack)
    if not is_used(cipher, stack, inward=inward):
        with pytest.raises(UploaderError) as raised:
            connect(endpoint._replace(inward=endpoint.ciphers))
        assert raised.value.problem_code in ("ssh.unchecked", "ssh.no-algorithm")
        return
    first = ALL_CIPHERS.index(cipher)
    accepted = [
        (situation, place)
        for number, situation in enumerate(SITUATIONS)
        for place in (PLACES * 2)[first + number :: len(PLACES) // 2][:2]
        if tamper(endpoint, hosts, situation, inward=inward, after=place, bit=place % 8)
    ]
    assert accepted == []


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("cipher", ALL_CIPHERS)
def test_what_nobody_changes_passes_the_proxy(hosts, cipher, stack):
    endpoint = hosts.find(cipher, stack)
    if not is_used(cipher, stack, inward=False):
        pytest.skip("the library does not have it")
    with TamperingProxy(endpoint.port) as proxy:
        for situation in SITUATIONS.values():
            with open_session(endpoint._replace(port=proxy.port)) as session:
                assert situation(session, hosts)
                assert session.cipher == cipher.partition(" ")[0]


@needs_old_libssh
def test_the_trial_finds_what_this_libssh_does_not_check(hosts):
    """Without our choice of ciphers, changed replies are accepted."""
    endpoint = hosts.find(GCM[0], "libssh")
    accepted = 0
    for place in PLACES:
        with TamperingProxy(endpoint.port) as proxy:
            transport = LibsshTransport(endpoint, dialing.dial(endpoint._replace(port=proxy.port)))
            transport._inward = GCM
            transport.handshake(HOST_KEYS)
            transport.authenticate(load_key(endpoint.key_file))
            session = transport.session()
            proxy.flip(inward=True, after=place)
            try:
                SITUATIONS["checksum"](session, hosts)
                accepted += session.run(b"echo in").output == b"in\n"
            except UploaderError:
                pass
            finally:
                session.close()
    assert accepted


@pytest.mark.parametrize("stack", STACKS)
def test_a_packet_that_is_added_before_the_encryption_is_refused(hosts, stack):
    endpoint = hosts.find("aes128-ctr", stack)
    with TamperingProxy(endpoint.port) as proxy:
        proxy.injects = True
        with pytest.raises(TransientError):
            fetch_host_key(endpoint._replace(port=proxy.port))
        assert proxy.changed.is_set()


@pytest.mark.parametrize("stack", STACKS)
def test_a_damaged_packet_is_a_lost_connection_and_prints_nothing(hosts, stack, capfd):
    endpoint = hosts.find(CTR[0] if stack == "libssh" else GCM[0], stack)
    with TamperingProxy(endpoint.port) as proxy:
        session = connect(endpoint._replace(port=proxy.port))
        proxy.flip(inward=True, after=40)
        with pytest.raises(TransientError) as raised:
            session.run(b"echo in")
        session.close()
    assert raised.value.problem_code == "link.lost"
    assert raised.value.message == (
        "The connection to 127.0.0.1 was lost: a packet was damaged or changed on the way."
    )
    assert capfd.readouterr() == ("", "")


def renewals(sshd):
    return sshd.log.count("ssh_set_newkeys: rekeying")


@pytest.fixture
def renewing(tmp_path):
    """A host that renews the keys after each megabyte."""
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, "RekeyLimit 1M", "LogLevel DEBUG1") as sshd:
        sshd.endpoint = endpoint_of(sshd, tmp_path / "keys", stack="libssh")
        yield sshd


def test_a_renewal_of_the_keys_keeps_ciphers_that_are_checked(renewing):
    with open_session(renewing.endpoint) as session:
        before = renewals(renewing)
        ended = session.run(b"head -c 3000000 /dev/zero; cat > /dev/null", bytes(3_000_000))
        assert (ended.status, ended.output) == (0, bytes(3_000_000))
        assert renewals(renewing) >= before + 4
        assert session.cipher == GCM[0]
        library = session._connection.library
        assert library.get_cipher_in().decode() == (GCM[0] if checks_gcm() else CTR[0])


@needs_old_libssh
def test_a_renewal_that_agrees_on_a_cipher_that_is_not_checked_ends_the_session(renewing):
    with open_session(renewing.endpoint) as session:
        session._connection.library.options_set(options.CIPHERS_S_C, GCM[0])
        with pytest.raises(TransientError, match="it sends with aes128-gcm"):
            session.run(b"head -c 3000000 /dev/zero")
        with pytest.raises(TransientError):
            session.run(b"echo in")


class UnequalLists(asyncssh.SSHServer):
    """A server that allows one cipher for each direction."""

    to_host, from_host = CTR[0], GCM[0]

    def connection_made(self, conn):
        names = [self.to_host.encode()], [self.from_host.encode()]
        turns, choose, send = cycle(names), conn._choose_alg, conn.send_packet

        def choose_in_turn(kind, ours, theirs):
            return choose(kind, next(turns) if kind == "encryption" else ours, theirs)

        def send_packet(kind, *parts, **others):
            if kind == MSG_KEXINIT:
                equal = NameList(conn._enc_algs)
                unequal = b"".join(map(NameList, names))
                parts = (parts[0].replace(equal + equal, unequal),)
                conn._server_kexinit = bytes([kind]) + parts[0]
            send(kind, *parts, **others)

        conn._choose_alg, conn.send_packet = choose_in_turn, send_packet

    def begin_auth(self, username):
        return False


class UnequalListsTheOtherWay(UnequalLists):
    to_host, from_host = GCM[0], CTR[0]


@contextmanager
def served(server, folder):
    """Run an asyncssh server that answers each command; yield an endpoint for it."""
    host_key, key = create_key(folder / "host_key"), create_key(folder / "key")
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()

    def do(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(20)

    async def listen():
        return await asyncssh.create_server(
            server,
            *("127.0.0.1", 0),
            server_host_keys=[str(host_key.path)],
            process_factory=lambda process: process.exit(len(process.command)),
        )

    async def close(acceptor):
        acceptor.close()
        await acceptor.wait_closed()

    acceptor = do(listen())
    try:
        yield Endpoint(
            host="127.0.0.1",
            port=acceptor.get_port(),
            username="me",
            key_file=key.path,
            known_hosts=folder / "known",
            host_keys=(host_key.public.fingerprint,),
        )
    finally:
        do(close(acceptor))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_host_may_allow_other_ciphers_in_each_direction(tmp_path):
    with (
        served(UnequalListsTheOtherWay, tmp_path) as endpoint,
        open_session(endpoint) as session,
    ):
        assert (session.stack, session.gcm_only) == ("libssh", False)
        assert session.cipher == GCM[0]
        assert session.run(b"12345").status == 5


@needs_old_libssh
def test_a_host_that_sends_only_with_unchecked_ciphers_is_reached_with_paramiko(tmp_path):
    with served(UnequalLists, tmp_path) as endpoint:
        assert fetch_host_key(endpoint).fingerprint == endpoint.host_keys[0]
        with open_session(endpoint) as session:
            assert (session.stack, session.gcm_only) == ("paramiko", True)
            assert session.cipher == CTR[0]
            assert session.run(b"12345").status == 5
        with pytest.raises(StagingError) as raised:
            connect(endpoint._replace(stack="libssh"))
        assert raised.value.problem_code == "ssh.unchecked"


@needs_old_libssh
@pytest.mark.parametrize(
    ("host", "ours", "stack"),
    [
        (GCM, CIPHERS, "paramiko"),
        (CIPHERS, GCM, "paramiko"),
        (CIPHERS, GCM[1:], "paramiko"),
        ((*GCM, CTR[1]), CIPHERS, "libssh"),
        (CIPHERS, (GCM[0], CTR[1]), "libssh"),
        ((GCM[0], CIPHERS[-1]), CIPHERS, "libssh"),
    ],
)
def test_the_library_is_one_that_checks_with_the_ciphers_of_both_sides(tmp_path, host, ours, stack):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, f"Ciphers {','.join(host)}") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", ciphers=ours)
        with open_session(endpoint) as session:
            assert (session.stack, session.gcm_only) == (stack, stack == "paramiko")
            assert session.cipher == ours[0]
        if stack == "paramiko":
            with pytest.raises(StagingError) as raised:
                connect(endpoint._replace(stack="libssh"))
            assert raised.value.problem_code == "ssh.unchecked"
            assert "aes128-ctr" in raised.value.hint


@needs_old_libssh
def test_settings_with_unchecked_ciphers_only_lead_to_paramiko_with_one_notice(tmp_path):
    (tmp_path / "there").mkdir()
    with Staging(tmp_path) as staging:
        transport = staging.build(tmp_path / "there", ciphers=GCM[1:])
        transport.open_channel().close()
        transport.close()
        assert "Unable to negotiate" not in staging.sshd.log
    (opened,) = [it for it in staging.events if isinstance(it, ChannelChanged) and it.cipher]
    assert (opened.cipher, opened.detail[:8]) == (GCM[1], "paramiko")
    notices = [it.problem.code for it in staging.events if isinstance(it, Notice)]
    assert notices == ["ssh.paramiko"]


@needs_old_libssh
def test_a_host_with_unchecked_ciphers_only_is_remembered_and_reported_once(tmp_path):
    memory = Memory()
    (tmp_path / "there").mkdir()
    with Staging(tmp_path, options=(f"Ciphers {','.join(GCM)}",)) as staging:
        for _ in range(2):
            staging.events.clear()
            transport = staging.build(tmp_path / "there", memory=memory, channels=2)
            for channel in (transport.open_channel(), transport.open_channel()):
                channel.close()
            transport.close()
            notices = [it.problem.code for it in staging.events if isinstance(it, Notice)]
            assert notices == ["ssh.paramiko"]
            assert memory.known[staging.sshd.host].gcm_only
            once = staging.sshd.log.count("Unable to negotiate")
            assert once >= 1
        assert staging.sshd.log.count("Unable to negotiate") == once


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("kind", ["shell", "sftp", "scp"])
def test_a_file_arrives_although_a_packet_was_changed(tmp_path, place, kind, stack, direction):
    place.location = on_host(tmp_path / "plain")  # a host with scp only splits its words at spaces
    place.location.mkdir()
    member = place.write("a/file", 3 << 20)
    place.settle(member)
    with (
        Staging(tmp_path / "staging", kind) as staging,
        TamperingProxy(staging.sshd.port) as proxy,
    ):
        transport = staging.build(place.location, port=proxy.port, ssh=stack, stall_timeout=STALL)
        try:
            channel = transport.open_channel()
            proxy.flip(inward=DIRECTIONS[direction], after=100)
            with pytest.raises(TransientError):
                channel.send(single(member), lambda *_: None)
            assert proxy.changed.is_set()
            sent = channel.send(single(member), lambda *_: None)
        finally:
            transport.close()
    assert sent == [SentFile(0, checksum(member))]
    assert place.arrived(member)
    states = [event.state for event in staging.events if isinstance(event, ChannelChanged)]
    assert states == ["open", "lost", "open"]
