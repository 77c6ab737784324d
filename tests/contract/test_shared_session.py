"""One session of libssh and many threads: nothing of the library is used but in turns."""

import gc
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from threading import Event

import pytest

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.ssh.links import NO_CHANNEL
from tests.sshd_fixture import (
    endpoint_of,
    let_start_no_more,
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


def count_channels():
    gc.collect()  # errors of tests before hold on to their sessions
    return sum(type(each) is channel.Channel for each in gc.get_objects())


def test_streams_that_are_dropped_are_freed_in_a_turn(session):
    before = count_channels()
    streams = [session.start(b"cat") for _ in range(3)]
    with session._line.turn():
        streams.clear()
        assert count_channels() == before + 3
    with session._line.turn():
        assert count_channels() == before


@needs_limits
def test_a_refused_command_gives_its_channel_back_though_its_error_is_kept(sshd, session):
    stream, errors = session.start(b"cat"), []
    stream.write(b"x")
    assert stream.read(1) == b"x"
    let_start_no_more(sshd)
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
        granted = 0
        while granted < 250:
            try:
                session._line.open_stream()
                granted += 1
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
