"""The metadata of each setting, from which file, dialog and documentation are made."""

import datetime
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Self,
    dataclass_transform,
    get_args,
    get_origin,
)

from mydata_like.core.errors import SettingsError
from mydata_like.settings.values import Range, read_value


class FieldInfo(NamedTuple):
    """The texts and flags of one setting.

    `help` states the meaning, the unit and when to change it. `legacy` are the keys of MyData.cfg
    that the setting replaces. `required` settings must be set before a run; `secret` ones are never
    shown. `former` maps values of earlier versions to the values that replace them.
    """

    label: str
    help: str
    legacy: tuple[str, ...] = ()
    unit: str = ""
    required: bool = False
    secret: bool = False
    former: tuple[tuple[str, str], ...] = ()


class Setting(NamedTuple):
    """One setting of the schema: its dotted key, its type and its metadata."""

    key: str
    annotation: Any  # as `values.read_value` interprets it
    default: Any
    about: FieldInfo

    @property
    def section(self) -> str:
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        return self.key.partition(".")[2]

    @property
    def kind(self) -> type:
        """The plain type of a value, or of the members of a list (see `many`)."""
        kind = self._plain
        while not isinstance(kind, type):
            kind = str if get_origin(kind) is Literal else get_args(kind)[0]
        return kind

    @property
    def many(self) -> bool:
        return get_origin(self._plain) is tuple

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed texts; empty if the text is free."""
        kind = get_args(self._plain)[0] if self.many else self._plain
        if get_origin(kind) is Literal:
            return get_args(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return tuple(str(member.value) for member in kind)
        return ()

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The smallest and the largest number allowed."""
        checks = self.annotation.__metadata__
        return next((check for check in checks if isinstance(check, Range)), (None, None))

    @property
    def facts(self) -> tuple[str, ...]:
        """Unit, limits, choices and old keys as short lines of text."""
        lowest, highest = self.limits
        facts = {
            "unit": self.about.unit,
            "from": f"{lowest} to {highest}" if lowest is not None else "",
            "one of": "; ".join(self.choices),
            "in MyData.cfg": ", ".join(self.about.legacy),
        }
        return tuple(f"{name}: {fact}" for name, fact in facts.items() if fact)

    @property
    def _plain(self) -> Any:
        """The type without its checks."""
        return get_args(self.annotation)[0]


class _Definition(NamedTuple):
    """What a section says about a setting besides its type."""

    about: FieldInfo
    default: object
    checks: tuple[Any, ...]  # as `values.read_value` takes them


def setting(
    label: str,
    help: str,
    *,
    default: object,
    check: Any = None,
    **flags: Any,
) -> Any:
    """Define a setting of a section; `flags` are further fields of `FieldInfo`."""
    return _Definition(FieldInfo(label, help, **flags), default, (check,) if check else ())


_FLAGS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)


def parse_value(setting: Setting, text: str) -> object:
    """Return the value that a settings file would have for this text.

    Lists are separated by commas or written as in TOML. A text that is not of the setting's type is
    returned unchanged; the check of the value then reports what is wrong.
    """
    text = text.strip()
    try:
        if setting.many and text.startswith("["):
            return tomllib.loads(f"list = {text}")["list"]
        if setting.many:
            return [part.strip() for part in text.split(",") if part.strip()]
        if setting.kind is bool:
            return _FLAGS.get(text.lower(), text)
        return setting.kind(text) if setting.kind in (int, float) else text
    except (ValueError, RecursionError):
        return text


def format_value(setting: Setting, value: object) -> str:
    """Return a value as `parse_value` reads it; a secret one as three asterisks."""
    if setting.about.secret and value:
        return "***"
    if isinstance(value, tuple | list):
        return ", ".join(format_value(setting, member) for member in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    return "" if value is None else str(value)


def plain_value(value: object) -> object:
    """Return a checked value as TOML and JSON represent it: plain text, numbers and lists."""
    if isinstance(value, tuple):
        return [plain_value(member) for member in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path | datetime.date | datetime.time):
        return str(value)
    return value


class SettingProblem(NamedTuple):
    """One error in one setting.

    `key` is dotted, or empty if the error concerns a whole file. `origin` is the file, the
    environment variable or the option that set the value. `line` is 0 if there are no lines.
    """

    key: str
    message: str
    origin: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.origin}, line {self.line}" if self.line else self.origin
        return ": ".join(part for part in (place, f"{self.key} {self.message}".strip()) if part)


class InvalidSettingsError(SettingsError):
    """Settings are wrong; `problems` lists every error."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(str(problem) for problem in problems),
            hint="Correct the settings; `mydata-like settings check` checks them again.",
        )


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown key, with the nearest known one."""
    if key.rpartition(".")[2].lower() in ("api_key", "apikey", "password", "token"):
        return "is a secret, not a setting: store it with `mydata-like settings set-key`"
    nearest = find_nearest(key, known)
    return f"is not a setting; did you mean {nearest}?" if nearest else "is not a setting"


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is closest to a mistyped one."""
    # Only a mistake needs it.
    import difflib

    by_folded: Mapping[str, str] = {entry.lower(): entry for entry in known}
    close = difflib.get_close_matches(word.lower()[:200], list(by_folded), n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Section:
    """An immutable table of the settings file; settings that are not given have their defaults."""

    def __init_subclass__(cls) -> None:
        """Turn what `setting` defines into annotated types and defaults."""
        for name, kind in cls.__annotations__.items():
            if isinstance(defined := vars(cls)[name], _Definition):
                cls.__annotations__[name] = Annotated[kind, *defined.checks, defined.about]
                setattr(cls, name, defined.default)

    def __init__(self, **values: object) -> None:
        """Take plain or checked values; raises InvalidSettingsError with every wrong one."""
        right, wrong = self.read({name: plain_value(value) for name, value in values.items()})
        vars(self).update(right)
        wrong = wrong or dict(self.conflicts())
        if wrong:
            table = type(self).__name__.lower()
            problems = [SettingProblem(f"{table}.{name}", text) for name, text in wrong.items()]
            raise InvalidSettingsError(problems)

    @classmethod
    def of(cls, right: Mapping[str, object]) -> Self:
        """Return a section of values that have been checked."""
        section = cls.__new__(cls)
        vars(section).update(right)
        return section

    @classmethod
    def read(cls, values: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
        """Return the checked values by name, and the errors of the others."""
        right: dict[str, object] = {}
        wrong: dict[str, str] = {}
        for name, value in values.items():
            if name not in cls.__annotations__:
                wrong[name] = "is not a setting"
                continue
            try:
                right[name] = read_value(cls.__annotations__[name], value)
            except ValueError as error:
                wrong[name] = str(error)
        return right, wrong

    def conflicts(self) -> Iterable[tuple[str, str]]:
        """Yield conflicts between several values: the name of one, and a message."""
        return ()

    def with_values(self, **values: object) -> Self:
        """Return a copy with other values, which have been checked."""
        return self.of(vars(self) | values)

    def values(self) -> dict[str, Any]:
        """Return all values by name, including defaults."""
        return {name: getattr(self, name) for name in self.__annotations__}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash(tuple(self.values().values()))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"
