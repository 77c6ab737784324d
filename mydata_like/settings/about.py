"""What is said about each setting: the one mechanism behind file, dialog and documentation."""

from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class About:
    """The words that go with one setting.

    `help` is one sentence: the meaning, the unit, when to change it. `legacy` are the keys of
    MyData.cfg that the setting replaces. `required` settings must be given before a run;
    `secret` ones are never shown.
    """

    label: str
    help: str
    legacy: tuple[str, ...] = ()
    unit: str = ""
    required: bool = False
    secret: bool = False


class Setting(NamedTuple):
    """One setting of the schema: its dotted key, its pydantic field and the words about it."""

    key: str
    field: FieldInfo
    about: About

    @property
    def section(self) -> str:
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        return self.key.partition(".")[2]

    @property
    def default(self) -> Any:
        return self.field.get_default(call_default_factory=True)

    @property
    def kind(self) -> type:
        """The plain type of a value, or of the members of a list (see `many`)."""
        return _plain_type(self.field.annotation)

    @property
    def many(self) -> bool:
        return get_origin(self.field.annotation) is tuple

    @property
    def choices(self) -> tuple[str, ...]:
        """The fixed texts to choose from; empty where the text is free."""
        annotation = self.field.annotation
        return _list_choices(get_args(annotation)[0] if self.many else annotation)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The smallest and the greatest number allowed."""
        return self._limit("ge"), self._limit("le")

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

    def _limit(self, name: str) -> float | None:
        found = (getattr(entry, name, None) for entry in self.field.metadata)
        return next((limit for limit in found if limit is not None), None)


def describe(key: str, field: FieldInfo) -> Setting:
    """Return the setting of a field; each one must carry an `About`."""
    about = next(entry for entry in field.metadata if isinstance(entry, About))
    return Setting(key, field, about)


def _list_choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return tuple(choice for part in get_args(annotation) for choice in _list_choices(part))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(member.value) for member in annotation)
    return ()


def _plain_type(annotation: Any) -> type:
    origin = get_origin(annotation)
    if origin is Literal:
        return str
    if origin in (Union, UnionType, tuple):
        return _plain_type(get_args(annotation)[0])
    if origin is not None:  # Annotated
        return _plain_type(get_args(annotation)[0])
    assert isinstance(annotation, type)
    return annotation
