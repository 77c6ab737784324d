"""Parts of the week as settings write them."""

from datetime import datetime

import pytest

from mydata_like.settings.schedule_section import find_end, parse_period, parse_speed

FRIDAY_NOON = datetime(2026, 11, 20, 12, 0)  # noqa: DTZ001  # local wall-clock time
FRIDAY_NIGHT = datetime(2026, 11, 20, 23, 0)  # noqa: DTZ001
SATURDAY_EARLY = datetime(2026, 11, 21, 5, 59)  # noqa: DTZ001
SATURDAY_NOON = datetime(2026, 11, 21, 12, 0)  # noqa: DTZ001
MONDAY_EARLY = datetime(2026, 11, 23, 3, 0)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "within", "without"),
    [
        ("monday-friday 09:00-17:00", FRIDAY_NOON, SATURDAY_NOON),
        ("friday 22:00-06:00", SATURDAY_EARLY, MONDAY_EARLY),
        ("Fri 22:00-06:00", FRIDAY_NIGHT, FRIDAY_NOON),
        ("sat-sun 00:00-24:00", SATURDAY_NOON, FRIDAY_NIGHT),
        ("friday-monday 02:00-04:00", MONDAY_EARLY, FRIDAY_NOON),
        ("22:00-06:00", MONDAY_EARLY, SATURDAY_NOON),
        ("9:00-9:00", SATURDAY_EARLY, None),
    ],
)
def test_a_period_covers_what_it_says(
    text: str, within: datetime, without: datetime | None
) -> None:
    period = parse_period(text)
    assert period.covers(within)
    assert without is None or not period.covers(without)


def test_the_end_is_not_within() -> None:
    period = parse_period("09:00-12:00")
    assert not period.covers(FRIDAY_NOON)
    assert parse_period("12:00-13:00").covers(FRIDAY_NOON)


def test_a_speed_is_in_bytes() -> None:
    speed = parse_speed("monday-friday 09:00-17:00 2.5")
    assert speed.bytes_per_second == 2_500_000
    assert speed.period == parse_period("monday-friday 09:00-17:00")


@pytest.mark.parametrize(
    "text",
    ["", "09:00", "someday 09:00-10:00", "25:00-26:00", "9-17", "09:61-10:00", "24:01-25:00"],
)
def test_an_invalid_period_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_period(text)


@pytest.mark.parametrize("text", ["", "5", "09:00-10:00", "09:00-10:00 fast", "09:00-10:00 -1"])
def test_an_invalid_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_speed(text)


@pytest.mark.parametrize(
    ("periods", "moment", "end"),
    [
        (["09:00-17:00"], FRIDAY_NOON, datetime(2026, 11, 20, 17, 0)),  # noqa: DTZ001
        (["friday 22:00-06:00"], FRIDAY_NIGHT, datetime(2026, 11, 21, 6, 0)),  # noqa: DTZ001
        (["friday 22:00-06:00"], SATURDAY_EARLY, datetime(2026, 11, 21, 6, 0)),  # noqa: DTZ001
        (["09:00-13:00", "12:30-14:00"], FRIDAY_NOON, datetime(2026, 11, 20, 14, 0)),  # noqa: DTZ001
        (["fri 22:00-24:00", "sat 00:00-24:00"], FRIDAY_NIGHT, datetime(2026, 11, 22)),  # noqa: DTZ001
        (["sat-sun 00:00-24:00"], SATURDAY_NOON, datetime(2026, 11, 23)),  # noqa: DTZ001
        (["9:00-9:00"], FRIDAY_NOON, None),
        (["09:00-17:00"], FRIDAY_NIGHT, FRIDAY_NIGHT),
    ],
)
def test_the_end_is_when_no_period_covers_us_any_more(
    periods: list[str], moment: datetime, end: datetime | None
) -> None:
    assert find_end([parse_period(text) for text in periods], moment) == end
