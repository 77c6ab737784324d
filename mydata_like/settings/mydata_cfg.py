"""The settings of MyData, and how each one is converted to ours.

MyData stores its settings as texts in the file MyData.cfg, and the same keys on the upload server.
`FieldInfo.legacy` names the keys that each of our settings replaces. This module has the rules for
values with another format, and the reasons for keys that have no successor.
"""

import locale
import re
import stat
from collections import Counter
from collections.abc import Callable, Mapping
from configparser import MissingSectionHeaderError, ParsingError, RawConfigParser
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

from mydata_like.core.errors import SettingsError
from mydata_like.core.frozen import frozen
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.fields import Setting, find_nearest, format_value, parse_value
from mydata_like.settings.schedule_section import Weekday
from mydata_like.settings.schema import check_values, iter_settings
from mydata_like.settings.values import CIPHERS

_LARGEST = 1024 * 1024
_SECTION = "mydata"
_KEY_LINE = re.compile(r"^([ \t]*api_key[ \t]*[=:])[^\r\n]*", re.IGNORECASE | re.MULTILINE)
_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@frozen()
class LegacyFile:
    """The content of a MyData.cfg: texts by key, keys in lower case.

    `repeated` are keys that are given more than once; the last value counts. `bad_lines` are the
    numbers of lines that are not settings.
    """

    path: Path
    encoding: str
    pairs: Mapping[str, str] = field(repr=False)  # includes the API key
    repeated: tuple[str, ...]
    bad_lines: tuple[int, ...]


def usual_places(environment: Mapping[str, str], platform: str, home: Path) -> tuple[Path, ...]:
    """Return where MyData stores its file on a system (`sys.platform`), most likely place first."""
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
    """Return where the SSH key of a MyData with this file may be, most likely place first."""
    return (home / ".ssh" / "MyData", config.parent / ".ssh" / "MyData")


