"""Values by dotted key, checked all at once."""

import json
from collections.abc import Mapping

from pydantic import ValidationError

from mydata_like.settings.problems import SettingProblem, explain_error
from mydata_like.settings.schema import Settings
from mydata_like.settings.text import plain_value


def check_values(
    values: Mapping[str, object],
) -> tuple[Settings | None, tuple[SettingProblem, ...]]:
    """Return the settings these values make, or None and all that is wrong with them.

    Values are as TOML has them (a checked value will do too), by dotted key; what is not given
    has its default.
    """
    good = {key: value for key, value in values.items() if _is_plain(value)}
    problems = {
        key: SettingProblem(key, "is no plain text or number")
        for key in values.keys() - good.keys()
    }
    settings = None
    while settings is None:
        try:
            settings = _build(good)
        except ValidationError as error:
            # A rule for a whole section is looked at only once its single values are right.
            found = _explain(error)
            for key, message in found.items():
                problems.setdefault(key, SettingProblem(key, message))
            if not good.keys() & found.keys():
                break
            good = {key: value for key, value in good.items() if key not in found}
    return (None if problems else settings), tuple(problems.values())


def _explain(error: ValidationError) -> dict[str, str]:
    """Return what is wrong by key; of a list, what is wrong with each of its members."""
    found: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        key, message = explain_error(detail)
        found[key] = f"{found[key]}; {message}" if key in found else message
    return found


def _build(values: Mapping[str, object]) -> Settings:
    table: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        table.setdefault(section, {})[name] = value
    # JSON is the form for which pydantic is strict about kinds, yet takes paths, times and lists.
    return Settings.model_validate_json(json.dumps(table, default=_plain), strict=True)


def _is_plain(value: object) -> bool:
    """Return whether JSON can hold a value: not half a character, nor a number without end."""
    try:
        json.dumps(value, default=_plain, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _plain(value: object) -> object:
    plain = plain_value(value)
    return plain if plain is not value else str(value)
