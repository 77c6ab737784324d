"""Long runs of zeros are found and left out, and nothing else is."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.core.errors import FileChangedError, TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.sftp import Sftp
from mydata_like.transfer.file_source import open_source
from mydata_like.transfer.sparse import SMALLEST_HOLE, measure
from mydata_like.transfer.ssh.multi_stream import BLOCK, LARGE, StreamLimit
from mydata_like.transfer.ssh.remote_shell import Shells
from mydata_like.transfer.ssh.sftp_sender import SftpSender
from mydata_like.transfer.ssh.single_file import SingleSender
from mydata_like.transfer.worker_messages import SendTask
from mydata_like.transfer.zero_runs import LEAST, SparseWriter, find_data, is_zero
from tests.fakes.place import MODIFIED, checksum
from tests.fakes.session import LocalSession, state
from tests.privileges import needs_shell
from tests.unit.transfer.test_file_source import seen

SHELL = HostCapabilities("shell", tar="gnu", checksum=b"md5sum")
SFTP = HostCapabilities("sftp")
SERVER = Path("/usr/lib/openssh/sftp-server")
SIZE = 24 << 20
DATA = 3 << 20

needs_server = pytest.mark.skipif(not SERVER.exists(), reason="needs OpenSSH's sftp-server")


def ignore(*_: int) -> None: ...


def send(place, member, session=None, moving=ignore, *, find_zeros=True):
    shells = Shells(session or LocalSession())
    sender = SingleSender(shells, state(place.location, SHELL, find_zeros=find_zeros))
    try:
        return sender.send(0, member, moving)
    finally:
        shells.close()


class SftpOnly(LocalSession):
    def open_sftp(self) -> Sftp:
        return Sftp(self.start(b"exec %b" % os.fsencode(SERVER)))


def send_by_sftp(place, member, session, *, find_zeros=True):
    place.location.mkdir(exist_ok=True)
    options = state(place.location, SFTP, limit=StreamLimit(4), find_zeros=find_zeros)
    sender = SftpSender(session.throttled(), options)
    try:
        (fate,) = sender.send(SendTask((member,), batched=False), ignore).results
        return fate
    finally:
        sender.close()


def data_of(place, member, moving=ignore):
    with open_source(member) as source:
        return find_data(source, moving)


@pytest.fixture
def member(place):
    """A file that is mostly zeros, none of which is a hole."""
    content = bytearray(SIZE)
    content[5 << 20 : (5 << 20) + DATA] = os.urandom(DATA)
    member = place.write("a/zeros", 0, bytes(content))
    place.settle(member)
    return member


@pytest.mark.parametrize("size", [1, 511, SMALLEST_HOLE, 1024 * 1024])
def test_a_piece_is_zero_where_every_byte_is(size):
    piece = bytearray(size)
    assert is_zero(memoryview(piece))
    for place in {0, size // 2, size - 1}:
        piece[place] = 1
        assert not is_zero(memoryview(piece))
        piece[place] = 0


PLACES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 200_000)), max_size=6)


@settings(max_examples=40, deadline=None)
@given(data=PLACES, size=st.integers(LEAST, 3 << 20))
def test_all_that_lies_between_the_data_is_zeros(tmp_path_factory, data, size):
    path = tmp_path_factory.mktemp("zeros") / "file"
    content = bytearray(size)
    for number, length in data:
        content[number * 70_000 : number * 70_000 + length] = b"x" * length
    del content[size:]
    path.write_bytes(content)
    with open_source(seen(path)) as source:
        extents = find_data(source, ignore)
    path.unlink()

    rebuilt = bytearray(size)
    for offset, length in extents:
        rebuilt[offset : offset + length] = content[offset : offset + length]
    assert rebuilt == content
    assert all(offset % 512 == 0 and length > 0 for offset, length in extents)
    assert all(length % 512 == 0 for _, length in extents[:-1])
    assert all(sum(one) < other for one, (other, _) in pairwise(extents))


def test_only_a_file_that_shows_zeros_is_read_for_them(place, member):
    reads = []
    assert measure(data_of(place, member, reads.append)) == DATA
    assert len(reads) == SIZE >> 20

    dense = place.write("a/dense", SIZE)
    assert data_of(place, dense, reads.append) == [(0, SIZE)]
    assert len(reads) == SIZE >> 20


def test_a_small_file_is_not_looked_into(place):
    small = place.write("a/small", 0, bytes(LEAST - 1))
    assert data_of(place, small) == [(0, LEAST - 1)]


def test_a_file_that_ends_too_early_has_changed(place, member):
    with open_source(member) as source:
        os.truncate(member.path, SIZE - 1)
        with pytest.raises(FileChangedError):
            find_data(source, ignore)


@pytest.mark.process
@needs_shell
def test_zeros_are_not_sent_and_become_holes(place, member):
    session = LocalSession()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < DATA + 10_000
    there = place.there(member).stat()
    assert there.st_blocks * 512 < 2 * DATA
    assert there.st_mtime == MODIFIED
    assert len(list(place.there(member).parent.iterdir())) == 1


@pytest.mark.process
@needs_shell
def test_zeros_are_sent_unless_they_are_asked_for(place, member):
    session = LocalSession()
    assert send(place, member, session, find_zeros=False).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written > SIZE


@pytest.mark.process
@needs_shell
def test_a_file_of_nothing_but_zeros_arrives(place):
    empty = place.write("a/empty", 0, bytes(SIZE + 5))
    place.settle(empty)
    session = LocalSession()
    assert send(place, empty, session).checksum == checksum(empty)
    assert place.arrived(empty)
    assert session.written < 10_000


@pytest.mark.process
@needs_shell
def test_zeros_next_to_a_few_holes_are_found(place, member):
    with Path(os.fsdecode(member.path)).open("r+b") as file:
        file.truncate(SIZE + (1 << 20))
    path = Path(os.fsdecode(member.path))
    os.utime(path, (MODIFIED, MODIFIED))
    member = place.member(path, "a/zeros")
    place.settle(member)
    session = LocalSession()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < DATA + 10_000


@pytest.mark.process
@needs_shell
def test_a_file_with_few_zeros_goes_as_it_is(place):
    content = os.urandom(15 << 20) + bytes(9 << 20)
    member = place.write("a/file", 0, content)
    place.settle(member)
    session = LocalSession()
    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written > SIZE


@pytest.mark.process
@needs_shell
def test_data_that_come_where_zeros_were_found_are_a_change(place, member):
    reads = []

    def write_at_the_end(*_: int) -> None:
        reads.append(1)
        if len(reads) == SIZE >> 20:  # the last of the first reading
            with Path(os.fsdecode(member.path)).open("r+b") as file:
                file.seek(SIZE - 5)
                file.write(b"data")
            os.utime(member.path, (MODIFIED, MODIFIED))

    fate = send(place, member, moving=write_at_the_end)
    assert fate.problem.code == "file.changed"
    assert not list(place.there(member).parent.iterdir())


@pytest.mark.process
@needs_shell
def test_a_file_cut_by_a_broken_connection_begins_again(place, member):
    with pytest.raises(TransientError):
        send(place, member, LocalSession(limit=2 << 20))
    assert not place.there(member).exists()
    assert send(place, member).checksum == checksum(member)
    assert place.arrived(member)
    assert len(list(place.there(member).parent.iterdir())) == 1


def test_looking_for_zeros_can_be_cut_off(place, member):
    def cut(*_: int) -> None:
        raise TransientError("It is not wanted any more.")

    with pytest.raises(TransientError):
        send(place, member, moving=cut)
    assert not place.location.exists()


@pytest.mark.process
@needs_shell
@needs_server
@pytest.mark.parametrize("size", [SIZE, LARGE + (1 << 20) + 5], ids=["one stream", "striped"])
def test_zeros_are_passed_over_by_sftp(place, size):
    content = os.urandom(DATA) + bytes(size - DATA)
    member = place.write("a/zeros", 0, content)
    place.settle(member)
    session = SftpOnly()
    assert send_by_sftp(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < DATA + (1 << 20)
    assert place.there(member).stat().st_blocks * 512 < 2 * DATA
    assert len(list(place.there(member).parent.iterdir())) == 1


@pytest.mark.process
@needs_shell
@needs_server
def test_what_a_broken_line_left_between_zeros_is_not_sent_again(place):
    content = os.urandom(4 * BLOCK) + bytes(8 * BLOCK) + os.urandom(4 * BLOCK)
    member = place.write("a/zeros", 0, content)
    place.settle(member)
    with pytest.raises(TransientError):
        send_by_sftp(place, member, SftpOnly(limit=7 * BLOCK))
    session = SftpOnly()
    assert send_by_sftp(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < 5 * BLOCK


class Noted:
    """A remote file that notes where it is written."""

    def __init__(self) -> None:
        self.written = []
        self._offset = 0

    def move_to(self, offset: int) -> None:
        self._offset = offset

    def write(self, data) -> None:
        self.written.append((self._offset, len(data)))
        self._offset += len(data)

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("size", "written"), [(40, [(0, 10), (30, 10)]), (0, [(0, 10), (10, 10), (20, 10), (30, 10)])]
)
def test_zeros_are_passed_over_up_to_the_last_piece_of_a_file(size, written):
    file = Noted()
    hollow = SparseWriter(file, size)
    for piece in (b"0123456789", bytes(10), bytes(10), bytes(10)):
        hollow.write(memoryview(piece), ignore)
    assert file.written == written
    assert hollow.passed == 40 - 10 * len(written)
