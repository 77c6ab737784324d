"""How an installation stands, from its ledger, locks and data directory, without a server."""

import os
import shutil
from contextlib import ExitStack
from datetime import timedelta

import pytest

from mydata_like.app.ledger_status import look_at_state, renew_status
from mydata_like.app.monitoring import look_back
from mydata_like.app.settings_service import (
    approval_file,
    find_places,
    find_state,
    ledger_file,
    load_settings,
    server_settings_file,
)
from mydata_like.catalogues.mytardis.datasets import UnusedObject, UnusedObjects
from mydata_like.core.data_directory import Shard
from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.core.model import DatasetId, Entry, EntryState, Outcome
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import lock_data_directory, lock_watch
from mydata_like.ledger.sql import PastRunRow
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.state.state_files import (
    ApprovalState,
    PendingApproval,
    ServerSettings,
    save_record,
)
from tests.fakes.clock import FakeClock

ALL = {"found": 3, "verified": 3, "waiting": 0, "skipped": 0, "failed": 0, "sent": 3}
MIDDLE = ALL | {"verified": 1}
UNSENT = Problem("waiting.unsent", "Not sent yet.")


class Installation:
    """A settings file, a data directory with a file, and a ledger that tests write."""

    def __init__(self, folder):
        self.data = folder / "data"
        self.data.mkdir()
        (self.data / "a.tif").write_bytes(b"a")
        self.config = folder / "settings.toml"
        self.config.write_text(f"[data]\ndirectory = {str(self.data)!r}\n")
        self.settings = load_settings(self.config).settings
        self.places = find_places(self.config)
        self.root = os.fsencode(self.data)
        self.clock = FakeClock()

    def open(self, *shard):
        file = ledger_file(self.settings, self.places, self.root, *shard)
        return SqliteLedger.open(file, self.root, self.clock)

    def record(self, ledger, name, *, ended=True, **sums):
        began = self.clock.now()
        self.clock.move(60)
        end = self.clock.now() if ended else None
        summary = (ALL if ended else MIDDLE) | {"problem": None, "reason": "person"} | sums
        ledger.record_run(PastRunRow(name, began, end, summary))

    @property
    def state(self):
        return find_state(self.settings, self.places)

    def look(self):
        return look_at_state(self.settings, self.config)

    def settle(self):
        return self.renew(self.renew(self.renew(None)))

    def renew(self, known):
        return renew_status(self.settings, self.config, known)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path / "home"))
    return Installation(tmp_path)


def test_before_the_first_run_nothing_is_known(here):
    assert here.look().safety is Safety.UNKNOWN


def test_after_a_good_run_all_is_safe(here):
    with here.open() as ledger:
        here.record(ledger, "1")

    found = here.look()
    assert (found.safety, found.interrupted, found.whole.run) == (Safety.SAFE, None, "1")


def test_a_run_that_was_cut_off_is_reported_until_a_later_one_over_everything_has_ended(here):
    with here.open() as ledger:
        here.record(ledger, "1")
        here.record(ledger, "2", ended=False)
        cut_off = here.look()
        here.record(ledger, "3", reason="source")
        partly = here.look()
        here.record(ledger, "4")
        after = here.look()

    assert (cut_off.interrupted.run, cut_off.safety) == ("2", Safety.AT_RISK)
    assert (partly.interrupted.run, partly.safety) == ("2", Safety.AT_RISK)
    assert (after.interrupted, after.safety) == (None, Safety.SAFE)


def test_a_run_over_a_part_that_was_cut_off_is_covered_by_any_later_one(here):
    with here.open() as ledger:
        here.record(ledger, "1")
        here.record(ledger, "2", ended=False, reason="folder")
        cut_off = here.look()
        here.record(ledger, "3", reason="source")

    assert cut_off.interrupted.run == "2"
    assert here.look().interrupted is None


def test_a_run_at_work_is_not_taken_for_one_that_was_cut_off(here):
    state = find_state(here.settings, here.places)
    with here.open() as ledger, lock_data_directory(state, here.root, SystemClock()):
        here.record(ledger, "1", ended=False)
        here.record(ledger, "2", ended=False)
        found = here.look()

    assert found.running
    assert found.interrupted.run == "1"  # the one before
    assert here.look().interrupted.run == "2"


