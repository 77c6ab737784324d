"""Runs that share one data directory: real processes at once, which do not talk to one another."""

from collections import Counter

import pytest

from tests.embedded import Api
from tests.invariants import check_complete, check_sums
from tests.site import finish, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

LAYOUT = "data.layout=Experiment / Dataset"
EXPERIMENTS, DATASETS, FILES = 12, 3, 2
EVERYTHING = EXPERIMENTS * DATASETS * FILES


@pytest.fixture
def site(tmp_path):
    for experiment in range(EXPERIMENTS):
        for dataset in range(DATASETS):
            name = f"Exp {experiment}/Scan {experiment}.{dataset}"
            folder = tmp_path / "site" / "data" / name
            folder.mkdir(parents=True)
            for number in range(FILES):
                (folder / f"{number}.dat").write_text(f"{folder.name} {number}")
    with open_site(tmp_path / "site") as site:
        yield site


def run_shards(site, total):
    """Start all shards at once; return how they ended."""
    processes = [
        site.start("run", "--events", "--shard", f"{number}/{total}", settings=[LAYOUT])
        for number in range(1, total + 1)
    ]
    return [finish(process) for process in processes]


def sum_up(shards, name):
    return sum(ended.sums[name] for ended in shards)


def test_shards_at_once_miss_nothing_and_make_nothing_twice(site):
    first = run_shards(site, 4)

    assert [ended.code for ended in first] == [0] * 4, first
    assert [ended.sums["shard"] for ended in first] == ["1/4", "2/4", "3/4", "4/4"]
    assert sum_up(first, "found") == sum_up(first, "sent") == EVERYTHING
    for ended in first:
        check_sums(ended)
    assert not site.find_wrongs()
    # No two of them may make the same experiment: whether they do is a matter of moments.
    titles = [{found["title"] for found in ended.events("folder_found")} for ended in first]
    assert all(titles)
    assert Counter(title for shard in titles for title in shard).total() == EXPERIMENTS
    shown = Api(site.server).get("experiment/?format=json&limit=0").json()["objects"]
    assert Counter(one["title"] for one in shown) == {f"Exp {n}": 1 for n in range(EXPERIMENTS)}

    # Split in another way, all of it is asked for again, and nothing is sent.
    asked = len(site.server.requests)
    second = run_shards(site, 3)

    assert sum_up(second, "verified") == EVERYTHING
    assert (sum_up(second, "sent"), sum_up(second, "bytes")) == (0, 0)
    assert not [change for change in site.changes(asked) if "/mydata_uploader/" not in change]

    told = site.command("where", "Exp 7", settings=[LAYOUT]).output
    assert told.count("safe on the server") == DATASETS * FILES
    assert site.command("status", settings=[LAYOUT]).output.count("Shard") == 7
    whole = site.run(LAYOUT)
    check_complete(site, whole)
    assert whole.sums["sent"] == 0
