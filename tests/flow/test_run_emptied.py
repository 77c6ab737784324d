"""Data directories of which nothing is left: an empty mount point is not an empty folder."""

import os
import shutil
from pathlib import Path

import pytest

from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.invariants import check_carried
from tests.mounts import MOUNTS, needs_mounts
from tests.site import a_site, make_data
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


site = a_site(tiny_files=5, large=100_000)


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path)


def read_outcomes(site) -> list[bytes]:
    """Return the paths of what the ledger knows not to be well."""
    root = str(site.data).encode()
    file = next(site.state.glob("ledger-*.db"))
    ledger = SqliteLedger.open_to_read(file, root, SystemClock())
    assert ledger is not None
    with ledger:
        return [path for path, checksum in ledger.iter_known() if not checksum]


def test_a_data_directory_in_which_nothing_is_left_is_not_available(site, tmp_path):
    signal = tmp_path / "signal.json"
    check_carried(site, site.carry())
    empty(site.data)

    ended = site.run(f"monitor.signal_file={signal}")

    assert (ended.code, ended.problem) == (2, "data.unavailable")
    assert "run --accept-empty" in ended.sums["problem"]["hint"]
    assert not signal.exists()


def test_what_failed_is_not_forgotten_while_the_data_directory_is_away(site):
    path = site.data / "bob" / "Long run" / "part_0.csv"
    for each in site.data.rglob("*"):
        os.utime(each, (1_600_000_000, 1_600_000_000))
    path.touch()
    assert site.carry("filters.settle_seconds=3600").sums.waiting == 1
    before = read_outcomes(site)
    empty(site.data)

    site.carry()

    assert before == [b"bob/Long run/part_0.csv"]
    assert read_outcomes(site) == before


def test_a_first_run_over_an_empty_folder_is_well(site):
    empty(site.data)

    end = site.carry()

    assert (end.code, end.sums.problem, end.sums.found) == (0, None, 0)


def test_a_dry_run_reports_it_as_well(site):
    site.carry()
    empty(site.data)

    assert site.command("scan", "--json").problem == "data.unavailable"


def test_folders_that_were_emptied_on_purpose_are_accepted_until_files_come(site, tmp_path):
    signal = tmp_path / "signal.json"
    site.carry()
    empty(site.data)

    accepted = site.command(
        "run", "--accept-empty", "--json", settings=[f"monitor.signal_file={signal}"]
    )
    later = site.carry()

    assert (accepted.code, accepted.problem) == (0, None)
    assert signal.exists()
    assert later.sums.problem is None

    make_data(site.place.folder, tiny_files=2, large=1000)
    assert site.carry().sums.problem is None
    empty(site.data)
    assert site.carry().sums.problem.code == "data.unavailable"


def test_files_that_were_freed_are_not_missed(site):
    site.carry()

    freed = site.command("free", str(site.data), "--yes", settings=["filters.settle_seconds=0"])
    end = site.carry()

    assert freed.code == 0, freed.complaints
    assert end.sums.found == 0
    assert (end.code, end.sums.problem) == (0, None)


def test_new_files_alone_are_well_where_others_were_deleted(site):
    site.carry()
    empty(site.data)
    make_data(site.place.folder / "new", tiny_files=1, large=10)
    (site.place.folder / "new" / "data" / "alice").rename(site.data / "carol")

    assert site.carry("data.unknown_owners=upload").sums.problem is None


@needs_mounts
def test_a_drive_that_is_away_one_level_down_is_missed_though_others_are_there(site, tmp_path):
    drive = tmp_path / "drive"
    (site.data / "bob").rename(drive)
    (site.data / "bob").mkdir()
    mounted = 'mount -t tmpfs none "$0" && cp -a "$1/." "$0/" && shift && exec "$@"'
    site.wrap = (*MOUNTS, "sh", "-c", mounted, str(site.data / "bob"), str(drive))
    first = site.run()
    site.wrap = ()

    second = site.run()

    assert (first.code, first.problem) == (0, None)
    assert (second.code, second.problem) == (2, "data.unavailable")
    assert f"{site.data}/bob" in second.sums["problem"]["message"]
    assert second.sums["verified"] > 0


def test_what_the_server_left_out_is_never_called_safe(site):
    site.carry()
    site.server.set_settings(site.uuid, {"filters.excludes": "*.csv"})

    ended = site.command("run", "--events")
    skipped = [event["problem"]["code"] for event in ended.events("file_skipped")]
    again = site.command("run")

    assert skipped
    assert set(skipped) == {"skipped.by-server"}
    assert ended.sums["left_behind"] == len(skipped)
    assert "are safe" not in again.output
    assert "left out and are not on the server" in again.output


def test_a_run_that_leaves_all_out_calls_nothing_safe(site):
    ended = site.command("run", settings=['filters.excludes=["*"]'])

    assert ended.code == 0
    assert "are safe on the server" not in ended.output
