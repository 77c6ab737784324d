"""The workers of a web server and the rows that they lock: what a second writer meets.

On MyTardis' own configuration (gevent workers, psycopg2) a request that waits for a row blocks
its whole worker, and with it the one that would have given the row free. So it is here: who
writes what a slow request is writing already never comes back, and once that has happened to
every worker the server answers nothing more.
"""

import json
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Condition, Event
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

Rows = frozenset[Hashable]


class Workers:
    """A number of workers, unlimited at first, and the rows that slow requests have locked."""

    def __init__(self, stopped: Event) -> None:
        self.blocked = 0  # workers that never come back
        self._limit = inf
        self._busy = 0
        self._locked: list[Rows] = []
        self._stopped = stopped
        self._changed = Condition()

    @property
    def any_locked(self) -> bool:
        return bool(self._locked)

    def limit(self, workers: float) -> None:
        """Have so many workers from now on."""
        with self._changed:
            self._limit = workers
            self._changed.notify_all()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Occupy a worker, as soon as one is free."""
        with self._changed:
            while self._busy >= self._limit and not self._stopped.is_set():
                self._changed.wait(0.1)
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self, rows: Rows, *, slowly: bool) -> Iterator[bool]:
        """Lock rows where the request is slow; yield whether nothing else has locked them.

        Where something has, it yields when the server stops.
        """
        with self._changed:
            conflict = any(not rows.isdisjoint(others) for others in self._locked)
            self.blocked += conflict
            if slowly and not conflict:
                self._locked.append(rows)
        if conflict:
            self._stopped.wait()
        try:
            yield not conflict
        finally:
            with self._changed:
                if slowly and not conflict:
                    self._locked.remove(rows)


def find_rows(environ: "WSGIEnvironment") -> Rows:
    """Return the datasets, records and names that a request writes to; none for one that reads."""
    if environ["REQUEST_METHOD"] == "GET":
        return frozenset()
    rows = {_row(environ["PATH_INFO"])} if environ["REQUEST_METHOD"] in ("PUT", "PATCH") else set()
    if environ["PATH_INFO"].endswith("dataset_file/"):
        rows = set()
    try:
        document = json.loads(read_body(environ))
    except ValueError:
        return frozenset(rows)
    return frozenset(rows.union(*map(_rows_of, _records(document))))


def _records(document: Any) -> list[dict[str, Any]]:
    listed = document.get("objects") if isinstance(document, dict) else None
    records = listed if isinstance(listed, list) else [document]
    return [record for record in records if isinstance(record, dict)]


def _rows_of(record: dict[str, Any]) -> set[Hashable]:
    """Return what is locked for one record: itself, or its dataset, or what it is called."""
    if "resource_uri" in record:
        return {_row(str(record["resource_uri"]))}
    if "dataset" in record:
        return {_row(str(record["dataset"]))}
    return {("name", str(record.get(key))) for key in ("title", "description") if key in record}


def _row(path: str) -> Hashable:
    return tuple(path.strip("/").removeprefix("api/v1/").split("/"))


def read_body(environ: "WSGIEnvironment") -> bytes:
    """Return what was sent, which can be read again."""
    stream: Any = environ["wsgi.input"]
    body: bytes = stream.read()
    stream.seek(0)
    return body
