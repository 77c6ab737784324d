"""Folders from outside of the data directory: carried once, and carried on with."""

import json
import os
import subprocess

import pytest

from mydata_like.app.settings_service import load_settings
from mydata_like.app.source_service import find_unfinished_sources, remove_source
from mydata_like.core.errors import SourceError
from mydata_like.core.extra_sources import Destination, SourceRequest, source_key
from tests.invariants import check_carried, check_law, check_untouched, find_falsehoods
from tests.site import Picture, finish_reading, kill_group, make_data, open_site, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One site for all: each test carries a folder and a dataset of its own."""
    folder = tmp_path_factory.mktemp("sources")
    make_data(folder / "site", tiny_files=3, large=5_000)
    with open_site(folder / "site") as site:
        check_carried(site, site.carry())
        yield site


@pytest.fixture
def dropped(tmp_path):
    """A folder of six files, with a name of its own."""
    folder = tmp_path / "usb stick" / f"Day of {tmp_path.name}"
    for number in range(5):
        write(folder / f"frame {number}.tif", f"frame {number}")
    write(folder / "raw" / "deep" / "M\u00fcnster.csv", "1,2,3")
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_600_000_000, 1_600_000_000))


def run(site, *folders, destination=None, settings=()):
    offers = [SourceRequest(os.fsencode(folder), destination) for folder in folders]
    return site.carry(*settings, sources=offers)


def find_wrongs(site, folder, dataset):
    """Compare what a folder holds with what the server has of it, byte by byte."""
    expected = {
        (dataset, "/".join(path.relative_to(folder).parts[:-1]), path.name): path
        for path in folder.rglob("*")
        if path.is_file()
    }
    wrongs = site.server.check_invariants(expected | site.place.expected_files())
    return [wrong for wrong in wrongs if "was registered and is no local file" not in wrong]


def unfinished(site):
    found = find_unfinished_sources(load_settings(site.config).settings, site.config)
    return {os.fsdecode(it.path): it.destination for it in found}


def name_of(source):
    """Return the name of a source in the ledger and in the window."""
    return os.fsdecode(source_key(source))


def ask(process, folder, *names):
    command = {"command": "add_source", "path": str(folder), "as": names, "id": 1}
    process.stdin.write(json.dumps(command) + "\n")
    process.stdin.flush()


def test_sources_and_the_data_directory_keep_out_of_each_others_way(site, dropped):
    before = Picture.take(dropped)
    place = Destination("alice", "Mice", dropped.name)
    first = run(site, dropped, destination=place)
    assert (first.sums.found, first.sums.sent) == (6, 6)
    check_untouched(before)

    write(dropped / "raw" / "new.csv", "4,5,6")
    second = run(site, dropped)
    third = site.carry()

    assert (second.sums.found, second.sums.sent, second.sums.verified) == (7, 1, 7)
    assert (third.sums.found, third.sums.sent) == (len(site.place.expected_files()), 0)
    assert find_wrongs(site, dropped, dropped.name) == []
    assert name_of(dropped) not in unfinished(site)


def test_a_file_and_later_its_folder_become_one_dataset(site, dropped):
    alone = run(site, dropped / "frame 0.tif", dropped / "frame 1.tif")
    whole = run(site, dropped)

    assert (alone.code, alone.sums.found, alone.sums.sent) == (0, 2, 2)
    assert (whole.code, whole.sums.found, whole.sums.sent) == (0, 6, 4)
    assert find_wrongs(site, dropped, dropped.name) == []


def test_a_killed_drop_is_offered_again_and_completed(site, dropped):
    for number in range(200):
        write(dropped / "many" / f"{number}.txt", f"number {number}")
    before = Picture.take(dropped)
    words = "--source", str(dropped), "--as", f"Mice/{dropped.name}"
    process = site.start("run", "--events", *words)
    wait_for(process, "transfer_started")
    kill_group(process)
    process.communicate()

    assert find_falsehoods(site) == []
    assert unfinished(site)[name_of(dropped)] == Destination("", "Mice", dropped.name)
    carried = run(site, dropped)
    assert carried.code == 0
    check_law(carried)
    assert find_wrongs(site, dropped, dropped.name) == []
    assert find_falsehoods(site) == []
    assert name_of(dropped) not in unfinished(site)
    check_untouched(before)


def test_a_file_still_being_written_leaves_its_source_unfinished(site, dropped):
    (dropped / "growing.tif").write_bytes(b"so far")
    carried = run(site, dropped, settings=["filters.settle_seconds=3600"])

    assert (carried.code, carried.sums.verified, carried.sums.waiting) == (0, 6, 1)
    assert name_of(dropped) in unfinished(site)

    assert run(site, dropped).sums.verified == 7
    assert name_of(dropped) not in unfinished(site)


def test_a_run_takes_a_source_in_after_its_scan_too(site, dropped):
    write(site.data / "alice" / "later" / f"{dropped.name}.tif", "new")
    site.server.hold_verification()
    process = site.start("run", "--events", stdin=subprocess.PIPE)
    wait_for(process, "file_registered")
    ask(process, dropped, "Mice", dropped.name)
    seen = wait_for(process, "command_done")
    site.server.release_verification()
    ended = finish_reading(process)

    assert seen[-1]["id"] == 1
    assert ended.sums["found"] == len(site.place.expected_files()) + 6
    assert ended.sums["verified"] == ended.sums["found"]
    assert find_wrongs(site, dropped, dropped.name) == []


def test_a_watch_that_rests_starts_a_run_with_the_source_alone(site, dropped):
    process = site.start("watch", "--events", "--attended", stdin=subprocess.PIPE)
    wait_for(process, "run_scheduled")
    ask(process, dropped, "Mice", dropped.name)
    seen = wait_for(process, "run_finished")
    process.stdin.close()
    process.stdin = None
    finish_reading(process)

    assert [event["reason"] for event in seen if event["event"] == "run_started"] == ["source"]
    assert (seen[-1]["found"], seen[-1]["verified"]) == (6, 6)


def test_of_two_folders_for_one_dataset_one_is_refused(site, dropped, tmp_path):
    other = tmp_path / "other"
    write(other / "frame 0.tif", "another frame")
    carried = run(site, dropped, other, destination=Destination("", "Mice", dropped.name))

    # They are checked in parallel: the one that is checked first gets the dataset.
    (refused,) = {name_of(dropped), name_of(other)} & unfinished(site).keys()
    sent, failed = (other, 6) if refused == name_of(dropped) else (dropped, 1)
    assert (carried.code, carried.sums.failed) == (1, failed)
    assert find_wrongs(site, sent, dropped.name) == []
    remove_source(load_settings(site.config).settings, site.config, os.fsencode(refused))


def test_patterns_see_a_source_from_its_own_folder_on(site, dropped):
    carried = run(site, dropped, settings=["filters.excludes=usb stick/,raw/"])

    assert (carried.sums.verified, carried.sums.skipped) == (5, 1)


def test_what_cannot_be_carried_is_refused_before_anything_begins(site):
    asked = len(site.server.requests)
    with pytest.raises(SourceError):
        run(site, site.data / "alice")

    assert len(site.server.requests) == asked
