"""The lists of all events and problem codes, which docs/conf.py puts into docs/events.md."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from types import NoneType
from typing import Final, get_args

from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, event_name
from mydata_like.core.problems import PROBLEMS, Fixer

_KINDS: Final = {
    bytes: "path",
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    datetime: "time",
    Problem: "problem",
    Mapping[str, float]: "numbers by name",
    tuple[bytes, ...]: "paths",
    tuple[int, ...]: "integers",
    NoneType: "null",
}
_FIXERS: Final = {
    Fixer.USER: "The user can fix",
    Fixer.ADMINISTRATOR: "An administrator can fix",
    Fixer.SERVER: "Ends when the server recovers",
    Fixer.NOBODY: "Nothing to fix",
}


def list_events() -> Iterator[str]:
    """Yield the text about each event: its name, its docstring and its fields."""
    for event in get_args(Event):
        yield f"\n### {event_name(event)}\n\n"
        yield f"{inspect.getdoc(event)}\n\n"
        names: dict[str, list[str]] = {}
        for field in fields(event):
            names.setdefault(_name_kind(field.type), []).append(f"`{field.name}`")
        kinds = [f"{kind} {', '.join(of_kind)}" for kind, of_kind in names.items()]
        yield f"Fields: {'; '.join(kinds) or 'none'}.\n"


def list_codes() -> Iterator[str]:
    """Yield the text about all codes and their meanings, by who can fix it."""
    for fixer, heading in _FIXERS.items():
        yield f"\n### {heading}\n\n"
        for code, info in PROBLEMS.items():
            if info.fixer is fixer:
                intended = " (on purpose)" if info.intended else ""
                yield f"- `{code}`{intended}: {info.meaning}\n"


def _name_kind(kind: object) -> str:
    """Return the JSON type of a value, such as `time or null`."""
    kinds = (kind,) if kind in _KINDS else get_args(kind)
    return " or ".join(_KINDS[each] for each in kinds)
