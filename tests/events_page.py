"""The parts of docs/events.md that list all events and problem codes.

python -m tests.events_page docs/events.md
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Final, get_args

from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, event_name
from mydata_like.core.problems import PROBLEMS

_EVENTS: Final = "<!-- Made by `make pages` from the docstrings of core/events.py. -->\n"
_CODES: Final = "<!-- Made by `make pages` from the table in core/problems.py. -->\n"
_END: Final = "\n<!-- The end of what is made. -->\n"
_KINDS: Final = {
    bytes: "path",
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    datetime: "time",
    Problem: "problem",
    Mapping[str, float]: "numbers by name",
    tuple[bytes, ...]: "paths",
    tuple[int, ...]: "whole numbers",
    NoneType: "null",
}


def build_reference(page: str) -> str:
    """Return the page with its generated parts updated; all other text stays unchanged."""
    return _replace(_replace(page, _EVENTS, _event_lines()), _CODES, _code_lines())


def _replace(page: str, begin: str, lines: Iterable[str]) -> str:
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(_END)
    return "".join((before, begin, *lines, _END, after))


def _event_lines() -> Iterator[str]:
    for event in get_args(Event):
        yield f"\n### {event_name(event)}\n\n"
        yield f"{inspect.getdoc(event)}\n\n"
        names = [f"`{field.name}` ({_name_kind(field.type)})" for field in fields(event)]
        yield f"Fields: {', '.join(names) or 'none'}.\n"


def _code_lines() -> Iterator[str]:
    yield "\n| code | what happened | who can fix it | button in the window |\n|---|---|---|---|\n"
    for code, info in PROBLEMS.items():
        meaning = f"{info.meaning} Counts as skipped on purpose." if info.intended else info.meaning
        button = f"{info.action.value} (`{info.setting}`)" if info.setting else info.action.value
        yield f"| `{code}` | {meaning} | {info.fixer.value} | {button} |\n"


def _name_kind(kind: object) -> str:
    """Return the JSON type of a value, such as `time or null`."""
    kinds = (kind,) if kind in _KINDS else get_args(kind)
    return " or ".join(_KINDS[each] for each in kinds)


if __name__ == "__main__":
    _page = Path(sys.argv[1])
    _page.write_text(build_reference(_page.read_text("utf-8")), "utf-8")
