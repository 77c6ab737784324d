"""Files that are open elsewhere or dated in the future wait, but not forever."""

import pytest

from mydata_like.engine.unfinished import HOUR_NS, MOST, UnfinishedFiles
from tests.fakes.clock import FakeClock
from tests.unit.engine.files import a_file

SETTLE = 60


class Bench:
    """A search over several runs; `writers` are the programs that have files open, by name."""

    def __init__(self):
        self.clock = FakeClock()
        self.writers, self.asked, self.events, self.memory = {}, [], [], {}
        self.search = None

    def find_writers(self, files):
        self.asked += [file.name for file in files]
        return {it.key: self.writers[it.name] for it in files if it.name in self.writers}

    def find_meta(self, key):
        return self.memory.get(key)

    def record_meta(self, key, value):
        self.memory[key] = value

    def run(self, *files, dry_run=False):
        """Return the codes of what waits in a run of its own, and what is sent with a notice."""
        events = []
        search = UnfinishedFiles(
            self.find_writers, self, self.clock, events.append, SETTLE, dry_run=dry_run
        )
        waiting = {key.rpartition(b"/")[2]: it.code for key, it in search(files).items()}
        return waiting, [event.problem.message for event in events]

    def now(self):
        return round(self.clock.now().timestamp() * 1e9)

    def changed(self, name, hours):
        return a_file(name)._replace(ctime_ns=self.now() - round(hours * HOUR_NS))


@pytest.fixture
def bench():
    return Bench()


def test_a_file_that_a_program_has_open_waits_and_is_sent_after_twelve_hours_without_a_change(
    bench,
):
    ages = {"new": 0, "recent": 11.9, "patient": 12, "closed": 1, "old": 24}
    files = [bench.changed(name, hours) for name, hours in ages.items()]
    bench.writers = dict.fromkeys((b"new", b"recent", b"patient", b"old"), "AcqSoft")

    waiting, notices = bench.run(*files)

    assert waiting == {b"new": "waiting.open", b"recent": "waiting.open"}
    assert notices == ["alice/Set 1/patient is sent while open in AcqSoft."]
    assert bench.asked == [b"new", b"recent", b"patient", b"closed"]
    assert bench.run(*files, dry_run=True) == (waiting, [])


@pytest.mark.parametrize("ahead", [1, 30 * 365 * 24])
def test_a_date_in_the_future_waits_until_our_clock_has_seen_the_file_unchanged(bench, ahead):
    file = a_file()._replace(modified_ns=bench.now() + ahead * HOUR_NS)
    file = file._replace(ctime_ns=file.modified_ns)
    waits = ({b"a.txt": "waiting.future"}, [])
    assert bench.run(file, dry_run=True) == waits

    for seconds in (0, SETTLE - 1):
        bench.clock.move(seconds)
        assert bench.run(file) == waits
    changed = file._replace(size=4)
    bench.clock.move(1)
    assert bench.run(changed) == waits
    bench.clock.move(SETTLE)
    sent = "alice/Set 1/a.txt is sent with a modification time in the future."
    assert bench.run(changed) == ({}, [sent])
    assert bench.run(changed, a_file("b")) == ({}, [sent])


def test_a_bounded_number_of_dates_in_the_future_is_remembered_and_all_files_are_sent(bench):
    later = bench.now() + HOUR_NS
    files = [a_file(f"{n:0200}")._replace(modified_ns=later) for n in range(MOST + 10)]

    assert len(bench.run(*files)[0]) == len(files)
    bench.clock.move(SETTLE)
    left = bench.run(*files)[0]
    assert len(left) == 10
    bench.clock.move(SETTLE)
    assert bench.run(*[file for file in files if file.name in left])[0] == {}


def test_a_damaged_memory_counts_as_empty(bench):
    file = a_file()._replace(modified_ns=bench.now() + HOUR_NS)
    bench.run(file)
    bench.memory = dict.fromkeys(bench.memory, "[1")
    assert bench.run(file)[0] == {b"a.txt": "waiting.future"}
