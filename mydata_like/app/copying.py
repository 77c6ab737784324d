"""Taking over the settings of another file of ours, as an administrator hands one on."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from mydata_like.app.importing import Kept, Present
from mydata_like.app.settings import find_places, find_sources
from mydata_like.core.errors import SettingsError
from mydata_like.settings.fields import InvalidSettingsError, plain_value
from mydata_like.settings.layers import load_settings as load_layers
from mydata_like.settings.layers import preview_settings
from mydata_like.settings.mydata_cfg import read_legacy_file
from mydata_like.settings.settings_file import read_settings_file
from mydata_like.settings.validate import check_values

PERSONAL = frozenset({"instrument.uuid", "transfer.key_file", "advanced.state_directory"})


class Copying(NamedTuple):
    """What another settings file would change here; nothing is done yet."""

    changes: Mapping[str, object]  # by dotted key
    kept: tuple[Kept, ...]  # what is locked here


def find_settings_kind(path: Path) -> Literal["mydata", "ours", ""]:
    """Return whether a file has the settings of MyData, or ours; empty for anything else."""
    if path.suffix.lower() == ".toml":
        return "ours" if path.is_file() and read_settings_file(path).values else ""
    try:
        return "mydata" if path.is_file() and read_legacy_file(path).pairs else ""
    except SettingsError:
        return ""


def plan_copying(source: Path, config: Path | None) -> Copying:
    """Return what taking over a settings file would change in the user's own.

    What makes an installation this one, and none of another computer, is left out. Raises
    `SettingsError` where the file, or what would become of the settings here, is wrong.
    """
    file = read_settings_file(source)
    values = {key: value for key, value in file.values.items() if key not in PERSONAL}
    _, problems = check_values(values)
    if file.problems or problems:
        raise InvalidSettingsError([*file.problems, *problems])
    # What the environment says today is no reason to leave anything out of the file.
    sources = replace(find_sources(config), environment={})
    present = Present(load_layers(sources), find_places(config))
    plain = {key: plain_value(value) for key, value in values.items()}
    changes, kept = present.compare(plain, force=True)
    preview_settings(sources, changes)
    return Copying(changes, kept)
