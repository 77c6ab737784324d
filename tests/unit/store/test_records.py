"""Records of a dataset, in memory or in a file: nobody can tell which but by the memory."""

import gc
import tracemalloc

import pytest

from mydata_like.core.model import Datafile, DatafileId, DatasetId, Replica
from mydata_like.store.records import HELD, RecordsFile, shelve

REPLICA = Replica("d-1/x", "box", True, "2024-05-01T10:00:00")


def a_record(number, directory="sub", name=None, replicas=(REPLICA,)):
    name = name or f"file-{number}"
    return Datafile(
        DatafileId(number), DatasetId(1), directory, name, 2**62, "0" * 32, "2024-05-01", replicas
    )


def test_records_in_a_file_are_as_they_were():
    odd = ["it's", "µ\N{MICROSCOPE}", "lone \ud800", "nul \0", ""]
    records = [
        *(a_record(number, name=name) for number, name in enumerate(odd)),
        a_record(10, replicas=()),
        a_record(11, replicas=(REPLICA, REPLICA._replace(verified=False, verified_at=None))),
    ]

    found = RecordsFile(records)

    assert dict(found) == {(record.directory, record.name): record for record in records}
    assert len(found) == len(records)
    assert found.get(("sub", "nowhere")) is None
    assert ("", "it's") not in found


def test_a_record_without_a_directory_lies_at_the_top():
    record = a_record(1, directory=None)

    assert dict(RecordsFile([record])) == {("", "file-1"): record}


def test_of_two_records_of_one_name_the_later_counts():
    first, second = a_record(1, name="x"), a_record(2, name="x")

    for found in (shelve([first, second]), RecordsFile([first, second])):
        assert dict(found) == {("sub", "x"): second}


@pytest.mark.parametrize("number", [0, 1, HELD - 1, HELD, HELD + 1])
def test_any_number_of_records_is_found(number):
    found = shelve(a_record(id) for id in range(number))

    assert len(found) == len(list(found)) == number
    assert isinstance(found, dict) == (number < HELD)
    for id in {*range(0, number, 1000), max(number - 1, 0)} if number else ():
        assert found["sub", f"file-{id}"].id == id


def test_many_records_take_no_more_memory_than_a_few():
    tracemalloc.start()
    try:
        found = shelve(a_record(number) for number in range(2 * HELD))
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(found) == 2 * HELD
    assert kept < 1_000_000
