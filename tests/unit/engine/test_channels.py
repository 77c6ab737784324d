"""What all channels may use together, and who gets how much of it."""

from math import inf

import pytest

from mydata_like.engine.channels import Bandwidth, divide
from tests.fakes.clock import FakeClock

MB = 1_000_000


class Line:
    """A channel that keeps what it was allowed."""

    def __init__(self, number):
        self.number = number
        self.told = []

    def limit(self, rate):
        self.told.append(rate)

    @property
    def rate(self):
        return self.told[-1]


@pytest.mark.parametrize(
    ("demands", "shares"),
    [
        ([], []),
        ([inf], [12]),
        ([inf, inf, inf], [4, 4, 4]),
        ([1, inf, inf], [1, 5.5, 5.5]),
        ([5, 1, inf], [5, 1, 6]),
        ([1, 2], [5.5, 6.5]),
        ([4, 4, 4], [4, 4, 4]),
    ],
)
def test_a_total_is_divided_fairly_and_wholly(demands, shares):
    assert divide(12.0, demands) == pytest.approx(shares)
    assert sum(divide(12.0, demands)) == pytest.approx(12.0 if demands else 0)


def test_without_a_total_nothing_is_limited():
    assert divide(0.0, [inf, 3]) == [0, 0]


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def bandwidth(clock):
    return Bandwidth(clock)


def test_channels_at_work_share_it_equally(bandwidth):
    bandwidth.change(10 * MB)
    one, two = Line(1), Line(2)

    with bandwidth.used_by(one):
        assert one.rate == 10 * MB
        with bandwidth.used_by(two):
            assert (one.rate, two.rate) == (5 * MB, 5 * MB)


def test_a_change_reaches_channels_at_work(bandwidth):
    line = Line(1)
    with bandwidth.used_by(line):
        assert line.rate == 0
        bandwidth.change(3 * MB)
        assert line.rate == 3 * MB
        bandwidth.change(0)
        assert line.rate == 0


def test_what_one_leaves_goes_to_the_other_and_comes_back(bandwidth, clock):
    bandwidth.change(10 * MB)
    slow, quick = Line(1), Line(2)
    with bandwidth.used_by(slow) as slowly, bandwidth.used_by(quick) as quickly:
        clock.move(1)
        slowly.reach(1 * MB)
        quickly.reach(5 * MB)
        bandwidth.divide_anew()
        assert slow.rate == pytest.approx(1.3 * MB)
        assert quick.rate == pytest.approx(8.7 * MB)

        clock.move(1)
        slowly.reach(1 * MB + 1.3 * MB)
        quickly.reach(5 * MB + 8.7 * MB)
        bandwidth.divide_anew()
        assert (slow.rate, quick.rate) == (5 * MB, 5 * MB)


def test_a_channel_that_ended_leaves_its_share(bandwidth, clock):
    bandwidth.change(10 * MB)
    one, two = Line(1), Line(2)
    with bandwidth.used_by(one) as meter:
        with bandwidth.used_by(two):
            pass
        clock.move(1)
        meter.reach(5 * MB)
        bandwidth.divide_anew()

        assert one.rate == 10 * MB


def test_short_rests_between_payloads_change_nothing(bandwidth):
    bandwidth.change(10 * MB)
    one, two = Line(1), Line(2)
    with bandwidth.used_by(one):
        for _ in range(50):
            with bandwidth.used_by(two):
                pass

        assert (len(one.told), len(two.told)) == (2, 1)


def test_the_shares_of_those_at_work_never_exceed_the_total(bandwidth, clock):
    bandwidth.change(10 * MB)
    lines = [Line(number) for number in range(5)]
    for step in range(40):
        one, two = lines[step % 5], lines[(step + 1) % 5]
        with bandwidth.used_by(one) as meter, bandwidth.used_by(two):
            assert one.rate + two.rate <= 10.1 * MB
            clock.move(0.5)
            meter.reach(step * 100_000)
            bandwidth.divide_anew()
            assert one.rate + two.rate <= 10.1 * MB
