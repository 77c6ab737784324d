"""What every SSH stack promises, against a real sshd."""

import hashlib
import os
import threading
from contextlib import ExitStack

import pytest

from mydata_like.core.errors import AccessDeniedError, HostKeyError, TransientError
from mydata_like.settings.values import CIPHERS
from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import accept_host_key
from tests.openssh import on_host
from tests.sshd_fixture import STACKS, endpoint_of, needs_sshd, open_session, sshd_with

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("server")) as sshd:
        yield sshd


@pytest.fixture(params=STACKS)
def endpoint(request, sshd, tmp_path):
    return endpoint_of(sshd, tmp_path, stack=request.param)


@pytest.fixture
def session(endpoint):
    with open_session(endpoint) as session:
        yield session


def test_fifty_megabytes_arrive_as_they_were(session, tmp_path):
    content = os.urandom(1024 * 1024) * 50
    target = on_host(tmp_path / "target")
    stream = session.start(b"cat > %b; echo done" % bytes(target))
    view = memoryview(content)
    for start in range(0, len(content), 256 * 1024):
        stream.write(view[start : start + 256 * 1024])
    finished = stream.finish()
    assert finished == (0, b"done\n", b"")
    assert hashlib.md5(target.read_bytes()).digest() == hashlib.md5(content).digest()


def test_output_comes_while_much_is_written(session):
    content = bytes(8 * 1024 * 1024)
    stream = session.start(b"tee /dev/stderr")
    stream.write(content)
    status, output, errors = stream.finish()
    assert (status, len(output), len(errors)) == (0, len(content), len(content))


def test_a_reader_can_wait_for_as_much_as_will_come(session):
    def read_first():
        stream = session.start(b"printf a; sleep 0.3; printf bcd; sleep 0.3; printf e")
        first = stream.read(3, 2)
        assert first + b"".join(iter(lambda: stream.read(3, 2), b"")) == b"abcde"
        return first

    # What arrived before somebody reads is returned at once.
    assert b"abc" in iter(read_first, None)


def test_output_is_read_while_errors_without_end_are_printed(session):
    stream = session.start(b"head -c 5000000 /dev/zero >&2; echo done; exit 3")

    assert stream.read(100) == b"done\n"
    status, output, errors = stream.finish()
    assert (status, output, len(errors)) == (3, b"", 5_000_000)


def test_what_is_read_by_ourselves_and_by_a_thread_is_in_order(session):
    content = os.urandom(3_000_000)
    stream = session.start(b"tee /dev/null")
    stream.write(content)
    read = [stream.read(7), stream.read(300_000, 300_000), stream.read_ready(), stream.read(5)]
    status, rest, _ = stream.finish()

    assert status == 0
    assert hashlib.md5(b"".join(read) + rest).digest() == hashlib.md5(content).digest()


def test_a_host_that_prints_without_end_is_given_up(session):
    with pytest.raises(TransientError) as raised:
        session.run(b"head -c 40000000 /dev/zero")

    assert raised.value.problem_code == "staging.flood"


def test_the_exit_status_and_both_outputs_come_back(session):
    assert session.run(b"echo out; echo err >&2; exit 7") == (7, b"out\n", b"err\n")


def test_what_is_given_as_input_is_read(session):
    assert session.run(b"cat", b"some words") == (0, b"some words", b"")


def test_a_killed_command_has_no_status(session):
    assert session.run(b"kill -9 $$").status is None


def test_many_commands_follow_one_another_in_one_session(session):
    for number in range(60):
        assert session.run(b"echo %d; exit %d" % (number, number)) == (
            number,
            b"%d\n" % number,
            b"",
        )


def test_a_command_that_ends_early_still_reports_its_status(session):
    stream = session.start(b"head -c 10; echo enough >&2; exit 3")
    for _ in range(80):
        stream.write(bytes(256 * 1024))
    assert stream.finish() == (3, bytes(10), b"enough\n")


def test_output_is_read_as_it_comes(session):
    stream = session.start(b"echo ready; read word; echo got $word; cat >/dev/null")
    assert stream.read(100) == b"ready\n"
    assert stream.read_ready() == b""
    stream.write(b"this\n")
    assert stream.read(4) == b"got "
    assert stream.read(100) == b"this\n"
    assert stream.finish() == (0, b"", b"")


def test_reading_ends_with_the_output(session):
    stream = session.start(b"printf abc")
    assert stream.read(100) == b"abc"
    assert stream.read(100) == b""
    assert stream.read(100) == b""
    assert stream.finish().status == 0


def test_two_streams_share_one_session(session):
    first, second = session.start(b"cat"), session.start(b"cat")
    first.write(b"one")
    second.write(b"two")
    assert second.finish().output == b"two"
    assert first.finish().output == b"one"


def test_a_dropped_stream_leaves_the_session_usable(session):
    session.start(b"sleep 100").close()
    assert session.run(b"echo still here").output == b"still here\n"


def test_the_session_says_what_it_is(session, endpoint):
    assert session.stack == endpoint.stack
    assert session.cipher == "aes128-gcm@openssh.com"


def test_the_wished_cipher_is_used(endpoint):

    with open_session(endpoint._replace(ciphers=("aes256-ctr",))) as session:
        assert session.cipher == "aes256-ctr"
        assert session.run(b"echo fine").output == b"fine\n"


