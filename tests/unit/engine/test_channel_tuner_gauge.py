"""Gauging what the channels carry: bytes, files, and how long they were at work."""

import pytest

from mydata_like.core.model import Payload
from mydata_like.engine.channel_tuner import ThroughputMeter, TransferProgress
from tests.fakes.clock import FakeClock
from tests.unit.engine.files import a_wanted


@pytest.fixture
def clock():
    return FakeClock()


def payload(*sizes):
    members = (a_wanted(f"{n}", size=size) for n, size in enumerate(sizes))
    return Payload(1, tuple(members), batched=True)


def test_each_channel_counts_while_it_is_at_work(clock):
    gauge = ThroughputMeter(clock)
    with gauge.one_at_work():
        clock.move(1)
        with gauge.one_at_work():
            clock.move(2)
    clock.move(10)

    assert gauge.read() == (13, 0, 0, 5, None)


def test_files_of_a_batch_go_with_its_bytes(clock):
    gauge = ThroughputMeter(clock)
    progress = TransferProgress(gauge, payload(30, 10))

    progress.reach(10)
    progress.reach(10)
    assert gauge.read()[1:3] == (10, 0.5)
    progress.reach(40)
    assert gauge.read()[1:3] == (40, 2)


def test_bytes_that_need_not_be_sent_are_not_counted(clock):
    gauge = ThroughputMeter(clock)
    progress = TransferProgress(gauge, payload(30, 10))

    progress.reach(20, 20)
    assert gauge.read()[1:3] == (0, 0)
    progress.reach(30, 20)
    assert gauge.read()[1:3] == (10, 1)
    progress.reach(40, 20)
    assert gauge.read()[1:3] == (20, 2)


def test_a_payload_of_which_nothing_is_sent_counts_by_its_files(clock):
    gauge = ThroughputMeter(clock)
    progress = TransferProgress(gauge, payload(30, 10))

    progress.reach(40, 40)

    assert gauge.read()[1:3] == (0, 2)


def test_files_without_a_byte_count_once(clock):
    gauge = ThroughputMeter(clock)
    progress = TransferProgress(gauge, payload(0, 0, 0))

    progress.reach(0)
    progress.reach(0)

    assert gauge.read()[1:3] == (0, 3)
