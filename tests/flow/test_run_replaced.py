"""Changed files: whenever a run ends, earlier bytes are kept and no false file counts as safe."""

import hashlib
import json
import os
import sqlite3
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

import psutil
import pytest

from mydata_like.core.events import (
    FileFailed,
    FileReplaced,
    FileSkipped,
    FileVerified,
    FileWaiting,
)
from mydata_like.demo.middleware import Fault, Hang
from tests.builders import a_file
from tests.invariants import check_carried, check_idle
from tests.site import close_streams, kill_group, open_site, yield_processor
from tests.sshd_fixture import needs_sshd, scp_only, sftp_only, with_programs
from tests.staging import use_folder

pytestmark = [pytest.mark.e2e, needs_sshd]

LONG_AGO = 1_600_000_000
ODD = "it's $(x) #.tif" if os.name == "nt" else "it's $(x) *.tif"  # Windows has no `*` in names
NAMES = ("a.tif", ODD, "large.tif")
RUNGS = {
    "shell": lambda folder: (),
    "no-perl": lambda folder: with_programs(folder, perl="/bin/false"),
    "sftp": lambda folder: sftp_only(),
    "folder": lambda folder: (),
}


@contextmanager
def changed_site(tmp_path, options, rung=""):
    """A site whose files are verified, and have other bytes here since then."""
    for number, name in enumerate(NAMES):
        a_file(tmp_path / "data/alice/Scan/deep er" / name, 3000 + number, LONG_AGO)
    a_file(tmp_path / "data/alice/Scan/same.tif", 3000, LONG_AGO)
    with open_site(tmp_path, options=options) as opened:
        if rung == "folder":
            use_folder(opened)
        check_carried(opened, opened.carry())
        for number, name in enumerate(NAMES):
            size = 9_000_000 if name == "large.tif" else 3000 + 2 * number  # one keeps its size
            path = a_file(opened.data / "alice/Scan/deep er" / name, size)
            path.write_bytes(path.read_bytes()[::-1])
            os.utime(path, (LONG_AGO + 100, LONG_AGO + 100))
        yield opened


@pytest.fixture(params=RUNGS)
def site(request, tmp_path):
    with changed_site(tmp_path, RUNGS[request.param](tmp_path), request.param) as opened:
        yield opened


def start(site, *settings):
    return site.start("run", "--json", settings=settings)


def await_that(process, happened):
    deadline = time.monotonic() + 60
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        yield_processor()


def records(site):
    return [file for file in site.server.datafiles() if file.filename in NAMES]


def described(site):
    """Return how many records describe the local files as they are now."""
    return sum(
        file.md5sum
        == hashlib.md5((site.data / "alice/Scan/deep er" / file.filename).read_bytes()).hexdigest()
        for file in records(site)
    )


def replaced(site):
    """Return how many local files lie in their places on the server, whatever it says of them.

    Without `ln` a name is missing for a moment.
    """
    with suppress(FileNotFoundError):
        return sum(
            file.path.read_bytes()
            == (site.data / "alice/Scan/deep er" / file.filename).read_bytes()
            for file in records(site)
        )
    return 0


def lies(site):
    """Return the numbers of records that are verified over bytes that they do not describe."""
    return {
        file.id
        for file in site.server.datafiles()
        if file.verified
        and (
            not file.path.exists() or hashlib.md5(file.path.read_bytes()).hexdigest() != file.md5sum
        )
    }


def noted(site):
    """Return the numbers of records that the ledger knows to be in danger."""
    with closing(sqlite3.connect(site.ledgers[0])) as connection:
        return {row[0] for row in connection.execute("SELECT datafile FROM replacements")}


def aside(site):
    """Return what lies in the staging area under no final name.

    A run that is under way removes folders there: `os.walk` passes over those that have gone.
    """
    return [
        Path(folder, name)
        for folder, _, names in os.walk(site.server.box_location)
        for name in names
        if fnmatchcase(name, f".mydata-{'?' * 32}.part")
        or fnmatchcase(name, f".mydata-{'?' * 32}.new")
    ]


