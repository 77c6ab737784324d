"""Runs that end early: what exists only here is known, from the moment it was found."""

import json
import os
import subprocess

import pytest

from mydata_like.app.ledger_status import look_at_state
from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.errors import UploaderError
from mydata_like.core.events import FolderFailed, Notice
from mydata_like.core.extra_sources import Destination, SourceRequest
from mydata_like.core.queries import FileRow, Table, View
from mydata_like.demo.middleware import Fault, Hang, Reset
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.summaries import LedgerSummary
from tests.invariants import check_carried
from tests.site import a_site, finish_reading, kill_group, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

AWAY = Fault(action=Reset(), count=None)
ARCHIVES = 'archive.rules=["* below 100 kB from 3 files"]'
OLD = 1_600_000_000


site = a_site(tiny_files=5, large=100_000)


def write(path, data=b"data"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (OLD, OLD))
    return path


def add_files(site, count, folder="ann/New day"):
    return {write(site.data / folder / f"{number}.tif", b"x" * 500) for number in range(count)}


def find_risk(site):
    """Return what the overview counts, and the files that the list of problems names."""
    settings = load_settings(site.config).settings
    at_risk = count_risk(site)
    places = find_places(site.config)
    root = os.fsencode(site.data)
    view = View(table=Table.PROBLEMS, states=frozenset({"found", "waiting", "failed"}))
    with RowQuery.open(ledger_file(settings, places, root), root, view) as listing:
        rows = [row for row in listing.first(100_000) if isinstance(row, FileRow)]
    named = {site.data / os.fsdecode(row.key) for row in rows}
    assert (at_risk.files, at_risk.bytes) == (len(rows), sum(it.size for it in rows))
    return named


def count_risk(site):
    return look_at_state(load_settings(site.config).settings, site.config).at_risk


def find_folder(site, path):
    settings = load_settings(site.config).settings
    root = os.fsencode(site.data)
    survey = LedgerSummary(ledger_file(settings, find_places(site.config), root), root)
    owners = survey.list_folders()
    titles = [it for o in owners for it in survey.list_folders(o.owner, o.group)]
    datasets = [it for t in titles for it in survey.list_folders(t.owner, t.group, t.title)]
    return next(it for it in datasets if it.path == path)


def everything(site):
    return set(site.place.expected_files().values())


def carry_in_vain(site, sources=()):
    """Run while the server is away."""
    site.server.faults.add(AWAY)
    with pytest.raises(UploaderError):
        site.carry(sources=sources)
    site.server.faults.clear()


def wait_found(site, process, count):
    """Wait until a run has recorded so many files that are at risk."""
    while count_risk(site).files < count:
        assert process.poll() is None


def cut_off(site, event, *settings, words=(), found=1):
    """Kill a run, with all its processes, after an event of it and when so many are at risk."""
    process = site.start("run", "--events", *words, settings=settings)
    wait_for(process, event)
    wait_found(site, process, found)
    kill_group(process)
    process.communicate()


def test_of_a_killed_run_exactly_what_is_not_verified_is_at_risk(site):
    check_carried(site, site.carry())
    assert find_risk(site) == set()
    new = add_files(site, 40)
    site.server.hold_verification()
    cut_off(site, "file_registered", found=40)

    assert find_risk(site) == new
    folder = find_folder(site, b"ann/New day")
    assert (folder.found, folder.verified, folder.open) == (40, 0, 40)
    (cut, _) = look_at_state(load_settings(site.config).settings, site.config).runs
    assert cut.finished is None

    site.server.release_verification()
    check_carried(site, site.carry())
    assert find_risk(site) == set()


def test_a_kill_between_two_registrations_leaves_the_others_at_risk(site):
    hang = Fault(action=Hang(), method="PATCH", path="dataset_file", count=None, skip=1)
    site.server.faults.add(hang)
    one_by_one = "advanced.register_batch=5", "advanced.register_requests=1"
    cut_off(site, "file_verified", *one_by_one, found=len(everything(site)) - 5)
    verified = {it.filename for it in site.server.datafiles() if it.verified}

    assert 0 < len(verified) <= 5
    assert find_risk(site) >= {path for path in everything(site) if path.name not in verified}
    assert find_risk(site) < everything(site)


