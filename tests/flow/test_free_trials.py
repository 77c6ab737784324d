"""Freeing space where everything may be wrong: nothing that is nowhere else is ever deleted."""

import os
import sys

import pytest

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.demo.middleware import Fault, Reply
from tests.builders import a_file
from tests.trials.free import NOTHING, carry_out
from tests.trials.free_site import (
    LONG_AGO_NS,
    OWNER,
    an_entry,
    open_free_site,
    wait_until_settled,
)

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="macOS does not tell of writers")
ASKED = r"dataset_file/\d+/verify/"


def test_no_deletion_is_unsafe_and_what_is_safe_goes(tmp_path):
    table = carry_out(tmp_path / "site", 200, seed=1)

    assert table.wrongs == []
    assert table.deleted[NOTHING] == table.trials[NOTHING] > 0
    assert table.unsafe.total() == 0


@pytest.fixture
def site(tmp_path):
    with open_free_site(tmp_path / "site") as opened:
        yield opened


def add(site, *names):
    """Let these files be here and on the server; return where the server has their bytes."""
    dataset = site.add_dataset("Scan")
    kept = {}
    for name in names:
        path = a_file(site.data / OWNER / "Scan" / name, 1000)
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
        kept[name] = site.keep(dataset, "", name, path.read_bytes())
        site.remember([an_entry(f"{OWNER}/Scan/{name}", path.read_bytes(), kept[name])])
    wait_until_settled()
    return kept


def free(site, *, delete=True):
    fates = site.free(site.data, delete=delete)
    return {
        os.fsdecode(fate.key).rpartition("/")[2]: (
            "freed" if isinstance(fate, DeletedFile) else fate.problem.code
        )
        for fate in fates
        if isinstance(fate, DeletedFile | KeptFile)
    }


def count_questions(site):
    return sum(request.path.endswith("/verify/") for request in site.server.requests)


def test_bytes_that_the_server_has_lost_since_it_verified_them_keep_the_file(site):
    kept = add(site, "good", "rotten", "gone")
    kept["rotten"].stored.write_bytes(b"x" * 1000)
    kept["gone"].stored.unlink()

    assert free(site) == {
        "gone": "free.no-replica",
        "good": "freed",
        "rotten": "free.no-replica",
    }
    assert count_questions(site) == 3


def test_to_look_asks_for_no_verification(site):
    kept = add(site, "rotten")
    kept["rotten"].stored.write_bytes(b"x" * 1000)

    assert free(site, delete=False) == {"rotten": "freed"}
    assert count_questions(site) == 0
    assert (site.data / OWNER / "Scan" / "rotten").exists()


def test_what_the_server_does_not_verify_again_is_kept_after_a_while(site):
    kept = add(site, "good", "held")
    question = f"dataset_file/{kept['held'].datafile}/verify/"
    site.server.faults.add(Fault(action=Reply(200), path=question, count=None))

    assert free(site) == {"good": "freed", "held": "free.not-verified-again"}


def test_where_the_server_refuses_to_verify_its_reason_stands_there(site):
    add(site, "a")
    site.server.faults.add(Fault(action=Reply(404), path=ASKED, count=None))

    assert free(site) == {"a": "server.not-found"}


def test_a_replica_that_has_moved_counts_when_the_server_has_verified_it_there(site):
    kept = add(site, "moved", "claimed")
    number, folder = site.other_box
    for name, content in (("moved", b""), ("claimed", b"other")):
        place = folder / kept[name].remote
        place.parent.mkdir(parents=True, exist_ok=True)
        kept[name].stored.rename(place)
        if content:
            place.write_bytes(content)
        site.change("replica", kept[name].replica, box=number)

    assert free(site) == {"claimed": "free.no-replica", "moved": "freed"}


def test_a_replica_whose_path_leads_out_of_its_box_counts_for_nothing(site):
    kept = add(site, "stray")
    outside = site.server.directory / "stray"
    kept["stray"].stored.rename(outside)
    site.change("replica", kept["stray"].replica, uri="../stray")

    assert free(site) == {"stray": "free.no-replica"}
