"""Comparing: files are read behind what is sent, and are what their checksums say."""

import threading
from dataclasses import replace
from random import Random

import pytest

from mydata_like.core.errors import HELD, Cancelled, FileChangedError, Problem
from mydata_like.core.events import FileFailed, FileVerified, FileWaiting, FileWanted
from mydata_like.core.model import (
    CheckedGroup,
    Comparison,
    EntryState,
    Match,
    VerifiedCopy,
)
from mydata_like.engine.changed_files import ChangedFiles
from mydata_like.engine.compare import READERS, Compare
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import CancelFlag, WorkerGroup, feed, stage
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Data
from tests.fakes.ledger import MemoryLedger
from tests.unit.engine.files import (
    CHECKSUM,
    a_file,
    a_group,
    a_record,
    a_wanted,
    as_registered,
    entry_of,
)

PAUSED = Problem("paused.person", "Paused.")


class Bench:
    """A compare stage with all its workers, over files whose checksums are reported."""

    def __init__(self, *, checksum=CHECKSUM):
        self.cancel = CancelFlag()
        self.events = []
        self.ledger = MemoryLedger()
        self.gate = Gate(SystemClock(), self.cancel, self.events.append, Random(1))
        self.choices = UserOverrides(self.events.append)
        self.checksum = checksum
        self.read = []
        self.new = []
        emit, clock = self.events.append, SystemClock()
        self.changed = ChangedFiles(self.ledger, emit, clock, Data())
        self.compare = Compare(
            self._read,
            self.ledger,
            emit,
            self.gate,
            self.choices,
            self.changed,
            self.new.extend,
        )

    def _read(self, file, checkpoint, size=None):
        checkpoint()
        self.read.append(file.name)
        if isinstance(self.checksum, FileChangedError):
            raise self.checksum
        return self.checksum(file, checkpoint) if callable(self.checksum) else self.checksum

    def __call__(self, *groups):
        """Return what comes out: groups, and what is open after the reading."""
        with WorkerGroup(self.cancel) as workers:
            return list(self.start(workers, groups))

    def start(self, workers, groups):
        source = feed(workers, iter(groups), 1000)
        return stage(workers, self.compare, source, workers=READERS + 1, limit=1000)

    def of_kind(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def verified(name="a.txt"):
    return entry_of(a_wanted(name), EntryState.VERIFIED, CHECKSUM, a_record().id)


def a_comparison(name="a.txt", **changes):
    matches = changes.pop("matches", (Match(CHECKSUM, verified(name)),))
    differs = changes.pop("differs", a_wanted(name, earlier=a_record(name)))
    return Comparison(a_file(name), matches, differs)


def a_checked(*unread, open_files=()):
    return CheckedGroup(a_group(), list(open_files), unread)


def test_groups_without_files_to_read_pass_as_they_are():
    bench = Bench()
    group = a_checked(open_files=[a_wanted("new")])

    assert bench(group) == [group]
    assert bench.read == []


def test_a_file_with_the_servers_checksum_is_verified_and_known_from_then_on():
    bench = Bench()

    assert bench(a_checked(a_comparison())) == [a_checked()]
    assert bench.ledger.entries[a_file().key] == verified()
    assert [event.path for event in bench.of_kind(FileVerified)] == [a_file().key]


def test_a_file_with_another_checksum_is_wanted_as_a_changed_one():
    bench = Bench(checksum="f" * 32)
    item = a_comparison()

    assert bench(a_checked(item)) == [a_checked(), [item.differs]]
    (event,) = bench.of_kind(FileWanted)
    assert (event.path, event.changed) == (a_file().key, True)
    assert bench.ledger.entries == {}


@pytest.mark.parametrize("checksum", [CHECKSUM, "f" * 32], ids=["appended", "rewritten"])
def test_of_a_file_that_grew_only_the_earlier_length_is_read(checksum):
    sizes = []
    bench = Bench()
    bench.compare = Compare(
        lambda _file, _checkpoint, size=None: sizes.append(size) or checksum,
        bench.ledger,
        bench.events.append,
        bench.gate,
        bench.choices,
        bench.changed,
        bench.new.extend,
    )
    item = a_comparison(matches=())._replace(copy=VerifiedCopy(2, CHECKSUM))

    _, [wanted] = bench(a_checked(item))

    assert sizes == [2]
    assert wanted == replace(item.differs, appended=checksum == CHECKSUM)
    assert len(bench.ledger.changed) == (checksum != CHECKSUM)


def test_a_rewritten_file_that_is_held_waits_and_its_row_is_of_an_earlier_state():
    bench = Bench(checksum="f" * 32)
    bench.ledger.record([verified()])
    item = a_comparison()._replace(copy=VerifiedCopy(7, CHECKSUM))

    assert bench(a_checked(item)) == [a_checked()]

    (event,) = bench.of_kind(FileWaiting)
    assert event.problem.code == HELD
    assert bench.ledger.entries[a_file().key].state is EntryState.CHANGED


def test_one_of_several_checksums_is_enough():
    bench = Bench()
    waits = as_registered(a_wanted(), CHECKSUM, a_record().id)
    item = a_comparison(matches=(Match("f" * 32, verified()), Match(CHECKSUM, waits)))

    assert bench(a_checked(item)) == [a_checked(), [waits]]


def test_a_file_that_differs_and_cannot_be_replaced_fails():
    bench = Bench(checksum="f" * 32)
    problem = Problem("server.elsewhere", "It is elsewhere.")

    assert bench(a_checked(a_comparison(differs=problem))) == [a_checked()]
    assert [event.problem for event in bench.of_kind(FileFailed)] == [problem]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("file.changed", FileWaiting),
        ("file.vanished", FileWaiting),
        ("file.replaced", FileWaiting),
        ("file.unreadable", FileFailed),
    ],
)
def test_a_file_that_moves_waits_and_one_that_cannot_be_read_fails(code, kind):
    bench = Bench(checksum=FileChangedError("Not now.", code=code))

    assert bench(a_checked(a_comparison(), a_comparison("b"))) == [a_checked()]
    assert [event.problem.code for event in bench.of_kind(kind)] == [code, code]