def hang_when_registered(site, *, handled):
    site.server.faults.add(
        Fault(action=Hang(handled=handled), method="PATCH", path="dataset_file", count=None)
    )


def kept(site):
    """Return the checksums in the names of kept files whose bytes have them."""
    found = Path(site.server.box_location).rglob(".mydata-old-*")
    sums = {it.name.split("-")[2]: hashlib.md5(it.read_bytes()).hexdigest() for it in found}
    assert all(name == content for name, content in sums.items())
    return set(sums)


def claimed_elsewhere(site, folder):
    """Return how many files a second installation, which has no ledger, calls verified.

    It is ended before it can send a file.
    """
    before = set(aside(site))
    settings = (f"advanced.state_directory={folder}", "limits.bandwidth=0.0001")
    process = site.start("run", "--events", settings=settings)
    seen = Counter[str]()
    for line in process.stdout:
        seen[json.loads(line)["event"]] += 1
        if seen["file_verified"] + seen["file_wanted"] == 1 + len(NAMES) or seen["run_finished"]:
            break
    kill_group(process)
    close_streams(process)
    assert seen["file_verified"] + seen["file_wanted"] == 1 + len(NAMES), seen
    for left in set(aside(site)) - before:
        left.unlink()
    return seen["file_verified"]


def true_files(site):
    """Return how many local files are on the server as their records say."""
    return 1 + sum(
        file.md5sum
        == hashlib.md5(file.path.read_bytes()).hexdigest()
        == hashlib.md5((site.data / "alice/Scan/deep er" / file.filename).read_bytes()).hexdigest()
        for file in records(site)
    )


def while_bytes_travel(site):
    """Kill while the large file is under way, aside or (where nothing is renamed) to its place."""
    process = start(site, "limits.bandwidth=2")
    (large,) = [file.path for file in records(site) if file.filename == "large.tif"]
    await_that(process, lambda: aside(site) or large.stat().st_size > 10_000)
    return process


def before_the_bytes_take_their_place(site):
    """Kill when all new bytes are aside, and nothing there moves any more."""
    process = site.start("run", "--events", settings=("limits.bandwidth=20",))
    await_that(process, lambda: len(aside(site)) >= 1)
    with staging_paused(site, process):
        kill_group(process)
    return process


def before_the_record_changes(site):
    hang_when_registered(site, handled=False)
    process = start(site)
    await_that(process, lambda: replaced(site) == len(NAMES))
    return process


def when_nobody_hears_that_the_record_has_changed(site):
    hang_when_registered(site, handled=True)
    process = start(site)
    await_that(process, lambda: described(site))
    return process


def before_the_server_looks(site):
    site.server.hold_verification()
    process = start(site)
    await_that(process, lambda: described(site) == len(NAMES))
    return process


def is_worker(process):
    with suppress(psutil.NoSuchProcess):
        return "mydata_like.transfer" in " ".join(process.cmdline())
    return False


@contextmanager
def staging_paused(site, process):
    """The staging host does nothing in this context, or else what writes to the folder."""
    sessions = site.sshd.pause_sessions()
    children = [] if sessions else psutil.Process(process.pid).children(recursive=True)
    workers = list(filter(is_worker, children))
    assert sessions or workers
    for worker in workers:
        worker.suspend()
    try:
        yield
    finally:
        site.sshd.resume_sessions(sessions)
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.resume()


STEPS = [
    while_bytes_travel,
    before_the_bytes_take_their_place,
    before_the_record_changes,
    when_nobody_hears_that_the_record_has_changed,
    before_the_server_looks,
]


