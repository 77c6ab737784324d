"""The parts of docs/events.md that list all events and problem codes.

python -m tests.events_page docs/events.md
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from textwrap import wrap
from types import NoneType
from typing import Final, get_args

from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, event_name
from mydata_like.core.problems import PROBLEMS, Fixer

_EVENTS: Final = "<!-- Made by `make pages` from the docstrings of core/events.py. -->\n"
_CODES: Final = "<!-- Made by `make pages` from the table in core/problems.py. -->\n"
_END: Final = "\n<!-- The end of what is made. -->\n"
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


def build_reference(page: str, *, meanings: bool = False) -> str:
    """Return the page with its generated parts updated; all other text stays unchanged.

    With `meanings`, as on the site, each code has its meaning.
    """
    return _replace(_replace(page, _EVENTS, _event_lines()), _CODES, _code_lines(meanings))


def _replace(page: str, begin: str, lines: Iterable[str]) -> str:
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(_END)
    return "".join((before, begin, *lines, _END, after))


def _event_lines() -> Iterator[str]:
    for event in get_args(Event):
        yield f"\n### {event_name(event)}\n\n"
        yield f"{inspect.getdoc(event)}\n\n"
        names: dict[str, list[str]] = {}
        for field in fields(event):
            names.setdefault(_name_kind(field.type), []).append(f"`{field.name}`")
        kinds = [f"{kind} {', '.join(of_kind)}" for kind, of_kind in names.items()]
        yield f"Fields: {'; '.join(kinds) or 'none'}.\n"


def _code_lines(meanings: bool) -> Iterator[str]:
    for fixer, heading in _FIXERS.items():
        yield f"\n### {heading}\n\n"
        codes = {code: info for code, info in PROBLEMS.items() if info.fixer is fixer}
        if meanings:
            for code, info in codes.items():
                intended = " (on purpose)" if info.intended else ""
                yield f"- `{code}`{intended}: {info.meaning}\n"
        else:
            yield from (
                f"{line}\n"
                for line in wrap(
                    ", ".join(f"`{code}`" for code in codes), 120, break_on_hyphens=False
                )
            )


def _name_kind(kind: object) -> str:
    """Return the JSON type of a value, such as `time or null`."""
    kinds = (kind,) if kind in _KINDS else get_args(kind)
    return " or ".join(_KINDS[each] for each in kinds)


if __name__ == "__main__":
    _page = Path(sys.argv[1])
    _page.write_text(build_reference(_page.read_text("utf-8")), "utf-8")
