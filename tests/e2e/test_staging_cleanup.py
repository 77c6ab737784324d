"""What broken transfers left in the staging area goes after a week, on each rung that can do it."""

import hashlib
import json
import os
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from mydata_like.transfer.temporary_files import owner_mark
from tests.invariants import check_complete
from tests.site import kill_group, make_data, open_site, wait_for, yield_processor
from tests.sshd_fixture import needs_sshd, scp_only, sftp_only
from tests.staging import use_folder

pytestmark = [pytest.mark.e2e, needs_sshd]

DAY = 24 * 3600
REPLACE = "data.changed=replace"  # also where a file shrinks
ALONE = "transfer.batch_below=0"  # so that each file has a temporary name
LARGE = 9 * 1024 * 1024  # bytes of a file whose sending can go on


@pytest.fixture(params=["shell", "sftp", "scp", "folder"])
def kind(request):
    return request.param


@pytest.fixture
def site(tmp_path, kind):
    folder = tmp_path / "site"
    make_data(folder, tiny_files=4, large=20_000)
    options = {"sftp": sftp_only(), "scp": scp_only(tmp_path)}.get(kind, ())
    with open_site(folder, options=options) as site:
        if kind == "folder":
            use_folder(site)
        yield site


def folder_of(site):
    """A folder of the staging area into which files were sent."""
    (stored,) = [file for file in site.server.datafiles() if file.filename == "part_3.csv"]
    return stored.path.parent


def leave(folder, name, days, content=b"left"):
    path = folder / name
    path.write_bytes(content)
    when = time.time() - days * DAY
    os.utime(path, (when, when))
    return path


def let_days_pass(site, days):
    """Make the program believe that it sent something so long ago, and removed as well."""
    at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    (journal,) = site.state.glob("staging-folders-*.jsonl")
    lines = map(json.loads, journal.read_text().splitlines())
    journal.write_text("".join(json.dumps(line | {"at": at}) + "\n" for line in lines))
    for file in site.state.glob("staging-folders-*.json"):
        file.unlink()


def let_sessions_end(site):
    """Wait until the staging host has written all that it has received."""
    site.sshd.await_sessions()


def told(ended):
    return re.findall(
        r"(\S+) files? \(.*?\) of interrupted transfers were removed", ended.complaints
    )


def test_what_is_ours_and_old_goes_and_all_else_stays(site, kind):
    site.run(ALONE)
    folder, ours = folder_of(site), owner_mark(site.uuid).decode()
    others = owner_mark("another uploader").decode()
    old = [
        leave(folder, f".mydata-{ours}{'a' * 24}.part", 8),
        leave(folder, f".mydata-{ours}{'b' * 24}.part", 30),
        leave(folder, f".mydata-{ours}{'b' * 24}.new", 30),
    ]
    companions = [leave(folder, f"{old[0].name}{end}", 8) for end in (".at", ".map")]
    kept = [
        leave(folder, f".mydata-{ours}{'c' * 24}.part", 6),
        leave(folder, f".mydata-{ours}{'c' * 24}.new", 6),
        leave(folder, f".mydata-{others}{'d' * 24}.part", 30),
        leave(folder, f".mydata-{others}{'d' * 24}.new", 30),
        leave(folder, ".mydata-of-others.part", 30),
        leave(folder, f".mydata-{ours}{'e' * 24}.part.txt", 30),
    ]
    let_days_pass(site, 8)

    first, second = site.run(ALONE), site.run(ALONE)

    assert all(path.exists() for path in kept)
    gone = kind != "scp"  # which can list nothing
    assert [path.exists() for path in (*old, *companions)] == [not gone] * 5
    assert told(first) == (["3"] if gone else [])
    assert told(second) == []
    assert (first.code, second.code) == (0, 0)


