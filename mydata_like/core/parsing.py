"""Parsers for untrusted text, bounded in size and depth; they raise only `ValueError`.

Every reply, file or line that others may have written is parsed here first. JSON is that of RFC
8259, times are those of ISO 8601 as `datetime.fromisoformat` parses them.
"""

import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NoReturn

# The limits on containers and values of a document. Without them, a short text could need thirty
# times its size in memory. A page of the API has 5,000 containers and 20,000 values.
MOST_CONTAINERS: Final = 400_000
MOST_VALUES: Final = 2_000_000
LONGEST_FILE: Final = 1024 * 1024  # bytes of a small state file; most have 1 kB

# Margins on both sides, so that an hour or a month can be added to any time.
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
_FIRST_SECOND: Final = -62_135_596_800  # of the year 1
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999
_LONGEST_NUMBER: Final = 20  # characters; a signed 64-bit number
_COUNT: Final = re.compile(rb"[0-9]{1,18}")  # below 2**63


def parse_json(text: bytes | str, *, longest: int = LONGEST_FILE) -> Any:
    """Return the value of a JSON text of at most `longest` bytes or characters.

    Numbers are finite. Raises ValueError for anything else.
    """
    check_amount(text, longest)
    plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        return _DECODER.decode(plain)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def check_amount(text: bytes | str, longest: int) -> None:
    """Raise ValueError for a JSON text with too many characters or values."""
    if len(text) > longest:
        raise ValueError(f"longer than {longest} bytes")
    count = text.count if isinstance(text, bytes) else lambda mark: text.count(mark.decode())
    if count(b"{") + count(b"[") > MOST_CONTAINERS or count(b",") > MOST_VALUES:
        raise ValueError("more values than the limit")


def parse_moment(text: object) -> datetime:
    """Return a time from 1970 to 8999 as aware UTC; a time without a zone is local.

    Raises ValueError.
    """
    if not isinstance(text, str):
        raise ValueError(f"a {type(text).__name__} instead of a time")  # noqa: TRY004
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (OverflowError, OSError):  # outside the supported years once its zone is applied
        raise ValueError("a time outside the supported years") from None
    if not _EPOCH <= moment < _LATEST:
        raise ValueError("a time before 1970 or after 8999")
    return moment


def parse_count(text: bytes) -> int | None:
    """Return a number of at most 18 decimal digits; None for any other text."""
    return int(text) if _COUNT.fullmatch(text) else None


def find_moment(text: str) -> datetime | None:
    """Return a time as `parse_moment` does, None if the text is none."""
    try:
        return parse_moment(text)
    except ValueError:
        return None


def moment_of(seconds: float) -> datetime:
    """Return the time this many seconds after the start of 1970 (UTC), or the nearest valid one.

    File systems and databases may contain numbers outside the range of dates.
    """
    if math.isnan(seconds):
        seconds = 0
    return _EPOCH + timedelta(seconds=min(max(seconds, _FIRST_SECOND), _LAST_SECOND))


def moment_of_ns(nanoseconds: int) -> datetime:
    """Return a file's time, in nanoseconds since the start of 1970 (UTC), to the microsecond."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is not finite")
    return number


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number with too many digits")
    return int(text)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_refuse)
