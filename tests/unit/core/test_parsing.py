"""Text from outside: bounded, and `ValueError` is all that is raised."""

import re
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mydata_like.core.parsing import moment_of, parse_count, parse_json, parse_moment

PROGRAM = Path(__file__).parents[3] / "mydata_like"
# The places that check what they read, and those that read what the program has just written.
OWN = {
    "core/parsing.py",
    "settings/schema.py",
    "selftest/checks.py",
    "catalogues/mytardis/client.py",
    "catalogues/manifest/withdrawal.py",  # on the host
}

BAD = {
    "nothing": b"",
    "cut": b'{"a": ',
    "deep lists": b"[" * 100_000,
    "deep records": b'{"a":' * 100_000,
    "no UTF-8": b'"\xff"',
    "half a character as bytes": b'"\xed\xa0\x80"',
    "not a number": b"[NaN]",
    "infinity": b"[Infinity]",
    "a number that is not finite": b"[1e999]",
    "5000 digits": b"1" * 5000,
    "too long": b'"' + b"a" * 2_000_000 + b'"',
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_invalid_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_a_byte_order_mark_is_not_part_of_the_text():
    assert parse_json(b'\xef\xbb\xbf{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}


@pytest.mark.parametrize("filling", [b'{"":0},', b"[],", b'"ab",', b"1.5,"])
def test_a_text_of_very_many_values_takes_no_memory(filling):
    text = b"[" + filling * (16_000_000 // len(filling)) + b"0]"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more values"):
            parse_json(text, longest=len(text))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        "0000-01-01",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "9999-12-31",
        "1969-12-31T00:00:00+00:00",
        "yesterday",
        "",
        None,
        17,
        "9" * 5000,
    ],
)
def test_a_time_beyond_use_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_moment(text)


def test_a_time_is_utc():
    assert parse_moment("2026-11-22T12:00:00+02:00") == datetime(2026, 11, 22, 10, tzinfo=UTC)
    assert parse_moment("2026-11-22T12:00:00").tzinfo is UTC


@pytest.mark.parametrize(
    ("seconds", "year"),
    [(0, 1970), (2**63, 9999), (-(2**63), 1), (1e300, 9999), (float("nan"), 1970)],
)
def test_a_number_of_seconds_is_the_nearest_time(seconds, year):
    assert moment_of(seconds).year == year


@pytest.mark.parametrize(
    ("text", "count"),
    [(b"0", 0), (b"12", 12), (b"", None), (b"-1", None), (b"\xb2", None), (b"9" * 19, None)],
)
def test_a_count_has_few_digits(text, count):
    assert parse_count(text) == count


def test_json_from_outside_is_read_in_one_place():
    found = {
        path.relative_to(PROGRAM).as_posix()
        for path in PROGRAM.rglob("*.py")
        if re.search(r"json\.loads?\(|from json import", path.read_text("utf-8"))
    }

    assert {name for name in found if not name.startswith("demo/")} <= OWN
