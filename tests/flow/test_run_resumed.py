"""Runs that end while batches are sent: what is whole on the host is not sent again."""

import os
import random
from subprocess import Popen

import pytest

from mydata_like.core.events import FileStaged, TransferProgressed
from tests.invariants import check_carried, check_idle
from tests.site import kill_group, open_site, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

FILES, SIZE = 30, 60_000  # one batch
SLOW = ("transfer.channels=1", "limits.bandwidth=0.3")


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site" / "data" / "alice" / "Tomogram 1"
    folder.mkdir(parents=True)
    _write(folder, 1_600_000_000)
    with open_site(tmp_path / "site") as site:
        yield site


def _write(folder, modified):
    rng = random.Random(modified)
    for number in range(FILES):
        path = folder / f"slice '{number}'.tif"
        path.write_bytes(rng.randbytes(SIZE))
        os.utime(path, (modified, modified))


def _cut_off(site, sent, end=kill_group, settings=SLOW):
    """End a run when this many bytes of its batch are sent; return the files that are whole."""
    process = site.start("run", "--events", settings=settings)
    while wait_for(process, "transfer_progressed")[-1]["bytes"] < sent:
        pass
    end(process)
    process.communicate()
    site.sshd.await_sessions()
    return _find_whole(site)


def _find_whole(site):
    local = {path.read_bytes() for path in site.data.rglob("*.tif")}
    there = [path for path in site.server.box_location.rglob("*") if path.is_file()]
    return [path for path in there if path.read_bytes() in local]


def _count_omitted(carried):
    last = {event.transfer: event.omitted for event in carried.of_kind(TransferProgressed)}
    return sum(last.values())


@pytest.mark.parametrize("end", [kill_group, Popen.terminate], ids=["killed", "stopped"])
def test_a_batch_is_continued_with_the_files_that_are_missing(site, end):
    whole = _cut_off(site, 600_000, end)
    assert 0 < len(whole) < FILES

    carried = site.carry()

    check_carried(site, carried)
    assert carried.sums.omitted == len(whole) * SIZE
    assert _count_omitted(carried) == len(whole) * SIZE
    assert len(carried.of_kind(FileStaged)) == FILES
    check_idle(site)


def test_a_file_whose_bytes_on_the_host_are_wrong_is_sent_again(site):
    first, *others = _cut_off(site, 600_000)
    content = bytearray(first.read_bytes())
    content[SIZE // 2] ^= 1
    first.write_bytes(content)

    carried = site.carry()

    check_carried(site, carried)
    assert carried.sums.omitted == len(others) * SIZE


def test_a_file_that_has_changed_since_is_sent_again(site):
    first, *others = _cut_off(site, 600_000)
    (changed,) = [path for path in site.data.rglob("*.tif") if path.name == first.name]
    changed.write_bytes(b"other bytes" * (SIZE // 11))

    carried = site.carry()

    check_carried(site, carried)
    assert carried.sums.omitted == len(others) * SIZE


def test_a_run_that_is_killed_twice_sends_no_file_twice(site):
    whole = _cut_off(site, 600_000)
    more = _cut_off(site, 1_200_000)
    assert len(whole) < len(more) < FILES

    carried = site.carry()

    check_carried(site, carried)
    assert carried.sums.omitted == len(more) * SIZE


def test_new_content_of_verified_files_is_continued_too(site):
    check_carried(site, site.carry())
    _write(site.data / "alice" / "Tomogram 1", 1_700_000_000)
    whole = _cut_off(site, 600_000, settings=(*SLOW, "data.brake=0"))
    assert 0 < len(whole) < FILES

    carried = site.carry("data.brake=0")

    check_carried(site, carried)
    assert carried.sums.omitted == len(whole) * SIZE
    assert carried.sums.replaced == FILES


def test_after_a_lost_line_the_same_run_continues_the_batch(site):
    lost = []

    def lose(event):
        if isinstance(event, TransferProgressed) and event.bytes > 600_000 and not lost:
            lost.append(event)
            site.sshd.kill_sessions()

    carried = site.carry(*SLOW, watch=lose)

    check_carried(site, carried)
    assert _count_omitted(carried) >= 5 * SIZE  # in the sums, they were sent in this run


def test_without_an_interruption_nothing_is_read_on_the_host(site):
    carried = site.carry()

    check_carried(site, carried)
    assert carried.sums.omitted == 0
