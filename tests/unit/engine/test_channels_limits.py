"""The limits of a run: by the settings, by the hour of the week, by the user."""

from contextlib import ExitStack
from datetime import datetime
from random import Random

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.events import LimitsChanged
from mydata_like.core.model import Payload
from mydata_like.engine.channel_tuner import ChannelTuner
from mydata_like.engine.channels import BATCH_SECONDS, SMALL_BATCH, ChannelPool, find_planned
from mydata_like.engine.gate import Gate
from mydata_like.settings.transfer_sections import Limits as Settings
from tests.fakes.clock import FakeClock
from tests.unit.engine.files import a_wanted

MB = 1_000_000
WEEK = Settings(bandwidth=50, timetable=("monday-friday 09:00-17:00 5", "friday 16:00-23:00 0"))


@pytest.mark.parametrize(
    ("moment", "rate", "reason"),
    [
        ("2026-01-05T08:59:59", 50, "limits.bandwidth"),
        ("2026-01-05T09:00:00", 5, "limits.timetable: monday-friday 09:00-17:00 5"),
        ("2026-01-09T16:30:00", 5, "limits.timetable: monday-friday 09:00-17:00 5"),
        ("2026-01-09T17:00:00", 0, "limits.timetable: friday 16:00-23:00 0"),
        ("2026-01-10T12:00:00", 50, "limits.bandwidth"),
    ],
)
def test_the_first_period_that_covers_the_time_counts(moment, rate, reason):
    planned = find_planned(WEEK, datetime.fromisoformat(moment))

    assert planned == (rate * MB, reason)


class FixedTransport:
    capacity = 4
    round_trip = 0.0

    def open_channel(self, wanted=0):
        return self


class Bench:
    def __init__(self, channels=0, describe=str, **settings):
        self.clock = FakeClock()
        self.events = []
        emit = self.events.append
        self.gate = Gate(self.clock, self.clock.cancel(), emit, Random(1))
        self.transport = FixedTransport()
        limits = Settings(**settings)
        self.channels = ChannelPool(
            self.transport, self.gate, emit, limits, channels, describe_capacity=describe
        )

    @property
    def told(self):
        return [(event.channels, event.bandwidth / MB) for event in self.events]


@pytest.fixture
def bench():
    """A run that is limited to 5 MB/s for two hours, then to 50."""
    hour = FakeClock().now().astimezone().hour
    return Bench(bandwidth=50, timetable=(f"{hour:02d}:00-{(hour + 2) % 24:02d}:00 5",))


def test_without_limits_nothing_is_reported():
    bench = Bench()

    bench.channels.keep()

    assert bench.events == []


def test_every_change_of_period_is_reported_once(bench):
    for _ in range(5):
        bench.channels.keep()
        bench.clock.move(3600)

    assert bench.told == [(4, 5), (4, 50)]
    assert bench.events[1].reason == "limits.bandwidth"


def test_a_request_of_the_user_holds_until_the_period_changes(bench):
    bench.channels.keep()
    bench.channels.set_bandwidth(1 * MB)
    bench.clock.move(3600)
    bench.channels.keep()
    assert bench.told == [(4, 5), (4, 1)]

    bench.clock.move(3600)
    bench.channels.keep()
    assert bench.told[-1] == (4, 50)


def test_a_request_made_before_the_run_checked_applies_as_well(bench):
    bench.channels.set_bandwidth(20 * MB)
    bench.channels.keep()

    assert bench.told == [(4, 20)]


def test_channels_are_changed_within_what_can_be_borne(bench):
    bench.channels.set_channels(2)
    bench.channels.set_channels(9)

    assert [event.channels for event in bench.events] == [2, 4]
    assert "of 9" in bench.events[1].reason
    assert all(isinstance(event, LimitsChanged) for event in bench.events)


def test_more_channels_than_the_processors_support_are_reported_once_when_one_is_open():
    why = "4 channels over 1 session (2 processors here, 1 there)"
    bench = Bench(channels=32, describe=lambda: why)

    for _ in range(2):
        assert bench.channels.open_another()

    assert bench.told == [(4, 0)]
    assert bench.events[0].reason == f"of 32, this computer and the staging host allow 4: {why}"


class Climbing(Bench):
    """A run whose channels are found, each of which carries 10 MB a second."""

    def __init__(self):
        super().__init__(ChannelTuner())

    @property
    def count(self):
        return self.channels.limit

    def go(self, seconds):
        for _ in range(seconds * 2):
            gauge = self.channels.gauge
            with ExitStack() as channels:
                for _ in range(self.count):
                    channels.enter_context(gauge.one_at_work())
                self.clock.move(0.5)
                gauge.add(self.count * 5 * MB, 1)
            self.channels.keep()


def test_the_channels_begin_with_two_and_climb_while_that_pays():
    bench = Climbing()
    assert bench.count == 2

    bench.go(20)

    assert bench.told == [(4, 0)]
    assert bench.events[0].reason == "2 channels carry 20.0 MB/s: trying 4"


def test_with_a_long_round_trip_channels_begin_with_more_once_it_is_measured():
    bench = Climbing()
    bench.go(1)
    bench.transport.round_trip = 0.028

    bench.channels.keep()

    assert bench.told == [(4, 0)]
    assert bench.events[0].reason == "a round trip takes 28 ms: starting with 4"


LARGE = Payload(1, (a_wanted("large", size=100 * MB),), batched=False)


class Carrier:
    number = 1

    def limit(self, rate):
        pass


def test_on_a_slow_line_a_run_starts_with_few_channels_until_something_has_arrived():
    bench = Climbing()
    bench.transport.round_trip = 0.028
    with bench.channels.carrying(Carrier(), LARGE) as reach, bench.channels.gauge.one_at_work():
        for second in range(1, 30):
            bench.clock.move(1)
            reach(second * MB)
            bench.channels.keep()
            assert bench.count == 2

    assert bench.told == [(4, 0)]


def test_on_a_fast_line_a_run_starts_with_more_channels_before_anything_has_arrived():
    bench = Climbing()
    with bench.channels.carrying(Carrier(), LARGE) as reach, bench.channels.gauge.one_at_work():
        bench.clock.move(0.1)
        reach(4 * MB)  # as much as the connection may have taken at once
        assert bench.count == 2
        reach(10 * MB)
        assert bench.events[0].reason == "large files: starting with 4"


def test_a_batch_is_as_large_as_what_a_channel_sends_in_some_seconds():
    bench = Bench(2)
    gauge = bench.channels.gauge
    assert bench.channels.find_batch_size() == SMALL_BATCH

    for _ in range(120):
        bench.clock.move(0.5)
        gauge.add(1 * MB, 0)
        bench.channels.keep()
    assert bench.channels.find_batch_size() == pytest.approx(BATCH_SECONDS * 1 * MB, rel=0.01)

    bench.gate.hold("person", Problem("run.paused", "The user paused the run."))
    bench.clock.move(600)
    bench.channels.keep()
    assert bench.channels.find_batch_size() == pytest.approx(BATCH_SECONDS * 1 * MB, rel=0.01)


def test_the_user_sets_the_number_and_releases_it():
    bench = Climbing()
    bench.channels.set_channels(1)
    bench.go(60)
    assert bench.told == [(1, 0)]

    bench.channels.set_channels(0)
    bench.go(20)

    assert [channels for channels, _ in bench.told] == [1, 1, 2, 4]


def test_nothing_is_learnt_while_the_run_waits():
    bench = Climbing()
    bench.gate.hold("person", Problem("run.paused", "The user paused the run."))
    bench.events.clear()

    bench.go(60)

    assert bench.events == []
