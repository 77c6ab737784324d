"""The server's database: one SQLite file, one connection, one writer at a time."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from mydata_like.demo.schema import SCHEMA

Value = str | int | float | bytes | None
Row = sqlite3.Row


class Store:
    """Rows of the server's tables; safe to call from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = RLock()
        self._db = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        self._db.row_factory = sqlite3.Row
        self._db.executescript(SCHEMA)

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """Return all rows that a query finds."""
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Value) -> Row | None:
        """Return the first row that a query finds."""
        with self._lock:
            found: Row | None = self._db.execute(sql, values).fetchone()
        return found

    def number(self, sql: str, *values: Value) -> int:
        """Return the number that a query computes."""
        row = self.row(sql, *values)
        return 0 if row is None or row[0] is None else int(row[0])

    def insert(self, table: str, **values: Value) -> int:
        """Add a row and return its id; raises `sqlite3.IntegrityError` where it exists."""
        columns = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        sql = f'INSERT INTO "{table}" ({columns}) VALUES ({marks})'  # noqa: S608 - our own names
        with self._lock:
            return self._db.execute(sql, tuple(values.values())).lastrowid or 0

    def change(self, sql: str, *values: Value) -> int:
        """Change rows and return how many they were."""
        with self._lock:
            return self._db.execute(sql, values).rowcount

    def change_many(self, sql: str, values: list[tuple[Value, ...]]) -> None:
        """Run one statement for each of many rows; wrap it in a transaction."""
        with self._lock:
            self._db.executemany(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make what is done inside happen wholly or, if it raises, not at all."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._db.close()