def test_closing_twice_is_not_an_error(endpoint):
    session = connect(endpoint)
    session.close()
    session.close()
    with pytest.raises(TransientError):
        session.run(b"echo")


@pytest.mark.parametrize("stack", STACKS)
def test_a_key_that_is_not_let_in_is_named(tmp_path, stack):
    with sshd_with(tmp_path) as sshd:
        endpoint = endpoint_of(sshd, tmp_path, stack=stack)
        sshd.forbid_all()
        with pytest.raises(AccessDeniedError) as raised:
            connect(endpoint)
    assert raised.value.problem_code == "ssh.key-refused"


@pytest.mark.parametrize("stack", STACKS)
def test_an_unknown_host_key_stops_everything(sshd, tmp_path, stack):
    endpoint = endpoint_of(sshd, tmp_path, stack=stack, host_keys=())
    with pytest.raises(HostKeyError) as raised:
        connect(endpoint)
    assert raised.value.problem_code == "host-key.unknown"
    assert sshd.fingerprint in raised.value.message
    assert f"--accept-host-key {sshd.fingerprint}" in raised.value.hint


@pytest.mark.parametrize("stack", STACKS)
def test_an_accepted_host_key_is_known_from_then_on(sshd, tmp_path, stack):
    endpoint = endpoint_of(sshd, tmp_path, stack=stack, host_keys=())
    accept_host_key(endpoint.known_hosts, endpoint.host, endpoint.port, sshd.host_key)
    with open_session(endpoint) as session:
        assert session.run(b"echo known").output == b"known\n"


def test_streams_of_one_session_work_side_by_side(session):
    contents = [os.urandom(3 << 20) for _ in range(4)]
    sums = {}

    def send(content: bytes) -> None:
        stream = session.start(b"sleep 0.05; md5sum")
        stream.write(content)
        sums[content] = stream.finish().output.split()[0].decode()

    threads = [threading.Thread(target=send, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sums == {content: hashlib.md5(content).hexdigest() for content in contents}


def test_a_stream_that_waits_does_not_keep_others_waiting(session):
    waiting = session.start(b"cat")
    answers = []
    reader = threading.Thread(target=lambda: answers.append(waiting.read(100)))
    reader.start()
    for number in range(50):
        assert session.run(b"echo %d" % number).output == b"%d\n" % number
    waiting.write(b"at last")
    reader.join(30)
    assert answers == [b"at last"]
    waiting.finish()


def test_a_keepalive_of_the_host_is_answered_while_nothing_is_read(tmp_path):
    (tmp_path / "keys").mkdir()
    options = "ClientAliveInterval 1", "ClientAliveCountMax 2"
    with sshd_with(tmp_path, *options) as sshd, ExitStack() as open_ones:
        endpoints = [endpoint_of(sshd, tmp_path / "keys", stack=stack) for stack in STACKS]
        sessions = [open_ones.enter_context(open_session(endpoint)) for endpoint in endpoints]
        threading.Event().wait(5)  # all threads have something else to do
        for session in sessions:
            assert session.run(b"echo here").output == b"here\n"


def test_what_paramiko_still_has_for_a_channel_that_was_closed_is_not_sent(sshd, tmp_path):
    with open_session(endpoint_of(sshd, tmp_path, stack="paramiko")) as session:
        wanted = on_host(tmp_path / "wanted")
        session.run(b"mkfifo %b" % bytes(wanted))
        channel = session.start(b"cat %b" % bytes(wanted))._channel
        with channel.lock:
            late = channel._send_eof()
        wanted.write_bytes(b"")  # ends the command, for which the host closes the channel
        while not channel.closed:
            channel.status_event.wait(0.01)
        channel.transport._send_user_message(late)

        assert session.run(b"cat", b"in the next channel").output == b"in the next channel"


def test_with_paramiko_a_lone_command_sends_megabytes_that_nobody_has_read_yet(sshd, tmp_path):
    sent = on_host(tmp_path / "sent")
    with open_session(endpoint_of(sshd, tmp_path, stack="paramiko")) as session:
        session.run(b"mkfifo %b" % bytes(sent))
        stream = session.start(b"head -c 7000000 /dev/zero; echo all > %b" % bytes(sent))

        assert sent.read_bytes() == b"all\n"

        received = 0
        while more := stream.read(2**20):
            received += len(more)
        assert received == 7_000_000


@pytest.mark.parametrize(
    ("only", "used"),
    [
        ("Ciphers aes128-gcm@openssh.com", "paramiko"),
        ("Ciphers aes256-ctr", "paramiko"),
        ("Ciphers chacha20-poly1305@openssh.com", "libssh"),
        ("KexAlgorithms diffie-hellman-group18-sha512", "libssh"),
    ],
)
def test_much_is_received_with_paramiko_where_it_can_agree_with_the_host(tmp_path, only, used):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, only) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack="auto")._replace(receives_much=True)
        with open_session(endpoint) as session:
            assert (session.stack, session.gcm_only) == (used, False)
            assert session.run(b"echo in").output == b"in\n"


def test_much_is_received_with_libssh_if_no_other_cipher_is_allowed_or_that_is_set(sshd, tmp_path):
    endpoint = endpoint_of(sshd, tmp_path, stack="auto")._replace(receives_much=True)
    for chosen in (endpoint._replace(ciphers=CIPHERS[-1:]), endpoint._replace(stack="libssh")):
        with open_session(chosen) as session:
            assert session.stack == "libssh"