def test_what_is_to_be_sent_does_not_wait_for_what_is_read():
    passed = threading.Event()
    bench = Bench(checksum=lambda file, checkpoint: CHECKSUM if passed.wait(30) else "")
    reading = a_checked(*(a_comparison(f"{number}.txt") for number in range(READERS + 1)))
    sending = [a_checked(open_files=[a_wanted(f"{number}")]) for number in range(50)]

    with WorkerGroup(bench.cancel) as workers:
        output = bench.start(workers, [reading, *sending])
        first = [output.poll(30) for _ in range(51)]
        passed.set()
        rest = list(output)

    assert {item.open[0].file.name for item in first if item.open} == {
        b"%d" % it for it in range(50)
    }
    assert rest == []
    assert len(bench.of_kind(FileVerified)) == READERS + 1


def test_a_stop_ends_the_reading_between_two_pieces():
    begun = threading.Event()

    def read_for_ever(file, checkpoint):
        begun.set()
        while True:
            checkpoint()

    bench = Bench(checksum=read_for_ever)

    def stop() -> None:
        with WorkerGroup(bench.cancel) as workers:
            bench.start(workers, [a_checked(a_comparison())])
            assert begun.wait(30)
            bench.cancel.set("enough")

    with pytest.raises(Cancelled):
        stop()
    assert bench.of_kind(FileVerified) == []


def test_what_holds_the_run_holds_the_reading_as_well():
    pieces, held = [], threading.Event()

    def read(file, checkpoint):
        for number in range(3):
            if number == 1:
                bench.gate.hold("person", PAUSED)
                held.set()
            checkpoint()
            pieces.append(number)
        return CHECKSUM

    bench = Bench(checksum=read)
    with WorkerGroup(bench.cancel) as workers:
        output = bench.start(workers, [a_checked(a_comparison())])
        assert held.wait(30)
        assert pieces == [0]
        bench.gate.release("person")
        assert list(output) == [a_checked()]

    assert pieces == [0, 1, 2]


def test_a_run_that_is_to_end_reads_nothing_more():
    bench = Bench()
    bench.choices.finish()

    assert bench(a_checked(a_comparison())) == [a_checked()]
    assert bench.read == []
    assert bench.events == []  # without an outcome it waits


def test_nothing_is_read_where_nothing_is_sent():
    bench = Bench()

    bench.compare.report_unread(a_checked(a_comparison()))

    assert [event.problem.code for event in bench.of_kind(FileWaiting)] == ["waiting.compare"]
    assert bench.read == []
