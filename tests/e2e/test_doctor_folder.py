"""The speed test of a mounted folder, by the command itself."""

import json
import os
import re
import signal

import pytest

from mydata_like.transfer.folder.staging_folder import MARKER
from tests.mounts import MOUNTS, SshfsMount, needs_mounts, needs_sshfs
from tests.site import (
    DEADLINE,
    finish_reading,
    kill_group,
    left_behind,
    make_data,
    open_site,
    wait_for,
    yield_processor,
)
from tests.sshd_fixture import needs_sshd
from tests.staging import use_folder

pytestmark = [pytest.mark.e2e, needs_sshd]

OF_SSH = {"cipher", "network", "server disk"}


@pytest.fixture
def site(tmp_path):
    """A site that is approved and writes to the location of its storage box."""
    make_data(tmp_path / "site", tiny_files=40, large=8_000_000)
    with open_site(tmp_path / "site") as site:
        assert site.command("register").code == 0
        use_folder(site)
        yield site


@pytest.fixture
def mounted(site, tmp_path):
    """The location of the storage box, mounted by sshfs."""
    target = tmp_path / "mounted"
    target.mkdir()
    folder = site.server.box_location
    with SshfsMount(site.sshd, site.place.key_file, folder, target) as mount:
        use_folder(site, target)
        yield mount


def left_by_tests(site):
    """Return what a test has written and not removed, here or in the folder."""
    folder = site.place.folder
    return [*folder.rglob(".mydata-like-doctor-*"), *folder.rglob("speed-test-*")]


def figures(record):
    return {(one["stage"], one["what"]): one["median"] for one in record["findings"]["stages"]}


def unmeasured(record):
    """Return why the folder was not measured, if it was not."""
    said = "The mounted folder could not be fully measured: "
    unknown = record["findings"]["unknown"]
    return [text.removeprefix(said) for text in unknown if text.startswith(said)]


def start_until(site, what, *words):
    """Start a test and wait until something but the local disk was measured; return the process."""
    process = site.start("doctor", "--events", *words)
    for line in process.stdout:
        found = json.loads(line)
        if found.get("what") == what and found["stage"] != "source":
            return process
    raise AssertionError(f"{what} was not measured: {process.stderr.read()}")


def test_a_folder_is_measured_as_a_run_writes_to_it(site):
    ended = site.command("doctor", "--quick", "--json")

    assert ended.code == 0, ended.complaints
    found = figures(ended.sums)
    assert found["folder", "large files"] > 0
    assert {stage for stage, _ in found}.isdisjoint(OF_SSH)
    assert ended.sums["findings"]["rung"] == "folder"
    verdict = ended.sums["verdict"]
    assert verdict["workloads"][0]["limit"] in {"source", "hash", "folder"}
    assert all(one["together"] for one in verdict["workloads"])
    assert verdict["advice"] == [], "all settings are at their defaults"
    assert left_by_tests(site) == []


def test_nothing_is_applied_where_nothing_would_be_faster(site):
    ended = site.command("doctor", "--quick", "--apply")

    assert "Nothing was changed: no setting is left that was faster." in ended.output
    assert "ciphers" not in ended.output


def test_another_number_of_channels_is_compared_in_the_folder(site):
    ended = site.command("doctor", "--quick", "--json", "--set", "transfer.channels=1")

    assert ended.code == 0, ended.complaints
    compared = ended.sums["findings"]["compared"]
    assert {one["code"] for one in compared} <= {"channels"}
    late = "Comparison of settings: there was no time left to measure this."
    assert compared or late in ended.sums["findings"]["unknown"]
    assert left_by_tests(site) == []


def test_an_interrupt_leaves_nothing_in_the_folder(site):
    process = start_until(site, "large files", "--quick")
    process.send_signal(signal.SIGINT)

    ended = finish_reading(process)

    assert ended.code == 130
    assert ended.complaints == ""
    assert left_by_tests(site) == []


def test_what_a_killed_test_has_left_is_removed_by_the_next(site):
    process = start_until(site, "large files", "--quick")
    kill_group(process)
    finish_reading(process)
    left = [path for each in left_by_tests(site) for path in each.iterdir()]

    ended = site.command("doctor", "--quick", "--json")

    assert left
    assert ended.code == 0, ended.complaints
    assert left_by_tests(site) == []


def test_a_folder_that_is_not_there_is_said_not_to_be(site):
    folder = site.server.box_location
    folder.rename(folder.with_name("away"))

    ended = site.command("doctor", "--quick", "--json")

    assert ended.code == 0, ended.complaints
    assert unmeasured(ended.sums) == [
        f"The folder {folder} cannot be reached: No such file or directory."
    ]
    assert ended.sums["verdict"]["sentence"].startswith("For large files, the slowest part that")
    assert ended.sums["verdict"]["advice"] == []
    assert {stage for stage, _ in figures(ended.sums)} == {"hash", "source", "API"}


# The arguments are the folder, its marker, the options of the file system, and the command.
_OTHER_FOLDER = """
folder=$0 marker=$1 options=$2
shift 2
mount -t tmpfs -o size=1m none "$folder" && cp "$marker" "$folder" || exit 99
mount -o "remount,$options" "$folder" || exit 98
"$@"
code=$?
ls -A "$folder" >&2
exit $code
"""


@needs_mounts
@pytest.mark.parametrize(
    ("options", "reason"),
    [("size=1m", "The staging area is full."), ("ro,size=1m", "is mounted read-only")],
)
def test_a_folder_without_space_or_mounted_read_only_is_said_to_be(site, tmp_path, options, reason):
    marker = tmp_path / os.fsdecode(MARKER)
    marker.write_bytes((site.server.box_location / marker.name).read_bytes())
    folder = str(site.server.box_location)
    site.wrap = (*MOUNTS, "sh", "-c", _OTHER_FOLDER, folder, str(marker), options)

    ended = site.command("doctor", "--quick", "--json")

    assert ended.code == 0, ended.complaints
    (said,) = unmeasured(ended.sums)
    assert reason in said
    assert ended.complaints.split() == [marker.name], "what is left in the folder"


@needs_sshfs
@pytest.mark.parametrize(
    ("moment", "words"), [("4 connections", ["--quick"]), ("together, large files", [])]
)
def test_a_mount_that_hangs_is_given_up(site, mounted, moment, words):
    process = start_until(site, moment, *words)
    mounted.pause()

    unknown = wait_for(process, "test_finished")[-1]["findings"]["unknown"]
    process.wait(DEADLINE)  # although its workers still wait for the folder
    mounted.resume()
    end_all(process)

    assert process.returncode == 0
    assert any(re.search("The folder .* (does|did) not respond", text) for text in unknown), unknown


@needs_sshfs
@pytest.mark.parametrize("moment", ["rename", "together, large files"])
def test_a_mount_that_hangs_does_not_keep_a_test_from_being_cancelled(site, mounted, moment):
    process = start_until(site, moment)
    mounted.pause()
    process.send_signal(signal.SIGINT)

    process.wait(DEADLINE)
    mounted.resume()
    _, complaints = end_all(process)

    assert process.returncode == 130
    assert complaints == ""


def end_all(process):
    """Wait until the processes have ended that waited for the folder; return all output."""
    output = process.communicate()
    while left_behind(process.pid):
        yield_processor()
    return output
