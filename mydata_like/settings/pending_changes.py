"""Settings while the user changes them: the resulting values and their errors.

Nothing is read from or written to disk. Values are plain, as in TOML and JSON.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import date, time
from enum import Enum, auto
from typing import Final, Literal

from mydata_like.core.frozen import frozen
from mydata_like.settings.fields import SettingProblem, plain_value
from mydata_like.settings.layers import Layer, Layers, ResolvedValue
from mydata_like.settings.schema import Settings, check_values, find_missing, settings_by_key

NO_LAYERS: Final = Layers({}, {}, ())
# These layers override the user's file: values in it have no effect while they are set.
_STRONGER: Final = (Layer.ENVIRONMENT, Layer.OPTION)

KeyStore = Literal["keyring", "file"]


class SecretKind(Enum):
    """The secrets of an installation: that of its account and that of its S3 access key."""

    API_KEY = auto()
    S3_SECRET = auto()


@frozen()
class SecretChange:
    """A new secret and where to store it; None as text deletes the stored one."""

    text: str | None = field(repr=False)
    store: KeyStore = "keyring"
    kind: SecretKind = SecretKind.API_KEY


class PendingChanges:
    """The layers, with changes to the user's file that are not written yet."""

    def __init__(self, layers: Layers = NO_LAYERS, seen: bytes = b"") -> None:
        """Take the layers; `seen` is the content of the user's file when it was read."""
        self.seen = seen
        self._layers = layers
        self._changes: dict[str, object] = {}
        self._checked: tuple[Settings | None, Mapping[str, str]] | None = None

    @property
    def changes(self) -> Mapping[str, object]:
        """The changes to write to the user's file, by dotted key; None removes the key."""
        return dict(self._changes)

    @property
    def settings(self) -> Settings | None:
        """The settings with the changes, or None while any of them is wrong."""
        return self._check()[0]

    @property
    def problems(self) -> Mapping[str, str]:
        """The errors in values, by dotted key."""
        return self._check()[1]

    @property
    def wrong_keys(self) -> list[str]:
        """The keys of the settings that the user's file must correct, in the schema's order."""
        return [it for it in settings_by_key() if it in self.problems and not self.fixed_by(it)]

    @property
    def file_problems(self) -> tuple[SettingProblem, ...]:
        """The errors in the files themselves, which no change of a value fixes."""
        return self._layers.problems

    @property
    def missing(self) -> frozenset[str]:
        """The keys that a run needs and that are empty."""
        settings = self.settings
        return frozenset(entry.key for entry in find_missing(settings)) if settings else frozenset()

    def part(self, *sections: str) -> Settings | None:
        """Return settings made of these sections only; None while any of them is wrong."""
        keys = (key for key in self._keys if key.partition(".")[0] in sections)
        return check_values({key: self.value(key) for key in keys})[0]

    def value(self, key: str) -> object:
        """Return the value that would apply."""
        if self.is_changed(key) and self._changes[key] is not None and not self.fixed_by(key):
            return self._changes[key]
        return _plain(self.winner(key).value)

    def winner(self, key: str) -> ResolvedValue:
        """Return the layer value that applies, ignoring changes that are not written yet."""
        given = [
            entry
            for entry in (
                ResolvedValue(Layer.DEFAULT, settings_by_key()[key].default),
                *self._layers.given.get(key, ()),
            )
            if not entry.ignored and not (entry.source is Layer.USER and key in self._changes)
        ]
        return given[-1]

    def fixed_by(self, key: str) -> str:
        """Return the origin of the value that overrides the user's file; empty if none does."""
        if locked_by := self._layers.locked_by.get(key):
            return locked_by
        stronger = (e.origin for e in self._layers.given.get(key, ()) if e.source in _STRONGER)
        return next(stronger, "")

    def is_changed(self, key: str) -> bool:
        """Return whether a change is not written yet."""
        return key in self._changes

    def is_own(self, key: str) -> bool:
        """Return whether the user's file would set a value that applies."""
        if key in self._changes:
            return self._changes[key] is not None
        return self._in_file(key) and not self.fixed_by(key)

    def set(self, key: str, value: object) -> None:
        """Change a value; setting the previous value is no change."""
        self._checked = None
        self._changes.pop(key, None)
        if _plain(value) != self.value(key):
            self._changes[key] = _plain(value)

    def reset(self, key: str) -> None:
        """Remove a setting from the user's file, so that the other layers decide."""
        self._checked = None
        self._changes.pop(key, None)
        if self._in_file(key):
            self._changes[key] = None

    def take(self, changes: Mapping[str, object]) -> tuple[str, ...]:
        """Make several changes; return the keys that another layer decides."""
        refused = tuple(key for key in changes if self.fixed_by(key))
        for key, value in changes.items():
            if value is None:
                self.reset(key)
            elif key not in refused:
                self.set(key, value)
        return refused

    def own_values(self) -> Mapping[str, object]:
        """Return the values that the user's file would have, by dotted key."""
        return {key: self.value(key) for key in settings_by_key() if self.is_own(key)}

    @property
    def _keys(self) -> frozenset[str]:
        return frozenset(self._layers.given.keys() | self._changes.keys())

    def _in_file(self, key: str) -> bool:
        return any(entry.source is Layer.USER for entry in self._layers.given.get(key, ()))

    def _check(self) -> tuple[Settings | None, Mapping[str, str]]:
        if self._checked is None:
            settings, problems = check_values({key: self.value(key) for key in self._keys})
            self._checked = settings, {entry.key: entry.message for entry in problems}
        return self._checked


def _plain(value: object) -> object:
    """Return a value as JSON represents it; dates and times become text."""
    if isinstance(value, tuple | list):
        return [_plain(member) for member in value]
    return str(value) if isinstance(value, date | time) else plain_value(value)
