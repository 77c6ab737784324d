"""Mappings by directory and name that move to a temporary file beyond a memory limit."""

import pickle
import sqlite3
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from itertools import chain, count
from threading import Lock
from typing import Any, Final, TypeVar

from mydata_like.core.errors import RunError

HELD = 50_000  # values in memory, about 1 kB each
AT_ONCE = 1000
MISSING: Final = object()

T = TypeVar("T")
Key = tuple[str, str]

MAKE = "CREATE TABLE map_%d (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
ADD = "INSERT OR IGNORE INTO map_%d (key, value) VALUES (?, ?)"
REPLACE = "UPDATE map_%d SET value = ?2 WHERE key = ?1"
FIND = "SELECT value FROM map_%d WHERE key = ?"
DROP = "DELETE FROM map_%d WHERE key = ?"
NEXT = "SELECT key FROM map_%d WHERE key > ? ORDER BY key LIMIT ?"
EMPTY = "DROP TABLE IF EXISTS map_%d"
SETTINGS = ("PRAGMA journal_mode = OFF", "PRAGMA cache_size = -8000", "BEGIN")


class SpillStore:
    """The shared storage of many mappings; beyond a number of values it uses a temporary file.

    The file is deleted when the program ends. Safe to call from any thread.
    """

    def __init__(self, held: int = HELD) -> None:
        self.lock = Lock()
        self.free = held  # values that still fit in memory
        self._numbers = count()
        self._released: list[tuple[int, int]] = []
        self._connection: sqlite3.Connection | None = None

    def open_mapping(self) -> "SpillDict[T]":
        """Return a new mapping; its space is released when it is garbage-collected."""
        with self.lock:
            while self._released:
                number, held = self._released.pop()
                self.free += held
                if self._connection is not None:
                    self.execute(EMPTY, number)
        return SpillDict(self, next(self._numbers))

    def release(self, number: int, held: int) -> None:
        """Release the space of a mapping; called by the garbage collector, in any thread."""
        self._released.append((number, held))

    def close(self) -> None:
        """Delete the file."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def execute(self, statement: str, number: int, *values: bytes | int) -> sqlite3.Cursor:
        """Execute a statement on a mapping's table. Raises `RunError` if the disk fails."""
        with _disk_errors():
            if self._connection is None:
                self._connection = _open()
            return self._connection.execute(statement % number, values)


class SpillDict(MutableMapping[Key, T]):
    """One mapping of a store."""

    def __init__(self, store: SpillStore, number: int) -> None:
        self._store = store
        self._number = number
        self._held: dict[Key, T] = {}
        self._spilled = 0

    def __getitem__(self, key: Key) -> T:
        with self._store.lock:
            if key in self._held:
                return self._held[key]
            row = self._execute(FIND, _encode_key(key)).fetchone() if self._spilled else None
        if row is None:
            raise KeyError(key)
        value: T = pickle.loads(row[0])  # noqa: S301 - written by this program
        return value

    def get(self, key: Key, default: T | None = None) -> T | None:  # type: ignore[override]
        value = self._held.get(key)
        return value if value is not None else super().get(key, default)

    def __setitem__(self, key: Key, value: T) -> None:
        with self._store.lock:
            if key in self._held:
                self._held[key] = value
            elif self._store.free > 0 and not self._spilled:
                self._store.free -= 1
                self._held[key] = value
            else:
                self._spill(_encode_key(key), pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def __delitem__(self, key: Key) -> None:
        with self._store.lock:
            if key in self._held:
                del self._held[key]
                self._store.free += 1
            elif self._spilled and self._execute(DROP, _encode_key(key)).rowcount:
                self._spilled -= 1
            else:
                raise KeyError(key)

    def pop(self, key: Key, default: Any = MISSING) -> Any:
        with self._store.lock:
            if key in self._held:
                self._store.free += 1
                return self._held.pop(key)
        return super().pop(key) if default is MISSING else super().pop(key, default)

    def __len__(self) -> int:
        return len(self._held) + self._spilled

    def __iter__(self) -> Iterator[Key]:
        return chain(self._held, self._iter_spilled())

    def __del__(self) -> None:
        self._store.release(self._number, len(self._held))

    def clear(self) -> None:
        with self._store.lock:
            self._store.free += len(self._held)
            self._held.clear()
            if self._spilled:
                self._spilled = 0
                self._execute(EMPTY)

    def _spill(self, key: bytes, value: bytes) -> None:
        if not self._spilled:
            self._execute(EMPTY)
            self._execute(MAKE)
        if self._execute(ADD, key, value).rowcount:
            self._spilled += 1
        else:
            self._execute(REPLACE, key, value)

    def _iter_spilled(self) -> Iterator[Key]:
        last = b""
        while self._spilled:
            with self._store.lock:
                rows = self._execute(NEXT, last, AT_ONCE).fetchall()
            yield from (_decode_key(key) for (key,) in rows)
            if len(rows) < AT_ONCE:
                return
            last = rows[-1][0]

    def _execute(self, statement: str, *values: bytes | int) -> sqlite3.Cursor:
        return self._store.execute(statement, self._number, *values)


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


def _encode_key(key: Key) -> bytes:
    """Return a key as bytes for the database; it may have any characters."""
    directory, name = key
    return f"{len(directory)}/{directory}/{name}".encode("utf-8", "surrogatepass")


def _decode_key(encoded: bytes) -> Key:
    length, _, rest = encoded.decode("utf-8", "surrogatepass").partition("/")
    return rest[: int(length)], rest[int(length) + 1 :]
