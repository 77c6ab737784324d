"""Verifying: nothing is called safe unless the server says so of these very bytes."""

from dataclasses import replace
from itertools import chain
from random import Random

import pytest

from mydata_like.catalogues.mytardis.register import _registration
from mydata_like.catalogues.mytardis.reverify import AT_THE_END
from mydata_like.catalogues.mytardis.verify import (
    LOOK_AGAIN_AFTER,
    MANY,
    RECORDS_LOST,
    Verification,
    Verify,
)
from mydata_like.core.errors import Cancelled, RejectedError, ServerUnavailableError, TransientError
from mydata_like.core.events import FileFailed, FileVerified, FileWaiting, RunPaused
from mydata_like.core.model import (
    Dataset,
    DatasetId,
    DatasetStats,
    EntryState,
)
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import CancelFlag, WorkQueue
from mydata_like.engine.record import Record
from mydata_like.settings.schema import Advanced
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer
from tests.fakes.source import ListSource
from tests.unit.engine.files import (
    CHECKSUM,
    DATASET,
    a_record,
    a_staged,
    a_wanted,
    as_registered,
    as_staged,
    with_copy,
)


class Bench:
    """A verify stage over a scripted server; `plan` says when the server looks at its files."""

    def __init__(self):
        self.clock = FakeClock()
        self.events = []
        self.server = ScriptedServer()
        self.ledger = MemoryLedger()
        self.cancel = self.clock.cancel()
        gate = Gate(self.clock, self.cancel, self.events.append, Random(1))
        self.settings = Advanced(verify_interval=1.0, verify_patience=60.0)
        how = Verification(self.settings, "staging")
        self.verify = Verify(self.server, self.ledger, self.events.append, gate, how)
        self.record = Record(self.ledger, self.events.extend)

    def register(self, *names):
        self.server.register([_registration(a_staged(name), "staging") for name in names])
        return [as_registered(a_wanted(name), CHECKSUM) for name in names]

    def add_records(self, number):
        """Return so many registered files, of which the server knows."""
        names = list(map(str, range(number)))
        for name in names:
            self.server.add(DATASET.id, a_record(name, verified=False))
        return [as_registered(a_wanted(name), CHECKSUM) for name in names]

    def __call__(self, *items, polls=200):
        """Run the stage and record; a call in the list of items happens when it is polled."""
        source = ListSource([*items, *[None] * polls], self.clock)
        return list(chain.from_iterable(self.record(self.verify(source))))

    def of_kind(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def test_each_record_is_seen_once_however_good_the_numbers_look():
    bench = Bench()
    items = bench.register("a", "b")
    bench.server.verify()

    assert bench(items) == []
    assert len(bench.of_kind(FileVerified)) == 2
    assert bench.server.calls["list_datafiles"] == 1
    key = items[0].file.key
    entry = bench.ledger.find_entries([key])[key]
    (record, _) = bench.server.records.values()
    assert (entry.state, entry.datafile) == (EntryState.VERIFIED, record.id)


def test_numbers_of_other_files_verify_nothing():
    bench = Bench()
    bench.server.fetch_stats = lambda dataset: DatasetStats(2, 2)
    bench.server.verify = lambda *_: None

    bench(bench.register("a", "b"), polls=500)

    assert bench.of_kind(FileVerified) == []
    assert bench.of_kind(FileWaiting)[0].problem.code == "verify.pending"


def test_a_record_that_two_listings_lack_is_made_again():
    bench = Bench()
    kept, lost = bench.register("kept"), [as_registered(a_wanted("lost"), CHECKSUM)]
    bench.server.verify()

    again = bench([*kept, *lost])

    assert again == [as_staged(lost[0], CHECKSUM)]
    assert bench.server.calls["list_datafiles"] == 2
    assert bench.clock.monotonic() >= LOOK_AGAIN_AFTER
    key = lost[0].file.key
    assert bench.ledger.find_entries([key])[key].state is EntryState.STAGED


def test_a_record_that_is_never_kept_fails_with_a_code_of_its_own():
    bench = Bench()
    lost = as_registered(a_wanted("lost"), CHECKSUM)

    rounds = [len(bench([lost])) for _ in range(RECORDS_LOST + 1)]

    assert rounds == [1] * RECORDS_LOST + [0]
    assert [event.problem.code for event in bench.of_kind(FileFailed)] == ["register.lost"]


def test_a_file_that_the_server_placed_and_lost_is_sent_again():
    bench = Bench()
    lost = as_registered(a_wanted("lost"), CHECKSUM, placed_by_server=True)

    assert bench([lost]) == [lost]


def test_a_listing_from_a_cache_makes_nothing_again():
    bench = Bench()
    items = bench.register("a")
    bench.server.verify()
    fresh, seen = bench.server.list_datafiles, []

    def listed(dataset, offset=0):
        seen.append(offset)
        return iter(()) if len(seen) == 1 else fresh(dataset, offset)

    bench.server.list_datafiles = listed

    assert bench(items) == []
    assert len(bench.of_kind(FileVerified)) == 1


def test_a_file_verified_before_its_event_is_listed_once():
    bench = Bench()
    early, late = bench.register("early"), bench.register("late")
    bench.server.verify()

    assert bench(early, None, None, late) == []
    assert len(bench.of_kind(FileVerified)) == 2
    assert bench.server.listed == 2


@pytest.mark.parametrize(
    "changes",
    [{"size": 4}, {"checksum": "f" * 32}],
    ids=["size", "checksum"],
)
def test_a_verified_record_of_other_bytes_is_not_ours(changes):
    bench = Bench()
    bench.server.add(DATASET.id, a_record("a", **changes))

    (again,) = bench([as_registered(a_wanted("a"), CHECKSUM)])

    assert again.round == 1
    assert bench.of_kind(FileVerified) == []


def test_a_verified_copy_elsewhere_does_not_vouch_for_the_bytes_in_our_box():
    bench = Bench()
    bench.server.add(DATASET.id, with_copy(a_record("a", verified=False), uri="Set%201-7/a"))
    bench.server.verify = lambda *_: None

    bench([as_registered(a_wanted("a"), CHECKSUM)], polls=500)

    assert bench.of_kind(FileVerified) == []


def test_bytes_that_the_server_has_moved_are_verified_where_they_are_now():
    bench = Bench()
    bench.server.add(DATASET.id, a_record("a", box="vault"))

    bench([as_registered(a_wanted("a"), CHECKSUM)])

    assert len(bench.of_kind(FileVerified)) == 1


def test_the_last_files_are_looked_at_again_within_moments():
    bench = Bench()

    bench(bench.register("a"), polls=0)

    assert bench.cancel.waits[:2] == pytest.approx([AT_THE_END, AT_THE_END * 1.5])


def test_servers_without_counts_are_asked_for_the_records():
    bench = Bench()
    bench.server.has_stats = False
    items = bench.register("a", "b")
    bench.server.verify()

    bench(items)

    assert len(bench.of_kind(FileVerified)) == 2


def test_what_the_server_forgot_is_asked_for():
    bench = Bench()
    items = bench.register("a")

    bench(items)

    assert len(bench.server.asked) == 1
    assert len(bench.of_kind(FileVerified)) == 1


def test_what_does_not_verify_is_asked_for_once_and_sent_once_more():
    bench = Bench()
    items = bench.register("good", "bad")
    bench.server.bad = {"bad"}
    bench.server.verify()

    (again,) = bench(items)

    assert again.file.name == b"bad"
    assert again.round == 1
    assert again.earlier is not None
    assert len(bench.server.asked) == 1
    assert [event.path[-4:] for event in bench.of_kind(FileVerified)] == [b"good"]


def test_what_does_not_verify_the_second_time_fails_with_advice():
    bench = Bench()
    (item,) = bench.register("bad")
    bench.server.bad = {"bad"}
    bench.server.verify()

    assert bench([replace(item, round=1)]) == []
    assert bench.of_kind(FileFailed)[0].problem.code == "verify.failed"
    assert bench.of_kind(FileVerified) == []


def test_a_look_taken_before_our_bytes_came_says_nothing():
    bench = Bench()
    record = bench.server.add(DATASET.id, a_record("a"))
    stale = as_registered(a_wanted("a", earlier=record), CHECKSUM, record.id, ("look 0",))

    bench([stale])

    assert bench.server.asked == [record.id] * 2
    assert len(bench.of_kind(FileVerified)) == 1


def test_a_look_at_earlier_bytes_that_ends_late_says_nothing_of_the_new_ones():
    bench = Bench()
    record = bench.server.add(DATASET.id, a_record("a"))
    item = as_registered(a_wanted("a", earlier=record), CHECKSUM, record.id, record.looks)
    bench.server.bad = {"a"}
    bench.server.begun = {"a"}  # the first answer is of a look that had begun before

    (again,) = bench([item])

    assert again.file == item.file
    assert bench.of_kind(FileVerified) == []


def repair_with_copy(bench, **changes):
    """Register other bytes of a file that has a second replica, with the earlier bytes."""
    record = bench.server.add(DATASET.id, with_copy(a_record("a"), **changes))
    bench.server.stale.add("cache")
    return as_registered(a_wanted("a", earlier=record), CHECKSUM, record.id, record.looks)


def test_a_copy_of_earlier_bytes_does_not_vouch_for_those_that_replaced_them():
    bench = Bench()
    item = repair_with_copy(bench)
    bench.server.bad = {"a"}

    (again,) = bench([item])

    assert bench.server.asked == [again.earlier.id]
    assert bench.of_kind(FileVerified) == []
    assert again.remote == item.remote


@pytest.mark.parametrize("uri", ["cached/a", "Set%201-7/a"], ids=["other path", "same path"])
def test_bytes_are_verified_where_they_were_put_though_a_copy_has_earlier_ones(uri):
    bench = Bench()

    assert bench([repair_with_copy(bench, uri=uri)]) == []
    assert len(bench.of_kind(FileVerified)) == 1


def test_what_a_copy_lacks_is_not_refused_before_our_own_was_looked_at():
    bench = Bench()
    item = repair_with_copy(bench)
    bench.server.unread.add("staging")

    assert bench([item]) == []
    assert bench.of_kind(FileWaiting)[0].problem.code == "verify.pending"


def change_in(bench, dataset):
    """Register other bytes of a file in a dataset of this number."""
    record = bench.server.add(DatasetId(dataset), a_record("a"))
    wanted = replace(a_wanted("a", earlier=record), dataset=Dataset(DatasetId(dataset), "other"))
    return as_registered(wanted, CHECKSUM, record.id, record.looks)


def test_changed_records_of_many_datasets_take_one_query():
    bench = Bench()
    items = [change_in(bench, number) for number in range(10, 30)]

    assert bench(items) == []

    assert len(bench.of_kind(FileVerified)) == len(items)
    assert sorted(bench.server.asked) == sorted(item.datafile for item in items * 2)
    assert bench.server.calls["fetch_datafiles"] == 3


def test_an_invalid_record_keeps_only_its_own_dataset_waiting():
    bench = Bench()
    items = [change_in(bench, number) for number in range(10, 30)]
    bad, fetch = items[3].datafile, bench.server.fetch_datafiles

    def fetched(ids):
        if bad in ids:
            raise RejectedError("It is invalid.")
        return fetch(ids)

    bench.server.fetch_datafiles = fetched

    assert bench(items) == []
    assert len(bench.of_kind(FileVerified)) == len(items) - 1
    assert bench.of_kind(FileWaiting)[0].problem.code == "verify.pending"


def test_a_record_whose_checksum_is_not_ours_is_not_verified():
    bench = Bench()
    bench.server.has_stats = False
    bench.register("a")
    bench.server.verify()

    again = bench([as_registered(a_wanted("a"), "f" * 32)])

    assert bench.of_kind(FileVerified) == []
    assert len(again) == 1


def test_a_long_pause_is_not_a_silent_server():
    bench = Bench()
    items = bench.register("a")
    away = ServerUnavailableError("The server is away.")
    bench.server.faults["fetch_stats"] = [away] * 9

    assert bench(items) == []
    (paused,) = bench.of_kind(RunPaused)
    assert paused.problem.message == away.message
    assert bench.events[0] == paused
    assert bench.clock.monotonic() > bench.settings.verify_patience
    assert len(bench.server.asked) == 1
    assert len(bench.of_kind(FileVerified)) == 1


def test_what_stays_pending_waits_for_the_next_run():
    bench = Bench()
    items = bench.register("a")
    bench.server.verify = lambda *_: None

    bench(items, polls=500)

    assert bench.of_kind(FileWaiting)[0].problem.code == "verify.pending"
    assert bench.of_kind(FileVerified) == []


def test_it_rests_between_its_looks_when_nothing_more_comes():
    bench = Bench()
    queue = WorkQueue(CancelFlag())
    queue.put(bench.register("a"))
    queue.close()
    bench.server.verify = lambda *_: None

    list(bench.verify(queue))  # would never end if it did not wait: nothing else moves the clock

    assert bench.of_kind(FileWaiting)[0].problem.code == "verify.pending"


def test_one_dataset_that_does_not_verify_holds_no_other_back():
    bench = Bench()
    stuck = bench.register("a")
    other = as_registered(replace(a_wanted("b"), dataset=type(DATASET)(8, "Set 2")), CHECKSUM)
    record = _registration(a_staged("b"), "staging")._replace(dataset=8)
    bench.server.register([record])
    bench.server.verify(lambda record: record.name == "b")

    bench([*stuck, other], polls=3)

    assert next(event.path[-1:] for event in bench.of_kind(FileVerified)) == b"b"


def test_verified_files_are_reported_while_more_keep_coming():
    bench = Bench()
    first, *others = [bench.register(f"f{number}") for number in range(50)]
    bench.server.verify()

    told = []

    class Busy(ListSource):
        def poll(self, timeout):
            bench.clock.move(0.05)
            told.append(len(bench.of_kind(FileVerified)))
            return super().poll(timeout)

    stream = bench.record(bench.verify(Busy([first, *others], bench.clock)))
    list(stream)

    assert len(set(told)) > 10


def test_a_listing_is_left_where_the_server_has_looked_at_nothing_for_long():
    bench = Bench()
    items = bench.add_records(5 * MANY)
    bench.server.verify(lambda record: int(record.name) < MANY)
    bench.server.faults["request_verification"] = [Cancelled()]  # asked for once all was listed

    with pytest.raises(Cancelled):
        bench(items)

    assert len(bench.of_kind(FileVerified)) == MANY
    assert bench.server.listed == (2 * MANY + 1) + 5 * MANY


@pytest.mark.slow
def test_what_is_verified_behind_much_that_is_not_is_found_in_the_end():
    bench = Bench()
    items = bench.add_records(3 * MANY)
    bench.server.verify(lambda record: int(record.name) >= 2 * MANY)
    bench.server.faults["request_verification"] = [RejectedError("no")] * 2 * MANY

    bench(items)

    assert len(bench.of_kind(FileVerified)) == MANY
    assert len(bench.of_kind(FileWaiting)) == 2 * MANY


def test_a_dataset_that_cannot_be_looked_at_holds_no_other_back():
    bench = Bench()
    items = bench.register("a")
    bench.server.faults["fetch_stats"] = [TransientError("Only this one fails.")] * 5
    bench.server.verify()

    bench(items)

    assert len(bench.of_kind(FileVerified)) == 1


def test_a_server_that_will_not_be_asked_is_waited_for():
    bench = Bench()
    items = bench.register("a")
    bench.server.faults["request_verification"] = [RejectedError("No right to ask.")]

    bench(items, polls=500)

    assert bench.of_kind(FileWaiting)[0].problem.code == "verify.pending"
