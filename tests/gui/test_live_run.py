"""What the window reads of its engine, and the throughput that it shows."""

from dataclasses import replace

import pytest

from mydata_like.core.events import (
    RunResumed,
    TransferFinished,
    TransferProgressed,
    TransferStarted,
    event_record,
)
from mydata_like.core.formatting import format_json
from mydata_like.engine.progress import NO_PROGRESS
from mydata_like.gui.engine_process import parse_line
from mydata_like.gui.run_state import (
    HISTORY_SECONDS,
    LASTING,
    RISE_SECONDS,
    ChannelRates,
    LiveRun,
    Rise,
    explain_rise,
)
from tests.fakes.clock import FakeClock


def started(number, channel=1):
    return TransferStarted(transfer=number, channel=channel, name=b"a", files=1, bytes=1000)


def progressed(number, size, channel=1):
    return TransferProgressed(transfer=number, channel=channel, bytes=size)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def run(clock):
    return LiveRun(clock)


def add(run, *events):
    for event in events:
        run.progress.add(event)


def test_each_sample_has_the_channels_that_carried_something_since_the_previous_one(run, clock):
    add(run, started(1), started(2, channel=2), progressed(1, 300), progressed(2, 100, channel=2))
    clock.move(1)
    run.sample()
    add(run, TransferFinished(transfer=1, channel=1, files=1, bytes=1000, seconds=2.0))
    clock.move(2)
    run.sample()

    assert [sample.rates for sample in run.view().samples] == [{1: 300.0, 2: 100.0}, {1: 350.0}]


def test_a_sample_is_never_about_a_moment_too_short(run, clock):
    add(run, started(1), progressed(1, 300))
    clock.move(0.1)
    run.sample()
    assert run.view().samples == ()

    clock.move(0.9)
    run.sample()
    assert run.view().samples == (ChannelRates(clock.monotonic(), {1: 300.0}),)


def test_only_the_last_minutes_are_kept(run, clock):
    for _ in range(int(HISTORY_SECONDS) + 10):
        clock.move(1)
        run.sample()

    assert len(run.view().samples) == HISTORY_SECONDS + 1


def test_the_speed_of_a_transfer_approaches_that_of_its_channel(run, clock):
    add(run, started(1))
    for second in range(1, 21):
        add(run, progressed(1, 40 * second))
        clock.move(1)
        run.sample()

    (transfer,) = run.view().transfers
    assert transfer.rate == pytest.approx(40, rel=0.01)
    assert transfer.done == 800


@pytest.mark.parametrize(
    "change",
    [{"event": "run_begun"}, {"bytes": "many"}, {"bytes": None}, {"transfer": True}],
)
def test_a_line_that_this_version_cannot_read_is_left_out(change):
    record = event_record(progressed(1, 5)) | change

    assert parse_line(format_json(record).encode()) is None


def test_a_line_of_a_later_version_is_read_without_what_is_new():
    record = event_record(RunResumed()) | {"reason": "a person"}

    assert parse_line(format_json(record).encode()) == RunResumed()


@pytest.mark.parametrize("line", [b"", b"[]", b"7", b"{}", b'{"event": []}', b"Traceback"])
def test_a_line_that_is_not_an_event_is_left_out(line):
    assert parse_line(line) is None


REPORT = replace(
    NO_PROGRESS,
    remaining=120.0,
    wanted=100,
    sent=10,
    wanted_bytes=10**8,
    byte_rate=2e6,
    file_rate=3.0,
)


@pytest.mark.parametrize(
    ("changes", "rise"),
    [
        ({"remaining": 170.0}, Rise.NONE),  # less than a half
        ({"remaining": None}, Rise.NONE),
        ({"remaining": 190.0, "wanted_bytes": 2 * 10**8}, Rise.FOUND),
        ({"remaining": 190.0, "wanted": 200}, Rise.FOUND),
        ({"remaining": 190.0, "byte_rate": 1e6}, Rise.SLOWER),
        ({"remaining": 190.0, "file_rate": 1.0}, Rise.REST),  # the files are larger
        ({"remaining": 190.0, "byte_rate": 1e6, "file_rate": 9.0}, Rise.REST),  # they are smaller
        ({"remaining": 190.0, "sent": 100}, Rise.SERVER),
    ],
)
def test_a_rise_of_the_time_left_has_a_reason(changes, rise):
    assert explain_rise(REPORT, replace(REPORT, **changes)) is rise


def test_a_rise_of_less_than_a_minute_needs_no_reason():
    small = replace(REPORT, remaining=10.0)
    more = replace(small, remaining=60.0, wanted=200)

    assert explain_rise(small, more) is Rise.NONE
    assert explain_rise(small, replace(more, remaining=75.0)) is Rise.FOUND


def test_a_rise_counts_from_the_lowest_estimate_of_the_last_seconds(run, clock):
    def report(remaining, rate=2e6):
        run.progress.add(replace(REPORT, remaining=remaining, byte_rate=rate))
        clock.move(1)
        run.sample()

    report(120.0)
    report(90.0)
    for _ in range(int(LASTING)):  # a rise that does not last
        report(160.0, 1e6)
    report(91.0)
    assert run.rise is Rise.NONE
    for _ in range(int(LASTING) + 1):
        report(160.0, 1e6)
    assert run.rise is Rise.SLOWER

    clock.move(RISE_SECONDS + 1)
    run.sample()
    assert run.rise is Rise.NONE
