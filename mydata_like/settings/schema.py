"""The list of all settings, and the validation of values by dotted key."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from mydata_like.core.model import Layout
from mydata_like.settings.fields import (
    FieldInfo,
    Section,
    Setting,
    SettingProblem,
    plain_value,
)
from mydata_like.settings.schedule_section import Schedule
from mydata_like.settings.sections import (
    Advanced,
    Data,
    DataDestination,
    Filters,
    Instrument,
    Monitor,
    Server,
    Window,
)
from mydata_like.settings.transfer_sections import Archive, Limits, Transfer

__all__ = [
    "Advanced",
    "Archive",
    "Data",
    "DataDestination",
    "Filters",
    "Instrument",
    "Limits",
    "Monitor",
    "Schedule",
    "Section",
    "Server",
    "Settings",
    "Transfer",
    "Window",
    "find_missing",
    "iter_settings",
    "settings_by_key",
]


class Settings(Section):
    """All settings; valid without any file, but not ready to run (see `find_missing`)."""

    destination: DataDestination = DataDestination()
    server: Server = Server()
    instrument: Instrument = Instrument()
    data: Data = Data()
    filters: Filters = Filters()
    transfer: Transfer = Transfer()
    archive: Archive = Archive()
    schedule: Schedule = Schedule()
    limits: Limits = Limits()
    monitor: Monitor = Monitor()
    window: Window = Window()
    advanced: Advanced = Advanced()

    @classmethod
    def read(cls, values: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
        """Return the sections, which are already checked."""
        return dict(values), {}

    def value(self, key: str) -> object:
        """Return the value of a dotted key, as in `server.url`."""
        section, _, name = key.partition(".")
        found: object = getattr(getattr(self, section), name)
        return found


def iter_settings() -> Iterator[Setting]:
    """Yield every setting in the order of the file and the dialog."""
    for section, table in Settings.__annotations__.items():
        for name, annotation in table.__annotations__.items():
            about = annotation.__metadata__[-1]
            yield Setting(f"{section}.{name}", annotation, getattr(table, name), about)


@cache
def settings_by_key() -> MappingProxyType[str, Setting]:
    """Return the settings by their dotted keys."""
    return MappingProxyType({setting.key: setting for setting in iter_settings()})


def find_missing(settings: Settings) -> tuple[Setting, ...]:
    """Return the settings that a run needs and that are still empty."""
    required = [setting for setting in iter_settings() if setting.about.required]
    if settings.destination.takes_tree:
        required = [settings_by_key()[key] for key in ("destination.address", "data.directory")]
    return tuple(setting for setting in required if settings.value(setting.key) in ("", None))


CONTEXT: Final = "settings"  # of the translations of these texts


def short_unit(about: FieldInfo) -> str:
    """Return the unit of a number as an input field shows it, without its explanation."""
    return about.unit.partition(" (")[0]


def check_values(
    values: Mapping[str, object],
) -> tuple[Settings | None, tuple[SettingProblem, ...]]:
    """Return the settings made of these values, or None and every error in them.

    Values are as in TOML (checked values are accepted as well), by dotted key; missing ones have
    their defaults. If folders arrive as they are, each in the data directory is a dataset, whatever
    the layout is.
    """
    problems: dict[str, str] = {}
    tables: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        try:  # JSON cannot represent lone surrogates and infinite numbers
            text = json.dumps(value, default=_describe, ensure_ascii=False)
            tables.setdefault(section, {})[name] = json.loads(text.encode())
        except (ValueError, RecursionError):
            problems[key] = "is not plain text or a number"
    sections: dict[str, Section] = {}
    for section, kind in Settings.__annotations__.items():
        right, wrong = kind.read(tables.pop(section, {}))
        sections[section] = kind.of(right)
        found = dict(sections[section].conflicts()) | wrong
        problems |= {f"{section}.{name}": text for name, text in found.items()}
    destination, data = sections["destination"], sections["data"]
    if isinstance(destination, DataDestination) and destination.takes_tree:
        sections["data"] = data.of(vars(data) | {"layout": Layout.DATASET})
    problems |= {
        f"{section}.{name}": "is not a setting" for section in tables for name in tables[section]
    }
    all_problems = tuple(SettingProblem(key, text) for key, text in problems.items())
    return (None if all_problems else Settings.of(sections)), all_problems


def _describe(value: object) -> object:
    plain = plain_value(value)
    return plain if plain is not value else str(value)
