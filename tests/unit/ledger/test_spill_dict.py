"""Values in memory or in a file behave alike; only the memory used differs."""

import random
import tracemalloc

import pytest

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileRecord
from mydata_like.ledger.spill_dict import SpillStore
from tests.unit.engine.files import as_registered

ODD = ["it's", "µ\N{MICROSCOPE}", "lone \ud800", "nul \0", "", "a/b"]


@pytest.fixture(params=[0, 3, 1000], ids="held {}".format)
def store(request):
    store = SpillStore(request.param)
    yield store
    store.close()


def a_file(number):
    file = LocalFile(b"/d/x/%d" % number, b"x/%d" % number, b"", b"%d" % number, 2**62, -1, 1, 2)
    wanted = FileRecord(file, Dataset(DatasetId(1), "x"), f"x-1/{number}")
    return as_registered(wanted, f"{number:032x}")


def test_what_comes_in_comes_out_as_it_was(store):
    keys = [(directory, name) for directory in ODD for name in ODD]
    values = {key: a_file(number) for number, key in enumerate(keys)}

    mapping = store.open_mapping()
    mapping.update(values)

    assert dict(mapping) == values
    assert sorted(mapping) == sorted(values)
    assert sorted(map(repr, mapping.values())) == sorted(map(repr, values.values()))
    assert mapping.get(("", "nowhere")) is None


def test_it_does_what_a_plain_mapping_does(store):
    chance, plain, mapping = random.Random(1), {}, store.open_mapping()
    for number in range(2000):
        key = ("", str(chance.randrange(20)))
        deed = chance.randrange(100)
        if deed == 0:
            plain.clear()
            mapping.clear()
        elif deed < 40:
            assert mapping.pop(key, None) == plain.pop(key, None)
        else:
            plain[key] = mapping[key] = number
        assert (len(mapping), bool(mapping), mapping.get(key)) == (
            len(plain),
            bool(plain),
            plain.get(key),
        )
    assert dict(mapping) == plain


def test_mappings_are_independent_of_each_other(store):
    one, other = store.open_mapping(), store.open_mapping()
    for number in range(10):
        one["", str(number)] = number
        other["", str(number)] = -number
    one.clear()

    assert not one
    assert sorted(other.values()) == list(range(-9, 1))
    with pytest.raises(KeyError):
        del one["", "1"]


def test_more_than_a_page_is_listed_once_each(store):
    mapping = store.open_mapping()
    mapping.update({("sub", str(number)): number for number in range(3500)})

    assert sorted(mapping.values()) == list(range(3500))


def test_memory_is_released_when_a_mapping_is_deleted():
    store = SpillStore(10)
    mapping = store.open_mapping()
    mapping.update({("", str(number)): number for number in range(10)})
    assert store.free == 0

    del mapping
    mapping = store.open_mapping()
    assert store.free == 10
    mapping["", "x"] = 1
    del mapping["", "x"]
    assert store.free == 10


def test_very_many_take_no_more_memory_than_a_few():
    store = SpillStore(100)
    tracemalloc.start()
    try:
        mappings = [store.open_mapping() for _ in range(20)]
        for number in range(3000):
            mappings[number % 20]["", str(number)] = a_file(number)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sum(map(len, mappings)) == 3000
    assert kept < 700_000
    store.close()
