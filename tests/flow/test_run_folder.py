"""Whole runs that write to a mounted folder."""

import hashlib
import json
import os
import signal
from pathlib import Path

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.core.events import (
    ChannelChanged,
    FileStaged,
    RunPaused,
    RunResumed,
    TransferProgressed,
    TransferRetried,
)
from mydata_like.engine.run import INTERRUPTED_EXIT
from mydata_like.transfer.folder.staging_folder import MARKER
from tests.invariants import check_carried, check_complete, check_idle, check_law
from tests.mounts import (
    MOUNTS,
    CableDisk,
    SmbMount,
    SshfsMount,
    needs_disks,
    needs_mounts,
    needs_samba,
    needs_sshfs,
)
from tests.site import (
    DEADLINE,
    kill_group,
    left_behind,
    make_data,
    open_site,
    yield_processor,
)
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.fixture
def site(tmp_path):
    """A site that writes to the location of the storage box, which is not confirmed yet."""
    make_data(tmp_path / "site", tiny_files=30, large=3_000_000)
    with open_site(tmp_path / "site") as site:
        yield site


@pytest.fixture
def mounted(site, tmp_path):
    """The location of the storage box, mounted by sshfs."""
    target = tmp_path / "mounted"
    target.mkdir()
    with SshfsMount(site.sshd, site.place.key_file, folder_of(site), target) as mount:
        yield mount


def folder_of(site) -> Path:
    return site.server.box_location


def method(folder: Path) -> tuple[str, ...]:
    return ("transfer.method=folder", f"transfer.folder={folder}")


def confirm(site, folder: Path | None = None) -> tuple[str, ...]:
    """Confirm a folder, by default the location, and return the settings that use it."""
    settings = method(folder or folder_of(site))
    ended = site.command("register", "--accept-folder", settings=settings)
    assert ended.code == 0, ended.complaints
    return settings


