"""Large files over SFTP, by several streams at once: each byte in its place, or no file at all."""

import os
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.sftp import Sftp
from mydata_like.transfer.ssh.multi_stream import BLOCK, FAR, LARGE, StreamLimit
from mydata_like.transfer.ssh.sftp_sender import SftpSender
from mydata_like.transfer.temporary_files import part_name
from mydata_like.transfer.worker_messages import SendTask
from tests.fakes.place import MODIFIED, checksum
from tests.fakes.session import LocalSession, SlowToAnswer, state
from tests.privileges import needs_shell

SERVER = b"exec /usr/lib/openssh/sftp-server"
SIZE = LARGE + (9 << 20) + 12_345

pytestmark = [
    pytest.mark.process,
    needs_shell,
    pytest.mark.skipif(
        not Path("/usr/lib/openssh/sftp-server").exists(), reason="needs OpenSSH's sftp-server"
    ),
]


class SftpOnly(LocalSession):
    """Speaks SFTP with a server here, so many times at once; each answer takes so long."""

    def __init__(self, *, seconds: float = 0.0, limit: int | None = None, most: int = 10) -> None:
        super().__init__(limit)
        self._seconds = seconds
        self._most = most
        self.opened = 0

    def open_sftp(self) -> Sftp:
        if self.opened == self._most:
            raise TransientError("There are too many.", code=NO_CHANNEL)
        self.opened += 1
        return Sftp(SlowToAnswer(self.start(SERVER), self._seconds))


def far(**options) -> SftpOnly:
    return SftpOnly(seconds=1.1 * FAR, **options)


def ignore(*_: int) -> None: ...


def open_sender(place, session, limit=None):
    options = state(place.location, HostCapabilities("sftp"), limit=limit or StreamLimit(4))
    return SftpSender(session.throttled(), options)


def send(place, member, session, moving=ignore, limit=None):
    place.location.mkdir(exist_ok=True)
    sender = open_sender(place, session, limit)
    try:
        (fate,) = sender.send(SendTask((member,), batched=False), moving).results
        return fate
    finally:
        sender.close()


def part_of(place, member) -> Path:
    return place.there(member).parent / os.fsdecode(part_name(member))


def map_of(place, member) -> Path:
    part = part_of(place, member)
    return part.with_name(part.name + ".map")


@pytest.fixture
def member(place):
    member = place.write("set 1/it's large", SIZE)
    place.settle(member)
    return member


@pytest.mark.parametrize(("session", "streams"), [(far(), range(2, 5)), (SftpOnly(), range(1, 2))])
def test_a_file_arrives_over_several_streams_where_the_host_is_far(place, member, session, streams):
    moved = []

    def count(sent, omitted=0):
        moved.append(sent)

    assert send(place, member, session, count).checksum == checksum(member)
    assert place.arrived(member)
    assert session.opened in streams
    assert sum(moved) == SIZE
    assert place.there(member).stat().st_mtime == MODIFIED
    assert [path.name for path in place.there(member).parent.iterdir()] == ["it's large"]


def test_a_file_that_shares_its_session_with_others_gets_one_stream(place, member):
    session, limit = far(), StreamLimit(4)
    with limit.used():
        assert send(place, member, session, limit=limit).checksum == checksum(member)
    assert place.arrived(member)
    assert session.opened == 1


def test_what_a_broken_line_left_is_not_sent_again(place, member):
    with pytest.raises(TransientError):
        send(place, member, far(limit=34 << 20))
    assert not place.there(member).exists()
    session, moved = far(), []

    def count(sent, omitted=0):
        moved.append((sent, omitted))

    assert send(place, member, session, count).checksum == checksum(member)
    assert place.arrived(member)
    sent, omitted = map(sum, zip(*moved, strict=True))
    assert sent <= session.written < SIZE - (10 << 20)
    assert sent + omitted == SIZE
    assert len(list(place.there(member).parent.iterdir())) == 1


def leave(place, member, arrived: bytes, length: int = SIZE) -> None:
    """Leave the blocks that a map reports, and rubbish in the place of the others."""
    content = Path(os.fsdecode(member.path)).read_bytes()
    part = part_of(place, member)
    part.parent.mkdir(parents=True)
    with part.open("wb") as file:
        for number, mark in enumerate(arrived):
            block = content[number * BLOCK : (number + 1) * BLOCK]
            file.write(block if mark == ord("+") else b"?" * len(block))
        file.truncate(length)
    map_of(place, member).write_bytes(arrived.rstrip(b"\0"))


def test_only_the_blocks_that_are_missing_are_sent(place, member):
    leave(place, member, b"++\0+\0\0++\0\0+")
    session = far()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    known = 5 * BLOCK + SIZE % BLOCK
    assert SIZE - known <= session.written < SIZE - known + (1 << 20)


def test_a_block_that_lies_beyond_the_end_of_what_is_there_is_sent(place, member):
    leave(place, member, b"+" * 11, length=3 * BLOCK - 1)
    session = far()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written > SIZE - 3 * BLOCK


def test_a_file_sent_again_trusts_no_partial_file(place, member):
    leave(place, member, b"+\0+")
    part_of(place, member).write_bytes(b"?" * SIZE)
    again = member._replace(from_scratch=True)
    assert send(place, again, far()).checksum == checksum(member)
    assert place.arrived(member)


def test_a_host_that_grants_one_stream_gets_the_file_by_one(place, member):
    session = far(most=1)
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)


def test_a_file_that_changes_in_the_meantime_never_gets_its_name(place, member):
    victim = Path(os.fsdecode(member.path))

    def meddle(*_: int) -> None:
        if victim.stat().st_mtime == MODIFIED:
            os.truncate(victim, SIZE)
            os.utime(victim)

    assert send(place, member, far(), meddle).problem.code == "file.changed"
    assert list(place.there(member).parent.iterdir()) == []


@pytest.mark.parametrize("session", [far(), SftpOnly()])
def test_a_disk_that_takes_no_more_leaves_nothing(place, member, session):
    parent = place.there(member).parent
    parent.mkdir(parents=True)
    part_of(place, member).symlink_to("/dev/full")
    fate = send(place, member, session)
    assert fate.again
    assert fate.problem.code == "staging.refused"
    assert list(parent.iterdir()) == []


def test_a_server_that_refuses_blocks_gets_the_next_files_by_one_stream(place, member):
    place.there(member).parent.mkdir(parents=True)
    part_of(place, member).symlink_to("/dev/full")
    session = far()
    sender = open_sender(place, session)
    assert sender.send(SendTask((member,), batched=False), ignore).results[0].again
    opened = session.opened
    maps = []
    look = lambda _: maps.append(map_of(place, member).exists())  # noqa: E731
    (fate,) = sender.send(SendTask((member,), batched=False), look).results
    sender.close()
    assert fate.checksum == checksum(member)
    assert place.arrived(member)
    assert session.opened == opened
    assert not any(maps)


def test_an_end_in_the_middle_leaves_what_has_arrived(place, member):
    moved = []

    def stop(count: int, *_: int) -> None:
        moved.append(count)
        if sum(moved) > 20 << 20:
            raise TransientError("It is not wanted any more.")

    with pytest.raises(TransientError, match="not wanted"):
        send(place, member, far(), stop)
    assert not place.there(member).exists()
    session = far()
    assert send(place, member, session).checksum == checksum(member)
    assert session.written < SIZE - BLOCK
