"""Requests whose answer was lost: never two that write to one dataset, in no run and no thread."""

from dataclasses import replace
from datetime import timedelta
from math import inf
from random import Random

import pytest

from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.catalogues.mytardis.register import (
    Register,
    RegisterOptions,
    RequestPace,
    _registration,
)
from mydata_like.core.errors import Cancelled, RejectedError, UnansweredError
from mydata_like.core.events import FileFailed, Notice
from mydata_like.core.model import Dataset, DatasetId
from mydata_like.engine.gate import Gate
from mydata_like.engine.outcome_recorder import record_states
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer
from tests.fakes.source import ListSource
from tests.unit.engine.files import DATASET, a_record, a_staged

LIMIT = 300.0
LOST = UnansweredError("The answer was lost.")
OTHER = Dataset(DatasetId(8), "Set 2")


class SlowServer(ScriptedServer):
    """Its first request goes on for `lasts` seconds after its answer was lost, then happens.

    With infinity it never happens.
    """

    def __init__(self, clock, lasts):
        super().__init__()
        self.sent = []  # when requests that write came, and to which dataset
        self._clock = clock
        self._lasts = lasts
        self._open = None

    def register(self, records):
        self.sent.append((self._clock.monotonic(), records[0].dataset))
        if len(self.sent) > 1:
            self._come_to_an_end()
            assert self._open is None or self._open[1][0].dataset != records[0].dataset
            super().register(records)
            return
        if self._lasts < inf:
            self._open = self._clock.monotonic() + self._lasts, records
        raise LOST

    def _of(self, dataset):
        self._come_to_an_end()
        return super()._of(dataset)

    def _come_to_an_end(self):
        if self._open and self._clock.monotonic() >= self._open[0]:
            records, self._open = self._open[1], None
            super().register(records)


class ImpatientGateway(ScriptedServer):
    """Each request happens `lasts` seconds after it was sent; the answer is lost before."""

    def __init__(self, clock, lasts):
        super().__init__()
        self.sizes = []  # of the requests
        self._clock = clock
        self._lasts = lasts
        self._open = []

    def register(self, records):
        self.sizes.append(len(records))
        self._open.append((self._clock.monotonic() + self._lasts(len(records)), records))
        self._clock.move(2.0)
        raise LOST

    def _of(self, dataset):
        for end, records in list(self._open):
            if self._clock.monotonic() >= end:
                self._open.remove((end, records))
                super().register(records)
        return super()._of(dataset)


