"""Batches over a real SSH server, whose tar is one or another, and fails in one way or another."""

import pytest

from mydata_like.core.model import Payload
from mydata_like.core.ports import SentFile, UnsentFile
from tests.fakes.place import checksum
from tests.openssh import on_host, run_on_host, which
from tests.sshd_fixture import needs_sshd, script, with_programs
from tests.staging import Staging, wanted

pytestmark = needs_sshd
TARS = {"gnu": "tar", "bsd": "bsdtar", "busybox": "busybox"}


def ignore(*_: int) -> None: ...


def batch(members) -> Payload:
    return Payload(1, tuple(map(wanted, members)), batched=True)


def find_tar(kind) -> str:
    program = which(TARS[kind])
    if program is None:
        pytest.skip(f"no {kind} tar here")
    return f"{program} tar" if kind == "busybox" else program


class Host(Staging):
    """A host with this tar, which notes what it is asked for."""

    def __init__(self, directory, kind, command) -> None:
        directory.mkdir()
        self._log = on_host(directory / "log")
        noting = script(
            directory / "noting",
            f'case "$*" in *version*) ;; *) echo "$@" >>{self._log};; esac\n{command} "$@"\n',
        )
        super().__init__(directory, options=with_programs(directory, tar=noting))
        self.kind = kind

    @property
    def asked(self) -> list[str]:
        """The options that tar got, not counting the probe."""
        return self._log.read_text().splitlines()[1:]


@pytest.fixture(params=TARS)
def host(request, tmp_path):
    with Host(tmp_path / "host", request.param, find_tar(request.param)) as host:
        yield host


def list_files(place):
    there = (path for path in place.location.rglob("*") if not path.is_dir())
    return {bytes(path.relative_to(place.location)) for path in there}


def test_a_marker_proves_a_batch_and_is_gone(place, host):
    members = [place.write(f"set {n % 3}/it's {n}", n * 37) for n in range(300)]
    place.settle(*members)
    transport = host.build(place.location)
    try:
        sent = transport.open_channel().send(batch(members), ignore)
    finally:
        transport.close()
    assert sent == [SentFile(n, checksum(member)) for n, member in enumerate(members)]
    assert all(map(place.arrived, members))
    assert list_files(place) == {member.remote for member in members}
    assert [" -v " in words for words in host.asked] == [False]


def test_one_file_that_is_refused_is_distinguished_from_the_others(place, host):
    place.location.mkdir()
    (place.location / "blocked").write_text("a file where a folder should be")
    names = ["a/0", "a/1", "blocked/2", "c/3", "c/4"]
    members = place.settle(*[place.write(name, 100) for name in names])
    transport = host.build(place.location)
    try:
        results = transport.open_channel().send(batch(members), ignore)
    finally:
        transport.close()
    for result, member in zip(results, members, strict=True):
        assert isinstance(result, UnsentFile) or place.arrived(member)
    assert isinstance(results[2], UnsentFile)
    assert [" -v " in words for words in host.asked] == [False, True]
    assert list_files(place) <= {b"blocked", *(member.remote for member in members)}


def test_what_fits_on_a_full_disk_is_proven(place, host):
    place.location.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place.location]
    if run_on_host(*command).returncode:
        pytest.skip("nothing can be mounted here")
    members = place.settle(*[place.write(f"a/{n}", 60_000) for n in range(40)])
    transport = host.build(place.location)
    try:
        fates = transport.open_channel().send(batch(members), ignore)
        arrived = [place.arrived(member) for member in members]
    finally:
        transport.close()
        run_on_host("umount", "-l", place.location).check_returncode()
    assert "staging.full" in {fate.problem.code for fate in fates if isinstance(fate, UnsentFile)}
    assert all(fate.again for fate in fates if isinstance(fate, UnsentFile))
    proven = {fate.index for fate in fates if isinstance(fate, SentFile)}
    assert proven <= {index for index, is_there in enumerate(arrived) if is_there}
    assert proven or host.kind == "busybox"  # which proves nothing if it fails


@pytest.mark.parametrize(
    ("kind", "death"),
    [*((kind, "exit 0") for kind in TARS), ("gnu", "kill -9 $$"), ("gnu", "exit 5")],
)
def test_a_tar_that_takes_half_the_first_time_proves_nothing(place, tmp_path, kind, death):
    tar, flag = find_tar(kind), on_host(tmp_path / "died")
    half = f"head -c {20 * 1024} | {tar} -x -f -"  # between two members
    dying = script(
        tmp_path / "dying",
        f'[ "$1" = --version ] || [ ! -e {flag} ] || {{ rm {flag}; {half}; {death}; }}\n'
        f'exec {tar} "$@"\n',
    )
    members = place.settle(*[place.write(f"a/{n}", 512) for n in range(40)])
    with Host(tmp_path / "host", kind, dying) as host:
        transport = host.build(place.location)
        try:
            channel = transport.open_channel()
            flag.touch()
            sent = channel.send(batch(members), ignore)
        finally:
            transport.close()
    assert not flag.exists()
    assert sent == [SentFile(n, checksum(member)) for n, member in enumerate(members)]
    assert all(map(place.arrived, members))
    assert list_files(place) == {member.remote for member in members}