def cut_off(site, step):
    process = step(site)
    kill_group(process)
    close_streams(process)
    site.server.faults.clear()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_an_interrupted_file_is_safe_nowhere_and_the_next_run_completes_it(site, step, tmp_path):
    before = {file.md5sum for file in records(site)}
    cut_off(site, step)

    uncovered = lies(site) - noted(site)
    claimed, true = claimed_elsewhere(site, tmp_path / "other"), true_files(site)
    site.server.release_verification()
    settled = site.server.wait_verified()
    after = site.carry()

    assert settled
    assert not uncovered
    assert claimed <= true
    check_carried(site, after)
    assert kept(site) == before
    assert not noted(site)
    assert not aside(site)
    check_idle(site)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_what_was_cut_off_is_true_when_the_local_files_are_gone(site, step):
    before = {file.md5sum for file in records(site)}
    cut_off(site, step)
    for name in NAMES:
        (site.data / "alice/Scan/deep er" / name).unlink()
    site.server.release_verification()
    killed = int(time.time())
    while int(time.time()) == killed:  # the ledger counts in seconds
        pass

    after = site.carry()

    assert not lies(site)
    assert all(file.verified for file in records(site))
    assert not after.of_kind(FileFailed)
    assert not noted(site)
    assert before <= kept(site) | {file.md5sum for file in records(site)}


def test_changed_files_are_replaced_and_the_earlier_ones_kept(site):
    before = {file.md5sum: file.size for file in records(site)}

    carried = site.carry()

    check_carried(site, carried)
    assert len(carried.of_kind(FileVerified)) == len(NAMES)
    told = carried.of_kind(FileReplaced)
    assert sorted(event.size_before for event in told) == sorted(before.values())
    assert all(event.verified_at and event.kept_until for event in told)
    assert carried.sums.replaced == len(NAMES)
    assert kept(site) == set(before)
    assert not noted(site)
    assert not aside(site)
    check_idle(site)


def test_of_a_large_file_that_has_grown_only_the_rest_is_sent(tmp_path):
    size = 20_000_000
    path = a_file(tmp_path / "data/alice/Scan/large.tif", size, LONG_AGO)
    with open_site(tmp_path) as site:
        check_carried(site, site.carry())
        with path.open("ab") as file:
            file.write(b"x")
        os.utime(path, (LONG_AGO + 100, LONG_AGO + 100))

        carried = site.carry()

        check_carried(site, carried)
        assert (carried.sums.bytes, carried.sums.omitted) == (size + 1, size)
        assert kept(site) == set()  # the new content begins with it
        assert not noted(site)
        assert not aside(site)


def test_kept_files_are_removed_when_their_time_has_passed(site):
    kept_for_no_time = "data.keep_replaced=0"
    first = site.carry(kept_for_no_time)
    check_carried(site, first)
    assert {event.kept_until for event in first.of_kind(FileReplaced)} == {None}

    check_carried(site, site.carry(kept_for_no_time))

    assert kept(site) == set()
    with closing(sqlite3.connect(site.ledgers[0])) as connection:
        assert connection.execute("SELECT * FROM kept").fetchall() == []


def test_what_is_only_on_the_server_is_never_touched(site):
    (site.data / "alice/Scan/same.tif").unlink()
    (record,) = [file for file in site.server.datafiles() if file.filename == "same.tif"]
    before = record.path.stat()

    site.carry()

    (after,) = [file for file in site.server.datafiles() if file.filename == "same.tif"]
    assert after == record
    assert after.path.stat() == before


def test_undoing_twice_ends_with_the_local_content_which_is_safe(site):
    local = site.data / "alice/Scan/deep er/a.tif"
    check_carried(site, site.carry())

    for _ in range(2):
        assert site.command("changed", "undo", str(local)).code == 0

    check_carried(site, site.carry())
    assert "verified: safe" in site.command("where", str(local)).output


def test_undo_for_a_file_that_is_no_longer_here_leaves_it_verified(site):
    local = site.data / "alice/Scan/deep er/a.tif"
    check_carried(site, site.carry())
    local.unlink()

    assert site.command("changed", "undo", str(local)).code == 0

    assert "verified: the server had a verified copy" in site.command("where", str(local)).output
    assert lies(site) == set()


