"""Text from outside as values: bounded in size and depth, and `ValueError` is all that is raised.

All that reads a reply, a file or a line which others may have written begins here. JSON is that of
RFC 8259, times are those of ISO 8601 as `datetime.fromisoformat` reads them.
"""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

# A document holds no more lists and records than this, and no more values: a short text could
# else need thirty times its size in memory. A page of the API has 5,000 and 20,000 of them.
MOST_CONTAINERS: Final = 400_000
MOST_VALUES: Final = 2_000_000
LONGEST_FILE: Final = 1024 * 1024  # bytes of a small file of the state; the usual ones have 1 kB

# Room on both sides, so that an hour or a month can be added to any moment.
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
_FIRST_SECOND: Final = -62_135_596_800  # of the year 1
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999
_LONGEST_NUMBER: Final = 20  # characters; that of 64 bits, with its sign
_COUNT: Final = re.compile(rb"[0-9]{1,18}")  # below 2**63


def parse_json(text: bytes | str, *, longest: int = LONGEST_FILE) -> Any:
    """Return the value of a JSON text that is at most `longest` bytes or characters long.

    Numbers are finite. Raises ValueError for everything else.
    """
    check_amount(text, longest)
    plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        return _DECODER.decode(plain)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def check_amount(text: bytes | str, longest: int) -> None:
    """Raise ValueError for a JSON text that is longer, or has more values, than is sensible."""
    if len(text) > longest:
        raise ValueError(f"longer than {longest} bytes")
    count = text.count if isinstance(text, bytes) else lambda mark: text.count(mark.decode())
    if count(b"{") + count(b"[") > MOST_CONTAINERS or count(b",") > MOST_VALUES:
        raise ValueError("more values than any sensible document has")


def parse_moment(text: object) -> datetime:
    """Return a time from 1970 to 8999 as aware UTC; one without a zone is of this computer's.

    Raises ValueError.
    """
    if not isinstance(text, str):
        raise ValueError(f"a {type(text).__name__} instead of a time")  # noqa: TRY004
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (OverflowError, OSError):  # with its zone it lies outside of all calendars
        raise ValueError("a time beyond all calendars") from None
    if not _EARLIEST <= moment < _LATEST:
        raise ValueError("a time before 1970 or after 8999")
    return moment


def parse_count(text: bytes) -> int | None:
    """Return a number of at most 18 decimal digits; None for anything else."""
    return int(text) if _COUNT.fullmatch(text) else None


def moment_of(seconds: float) -> datetime:
    """Return the time so many seconds after the beginning of 1970 (UTC), the nearest there is.

    File systems and databases keep numbers that lie beyond every calendar.
    """
    if math.isnan(seconds):
        seconds = 0
    return datetime.fromtimestamp(min(max(seconds, _FIRST_SECOND), _LAST_SECOND), UTC)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number without end")
    return number


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number with too many digits")
    return int(text)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_refuse)
