"""Values formatted for display: paths, sizes, times."""

import json
import math
import unicodedata
from datetime import datetime
from typing import Final

from mydata_like.core.parsing import find_moment

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
# The bottlenecks of a run, by their names in docs/events.md.
LIMITS: Final = {
    "source": "the disk of this computer",
    "processor": "the processors of this computer",
    "line": "the network, or an overloaded server",
    "channels": "the latency to the server",
    "server": "the server that stores the files",
    "bandwidth": "the configured bandwidth",
    "API": "the server's responses to requests",
    "verification": "the server's verification",
}


def format_files(number: int) -> str:
    """Return a number of files, as in `1 file` or `2,400 files`."""
    return "1 file" if number == 1 else f"{number:,} files"


def format_path(path: bytes) -> str:
    r"""Return a path as plain text; invalid bytes and control characters become \xNN."""
    return format_text(path.decode("utf-8", "backslashreplace"))


def format_text(text: str) -> str:
    r"""Return external text as plain text; control characters become \xNN or similar."""
    return text if text.isprintable() else "".join(map(_visible, text))


def format_lines(text: str) -> str:
    """Return text as `format_text` does, but keep line breaks."""
    if text.isprintable():
        return text
    return "\n".join(map(format_text, text.split("\n")))


def format_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON in which all control characters are escaped.

    JSON itself only escapes those of ASCII below U+0020. DEL, the C1 controls, U+2028, U+202E and
    similar remain, which a terminal or a line-based program may interpret.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    return "".join(_escape_json(character) for character in text)


def _visible(character: str) -> str:
    if _is_hidden(character):
        return character.encode("unicode_escape").decode("ascii")
    return character


def _escape_json(character: str) -> str:
    if _is_hidden(character) and character != "\n":  # which only occurs between values
        return json.dumps(character)[1:-1]
    return character


def _is_hidden(character: str) -> bool:
    """Return whether a character has no glyph but may change how text is displayed."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def format_size(size: float) -> str:
    """Return a number of bytes in decimal units, such as `12.3 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def format_day(moment: datetime) -> str:
    """Return the local day of a time, such as `3 November 2026`."""
    local = moment.astimezone()
    return f"{local.day} {_MONTHS[local.month - 1]} {local.year}"


def format_earlier(size: int, verified_at: str) -> str:
    """Return earlier content in words, such as `1.2 MB, verified on 3 November 2026`.

    `verified_at` is the server's text; without a time zone, the day is that of its own clock.
    """
    moment = find_moment(verified_at)
    verified = f"verified on {format_day(moment)}" if moment else "not verified"
    return f"{format_size(size)}, {verified}"


def round_estimate(seconds: float) -> float:
    """Return an estimated duration without digits that nobody can know: 10 s, 5 min, 1 h 15 min."""
    for limit, step in ((60, 10), (600, 60), (3600, 300), (6 * 3600, 900)):
        if seconds <= limit:
            return max(step, math.ceil(seconds / step) * step)
    return math.ceil(seconds / 3600) * 3600


def format_days_ago(then: datetime, now: datetime) -> str:
    """Return how long ago a day was, such as `today` or `4 days ago`, in local time."""
    days = (now.astimezone().date() - then.astimezone().date()).days
    return "today" if days < 1 else "1 day ago" if days == 1 else f"{days:,} days ago"


def format_duration(seconds: float) -> str:
    """Return a duration such as `4 min 05 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    if minutes:
        return f"{minutes} min {rest:02d} s"
    return f"{seconds:.1f} s" if seconds < 10 else f"{rest} s"
