"""Mappings by directory and name that move to a temporary file beyond a memory limit."""

import pickle
import sqlite3
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from itertools import chain, count
from threading import Lock
from typing import Any, Final, TypeVar

from mydata_like.core.errors import RunError

HELD = 50_000  # things in memory, about 1 kB each
AT_ONCE = 1000
MISSING: Final = object()

T = TypeVar("T")
Place = tuple[str, str]

MAKE = "CREATE TABLE room_%d (place BLOB PRIMARY KEY, thing BLOB NOT NULL) WITHOUT ROWID"
ADD = "INSERT OR IGNORE INTO room_%d (place, thing) VALUES (?, ?)"
REPLACE = "UPDATE room_%d SET thing = ?2 WHERE place = ?1"
FIND = "SELECT thing FROM room_%d WHERE place = ?"
DROP = "DELETE FROM room_%d WHERE place = ?"
NEXT = "SELECT place FROM room_%d WHERE place > ? ORDER BY place LIMIT ?"
EMPTY = "DROP TABLE IF EXISTS room_%d"
SETTINGS = ("PRAGMA journal_mode = OFF", "PRAGMA cache_size = -8000", "BEGIN")


class SpillStore:
    """The shared storage of many mappings; beyond a number of things it uses a temporary file.

    The file is deleted when the program ends. Safe to call from any thread.
    """

    def __init__(self, held: int = HELD) -> None:
        self.lock = Lock()
        self.free = held  # things that still fit in memory
        self._numbers = count()
        self._left: list[tuple[int, int]] = []
        self._connection: sqlite3.Connection | None = None

    def open_room(self) -> "SpillDict[T]":
        """Return a new mapping; its space is released when it is garbage-collected."""
        with self.lock:
            while self._left:
                number, held = self._left.pop()
                self.free += held
                if self._connection is not None:
                    self.ask(EMPTY, number)
        return SpillDict(self, next(self._numbers))

    def leave(self, room: int, held: int) -> None:
        """Release the space of a mapping; called by the garbage collector, in any thread."""
        self._left.append((room, held))

    def close(self) -> None:
        """Delete the file."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def ask(self, statement: str, room: int, *values: bytes | int) -> sqlite3.Cursor:
        """Execute a statement on a mapping's table; raises `RunError` if the disk fails."""
        with _disk_errors():
            if self._connection is None:
                self._connection = _open()
            return self._connection.execute(statement % room, values)


class SpillDict(MutableMapping[Place, T]):
    """One mapping of a store."""

    def __init__(self, stock: SpillStore, number: int) -> None:
        self._stock = stock
        self._number = number
        self._held: dict[Place, T] = {}
        self._filed = 0

    def __getitem__(self, place: Place) -> T:
        with self._stock.lock:
            if place in self._held:
                return self._held[place]
            row = self._ask(FIND, _key(place)).fetchone() if self._filed else None
        if row is None:
            raise KeyError(place)
        thing: T = pickle.loads(row[0])  # noqa: S301 - written by this program
        return thing

    def get(self, place: Place, default: T | None = None) -> T | None:  # type: ignore[override]
        thing = self._held.get(place)
        return thing if thing is not None else super().get(place, default)

    def __setitem__(self, place: Place, thing: T) -> None:
        with self._stock.lock:
            if place in self._held:
                self._held[place] = thing
            elif self._stock.free > 0 and not self._filed:
                self._stock.free -= 1
                self._held[place] = thing
            else:
                self._file(_key(place), pickle.dumps(thing, pickle.HIGHEST_PROTOCOL))

    def __delitem__(self, place: Place) -> None:
        with self._stock.lock:
            if place in self._held:
                del self._held[place]
                self._stock.free += 1
            elif self._filed and self._ask(DROP, _key(place)).rowcount:
                self._filed -= 1
            else:
                raise KeyError(place)

    def pop(self, place: Place, default: Any = MISSING) -> Any:
        with self._stock.lock:
            if place in self._held:
                self._stock.free += 1
                return self._held.pop(place)
        return super().pop(place) if default is MISSING else super().pop(place, default)

    def __len__(self) -> int:
        return len(self._held) + self._filed

    def __iter__(self) -> Iterator[Place]:
        return chain(self._held, self._list_filed())

    def __del__(self) -> None:
        self._stock.leave(self._number, len(self._held))

    def clear(self) -> None:
        with self._stock.lock:
            self._stock.free += len(self._held)
            self._held.clear()
            if self._filed:
                self._filed = 0
                self._ask(EMPTY)

    def _file(self, key: bytes, thing: bytes) -> None:
        if not self._filed:
            self._ask(EMPTY)
            self._ask(MAKE)
        if self._ask(ADD, key, thing).rowcount:
            self._filed += 1
        else:
            self._ask(REPLACE, key, thing)

    def _list_filed(self) -> Iterator[Place]:
        last = b""
        while self._filed:
            with self._stock.lock:
                rows = self._ask(NEXT, last, AT_ONCE).fetchall()
            yield from (_place(key) for (key,) in rows)
            if len(rows) < AT_ONCE:
                return
            last = rows[-1][0]

    def _ask(self, statement: str, *values: bytes | int) -> sqlite3.Cursor:
        return self._stock.ask(statement, self._number, *values)


def _open() -> sqlite3.Connection:
    # Without a name, SQLite creates a temporary file and deletes it on closing.
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    for statement in SETTINGS:
        connection.execute(statement)
    return connection


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise RunError(
            f"Data about very many files cannot be stored in a temporary file: {error}.",
            hint="Check the free space of the disk for temporary files; SQLITE_TMPDIR names "
            "another folder for them.",
        ) from error


def _key(place: Place) -> bytes:
    """Return a place as a database key, whatever characters it has."""
    directory, name = place
    return f"{len(directory)}/{directory}/{name}".encode("utf-8", "surrogatepass")


def _place(key: bytes) -> Place:
    length, _, rest = key.decode("utf-8", "surrogatepass").partition("/")
    return rest[: int(length)], rest[int(length) + 1 :]