def test_a_first_run_that_is_stopped_leaves_everything_at_risk(site):
    site.server.hold_verification()
    process = site.start("run", "--events", stdin=subprocess.PIPE)
    wait_for(process, "file_registered")
    wait_found(site, process, len(everything(site)))
    process.stdin.write('{"command": "stop", "now": true}\n')
    process.stdin.flush()
    ended = finish_reading(process)
    told = json.loads(site.command("status", "--json").output)

    assert ended.problem == "run.interrupted"
    assert find_risk(site) == everything(site)
    assert told["at_risk"]["files"] == len(everything(site))
    assert told["runs"][0]["problem"]["code"] == "run.interrupted"


def test_without_a_server_what_is_there_is_found(site):
    carry_in_vain(site)

    assert find_risk(site) == everything(site)
    folder = find_folder(site, b"bob/Long run")
    assert (folder.found, folder.verified) == (folder.open, 0) != (0, 0)

    check_carried(site, site.carry())
    assert find_risk(site) == set()


def test_new_files_in_a_folder_that_was_safe_are_open_without_a_server(site):
    check_carried(site, site.carry())
    new = {write(site.data / "bob" / "Long run" / "new.csv")}
    before = find_folder(site, b"bob/Long run")
    carry_in_vain(site)

    after = find_folder(site, b"bob/Long run")
    assert find_risk(site) == new
    assert (after.found, after.verified, after.open) == (before.found + 1, before.verified, 1)


def test_what_lies_beyond_the_reach_of_a_held_up_run_is_found(site):
    check_carried(site, site.carry())
    new = add_files(site, 6000, "ann/Many")
    site.server.faults.add(Fault(action=Hang(), path="/dataset/", count=None))
    process = site.start("run", "--events")
    wait_for(process, "files_seen")
    wait_found(site, process, len(new))
    kill_group(process)
    process.communicate()

    assert find_risk(site) == new


def test_files_of_an_archive_are_at_risk_until_it_is_verified(site):
    site.server.hold_verification()
    cut_off(site, "file_registered", ARCHIVES, found=len(everything(site)))
    assert find_risk(site) == everything(site)

    site.server.release_verification()
    carried = site.carry(ARCHIVES)
    assert carried.sums.verified == len(everything(site))
    assert find_risk(site) == set()


def test_what_is_deleted_here_is_forgotten_by_a_complete_run(site):
    gone, *others = sorted(add_files(site, 3))
    site.server.hold_verification()
    carry_in_vain(site)
    gone.unlink()
    carry_in_vain(site)
    assert gone in find_risk(site)

    site.carry("advanced.verify_patience=0.5")
    assert find_risk(site) == everything(site) >= set(others)


def test_a_file_that_the_server_has_lost_is_at_risk_again(site):
    check_carried(site, site.carry())
    lost = next(it for it in site.server.datafiles() if it.filename == "part_0.csv")
    site.server.site.store.change(f"DELETE FROM datafile WHERE id = {lost.id}")
    site.server.hold_verification()
    cut_off(site, "file_registered")

    assert {path.name for path in find_risk(site)} == {"part_0.csv"}


@pytest.fixture
def dropped(tmp_path):
    for number in range(5):
        write(tmp_path / "usb" / "Day 1" / f"frame {number}.tif", b"frame %d" % number)
    return tmp_path / "usb" / "Day 1"


def test_a_source_that_was_cut_off_is_carried_on_by_the_next_run(site, dropped):
    check_carried(site, site.carry())
    site.server.hold_verification()
    cut_off(
        site, "file_registered", words=("--source", str(dropped), "--as", "Mice/Day 1"), found=5
    )
    assert find_risk(site) == set(dropped.iterdir())

    site.server.release_verification()
    carried = site.carry()

    assert carried.sums.verified == len(everything(site)) + 5
    assert find_risk(site) == set()
    assert site.carry().sums.found == len(everything(site))


