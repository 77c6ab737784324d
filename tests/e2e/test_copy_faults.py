"""`copy` while bits are flipped on the way, and while the host loses what was written.

No file may be listed that does not have exactly these bytes, and no wrong one may get a name.
"""

import os
from contextlib import ExitStack
from socket import socket

import pytest

from mydata_like.app.copy_order import CopyOrder, plan_copy
from mydata_like.app.copy_service import open_place, run_copy
from mydata_like.app.plain_destination import FolderPlace
from mydata_like.app.run_request import RunObserver
from mydata_like.catalogues.manifest.segments import TURN
from mydata_like.core.errors import StagingError
from mydata_like.selftest.tampering import TamperingProxy
from mydata_like.transfer.folder.mounted_files import LocalFiles
from tests.copy_site import KINDS, find_differences, find_false_claims, open_copy_site
from tests.mounts import SmallDisk, may_mount_disks
from tests.openssh import open_ssh
from tests.site import finish_reading, wait_for
from tests.sshd_fixture import NO_PYTHON, first_in_path, needs_sshd, script, sftp_only, sshd_with

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="the host is this computer"),
]

PLACES = (0.02, 0.3, 0.9)  # shares of what is sent in one direction; the first is of the login
# Seconds for a copy in which a changed length lets a session wait until its stall time-out.
STALLED = 200.0
# Each does its work, and once something to the first of our temporary files.
ONCE = """
{program} "$@"; status=$?
for f in $(find {there}/.mydata-like/tmp -name '[0-9]*.raw' | sort | head -n 1); do
[ -e {there}/../done ] || {{ : > {there}/../done; {harm}; }}; done
exit $status
"""
# The same while the program for the host's Python looks at the first file again.
PYTHON = """
program=$4
shift 4
exec /usr/bin/python3 -I -S -c "import os, subprocess
fstat, calls = os.fstat, []
def harm(descriptor):
    calls.append(descriptor)
    if len(calls) == 2:
        subprocess.run(['{harm}'], check=True)
    return fstat(descriptor)
os.fstat = harm
$program" "$@"
"""
LOST = {
    "cut after it was flushed": ("sync", 'truncate -s 5 "$f"'),
    "empty after it was flushed": ("sync", ': > "$f"'),
    "gone after it was flushed": ("sync", 'rm "$f"'),
    "zeroed after it was flushed": ("sync", 's=$(wc -c < "$f"); : > "$f"; truncate -s $s "$f"'),
    "swapped after it was hashed": ("md5sum", 'cp "$f" "$f~"; echo x >> "$f~"; mv "$f~" "$f"'),
    "cut after it was hashed": ("md5sum", 'truncate -s 5 "$f"'),
    "swapped after Python hashed it": ("python3", 'cp "$f" "$f~"; echo x >> "$f~"; mv "$f~" "$f"'),
    "cut after Python hashed it": ("python3", 'truncate -s 5 "$f"'),
}


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def make_source(site):
    source = site.data / "src"
    source.mkdir()
    for number in range(30):
        (source / f"{number}.raw").write_bytes(f"content of {number}\n".encode() * (number + 1))
    (source / "large").write_bytes(os.urandom(2_000_000))
    os.utime(source, (1_000_000_000, 1_000_000_000))  # SFTP has whole seconds
    return source


@pytest.mark.timeout(4 * STALLED)
@pytest.mark.parametrize("inward", [False, True], ids=["to the host", "from the host"])
@pytest.mark.parametrize("access", ["shell", "SFTP"])
def test_a_bit_that_is_flipped_on_the_way_leads_to_no_false_claim(tmp_path, stack, access, inward):
    options = sftp_only() if access == "SFTP" else ()
    sshd = stack.enter_context(sshd_with(tmp_path, *options))
    site = stack.enter_context(open_copy_site(tmp_path / "site", "host", sshd))
    proxy = stack.enter_context(TamperingProxy(sshd.port))
    for name in ("config", "known_hosts"):
        path = site.home / ".ssh" / name
        path.write_text(path.read_text().replace(str(sshd.port), str(proxy.port)))
    source = make_source(site)
    assert site.copy(source).code == 0
    passed = proxy.count(inward=inward)

    for number, place in enumerate(PLACES):
        site.there = site.folder / f"there {place}"
        proxy.flip(inward=inward, after=int(place * passed), bit=number)
        ended = site.copy(source, patience=STALLED)
        assert proxy.changed.is_set()
        assert find_false_claims(site.there) == []
        if ended.code:
            assert ended.problem in ("link.refused", "link.lost", "link.stalled")
            ended = site.copy(source, patience=STALLED)
        assert ended.code == 0, ended
        assert find_differences(source, site.there, b"src") == []


@pytest.mark.parametrize("what", LOST)
def test_a_file_that_the_host_loses_before_it_has_its_name_is_sent_again(tmp_path, stack, what):
    program, harm = LOST[what]
    there = tmp_path / "site" / "there"
    host = tmp_path / "host"
    host.mkdir()
    if program == "python3":
        once = ONCE.format(program=":", there=there, harm=harm)
        programs = {program: PYTHON.format(harm=script(host / "harm", once))}
    else:
        text = ONCE.format(program=f"/usr/bin/{program}", there=there, harm=harm)
        programs = {program: text, **NO_PYTHON}
    sshd = stack.enter_context(sshd_with(host, *first_in_path(host, **programs)))
    site = stack.enter_context(open_copy_site(tmp_path / "site", "host", sshd))
    source = make_source(site)

    ended = site.copy(source)

    assert (site.folder / "done").exists()
    assert ended.code == 0, ended
    assert find_differences(source, site.there, b"src") == []