def add_large(site) -> None:
    folder = site.data / "alice" / "Large"
    folder.mkdir()
    (folder / "file").write_bytes(os.urandom(60_000_000))


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def checksums_in(folder: Path) -> set[str]:
    return {
        hashlib.md5(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()
    }


def parts_in(folder: Path) -> list[Path]:
    """Return the temporary files of transfers; one of a killed probe may stay."""
    return [path for path in folder.rglob(".mydata-*.part") if "probe" not in path.name]


def test_all_files_are_verified_and_a_second_run_has_nothing_to_do(site):
    settings = confirm(site)

    carried = site.carry(*settings)

    check_carried(site, carried)
    opened = [one for one in carried.of_kind(ChannelChanged) if one.state == "open"]
    assert {(one.rung, one.host) for one in opened} == {("folder", str(folder_of(site)))}
    assert not parts_in(folder_of(site))
    check_idle(site, *settings)


def test_a_folder_that_is_not_confirmed_gets_nothing(site):
    before = names_in(folder_of(site))

    carried = site.carry(*method(folder_of(site)), "advanced.pause_patience=0")

    assert carried.sums.problem.code == "staging.unconfirmed"
    assert names_in(folder_of(site)) == before
    check_law(carried)


def test_a_folder_proves_nothing_about_the_key(site):
    site.carry(*confirm(site))
    site.sshd.forbid_all()
    (site.data / "alice" / "Later").mkdir()
    (site.data / "alice" / "Later" / "file").write_bytes(b"later")

    carried = site.carry()

    check_carried(site, carried)
    assert {one.rung for one in carried.of_kind(ChannelChanged) if one.rung} == {"http"}


@pytest.mark.parametrize("part", ["", "alice", ".."])
def test_a_folder_that_shares_files_with_the_data_directory_is_refused(site, part):
    with pytest.raises(SettingsError, match="contain each other"):
        site.carry(*method((site.data / part).resolve()))


def test_a_folder_that_is_not_mounted_is_waited_for(site):
    settings = confirm(site)
    mounted, away = folder_of(site), folder_of(site).with_name("away")
    mounted.rename(away)
    mounted.mkdir()  # what is left where nothing is mounted
    found = []

    def mount(event):
        if isinstance(event, RunPaused):
            found.extend(mounted.iterdir())
            mounted.rmdir()
            away.rename(mounted)

    carried = site.carry(*settings, watch=mount)

    check_carried(site, carried)
    assert found == []
    assert [one.problem.code for one in carried.of_kind(RunPaused)] == ["staging.unconfirmed"]
    assert len(carried.of_kind(RunResumed)) == 1


def test_a_killed_run_is_continued(site):
    settings = confirm(site)
    add_large(site)
    process = site.start("run", "--events", settings=(*settings, "limits.bandwidth=20"))
    for _ in process.stdout:
        if parts_in(folder_of(site)):
            break
    kill_group(process)
    process.communicate()

    check_complete(site, site.run(*settings))

    assert not parts_in(folder_of(site))


# The arguments are the folder, its marker, and the command. What is left there is counted.
_IN_LITTLE_SPACE = """
mount -t tmpfs -o size=1m none "$0" && cp "$1" "$0" && (shift; exec "$@")
code=$?
find "$0" -name '*.part' | wc -l >&2
exit $code
"""


@needs_mounts
def test_a_full_folder_ends_the_run_and_a_later_one_completes_it(site, tmp_path):
    settings = confirm(site)
    marker = tmp_path / os.fsdecode(MARKER)
    marker.write_bytes((folder_of(site) / marker.name).read_bytes())
    site.wrap = (*MOUNTS, "sh", "-c", _IN_LITTLE_SPACE, str(folder_of(site)), str(marker))

    ended = site.run(*settings, "advanced.pause_patience=0")
    site.wrap = ()

    assert (ended.code, ended.problem) == (3, "staging.full"), ended
    assert ended.complaints.split()[-1] == "0"
    check_complete(site, site.run(*settings))


_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@needs_mounts
def test_a_read_only_folder_ends_the_run_which_promises_nothing(site):
    settings = confirm(site)
    site.wrap = (*MOUNTS, "sh", "-c", _READ_ONLY, str(folder_of(site)))

    ended = site.run_events(*settings)
    site.wrap = ()

    assert (ended.code, ended.problem) == (3, "staging.denied"), ended
    assert ended.sums["problem"]["hint"] == "Mount it with write access."
    assert ended.events("run_paused") == []
    check_complete(site, site.run(*settings))


@needs_sshfs
def test_a_mount_whose_server_dies_is_waited_for(site, mounted):
    settings = confirm(site, mounted.target)
    add_large(site)

    killed = []

    def interfere(event):
        if isinstance(event, TransferProgressed) and not killed:
            killed.append(mounted.kill())
        if isinstance(event, RunPaused):
            mounted.unmount()
            mounted.mount()

    carried = site.carry(*settings, "limits.bandwidth=20", watch=interfere)

    check_carried(site, carried)
    assert "staging.lost" in {one.problem.code for one in carried.of_kind(TransferRetried)}
    (paused,) = carried.of_kind(RunPaused)
    # The folder can be lost again while it is opened.
    assert paused.problem.code in {"staging.absent", "staging.lost"}
    assert not parts_in(folder_of(site))


@needs_disks
def test_what_counts_as_sent_is_on_a_disk_that_was_pulled(site, tmp_path):
    for number in range(600):
        path = site.data / "alice" / f"Many {number % 3}" / f"file {number}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(2000))
    (tmp_path / "host").mkdir()
    (tmp_path / "cable").mkdir()
    cable = SshfsMount(site.sshd, site.place.key_file, tmp_path / "host", tmp_path / "cable")
    with CableDisk(folder_of(site), cable) as disk:
        settings = confirm(site)
        sent, missing = [], []

        def interfere(event):
            if isinstance(event, FileStaged):
                sent.append(event)
                if len(sent) == 100:
                    disk.pull()
            if isinstance(event, RunPaused):
                disk.plug_in()
                there = checksums_in(folder_of(site))
                missing.extend(one.path for one in sent if one.checksum not in there)

        carried = site.carry(*settings, watch=interfere)

        assert missing == []
        check_carried(site, carried)


@needs_samba
def test_files_arrive_over_smb(tmp_path):
    folder = tmp_path / "site" / "data" / "alice" / "Run1"  # smbnetfs has no names with spaces
    folder.mkdir(parents=True)
    for number, size in enumerate((*range(0, 60_000, 500), 40_000_000)):
        path = folder / f"{number}.tif"
        path.write_bytes(os.urandom(size))
        os.utime(path, (1_700_000_000, 1_700_000_000))
    with open_site(tmp_path / "site") as site, SmbMount(tmp_path, folder_of(site)) as mount:
        settings = confirm(site, mount.target)

        ended = site.run(*settings)

        check_complete(site, ended)
        assert not parts_in(folder_of(site))


@needs_sshfs
def test_a_mount_that_hangs_does_not_keep_the_run_from_ending(site, mounted):
    settings = (*confirm(site, mounted.target), "transfer.stall_timeout=1")
    add_large(site)
    process = site.start("run", "--events", settings=(*settings, "limits.bandwidth=20"))
    for line in process.stdout:
        if "transfer_progressed" in line:
            mounted.pause()
        if "run_paused" in line:
            problem = json.loads(line)["problem"]
            process.send_signal(signal.SIGINT)

    process.communicate(timeout=DEADLINE)  # although its workers still wait for the folder
    mounted.resume()
    while left_behind(process.pid):
        yield_processor()

    assert problem["code"] == "staging.absent"
    assert process.returncode == INTERRUPTED_EXIT
    check_complete(site, site.run(*settings))
