"""MyData's settings in our words: what each of its keys becomes here, and why.

MyData keeps its settings as texts: in the file MyData.cfg, and the same keys once more on the
upload server. Which of them a setting of ours replaces stands in its `About.legacy`; here are
the rules for values that are written otherwise, and the reasons for the keys that have no
successor.
"""

import locale
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from configparser import MissingSectionHeaderError, ParsingError, RawConfigParser
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.fields import Setting, find_nearest, format_value, parse_value
from mydata_like.settings.schedule_section import Weekday
from mydata_like.settings.schema import iter_settings
from mydata_like.settings.validate import check_values
from mydata_like.settings.values import CIPHERS

_LARGEST = 1024 * 1024
_SECTION = "mydata"
_KEY_LINE = re.compile(r"^([ \t]*api_key[ \t]*[=:])[^\r\n]*", re.IGNORECASE | re.MULTILINE)
_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True)
class LegacyFile:
    """What a MyData.cfg says: texts by key, keys in lower case.

    `repeated` keys are given more than once, and the last one counts; `bad_lines` are numbers
    of lines that are no setting.
    """

    path: Path
    encoding: str
    pairs: Mapping[str, str] = field(repr=False)  # the API key is among them
    repeated: tuple[str, ...]
    bad_lines: tuple[int, ...]


def usual_places(environment: Mapping[str, str], platform: str, home: Path) -> tuple[Path, ...]:
    """Return where MyData keeps its file on a system (`sys.platform`), the likeliest first."""
    if platform == "win32":
        shared, own = environment.get("PROGRAMDATA"), environment.get("LOCALAPPDATA")
        return tuple(
            Path(folder) / "Monash University" / "MyData" / "MyData.cfg"
            for folder in (shared, own)
            if folder
        )
    if platform == "darwin":
        return (home / "Library" / "Application Support" / "MyData" / "MyData.cfg",)
    folder = environment.get("XDG_DATA_HOME") or home / ".local" / "share"
    return (Path(folder) / "MyData" / "MyData.cfg",)


def key_places(config: Path, home: Path) -> tuple[Path, ...]:
    """Return where the SSH key of a MyData with this file may be, the likeliest first."""
    return (home / ".ssh" / "MyData", config.parent / ".ssh" / "MyData")


def read_legacy_file(path: Path, code_page: str = "") -> LegacyFile:
    """Read a MyData.cfg: as UTF-8, else in a code page (the system's own by default).

    Raises SettingsError where it cannot be read or is something else; what single lines say
    is never a reason to raise.
    """
    encoding, text = _decode(path, _load(path), code_page or _system_code_page())
    parser = RawConfigParser(strict=False)
    counts: Counter[str] = Counter()

    def count(name: str) -> str:
        counts[name.lower()] += 1
        return name.lower()

    parser.optionxform = count  # type: ignore[assignment, method-assign]
    bad_lines: tuple[int, ...] = ()
    try:
        parser.read_string(text)
    except MissingSectionHeaderError:
        raise _no_mydata(path) from None
    except ParsingError as error:  # raised when all the other lines are read
        bad_lines = tuple(number for number, _ in error.errors)
    section = next((name for name in parser.sections() if name.lower() == _SECTION), None)
    if section is None:
        raise _no_mydata(path)
    pairs = dict(parser.items(section))
    repeated = tuple(name for name in pairs if counts[name] > 1)
    return LegacyFile(path, encoding, pairs, repeated, bad_lines)


def blank_key(file: LegacyFile) -> None:
    """Take the API key out of the file; every other byte of it stays as it is.

    Raises SettingsError where the file cannot be written.
    """
    text = _load(file.path).decode(file.encoding)
    path = file.path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode)
    # MyData may run as somebody else.
    write_private(path, _KEY_LINE.sub(r"\1", text).encode(file.encoding), mode)


