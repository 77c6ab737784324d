"""Files that an interrupted batch has left on the host count only by the checksum of both sides."""

import hashlib
import os
import shutil

import pytest

from mydata_like.core.checksums import Algorithm
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.ssh.arrived_files import find_arrived
from mydata_like.transfer.ssh.remote_shell import Shells
from tests.fakes.place import checksum
from tests.fakes.session import LocalSession, state
from tests.privileges import needs_shell

pytestmark = [pytest.mark.process, needs_shell]


def ignore(*_: int) -> None: ...


def find(place, members, command=b"md5sum", moving=ignore, session=None):
    """Return the checksums of the files that have arrived, by index."""
    shells = Shells(session or LocalSession())
    options = state(place.location, HostCapabilities("shell", checksum=command, sha256=command))
    try:
        found = find_arrived(shells, options, members, moving)
    finally:
        shells.close()
    return {index: result.checksum for index, result in found.items()}


def put(place, *members):
    """Put files in the staging area, as a batch does."""
    for member in members:
        place.there(member).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(os.fsdecode(member.path), place.there(member))


@pytest.fixture
def members(place):
    """Interrupted files, among them an empty one and some with odd names."""
    names = ["a/0", "a/1 b", "it's/2", "-x/3", "ü/$(4)", "a/*", "a/6\\7"]
    members = [place.write(name, 1000 * n) for n, name in enumerate(names)]
    return [member._replace(interrupted=True) for member in place.settle(*members)]


@pytest.mark.parametrize("command", [b"md5sum", b"openssl md5 -r", b"md5 -q"])
def test_what_has_the_same_checksum_has_arrived(place, members, command):
    program = command.split()[0].decode()
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    put(place, *members[:4], *members[5:])

    found = find(place, members, command)

    expected = {n: checksum(member) for n, member in enumerate(members) if n != 4}
    assert found == {n: expected[n] for n in found}
    assert {*expected} - {*found} <= {6}  # some programs print a backslash in another form


@pytest.mark.parametrize(
    "command", [b"sha256sum", b"openssl sha256 -r", b"shasum -a 256", b"sha256 -q"]
)
def test_where_checksums_are_sha256_these_are_compared(place, members, command):
    program = command.split()[0].decode()
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    members = [member._replace(algorithm=Algorithm.SHA256) for member in members]
    put(place, *members[:4])
    place.there(members[2]).write_bytes(b"x" * members[2].size)

    found = find(place, members, command)

    contents = {n: place.there(members[n]).read_bytes() for n in (0, 1, 3)}
    assert found == {n: hashlib.sha256(content).hexdigest() for n, content in contents.items()}


def test_what_arrived_is_reported_as_not_sent(place, members):
    put(place, members[1], members[3])
    omitted = []

    find(place, members, moving=lambda _, size=0: omitted.append(size))

    assert sum(omitted) == members[1].size + members[3].size


def test_other_bytes_of_the_same_size_have_not_arrived(place, members):
    put(place, *members)
    place.there(members[2]).write_bytes(b"x" * members[2].size)

    assert 2 not in find(place, members)


def test_a_file_that_was_cut_or_has_changed_here_has_not_arrived(place, members):
    put(place, *members)
    os.truncate(place.there(members[2]), 100)
    os.truncate(os.fsdecode(members[3].path), 100)

    assert {1, 2, 3} - find(place, members).keys() == {2, 3}


def test_only_regular_files_are_read(place, members):
    put(place, *members[3:])
    place.there(members[1]).symlink_to(os.fsdecode(members[1].path))
    place.there(members[2]).parent.mkdir()
    os.mkfifo(place.there(members[2]))

    assert {0, 1, 2} & find(place, members).keys() == set()


def test_files_that_were_not_interrupted_or_must_be_sent_whole_are_not_read(place, members):
    put(place, *members)
    session = LocalSession()
    fresh = [member._replace(interrupted=False) for member in members[:3]]
    again = [member._replace(from_scratch=True) for member in members[3:]]

    assert find(place, [*fresh, *again], session=session) == {}
    assert session.commands == []


def test_a_host_without_a_program_for_checksums_is_not_asked(place, members):
    put(place, *members)
    session = LocalSession()

    assert find(place, members, b"", session=session) == {}
    assert session.commands == []


def test_many_long_names_are_read_by_several_scripts(place):
    names = [f"{n}/{'long ' * 40}" for n in range(500)]
    members = place.settle(*[place.write(name, 10) for name in names])
    members = [member._replace(interrupted=True) for member in members]
    put(place, *members)

    assert len(find(place, members)) == 500
