"""What a fuzz target is, and the ways in which parsers take their input."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mydata_like.core.parsing import parse_json

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIME = NOW.isoformat()
MD5 = "d41d8cd98f00b204e9800998ecf8427e"

Parse = Callable[[bytes], object]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One parser. `open` prepares it in an empty folder; `declared` are the errors it may raise."""

    name: str
    samples: tuple[bytes, ...]
    others: tuple[bytes, ...] = ()  # to be changed as well; these are refused
    open: Callable[[Path], Parse]
    declared: tuple[type[Exception], ...] = ()
    has_json: bool = False
    slow: bool = False  # more than a millisecond for one input


def plain(parse: Parse) -> Callable[[Path], Parse]:
    return lambda folder: parse


def load_values(data: bytes) -> Any:
    """Return a JSON text's value, None for what is none: another parser has to do with that."""
    try:
        return parse_json(data, longest=len(data))
    except ValueError:
        return None


def of_text(parse: Callable[[str], object]) -> Callable[[Path], Parse]:
    return lambda folder: lambda data: parse(data.decode("utf-8", "surrogateescape"))


def of_file(parse: Callable[[Path], object]) -> Callable[[Path], Parse]:
    """Return what writes each input to a file, which only its owner may read, and parses that."""

    def open_target(folder: Path) -> Parse:
        path = folder / "input"
        path.touch(0o600)

        def parse_file(data: bytes) -> object:
            path.write_bytes(data)
            return parse(path)

        return parse_file

    return open_target


def to_json(value: object) -> bytes:
    return json.dumps(value).encode()
