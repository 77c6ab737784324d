"""The settings while a person changes them: what would count, and what is wrong with it.

A draft touches no disk. Values are plain, as TOML and JSON have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time
from typing import Final, Literal

from mydata_like.settings.fields import SettingProblem, plain_value
from mydata_like.settings.layers import Layer, Layers, ResolvedValue
from mydata_like.settings.schema import Settings, find_missing, settings_by_key
from mydata_like.settings.validate import check_values

NOBODY: Final = Layers({}, {}, ())
# These stand above the user's file: what is written there does not count while they are set.
_STRONGER: Final = (Layer.ENVIRONMENT, Layer.OPTION)


KeyStore = Literal["keyring", "file"]


@dataclass(frozen=True, slots=True)
class ApiKeyChange:
    """A new API key for the account and where to store it; without a text the key is deleted."""

    text: str | None = field(repr=False)
    store: KeyStore = "keyring"


class PendingChanges:
    """What the layers say, with changes to the user's file that are not written yet."""

    def __init__(self, layers: Layers = NOBODY, seen: bytes = b"") -> None:
        """`seen` is the content of the user's file as it was read."""
        self.seen = seen
        self._layers = layers
        self._changes: dict[str, object] = {}
        self._checked: tuple[Settings | None, Mapping[str, str]] | None = None

    @property
    def changes(self) -> Mapping[str, object]:
        """What to write to the user's file, by dotted key; None removes the key from it."""
        return dict(self._changes)

    @property
    def settings(self) -> Settings | None:
        """The settings as they would be, or None while any of them is wrong."""
        return self._check()[0]

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong with the values, by dotted key."""
        return self._check()[1]

    @property
    def file_problems(self) -> tuple[SettingProblem, ...]:
        """What is wrong with the files themselves, which no value mends."""
        return self._layers.problems

    @property
    def missing(self) -> frozenset[str]:
        """The keys that a run needs and that are empty."""
        settings = self.settings
        return frozenset(entry.key for entry in find_missing(settings)) if settings else frozenset()

    def part(self, *sections: str) -> Settings | None:
        """Return settings of which only these sections count; None while those are wrong."""
        keys = (key for key in self._keys if key.partition(".")[0] in sections)
        return check_values({key: self.value(key) for key in keys})[0]

    def value(self, key: str) -> object:
        """Return the value that would count."""
        if self.is_changed(key) and self._changes[key] is not None and not self.fixed_by(key):
            return self._changes[key]
        return _plain(self.winner(key).value)

    def winner(self, key: str) -> ResolvedValue:
        """Return what gives the setting its value, apart from a value that is not written yet."""
        given = [
            entry
            for entry in (*self._base(key), *self._layers.given.get(key, ()))
            if not entry.ignored and not (entry.source is Layer.USER and key in self._changes)
        ]
        return given[-1]

    def fixed_by(self, key: str) -> str:
        """Return who decides above the user's file, in words; empty where the file counts."""
        if locked_by := self._layers.locked_by.get(key):
            return locked_by
        stronger = (e.origin for e in self._layers.given.get(key, ()) if e.source in _STRONGER)
        return next(stronger, "")

    def is_changed(self, key: str) -> bool:
        """Return whether there is a change that is not written yet."""
        return key in self._changes

    def is_own(self, key: str) -> bool:
        """Return whether the user's file would give the setting a value that counts."""
        if key in self._changes:
            return self._changes[key] is not None
        return self._in_file(key) and not self.fixed_by(key)

    def set(self, key: str, value: object) -> None:
        """Change a value; one that is as it was before is no change."""
        self._checked = None
        self._changes.pop(key, None)
        if _plain(value) != self.value(key):
            self._changes[key] = _plain(value)

    def reset(self, key: str) -> None:
        """Take a setting out of the user's file, so that the other layers decide."""
        self._checked = None
        self._changes.pop(key, None)
        if self._in_file(key):
            self._changes[key] = None

    def take(self, changes: Mapping[str, object]) -> tuple[str, ...]:
        """Make several changes; return the keys that somebody else decides on."""
        refused = tuple(key for key in changes if self.fixed_by(key))
        for key, value in changes.items():
            if value is None:
                self.reset(key)
            elif key not in refused:
                self.set(key, value)
        return refused

    def own_values(self) -> Mapping[str, object]:
        """Return what the user's file would say, by dotted key."""
        return {key: self.value(key) for key in settings_by_key() if self.is_own(key)}

    @property
    def _keys(self) -> frozenset[str]:
        return frozenset(self._layers.given.keys() | self._changes.keys())

    def _base(self, key: str) -> tuple[ResolvedValue]:
        return (ResolvedValue(Layer.DEFAULT, settings_by_key()[key].default),)

    def _in_file(self, key: str) -> bool:
        return any(entry.source is Layer.USER for entry in self._layers.given.get(key, ()))

    def _check(self) -> tuple[Settings | None, Mapping[str, str]]:
        if self._checked is None:
            settings, problems = check_values({key: self.value(key) for key in self._keys})
            self._checked = settings, {entry.key: entry.message for entry in problems}
        return self._checked


def _plain(value: object) -> object:
    """Return a value as JSON has it: what a file writes as a date or a time is text, too."""
    if isinstance(value, tuple | list):
        return [_plain(member) for member in value]
    return str(value) if isinstance(value, date | time) else plain_value(value)
