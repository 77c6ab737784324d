"""The chart of what the channels carry."""

import pytest

from mydata_like.gui.overview.throughput_chart import (
    MAX_BANDS,
    MIN_SPAN,
    ThroughputChart,
    choose_step,
    stack_samples,
)
from mydata_like.gui.run_state import ChannelRates
from mydata_like.gui.theme.colours import accent

MB = 1e6


def test_layers_are_sums_of_the_channels_below():
    stack = stack_samples(
        [ChannelRates(10.0, {1: 2 * MB, 2: 3 * MB}), ChannelRates(11.0, {2: 4 * MB})]
    )

    assert stack.ages == [1.0, 0.0]
    assert stack.layers == [[2.0, 1.0], [5.0, 4.5]]  # averages
    assert stack.channels == [1, 2]
    assert stack.span == MIN_SPAN


def test_each_point_is_the_average_of_the_seconds_before_it():
    rates = 9.0, 0.0, 0.0, 0.0, 3.0

    stack = stack_samples([ChannelRates(at, {1: rate * MB}) for at, rate in enumerate(rates)])

    assert stack.layers == [[9.0, 4.5, 3.0, 0.0, 1.0]]
    assert stack.latest == 1.0


@pytest.mark.parametrize(("size", "counts_files"), [(3_000, True), (3_000_000, False)])
def test_of_tiny_files_their_number_is_drawn(qtbot, size, counts_files):
    chart = ThroughputChart()
    qtbot.addWidget(chart)
    samples = [ChannelRates(at, {1: 200.0 * size, 2: 300.0 * size}, 500.0) for at in range(9)]

    chart.show_samples(samples)

    assert stack_samples(samples).counts_files is counts_files
    assert chart.accessibleDescription() == ("500 files/s" if counts_files else "1.5 GB/s")


def test_further_channels_share_the_last_band():
    channels = MAX_BANDS + 3

    stack = stack_samples([ChannelRates(0.0, dict.fromkeys(range(channels), MB))])

    assert len(stack.layers) == MAX_BANDS
    assert stack.layers[-1] == [channels]


def test_only_the_last_two_minutes_are_shown():
    stack = stack_samples([ChannelRates(at, {1: MB}) for at in (0.0, 100.0, 200.0)])

    assert stack.ages == [100.0, 0.0]
    assert stack.span == 120.0


@pytest.mark.parametrize(
    ("top", "step"), [(1.1, 0.5), (0.9, 0.2), (5.0, 1.0), (110.0, 50.0), (999.0, 200.0)]
)
def test_lines_across_are_round_numbers(top, step):
    assert choose_step(top) == pytest.approx(step)


@pytest.mark.parametrize("samples", [[], [ChannelRates(5.0, {})], [ChannelRates(5.0, {1: 0.0})]])
def test_nothing_carried_draws_nothing_in_the_colour_of_channels(qtbot, samples):
    assert accent().rgb() not in colours(draw(qtbot, samples))


def test_what_a_channel_carried_is_drawn_from_the_right(qtbot):
    picture = draw(qtbot, [ChannelRates(at / 2, {1: 50 * MB}) for at in range(20)])

    right, left = picture.width() * 9 // 10, picture.width() // 4
    assert accent().rgb() in colours(picture.copy(right, 0, 1, picture.height()))
    assert accent().rgb() not in colours(picture.copy(left, 0, 1, picture.height()))


def draw(qtbot, samples):
    """Return a picture of the chart without the line that has the legend."""
    chart = ThroughputChart()
    qtbot.addWidget(chart)
    chart.resize(600, 200)
    chart.show_samples(samples)
    picture = chart.grab().toImage()
    head = chart.fontMetrics().height() * 2
    return picture.copy(0, head, picture.width(), picture.height() - head)


def colours(picture):
    """Return the colours of a picture, as 0xAARRGGBB."""
    return {picture.pixel(x, y) for x in range(picture.width()) for y in range(picture.height())}
