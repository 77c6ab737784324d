"""What waits by dataset: one worker at a time has a dataset, and those put off wait."""

from dataclasses import replace
from math import inf

from mydata_like.catalogues.mytardis.dataset_writers import CROWD, DatasetQueues
from mydata_like.core.model import Dataset, DatasetId
from tests.unit.engine.files import DATASET, a_staged

OTHER = Dataset(DatasetId(8), "Set 2")


def staged(name, dataset=DATASET):
    item = a_staged(name)
    return replace(item, dataset=dataset)


def test_a_dataset_that_was_taken_is_given_to_no_other_worker():
    waiting = DatasetQueues()
    waiting.add([staged("a"), staged("b"), staged("c", OTHER)])

    taken = [waiting.take(0.0) for _ in range(3)]
    waiting.release(DATASET.id)

    assert taken == [DATASET.id, OTHER.id, None]
    assert waiting.take(0.0) == DATASET.id


def test_files_are_given_in_their_order_and_those_put_back_first():
    waiting = DatasetQueues()
    first, second, third = staged("a"), staged("b"), staged("c")
    waiting.add([first, second, third])

    taken = waiting.take_files(DATASET.id, 2)
    waiting.put_back(DATASET.id, taken)

    assert taken == [first, second]
    assert waiting.take_files(DATASET.id, 9) == [first, second, third]
    assert waiting.take_files(DATASET.id, 9) == []


def test_what_was_put_off_is_due_in_its_time():
    waiting = DatasetQueues()
    waiting.add([staged("a")])
    waiting.postpone(waiting.take(0.0), 5.0)
    waiting.release(DATASET.id)

    early, due, late = waiting.take(4.9), waiting.find_due(), waiting.take(5.0)

    assert (early, due, late) == (None, 5.0, DATASET.id)
    assert waiting.find_due() == inf


def test_it_is_crowded_until_enough_was_taken():
    waiting = DatasetQueues()
    waiting.add([staged("a")] * CROWD)

    crowded = waiting.crowded
    waiting.take_files(DATASET.id, 1)

    assert (crowded, waiting.crowded) == (True, False)