def _load(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except FileNotFoundError:
        raise SettingsError(
            f"There is no file {path}.", hint="Check the path of MyData.cfg."
        ) from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(content) > _LARGEST:
        raise SettingsError(f"{path} is too large for a MyData.cfg (1 MiB at most).")
    return content


def _decode(path: Path, content: bytes, code_page: str) -> tuple[str, str]:
    """Return the encoding of a file, and its text without a byte order mark."""
    marked = _BYTE_ORDER_MARKS.get(content[:2])
    for encoding in [marked] if marked else ["utf-8", code_page]:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return encoding, text.removeprefix("\ufeff")
    raise SettingsError(
        f"{path} is no text, neither in UTF-8 nor in the code page {code_page}.",
        hint="Open it in a text editor and save it as UTF-8.",
    )


def _system_code_page() -> str:
    """Return the code page of this system; one of Windows where the system has UTF-8."""
    encoding = locale.getencoding()
    return "cp1252" if encoding.lower().replace("-", "") in ("utf8", "ascii") else encoding


def _no_mydata(path: Path) -> SettingsError:
    return SettingsError(
        f"{path} is no MyData.cfg: it has no section [MyData].",
        hint="Name the file in which MyData keeps its settings.",
    )


Given = Mapping[str, str]  # MyData's texts by its keys in lower case
Rule = Callable[[Given], "ConversionNote"]


class Conversion(StrEnum):
    """What became of an old key."""

    CARRIED = "carried"  # the setting now says the same
    CHANGED = "changed"  # the setting says nearly the same; the reason tells the difference
    LEFT = "left"  # there is nothing to carry, and nobody has to do anything
    UNUSABLE = "unusable"  # nobody can tell what was meant; the setting is untouched
    UNKNOWN = "unknown"  # no key of MyData


class ConversionNote(NamedTuple):
    """The value that old keys come to, if they come to any."""

    value: object = None
    becoming: Conversion = Conversion.CARRIED
    reason: str = ""


class UnusableError(Exception):
    """An old value that nobody can make sense of; the message says why."""


def left(reason: str) -> ConversionNote:
    """Say that there is nothing to carry."""
    return ConversionNote(None, Conversion.LEFT, reason)


def changed(value: object, reason: str) -> ConversionNote:
    """Say that the value is nearly what MyData had."""
    return ConversionNote(value, Conversion.CHANGED, reason)


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

    def rule(given: Given) -> ConversionNote:
        text = given[name]
        if text.casefold() not in by_folded:
            raise UnusableError(f"{shorten(text)!r} is none of: {', '.join(choices)}")
        return ConversionNote(by_folded[text.casefold()])

    return rule


def _read_filter(name: str) -> Rule:
    """Return the rule for a text that folders' names contain.

    MyData looks for it with a glob, so that `*`, `?` and `[` are no plain characters there.
    """

    def rule(given: Given) -> ConversionNote:
        text = given[name]
        if any(wildcard in text for wildcard in "*?["):
            return changed(text, "MyData takes * ? [ as wildcards; here names must contain them")
        if text.lower() != text.upper():
            return changed(text, "upper and lower case count as equal, as in MyData on Windows")
        return ConversionNote(text)

    return rule


def _read_age(switch: str, number: str, unit: str) -> Rule:
    """Return the rule for an age at which dataset folders are left out."""

    def rule(given: Given) -> ConversionNote:
        if switch not in given:
            return left(f"{switch} does not switch it on")
        if not _is_on(given, switch, default=False):
            return ConversionNote("")
        age = f"{given.get(number, '0')} {given.get(unit, 'months')}"
        return changed(age, "a folder's last change counts; in MyData on Windows, its creation")

    return rule


def _read_settling(given: Given) -> ConversionNote:
    if not _is_on(given, "ignore_new_files", default=True):
        return ConversionNote(0.0)
    text = given.get("ignore_new_files_minutes", "1")
    try:
        return ConversionNote(60.0 * int(text))
    except (ValueError, OverflowError):
        raise UnusableError(f"{shorten(text)!r} is no number of minutes") from None


def _read_pattern_file(switch: str, file: str) -> Rule:
    def rule(given: Given) -> ConversionNote:
        if switch not in given:
            return left(f"{switch} does not switch it on")
        if not _is_on(given, switch, default=False):
            return ConversionNote("")
        if not given.get(file):
            raise UnusableError(f"{file} names no file")
        return ConversionNote(given[file])

    return rule


def _read_unknown_owners(given: Given) -> ConversionNote:
    old, new = "upload_invalid_user_folders", "upload_invalid_user_or_group_folders"
    name = new if new in given else old
    value = "upload" if _is_on(given, name, default=True) else "skip"
    if old in given and given[old].lower() != given[name].lower():
        return changed(value, f"{new} counts, which is the newer key")
    return ConversionNote(value)


def _read_ciphers(given: Given) -> ConversionNote:
    names = [name.strip() for name in given["cipher"].split(",") if name.strip()]
    good = list(dict.fromkeys(name for name in names if name in CIPHERS))
    weak = ", ".join(shorten(name) for name in names if name not in CIPHERS)
    if not good:
        return left(f"weak or unknown: {weak}" if weak else "it is empty")
    return changed(good, f"weak or unknown, and left out: {weak}") if weak else ConversionNote(good)


def _read_attempts(given: Given) -> ConversionNote:
    text = given["max_upload_retries"]
    try:
        return ConversionNote(int(text) + 1, reason="here the first attempt is counted too")
    except ValueError:
        raise UnusableError(f"{shorten(text)!r} is no number of retries") from None


def _read_kind(given: Given) -> ConversionNote:
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


def _read_date(given: Given) -> ConversionNote:
    if given.get("schedule_type", "Manually").lower() != "once":
        return left("only a schedule of the type Once has a date")
    return ConversionNote(given["scheduled_date"])


def _read_days(given: Given) -> ConversionNote:
    days = get_args(Weekday)
    return ConversionNote([day for day in days if _is_on(given, f"{day}_checked", default=False)])


def _read_limit(name: str, default: str) -> Rule:
    """Return the rule for an end of the timer's day."""

    def rule(given: Given) -> ConversionNote:
        if given[name] in ("", default):
            return ConversionNote(default)
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


WITHOUT_SETTING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "api_key": "it is a secret, and secrets are no settings",
        "locked": "an administrator's managed file locks settings here",
        "dataset_grouping": "it only repeats the layout in words; MyData never reads it",
        "validate_folder_structure": "folders are always checked against the layout",
        "fake_md5_sum": "without checksums nothing could be proved",
        "use_none_cipher": "it has no effect in MyData either",
        "progress_poll_interval": "progress is counted here, the server is not asked for it",
        "immutable_datasets": "a dataset must stay open for the files of later runs",
        "cache_datafile_lookups": "what is known to be on the server is always remembered",
    }
)

