"""A mapping in memory or in a file: they differ only in the memory they take."""

import random
import tracemalloc

import pytest

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileToSend, Registered
from mydata_like.ledger.spill_dict import SpillStore

ODD = ["it's", "µ\N{MICROSCOPE}", "lone \ud800", "nul \0", "", "a/b"]


@pytest.fixture(params=[0, 3, 1000], ids="held {}".format)
def stock(request):
    stock = SpillStore(request.param)
    yield stock
    stock.close()


def a_file(number):
    file = LocalFile(b"/d/x/%d" % number, b"x/%d" % number, b"", b"%d" % number, 2**62, -1, 1, 2)
    wanted = FileToSend(file, Dataset(DatasetId(1), "x"), f"x-1/{number}")
    return Registered(wanted, f"{number:032x}")


def test_what_comes_in_comes_out_as_it_was(stock):
    places = [(directory, name) for directory in ODD for name in ODD]
    things = {place: a_file(number) for number, place in enumerate(places)}

    room = stock.open_room()
    room.update(things)

    assert dict(room) == things
    assert sorted(room) == sorted(things)
    assert list(map(repr, sorted(room.values()))) == list(map(repr, sorted(things.values())))
    assert room.get(("", "nowhere")) is None


def test_it_does_what_a_plain_mapping_does(stock):
    chance, plain, room = random.Random(1), {}, stock.open_room()
    for number in range(2000):
        place = ("", str(chance.randrange(20)))
        deed = chance.randrange(100)
        if deed == 0:
            plain.clear()
            room.clear()
        elif deed < 40:
            assert room.pop(place, None) == plain.pop(place, None)
        else:
            plain[place] = room[place] = number
        assert (len(room), bool(room), room.get(place)) == (
            len(plain),
            bool(plain),
            plain.get(place),
        )
    assert dict(room) == plain


def test_rooms_know_nothing_of_each_other(stock):
    one, other = stock.open_room(), stock.open_room()
    for number in range(10):
        one["", str(number)] = number
        other["", str(number)] = -number
    one.clear()

    assert not one
    assert sorted(other.values()) == list(range(-9, 1))
    with pytest.raises(KeyError):
        del one["", "1"]


def test_more_than_a_page_is_listed_once_each(stock):
    room = stock.open_room()
    room.update({("sub", str(number)): number for number in range(3500)})

    assert sorted(room.values()) == list(range(3500))


def test_memory_is_released_by_ending_workers():
    stock = SpillStore(10)
    room = stock.open_room()
    room.update({("", str(number)): number for number in range(10)})
    assert stock.free == 0

    del room
    room = stock.open_room()
    assert stock.free == 10
    room["", "x"] = 1
    del room["", "x"]
    assert stock.free == 10


def test_very_many_take_no_more_memory_than_a_few():
    stock = SpillStore(100)
    tracemalloc.start()
    try:
        rooms = [stock.open_room() for _ in range(20)]
        for number in range(3000):
            rooms[number % 20]["", str(number)] = a_file(number)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sum(map(len, rooms)) == 3000
    assert kept < 700_000
    stock.close()
