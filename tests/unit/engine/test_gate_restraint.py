"""Holding a run while the instrument is at work."""

import random
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from mydata_like.core.events import Event, Notice, RunPaused
from mydata_like.engine.gate import STEADY, Gate, LoadGuard, PressureFilter, judge_hours
from mydata_like.settings.schedule_section import parse_period
from mydata_like.settings.transfer_sections import Limits
from tests.fakes.clock import FakeClock

FRIDAY_NOON = datetime(2026, 11, 20, 12, 0, tzinfo=ZoneInfo("UTC"))
FRIDAY_NIGHT = datetime(2026, 11, 20, 23, 0, tzinfo=ZoneInfo("UTC"))


class FakeLoad:
    """A computer on which these programs run, under this pressure."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.pressure: float | None = 0.0

    def find_program(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if name in self.running), None)

    def measure_pressure(self) -> float | None:
        return self.pressure


class Bench:
    """A restraint with its surroundings."""

    def __init__(self, **limits: object) -> None:
        self.clock = FakeClock()
        self.events: list[Event] = []
        self.load = FakeLoad()
        self.gate = Gate(self.clock, self.clock.cancel(), self.events.append, random.Random(1))
        settings = Limits(**limits)
        self.restraint = LoadGuard(settings, self.load, self.gate, self.events.append)

    def look(self, seconds: float = 0.0) -> bool:
        """Look after so many seconds; return whether the run is held."""
        self.clock.move(seconds)
        self.restraint()
        return self.gate.held

    @property
    def told(self) -> list[str]:
        return [
            event.problem.code if isinstance(event, RunPaused | Notice) else type(event).__name__
            for event in self.events
        ]


def test_without_any_limit_nothing_is_held() -> None:
    bench = Bench()

    assert not bench.look()
    assert bench.events == []


def test_quiet_hours_hold_the_run() -> None:
    bench = Bench(quiet_hours=("00:00-24:00",))

    assert bench.look()
    assert bench.look(5)
    assert bench.told == ["limits.quiet-hours"]


def test_quiet_hours_that_do_not_cover_now_hold_nothing() -> None:
    now = FakeClock().now().astimezone()
    hours = f"{(now.hour + 2) % 24:02}:00-{(now.hour + 3) % 24:02}:00"

    assert not Bench(quiet_hours=(hours,)).look()


@pytest.mark.parametrize(
    ("hours", "moment", "until"),
    [
        ("friday 09:00-17:00", FRIDAY_NOON, "until 17:00."),
        ("22:00-06:00", FRIDAY_NIGHT, "until Saturday 06:00."),
        ("friday-sunday 09:00-09:00", FRIDAY_NOON, "until Monday 09:00."),
        ("00:00-24:00", FRIDAY_NOON, "nothing is ever sent"),
    ],
)
def test_the_end_of_quiet_hours_is_reported(hours: str, moment: datetime, until: str) -> None:
    problem = judge_hours([parse_period(hours)], moment)

    assert problem is not None
    assert until in problem.message


@pytest.mark.parametrize(
    ("moment", "quiet"),
    [
        ("2026-03-29T00:59Z", True),  # 01:59 local time, the clock goes on to 03:00
        ("2026-03-29T01:00Z", False),
        ("2026-10-25T00:29Z", True),  # 02:29 summer time
        ("2026-10-25T00:30Z", False),
        ("2026-10-25T01:29Z", True),  # 02:29 once more, winter time
        ("2026-10-25T01:30Z", False),
    ],
)
def test_quiet_hours_follow_the_clock_on_the_wall(moment: str, quiet: bool) -> None:
    local = datetime.fromisoformat(moment).astimezone(ZoneInfo("Europe/Berlin"))

    problem = judge_hours([parse_period("sunday 01:30-02:30")], local)

    assert bool(problem) == quiet
    assert problem is None or "until 02:30." in problem.message


def test_a_program_holds_the_run_until_it_ends() -> None:
    bench = Bench(pause_while_running=("acquire.exe", "align"))

    assert not bench.look()
    bench.load.running = {"align"}
    assert bench.look(5)
    bench.load.running = {"align", "acquire.exe"}
    assert bench.look(5)
    bench.load.running = set()
    assert not bench.look(5)

    names = [e.problem.message.split()[0] for e in bench.events if isinstance(e, RunPaused)]
    assert names == ["align", "acquire.exe"]


def test_pressure_holds_the_run_until_it_has_eased() -> None:
    bench = Bench(pause_under_pressure=20)
    waits = [10, 21, 15, 11, 9, 25, 9]

    held = []
    for share in waits:
        bench.load.pressure = share
        held.append(bench.look(STEADY))

    assert held == [False, True, True, True, False, True, False]
    assert bench.told == ["limits.pressure", "RunResumed"] * 2


def test_a_verdict_on_pressure_lasts_a_while() -> None:
    strain = PressureFilter(20)

    verdicts = [strain.update(share, now) for now, share in enumerate([50, 0] * 45)]

    assert verdicts[:30] == [True] * 30
    assert sum(a != b for a, b in pairwise(verdicts)) <= 3


def test_an_unknown_pressure_is_reported_once() -> None:
    bench = Bench(pause_under_pressure=20)
    bench.load.pressure = None

    assert not bench.look()
    assert not bench.look(60)
    assert bench.told == ["limits.pressure-unknown"]


def test_reasons_come_and_go_by_themselves() -> None:
    bench = Bench(quiet_hours=("00:00-24:00",), pause_while_running=("acquire",))
    bench.load.running = {"acquire"}
    bench.look()
    bench.load.running = set()

    assert bench.look(5)
    assert bench.told == ["limits.quiet-hours", "limits.acquisition", "limits.quiet-hours"]