def test_runs_over_a_part_never_make_it_safe(here):
    with here.open() as ledger:
        here.record(ledger, "1", reason="source")

    assert here.look().safety is Safety.UNKNOWN


def test_what_was_found_and_not_sent_is_at_risk(here):
    with here.open() as ledger:
        here.record(ledger, "1")
        ledger.record_outcomes([Outcome(b"x", 5, 10**18, "found", UNSENT)])

    found = here.look()
    assert (found.safety, found.at_risk.files, found.at_risk.bytes) == (Safety.AT_RISK, 1, 5)
    assert found.as_record()["at_risk"]["oldest"] == "2001-09-09T01:46:40+00:00"


def test_unfinished_sources_are_named(here):
    with here.open() as ledger:
        here.record(ledger, "1")
        ledger.record_source(ExtraSource(b"/usb/day 1", Destination("", "Ann", "day 1")))

    found = here.look()
    assert found.safety is Safety.AT_RISK
    (source,) = found.as_record()["unfinished_sources"]
    assert (source["path"], source["dataset"]) == ("/usb/day 1", "day 1")


def test_what_stays_empty_on_the_server_is_listed(here):
    with here.open() as ledger:
        UnusedObjects(ledger).add(UnusedObject("dataset", 6, "Scan"))

    found = here.look()

    assert found.as_record()["unused_on_server"] == [{"kind": "dataset", "id": 6, "name": "Scan"}]


def test_what_a_shard_left_since_the_last_whole_run_is_at_risk(here):
    shard = Shard(1, 2)
    (find_state(here.settings, here.places) / "shard-1-of-2").mkdir(parents=True)
    with here.open() as ledger, here.open(shard) as other:
        here.record(other, "s1")
        other.record_outcomes([Outcome(b"x", 5, 0, "failed", UNSENT)])
        before = here.look()
        here.record(ledger, "1")

    assert before.at_risk.files == 1
    assert here.look().at_risk.files == 0  # which looked at the shard's files, too


def test_a_data_directory_that_is_gone_empty_or_closed_is_a_problem(here):
    with here.open() as ledger:
        here.record(ledger, "1")
        ledger.record([Entry(b"a.tif", 1, 0, EntryState.VERIFIED, DatasetId(1), "0" * 32, "x")])
    assert here.look().data_problem is None

    (here.data / "a.tif").unlink()
    empty = here.look()
    shutil.rmtree(here.data)
    gone = here.look()
    here.data.write_text("no folder")
    other = here.look()

    for found in (empty, gone, other):
        assert found.data_problem.code == "data.unavailable"
        assert found.safety is Safety.PROBLEM
    assert "is empty, although" in empty.data_problem.message


def test_an_unknown_empty_data_directory_is_no_problem(here):
    (here.data / "a.tif").unlink()
    with here.open() as ledger:
        here.record(ledger, "1", found=0, verified=0)
        ledger.record([Entry(b"/usb/a", 1, 0, EntryState.VERIFIED, DatasetId(1), "0" * 32, "x")])

    found = here.look()
    assert (found.data_problem, found.safety) == (None, Safety.UNKNOWN)


def test_the_week_is_judged_as_every_view_is(here):
    begin = here.clock.now() - timedelta(days=1)
    with here.open() as ledger:
        here.record(ledger, "1")
        safe = look_back(here.settings, here.config, begin)
        here.record(ledger, "2", ended=False)
        ledger.record_outcomes([Outcome(b"x", 5, 0, "found", UNSENT)])
        week = look_back(here.settings, here.config, begin)

    assert (safe.safety, safe.runs, safe.well) == (Safety.SAFE, 1, 1)
    assert (week.safety, week.runs, week.well, week.unsafe) == (Safety.AT_RISK, 2, 1, 1)


@pytest.fixture
def settled(here):
    """The status of `here`, which is known and has not changed."""
    with here.open() as here.ledger:
        here.record(here.ledger, "1")
        entry = Entry(b"a.tif", 1, 0, EntryState.VERIFIED, DatasetId(1), "0" * 32, "x")
        here.ledger.record([entry])
        set_on_the_server(here, "*.csv")
        yield here.settle()


