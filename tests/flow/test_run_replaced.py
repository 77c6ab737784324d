"""Changed files: whenever a run ends, no record is verified over bytes it does not describe."""

import hashlib
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

import psutil
import pytest

from mydata_like.app.ledger_status import open_survey
from mydata_like.app.settings_service import load_settings
from mydata_like.core.events import FileFailed, FileVerified
from mydata_like.demo.middleware import Fault, Hang
from tests.builders import a_file
from tests.invariants import check_carried, check_idle
from tests.site import kill_group, open_site, wait_for, yield_processor
from tests.sshd_fixture import needs_sshd, scp_only, sftp_only
from tests.staging import use_folder

pytestmark = [pytest.mark.e2e, needs_sshd]

LONG_AGO = 1_600_000_000
ODD = "it's $(x) #.tif" if os.name == "nt" else "it's $(x) *.tif"  # Windows has no `*` in names
NAMES = ("a.tif", ODD, "large.tif")
RUNGS = {
    "shell": lambda folder: (),
    "scp": scp_only,
    "sftp": lambda folder: sftp_only(),
    "folder": lambda folder: (),
}


@pytest.fixture(params=RUNGS)
def site(request, tmp_path):
    """A site whose files are verified, and have other bytes here since then."""
    for name in NAMES:
        a_file(tmp_path / "data/alice/Scan/deep er" / name, 3000, LONG_AGO)
    a_file(tmp_path / "data/alice/Scan/same.tif", 3000, LONG_AGO)
    with open_site(tmp_path, options=RUNGS[request.param](tmp_path)) as opened:
        if request.param == "folder":
            use_folder(opened)
        check_carried(opened, opened.carry())
        for number, name in enumerate(NAMES):
            size = 9_000_000 if name == "large.tif" else 3000 + number  # one keeps its size
            path = a_file(opened.data / "alice/Scan/deep er" / name, size)
            path.write_bytes(path.read_bytes()[::-1])
            os.utime(path, (LONG_AGO + 100, LONG_AGO + 100))
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
    """Return how many local files lie in their places on the server, whatever it says of them."""
    return sum(
        file.path.read_bytes() == (site.data / "alice/Scan/deep er" / file.filename).read_bytes()
        for file in records(site)
    )


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


def test_where_only_a_record_was_wrong_its_bytes_stay_untouched(site):
    (record,) = [file for file in site.server.datafiles() if file.filename == "same.tif"]
    site.server.rewrite(record.id, "f" * 32)
    before = record.path.stat()

    check_carried(site, site.carry("advanced.full_check_days=0"))

    after = record.path.stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    assert (described(site), replaced(site)) == (len(NAMES), len(NAMES))
    assert (lies(site), noted(site), aside(site)) == (set(), set(), [])


def while_bytes_travel(site):
    """Kill while the large file is under way, aside or (where nothing is renamed) to its place."""
    process = start(site, "limits.bandwidth=2")
    (large,) = [file.path for file in records(site) if file.filename == "large.tif"]
    await_that(process, lambda: aside(site) or large.stat().st_size > 10_000)
    return process


def before_the_record_changes(site):
    hang_when_registered(site, handled=False)
    process = site.start("run", "--events")
    for _ in NAMES:
        wait_for(process, "file_staged")
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


def before_the_bytes_take_their_place(site):
    """Kill when no record is verified any more."""
    site.server.hold_verification()
    process = start(site)
    await_that(process, lambda: described(site) == len(NAMES))
    with staging_paused(site, process):
        site.server.release_verification()
        await_that(process, lambda: not any(file.verified for file in records(site)))
        kill_group(process)
    return process


def before_the_server_looks_again(site):
    site.server.hold_verification()
    process = start(site)
    await_that(process, lambda: described(site) == len(NAMES))
    with staging_paused(site, process):
        site.server.release_verification()
        await_that(process, lambda: not any(file.verified for file in records(site)))
        site.server.hold_verification()
    await_that(process, lambda: replaced(site) == len(NAMES))
    return process


STEPS = [
    while_bytes_travel,
    before_the_record_changes,
    when_nobody_hears_that_the_record_has_changed,
    before_the_server_looks,
    before_the_bytes_take_their_place,
    before_the_server_looks_again,
]


def cut_off(site, step):
    process = step(site)
    kill_group(process)
    process.communicate()
    site.server.faults.clear()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_an_interrupted_file_is_not_claimed_safe_and_the_next_run_completes_it(site, step):
    cut_off(site, step)

    uncovered = lies(site) - noted(site)
    site.server.release_verification()
    settled = site.server.wait_verified()
    after = site.carry()

    assert settled
    assert not uncovered
    check_carried(site, after)
    assert not noted(site)
    assert not aside(site)
    check_idle(site)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_what_was_cut_off_is_reported_when_the_local_files_are_gone(site, step):
    cut_off(site, step)
    for name in NAMES:
        (site.data / "alice/Scan/deep er" / name).unlink()
    site.server.release_verification()
    killed = int(time.time())
    while int(time.time()) == killed:  # the ledger counts in seconds
        pass

    after = site.carry()
    again = site.carry()

    assert not lies(site)
    unproven = {file.filename for file in records(site) if not file.verified}
    for carried in (after, again):
        told = {event.path.decode().rpartition("/")[2] for event in carried.of_kind(FileFailed)}
        assert told == unproven
        assert carried.sums.failed == len(unproven)
        assert carried.sums.found == carried.sums.verified + carried.sums.failed
        assert {event.problem.code for event in carried.of_kind(FileFailed)} <= {"server.replacing"}
    settings = load_settings(site.config).settings
    problems = open_survey(settings, site.config).group_problems()
    assert {(it.problem.code, it.files) for it in problems} == (
        {("server.replacing", len(unproven))} if unproven else set()
    )


def test_changed_files_are_replaced(site):
    carried = site.carry()

    check_carried(site, carried)
    assert len(carried.of_kind(FileVerified)) == len(NAMES)
    assert not noted(site)
    assert not aside(site)
    check_idle(site)
