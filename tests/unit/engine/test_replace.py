"""Replacing: verified bytes are never overwritten, and doubtful files are reported."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import pytest

from mydata_like.core.errors import Problem, TransientError
from mydata_like.core.events import FileFailed, FileWaiting
from mydata_like.core.model import Entry, EntryState, Registered, Staged
from mydata_like.core.ports import SentFile, UnsentFile
from mydata_like.engine.gate import Gate
from mydata_like.engine.recover import WRITING, Recovery, UnreportedFiles
from mydata_like.engine.register import _registered, _registration
from mydata_like.engine.replace import Replace
from mydata_like.settings.schema import Advanced
from tests.fakes.clock import FakeClock
from tests.fakes.context import make_context
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer
from tests.fakes.source import ListSource
from tests.unit.engine.files import CHECKSUM, DATASET, a_file, a_record, a_wanted

KEY = a_file("a").key
OTHER = "f" * 32
DENIED = Problem("staging.denied", "No.")
MISSING = Problem("staging.missing", "It is not there.")


@dataclass
class Lines:
    """Channels of which none may be free; what they are asked to replace arrives, or does not."""

    server: ScriptedServer
    busy: int = 0  # how often none is free
    script: list = field(default_factory=list)  # errors and fates, one a call
    replaced: list = field(default_factory=list)
    discarded: list = field(default_factory=list)

    @contextmanager
    def borrowed_first(self, patience):
        self.busy -= 1
        yield None if self.busy >= 0 else self

    @contextmanager
    def borrowed(self):
        yield self

    def ensure_open(self, channel):
        return channel

    def replace(self, replacements, files):
        answer = self.script.pop(0) if self.script else None
        if isinstance(answer, BaseException):
            raise answer
        for one in replacements if answer is None else ():
            self.replaced.append(one.key)
            self.server.bad.discard(one.key.decode().rpartition("/")[2])
        return answer or [SentFile(index, CHECKSUM) for index in range(len(replacements))]

    def discard(self, replacements):
        self.discarded += [one.key for one in replacements]


@dataclass
class Limited:
    channels: Lines


class Bench:
    def __init__(self, **settings):
        self.clock = FakeClock()
        self.events = []
        self.server = ScriptedServer()
        self.ledger = MemoryLedger()
        self.lines = Lines(self.server)
        gate = Gate(self.clock, self.clock.cancel(), self.events.append, Random(1))
        self.context = make_context(
            gate,
            self.events.append,
            server=self.server,
            ledger=self.ledger,
            limits=Limited(self.lines),
        )
        self.settings = Advanced(**({"verify_interval": 1.0, "verify_patience": 60.0} | settings))
        self.replace = Replace(self.context, self.settings)

    def stage(self, name="a", checksum=OTHER):
        """Return a file whose new bytes lie aside; the server has verified the earlier ones."""
        record = self.server.add(DATASET.id, a_record(name, checksum=checksum))
        wanted = a_wanted(name, datafile=record)
        if checksum != CHECKSUM:
            self.server.bad.add(name)  # until the bytes have taken their place
        return Staged(wanted._replace(remote=record.replicas[0].uri), CHECKSUM)

    def change(self, staged):
        """Change the record, as the stage before does."""
        self.server.register([_registration(staged, "staging")])
        return _registered(staged)

    def __call__(self, *items, polls=100):
        passed = self.replace(
            ListSource([*([item] for item in items), *[None] * polls], self.clock)
        )
        return [item for part in passed for item in part]

    def recovery(self):
        return Recovery(
            self.context, self.settings, UnreportedFiles(self.ledger.find_replacements())
        )

    def told(self, kind):
        return [event.problem.code for event in self.events if isinstance(event, kind)]


@pytest.fixture
def bench():
    return Bench()


def test_bytes_take_their_place_after_the_server_has_looked(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    (noted,) = bench.ledger.find_replacements()

    (placed,) = bench(bench.change(staged))

    record = bench.server.records[placed.datafile]
    assert (noted.datafile, noted.checksum) == (record.id, CHECKSUM)
    assert bench.server.asked == [record.id]
    assert bench.lines.replaced == [KEY]
    assert placed.before == record.looks
    assert not record.verified


def test_many_files_take_one_query_and_are_moved_without_a_pause(bench):
    staged = [bench.stage(str(number)) for number in range(450)]
    bench.replace.note(staged)
    changed = [bench.change(item) for item in staged]

    parts = bench.replace(ListSource([changed, *[None] * 9], bench.clock))
    placed = [(len(part), bench.clock.monotonic()) for part in parts]

    assert [count for count, _ in placed] == [200, 200, 50]
    assert len({moment for _, moment in placed}) == 1
    assert sorted(bench.server.asked) == [item.datafile for item in changed]
    assert bench.server.calls["fetch_datafiles"] == 1


def test_what_is_not_noted_passes_by(bench):
    known = bench.change(bench.stage())
    new = Registered(a_wanted("b"), CHECKSUM)

    assert bench(known, new) == [known, new]
    assert (bench.server.asked, bench.lines.replaced) == ([], [])


def test_a_record_that_was_not_changed_keeps_its_bytes(bench):
    staged = bench.stage()
    bench.replace.note([staged])

    (left,) = bench(_registered(staged))  # a gateway said that it was

    assert left.wanted == staged.wanted
    assert bench.lines.replaced == []
    assert bench.ledger.find_replacements()


def test_a_server_that_does_not_look_is_asked_again_and_then_left(bench):
    bench.server.unread = {"staging"}
    staged = bench.stage()
    bench.replace.note([staged])

    assert bench(bench.change(staged)) == []
    assert len(bench.server.asked) == 3
    assert bench.lines.replaced == []
    assert bench.told(FileWaiting) == ["waiting.replacing"]


def test_others_pass_while_no_channel_is_free(bench):
    staged, new = bench.stage(), Registered(a_wanted("b"), CHECKSUM)
    bench.replace.note([staged])
    bench.lines.busy = 5

    passed = bench(bench.change(staged), new)

    assert [item.wanted.file.key for item in passed] == [a_file("b").key, KEY]


def test_the_same_bytes_are_discarded(bench):
    staged = bench.stage(checksum=CHECKSUM)
    bench.replace.note([staged])

    assert len(bench(bench.change(staged))) == 1
    assert (bench.lines.replaced, bench.lines.discarded) == ([], [KEY])


def test_where_only_the_record_was_wrong_no_bytes_are_moved(bench):
    staged = bench.stage()
    bench.server.bad.clear()  # the bytes in their place are the new ones
    bench.replace.note([staged])
    before = bench.clock.monotonic()

    (kept,) = bench(bench.change(staged), polls=10)

    record = bench.server.records[kept.datafile]
    assert bench.server.asked == [record.id] * 2
    assert (bench.lines.replaced, bench.lines.discarded) == ([], [KEY])
    assert kept.before == record.looks  # only another look makes it verified
    assert bench.clock.monotonic() - before < 2


def test_a_look_that_began_before_the_record_changed_proves_nothing(bench):
    staged = bench.stage()
    bench.server.begun = {"a"}
    bench.replace.note([staged])

    (placed,) = bench(bench.change(staged))

    assert bench.server.asked == [placed.datafile] * 2
    assert (bench.lines.replaced, bench.lines.discarded) == ([KEY], [])


def test_a_server_that_says_nothing_of_its_looks_is_not_taken_at_its_word(bench):
    staged = bench.stage()
    bench.server.bad.clear()
    bench.replace.note([staged])
    bench.server.unread = {"staging"}  # it vouches as before, and has not looked

    assert bench(bench.change(staged)) == []
    assert (bench.lines.replaced, bench.lines.discarded) == ([], [])
    assert bench.told(FileWaiting) == ["waiting.replacing"]


def test_a_line_that_breaks_is_tried_again(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    bench.lines.script = [TransientError("It broke."), [UnsentFile(0, DENIED, again=True)]]

    assert len(bench(bench.change(staged))) == 1
    assert bench.lines.replaced == [KEY]


def test_what_a_host_refuses_fails_and_stays_noted(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    bench.lines.script = [[UnsentFile(0, DENIED, again=False)]]

    assert bench(bench.change(staged)) == []
    assert bench.told(FileFailed) == ["staging.denied"]
    assert bench.ledger.find_replacements()


def test_what_is_not_aside_any_more_the_server_looks_for(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    bench.lines.script = [[UnsentFile(0, MISSING, again=False)]]

    assert len(bench(bench.change(staged))) == 1


def cut_off(bench, staged, *, changed=True):
    """Leave a replacement in the middle, as a run does that is killed."""
    bench.replace.note([staged])
    if changed:
        bench.change(staged)


def test_what_lies_aside_takes_its_place_in_the_next_run(bench):
    cut_off(bench, bench.stage())
    recovery = bench.recovery()

    recovery.begin()
    recovery.end()

    assert bench.lines.replaced == [KEY]
    assert bench.ledger.find_replacements() == []
    assert bench.events == []


def test_bytes_that_never_arrived_are_reported_in_every_run(bench):
    cut_off(bench, bench.stage())
    for _ in range(2):
        bench.lines.script = [[UnsentFile(0, MISSING, again=False)]]
        recovery = bench.recovery()
        recovery.begin()
        recovery.end()

    assert bench.told(FileFailed) == ["server.replacing"] * 2
    assert bench.ledger.find_replacements()


def test_an_outcome_in_the_run_is_enough(bench):
    cut_off(bench, bench.stage())
    bench.lines.script = [[UnsentFile(0, MISSING, again=False)]]
    untold = UnreportedFiles(bench.ledger.find_replacements())
    recovery = Recovery(bench.context, bench.settings, untold)

    recovery.begin()
    untold.add(FileWaiting(path=KEY, size=3, problem=MISSING))
    recovery.end()

    assert bench.events == []
    assert bench.ledger.find_replacements()


def test_a_replacement_that_never_began_goes_when_no_request_can_begin_it(bench):
    cut_off(bench, bench.stage(), changed=False)
    bench.recovery().begin()
    assert bench.ledger.find_replacements()

    bench.clock.move(WRITING + 1)
    bench.recovery().begin()

    assert bench.ledger.find_replacements() == []
    assert (bench.lines.replaced, bench.lines.discarded) == ([], [KEY])


def test_what_cannot_be_looked_at_waits(bench):
    cut_off(bench, bench.stage())
    bench.server.faults["fetch_datafiles"] = [TransientError("Not now.")] * 2
    recovery = bench.recovery()

    recovery.begin()
    recovery.end()

    assert bench.told(FileWaiting) == ["waiting.replacing"]
    assert bench.ledger.find_replacements()


def test_another_state_of_the_file_is_not_verified_any_more(bench):
    staged = bench.stage()
    cut_off(bench, staged)
    bench.ledger.record([Entry.of(staged.wanted, EntryState.VERIFIED, OTHER)])

    bench.recovery().begin()

    assert bench.ledger.entries[KEY].state is EntryState.CHANGED
