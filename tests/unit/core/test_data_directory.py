"""One data directory, split among runs."""

import re

import pytest

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.model import DatasetFolder


def a_dataset(title="Exp", owner="", name="Scan"):
    return DatasetFolder(path=name.encode(), name=name, title=title, owner=owner)


@pytest.mark.parametrize(
    "text", ["", "1", "0/4", "5/4", "-1/4", "1/0", "1/4/2", "a/b", " 1/4", "1/٤"]
)
def test_a_shard_that_cannot_be_is_refused(text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Shard.parse(text)


def test_a_shard_is_read_as_it_is_written():
    assert str(Shard.parse("2/4")) == "2/4"
    assert Shard.parse("2/4").place == "shard-2-of-4"


def test_one_of_one_is_the_whole():
    assert Shard.parse("1/1") == WHOLE
    assert (str(WHOLE), WHOLE.place) == ("", "")
    assert WHOLE.has(a_dataset())


@pytest.mark.parametrize("total", [2, 3, 7])
def test_every_dataset_folder_is_of_exactly_one_shard(total):
    shards = [Shard(number, total) for number in range(1, total + 1)]
    folders = [a_dataset(f"Experiment {number}") for number in range(100)]

    assert all(sum(shard.has(folder) for shard in shards) == 1 for folder in folders)
    assert all(any(shard.has(folder) for folder in folders) for shard in shards)


def test_datasets_of_one_experiment_are_of_one_shard():
    shards = [Shard(number, 8) for number in range(1, 9)]
    folders = [a_dataset(title="Exp", owner=owner, name=owner) for owner in ("alice", "bob", "Bob")]
    named_by_the_server = [a_dataset(None, owner, owner) for owner in ("Alice", "alice")]

    for together in (folders, named_by_the_server):
        assert sum(any(map(shard.has, together)) for shard in shards) == 1


@pytest.mark.parametrize(
    ("folder", "number"), [(a_dataset("Röntgen"), 1), (a_dataset(None, "alice"), 4)]
)
def test_all_computers_and_versions_split_alike(folder, number):
    assert Shard(number, 4).has(folder)
