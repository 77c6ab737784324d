"""Texts generated from the list of settings: a sample file, and the page about all settings.

python -m tests.settings_pages sample > docs/admin/settings.toml
python -m tests.settings_pages reference > docs/settings.md
"""

import sys
from collections.abc import Iterator
from enum import Enum
from itertools import groupby
from pathlib import PurePath
from textwrap import wrap

import tomlkit

from mydata_like.settings.fields import format_value
from mydata_like.settings.layers import variable_of
from mydata_like.settings.schema import Settings, iter_settings
from mydata_like.settings.server_layer import FORBIDDEN, FORBIDDEN_VALUES, SHOWN, matches

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


_REFERENCE_OPENING = """\
# Settings

<!-- Made by `make pages` from the schema of the settings. -->

Settings are stored in one TOML file, `settings.toml`, with a table for each section:

```toml
[server]
url = "https://mytardis.example.org"
username = "facility"

[filters]
ignore_older_than = "6 months"
excludes = ["*.tmp", "cache/"]
```

A value can be set in several places. The last of these applies: the default, the managed file of
the machine, your own file, an environment variable, the option `--set section.key=value`.
`mydata-like settings explain KEY` shows where a value comes from, and `mydata-like settings check`
lists all errors. Environment variables are named as in `{variable}`. In environment
variables and options, lists are separated by commas.

Administrators set values for all users in the managed file (on Linux
`/etc/xdg/mydata-like/managed.toml`, on macOS
`/Library/Application Support/mydata-like/managed.toml`, on Windows
`C:\\ProgramData\\mydata-like\\managed.toml`) and can lock settings there:

```toml
[server]
url = "https://mytardis.example.org"

[locked]
keys = ["server.*", "transfer.ciphers"]
by = "Facility IT"
```

The API key is not a setting. `mydata-like settings set-key` stores it in the system's keyring, or
with `--store=file` in an unencrypted file that only you can read. Services can pass it in the
environment variable `MYDATA_LIKE_API_KEY` or as the systemd credential `mydata-like-api-key`. The
first of these that has a key is used: environment variable, credential, file, keyring. The secret
of the access key for object storage is stored in the same ways, with `set-key --s3`,
`MYDATA_LIKE_S3_SECRET` and `mydata-like-s3-secret`.

Administrators of the server can set some settings for each uploader there; each setting below
states whether such a value applies. It overrides your own file if it was changed later.

If the environment variable `MYDATA_LIKE_HOME` names a folder, all of the program's own files are
stored below it.
"""


def build_reference() -> str:
    """Return the page as Markdown."""
    return "\n".join(_reference_lines())


def _reference_lines() -> Iterator[str]:
    yield _REFERENCE_OPENING.format(variable=variable_of("server.url"))
    for section, settings in groupby(iter_settings(), key=lambda setting: setting.section):
        table = Settings.__annotations__[section]
        yield f"## [{section}]\n"
        yield f"{table.__doc__}\n"
        for setting in settings:
            yield f"### {setting.key}\n"
            required = " Required." if setting.about.required else ""
            yield f"**{setting.about.label}.** {setting.about.help}{required}\n"
            default = format_value(setting, setting.default)
            yield f"- default: `{default}`" if default else "- default: empty"
            for fact in setting.facts:
                yield f"- {fact}"
            yield f"- from the server: {_name_server_right(setting.key)}"
            yield ""


def _name_server_right(key: str) -> str:
    """Return whether a setting from the server applies."""
    if matches(key, FORBIDDEN):
        return "refused"
    values = " or ".join(f"`{value}`" for value in FORBIDDEN_VALUES.get(key, ()))
    but = f", except for {values}" if values else ""
    return f"applies{but}, and is shown" if matches(key, SHOWN) else "applies"


if __name__ == "__main__":
    sys.stdout.write(build_sample() if sys.argv[1:] == ["sample"] else build_reference())