def test_a_source_is_remembered_though_the_server_is_away(site, dropped):
    carry_in_vain(site, [SourceRequest(os.fsencode(dropped), Destination("", "Mice", "1"))])
    assert find_risk(site) == set(dropped.iterdir())

    assert site.carry().sums.verified == len(everything(site)) + 5
    assert find_risk(site) == set()


def test_a_source_that_is_added_while_the_server_is_away_is_remembered(site, dropped):
    site.server.faults.add(Fault(action=Hang(), count=None))
    process = site.start("watch", "--events", "--attended", stdin=subprocess.PIPE)
    wait_for(process, "run_scheduled")
    order = {"command": "add_source", "path": str(dropped), "as": ["Mice", "Day 1"], "id": 1}
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    while not find_sources(site):
        assert process.poll() is None
    kill_group(process)
    process.communicate()
    site.server.faults.clear()

    assert site.carry().sums.verified == len(everything(site)) + 5


def find_sources(site):
    told = site.command("sources", "--json")
    return json.loads(told.output)["sources"] if told.code == 0 else []


def test_a_source_that_is_gone_is_reported_and_stays_at_risk_until_it_is_removed(site, dropped):
    site.server.hold_verification()
    cut_off(
        site, "file_registered", words=("--source", str(dropped), "--as", "Mice/Day 1"), found=5
    )
    site.server.release_verification()
    away = dropped.rename(dropped.with_name("away"))
    files = {dropped / path.name for path in away.iterdir()}

    carried = site.carry()
    again = site.carry()

    assert (carried.sums.problem, again.sums.problem) == (None, None)
    assert [event.problem.code for event in again.of_kind(FolderFailed)] == ["source.gone"]
    assert find_risk(site) == files
    (told,) = find_sources(site)
    assert (told["path"], told["at_risk"]["files"]) == (dropped.as_posix(), 5)

    assert site.command("sources", "--remove", str(dropped)).code == 0
    assert find_sources(site) == []
    assert find_risk(site) == set()
    assert site.carry().of_kind(FolderFailed) == []


def test_a_source_is_not_removed_while_a_run_is_at_work(site, dropped):
    site.server.hold_verification()
    process = site.start("run", "--events", "--source", str(dropped))
    wait_for(process, "file_registered")
    refused = site.command("sources", "--remove", str(dropped))
    kill_group(process)
    process.communicate()

    assert refused.code == 3
    assert "in progress" in refused.complaints
    assert len(find_sources(site)) == 1


def test_a_data_directory_inside_another_one_is_noticed_by_runs_over_both(site):
    def notices(*settings):
        found = site.carry(*settings).of_kind(Notice)
        return [it.problem.message for it in found if it.problem.code == "data.nested"]

    inner, outer = site.data / "ann", site.data
    add_files(site, 1)
    assert notices() == []
    settings = f"data.directory={inner}", "data.layout=Dataset"
    both = "The data directories {} and {} contain the same files."
    assert notices(*settings) == [both.format(inner, outer)]
    assert notices() == [both.format(outer, inner)]
    beside = site.data.with_name("data of others")
    write(beside / "ann/Scan/a.tif")
    assert notices(f"data.directory={beside}") == []


def test_a_dataset_folder_that_was_renamed_is_noticed_once(site):
    def notices():
        found = site.carry().of_kind(Notice)
        return [it.problem.message for it in found if it.problem.code == "folder.renamed"]

    add_files(site, 3, "ann/Day 1")
    add_files(site, 3, "ann/Day 2/deep")
    assert notices() == []
    add_files(site, 3, "ann/Day 3")  # the same names, sizes and times, but other files
    (site.data / "ann/Day 2").rename(site.data / "ann/Second day")

    again = "its files are sent again, as another dataset."
    assert notices() == [f"ann/Second day was ann/Day 2 before: {again}"]
    assert notices() == []
