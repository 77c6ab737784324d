"""Batches over a real shell and a real tar."""

import os
import random
import shutil
import stat
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer import tar
from mydata_like.transfer.ssh.batch_sender import BatchSender
from mydata_like.transfer.ssh.remote_shell import Shells
from mydata_like.transfer.tiny_files import TinyFilePacker
from tests.fakes.place import MODIFIED, checksum
from tests.fakes.session import LocalSession, state
from tests.privileges import needs_shell
from tests.umasks import has_mode

pytestmark = [pytest.mark.process, needs_shell]

SHELL = HostCapabilities("shell", tar="gnu", checksum=b"md5sum")


def ignore(*_: int) -> None: ...


def send(place, members, session=None, rung=SHELL, *, named=False, moving=ignore, packer=None):
    shells = Shells(session or LocalSession())
    sender = BatchSender(shells, state(place.location, rung, named=named), packer)
    try:
        return sender.send(members, moving)
    finally:
        shells.close()


def list_files(place):
    """Return the names of all files in the staging area, as members are called there."""
    there = (path for path in place.location.rglob("*") if not path.is_dir())
    return {os.fsencode(path.relative_to(place.location)) for path in there}


def test_all_members_arrive_with_time_mode_and_checksum(place):
    members = [place.write(f"set-1/sub {n % 3}/file '{n}' ü.dat", n * 37) for n in range(50)]
    fates = send(place, place.settle(*members)).results
    assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
    for member in members:
        assert place.arrived(member)
        status = place.there(member).stat()
        assert stat.S_IMODE(status.st_mode) == 0o660
        assert status.st_mtime == MODIFIED
        assert has_mode(place.there(member).parent, 0o2770)
        assert has_mode(place.there(member).parent.parent, 0o2770)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 65535, 65536, 65537, 262143, 262144, 262145])
def test_sizes_around_the_borders_of_blocks_and_buffers_arrive(place, size):
    members = [place.write("a/first", 3), place.write("a/it", size), place.write("a/last", 700)]
    assert all(fate.checksum for fate in send(place, place.settle(*members)).results)
    assert all(map(place.arrived, members))


def test_files_that_vanished_or_changed_before_their_turn_fail_alone(place):
    good, gone, grown, good2 = [place.write(f"a/{n}", 1000) for n in range(4)]
    Path(os.fsdecode(gone.path)).unlink()
    with Path(os.fsdecode(grown.path)).open("ab") as file:
        file.write(b"more")
    fates = send(place, place.settle(good, gone, grown, good2)).results
    assert [bool(fate.checksum) for fate in fates] == [True, False, False, True]
    assert [fate.problem.code for fate in fates[1:3]] == ["file.vanished", "file.changed"]
    assert not any(fate.again for fate in fates)
    assert place.arrived(good)
    assert place.arrived(good2)


@pytest.mark.parametrize("packer", [TinyFilePacker(), TinyFilePacker(None)], ids=["C", "Python"])
def test_what_is_unusual_has_the_same_result_whoever_reads_it(place, packer):
    members = [place.write(f"a/{n}", n * 300) for n in range(60)]
    members.append(place.write("a/" + "long name" * 20, 9))
    early = place.write("a/early", 9)
    os.utime(os.fsdecode(early.path), (0, -9))
    members += place.settle(early._replace(modified_ns=-9 * 10**9))
    Path(os.fsdecode(members[10].path)).unlink()
    os.truncate(os.fsdecode(members[40].path), 7)
    members[50] = members[50]._replace(inode=members[51].inode)

    fates = send(place, members, packer=packer).results

    wrong = {10: "file.vanished", 40: "file.changed", 50: "file.replaced"}
    assert {n: fate.problem.code for n, fate in enumerate(fates) if fate.problem} == wrong
    sent = [member for n, member in enumerate(members) if n not in wrong]
    assert [fate.checksum for fate in fates if not fate.problem] == list(map(checksum, sent))
    assert all(map(place.arrived, sent))


def test_larger_files_are_read_together_and_fail_alone(place):
    sizes = (3, 70_000, 1 << 20, 900_000, 70_001, 3 << 20, 66_000, 262_144, 65_537, 5 << 20, 65_538)
    members = [place.write(f"a/{n}", size) for n, size in enumerate(sizes)]
    place.settle(*members)
    Path(os.fsdecode(members[2].path)).unlink()
    with Path(os.fsdecode(members[3].path)).open("ab") as file:
        file.write(b"more")

    fates = send(place, members).results

    wrong = {2: "file.vanished", 3: "file.changed"}
    assert {n: fate.problem.code for n, fate in enumerate(fates) if fate.problem} == wrong
    sent = [member for n, member in enumerate(members) if n not in wrong]
    assert [fate.checksum for fate in fates if not fate.problem] == list(map(checksum, sent))
    assert all(map(place.arrived, sent))
    assert list_files(place) == {member.remote for member in sent}


