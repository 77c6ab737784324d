"""What is reported about an unattended uploader, and when."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mydata_like.core.deletion import Safety
from mydata_like.engine.health_reports import HealthReporter, Week, describe_week
from mydata_like.settings.sections import Monitor as MonitorSettings

BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)
MONDAY = datetime(2026, 6, 8, 7, 0, tzinfo=UTC)  # 09:00 in Berlin
DAY = timedelta(days=1)
GOOD = Week(runs=3, well=3, sent=10, safety=Safety.SAFE)


class Memory:
    def __init__(self):
        self.moments = {}

    def find(self, name):
        return self.moments.get(name)

    def keep(self, name, moment):
        self.moments[name] = moment


def build_monitor(memory=None, week=GOOD, **settings):
    asked = []

    def look_back(since):
        asked.append(since)
        return week

    monitor = HealthReporter(MonitorSettings(**settings), memory or Memory(), look_back, BERLIN)
    monitor.asked = asked
    return monitor


def codes(notices):
    return [problem.code for problem in notices]


def test_the_week_is_reported_once_on_its_day():
    monitor = build_monitor()

    assert monitor.find_notices(WEDNESDAY) == []
    assert monitor.find_notices(MONDAY - timedelta(minutes=1)) == []
    assert codes(monitor.find_notices(MONDAY)) == ["monitor.all-well"]
    assert monitor.find_notices(MONDAY + DAY) == []
    assert codes(monitor.find_notices(MONDAY + 7 * DAY)) == ["monitor.all-well"]
    assert monitor.asked == [WEDNESDAY, MONDAY]


def test_a_week_that_was_reported_is_not_reported_again_after_a_restart():
    memory = Memory()
    build_monitor(memory).find_notices(WEDNESDAY)
    build_monitor(memory).find_notices(MONDAY)

    assert build_monitor(memory).find_notices(MONDAY + DAY) == []


def test_a_long_absence_is_one_notice_about_a_week():
    monitor = build_monitor()
    monitor.find_notices(WEDNESDAY)
    back = MONDAY + 30 * DAY

    assert codes(monitor.find_notices(back)) == ["monitor.all-well"]
    assert monitor.asked == [back - 7 * DAY]


def test_notices_can_be_disabled():
    monitor = build_monitor(notice_day="never")
    monitor.find_notices(WEDNESDAY)

    assert monitor.find_notices(MONDAY) == []


def test_trouble_that_lasts_is_reported_once():
    monitor = build_monitor(notice_day="never", silent_hours=48)
    monitor.note(WEDNESDAY, well=False)
    monitor.note(WEDNESDAY + DAY, well=False)

    assert monitor.find_notices(WEDNESDAY + DAY) == []
    (notice,) = monitor.find_notices(WEDNESDAY + 2 * DAY)
    assert notice.code == "monitor.silence"
    assert "48 hours" in notice.message
    assert monitor.find_notices(WEDNESDAY + 3 * DAY) == []


def test_a_good_run_ends_the_trouble():
    monitor = build_monitor(notice_day="never", silent_hours=48)
    monitor.note(WEDNESDAY, well=False)
    monitor.note(WEDNESDAY + DAY, well=True)

    assert monitor.find_notices(WEDNESDAY + 5 * DAY) == []


def test_trouble_may_be_of_no_interest():
    monitor = build_monitor(notice_day="never", silent_hours=0)
    monitor.note(WEDNESDAY, well=False)

    assert monitor.find_notices(WEDNESDAY + 50 * DAY) == []


def end(**changes):
    return {"problem": None, "failed": 0, "waiting": 0, "sent": 0} | changes


@pytest.mark.parametrize(
    ("runs", "safety", "code"),
    [
        ([], Safety.UNKNOWN, "monitor.nothing-ran"),
        ([end(), end()], Safety.SAFE, "monitor.nothing-came"),
        ([end(), end()], Safety.UNKNOWN, "monitor.nothing-came"),
        ([end(), end()], Safety.AT_RISK, "monitor.unsafe"),
        ([end(sent=3), end()], Safety.SAFE, "monitor.all-well"),
        ([end(sent=3), end(failed=1)], Safety.PROBLEM, "monitor.unsafe"),
        ([end(failed=1), end(sent=1)], Safety.SAFE, "monitor.all-well"),
        ([end(problem={"code": "server.unavailable"})], Safety.PROBLEM, "monitor.unsafe"),
        ([{}], Safety.AT_RISK, "monitor.unsafe"),
        ([end(sent=1), {}], Safety.AT_RISK, "monitor.unsafe"),
        ([end(sent=1)], Safety.UNKNOWN, "monitor.unsafe"),  # one folder only, say
    ],
)
def test_the_report_describes_the_week(runs, safety, code):
    assert describe_week(Week.of(runs, safety)).code == code


def test_the_week_names_what_exists_only_here_and_why_nothing_can_be_read():
    week = Week.of([end(sent=1)], Safety.PROBLEM, 34, "The data directory is gone.")

    message = describe_week(week).message
    assert "34 files are not safe" in message
    assert message.endswith("The data directory is gone.")


@pytest.mark.parametrize(
    ("week", "said"),
    [
        (
            Week.of([end(failed=1)], Safety.PROBLEM, 1),
            "The only run of the last week did not succeed; 1 file is not safe on the server yet.",
        ),
        (Week.of([end()], Safety.AT_RISK, 2), "All runs of the last week succeeded; 2 files are"),
        (Week.of([end(sent=1)], Safety.SAFE), "All is well: 1 file of the last week is safe"),
    ],
)
def test_a_single_run_or_file_is_named_as_one(week, said):
    assert describe_week(week).message.startswith(said)
