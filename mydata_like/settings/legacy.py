"""MyData's settings in our words: what each of its keys becomes here, and why.

MyData keeps its settings as texts: in the file MyData.cfg, and the same keys once more on the
upload server. Which of them a setting of ours replaces stands in its `About.legacy`; here are
the rules for values that are written otherwise, and the reasons for the keys that have no
successor.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from mydata_like.settings.about import Setting
from mydata_like.settings.checking import check_values
from mydata_like.settings.legacy_rules import (
    RULES,
    Becoming,
    Finding,
    Given,
    UnusableError,
    changed,
    left,
    shorten,
)
from mydata_like.settings.problems import find_nearest
from mydata_like.settings.schema import iter_settings
from mydata_like.settings.text import format_value, parse_value

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


class OldKey(NamedTuple):
    """One key of MyData, what became of it, and the setting that has its place, if any does."""

    name: str
    becoming: Becoming
    setting: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """MyData's settings as ours: values by dotted key, as TOML has them, each right in itself.

    `keys` tells of every old key that was given, in our order. Never holds the API key.
    """

    values: Mapping[str, object]
    keys: tuple[OldKey, ...]


def translate(pairs: Mapping[str, str]) -> Translation:
    """Return what MyData's keys and texts mean here; never raises for what they say.

    Case does not count in keys. A key that others need and that is not given has MyData's
    default. Values are right one by one; how they go together with other layers of settings
    (`schedule.kind` with its days, `http://` with `server.allow_http`) only those can tell.
    """
    given = {name.strip().lower(): text.strip() for name, text in pairs.items()}
    values: dict[str, object] = {}
    keys: list[OldKey] = []
    for setting in iter_settings():
        names = [name for name in setting.about.legacy if name in given]
        if not names:
            continue
        found = _find(setting, given)
        if found.value is not None:
            values[setting.key] = found.value
        keys += (OldKey(name, found.becoming, setting.key, found.reason) for name in names)
    keys += _explain_others(given)
    return Translation(values, tuple(keys))


def _find(setting: Setting, given: Given) -> Finding:
    if _is_unchosen(setting, given):
        return left("it is MyData's default, which every file has; here another is better")
    rule = RULES.get(setting.key)
    try:
        found = rule(given) if rule else _read_plain(setting, given)
        found = _clamp(setting, found)
        if found.value is not None:
            _require_right(setting.key, found.value)
    except UnusableError as error:
        return Finding(None, Becoming.UNUSABLE, str(error))
    return found


def _is_unchosen(setting: Setting, given: Given) -> bool:
    name = setting.about.legacy[0]
    return given.get(name, "").replace(" ", "") in _UNCHOSEN.get(name, ())


def _read_plain(setting: Setting, given: Given) -> Finding:
    """Return the text of a setting that is written alike here and there."""
    text = given[setting.about.legacy[0]]
    if not text and (setting.about.required or setting.default != ""):
        return left("it is empty")
    return Finding(parse_value(setting, text))


def _clamp(setting: Setting, found: Finding) -> Finding:
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


def _explain_others(given: Given) -> Iterator[OldKey]:
    known = {name for setting in iter_settings() for name in setting.about.legacy}
    for name in given:
        if name in WITHOUT_SETTING:
            yield OldKey(name, Becoming.LEFT, reason=WITHOUT_SETTING[name])
        elif name not in known:
            nearest = find_nearest(name, [*known, *WITHOUT_SETTING])
            meant = f"; {nearest} was perhaps meant" if nearest else ""
            yield OldKey(name, Becoming.UNKNOWN, reason=f"MyData has no such key{meant}")
