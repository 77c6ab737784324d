"""A settings file to begin with: every setting, explained, with its default; none of it counts yet.

python -m mydata_like.settings.sample_file > docs/admin/settings.toml
"""

import sys
from collections.abc import Iterator
from enum import Enum
from itertools import groupby
from pathlib import PurePath
from textwrap import wrap

import tomlkit

from mydata_like.settings.fields import Setting
from mydata_like.settings.schema import Settings, iter_settings

_OPENING = """\
# Settings of mydata-like; take away the # before a line that shall count.
# `mydata-like settings check` tells what is wrong or missing, docs/settings.md tells more.
"""
_WIDTH = 98


def build_sample() -> str:
    """Return the whole file as TOML."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _OPENING
    for section, settings in groupby(iter_settings(), key=lambda setting: setting.section):
        table = Settings.__annotations__[section]
        yield f"# {table.__doc__}"
        yield f"[{section}]\n"
        for setting in settings:
            yield from _entry(setting)


def _entry(setting: Setting) -> Iterator[str]:
    required = " It must be given." if setting.about.required else ""
    said = f"{setting.about.label}. {setting.about.help}{required}"
    yield from wrap(said, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    for fact in setting.facts:
        yield from wrap(fact, _WIDTH, initial_indent="#   ", subsequent_indent="#   ")
    yield f"#{setting.name} = {_format(setting.default)}".rstrip() + "\n"


def _format(value: object) -> str:
    """Return a value as the file holds it; nothing where there is none, as of a date."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format, value))}]"
    if isinstance(value, Enum):
        return _format(value.value)
    if value is None:
        return ""
    return tomlkit.item(str(value) if isinstance(value, PurePath) else value).as_string()


if __name__ == "__main__":
    sys.stdout.write(build_sample())
