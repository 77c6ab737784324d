"""Faults between client and server that tests can request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Any


@dataclass(frozen=True, slots=True)
class Delay:
    """Answer after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer with this instead of handling the request (with `handled`: after handling it)."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    handled: bool = False


@dataclass(frozen=True, slots=True)
class Drip:
    """Send the answer's body byte by byte, so many seconds apart."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Truncate:
    """Promise the whole body, send so many bytes of it and close the connection."""

    keep: int = 10


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection instead of answering; `handled`: the request was carried out."""

    handled: bool = True


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answer; `handled`: the request was carried out. Ends when the server stops."""

    handled: bool = False


@dataclass(frozen=True, slots=True)
class Slow:
    """Carry the request out in a transaction that stays open for so many seconds.

    What it writes is visible at the end only, and locked meanwhile: a second request that writes
    to the same dataset or names blocks its worker for good, as with gevent and psycopg2. What
    stands before the server answers 504 where it takes longer than `patience`.
    """

    seconds: float
    patience: float = inf


@dataclass(frozen=True, slots=True)
class StoreHalf:
    """Carry out the first half of a bulk request, and answer as if it were all."""


@dataclass(frozen=True, slots=True)
class StoreOtherChecksum:
    """Carry out a request with other checksums than it has."""

    md5sum: str = "f" * 32


@dataclass(frozen=True, slots=True)
class Cached:
    """Answer from a cache that keeps good answers; it may ignore `Cache-Control: no-cache`."""

    seconds: float = 1.0
    honours_no_cache: bool = True


Action = (
    Delay | Reply | Drip | Truncate | Reset | Hang | Slow | StoreHalf | StoreOtherChecksum | Cached
)

HTML_PAGE = Reply(
    200, b"<html><body>Please log in to the network.</body></html>", {"Content-Type": "text/html"}
)
WRONG_SHAPE = Reply(
    200, b'{"objects": {"not": "a list"}, "meta": []}', {"Content-Type": "application/json"}
)
EMPTY_LIST = Reply(
    200,
    b'{"meta": {"limit": 20, "next": null, "offset": 0, "previous": null, "total_count": 0},'
    b' "objects": []}',
    {"Content-Type": "application/json"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One rule: the `count` matching requests after the first `skip` meet an action.

    `path` is a regular expression searched for in path and query; `count` None is for ever. Of
    these requests only each `every`th meets it.
    """

    action: Action
    method: str | None = None
    path: str = ""
    count: int | None = 1
    skip: int = 0
    every: int = 1

    def matches(self, method: str, path: str) -> bool:
        return self.method in (None, method) and re.search(self.path, path) is not None


class FaultList:
    """The rules in force; the first that matches a request and is not used up acts."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self._met: list[int] = []
        self._guard = Lock()

    def add(self, *rules: Fault) -> None:
        """Put rules behind those that are there."""
        with self._guard:
            self._rules.extend(rules)
            self._met.extend(0 for _ in rules)

    def clear(self) -> None:
        with self._guard:
            self._rules.clear()
            self._met.clear()

    def find(self, method: str, path: str) -> Action | None:
        """Return what shall happen to a request; the rules before the acting one count it."""
        with self._guard:
            chosen: Action | None = None
            for index, rule in enumerate(self._rules):
                if chosen is not None or not rule.matches(method, path):
                    continue
                self._met[index] += 1
                turn = self._met[index] - rule.skip
                due = turn > 0 and (rule.count is None or turn <= rule.count)
                if due and turn % rule.every == 0:
                    chosen = rule.action
            return chosen


_ACTIONS: dict[str, Any] = {
    action.__name__.lower(): action
    for action in (
        *(Delay, Reply, Drip, Truncate, Reset, Hang),
        *(Slow, StoreHalf, StoreOtherChecksum, Cached),
    )
}
_READY = {"html": HTML_PAGE, "wrong_shape": WRONG_SHAPE, "empty_list": EMPTY_LIST}


def parse_fault(data: Mapping[str, Any]) -> Fault:
    """Return a rule from plain values, as in `{"action": "reset", "path": "dataset_file"}`.

    Besides `method`, `path`, `count`, `skip` and `every` there are the action's own values; the
    body of a reply is text. Raises `ValueError` or `TypeError` for what is no rule.
    """
    own = {key: data[key] for key in ("method", "path", "count", "skip", "every") if key in data}
    values = {key: value for key, value in data.items() if key not in {*own, "action"}}
    name = data.get("action")
    if name in _READY:
        return Fault(action=_READY[name], **own)
    if name not in _ACTIONS:
        raise ValueError(f"{name} is no action")
    if isinstance(values.get("body"), str):
        values["body"] = values["body"].encode()
    return Fault(action=_ACTIONS[name](**values), **own)
