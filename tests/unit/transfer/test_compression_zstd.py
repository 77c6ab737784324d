"""Payloads as zstd through a real shell, a real zstd and a real tar."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.compression import CompressedWriter, Compression, fill, store
from mydata_like.transfer.ssh.batch_sender import BatchSender
from mydata_like.transfer.ssh.remote_shell import Shells
from mydata_like.transfer.ssh.single_file import SingleSender
from mydata_like.transfer.temporary_files import part_name
from tests.fakes.place import MODIFIED, checksum
from tests.fakes.session import LocalSession, state
from tests.privileges import IS_ROOT, needs_shell

pytestmark = [
    pytest.mark.process,
    needs_shell,
    pytest.mark.skipif(not shutil.which("zstd"), reason="needs zstd"),
]

SHELL = HostCapabilities("shell", tar="gnu", checksum=b"md5sum", zstd=True)
MIB = 1 << 20
NUMBERS = b"".join(b"%d,%d;" % (n, n * n % 1013) for n in range(MIB // 8)) * 20


def ignore(*_: int) -> None: ...


def slow() -> Compression:
    """Return what is known on a slow line: whatever shrinks is compressed from the start."""
    compression = Compression(available=True)
    compression.note_plain(4 * MIB, 4.0)
    return compression


def text(size: int, start: int = 0) -> bytes:
    return NUMBERS[start : start + size]


def send(place, *members, session=None, compression=None, rung=SHELL, named=False):
    """Send one file on its own, several as a batch; return what became of them."""
    shells = Shells(session or LocalSession(), compression or slow())
    options = state(place.location, rung, named=named)
    try:
        if len(members) == 1:
            return [SingleSender(shells, options).send(0, members[0], ignore)]
        sender = BatchSender(shells, options)
        return list(sender.send(members, ignore).results)
    finally:
        shells.close()


def part_of(place, member) -> Path:
    return place.there(member).parent / os.fsdecode(part_name(member))


def with_zstd(directory, commands: str) -> str:
    """Return a PATH on which `zstd` is something else."""
    script = directory / "bin" / "zstd"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n" + commands)
    script.chmod(0o755)
    return f"{script.parent}:{os.environ['PATH']}"


class Sink:
    """A stream that keeps what is written."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, piece) -> None:
        self.pieces.append(bytes(piece))

    def finish(self) -> None: ...


def unpacked(frames: bytes) -> bytes:
    return subprocess.run(["zstd", "-dcq"], input=frames, capture_output=True, check=True).stdout


@pytest.mark.parametrize("size", [1, 255, 131072, 131073, 262144, 300000])
def test_a_stored_piece_is_what_zstd_unpacks(size):
    assert unpacked(store(text(size))) == text(size)