@pytest.mark.skipif(not may_mount_disks(), reason="mounting is not permitted")
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_to_a_full_disk_is_continued_when_there_is_room(tmp_path, stack, kind):
    sshd = stack.enter_context(open_ssh(tmp_path / "sshd"))
    site = stack.enter_context(open_copy_site(tmp_path / "site", kind, sshd))
    source = make_source(site)
    for number in range(5):
        (source / f"more {number}").write_bytes(os.urandom(1_000_000))
    site.there.mkdir()
    disk = stack.enter_context(SmallDisk(site.there, "4m"))

    process = site.start(source, site.target, "--events")
    problem = wait_for(process, "run_paused")[-1]["problem"]
    assert find_false_claims(site.there) == []
    process.terminate()
    paused = finish_reading(process)
    disk.enlarge()
    ended = site.copy(source)

    assert (problem["code"], problem["message"]) == ("staging.full", "The destination is full.")
    assert (paused.code, paused.problem) == (130, "run.interrupted")
    assert ended.code == 0, ended
    assert find_differences(source, site.there, b"src") == []


@pytest.mark.skipif(not may_mount_disks(), reason="mounting is not permitted")
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_to_a_disk_that_stays_full_ends_and_says_how_to_continue(
    tmp_path, stack, kind, monkeypatch
):
    sshd = stack.enter_context(open_ssh(tmp_path / "sshd"))
    site = stack.enter_context(open_copy_site(tmp_path / "site", kind, sshd))
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    source = make_source(site)
    for number in range(5):
        (source / f"more {number}").write_bytes(os.urandom(1_000_000))
    site.there.mkdir()
    disk = stack.enter_context(SmallDisk(site.there, "4m"))
    sources, target = plan_copy([str(source), site.target])
    order = CopyOrder(sources=sources, target=target, patience=0.5)

    end, *_ = run_copy(order, open_place(order, None), RunObserver())
    assert find_false_claims(site.there) == []
    disk.enlarge()
    again = site.copy(source)

    sums = end.finished
    assert (end.exit_code, sums.problem.code) == (StagingError.exit_code, "staging.full")
    assert "run the same command again" in sums.problem.hint
    assert 0 < sums.verified < sums.found == sums.verified + sums.waiting
    assert again.code == 0, again
    assert again.sums["sent"] == sums.waiting
    assert find_differences(source, site.there, b"src") == []


def test_a_host_that_cannot_be_reached_is_called_a_host(tmp_path, stack):
    sshd = stack.enter_context(open_ssh(tmp_path / "sshd"))
    site = stack.enter_context(open_copy_site(tmp_path / "site", "host", sshd))
    make_source(site)
    site.write_settings()
    with socket() as nobody:  # a port where nobody listens
        nobody.bind((sshd.host, 0))
        config = site.home / ".ssh" / "config"
        port = str(nobody.getsockname()[1])
        config.write_text(config.read_text().replace(str(sshd.port), port))
        copied = site.copy(site.data / "src", "--text")
        others = [site.call("verify", site.target), site.call("run")]

    for ended in (copied, *others):
        assert ended.code != 0
        assert "Check the network; the host may be down." in ended.complaints


class WatchedFiles(LocalFiles):
    """Files that call `watch` before anything is withdrawn from the manifest."""

    def __init__(self, path, watch):
        super().__init__(path)
        self._watch = watch

    def write(self, path, content, *, replace=False):
        if path == TURN:
            self._watch()
        return super().write(path, content, replace=replace)


class WatchedFolder(FolderPlace):
    watch = id

    def open_files(self):
        return WatchedFiles(self.path, self.watch)


def test_what_an_interrupted_run_has_not_withdrawn_is_withdrawn_before_it_is_replaced(
    tmp_path, stack, monkeypatch
):
    sshd = stack.enter_context(open_ssh(tmp_path / "sshd"))
    site = stack.enter_context(open_copy_site(tmp_path / "site", "folder", sshd))
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    source = make_source(site)
    assert site.copy(source).code == 0
    there = site.there / "src" / "3.raw"
    earlier = there.read_bytes()
    changed = b"changed" * 20
    (source / "3.raw").write_bytes(changed)
    sources, target = plan_copy([str(source), site.target])
    order = CopyOrder(sources=sources, target=target)
    seen = []

    def interrupt():
        raise RuntimeError("as a kill would end it")

    place = WatchedFolder(open_place(order, None).path)
    place.watch = interrupt
    with pytest.raises(RuntimeError, match="as a kill"):
        run_copy(order, place, RunObserver())
    place.watch = lambda: seen.append(there.read_bytes())
    end, *_ = run_copy(order, place, RunObserver())

    assert seen[0] == earlier
    assert there.read_bytes() == changed
    assert end.exit_code == 0
    assert find_false_claims(site.there) == []