@pytest.mark.parametrize("size", [900_005, 300_000, 900_000], ids=["grow", "truncate", "rewrite"])
def test_a_file_that_changes_while_it_is_read_with_others_fails_alone(place, size):
    members = [place.write(f"a/{n}", 900_000) for n in range(4)]
    place.settle(*members)
    victim = Path(os.fsdecode(members[1].path))

    def meddle(sent):
        if not sent and victim.stat().st_mtime == MODIFIED:  # after the first piece of each file
            os.truncate(victim, size)
            os.utime(victim)

    fates = send(place, members, moving=meddle).results

    codes = [fate.problem.code if fate.problem else "" for fate in fates]
    assert codes == ["", "file.changed", "", ""]
    others = [members[0], *members[2:]]
    assert [fate.checksum for fate in fates if fate.checksum] == list(map(checksum, others))
    assert list_files(place) == {member.remote for member in others}


class Meddling(LocalSession):
    """Changes a file once its first bytes are on their way."""

    def __init__(self, victim, size):
        super().__init__()
        self._victim = Path(os.fsdecode(victim.path))
        self._size = size

    def _allow(self, count):
        allowed = super()._allow(count)
        if self.written > 600_000 and self._victim.stat().st_mtime == MODIFIED:
            os.truncate(self._victim, self._size)
            os.utime(self._victim)
        return allowed


@pytest.mark.parametrize(
    "size", [(3 << 20) + 5, 1 << 20, 3 << 20], ids=["grow", "truncate", "rewrite"]
)
def test_a_file_that_changes_while_it_is_read_fails_alone(place, size):
    members = [place.write("a/0", 400), place.write("a/1", 3 << 20), place.write("a/2", 400)]
    place.settle(*members)
    fates = send(place, members, Meddling(members[1], size)).results
    assert [bool(fate.checksum) for fate in fates] == [True, False, True]
    assert fates[1].problem.code == "file.changed"
    assert place.arrived(members[0])
    assert place.arrived(members[2])


def test_new_bytes_of_a_known_file_that_changes_meanwhile_are_removed(place):
    members = [place.write("a/0", 400), place.write("a/1", 3 << 20), place.write("a/2", 400)]
    place.settle(*members)
    members = [member._replace(aside=True) for member in members]

    fates = send(place, members, Meddling(members[1], 1 << 20)).results

    assert [bool(fate.checksum) for fate in fates] == [True, False, True]
    assert list_files(place) == {b"a/0", b"a/2"}


def test_a_directory_that_is_refused_fails_its_own_members_only(place):
    members = [place.write("a/0", 100), place.write("blocked/1", 100), place.write("c/2", 100)]
    place.location.mkdir()
    (place.location / "blocked").write_text("a file where the directory should be")
    fates = send(place, place.settle(*members)).results
    assert [bool(fate.checksum) for fate in fates] == [True, False, False]
    assert fates[1].problem.code == "staging.denied"
    assert not fates[1].again
    assert fates[2].again  # the last of a batch that failed is never proven


def path_with(kind, tmp_path):
    """Return a PATH with a `tar` of this kind."""
    program = shutil.which({"gnu": "tar", "bsd": "bsdtar", "busybox": "busybox"}[kind])
    if program is None:
        pytest.skip(f"no {kind} tar here")
    shims = tmp_path / "bin"
    shims.mkdir()
    (shims / "tar").symlink_to(program)
    return f"{shims}:{os.environ['PATH']}"


@pytest.fixture(params=["bsd", "busybox"])
def other_tar(request, tmp_path):
    """A PATH whose `tar` is not GNU's, and its kind."""
    return path_with(request.param, tmp_path), request.param


@pytest.mark.parametrize("named", [False, True])
def test_other_tars_take_batches_too(place, other_tar, named):
    path, kind = other_tar
    members = [place.write(f"set-1/ü {n}/it's\\ {n}", n * 300) for n in range(30)]
    session, rung = LocalSession(path=path), SHELL._replace(tar=kind)
    fates = send(place, place.settle(*members), session, rung, named=named)
    assert [fate.checksum for fate in fates.results] == [checksum(member) for member in members]
    assert all(map(place.arrived, members))
    assert has_mode(place.there(members[3]), 0o660)
    assert place.there(members[3]).stat().st_mtime == MODIFIED
    assert list_files(place) == {member.remote for member in members}


@pytest.mark.parametrize("named", [False, True])
def test_other_tars_never_prove_what_is_not_there(place, other_tar, tmp_path, named):
    path, kind = other_tar
    members = [place.write(f"s/{n}", 700) for n in range(20)]
    place.settle(*members)
    for cut in range(700, 32_000, 1901):
        place.location = tmp_path / f"cut {cut}"
        session = LocalSession(limit=cut, path=path)
        try:
            done = send(place, members, session, SHELL._replace(tar=kind), named=named)
        except TransientError:
            continue
        for fate, member in zip(done.results, members, strict=True):
            assert not fate.checksum or place.arrived(member)