# MyData writes every key: its own default for these numbers tells nothing about what anybody
# wanted, and ours were measured.
_UNCHOSEN: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "max_upload_threads": ("5",),
        "max_upload_retries": ("1",),
        "max_verification_threads": ("5",),
        "verification_delay": ("3", "3.0"),
        "cipher": ("aes128-ctr", "aes128-gcm@openssh.com,aes128-ctr"),
    }
)


class LegacyKey(NamedTuple):
    """One key of MyData, what became of it, and the setting that has its place, if any does."""

    name: str
    becoming: Conversion
    setting: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LegacyTranslation:
    """MyData's settings as ours: values by dotted key, as TOML has them, each right in itself.

    `keys` tells of every old key that was given, in our order. Never holds the API key.
    """

    values: Mapping[str, object]
    keys: tuple[LegacyKey, ...]


def translate(pairs: Mapping[str, str]) -> LegacyTranslation:
    """Return what MyData's keys and texts mean here; never raises for what they say.

    Case does not count in keys. A key that others need and that is not given has MyData's
    default. Values are right one by one; how they go together with other layers of settings
    (`schedule.kind` with its days, `http://` with `server.allow_http`) only those can tell.
    """
    given = {name.strip().lower(): text.strip() for name, text in pairs.items()}
    values: dict[str, object] = {}
    keys: list[LegacyKey] = []
    for setting in iter_settings():
        names = [name for name in setting.about.legacy if name in given]
        if not names:
            continue
        found = _find(setting, given)
        if found.value is not None:
            values[setting.key] = found.value
        keys += (LegacyKey(name, found.becoming, setting.key, found.reason) for name in names)
    keys += _explain_others(given)
    return LegacyTranslation(values, tuple(keys))


def _find(setting: Setting, given: Given) -> ConversionNote:
    if _is_unchosen(setting, given):
        return left("it is MyData's default, which every file has; here another is better")
    rule = RULES.get(setting.key)
    try:
        found = rule(given) if rule else _read_plain(setting, given)
        found = _clamp(setting, found)
        if found.value is not None:
            _require_right(setting.key, found.value)
    except UnusableError as error:
        return ConversionNote(None, Conversion.UNUSABLE, str(error))
    return found


def _is_unchosen(setting: Setting, given: Given) -> bool:
    name = setting.about.legacy[0]
    return given.get(name, "").replace(" ", "") in _UNCHOSEN.get(name, ())


def _read_plain(setting: Setting, given: Given) -> ConversionNote:
    """Return the text of a setting that is written alike here and there."""
    text = given[setting.about.legacy[0]]
    if not text and (setting.about.required or setting.default != ""):
        return left("it is empty")
    return ConversionNote(parse_value(setting, text))


def _clamp(setting: Setting, found: ConversionNote) -> ConversionNote:
    """Return the nearest number that is allowed here."""
    lowest, highest = setting.limits
    number = found.value
    if lowest is None or highest is None or not isinstance(number, int | float):
        return found
    if not number < lowest and not number > highest:  # a NaN is for the check
        return found
    nearest = setting.kind(lowest if number < lowest else highest)
    limit = "least" if number < lowest else "most"
    return changed(nearest, f"{shorten(format_value(setting, nearest))} is the {limit} here")


def _require_right(key: str, value: object) -> None:
    # Whether an unencrypted server is allowed is for another setting to say.
    _, problems = check_values({"server.allow_http": True, key: value})
    for problem in problems:
        if problem.key == key:
            raise UnusableError(problem.message)


def _explain_others(given: Given) -> Iterator[LegacyKey]:
    known = {name for setting in iter_settings() for name in setting.about.legacy}
    for name in given:
        if name in WITHOUT_SETTING:
            yield LegacyKey(name, Conversion.LEFT, reason=WITHOUT_SETTING[name])
        elif name not in known:
            nearest = find_nearest(name, [*known, *WITHOUT_SETTING])
            meant = f"; {nearest} was perhaps meant" if nearest else ""
            yield LegacyKey(name, Conversion.UNKNOWN, reason=f"MyData has no such key{meant}")
