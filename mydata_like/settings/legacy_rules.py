"""Rules for the values that MyData writes otherwise than we do."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

from mydata_like.settings.checking import check_values
from mydata_like.settings.schedule import Weekday
from mydata_like.settings.values import CIPHERS

Given = Mapping[str, str]  # MyData's texts by its keys in lower case
Rule = Callable[[Given], "Finding"]


class Becoming(StrEnum):
    """What became of an old key."""

    CARRIED = "carried"  # the setting now says the same
    CHANGED = "changed"  # the setting says nearly the same; the reason tells the difference
    LEFT = "left"  # there is nothing to carry, and nobody has to do anything
    UNUSABLE = "unusable"  # nobody can tell what was meant; the setting is untouched
    UNKNOWN = "unknown"  # no key of MyData


class Finding(NamedTuple):
    """The value that old keys come to, if they come to any."""

    value: object = None
    becoming: Becoming = Becoming.CARRIED
    reason: str = ""


class UnusableError(Exception):
    """An old value that nobody can make sense of; the message says why."""


def left(reason: str) -> Finding:
    """Say that there is nothing to carry."""
    return Finding(None, Becoming.LEFT, reason)


def changed(value: object, reason: str) -> Finding:
    """Say that the value is nearly what MyData had."""
    return Finding(value, Becoming.CHANGED, reason)


def shorten(text: str) -> str:
    """Return a text that fits into a sentence."""
    return text if len(text) <= 60 else f"{text[:60]}..."


def _is_on(given: Given, name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise UnusableError(f"{name} is neither True nor False: {shorten(text)!r}")
    return text == "true"


def _choose(name: str, choices: Mapping[str, str]) -> Rule:
    """Return the rule for a fixed set of texts."""
    by_folded = {text.casefold(): value for text, value in choices.items()}

    def rule(given: Given) -> Finding:
        text = given[name]
        if text.casefold() not in by_folded:
            raise UnusableError(f"{shorten(text)!r} is none of: {', '.join(choices)}")
        return Finding(by_folded[text.casefold()])

    return rule


def _read_filter(name: str) -> Rule:
    """Return the rule for a text that folders' names contain.

    MyData looks for it with a glob, so that `*`, `?` and `[` are no plain characters there.
    """

    def rule(given: Given) -> Finding:
        text = given[name]
        if any(wildcard in text for wildcard in "*?["):
            return changed(text, "MyData takes * ? [ as wildcards; here names must contain them")
        if text.lower() != text.upper():
            return changed(text, "upper and lower case count as equal, as in MyData on Windows")
        return Finding(text)

    return rule


def _read_age(switch: str, number: str, unit: str) -> Rule:
    """Return the rule for an age at which dataset folders are left out."""

    def rule(given: Given) -> Finding:
        if switch not in given:
            return left(f"{switch} does not switch it on")
        if not _is_on(given, switch, default=False):
            return Finding("")
        age = f"{given.get(number, '0')} {given.get(unit, 'months')}"
        return changed(age, "a folder's last change counts; in MyData on Windows, its creation")

    return rule


def _read_settling(given: Given) -> Finding:
    if not _is_on(given, "ignore_new_files", default=True):
        return Finding(0.0)
    text = given.get("ignore_new_files_minutes", "1")
    try:
        return Finding(60.0 * int(text))
    except (ValueError, OverflowError):
        raise UnusableError(f"{shorten(text)!r} is no number of minutes") from None


def _read_pattern_file(switch: str, file: str) -> Rule:
    def rule(given: Given) -> Finding:
        if switch not in given:
            return left(f"{switch} does not switch it on")
        if not _is_on(given, switch, default=False):
            return Finding("")
        if not given.get(file):
            raise UnusableError(f"{file} names no file")
        return Finding(given[file])

    return rule


def _read_unknown_owners(given: Given) -> Finding:
    old, new = "upload_invalid_user_folders", "upload_invalid_user_or_group_folders"
    name = new if new in given else old
    value = "upload" if _is_on(given, name, default=True) else "skip"
    if old in given and given[old].lower() != given[name].lower():
        return changed(value, f"{new} counts, which is the newer key")
    return Finding(value)


def _read_ciphers(given: Given) -> Finding:
    names = [name.strip() for name in given["cipher"].split(",") if name.strip()]
    good = list(dict.fromkeys(name for name in names if name in CIPHERS))
    weak = ", ".join(shorten(name) for name in names if name not in CIPHERS)
    if not good:
        return left(f"weak or unknown: {weak}" if weak else "it is empty")
    return changed(good, f"weak or unknown, and left out: {weak}") if weak else Finding(good)


def _read_attempts(given: Given) -> Finding:
    text = given["max_upload_retries"]
    try:
        return Finding(int(text) + 1, reason="here the first attempt is counted too")
    except ValueError:
        raise UnusableError(f"{shorten(text)!r} is no number of retries") from None


def _read_kind(given: Given) -> Finding:
    found = _KINDS(given)
    if found.value == "weekly" and not _read_days(given).value:
        return changed("manual", "no day of the week is ticked, so MyData never starts")
    if found.value == "once":
        day = {"schedule.kind": "once", "schedule.date": given.get("scheduled_date", "")}
        if check_values(day)[1]:
            raise UnusableError("scheduled_date does not say when")
    return found


_KINDS: Final = _choose(
    "schedule_type",
    {
        "On Startup": "startup",
        "On Settings Saved": "saved",
        "Manually": "manual",
        "Once": "once",
        "Daily": "daily",
        "Weekly": "weekly",
        "Timer": "timer",
    },
)


def _read_date(given: Given) -> Finding:
    if given.get("schedule_type", "Manually").lower() != "once":
        return left("only a schedule of the type Once has a date")
    return Finding(given["scheduled_date"])


def _read_days(given: Given) -> Finding:
    days = get_args(Weekday)
    return Finding([day for day in days if _is_on(given, f"{day}_checked", default=False)])


def _read_limit(name: str, default: str) -> Rule:
    """Return the rule for an end of the timer's day."""

    def rule(given: Given) -> Finding:
        if given[name] in ("", default):
            return Finding(default)
        return changed(given[name], "MyData shows this time and does not obey it; here it counts")

    return rule


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "data.unknown_owners": _read_unknown_owners,
        "filters.owner": _read_filter("user_filter"),
        "filters.experiment": _read_filter("experiment_filter"),
        "filters.dataset": _read_filter("dataset_filter"),
        "filters.ignore_older_than": _read_age(
            "ignore_old_datasets", "ignore_interval_number", "ignore_interval_unit"
        ),
        "filters.ignore_newer_than": _read_age(
            "ignore_new_datasets", "ignore_new_interval_number", "ignore_new_interval_unit"
        ),
        "filters.settle_seconds": _read_settling,
        "filters.includes_file": _read_pattern_file("use_includes_file", "includes_file"),
        "filters.excludes_file": _read_pattern_file("use_excludes_file", "excludes_file"),
        "transfer.method": _choose(
            "upload_method",
            {
                "ParallelSSH": "auto",
                "OpenSSH": "auto",
                "OpenSSH 7.9": "auto",
                "OpenSSH 8.1": "auto",
                "SCP": "auto",
                "SSH2": "auto",
                "Chunked": "http",
            },
        ),
        "transfer.ciphers": _read_ciphers,
        "transfer.attempts": _read_attempts,
        "schedule.kind": _read_kind,
        "schedule.date": _read_date,
        "schedule.days": _read_days,
        "schedule.from_time": _read_limit("timer_from_time", "00:00:00"),
        "schedule.to_time": _read_limit("timer_to_time", "23:59:00"),
        "window.opens": _choose(
            "on_start_run",
            {"Normal window": "normal", "Minimized": "minimized", "Maximized": "maximized"},
        ),
    }
)