def test_a_batch_cut_anywhere_proves_what_has_arrived_and_no_more(place, tmp_path):
    rng = random.Random(5)
    members = [place.write(f"s/{n}", rng.choice([0, 1, 300, 512, 900])) for n in range(40)]
    place.settle(*members)
    total = sum(2 * 512 + member.size for member in members)
    cuts = [*range(600, total - 2048, 1024), *rng.sample(range(total), 10)]
    proofs = 0
    for number, cut in enumerate(cuts):
        place.location = tmp_path / f"cut {number}"
        try:
            done = send(place, members, LocalSession(limit=cut), named=True)
        except TransientError:
            continue
        proofs += sum(bool(fate.checksum) for fate in done.results)
        assert len(done.results) == 40
        for fate, member in zip(done.results, members, strict=True):
            assert not fate.checksum or place.arrived(member)
            assert fate.checksum or fate.again
    assert proofs > 40  # most of what had arrived was recognised


def test_the_second_batch_finds_its_shell_waiting(place):
    session = LocalSession()
    shells = Shells(session)
    sender = BatchSender(shells, state(place.location, SHELL))
    members = place.settle(place.write("a/0", 10))
    sender.send(members, ignore)
    before = len(session.commands)
    sender.send(members, ignore)
    shells.close()
    assert len(session.commands) == before + 1  # the shell for the third
    assert place.arrived(members[0])


def test_each_member_is_written_as_header_bytes_and_padding_only(place):
    session = LocalSession()
    members = place.settle(*[place.write(f"a/{n}", 3000) for n in range(20)])
    send(place, members, session)
    assert session.written < 20 * (512 + 3072) + len(tar.END) + 1500


class Losing(LocalSession):
    """Loses what comes after so many bytes of the first archive, and calls it a success."""

    def __init__(self, kept, path):
        super().__init__(path=path)
        self._kept = kept

    def start(self, command):
        stream = super().start(command)
        if len(self.commands) == 1:
            pass_on = stream.write
            script = []

            def write(data):
                if not script:
                    script.append(data)
                    pass_on(data)
                else:
                    pass_on(data[: self._kept])
                    self._kept -= min(len(data), self._kept)

            stream.write = write
        return stream


@pytest.mark.parametrize("kind", ["gnu", "bsd", "busybox"])
def test_an_archive_that_ends_early_in_silence_proves_nothing(place, tmp_path, kind):
    path = path_with(kind, tmp_path)
    members = [place.write(f"s/{n}", 700) for n in range(4)]
    place.settle(*members)
    for blocks in range(3 * len(members) + 1):
        place.location = tmp_path / f"lost after {blocks}"
        session = Losing(blocks * tar.BLOCK, path)
        fates = send(place, members, session, SHELL._replace(tar=kind)).results
        assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
        assert all(map(place.arrived, members))  # they went a second time
        assert list_files(place) == {member.remote for member in members}


def test_what_the_host_has_set_for_its_tar_leaves_nothing_out(place, tmp_path):
    shim = tmp_path / "bin" / "sh"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\nTAR_OPTIONS=--exclude=1 exec /bin/sh "$@"\n')
    shim.chmod(0o755)
    members = [place.write(f"a/{n}", 100) for n in range(3)]
    session = LocalSession(path=f"{shim.parent}:{os.environ['PATH']}")
    fates = send(place, place.settle(*members), session).results
    assert all(fate.checksum for fate in fates)
    assert all(map(place.arrived, members))


def test_members_are_named_only_after_something_went_wrong(place):
    session = LocalSession()
    heard = []
    start = session.start

    def listen(command):
        stream = start(command)
        write = stream.write
        stream.write = lambda data: (heard.append(bytes(data)), write(data))
        return stream

    session.start = listen
    place.location.mkdir()
    (place.location / "blocked").write_text("a file where the directory should be")
    good = [place.write(f"a/{n}", 100) for n in range(3)]
    blocked = place.write("blocked/1", 100)
    place.settle(*good, blocked)
    shells = Shells(session)
    sender = BatchSender(shells, state(place.location, SHELL))
    assert all(fate.checksum for fate in sender.send(good, ignore).results)
    scripts = [data for data in heard if b"tar -x" in data]
    assert [b" -v " in script for script in scripts] == [False]
    fates = sender.send([good[0], blocked, *good[1:]], ignore).results
    assert [bool(fate.checksum) for fate in fates] == [True, False, True, False]
    assert all(fate.checksum for fate in sender.send(good, ignore).results)
    shells.close()
    scripts = [data for data in heard if b"tar -x" in data]
    assert [b" -v " in script for script in scripts] == [False, False, True, True]
    assert list_files(place) == {b"blocked", *(member.remote for member in good)}
