"""The judge of changed files: what is sent, what is held, and what counts for the brake."""

from datetime import timedelta

import pytest

from mydata_like.core.errors import HELD, KEPT, Problem, SettingsError
from mydata_like.core.events import Notice
from mydata_like.core.model import (
    ChangeChoice,
    Dataset,
    DatasetId,
    FileRecord,
    HoldReason,
    VerifiedCopy,
)
from mydata_like.engine.changed_files import ChangedFiles
from mydata_like.settings.schema import Data
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.unit.engine.files import a_file, a_record

COPY = VerifiedCopy(1000, "c" * 32, "2020-11-03T10:00:00")
SMALL = Dataset(DatasetId(1), "Small")


class Bench:
    """A judge of changed files; `begin` starts another run."""

    def __init__(self, **settings):
        self.ledger, self.clock = MemoryLedger(), FakeClock()
        self.settings = Data(**settings)
        self.events = []
        self.begin()

    def begin(self, **options):
        self.judge = ChangedFiles(
            self.ledger, self.events.append, self.clock, self.settings, **options
        )

    def pass_days(self, days):
        self.clock.move(timedelta(days=days).total_seconds())
        self.begin()

    def __call__(self, name, size=900, dataset=SMALL, *, copy=COPY, appended=False, time=1):
        """Return the flags of the file to send, or the code of the problem."""
        file = a_file(name, size=size)._replace(modified_ns=time, ctime_ns=time)
        wanted = FileRecord(file, dataset, f"x/{name}", a_record(name))
        self.ledger.record_found([file], self.clock.now(), unsent=True)
        found = self.judge.judge(wanted, copy, appended=appended)
        if isinstance(found, Problem):
            return found.code
        return found.appended, found.release

    def rewrite(self, numbers, dataset=SMALL):
        """Return how many of these rewritten files are held."""
        return [self(f"{dataset.id} {number}", dataset=dataset) for number in numbers].count(HELD)

    def choose(self, choice):
        self.ledger.choose([row._replace(choice=choice) for row in self.ledger.list_held()])


SENT, APPENDED, RELEASED = (False, False), (True, False), (False, True)


@pytest.mark.parametrize(
    ("settings", "size", "fate"),
    [
        ({}, 0, HELD),
        ({}, 499, HELD),
        ({}, 500, SENT),
        ({}, 1000, SENT),
        ({}, 2000, SENT),
        ({"changed": "hold"}, 0, HELD),
        ({"changed": "hold"}, 1000, HELD),
        ({"changed": "replace"}, 0, RELEASED),
        ({"changed": "replace"}, 1000, RELEASED),
    ],
)
def test_size_and_setting_decide(settings, size, fate):
    assert Bench(**settings)("a", size) == fate


@pytest.mark.parametrize("changed", ["keep-both", "hold", "replace"])
def test_an_appended_file_is_sent_and_an_empty_copy_is_the_beginning_of_each(changed):
    bench = Bench(changed=changed, brake=1)

    assert bench("a", 2000, appended=True) == APPENDED
    assert bench("b", 5, copy=VerifiedCopy(0, "d" * 32)) == APPENDED
    assert bench.ledger.changed == {}


def test_a_file_counts_once_however_often_it_changes():
    bench = Bench(brake=2)

    assert [bench("a", time=time) for time in range(5)] == [SENT] * 5
    assert bench.rewrite(range(3)) == 2


def test_the_limit_is_over_all_runs_of_a_day_and_what_is_held_stays_held():
    bench = Bench(brake=2)
    assert bench.rewrite([1]) == 0
    bench.pass_days(0.5)
    assert bench.rewrite([2, 3]) == 1
    bench.pass_days(2)

    assert bench.rewrite([3, 4, 5]) == 1  # 3 is still held; the others are of a new day

    bench.settings = Data(brake=0)
    bench.begin()
    assert bench.rewrite([3]) == 0


def test_five_per_cent_of_a_dataset_never_brake_it():
    bench = Bench(brake=2)
    large = Dataset(DatasetId(7), "Large", files=100)

    assert bench.rewrite(range(8), large) == 3


def test_many_files_of_all_datasets_brake_together():
    bench = Bench(brake=2)

    held = [bench.rewrite(range(2), Dataset(DatasetId(number), "D")) for number in range(30)]

    assert held == [0] * 25 + [2] * 5


def test_shrunk_files_count():
    bench = Bench(brake=2)

    assert [bench("a", 0), bench("b", 0), bench("c")] == [HELD] * 3
    assert [row.hold for row in bench.ledger.list_held()] == [
        HoldReason.SHRUNK,
        HoldReason.SHRUNK,
        HoldReason.BRAKE,
    ]


def test_a_choice_holds_for_one_state_and_one_copy():
    bench = Bench()
    assert bench("a", 0) == HELD
    bench.choose(ChangeChoice.KEEP)
    assert bench("a", 0) == KEPT
    assert bench("a", 0, copy=COPY._replace(checksum="e" * 32)) == HELD
    bench.choose(ChangeChoice.REPLACE)
    assert bench("a", 0, copy=COPY._replace(checksum="e" * 32)) == RELEASED
    assert bench("a", 0, time=2) == HELD


def test_a_choice_to_replace_confirms_the_changes_of_the_dataset():
    bench = Bench(brake=2)
    assert bench.rewrite(range(4)) == 2
    bench.choose(ChangeChoice.REPLACE)
    bench.begin()

    assert [bench("1 2"), bench("1 3"), bench("new"), bench("second")] == [
        *(RELEASED, RELEASED),
        *(SENT, SENT),
    ]


def test_over_http_even_an_appended_file_is_held_and_a_new_one_is_not():
    bench = Bench(changed="replace")
    bench.begin(can_replace=False)

    assert bench("a", 2000, appended=True) == HELD
    assert not bench.judge.may_be_appended(a_file("a", size=2000), COPY)


def test_a_dry_run_counts_and_stores_nothing():
    bench = Bench(brake=2)
    bench.begin(dry_run=True)

    assert bench.rewrite(range(4)) == 2
    assert (bench.ledger.changed, bench.ledger.meta, bench.events) == ({}, {}, [])


def test_the_user_is_notified_once_a_day():
    bench = Bench()
    told = []
    for _ in range(4):
        bench("a", 0)
        bench("b", 0)
        told.append(sum(isinstance(event, Notice) for event in bench.events))
        bench.pass_days(0.6)

    assert told == [1, 1, 2, 2]


def test_patterns_that_are_free_are_those_of_the_filters():
    bench = Bench(replace_freely=("*.log", "/alice/raw/**"))

    assert bench.judge.is_free(b"alice/Scan/a.log")
    assert bench.judge.is_free(b"alice/raw/x")
    assert not bench.judge.is_free(b"alice/Scan/\xff.tif")
    with pytest.raises(SettingsError, match=r"data\.replace_freely"):
        Bench(replace_freely=("[b-a]",))


def test_times_of_any_file_system_are_described():
    bench = Bench()

    assert [bench("a", 0, time=moment) for moment in (-(2**63), 2**63 - 1)] == [HELD, HELD]
