"""When compressing pays, by what a session has measured; no clock, no data."""

import math

import pytest

from mydata_like.transfer.compression import Compression, estimate_overhead

MB = 1_000_000
LARGE = 100 * MB
SLOW = 12.5 * MB  # bytes a second, as 100 Mbit/s are
FAST = 800 * MB
NOW = 1000.0


def measured(rate: float) -> Compression:
    """Return what a session knows after a while on a line of this rate."""
    compression = Compression(available=True)
    compression.note_plain(40 * MB, 40 * MB / rate)
    return compression


@pytest.mark.parametrize(("ratio", "pays"), [(0.1, True), (0.5, True), (0.99, False), (1, False)])
def test_on_a_slow_line_what_shrinks_is_compressed(ratio, pays):
    assert measured(SLOW).pays(ratio, NOW) == pays


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1])
def test_on_a_fast_line_nothing_is_compressed(ratio):
    assert not measured(FAST).pays(ratio, NOW)
    assert not measured(FAST).may_suit(LARGE, NOW)


def test_a_line_of_a_gigabit_is_slow_for_text_and_not_for_what_hardly_shrinks():
    compression = measured(112 * MB)
    assert compression.pays(0.25, NOW)
    assert not compression.pays(0.7, NOW)


def test_a_busy_processor_makes_compressing_dear():
    compression = measured(112 * MB)
    compression.note_packing(8 * MB, 8 * MB / (60 * MB))
    assert not compression.pays(0.25, NOW)


def test_while_the_line_is_unknown_only_a_large_payload_is_looked_at():
    compression = Compression(available=True)
    assert compression.may_suit(LARGE, NOW)
    assert not compression.may_suit(32 * MB, NOW)
    assert not compression.pays(0.0, NOW)


def probed(*seconds: float) -> tuple[Compression, list[int]]:
    """Return what a session knows after probes that take so long, and the probes' sizes."""
    compression, sizes, rest = Compression(available=True), [], iter(seconds)

    def send(data: bytes) -> float:
        sizes.append(len(data))
        return next(rest)

    compression.probe(send)
    return compression, sizes


def test_a_probe_tells_a_slow_line_from_a_fast_one():
    slow, few = probed(0.006, 0.08)
    fast, same = probed(0.002, 0.003)
    assert few == same == [64 * 1024, 1024 * 1024]
    assert slow.may_suit(1 * MB, NOW)
    assert slow.pays(0.5, NOW)
    assert not fast.pays(0.1, NOW)
    assert not fast.may_suit(LARGE, NOW)


def test_a_very_slow_line_is_probed_with_few_bytes_and_only_once():
    compression, sizes = probed(1.0)
    compression.probe(lambda _: pytest.fail("it was probed already"))
    assert sizes == [64 * 1024]
    assert compression.pays(0.5, NOW)


def test_a_line_that_a_probe_does_not_tell_stays_unknown():
    compression, _ = probed(math.inf)
    assert not compression.is_known
    assert compression.may_suit(LARGE, NOW)
    assert not compression.may_suit(1 * MB, NOW)


def test_a_line_that_is_known_is_not_probed():
    measured(SLOW).probe(lambda _: pytest.fail("it is known"))


def test_a_few_bytes_are_not_worth_a_process_on_the_other_side():
    assert not measured(SLOW).may_suit(100_000, NOW)


def test_many_small_payloads_measure_the_connection_by_their_arrival():
    compression = Compression(available=True)
    for _ in range(18):
        compression.note_plain(1 * MB, 0.0)  # there is room for all of it at once
        compression.note_plain(0, 1 * MB / SLOW)
    assert compression.pays(0.3, NOW)


def test_small_payloads_that_never_wait_do_not_look_like_a_slow_connection():
    compression = Compression(available=True)
    for _ in range(18):
        compression.note_plain(1 * MB, 0.0)
        compression.note_plain(0, 0.0)
    assert not compression.pays(0.0, NOW)
    assert not compression.may_suit(LARGE, NOW)


def test_making_files_far_away_takes_its_time_on_any_line():
    assert estimate_overhead(1000, 0.03) >= 0.13
    assert estimate_overhead(1, 0.0) < estimate_overhead(1, 0.1) < estimate_overhead(1000, 0.1)
    assert estimate_overhead(1, math.inf) == estimate_overhead(1, 0.0)


def test_a_line_that_becomes_slow_is_noticed_within_a_few_megabytes():
    compression = measured(FAST)
    compression.note_plain(6 * MB, 6 * MB / SLOW)
    assert compression.pays(0.3, NOW)


def test_a_line_that_becomes_fast_is_noticed_while_compressing():
    compression = measured(SLOW)
    for _ in range(200):
        compression.note_packed(4 * MB, 1 * MB, 1 * MB / FAST, NOW)
    assert not compression.pays(0.25, NOW)


def test_what_pays_goes_on():
    compression = measured(SLOW)
    for _ in range(30):
        compression.note_packed(4 * MB, 1 * MB, 1 * MB / SLOW, NOW)
    assert compression.pays(0.25, NOW)


def test_where_it_is_a_near_thing_one_payload_in_a_few_goes_as_it_is():
    slow, near = measured(SLOW), measured(60 * MB)
    assert all(slow.may_suit(LARGE, NOW) for _ in range(20))
    assert [near.may_suit(LARGE, NOW) for _ in range(16)] == [*[True] * 7, False] * 2


def test_a_line_that_only_seemed_slow_at_first_is_found_out():
    compression = measured(40 * MB)
    packed = 0
    for _ in range(40):
        if compression.may_suit(LARGE, NOW):
            packed += 1
            compression.note_packing(16 * MB, 16 * MB * 3e-9)
            compression.note_packed(16 * MB, 4 * MB, 16 * MB / FAST, NOW)
        else:
            compression.note_plain(16 * MB, 16 * MB / FAST)
    assert packed < 20


def test_a_short_wait_does_not_rest_a_channel():
    compression = measured(SLOW)
    compression.note_packed(4 * MB, 1 * MB, 4 * MB / SLOW, NOW)
    assert compression.pays(0.25, NOW)


def test_what_makes_nothing_faster_rests_for_longer_each_time():
    """A slow disk on the other side looks as a slow line does."""
    compression = measured(SLOW)
    compression.note_packed(16 * MB, 4 * MB, 16 * MB / SLOW, NOW)
    assert not compression.pays(0.25, NOW + 59)
    assert not compression.may_suit(LARGE, NOW + 59)
    assert compression.pays(0.25, NOW + 61)

    compression.note_packed(16 * MB, 4 * MB, 16 * MB / SLOW, NOW + 61)
    assert not compression.pays(0.25, NOW + 61 + 119)
    assert compression.pays(0.25, NOW + 61 + 121)


def test_nothing_is_compressed_once_it_was_given_up_or_where_it_cannot_be():
    compression = measured(SLOW)
    compression.give_up()
    assert not compression.may_suit(LARGE, NOW)
    assert not Compression(available=False).may_suit(LARGE, NOW)
