"""Reads a plain value, as TOML and JSON have it, as the kind that an annotation names."""

import datetime
import math
import re
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d\d:\d\d\S*", re.ASCII)


class Between(NamedTuple):
    """The check of a number: the smallest and the greatest that is allowed."""

    lowest: float
    highest: float

    def __call__(self, number: float) -> float:
        if number < self.lowest:
            raise ValueError(f"must be at least {self.lowest}")
        if number > self.highest:
            raise ValueError(f"must be at most {self.highest}")
        return number


def read_value(annotation: Any, value: object) -> object:
    """Return a plain value as the annotation's kind, checked; raises ValueError that says why not.

    What is callable behind the kind is a check: it returns the value in its one spelling.
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        read = read_value(parts[0], value)
        for check in filter(callable, parts[1:]):
            read = check(read)
        return read
    if origin is UnionType:  # with None
        return None if value is None else read_value(parts[0], value)
    if origin is tuple:
        return _read_list(parts[0], value)
    if origin is Literal:
        return _choose(dict(zip(parts, parts, strict=True)), value)
    return _read_kind(annotation, value)


def _read_kind(kind: type, value: object) -> object:
    if issubclass(kind, Enum):
        return _choose({member.value: member for member in kind}, value)
    return _READERS[kind](value)


def _read_list(member: Any, value: object) -> tuple[object, ...]:
    """Read each member of a list; what is wrong with any is told with its number."""
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list, as in ['a', 'b']")
    read, wrong = [], []
    for number, entry in enumerate(value, 1):
        try:
            read.append(read_value(member, entry))
        except ValueError as error:
            wrong.append(f"(entry {number}) {error}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return tuple(read)


def _choose(choices: Mapping[Any, object], value: object) -> object:
    if isinstance(value, str) and value in choices:
        return choices[value]
    *others, last = map(repr, choices)
    raise ValueError(f"must be one of: {', '.join(others)} or {last}")


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _read_whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return value


def _read_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


def _read_path(value: object) -> Path | None:
    text = _read_text(value)
    return Path(text) if text else None


def _read_date(value: object) -> datetime.date:
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            return datetime.date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("must be a day, as in 2026-12-31")


def _read_time(value: object) -> datetime.time:
    try:
        if isinstance(value, str) and _TIME.fullmatch(value):
            return datetime.time.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("must be a time, as in 18:30:00")


_READERS: Final[Mapping[type, Callable[[object], object]]] = MappingProxyType(
    {
        str: _read_text,
        bool: _read_flag,
        int: _read_whole,
        float: _read_number,
        Path: _read_path,
        datetime.date: _read_date,
        datetime.time: _read_time,
    }
)
