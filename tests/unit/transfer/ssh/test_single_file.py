"""Single files through a real shell: complete under their name, or not there at all."""

import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest

from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import StagingError, TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.ssh.remote_shell import Shells
from mydata_like.transfer.ssh.scp_sender import ScpSender
from mydata_like.transfer.ssh.single_file import SingleSender
from mydata_like.transfer.temporary_files import part_name
from mydata_like.transfer.worker_messages import SendTask
from tests.fakes.place import MODIFIED, checksum
from tests.fakes.session import LocalSession, state
from tests.privileges import needs_shell
from tests.umasks import has_mode

pytestmark = [pytest.mark.process, needs_shell]

SHELL = HostCapabilities("shell", tar="gnu", checksum=b"md5sum", sha256=b"sha256sum")
LARGE = 20 << 20


def ignore(*_: int) -> None: ...


def send(place, member, session=None, rung=SHELL, moving=ignore):
    shells = Shells((session or LocalSession()).throttled())
    sender = SingleSender(shells, state(place.location, rung))
    try:
        return sender.send(0, member, moving)
    finally:
        shells.close()


def send_by_scp(place, *members, session=None):
    sender = ScpSender(session or LocalSession(), os.fsencode(place.location))
    return sender.send(SendTask(members, batched=True), ignore).results


def part_of(place, member) -> Path:
    return place.there(member).parent / os.fsdecode(part_name(member))


@pytest.mark.parametrize("size", [0, 1, 262143, 262144, 262145, LARGE])
def test_a_file_arrives_with_time_mode_and_checksum(place, size):
    member = place.write('set-1/Ünder score/it\'s "the" $(file) .dat', size)
    place.settle(member)
    assert send(place, member).checksum == checksum(member)
    assert place.arrived(member)
    status = place.there(member).stat()
    assert stat.S_IMODE(status.st_mode) == 0o660
    assert status.st_mtime == MODIFIED
    assert has_mode(place.there(member).parent, 0o2770)
    assert len(list(place.there(member).parent.iterdir())) == 1


def test_a_name_with_a_newline_arrives(place):
    member = place.write("a\nb/c\n", 100)
    place.settle(member)
    assert send(place, member).checksum
    assert place.arrived(member)


def test_a_file_is_replaced_whole(place):
    member = place.write("a/file", 1000)
    place.settle(member)
    place.there(member).parent.mkdir(parents=True)
    place.there(member).write_text("older and longer" * 1000)
    assert send(place, member).checksum
    assert place.arrived(member)


def test_a_cut_file_never_gets_its_name(place):
    member = place.write("a/file", LARGE)
    place.settle(member)
    with pytest.raises(TransientError):
        send(place, member, LocalSession(limit=15 << 20))
    assert not place.there(member).exists()
    assert part_of(place, member).stat().st_size > 14 << 20


def test_what_a_cut_attempt_left_is_not_sent_again(place):
    member = place.write("a/file", LARGE)
    place.settle(member)
    with pytest.raises(TransientError):
        send(place, member, LocalSession(limit=15 << 20))
    session, moved = LocalSession(), []

    def count(sent, omitted=0):
        moved.append((sent, omitted))

    assert send(place, member, session, moving=count).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < (5 << 20) + 5000
    sent, omitted = map(sum, zip(*moved, strict=True))
    assert (sent, omitted) == (LARGE - omitted, LARGE - sent)
    assert omitted > 14 << 20


def test_a_file_is_continued_by_its_sha256_where_checksums_are_of_that_kind(place):
    member = place.write("a/file", LARGE)._replace(algorithm=Algorithm.SHA256)
    place.settle(member)
    with pytest.raises(TransientError):
        send(place, member, LocalSession(limit=15 << 20))
    session = LocalSession()

    found = send(place, member, session).checksum

    assert found == hashlib.sha256(Path(os.fsdecode(member.path)).read_bytes()).hexdigest()
    assert place.arrived(member)
    assert session.written < (5 << 20) + 5000


