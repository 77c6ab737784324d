"""What is said about each setting: the one mechanism behind file, dialog and documentation."""

from enum import Enum
from typing import Any, Literal, NamedTuple, get_args, get_origin

from mydata_like.settings.reading import Between


class About(NamedTuple):
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
    about: About

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
        return next((check for check in checks if isinstance(check, Between)), (None, None))

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
    """Return the setting of a field; each one must carry an `About`."""
    about = next(entry for entry in annotation.__metadata__ if isinstance(entry, About))
    return Setting(key, annotation, default, about)
