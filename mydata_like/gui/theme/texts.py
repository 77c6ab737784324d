"""Numbers, sizes, times and external texts, formatted in the language of the window."""

import re
from datetime import date, datetime
from html import escape
from typing import Protocol

from PySide6.QtCore import QCoreApplication, QDate, QDateTime, QLocale

from mydata_like.core.formatting import LIMITS, format_path, format_text
from mydata_like.gui.theme.engine_translator import CONTEXT as ENGINE_CONTEXT
from mydata_like.settings.schema import CONTEXT as SETTINGS_CONTEXT
from mydata_like.settings.schema import settings_by_key

translate = QCoreApplication.translate
look_up = QCoreApplication.translate  # for texts that are defined outside the window

_KEY = re.compile(r"\b[a-z]+\.[a-z0-9_]+\b")  # of a setting
LONGEST = 2000  # maximum characters of an external text that are shown


class Described(Protocol):
    """A problem, an error, or a row of a table with the problem of a file."""

    @property
    def message(self) -> str: ...

    @property
    def hint(self) -> str: ...


def count(number: int) -> str:
    """Return a whole number, as in `12,481`."""
    return QLocale().toString(number)


def decimal(number: float) -> str:
    """Return a number with as many digits as it needs, as in `0.2`."""
    return QLocale().toString(number, "g", 4)


def size(number: float) -> str:
    """Return a number of bytes in decimal units, as in `1.2 GB`."""
    units = QLocale.DataSizeFormat.DataSizeSIFormat
    return QLocale().formattedDataSize(int(number), 0 if number < 1000 else 1, units)


def rate(bytes_a_second: float) -> str:
    """Return a speed, as in `11.4 MB/s`."""
    return translate("words", "%1/s").replace("%1", size(bytes_a_second))


def span(seconds: float) -> str:
    """Return a rounded time span, as in `4 min`."""
    minutes = round(seconds / 60)
    if seconds < 55:
        return translate("words", "%1 s").replace("%1", count(max(0, round(seconds))))
    if minutes < 60:
        return translate("words", "%1 min").replace("%1", count(minutes))
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return (
            translate("words", "%1 h %2 min")
            .replace("%1", count(hours))
            .replace("%2", f"{minutes:02d}")
        )
    return translate("words", "%1 days").replace("%1", count(round(hours / 24)))


def clock(time: datetime) -> str:
    """Return the local time of day, as in `14:05`."""
    shown = QDateTime.fromSecsSinceEpoch(int(time.timestamp())).time()
    return QLocale().toString(shown, QLocale.FormatType.ShortFormat)


def moment(time: datetime, now: datetime | None = None) -> str:
    """Return a point in time in local time, as in `today 14:05` or `Mon 2 Mar 14:05`."""
    local = time.astimezone()
    here = (now or datetime.now(tz=local.tzinfo)).astimezone(local.tzinfo)
    shown = QDateTime.fromSecsSinceEpoch(int(local.timestamp()))
    days = (here.date() - local.date()).days
    near = {
        0: translate("words", "today %1"),
        1: translate("words", "yesterday %1"),
        -1: translate("words", "tomorrow %1"),
    }
    if days in near:
        return near[days].replace("%1", clock(time))
    short, full = translate("dates", "ddd d MMM"), translate("dates", "d MMM yyyy")
    pattern = short if local.year == here.year else full
    return f"{QLocale().toString(shown, pattern)} {clock(time)}"


def day(shown: date, today: date) -> str:
    """Return a day as a heading, as in `Today` or `Monday 2 March`."""
    near = {0: translate("words", "Today"), 1: translate("words", "Yesterday")}
    short, full = translate("dates", "dddd d MMMM"), translate("dates", "d MMMM yyyy")
    pattern = short if shown.year == today.year else full
    far = QLocale().toString(QDate(shown.year, shown.month, shown.day), pattern)
    return near.get((today - shown).days, far)


def filled(text: str, *words: str) -> str:
    """Return a text with words in the place of %1, %2 and so on, whatever is in the words."""
    return re.sub("%([1-9])", lambda mark: words[int(mark[1]) - 1], text)


def plain(text: str | bytes) -> str:
    """Return an external text shortened, with hidden characters made visible."""
    shown = format_path(text[: LONGEST * 4]) if isinstance(text, bytes) else format_text(text)
    return shown if len(shown) <= LONGEST else shown[:LONGEST] + "…"


def engine_text(sentence: str) -> str:
    """Return a sentence of the engine in the language of the window, as `plain` shows it.

    Errors in several settings are several lines, each a sentence.
    """
    shown = plain(sentence)
    said = look_up(ENGINE_CONTEXT, shown)
    if said != shown or "\n" not in sentence:
        return said
    return plain("\n".join(look_up(ENGINE_CONTEXT, plain(line)) for line in sentence.split("\n")))


def error_text(error: Described, between: str = "\n") -> str:
    """Return the message of an error and, by default on a separate line, its hint."""
    parts = (engine_text(part) for part in (error.message, error.hint) if part)
    return with_labels(between.join(parts))


def problem_text(problem: Described) -> str:
    """Return the message of an error and its hint on one line."""
    return error_text(problem, " ")


def with_labels(text: str) -> str:
    """Return a text with labels of settings instead of their keys."""
    return _KEY.sub(_find_label, text)


def _find_label(found: re.Match[str]) -> str:
    setting = settings_by_key().get(found[0])
    label = setting and look_up(SETTINGS_CONTEXT, setting.about.label)
    return translate("settings", "“%1”").replace("%1", label) if label else found[0]


def tip(text: str) -> str:
    """Return a tool tip that shows a text literally, including any markup in it."""
    return f"<qt style='white-space: pre-wrap'>{escape(text)}</qt>" if text else ""


LIMITS_CONTEXT = "limits"  # of the translations of `LIMITS`


def limit_name(name: str) -> str:
    """Return the displayed name of a bottleneck of the engine; empty for none."""
    return look_up(LIMITS_CONTEXT, LIMITS[name]) if name in LIMITS else ""


def limit_word(name: str) -> str:
    """Return a short name of a bottleneck for a table column."""
    return {
        "source": translate("limits", "local disk"),
        "processor": translate("limits", "local processors"),
        "line": translate("limits", "network or server"),
        "channels": translate("limits", "latency"),
        "server": translate("limits", "server storage"),
        "bandwidth": translate("limits", "bandwidth limit"),
        "API": translate("limits", "server responses"),
        "verification": translate("limits", "verification"),
    }.get(name, "")
