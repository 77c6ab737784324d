"""Registering: many at once, settled by listing whatever happens, never one name twice."""

from random import Random

import pytest

from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.catalogues.mytardis.register import Register, RegisterOptions, RequestPace
from mydata_like.core.errors import (
    Cancelled,
    RejectedError,
    ServerUnavailableError,
    TransientError,
)
from mydata_like.core.events import FileFailed, FileRegistered
from mydata_like.core.model import EntryState
from mydata_like.engine.gate import Gate
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
)

LIMIT = 300.0  # seconds that a request which writes may last


class Bench:
    """A register stage over a scripted server."""

    def __init__(self, first=25):
        self.clock = FakeClock()
        self.events = []
        self.server = ScriptedServer()
        self.ledger = MemoryLedger()
        gate = Gate(self.clock, self.clock.cancel(), self.events.append, Random(1))
        self.pace = RequestPace(first, 3, self.clock)
        self.writes = WriteTracker(self.ledger, self.clock, LIMIT)
        filing = RegisterOptions("staging", self.pace, self.writes)
        self.register = Register(self.server, self.ledger, self.events.append, gate, filing)

    def __call__(self, *groups):
        source = ListSource(list(groups), self.clock)
        return [item for items in self.register(source) for item in items]

    def names(self):
        return sorted(record.name for record in self.server.records.values())

    def of_kind(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def batch(count):
    return [a_staged(f"f{number:03}") for number in range(count)]


def test_many_files_are_registered_in_one_request():
    bench = Bench()

    known = bench(batch(20))

    assert bench.server.calls["register"] == 1
    assert len(known) == len(bench.server.records) == len(bench.of_kind(FileRegistered)) == 20
    assert (
        bench.ledger.find_entries([known[0].file.key])[known[0].file.key].state
        is EntryState.REGISTERED
    )


def test_files_sent_in_the_meantime_go_into_the_same_request():
    bench = Bench()

    bench(batch(5)[:1], batch(5)[1:3], batch(5)[3:])

    assert bench.server.calls["register"] == 1


def test_requests_grow_while_the_server_is_fast():
    bench = Bench(first=2)

    bench(batch(14))

    assert bench.server.calls["register"] == 2


def test_requests_grow_slowly_while_the_server_might_be_slow():
    clock = FakeClock()
    pace = RequestPace(10, 3, clock)

    with pace.measured(10):
        clock.move(0.3)

    assert pace.size == 20


def test_requests_shrink_when_the_server_is_slow():
    clock = FakeClock()
    pace = RequestPace(100, 3, clock)

    with pace.measured(100):
        clock.move(3.0)

    assert pace.size == 50


def time_requests(pace, clock, seconds_of, requests):
    """Return the sizes of requests that each take `seconds_of` their records."""
    sizes = []
    for _ in range(requests):
        sizes.append(pace.size)
        with pace.measured(pace.size):
            clock.move(seconds_of(sizes[-1]))
    return sizes


def test_requests_stay_large_on_a_server_that_needs_the_same_time_for_any_size():
    clock = FakeClock()
    pace = RequestPace(100, 3, clock)

    assert time_requests(pace, clock, lambda records: 3.0, 5) == [100, 50, 100, 100, 100]


def test_requests_shrink_again_once_a_fast_one_shows_that_the_time_varies():
    clock = FakeClock()
    pace = RequestPace(100, 3, clock)
    time_requests(pace, clock, lambda records: 3.0, 3)

    time_requests(pace, clock, lambda records: 0.4, 1)

    sizes = time_requests(pace, clock, lambda records: records / 25, 5)
    assert sizes == [200, 100, 50, 50, 50]


def test_requests_that_become_faster_go_on_shrinking():
    clock = FakeClock()
    pace = RequestPace(200, 3, clock)

    sizes = time_requests(pace, clock, lambda records: records / 20, 5)

    assert sizes == [200, 100, 50, 50, 50]


def test_requests_that_are_slow_together_become_fewer_before_they_shrink():
    clock = FakeClock()
    pace = RequestPace(25, 3, clock)

    with pace.turn(clock.move), pace.turn(clock.move), pace.measured(25):
        clock.move(3.0)

    assert (pace.parallel, pace.size) == (1, 25)
    with pace.turn(clock.move), pace.measured(25):
        clock.move(0.3)
    assert (pace.parallel, pace.size) == (2, 50)


def test_a_request_waits_for_its_turn():
    clock = FakeClock()
    pace = RequestPace(25, 1, clock)
    waits = []

    with pytest.raises(Cancelled), pace.turn(clock.move), pace.turn(waiting_in_vain(waits)):
        pytest.fail("two requests run at once")

    assert len(waits) == 3
    with pace.turn(clock.move):
        pass


def test_a_request_without_an_answer_does_not_keep_others_waiting_for_long():
    clock = FakeClock()
    pace = RequestPace(25, 1, clock)

    with pace.turn(clock.move):
        begun = clock.monotonic()
        with pace.turn(clock.move):
            assert 29 < clock.monotonic() - begun < 31


def waiting_in_vain(waits):
    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise Cancelled

    return wait


def test_a_server_that_is_slow_whatever_the_size_gets_few_requests():
    bench = Bench()
    register = bench.server.register

    def register_slowly(records):
        bench.clock.move(3.0)
        register(records)

    bench.server.register = register_slowly

    known = bench(batch(241))

    assert len(known) == 241
    assert bench.server.calls["register"] <= 32


def test_a_lost_reply_makes_no_second_record():
    bench = Bench()
    bench.server.late_faults["register"] = [TransientError("The reply was lost.")]

    known = bench(batch(10))

    assert len(known) == len(bench.server.records) == 10
    assert bench.server.calls["register"] == 1


@pytest.mark.parametrize(
    "error",
    [TransientError("Busy."), ServerUnavailableError("Away.")],
    ids=["busy", "away"],
)
def test_a_request_that_did_not_happen_is_repeated(error):
    bench = Bench()
    bench.server.faults["register"] = [error]

    known = bench(batch(10))

    assert len(known) == len(bench.server.records) == 10


def test_one_refused_record_fails_alone():
    bench = Bench()
    bench.server.refused = {"f007"}

    known = bench(batch(20))

    assert len(known) == 19
    (failed,) = bench.of_kind(FileFailed)
    assert failed.path.endswith(b"f007")
    assert len(bench.server.records) == 19


def test_a_record_that_another_client_made_of_the_same_bytes_is_adopted():
    bench = Bench()
    bench.server.add(DATASET.id, a_record("f001"))

    known = bench(batch(3))

    assert len(known) == 3
    assert bench.names() == ["f000", "f001", "f002"]


def test_a_record_that_another_client_made_of_other_bytes_elsewhere_is_left_alone():
    bench = Bench()
    theirs = a_record("f001", checksum="e" * 32)
    theirs = theirs._replace(replicas=(theirs.replicas[0]._replace(uri="theirs/f001"),))
    bench.server.add(DATASET.id, theirs)

    known = bench(batch(3))

    assert len(known) == 2
    assert bench.of_kind(FileFailed)[0].problem.code == "register.conflict"


def test_a_repair_changes_the_record_and_waits_for_a_new_look():
    bench = Bench()
    record = bench.server.add(DATASET.id, a_record("a", checksum="e" * 32))

    (known,) = bench([as_staged(a_wanted("a", earlier=record), CHECKSUM)])

    assert bench.server.records[record.id].checksum == CHECKSUM
    assert (known.datafile, known.looks) == (record.id, ("look 0",))
    key = known.file.key
    assert bench.ledger.find_entries([key])[key].state is EntryState.REPAIRED


def test_a_record_without_a_replica_gets_one():
    bench = Bench()
    record = bench.server.add(DATASET.id, a_record("a")._replace(replicas=()))

    (known,) = bench([as_staged(a_wanted("a", earlier=record), CHECKSUM)])

    assert bench.server.records[record.id].replicas[0].uri == "Set%201-7/a"
    assert known.looks == ()


def test_what_is_registered_already_passes_by():
    bench = Bench()
    waiting = as_registered(a_wanted("w"), CHECKSUM)

    assert bench([waiting]) == [waiting]
    assert bench.server.calls["register"] == 0


def test_a_server_that_refuses_everything_for_a_while_loses_nothing():
    bench = Bench()
    bench.server.faults["register"] = [RejectedError("500") for _ in range(6)]

    known = bench(batch(4))

    assert len(known) + len(bench.of_kind(FileFailed)) == 4
    assert len(bench.server.records) == len(known)


def test_nothing_is_created_while_the_existing_records_are_unknown():
    bench = Bench()
    bench.server.late_faults["register"] = [TransientError("The reply was lost.")]
    bench.server.faults["list_datafiles"] = [TransientError("No list.")] * 99

    assert bench(batch(3)) == []
    assert bench.server.calls["register"] == 1
    assert {event.problem.message for event in bench.of_kind(FileFailed)} == {"No list."}


def test_a_list_that_fails_for_a_while_is_asked_for_again():
    bench = Bench()
    bench.server.late_faults["register"] = [TransientError("The reply was lost.")]
    bench.server.faults["list_datafiles"] = [TransientError("No list.")] * 3

    assert len(bench(batch(3))) == 3
    assert len(bench.server.records) == 3
