"""The type of a fuzz target, and adapters for the inputs of parsers."""

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
    """A parser; `open` prepares it in an empty folder, `declared` are the errors it may raise."""

    name: str
    samples: tuple[bytes, ...]
    others: tuple[bytes, ...] = ()  # further samples, which are invalid
    open: Callable[[Path], Parse]
    declared: tuple[type[Exception], ...] = ()
    has_json: bool = False
    slow: bool = False  # more than a millisecond for one input


def plain(parse: Parse) -> Callable[[Path], Parse]:
    return lambda folder: parse


def load_values(data: bytes) -> Any:
    """Return the value of a JSON text; None for other texts, which another parser handles."""
    try:
        return parse_json(data, longest=len(data))
    except ValueError:
        return None


def of_text(parse: Callable[[str], object]) -> Callable[[Path], Parse]:
    return lambda folder: lambda data: parse(data.decode("utf-8", "surrogateescape"))


def of_file(parse: Callable[[Path], object]) -> Callable[[Path], Parse]:
    """Return a target that writes each input to a private file and parses the file."""

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
