"""Validation of values by dotted key."""

import json
from collections.abc import Mapping

from mydata_like.settings.fields import Section, SettingProblem, plain_value
from mydata_like.settings.schema import Settings


def check_values(
    values: Mapping[str, object],
) -> tuple[Settings | None, tuple[SettingProblem, ...]]:
    """Return the settings made of these values, or None and every error in them.

    Values are as in TOML (checked values are accepted as well), by dotted key; missing ones have
    their defaults.
    """
    plain, problems = _make_plain(values)
    tables: dict[str, dict[str, object]] = {}
    for key, value in plain.items():
        section, _, name = key.partition(".")
        tables.setdefault(section, {})[name] = value
    sections = {}
    for section, kind in Settings.__annotations__.items():
        sections[section], wrong = _check(kind, tables.pop(section, {}))
        problems |= {f"{section}.{name}": text for name, text in wrong.items()}
    problems |= {
        f"{section}.{name}": "is not a setting" for section in tables for name in tables[section]
    }
    found = tuple(SettingProblem(key, text) for key, text in problems.items())
    return (None if found else Settings.of(sections)), found


def _check(kind: type[Section], values: Mapping[str, object]) -> tuple[Section, dict[str, str]]:
    """Return the section of the valid values, and the errors in single or combined values."""
    right, wrong = kind.read(values)
    section = kind.of(right)
    return section, dict(section.conflicts()) | wrong


def _make_plain(values: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """Return the values as in JSON, and errors for those that JSON cannot represent.

    Examples are lone surrogates and infinite numbers.
    """
    plain, wrong = {}, {}
    for key, value in values.items():
        try:
            text = json.dumps(value, default=_describe, ensure_ascii=False)
            plain[key] = json.loads(text.encode())
        except (ValueError, RecursionError):
            wrong[key] = "is not plain text or a number"
    return plain, wrong


def _describe(value: object) -> object:
    plain = plain_value(value)
    return plain if plain is not value else str(value)