def read_legacy_file(path: Path, code_page: str = "") -> LegacyFile:
    """Read a MyData.cfg: as UTF-8, else in a code page (the system's own by default).

    Raises SettingsError if the file cannot be read or is not a MyData.cfg. Errors in single lines
    raise nothing.
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
    except ParsingError as error:  # raised after all other lines were read
        bad_lines = tuple(number for number, _ in error.errors)
    section = next((name for name in parser.sections() if name.lower() == _SECTION), None)
    if section is None:
        raise _no_mydata(path)
    pairs = dict(parser.items(section))
    repeated = tuple(name for name in pairs if counts[name] > 1)
    return LegacyFile(path, encoding, pairs, repeated, bad_lines)


def blank_key(file: LegacyFile) -> None:
    """Remove the API key from the file; every other byte stays unchanged.

    Raises SettingsError if the file cannot be written.
    """
    text = _load(file.path).decode(file.encoding)
    path = file.path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode)
    # MyData may run as another user.
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
        f"{path} is not text in UTF-8 or in the code page {code_page}.",
        hint="Open it in a text editor and save it as UTF-8.",
    )


def _system_code_page() -> str:
    """Return the code page of this system; a Windows one if the system uses UTF-8."""
    encoding = locale.getencoding()
    return "cp1252" if encoding.lower().replace("-", "") in ("utf8", "ascii") else encoding


def _no_mydata(path: Path) -> SettingsError:
    return SettingsError(
        f"{path} is not a MyData.cfg: it has no section [MyData].",
        hint="Name the file in which MyData stores its settings.",
    )


Given = Mapping[str, str]  # MyData's texts by key, in lower case
Rule = Callable[[Given], "ConversionNote"]


class Conversion(StrEnum):
    """How an old key was converted."""

    CARRIED = "carried"  # the setting has the same meaning
    CHANGED = "changed"  # the setting has nearly the same meaning; the reason states the difference
    LEFT = "left"  # there is nothing to convert and nothing to do
    UNUSABLE = "unusable"  # the meaning is unclear; the setting is unchanged
    UNKNOWN = "unknown"  # not a key of MyData


class ConversionNote(NamedTuple):
    """The new value for old keys, if there is one."""

    value: object = None
    becoming: Conversion = Conversion.CARRIED
    reason: str = ""


class UnusableError(Exception):
    """An old value cannot be interpreted; the message says why."""


def left(reason: str) -> ConversionNote:
    """Return a note that there is nothing to convert."""
    return ConversionNote(None, Conversion.LEFT, reason)


def changed(value: object, reason: str) -> ConversionNote:
    """Return a note that the value is nearly what MyData had."""
    return ConversionNote(value, Conversion.CHANGED, reason)


def shorten(text: str) -> str:
    """Return a text shortened to fit into a message."""
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
    """Return the rule for a text that folder names contain.

    MyData uses a glob, in which `*`, `?` and `[` are wildcards.
    """

    def rule(given: Given) -> ConversionNote:
        text = given[name]
        if any(wildcard in text for wildcard in "*?["):
            return changed(
                text, "MyData takes * ? [ as wildcards; here names must contain them literally"
            )
        if text.lower() != text.upper():
            return changed(text, "case is ignored, as in MyData on Windows")
        return ConversionNote(text)

    return rule


def _if_on(switch: str, rule: Rule) -> Rule:
    """Return a rule that applies only if another key of MyData switches it on."""

    def switched(given: Given) -> ConversionNote:
        if switch not in given:
            return left(f"{switch} does not switch it on")
        return rule(given) if _is_on(given, switch, default=False) else ConversionNote("")

    return switched


def _read_age(number: str, unit: str) -> Rule:
    """Return the rule for an age beyond which dataset folders are skipped."""

    def rule(given: Given) -> ConversionNote:
        age = f"{given.get(number, '0')} {given.get(unit, 'months')}"
        return changed(
            age, "the age is that of a folder's last change; in MyData on Windows, of its creation"
        )

    return rule


def _read_settling(given: Given) -> ConversionNote:
    if not _is_on(given, "ignore_new_files", default=True):
        return ConversionNote(0.0)
    text = given.get("ignore_new_files_minutes", "1")
    try:
        return ConversionNote(60.0 * int(text))
    except (ValueError, OverflowError):
        raise UnusableError(f"{shorten(text)!r} is not a number of minutes") from None


def _read_pattern_file(file: str) -> Rule:
    def rule(given: Given) -> ConversionNote:
        if not given.get(file):
            raise UnusableError(f"{file} names no file")
        return ConversionNote(given[file])

    return rule


def _read_unknown_owners(given: Given) -> ConversionNote:
    old, new = "upload_invalid_user_folders", "upload_invalid_user_or_group_folders"
    name = new if new in given else old
    value = "upload" if _is_on(given, name, default=True) else "skip"
    if old in given and given[old].lower() != given[name].lower():
        return changed(value, f"{new}, the newer key, is used")
    return ConversionNote(value)


def _read_ciphers(given: Given) -> ConversionNote:
    names = [name.strip() for name in given["cipher"].split(",") if name.strip()]
    good = list(dict.fromkeys(name for name in names if name in CIPHERS))
    weak = ", ".join(shorten(name) for name in names if name not in CIPHERS)
    if not good:
        return left(f"weak or unknown: {weak}" if weak else "it is empty")
    return changed(good, f"weak or unknown, and not used: {weak}") if weak else ConversionNote(good)


def _read_attempts(given: Given) -> ConversionNote:
    text = given["max_upload_retries"]
    try:
        return ConversionNote(int(text) + 1, reason="the first attempt counts as well")
    except ValueError:
        raise UnusableError(f"{shorten(text)!r} is not a number of retries") from None


def _read_kind(given: Given) -> ConversionNote:
    found = _KINDS(given)
    if found.value == "weekly" and not _read_days(given).value:
        return changed("manual", "no day of the week is selected, so MyData never starts")
    if found.value == "once":
        day = {"schedule.kind": "once", "schedule.date": given.get("scheduled_date", "")}
        if check_values(day)[1]:
            raise UnusableError("scheduled_date has no value")
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
    """Return the rule for the start or end of the timer's day."""

    def rule(given: Given) -> ConversionNote:
        if given[name] in ("", default):
            return ConversionNote(default)
        return changed(given[name], "MyData shows this time but ignores it; here it applies")

    return rule


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "data.unknown_owners": _read_unknown_owners,
        "filters.owner": _read_filter("user_filter"),
        "filters.experiment": _read_filter("experiment_filter"),
        "filters.dataset": _read_filter("dataset_filter"),
        "filters.ignore_older_than": _if_on(
            "ignore_old_datasets", _read_age("ignore_interval_number", "ignore_interval_unit")
        ),
        "filters.ignore_newer_than": _if_on(
            "ignore_new_datasets",
            _read_age("ignore_new_interval_number", "ignore_new_interval_unit"),
        ),
        "filters.settle_seconds": _read_settling,
        "filters.includes_file": _if_on("use_includes_file", _read_pattern_file("includes_file")),
        "filters.excludes_file": _if_on("use_excludes_file", _read_pattern_file("excludes_file")),
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
        "api_key": "it is a secret, and secrets are not settings",
        "locked": "settings are locked by an administrator's managed file",
        "dataset_grouping": "it only describes the layout in words; MyData never reads it",
        "validate_folder_structure": "folders are always checked against the layout",
        "fake_md5_sum": "checksums are always needed for verification",
        "use_none_cipher": "it has no effect in MyData either",
        "progress_poll_interval": "progress is measured here, without queries to the server",
        "immutable_datasets": "a dataset must stay open for the files of later runs",
        "cache_datafile_lookups": "files known to be on the server are always remembered",
    }
)

