"""One session of libssh and many threads: nothing of the library is used but in turns."""

import gc
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from threading import Event
from time import monotonic

import pytest

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.ssh.dialing import NO_CHANNEL
from tests.sshd_fixture import (
    endpoint_of,
    needs_limits,
    needs_sshd,
    open_session,
    sshd_with,
)

channel = pytest.importorskip("ssh.channel", reason="needs libssh")
pytestmark = needs_sshd

CHUNK = bytes(range(256)) * 1024


@pytest.fixture
def sshd(tmp_path):
    with sshd_with(tmp_path, "MaxSessions 10") as sshd:
        yield sshd


@pytest.fixture
def session(sshd, tmp_path):
    (tmp_path / "keys").mkdir()
    with open_session(endpoint_of(sshd, tmp_path / "keys", stack="libssh")) as session:
        yield session


@pytest.fixture
def count_channels():
    """Count the channels; the garbage collector frees none of them during the test."""
    gc.collect()  # errors of earlier tests keep their sessions
    gc.disable()
    yield lambda: sum(type(each) is channel.Channel for each in gc.get_objects())
    gc.enable()


def test_streams_that_are_dropped_are_freed_in_a_turn(session, count_channels):
    before = count_channels()
    streams = [session.start(b"cat") for _ in range(3)]
    with session._connection.turn():
        streams.clear()
        assert count_channels() == before + 3
    with session._connection.turn():
        assert count_channels() == before


def test_a_stream_with_a_refused_request_is_freed_in_a_turn(session, count_channels):
    session.start(b"cat")  # the first one of a session measures the distance
    with session._connection.turn():
        before = count_channels()
    stream = session._connection.open_stream()
    assert not stream.offer(b"MYDATA_LIKE", b"")

    del stream

    assert count_channels() == before + 1
    with session._connection.turn():
        assert count_channels() == before


def keep_writing(stream):
    while True:
        stream.write(CHUNK)


USES = (
    keep_writing,
    lambda stream: stream.read(1),
    lambda stream: stream.offer(b"MYDATA_LIKE", b""),
    lambda stream: stream.finish(),
)


@pytest.mark.parametrize("use", USES, ids=["write", "read", "offer", "finish"])
def test_a_stream_that_an_error_has_kept_is_freed_in_a_turn(sshd, session, count_channels, use):
    before = count_channels()
    stream = session.start(b"cat")
    sshd.kill_sessions()
    with pytest.raises(TransientError) as raised:
        use(stream)

    del stream
    assert count_channels() == before + 1
    del raised
    assert count_channels() == before + 1
    with session._connection.turn():
        assert count_channels() == before


@needs_limits
def test_a_refused_command_gives_its_channel_back_though_its_error_is_kept(sshd, session):
    stream, errors = session.start(b"cat"), []
    stream.write(b"x")
    assert stream.read(1) == b"x"
    sshd.limit_sessions()
    for _ in range(20):
        with pytest.raises(RejectedError) as raised:
            session.start(b"cat")
        errors.append(raised.value)


def test_channels_that_come_and_go_do_not_disturb_the_others(session):
    over = Event()

    def carry():
        stream, checksum = session.start(b"md5sum"), md5()
        while not over.is_set():
            stream.write(CHUNK)
            checksum.update(CHUNK)
        return stream.finish().output[:32].decode() == checksum.hexdigest()

    def come_and_go():
        end = monotonic() + 1.0  # not so many times: a busy computer may need a minute for them
        while monotonic() < end:
            try:
                session._connection.open_stream()
            except TransientError as error:
                if error.problem_code != NO_CHANNEL:  # those of the others are just going
                    raise

    with ThreadPoolExecutor(6) as threads:
        carrying = [threads.submit(carry) for _ in range(2)]
        passing = [threads.submit(come_and_go) for _ in range(4)]
        try:
            for each in passing:
                each.result()
        finally:
            over.set()
        assert all(each.result() for each in carrying)