def test_a_frame_that_would_be_too_small_is_filled_up_with_what_zstd_skips():
    sink = Sink()
    feed = CompressedWriter(sink, slow(), 0.1)
    for _ in range(3):
        feed.write(bytes(MIB))
    assert {len(piece) for piece in sink.pieces} == {MIB // 16 + 8}
    assert unpacked(b"".join(sink.pieces)) == bytes(3 * MIB)
    assert fill(b"frame", 64) == b"frame"


def test_pieces_are_compressed_as_long_as_they_shrink_and_tried_again_later():
    sink = Sink()
    feed = CompressedWriter(sink, slow(), 0.3)
    noise = [os.urandom(MIB // 4) for _ in range(3)]
    pieces = [text(MIB // 4), *noise, *[text(MIB // 4)] * 16]
    for piece in pieces:
        feed.write(piece)
    shrunk = [len(sent) < len(piece) / 2 for sent, piece in zip(sink.pieces, pieces, strict=True)]
    assert shrunk == [True, *[False] * 16, *[True] * 3]
    assert unpacked(b"".join(sink.pieces)) == b"".join(pieces)


def test_what_is_excused_does_not_make_a_line_slow():
    compression = Compression(available=True)
    feed = CompressedWriter(Sink(), compression, None, overhead=1e6)
    for _ in range(80):
        feed.write(bytes(MIB // 4))
    feed.finish()
    assert not compression.may_suit(1 << 40, 0.0)


def test_that_a_line_is_slow_shows_by_the_end_of_a_batch_that_never_waited(place, tmp_path):
    """A pause before the end stands for a line that has taken all and is not yet through."""
    path = with_zstd(tmp_path, f'exec {shutil.which("zstd")} "$@"')
    tar = Path(path.partition(":")[0]) / "tar"
    tar.write_text(f'#!/bin/sh\n{shutil.which("tar")} "$@"; sleep 1.1\n')
    tar.chmod(0o755)
    first, second = (
        [place.write(f"{batch}/{n}", MIB // 8, text(MIB // 8)) for n in range(2)] for batch in "ab"
    )
    place.settle(*first, *second)
    session, compression = LocalSession(path=path), Compression(available=True)
    send(place, *first, session=session, compression=compression)
    plain = session.written
    send(place, *second, session=session, compression=compression)
    assert plain > MIB // 4
    assert session.written - plain < plain / 2
    assert all(map(place.arrived, [*first, *second]))


@pytest.mark.parametrize("size", [131072, 262143, 262144, 262145, 5 * MIB])
def test_a_large_file_arrives_compressed(place, size):
    member = place.write("a/it's", size, text(size))
    place.settle(member)
    session = LocalSession()
    assert send(place, member, session=session)[0].checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < size / 2 + 4096
    assert len(list(place.there(member).parent.iterdir())) == 1


@pytest.mark.parametrize("tar", ["gnu", "bsd", "busybox"])
def test_a_batch_arrives_compressed(place, tmp_path, tar):
    program = {"gnu": "tar", "bsd": "bsdtar", "busybox": "busybox"}[tar]
    if not (found := shutil.which(program)):
        pytest.skip(f"needs {program}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tar").write_text(
        f'#!/bin/sh\nexec {found} {"tar" if tar == "busybox" else ""} "$@"\n'
    )
    (tmp_path / "bin" / "tar").chmod(0o755)
    members = [place.write(f"a/{n}", 3000 * n, text(3000 * n, n)) for n in range(40)]
    place.settle(*members)
    session = LocalSession(path=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    rung = SHELL._replace(tar=tar)
    fates = send(place, *members, session=session, rung=rung)
    assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
    assert all(map(place.arrived, members))
    assert session.written < sum(member.size for member in members) / 2


def test_what_does_not_shrink_goes_as_it_is(place):
    member = place.write("a/noise", 2 * MIB)
    place.settle(member)
    session = LocalSession()
    assert send(place, member, session=session)[0].checksum == checksum(member)
    assert b"zstd" not in b"".join(session.commands)


def test_a_file_with_holes_arrives_compressed_and_keeps_them(place):
    member = place.write("a/holes", 0)
    path = Path(os.fsdecode(member.path))
    with path.open("wb") as file:
        file.seek(8 * MIB)
        file.write(text(MIB))
        file.truncate(64 * MIB)
    os.utime(path, (MODIFIED, MODIFIED))
    member = place.member(path, "a/holes")
    place.settle(member)
    session = LocalSession()
    assert send(place, member, session=session)[0].checksum == checksum(member)
    assert place.arrived(member)
    assert place.there(member).stat().st_blocks * 512 < 2 * MIB
    assert session.written < MIB / 2 + 4096


def test_what_a_broken_line_left_of_a_compressed_file_is_built_upon(place):
    member = place.write("a/file", 20 * MIB, text(20 * MIB))
    place.settle(member)
    with pytest.raises(TransientError):
        send(place, member, session=LocalSession(limit=4 * MIB))
    assert not place.there(member).exists()
    left = part_of(place, member).stat().st_size
    assert left > 8 * MIB

    session = LocalSession()
    assert send(place, member, session=session)[0].checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < (member.size - left) / 2


def test_what_of_a_compressed_batch_arrived_before_the_line_broke_is_proven(place):
    members = [place.write(f"a/{n}", 700_000, text(700_000, n)) for n in range(12)]
    place.settle(*members)
    fates = send(place, *members, session=LocalSession(limit=2 * MIB), named=True)
    proven = [member for member, fate in zip(members, fates, strict=True) if fate.checksum]
    assert 0 < len(proven) < 12
    assert all(map(place.arrived, proven))
    assert all(fate.again for fate in fates if not fate.checksum)


BROKEN = {
    "that is none": "exit 1",
    "that takes all and fails": f"{shutil.which('zstd')} -dcq; exit 1",
    "that stops in the middle": f"{shutil.which('zstd')} -dcq | head -c 400000; exit 1",
    "that is killed": "kill -9 $$",
    "that gives something else": "tr 5 6 | cat; exit 1",
}


@pytest.mark.parametrize("commands", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("count", [1, 5])
def test_after_a_zstd_that_fails_all_is_sent_again_as_it_is(place, tmp_path, commands, count):
    members = [place.write(f"a/{n}", MIB, text(MIB, n)) for n in range(count)]
    place.settle(*members)
    compression = slow()
    session = LocalSession(path=with_zstd(tmp_path, commands))
    fates = send(place, *members, session=session, compression=compression)
    assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
    assert all(map(place.arrived, members))
    assert not compression.may_suit(100 * MIB, 0.0)


@pytest.mark.parametrize("count", [1, 5])
def test_a_corrupt_stream_proves_nothing(place, count):
    """What comes out of zstd has its full length, and is wrong."""

    class Corrupting(LocalSession):
        def start(self, command):
            stream = super().start(command)
            write = stream.write

            def corrupt(data) -> None:
                spoilt = bytearray(data)
                if self.spoils and len(spoilt) > 50_000 and spoilt[:4] == b"\x28\xb5\x2f\xfd":
                    spoilt[40_000] ^= 1
                    self.spoils = False
                write(spoilt)

            stream.write = corrupt
            return stream

    session = Corrupting()
    session.spoils = True
    members = [place.write(f"a/{n}", MIB, text(MIB, n)) for n in range(count)]
    place.settle(*members)
    fates = send(place, *members, session=session)
    assert not session.spoils
    assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
    assert all(map(place.arrived, members))


@pytest.fixture
def small_disk(place):
    """Have the location lie on a disk of one mebibyte."""
    place.location.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place.location)]
    if not IS_ROOT or subprocess.run(command, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield place.location
    subprocess.run(["umount", "-l", str(place.location)], check=True)


@pytest.mark.parametrize("count", [1, 6])
def test_a_full_disk_is_reported_and_keeps_nothing_of_a_single_file(place, small_disk, count):
    size = 3 * MIB // count
    members = [place.write(f"a/{n}", size, text(size, n)) for n in range(count)]
    place.settle(*members)
    compression = slow()
    results = send(place, *members, compression=compression)
    assert "staging.full" in {result.problem.code for result in results if result.problem}
    assert compression.may_suit(100 * MIB, 0.0)  # it is not zstd that failed
    assert count > 1 or list((small_disk / "a").iterdir()) == []


@pytest.mark.parametrize("count", [1, 5])
def test_a_file_that_changes_on_its_way_fails_alone(place, count):
    members = [place.write(f"a/{n}", 2 * MIB, text(2 * MIB, n)) for n in range(count)]
    place.settle(*members)

    class Meddling(LocalSession):
        """Changes the first file once its first bytes are on their way."""

        def _allow(self, written):
            allowed = super()._allow(written)
            if self.written > 150_000:
                os.utime(os.fsdecode(members[0].path))
            return allowed

    fates = send(place, *members, session=Meddling())
    assert fates[0].problem.code == "file.changed"
    assert [fate.checksum for fate in fates[1:]] == [checksum(member) for member in members[1:]]
    assert count > 1 or list(place.there(members[0]).parent.iterdir()) == []