# MyData writes every key. A number equal to MyData's default therefore is not a choice of the user,
# and our defaults were measured.
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
    """One key of MyData, how it was converted, and the setting that replaces it, if any."""

    name: str
    becoming: Conversion
    setting: str = ""
    reason: str = ""


@frozen(eq=False)
class LegacyTranslation:
    """MyData's settings as ours: valid values by dotted key, as in TOML.

    `keys` has every old key that was given, in our order. Never includes the API key.
    """

    values: Mapping[str, object]
    keys: tuple[LegacyKey, ...]


def translate(pairs: Mapping[str, str]) -> LegacyTranslation:
    """Convert MyData's keys and texts; never raises for their content.

    Keys are case-insensitive. A key that others need and that is missing has MyData's default. Each
    value is valid on its own; conflicts with other layers of settings (`schedule.kind` with its
    days, `http://` with `server.allow_http`) are checked there.
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
    known = {name for setting in iter_settings() for name in setting.about.legacy}
    for name in given:
        if name in WITHOUT_SETTING:
            keys.append(LegacyKey(name, Conversion.LEFT, reason=WITHOUT_SETTING[name]))
        elif name not in known:
            nearest = find_nearest(name, [*known, *WITHOUT_SETTING])
            meant = f"; did you mean {nearest}?" if nearest else ""
            reason = f"MyData has no such key{meant}"
            keys.append(LegacyKey(name, Conversion.UNKNOWN, reason=reason))
    return LegacyTranslation(values, tuple(keys))


def _find(setting: Setting, given: Given) -> ConversionNote:
    name = setting.about.legacy[0]
    if given.get(name, "").replace(" ", "") in _UNCHOSEN.get(name, ()):
        return left("it is MyData's default, which every file has; the default here is better")
    rule = RULES.get(setting.key)
    try:
        if rule:
            found = rule(given)
        elif not given[name] and (setting.about.required or setting.default != ""):
            found = left("it is empty")
        else:  # it is written alike here and there
            found = ConversionNote(parse_value(setting, given[name]))
        found = _clamp(setting, found)
        if found.value is not None:
            # Another setting decides whether an unencrypted server is allowed.
            _, problems = check_values({"server.allow_http": True, setting.key: found.value})
            for problem in problems:
                if problem.key == setting.key:
                    return ConversionNote(None, Conversion.UNUSABLE, problem.message)
    except UnusableError as error:
        return ConversionNote(None, Conversion.UNUSABLE, str(error))
    return found


def _clamp(setting: Setting, found: ConversionNote) -> ConversionNote:
    """Return the nearest number that is allowed here."""
    lowest, highest = setting.limits
    number = found.value
    if lowest is None or highest is None or not isinstance(number, int | float):
        return found
    if not number < lowest and not number > highest:  # NaN is left to the check
        return found
    nearest = setting.kind(lowest if number < lowest else highest)
    limit = "least" if number < lowest else "most"
    return changed(nearest, f"{shorten(format_value(setting, nearest))} is the {limit} here")