def test_a_host_that_cannot_rename_keeps_what_it_has(tmp_path):
    with changed_site(tmp_path, scp_only(tmp_path)) as site:
        before = {file.md5sum for file in records(site)}

        for _ in range(2):
            carried = site.carry()

            waiting = carried.of_kind(FileWaiting)
            assert {event.problem.code for event in waiting} == {"waiting.changed"}
            assert (carried.code, len(waiting)) == (0, len(NAMES))
            assert {file.md5sum for file in records(site)} == before
            assert (lies(site), replaced(site)) == (set(), 0)


def test_earlier_content_is_brought_back_and_not_replaced_again(site):
    before = {file.filename: (file.md5sum, file.size) for file in records(site)}
    local = site.data / "alice/Scan/deep er/a.tif"
    check_carried(site, site.carry())
    newer = {file.filename: file.md5sum for file in records(site)}["a.tif"]
    shown = site.command("where", str(local)).output
    assert "An earlier version (3.0 kB, verified on " in shown

    done = site.command("changed", "undo", str(local))

    assert done.code == 0, done
    (record,) = [file for file in records(site) if file.filename == "a.tif"]
    assert (record.md5sum, record.size) == before["a.tif"]
    assert record.verified
    assert lies(site) == set()
    assert newer in kept(site)
    after = site.command("where", str(local)).output
    assert "verified: safe" not in after
    assert "the user chose to keep the copy" in after
    assert "the next run takes it" not in after
    for _ in range(2):
        carried = site.carry()
        assert [event.problem.code for event in carried.of_kind(FileSkipped)] == ["skipped.changed"]
        assert carried.sums.kept == 1
        assert (carried.code, carried.sums.waiting, carried.sums.sent) == (0, 0, 0)

    local.write_bytes(b"still newer" * 300)
    os.utime(local, (LONG_AGO + 200, LONG_AGO + 200))
    check_carried(site, site.carry())
    again = site.command("changed", "undo", "alice/Scan/other.tif")
    assert (again.code, "changed.nothing-kept" in again.complaints) == (3, True)


def cut_off_by_older_version(site, local):
    """Leave a record as older versions did: it describes bytes that are nowhere any more."""
    (record,) = [file for file in records(site) if file.filename == local.name]
    newer = local.read_bytes()
    checksum = hashlib.md5(newer).hexdigest()
    noted = (record.id, len(newer), checksum)
    site.server.rewrite(record.id, checksum, len(newer))
    with closing(sqlite3.connect(site.ledgers[0])) as connection, connection:
        connection.execute(
            "INSERT INTO replacements (root, key, dataset, datafile, remote, staged, size,"
            " checksum, at) SELECT root, key, dataset, ?1, remote, remote || '.part', ?2, ?3, 1"
            " FROM files WHERE key = ?4",
            (*noted, os.fsencode(local.relative_to(site.data).as_posix())),
        )
        connection.execute(
            "UPDATE files SET state = 'repaired', size = ?2, checksum = ?3 WHERE datafile = ?1",
            noted,
        )
    local.unlink()
    return record


def test_a_record_of_bytes_that_never_arrived_can_describe_what_is_there_again(tmp_path):
    with changed_site(tmp_path, ()) as site:
        local = site.data / "alice/Scan/deep er/large.tif"
        before = cut_off_by_older_version(site, local)
        (failed,) = [event for event in site.carry().of_kind(FileFailed)]
        assert failed.problem.code == "server.replacing"
        assert "mydata-like changed undo" in failed.problem.hint

        asked = site.command("changed", "undo", str(local))
        assert asked.code != 0
        assert before.md5sum in asked.output
        done = site.command("changed", "undo", "--yes", str(local))

        assert done.code == 0, done
        (record,) = [file for file in records(site) if file.filename == "large.tif"]
        assert (record.md5sum, record.size, record.verified) == (before.md5sum, before.size, True)
        assert record.path.read_bytes() == before.path.read_bytes()
        assert site.carry().of_kind(FileFailed) == []
        assert (
            "verified: the server had a verified copy" in site.command("where", str(local)).output
        )
