"""Replacing: earlier bytes are kept or stay in place, and doubtful files are reported."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from mydata_like.catalogues.mytardis.register import _registration
from mydata_like.core.errors import Problem, TransientError
from mydata_like.core.events import FileFailed, FileReplaced, FileWaiting
from mydata_like.core.model import Entry, EntryState, HoldReason
from mydata_like.core.ports import SentFile, UnsentFile
from mydata_like.core.staging_path import kept_path
from mydata_like.engine.changed_files import ChangedFiles
from mydata_like.engine.gate import Gate
from mydata_like.engine.recover import Recovery, UnreportedFiles
from mydata_like.engine.replace import COLLECT, DAY, KeptCopies, Replace
from mydata_like.settings.schema import Advanced, Data
from tests.fakes.catalogue import make_catalogue
from tests.fakes.clock import FakeClock
from tests.fakes.context import make_context
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer
from tests.fakes.source import ListSource
from tests.unit.engine.files import (
    CHECKSUM,
    DATASET,
    a_file,
    a_record,
    a_wanted,
    as_registered,
    as_staged,
    as_verified,
)

KEY = a_file("a").key
OTHER = "f" * 32
DENIED = Problem("staging.denied", "No.")
MISSING = Problem("staging.missing", "It is not there.")
HELD = Problem("waiting.changed", "It cannot be kept.")


@dataclass
class Lines:
    """Channels of which none may be free; what they are asked to replace arrives, or does not."""

    server: ScriptedServer
    busy: int = 0  # how often none is free
    script: list = field(default_factory=list)  # errors and fates, one a call
    replaced: list = field(default_factory=list)
    kept: list = field(default_factory=list)  # the paths of earlier bytes
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
            self.kept += [one.kept] if one.kept else []
            self.server.bad.discard(one.key.decode().rpartition("/")[2])
        return answer or [SentFile(index, CHECKSUM) for index in range(len(replacements))]

    def discard(self, paths):
        self.discarded += paths


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
            catalogue=make_catalogue(self.server, self.ledger, gate, self.events.append),
            ledger=self.ledger,
            channels=self.lines,
        )
        self.settings = Advanced(**({"verify_interval": 1.0, "verify_patience": 60.0} | settings))
        changed = ChangedFiles(self.ledger, self.events.append, self.clock, Data())
        self.replace = Replace(self.context, KeptCopies(self.context, 30), changed)

    def stage(self, name="a", checksum=OTHER, **changes):
        """Return a file whose new bytes lie aside; the server has verified the earlier ones."""
        record = self.server.add(DATASET.id, a_record(name, checksum=checksum))
        wanted = replace(a_wanted(name, earlier=record), **changes)
        if checksum != CHECKSUM:
            self.server.bad.add(name)  # until the bytes have taken their place
        return as_staged(replace(wanted, remote=record.replicas[0].uri), CHECKSUM)

    def change(self, staged):
        """Change the record, as the next stage does."""
        self.server.register([_registration(staged, "staging")])

    def __call__(self, *items, polls=100):
        passed = self.replace(
            ListSource([*([item] for item in items), *[None] * polls], self.clock)
        )
        return [item for part in passed for item in part]

    def recovery(self):
        return Recovery(
            self.context,
            self.settings,
            KeptCopies(self.context, 30),
            UnreportedFiles(self.ledger.find_replacements()),
        )

    def recover(self):
        recovery = self.recovery()
        recovery.begin()
        recovery.end()

    def told(self, kind):
        return [event.problem.code for event in self.events if isinstance(event, kind)]


@pytest.fixture
def bench():
    return Bench()


def test_earlier_bytes_are_kept_and_the_record_is_unchanged_until_then(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    (noted,) = bench.ledger.find_replacements()
    (before,) = bench.ledger.find_kept()

    assert bench(staged) == [staged]

    record = bench.server.records[staged.earlier.id]
    assert (noted.datafile, noted.checksum) == (record.id, CHECKSUM)
    assert record == staged.earlier
    assert bench.server.asked == []
    assert bench.lines.kept == [kept_path(staged.remote, OTHER)] == [before.path]
    (copy,) = bench.ledger.find_kept(KEY)
    assert (before.until, copy.until - copy.at) == (0, 30 * DAY)
    assert (copy.checksum, copy.size) == (OTHER, record.size)
    (event,) = [event for event in bench.events if isinstance(event, FileReplaced)]
    assert (event.size_before, event.kept_until is None) == (record.size, False)


def test_many_files_are_moved_at_once_and_few_wait_a_second_for_others(bench):
    staged = [bench.stage(str(number)) for number in range(470)]
    bench.replace.note(staged)
    begun = bench.clock.monotonic()

    items = [staged[:450], staged[450:460], *[None] * 9, staged[460:]]
    parts = bench.replace(ListSource(items, bench.clock))
    placed = [(len(part), bench.clock.monotonic() - begun) for part in parts]

    assert placed == [(200, 0.0), (200, 0.0), (60, COLLECT), (10, COLLECT)]


def test_what_is_not_noted_passes_by(bench):
    known = as_registered(a_wanted("b"), CHECKSUM)
    new = as_staged(a_wanted("c"), CHECKSUM)

    assert bench(known, new) == [known, new]
    assert bench.lines.replaced == []


def test_others_pass_while_no_channel_is_free(bench):
    staged, new = bench.stage(), as_staged(a_wanted("b"), CHECKSUM)
    bench.replace.note([staged])
    bench.lines.busy = 5

    passed = bench(staged, new)

    assert [item.file.key for item in passed] == [a_file("b").key, KEY]


@pytest.mark.parametrize("kind", ["appended", "the same"])
def test_of_bytes_that_the_new_ones_contain_no_copy_is_kept(bench, kind):
    same = kind == "the same"
    staged = bench.stage(checksum=CHECKSUM if same else OTHER, appended=not same)
    bench.replace.note([staged])

    assert bench(staged) == [staged]
    assert (bench.lines.replaced, bench.lines.kept) == ([KEY], [])
    assert bench.ledger.find_kept() == []
    assert not [event for event in bench.events if isinstance(event, FileReplaced)]


def test_bytes_that_cannot_be_kept_stay_and_the_file_waits(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    (noted,) = bench.ledger.find_replacements()
    bench.lines.script = [[UnsentFile(0, HELD, again=False)]]

    assert bench(staged) == []
    assert bench.told(FileWaiting) == ["waiting.changed"]
    assert bench.lines.discarded == [noted.staged]
    assert (bench.ledger.find_replacements(), bench.ledger.find_kept()) == ([], [])
    entry = bench.ledger.entries[KEY]
    assert (entry.state, entry.checksum) == (EntryState.CHANGED, OTHER)
    assert bench.ledger.find_changed(KEY).hold is HoldReason.HOST


def test_bytes_that_cannot_be_kept_are_replaced_if_the_user_chose_that(bench):
    staged = bench.stage(release=True)
    bench.replace.note([staged])
    bench.lines.script = [[UnsentFile(0, HELD, again=False)]]

    assert bench(staged) == [staged]
    assert (bench.lines.replaced, bench.lines.kept) == ([KEY], [])
    assert bench.ledger.find_kept() == []
    (event,) = [event for event in bench.events if isinstance(event, FileReplaced)]
    assert event.kept_until is None


def test_a_line_that_breaks_is_tried_again(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    bench.lines.script = [TransientError("It broke."), [UnsentFile(0, DENIED, again=True)]]

    assert bench(staged) == [staged]
    assert bench.lines.replaced == [KEY]


def test_what_a_host_refuses_fails_and_stays_noted(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    bench.lines.script = [[UnsentFile(0, DENIED, again=False)]]

    assert bench(staged) == []
    assert bench.told(FileFailed) == ["staging.denied"]
    assert bench.ledger.find_replacements()


def test_bytes_that_have_disappeared_change_no_record(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    bench.lines.script = [[UnsentFile(0, MISSING, again=False)]]

    assert bench(staged) == []
    assert bench.told(FileWaiting) == ["staging.missing"]


def cut_off(bench, staged, *, changed=False):
    """Leave a replacement in the middle, as a run does that is killed."""
    bench.replace.note([staged])
    if changed:
        bench.change(staged)


@pytest.mark.parametrize("changed", [False, True])
def test_the_next_run_completes_what_was_interrupted(bench, changed):
    staged = bench.stage()
    cut_off(bench, staged, changed=changed)

    bench.recover()

    record = bench.server.records[staged.earlier.id]
    assert (record.checksum, record.verified) == (CHECKSUM, True)
    assert bench.lines.replaced == [KEY]
    assert bench.ledger.find_replacements() == []
    assert [copy.until > 0 for copy in bench.ledger.find_kept(KEY)] == [True]
    assert not bench.told(FileFailed) + bench.told(FileWaiting)


def test_a_replacement_of_which_nothing_arrived_is_forgotten(bench):
    staged = bench.stage()
    cut_off(bench, staged)
    bench.lines.script = [[UnsentFile(0, MISSING, again=False)]]

    bench.recover()

    assert bench.server.records[staged.earlier.id] == staged.earlier
    assert (bench.ledger.find_replacements(), bench.ledger.find_kept()) == ([], [])


def test_a_replacement_of_an_older_version_that_never_began_is_forgotten(bench):
    staged = bench.stage()
    cut_off(bench, staged)
    (noted,) = bench.ledger.find_replacements()
    bench.ledger.record_replacements([noted._replace(modified_ns=-1, kept="")])

    bench.recover()

    assert bench.ledger.find_replacements() == []
    assert (bench.lines.replaced, bench.lines.discarded) == ([], [noted.staged])


def test_bytes_that_never_arrived_are_reported_in_every_run(bench):
    cut_off(bench, bench.stage(), changed=True)
    for _ in range(2):
        bench.lines.script = [[UnsentFile(0, MISSING, again=False)]]
        bench.recover()

    assert bench.told(FileFailed) == ["server.replacing"] * 2
    assert bench.ledger.find_replacements()


def test_an_outcome_in_the_run_is_enough(bench):
    cut_off(bench, bench.stage(), changed=True)
    bench.lines.script = [[UnsentFile(0, MISSING, again=False)]]
    untold = UnreportedFiles(bench.ledger.find_replacements())
    recovery = Recovery(bench.context, bench.settings, KeptCopies(bench.context, 30), untold)

    recovery.begin()
    untold.add(FileWaiting(path=KEY, size=3, problem=MISSING))
    recovery.end()

    assert bench.events == []
    assert bench.ledger.find_replacements()


def test_what_cannot_be_looked_at_waits(bench):
    cut_off(bench, bench.stage())
    bench.server.faults["fetch_datafiles"] = [TransientError("Not now.")] * 2

    bench.recover()

    assert bench.told(FileWaiting) == ["waiting.replacing"]
    assert bench.ledger.find_replacements()


def test_another_state_of_the_file_is_not_verified_any_more(bench):
    staged = bench.stage()
    cut_off(bench, staged)
    bench.ledger.record([Entry.of(as_verified(replace(staged, checksum=OTHER)))])

    bench.recovery().begin()

    assert bench.ledger.entries[KEY].state is EntryState.CHANGED


def test_copies_are_removed_when_their_time_has_passed(bench):
    staged = bench.stage()
    bench.replace.note([staged])
    bench(staged)
    bench.ledger.forget_replacements(bench.ledger.find_replacements())
    (copy,) = bench.ledger.find_kept()

    bench.recover()
    assert bench.lines.discarded == []

    bench.clock.move(30 * DAY + 1)
    bench.recover()

    assert bench.lines.discarded == [copy.path]
    assert bench.ledger.find_kept() == []
