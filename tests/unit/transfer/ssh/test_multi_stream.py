"""Large files over several streams at once: each byte in its place, or no file at all."""

import os
import threading
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.transfer.ssh import multi_stream
from mydata_like.transfer.ssh.multi_stream import StreamLimit
from mydata_like.transfer.ssh.remote_shell import RemoteDirs, Shells
from mydata_like.transfer.ssh.single_file import PartialFiles, SingleSender, StripedSender
from mydata_like.transfer.temporary_files import part_name
from tests.fakes.place import MODIFIED, checksum
from tests.fakes.session import LocalSession, SlowToAnswer, state
from tests.privileges import needs_shell

pytestmark = [pytest.mark.process, needs_shell]

SHELL = HostCapabilities("shell", tar="gnu", checksum=b"md5sum")
SIZE = multi_stream.LARGE + (9 << 20) + 12_345


class FarSession(LocalSession):
    """Takes a while to start a command, as a host far away does; grants so many `at_once`.

    A `busy` one is not far away: its commands answer quickly.
    """

    def __init__(self, limit: int | None = None, at_once: int = 100, *, busy: bool = False) -> None:
        super().__init__(limit)
        self._at_once = at_once
        self._busy = busy
        self._streams = []

    def start(self, command: bytes):
        threading.Event().wait(2.2 * multi_stream.FAR)
        self._streams = [stream for stream in self._streams if stream._process.returncode is None]
        if len(self._streams) >= self._at_once:
            raise TransientError("There are too many.", code=NO_CHANNEL)
        stream = super().start(command)
        self._streams.append(stream)
        return stream if self._busy else SlowToAnswer(stream, 1.1 * multi_stream.FAR)


def ignore(*_: int) -> None: ...


def send(place, member, session, moving=ignore, limit=None):
    shells = Shells(session)
    shells.open()
    try:
        limit = limit or StreamLimit(4)
        sender = SingleSender(shells, state(place.location, SHELL, limit=limit))
        return sender.send(0, member, moving)
    finally:
        shells.close()


def part_of(place, member) -> Path:
    return place.there(member).parent / os.fsdecode(part_name(member))


@pytest.fixture
def member(place):
    member = place.write("set 1/it's large", SIZE)
    place.settle(member)
    return member


def is_striped(place, member) -> bool:
    part = part_of(place, member)
    return part.with_name(part.name + ".at").exists()


def test_a_file_arrives_over_several_streams(place, member):
    moved, striped_then = [], []

    def follow(count: int, *_: int) -> None:
        moved.append(count)
        striped_then.append(is_striped(place, member))

    assert send(place, member, FarSession(), follow).checksum == checksum(member)
    assert place.arrived(member)
    assert sum(moved) == SIZE
    assert any(striped_then)
    assert place.there(member).stat().st_mtime == MODIFIED
    assert [path.name for path in place.there(member).parent.iterdir()] == ["it's large"]


def test_what_a_broken_line_left_is_not_sent_again(place, member):
    with pytest.raises(TransientError):
        send(place, member, FarSession(limit=34 << 20))
    assert not place.there(member).exists()
    session = FarSession()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < SIZE - (20 << 20)
    assert len(list(place.there(member).parent.iterdir())) == 1


def test_much_that_is_left_goes_over_several_streams_again(place):
    member = place.write("a/very large", 2 * multi_stream.LARGE)
    place.settle(member)
    with pytest.raises(TransientError):
        send(place, member, FarSession(limit=26 << 20))
    session = FarSession()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < member.size - (10 << 20)


def test_a_gap_in_what_is_left_is_filled(place, member):
    part = part_of(place, member)
    part.parent.mkdir(parents=True)
    content = Path(os.fsdecode(member.path)).read_bytes()
    part.write_bytes(content[: 16 << 20] + bytes(8 << 20) + content[24 << 20 : 30 << 20])
    beside = part.with_name(part.name + ".at")
    beside.write_text(f"0 {12 << 20}\n{24 << 20} {6 << 20}\n{12 << 20} {4 << 20}\n")
    session = FarSession()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert SIZE - (16 << 20) <= session.written < SIZE - (15 << 20)


def test_what_others_are_at_work_on_is_left_alone(place, member):
    theirs = place.there(member).with_name(".mydata-of-others.part")
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(bytes(100_000))
    beside = theirs.with_name(theirs.name + ".at")
    beside.write_text("50000 50000\n")
    assert send(place, member, FarSession()).checksum == checksum(member)
    assert theirs.stat().st_size == 100_000
    assert beside.read_text() == "50000 50000\n"


def test_what_others_left_is_not_built_upon(place, member):
    part = part_of(place, member)
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * (8 << 20))
    assert send(place, member, FarSession()).checksum == checksum(member)
    assert place.arrived(member)


def test_a_host_that_grants_one_stream_gets_the_file_by_one(place, member):
    assert send(place, member, FarSession(at_once=2)).checksum == checksum(member)
    assert place.arrived(member)


def test_a_file_that_changes_in_the_meantime_never_gets_its_name(place, member):
    victim = Path(os.fsdecode(member.path))

    def meddle(*_: int) -> None:
        if victim.stat().st_mtime == MODIFIED:
            os.truncate(victim, SIZE)
            os.utime(victim)

    fate = send(place, member, FarSession(), meddle)
    assert fate.problem.code == "file.changed"
    assert not place.there(member).exists()

    place.settle(member)
    again = member._replace(modified_ns=victim.stat().st_mtime_ns)
    assert send(place, again, FarSession()).checksum == checksum(member)
    assert list(place.there(member).parent.iterdir()) == [place.there(member)]


def test_a_full_disk_is_reported_and_leaves_nothing(place, member):
    parent = place.there(member).parent
    parent.mkdir(parents=True)
    part_of(place, member).symlink_to("/dev/full")

    def replace(*_: int) -> None:
        if not part_of(place, member).is_symlink():
            part_of(place, member).unlink(missing_ok=True)
            part_of(place, member).symlink_to("/dev/full")

    result = send(place, member, FarSession(), replace)
    assert result.problem.code == "staging.full"
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize("near", [LocalSession(), FarSession(busy=True)])
def test_a_near_host_gets_the_file_by_one_stream(place, member, near):
    striped_then = []
    follow = lambda *_: striped_then.append(is_striped(place, member))  # noqa: E731
    assert send(place, member, near, follow).checksum == checksum(member)
    assert place.arrived(member)
    assert striped_then
    assert not any(striped_then)


def test_a_file_that_shares_its_session_with_others_gets_one_stream(place, member):
    striped_then = []
    follow = lambda *_: striped_then.append(is_striped(place, member))  # noqa: E731
    limit = StreamLimit(4)
    with limit.used(), limit.used():
        assert send(place, member, FarSession(), follow, limit).checksum == checksum(member)
    assert place.arrived(member)
    assert striped_then
    assert not any(striped_then)


def test_a_file_that_outlasts_others_of_its_session_may_get_several_streams(place):
    shells, limit = Shells(FarSession()), StreamLimit(4)
    shells.open()
    dirs = RemoteDirs(shells, os.fsencode(place.location))
    sender = StripedSender(
        shells, dirs, PartialFiles(dirs), state(place.location, SHELL, limit=limit)
    )
    with limit.used():
        assert sender.suits(SIZE)
        with limit.used():
            assert not sender.suits(SIZE)
            assert sender.suits(SIZE << 10)
    shells.close()
