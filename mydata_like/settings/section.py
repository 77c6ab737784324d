"""What a table of the settings file may hold: fields with their kinds, checks and words.

    requests: Annotated[int, Between(1, 16), About("Parallel requests", "...")] = 4

The annotation is all that there is: `reading` checks values by it, `about` tells of it. Nothing is
worked out while the classes are made, since every start of the program makes them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self, dataclass_transform

from mydata_like.settings.problems import InvalidSettingsError, SettingProblem
from mydata_like.settings.reading import read_value
from mydata_like.settings.text import plain_value


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