class Bench:
    def __init__(self, server=None, ledger=None, clock=None):
        self.clock = clock or FakeClock()
        self.events = []
        self.ledger = ledger or MemoryLedger()
        self.server = server or ScriptedServer()
        self.cancel = self.clock.cancel()
        self.gate = Gate(self.clock, self.cancel, self.events.append, Random(1))
        self.pace = RequestPace(25, 3, self.clock)
        self.writes = WriteTracker(self.ledger, self.clock, LIMIT)
        filing = RegisterOptions("staging", self.pace, self.writes)
        self.register = Register(self.server, self.ledger, self.events.append, self.gate, filing)

    def __call__(self, *groups):
        source = ListSource(list(groups), self.clock)
        return [item for items in self.register(source) for item in items]

    def of_kind(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def batch(count, dataset=DATASET):
    staged = [a_staged(f"f{number:03}") for number in range(count)]
    return [replace(it, dataset=dataset) for it in staged]


def test_a_request_that_goes_on_is_waited_for_and_not_repeated():
    clock = FakeClock()
    bench = Bench(SlowServer(clock, lasts=45.0), clock=clock)

    known = bench(batch(10))

    assert len(known) == len(bench.server.records) == 10
    assert len(bench.server.sent) == 1
    assert clock.monotonic() < 45 + 6
    (told,) = bench.of_kind(Notice)
    assert told.problem.code == "server.unanswered"
    assert bench.ledger.writes == {}


def test_what_never_happened_is_sent_again_when_it_must_be_over():
    clock = FakeClock()
    bench = Bench(SlowServer(clock, lasts=inf), clock=clock)

    known = bench(batch(10))

    assert len(known) == 10
    (first, _), *others = bench.server.sent
    assert min(at for at, _ in others) - first >= LIMIT


def test_what_never_happened_is_sent_again_when_the_server_is_known_to_have_ended_it():
    clock = FakeClock()
    bench = Bench(SlowServer(clock, lasts=inf), clock=clock)
    bench.server.ends_at = 12.0

    known = bench(batch(10))

    assert len(known) == 10
    (first, _), (again, _), *_ = bench.server.sent
    assert 12.0 <= again - first < 20.0
    assert bench.ledger.writes == {}


def test_requests_do_not_shrink_where_every_answer_is_lost_after_the_same_time():
    clock = FakeClock()
    bench = Bench(ImpatientGateway(clock, lambda records: 2.1), clock=clock)

    known = bench(batch(60))

    assert len(known) == len(bench.server.records) == 60
    assert bench.server.sizes == [25, 12, 23]
    assert clock.monotonic() < 15


def test_requests_shrink_where_smaller_ones_happen_sooner():
    clock = FakeClock()
    bench = Bench(ImpatientGateway(clock, lambda records: records), clock=clock)

    bench(batch(60))

    assert bench.server.sizes[:4] == [25, 12, 6, 3]


def test_nothing_else_is_written_to_the_dataset_and_others_go_on():
    clock = FakeClock()
    bench = Bench(SlowServer(clock, lasts=45.0), clock=clock)
    bench.pace.size = 5

    known = bench(batch(5), batch(3, OTHER), batch(8)[5:])

    assert len(known) == len(bench.server.records) == 11
    first, *later = [at for at, dataset in bench.server.sent if dataset == DATASET.id]
    assert max(at for at, dataset in bench.server.sent if dataset == OTHER.id) - first < 2
    assert min(later) - first >= 45.0


def test_a_request_whose_answer_is_lost_repeatedly_fails_in_the_end():
    bench = Bench()
    bench.server.faults["register"] = [LOST] * 9

    assert bench(batch(3)) == []
    assert bench.server.calls["register"] == 3
    assert bench.clock.monotonic() >= 3 * LIMIT
    assert len(bench.of_kind(FileFailed)) == 3


def test_batches_shrink_when_an_answer_is_lost():
    bench = Bench()
    bench.server.late_faults["register"] = [LOST]

    bench(batch(20))

    assert bench.pace.size == 10


def test_a_request_is_noted_while_it_may_be_at_work():
    bench = Bench()
    noted = []
    bench.server._answered = lambda name: noted.append(dict(bench.ledger.writes))

    bench(batch(3))

    assert noted == [{DATASET.id: bench.clock.now() + timedelta(seconds=LIMIT)}]
    assert bench.ledger.writes == {}


@pytest.mark.parametrize("error", [LOST, Cancelled()], ids=["lost", "cancelled"])
def test_the_note_of_a_request_outlives_a_run_that_ends_before_its_answer(error):
    bench = Bench()
    bench.server.faults["register"] = [error]
    bench.cancel.set_after(1.0)

    with pytest.raises(Cancelled):
        bench(batch(3))

    assert DATASET.id in bench.ledger.writes


def test_a_refusal_was_received():
    bench = Bench()
    bench.server.faults["register"] = [RejectedError("No.")]

    bench(batch(1))

    assert bench.ledger.writes == {}


def after_a_kill(items):
    """Return a ledger as a run leaves it that was killed while it registered these."""
    clock, ledger = FakeClock(), MemoryLedger()
    record_states(ledger, items)
    WriteTracker(ledger, clock, LIMIT).begin(DATASET.id)
    return clock, ledger


def test_a_restarted_run_waits_for_what_the_killed_one_was_writing():
    items = batch(4)
    clock, ledger = after_a_kill(items)
    server = SlowServer(clock, lasts=9.0)
    with pytest.raises(UnansweredError):
        server.register([_registration(item, "staging") for item in items[:2]])
    bench = Bench(server, ledger, clock)

    known = bench(items)

    assert len(known) == len(server.records) == 4
    _, (at, _) = server.sent
    assert 9.0 <= at < 30.0
    assert ledger.writes == {}


def test_a_restarted_run_continues_when_an_unseen_request_must_be_over():
    items = batch(4)
    clock, ledger = after_a_kill(items)
    bench = Bench(ledger=ledger, clock=clock)

    known = bench(items)

    assert len(known) == 4
    assert clock.monotonic() >= LIMIT
    assert bench.of_kind(Notice)[0].problem.code == "server.unanswered"
    assert ledger.writes == {}


def test_an_old_note_delays_nothing():
    items = batch(4)
    clock, ledger = after_a_kill(items)
    clock.move(LIMIT + 1)
    bench = Bench(ledger=ledger, clock=clock)
    begun = clock.monotonic()

    assert len(bench(items)) == 4
    assert clock.monotonic() - begun < 1
    assert ledger.writes == {}


def test_what_was_there_before_does_not_show_that_a_request_is_over():
    items = batch(1)
    clock, ledger = after_a_kill(items)
    bench = Bench(ledger=ledger, clock=clock)
    bench.server.add(DATASET.id, a_record("f000", checksum="e" * 32))

    bench(items)

    assert clock.monotonic() >= LIMIT