@pytest.mark.parametrize("interrupted", [True, False])
def test_what_another_channel_has_left_of_a_file_is_not_sent_again(place, interrupted):
    first, member = (place.write(f"a/{name}", LARGE) for name in ("first", "second"))
    place.settle(first, member)
    moved = []
    shells = Shells(LocalSession())
    sender = SingleSender(shells, state(place.location, SHELL))
    sender.send(0, first, ignore)
    with pytest.raises(TransientError):
        send(place, member, LocalSession(limit=15 << 20))

    again = member._replace(interrupted=interrupted)
    sender.send(0, again, lambda sent, omitted=0: moved.append(omitted))

    shells.close()
    assert place.arrived(member)
    assert (sum(moved) > 14 << 20) is interrupted


def grown(place, name="a/file", more=b"x"):
    """Return a file that has grown since its first bytes were stored, and these."""
    member = place.write(name, LARGE)
    stored = place.there(member)
    stored.parent.mkdir(parents=True)
    first = Path(os.fsdecode(member.path)).read_bytes()
    stored.write_bytes(first)
    stored.chmod(0o400)
    new = place.write(name, 0, first + more)
    place.settle(new)
    aside = new.remote.rpartition(b"/")[0] + b"/aside.new"
    return new._replace(remote=aside, stored=new.remote, stored_size=LARGE), first


@pytest.mark.parametrize("name", ["a/file", 'a b/it\'s "the" $(file) .dat', "a/-f", "a/new\nline"])
def test_of_a_file_that_has_grown_only_the_rest_is_sent(place, name):
    member, first = grown(place, name)
    session, moved = LocalSession(), []

    def count(sent, omitted=0):
        moved.append((sent, omitted))

    assert send(place, member, session, moving=count).checksum == checksum(member)
    assert place.arrived(member)
    assert stat.S_IMODE(place.there(member).stat().st_mode) == 0o660
    assert (place.location / name).read_bytes() == first
    assert session.written < 5000
    assert tuple(map(sum, zip(*moved, strict=True))) == (1, LARGE)


@pytest.mark.parametrize("harm", ["other bytes", "removed", "unreadable", "a link", "longer"])
def test_all_of_a_grown_file_is_sent_unless_what_is_stored_is_its_beginning(place, harm):
    member, first = grown(place)
    stored = place.location / "a/file"
    stored.chmod(0o600)
    match harm:
        case "other bytes":
            stored.write_bytes(first[:-1] + bytes([first[-1] ^ 1]))
        case "removed":
            stored.unlink()
        case "unreadable":
            stored.unlink()
            stored.mkdir()
        case "a link":
            stored.rename(place.source / "elsewhere")
            stored.symlink_to(place.source / "elsewhere")
        case "longer":
            stored.write_bytes(first + b"more than is here")
    session = LocalSession()

    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written > LARGE


