"""What is said about each setting: the one mechanism behind file, dialog and documentation."""

import datetime
import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, dataclass_transform, get_args, get_origin

from mydata_like.core.errors import SettingsError
from mydata_like.settings.values import Range, read_value


class FieldInfo(NamedTuple):
    """The words that go with one setting.

    `help` is one sentence: the meaning, the unit, when to change it. `legacy` are the keys of
    MyData.cfg that the setting replaces. `required` settings must be given before a run;
    `secret` ones are never shown. `former` are values of earlier versions, each with the one that
    counts in its place.
    """

    label: str
    help: str
    legacy: tuple[str, ...] = ()
    unit: str = ""
    required: bool = False
    secret: bool = False
    former: tuple[tuple[str, str], ...] = ()


class Setting(NamedTuple):
    """One setting of the schema: its dotted key, what it may hold, and the words about it."""

    key: str
    annotation: Any  # as `reading` understands it
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
        """The fixed texts to choose from; empty where the text is free."""
        kind = get_args(self._plain)[0] if self.many else self._plain
        if get_origin(kind) is Literal:
            return get_args(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return tuple(str(member.value) for member in kind)
        return ()

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The smallest and the greatest number allowed."""
        checks = self.annotation.__metadata__
        return next((check for check in checks if isinstance(check, Range)), (None, None))

    @property
    def facts(self) -> tuple[str, ...]:
        """Unit, limits, choices and the like, as short lines for people."""
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
        """The kind without its checks."""
        return get_args(self.annotation)[0]


def describe(key: str, annotation: Any, default: object) -> Setting:
    """Return the setting of a field; each one must carry an `FieldInfo`."""
    about = next(entry for entry in annotation.__metadata__ if isinstance(entry, FieldInfo))
    return Setting(key, annotation, default, about)


_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def parse_value(setting: Setting, text: str) -> object:
    """Return what a settings file would hold for this text.

    Lists are parted by commas or written as in TOML. What cannot be read as the setting's kind
    is returned as it is: the check of the value says what is wrong with it.
    """
    text = text.strip()
    if setting.many:
        return _parse_list(text)
    if setting.kind is bool:
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(
            text.lower(), text
        )
    if setting.kind in (int, float):
        return _parse_number(setting.kind, text)
    return text


def _parse_list(text: str) -> object:
    if text.startswith("["):
        try:
            return tomllib.loads(f"list = {text}")["list"]
        except (ValueError, RecursionError):
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_number(kind: type, text: str) -> object:
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


def format_value(setting: Setting, value: object) -> str:
    """Return a value as `parse_value` reads it; a secret one as three stars."""
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
    """Return a checked value as TOML and JSON hold it: plain text, numbers and lists."""
    if isinstance(value, tuple):
        return [plain_value(member) for member in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path | datetime.date | datetime.time):
        return str(value)
    return value


class SettingProblem(NamedTuple):
    """One thing that is wrong with one setting.

    `key` is dotted, or empty where a whole file is at fault; `origin` is the file, the
    environment variable or the option it came from; `line` is 0 where there are no lines.
    """

    key: str
    message: str
    origin: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.origin}, line {self.line}" if self.line else self.origin
        return ": ".join(part for part in (place, f"{self.key} {self.message}".strip()) if part)


class InvalidSettingsError(SettingsError):
    """Settings are wrong; `problems` lists all that is wrong with them."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(str(problem) for problem in problems),
            hint="Correct the settings; `mydata-like settings check` looks at them again.",
        )


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the sentence for an unknown key, with the nearest known one."""
    if key.rpartition(".")[2].lower() in ("api_key", "apikey", "password", "token"):
        return "is a secret and not a setting: store it with `mydata-like settings set-key`"
    nearest = find_nearest(key, known)
    return f"is no setting; did you mean {nearest}?" if nearest else "is no setting"


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a mistyped one was most likely meant to be."""
    by_folded: Mapping[str, str] = {entry.lower(): entry for entry in known}
    close = difflib.get_close_matches(word.lower()[:200], list(by_folded), n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Section:
    """A table of the settings file. What is not given has its default; nothing can be changed."""

    def __init__(self, **values: object) -> None:
        """Take plain values or checked ones; raises InvalidSettingsError with all wrong ones."""
        right, wrong = self.read({name: plain_value(value) for name, value in values.items()})
        vars(self).update(right)
        wrong = wrong or dict(self.conflicts())
        if wrong:
            table = type(self).__name__.lower()
            problems = [SettingProblem(f"{table}.{name}", text) for name, text in wrong.items()]
            raise InvalidSettingsError(problems)

    @classmethod
    def of(cls, right: Mapping[str, object]) -> Self:
        """Return the section of values that have been checked."""
        section = cls.__new__(cls)
        vars(section).update(right)
        return section

    @classmethod
    def read(cls, values: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
        """Return plain values as their fields hold them, and what is wrong with the others."""
        right: dict[str, object] = {}
        wrong: dict[str, str] = {}
        for name, value in values.items():
            if name not in cls.__annotations__:
                wrong[name] = "is no setting"
                continue
            try:
                right[name] = read_value(cls.__annotations__[name], value)
            except ValueError as error:
                wrong[name] = str(error)
        return right, wrong

    def conflicts(self) -> Iterable[tuple[str, str]]:
        """Yield what is wrong with several values at once: the name of one, and a sentence."""
        return ()

    def changed(self, **values: object) -> Self:
        """Return the same with other values, which have been checked."""
        return self.of(vars(self) | values)

    def values(self) -> dict[str, Any]:
        """Return all values by their names, the defaults included."""
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