def test_samples_of_interrupted_probes_go(site, kind):
    site.run(ALONE)
    location, name = site.server.box_location, ".mydata-probe-0123456789abcde"
    useless = [leave(location, f"{name}a", 8), leave(location, f"{name}b.part", 8)]
    kept = [leave(location, f"{name}c", 6), leave(location, f"{name}d.raw", 30)]
    kept += [leave(folder_of(site), f"{name}a", 30)]
    for end, days in {"e": 8, "f": 6}.items() if kind == "shell" else ():  # whose sample is a tar
        folder = location / f"{name}{end}"
        folder.mkdir()
        (useless if days > 7 else kept).append(leave(folder, "s", 30))
        os.utime(folder, (when := time.time() - days * DAY, when))
    let_days_pass(site, 8)

    ended = site.run(ALONE)

    assert all(path.exists() for path in kept)
    gone = kind != "scp"  # which can list nothing
    assert [path.exists() for path in useless] == [not gone] * len(useless)
    assert told(ended) == ([str(len(useless))] if gone else [])
    assert ended.code == 0


def test_nothing_is_looked_at_twice_a_day(site, kind):
    site.run(ALONE)
    let_days_pass(site, 8)
    site.run(ALONE)
    late = leave(folder_of(site), f".mydata-{owner_mark(site.uuid).decode()}{'a' * 24}.part", 8)

    assert told(site.run(ALONE)) == []
    assert late.exists()


def test_what_may_go_on_stays_however_old_it_is(site, kind):
    if kind == "scp":
        pytest.skip("scp has no temporary names")
    site.run(ALONE)
    large = folder_of_data(site) / "large.raw"
    large.write_bytes(os.urandom(LARGE))
    os.utime(large, (1_600_000_000, 1_600_000_000))
    process = site.start("run", "--events", settings=(ALONE, "limits.bandwidth=2"))
    wait_for(process, "transfer_progressed")
    kill_group(process)
    with process:
        process.stdout.read()
        process.stderr.read()
    let_sessions_end(site)
    (part,) = folder_of(site).glob(".mydata-*.part")
    leave(folder_of(site), part.name, 30, part.read_bytes() or b"x")
    dead = leave(folder_of(site), f".mydata-{owner_mark(site.uuid).decode()}{'a' * 24}.part", 30)
    let_days_pass(site, 30)

    ended = site.run(ALONE)

    assert told(ended) == ["1"]
    assert not dead.exists()
    check_complete(site, ended)


def change(site, name, content):
    path = folder_of_data(site) / name
    path.write_bytes(content)
    os.utime(path, (1_600_000_000, 1_600_000_000 + len(content)))
    return path


def find_replacements(site):
    return sorted(folder_of(site).glob(".mydata-*.new"))


def kill(process):
    kill_group(process)
    process.communicate()


def test_a_replacement_that_no_run_knows_goes(site, kind):
    if kind == "scp":
        pytest.skip("scp has no temporary names")
    site.run()
    change(site, "part_3.csv", b"newer")
    change(site, "part_2.csv", os.urandom(700_000))
    process = site.start("run", settings=(REPLACE, "limits.bandwidth=0.1"))
    while not find_replacements(site):
        yield_processor()
    kill(process)
    let_sessions_end(site)
    useless = find_replacements(site)
    for path in useless:
        leave(folder_of(site), path.name, 30)
    change(site, "part_3.csv", b"even newer")
    change(site, "part_2.csv", b"small again")
    check_complete(site, site.run(REPLACE))
    assert find_replacements(site) == useless
    for path in useless:  # again: a command on the host may have outlived the kill for a moment
        leave(folder_of(site), path.name, 30)
    let_days_pass(site, 8)

    ended = site.run(REPLACE)

    assert told(ended) == [str(len(useless))]
    assert find_replacements(site) == []
    check_complete(site, ended)


def test_what_a_replacement_keeps_stays_until_its_own_time_has_passed(site, kind):
    if kind == "scp":
        pytest.skip("scp has no temporary names")
    site.run()
    digest = hashlib.md5(change(site, "part_3.csv", b"newer").read_bytes()).hexdigest()
    site.server.hold_verification()
    process = site.start("run", "--json", settings=(REPLACE,))
    while not any(file.md5sum == digest for file in site.server.datafiles()):
        yield_processor()
    kill(process)
    site.server.release_verification()
    (kept,) = folder_of(site).glob(".mydata-old-*")
    let_days_pass(site, 30)

    ended = site.run_events(REPLACE)

    assert "staging.cleaned" not in ended.output
    assert not ended.events("transfer_started")  # the bytes were there
    assert kept.exists()
    check_complete(site, ended)


def folder_of_data(site):
    (path,) = site.data.rglob("part_3.csv")
    return path.parent
