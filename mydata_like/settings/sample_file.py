"""A sample settings file: every setting with its explanation and default, commented out.

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
# Settings of mydata-like. To change a setting, remove the # before its line.
# `mydata-like settings check` lists wrong and missing settings; see also docs/settings.md.
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
            yield from _entry(setting)


def _entry(setting: Setting) -> Iterator[str]:
    required = " Required." if setting.about.required else ""
    text = f"{setting.about.label}. {setting.about.help}{required}"
    yield from wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    for fact in setting.facts:
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


if __name__ == "__main__":
    sys.stdout.write(build_sample())