def with_scripts(folder, **scripts):
    """Return the search path of a host on which these programs are scripts."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_what_is_stored_is_cloned_where_the_host_can(place, tmp_path):
    member, _ = grown(place)
    note = f'{{ echo "$1"; ls -l "$4" | cut -c1-10; }} > {tmp_path}/used'
    script = f'{note}; shift; exec {shutil.which("cp")} "$@"'
    session = LocalSession(path=with_scripts(tmp_path / "bin", cp=script))

    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < 5000
    assert (tmp_path / "used").read_text() == "--reflink=always\n-rw-rw----\n"


def test_all_of_a_grown_file_is_sent_if_what_is_stored_cannot_be_copied(place, tmp_path):
    member, first = grown(place)
    once = f"[ -e {tmp_path}/used ] && exec {shutil.which('cat')}; touch {tmp_path}/used; exit 1"
    path = with_scripts(tmp_path / "bin", cp="exit 1", dd="head -c 9000000; exit 1", cat=once)
    session = LocalSession(path=path)

    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written > LARGE
    assert (place.location / "a/file").read_bytes() == first


def test_what_was_copied_in_part_is_copied_again(place):
    member, first = grown(place)
    part_of(place, member).write_bytes(first[: 15 << 20])
    session = LocalSession()

    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < 5000


def test_a_grown_file_that_was_interrupted_continues_after_what_was_sent(place):
    member, first = grown(place, more=bytes(LARGE))
    with pytest.raises(TransientError):
        send(place, member, LocalSession(limit=15 << 20))
    assert part_of(place, member).stat().st_size > LARGE + (14 << 20)
    session = LocalSession()

    assert send(place, member, session).checksum == checksum(member)
    assert place.arrived(member)
    assert session.written < (6 << 20)
    assert (place.location / "a/file").read_bytes() == first


def test_a_grown_file_whose_copy_was_cut_is_sent_by_the_next_attempt(place):
    member, first = grown(place)

    def stop(*_: int) -> None:
        raise TransientError("It is not wanted any more.")

    with pytest.raises(TransientError):
        send(place, member, moving=stop)
    assert (place.location / "a/file").read_bytes() == first
    assert send(place, member).checksum == checksum(member)
    assert place.arrived(member)


def test_what_is_there_stays_when_the_line_breaks_while_it_is_compared(place):
    member = place.write("a/file", LARGE)
    place.settle(member)
    part = part_of(place, member)
    part.parent.mkdir(parents=True)
    part.write_bytes(Path(os.fsdecode(member.path)).read_bytes()[: 15 << 20])

    def stop(*_: int) -> None:
        raise TransientError("It is not wanted any more.")

    with pytest.raises(TransientError):
        send(place, member, moving=stop)
    assert part.stat().st_size == 15 << 20


def test_what_was_left_by_others_is_not_built_upon(place):
    member = place.write("a/file", LARGE)
    place.settle(member)
    part = part_of(place, member)
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * (15 << 20))
    assert send(place, member).checksum
    assert place.arrived(member)


def test_a_file_sent_again_trusts_no_partial_file(place):
    member = place.write("a/file", LARGE)
    place.settle(member)
    with pytest.raises(TransientError):
        send(place, member, LocalSession(limit=15 << 20))
    session = LocalSession()
    assert send(place, member._replace(from_scratch=True), session).checksum
    assert session.written > LARGE


@pytest.mark.parametrize("change", ["grow", "truncate", "rewrite"])
def test_a_file_that_changes_while_it_is_read_never_gets_its_name(place, change):
    member = place.write("a/file", 4 << 20)
    place.settle(member)
    victim = Path(os.fsdecode(member.path))

    class Meddling(LocalSession):
        """Changes the file once its first bytes are on their way."""

        def _allow(self, count):
            if self.written > 1 << 20 and victim.stat().st_mtime == MODIFIED:
                size = {"grow": (4 << 20) + 5, "truncate": 2 << 20, "rewrite": 4 << 20}[change]
                os.truncate(victim, size)
                os.utime(victim)
            return super()._allow(count)

    fate = send(place, member, Meddling())
    assert fate.problem.code == "file.changed"
    assert not fate.again
    assert list(place.there(member).parent.iterdir()) == []


class Growing(LocalSession):
    """Appends to a file once some of its bytes are on their way."""

    def __init__(self, victim, more=b"more"):
        super().__init__()
        self.victim, self.more = victim, more

    def _allow(self, count):
        if self.written > 1 << 20 and self.more:
            with self.victim.open("r+b") as file:
                file.seek(0, os.SEEK_END)
                file.write(self.more)
            self.more = b""
        return super()._allow(count)


def as_now(member, seconds):
    """Return a file as a later scan sees it."""
    path = Path(os.fsdecode(member.path))
    os.utime(path, (MODIFIED + seconds, MODIFIED + seconds))
    status = path.stat()
    return member._replace(size=status.st_size, modified_ns=status.st_mtime_ns)


def test_of_a_file_that_grows_while_it_is_sent_nothing_is_sent_twice(place):
    member = place.write("a/file", LARGE)
    path = Path(os.fsdecode(member.path))
    written = 0
    for seconds in (1, 2):
        place.settle(member)
        session = Growing(path, bytes(4 << 20))
        assert send(place, member, session).problem.code == "file.changed"
        assert not place.there(member).exists()
        written += session.written
        member = as_now(member, seconds)
    place.settle(member)

    session = LocalSession()
    assert send(place, member, session).checksum == checksum(member)

    assert place.arrived(member)
    assert len(list(place.there(member).parent.iterdir())) == 1
    assert written + session.written < member.size + (1 << 20)


def test_the_beginning_of_a_file_that_was_rewritten_is_not_built_upon(place):
    member = place.write("a/file", LARGE)
    place.settle(member)
    path = Path(os.fsdecode(member.path))
    send(place, member, Growing(path))
    with path.open("r+b") as file:
        file.write(b"other bytes")
    member = as_now(member, 1)
    place.settle(member)

    assert send(place, member).checksum == checksum(member)

    assert place.arrived(member)
    assert len(list(place.there(member).parent.iterdir())) == 1


@pytest.mark.parametrize("where", ["start", "middle", "end", "nowhere"])
def test_a_file_with_holes_stays_one_and_costs_only_its_data(place, where):
    path = place.source / "holes"
    size = 64 << 20
    with path.open("wb") as file:
        file.truncate(size)
        if where != "nowhere":
            file.seek({"start": 0, "middle": 32 << 20, "end": size - (1 << 20)}[where])
            file.write(os.urandom(1 << 20))
    os.utime(path, (MODIFIED, MODIFIED))
    member = place.member(path, "a/holes")
    place.settle(member)
    session, moved = LocalSession(), []

    def count(sent, omitted=0):
        moved.append((sent, omitted))

    fate = send(place, member, session, moving=count)
    assert fate.checksum == hashlib.md5(path.read_bytes()).hexdigest()
    assert place.arrived(member)
    data = 0 if where == "nowhere" else 1 << 20
    sent, omitted = map(sum, zip(*moved, strict=True))
    assert omitted == size - data
    assert data <= sent < data + 10_000  # with the header
    assert session.written < 1.1 * (1 << 20)
    assert place.there(member).stat().st_blocks * 512 < 2 << 20
    assert place.there(member).stat().st_mtime == MODIFIED


def test_a_script_that_ends_early_proves_nothing_whatever_its_status(place):
    class Ending(LocalSession):
        def write_some(self, pieces, moved=None):
            return [None for _ in pieces]

        def start(self, command):
            stream = super().start(command)
            finish = stream.finish
            stream.finish = lambda: finish()._replace(status=0)
            return stream

    member = place.write("a/file", 1000)
    place.settle(member)
    fate = send(place, member, Ending())
    assert fate.problem.code == "staging.unproven"
    assert fate.again


def test_a_directory_in_the_files_place_refuses_it(place):
    member = place.write("a/file", 100)
    place.settle(member)
    place.there(member).mkdir(parents=True)
    fate = send(place, member)
    assert fate.problem.code == "staging.denied"
    assert not fate.again


def test_a_file_in_the_directorys_place_refuses_the_file(place):
    member = place.write("a/b/file", 100)
    place.settle(member)
    place.location.mkdir()
    (place.location / "a").write_text("in the way")
    fate = send(place, member)
    assert fate.problem.code == "staging.denied"


def test_a_location_that_cannot_be_made_stops_the_run(place):
    member = place.write("a/file", 100)
    place.settle(member)
    place.location.write_text("in the way")
    with pytest.raises(StagingError):
        send(place, member)


def test_an_unknown_directory_is_made_again_when_it_is_gone(place):
    member = place.write("a/file", 100)
    place.settle(member)
    shells = Shells(LocalSession())
    sender = SingleSender(shells, state(place.location, SHELL))
    assert sender.send(0, member, ignore).checksum
    place.there(member).unlink()
    place.there(member).parent.rmdir()
    first, second = (sender.send(0, member, ignore) for _ in range(2))
    shells.close()
    assert first.again
    assert second.checksum
    assert place.arrived(member)


def test_scp_carries_a_whole_payload_in_one_command(place):
    members = [place.write(f"s/d {n % 3}/f '{n}' ü", n * 9000) for n in range(40)]
    members.append(place.write("top", 10))
    place.settle(*members)
    place.location.mkdir()
    session = LocalSession()
    fates = send_by_scp(place, *members, session=session)
    assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
    assert all(map(place.arrived, members))
    assert len(session.commands) == 1
    assert has_mode(place.there(members[0]), 0o660)
    assert has_mode(place.there(members[0]).parent, 0o2770)
    assert place.there(members[0]).stat().st_mtime == MODIFIED


def test_a_file_that_scp_refuses_fails_alone(place):
    members = [place.write(f"a/{n}", 1000, b"C0660 5 no\n" * 90) for n in range(3)]
    place.settle(*members)
    place.there(members[1]).mkdir(parents=True)
    fates = send_by_scp(place, *members)
    assert [bool(fate.checksum) for fate in fates] == [True, False, True]
    assert fates[1].problem.code == "staging.denied"
    assert sorted(p.name for p in (place.location / "a").iterdir()) == ["0", "1", "2"]


def test_a_directory_that_scp_refuses_fails_its_own_files_only(place):
    members = [place.write("a/0", 10), place.write("b/c/1", 10), place.write("d/2", 10)]
    place.settle(*members)
    place.location.mkdir()
    (place.location / "b").write_text("in the way")
    fates = send_by_scp(place, *members)
    assert [bool(fate.checksum) for fate in fates] == [True, False, True]
    assert not fates[1].again


class ScpThatComesSecond(LocalSession):
    """Runs an scp whose first directory was made by another after scp had looked for it."""

    def start(self, command):
        exists = rb"printf '\0'; read -r _; printf '\1scp: a: File exists\n'; "
        ready = b" | { dd bs=1 count=1 of=/dev/null 2>/dev/null; cat; }"  # scp has said it already
        return super().start(exists + command + ready)


def test_a_directory_that_another_channel_makes_meanwhile_takes_files(place):
    members = [place.write("a/0", 10), place.write("a/b/1", 10)]
    place.settle(*members)
    place.there(members[0]).parent.mkdir(parents=True)
    fates = send_by_scp(place, *members, session=ScpThatComesSecond())
    assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
    assert all(map(place.arrived, members))


def test_a_file_that_shrinks_during_scp_fails_alone(place):
    members = [place.write("a/0", 100), place.write("a/1", 3 << 20), place.write("a/2", 100)]
    place.settle(*members)
    place.location.mkdir()
    victim = Path(os.fsdecode(members[1].path))

    class Shrinking(LocalSession):
        """Cuts the file once its first bytes are on their way."""

        def _allow(self, count):
            if self.written > 1 << 20:
                os.truncate(victim, 1 << 20)
            return super()._allow(count)

    fates = send_by_scp(place, *members, session=Shrinking())
    assert [bool(fate.checksum) for fate in fates] == [True, False, True]
    assert fates[1].problem.code == "file.changed"
    assert place.arrived(members[2])


def test_scp_cut_between_files_proves_only_what_is_there(place, tmp_path):
    members = [place.write(f"a/{n}", 700) for n in range(20)]
    place.settle(*members)
    for cut in range(200, 15_000, 977):
        place.location = tmp_path / f"cut {cut}"
        place.location.mkdir()
        try:
            fates = send_by_scp(place, *members, session=LocalSession(limit=cut))
        except TransientError:
            continue
        for fate, member in zip(fates, members, strict=True):
            assert not fate.checksum or place.arrived(member)
