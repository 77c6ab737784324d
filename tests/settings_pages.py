"""The file with all settings, made from their list.

python -m tests.settings_pages > docs/admin/settings.toml
"""

import sys
from collections.abc import Iterator
from enum import Enum
from itertools import groupby
from pathlib import PurePath
from textwrap import wrap

import tomlkit

from mydata_like.settings.schema import Settings, iter_settings
from mydata_like.settings.server_layer import FORBIDDEN, FORBIDDEN_VALUES, SHOWN, matches

_OPENING = """\
# Settings of mydata-like. To change a setting, remove the # before its line.
# `mydata-like settings check` lists wrong and missing settings; see also docs/settings.md.
# A value that the server sets for this uploader applies, except where a line says otherwise.
"""
_WIDTH = 98


def build_sample() -> str:
    """Return the file as TOML."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _OPENING
    for section, settings in groupby(iter_settings(), key=lambda setting: setting.section):
        table = Settings.__annotations__[section]
        yield f"# {table.__doc__}"
        yield f"[{section}]\n"
        for setting in settings:
            required = " Required." if setting.about.required else ""
            text = f"{setting.about.label}. {setting.about.help}{required}"
            yield from wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
            for fact in (*setting.facts, *_find_server_right(setting.key)):
                yield from wrap(fact, _WIDTH, initial_indent="#   ", subsequent_indent="#   ")
            yield f"#{setting.name} = {_format(setting.default)}".rstrip() + "\n"


def _format(value: object) -> str:
    """Return a value as TOML; empty if there is none, such as no date."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format, value))}]"
    if isinstance(value, Enum):
        return _format(value.value)
    if value is None:
        return ""
    return tomlkit.item(str(value) if isinstance(value, PurePath) else value).as_string()


def _find_server_right(key: str) -> Iterator[str]:
    """Yield what limits or shows a value from the server, if anything does."""
    values = FORBIDDEN_VALUES.get(key, ())
    if matches(key, FORBIDDEN):
        yield "not from the server"
    elif values:
        yield f"not from the server: {' or '.join(values)}"
    if matches(key, SHOWN):
        yield "from the server: is shown"


if __name__ == "__main__":
    sys.stdout.write(build_sample())