def set_on_the_server(here, excludes):
    kept = ServerSettings({"filters.excludes": excludes}, "", None, here.clock.now())
    save_record(server_settings_file(here.settings, here.places), kept)


def record_a_run(here, stack):
    here.record(here.ledger, "2", ended=False)  # only the WAL grows


def begin_a_run(here, stack):
    stack.enter_context(lock_data_directory(here.state, here.root, SystemClock()))


def begin_a_watch(here, stack):
    stack.enter_context(lock_watch(here.state, SystemClock()))


def record_in_a_shard(here, stack):
    (here.state / "shard-1-of-2").mkdir()
    with here.open(Shard(1, 2)) as ledger:
        here.record(ledger, "s1")
        ledger.record_outcomes([Outcome(b"x", 5, 0, "failed", UNSENT)])


def await_approval(here, stack):
    pending = PendingApproval("SHA256:x", here.clock.now(), UNSENT)
    save_record(approval_file(here.settings, here.places), ApprovalState(awaited=pending))


def change_the_servers_settings(here, stack):
    set_on_the_server(here, "*.tmp")


def change_the_settings(here, stack):
    here.config.write_text(here.config.read_text() + "[filters]\nexcludes = ['*.log']\n")


def empty_the_folder(here, stack):
    (here.data / "a.tif").unlink()


def remove_the_folder(here, stack):
    shutil.rmtree(here.data)


@pytest.mark.parametrize(
    "change",
    [
        record_a_run,
        begin_a_run,
        begin_a_watch,
        record_in_a_shard,
        await_approval,
        change_the_servers_settings,
        change_the_settings,
        empty_the_folder,
        remove_the_folder,
    ],
)
def test_an_unchanged_status_is_not_read_again_until_it_changes(here, settled, change):
    assert here.renew(settled) is settled

    with ExitStack() as stack:
        change(here, stack)
        renewed, expected = here.renew(settled), here.look()

    assert renewed.report == expected != settled.report
    assert here.renew(renewed).report == here.look()


@pytest.mark.parametrize("begin", [begin_a_run, begin_a_watch])
def test_what_began_and_ended_around_a_reading_is_not_shown_for_long(here, settled, begin):
    with ExitStack() as stack:
        begin(here, stack)
        seen = settled._replace(report=here.look())

    assert seen.report != settled.report
    assert here.renew(seen).report == settled.report


def test_a_status_is_read_again_if_its_ledger_is_gone(here):
    with here.open() as ledger:
        here.record(ledger, "1")
    known = here.settle()

    ledger_file(here.settings, here.places, here.root).unlink()

    assert known.report.runs
    assert here.renew(known).report.runs == ()


def test_a_status_is_read_again_if_freed_files_turn_out_to_be_missing(here, settled):
    log = here.state / "freed.jsonl"
    freed = '{"path": "a.tif", "md5": "%s", "deleted": true}\n' % ("0" * 32)
    log.write_text(freed)
    (here.data / "a.tif").unlink()
    known = here.settle()
    assert known.report.data_problem is None

    log.write_text(freed + freed.replace("true", "false"))

    assert here.renew(known).report.data_problem.code == "data.unavailable"


def test_a_status_is_read_again_if_a_drive_in_the_data_directory_is_missing(here):
    (here.data / "b").mkdir()
    (here.data / "b" / "a.tif").write_bytes(b"a")
    with here.open() as ledger:
        ledger.record([Entry(b"b/a.tif", 1, 0, EntryState.VERIFIED, DatasetId(1), "0" * 32, "x")])
        ledger.record_meta("mounts", '["b"]')
    known = here.settle()
    assert known.report.data_problem is None

    (here.data / "b" / "a.tif").unlink()

    assert here.renew(known).report.data_problem.code == "data.unavailable"


def test_a_change_within_the_resolution_of_a_files_time_is_read_by_the_next_call(here):
    known = here.renew(here.renew(None))
    was = here.config.stat()
    here.config.write_text(here.config.read_text().replace("data", "DATA"))
    os.utime(here.config, ns=(was.st_atime_ns, was.st_mtime_ns))

    assert here.renew(known) is not known
