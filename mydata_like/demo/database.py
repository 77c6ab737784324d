"""The server's database: one SQLite file, one connection, one writer at a time."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;

CREATE TABLE IF NOT EXISTS user (
    id INTEGER PRIMARY KEY, username TEXT NOT NULL UNIQUE, email TEXT NOT NULL,
    first_name TEXT NOT NULL, last_name TEXT NOT NULL, api_key TEXT NOT NULL,
    superuser INTEGER NOT NULL, permitted INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS "group" (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS membership (
    user INTEGER NOT NULL, "group" INTEGER NOT NULL, PRIMARY KEY (user, "group")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facility (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, manager_group INTEGER NOT NULL,
    created TEXT NOT NULL, modified TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS instrument (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, facility INTEGER NOT NULL,
    created TEXT NOT NULL, modified TEXT NOT NULL, UNIQUE (name, facility)
);
CREATE TABLE IF NOT EXISTS box (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, location TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS box_option (
    id INTEGER PRIMARY KEY, box INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    UNIQUE (box, key)
);
CREATE TABLE IF NOT EXISTS box_attribute (
    id INTEGER PRIMARY KEY, box INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    UNIQUE (box, key)
);
CREATE TABLE IF NOT EXISTS uploader (
    id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    details TEXT NOT NULL, settings_updated TEXT
);
CREATE TABLE IF NOT EXISTS uploader_setting (
    id INTEGER PRIMARY KEY, uploader INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    UNIQUE (uploader, key)
);
CREATE TABLE IF NOT EXISTS registration (
    id INTEGER PRIMARY KEY, uploader INTEGER NOT NULL, fingerprint TEXT NOT NULL,
    requester_name TEXT NOT NULL, requester_email TEXT NOT NULL, public_key TEXT NOT NULL,
    requested TEXT NOT NULL, approved INTEGER NOT NULL DEFAULT 0, approval_time TEXT,
    approval_expiry TEXT, approver_comments TEXT, box INTEGER, UNIQUE (uploader, fingerprint)
);
CREATE TABLE IF NOT EXISTS experiment (
    id INTEGER PRIMARY KEY, title TEXT NOT NULL, description TEXT NOT NULL,
    institution TEXT NOT NULL, created_by INTEGER NOT NULL, created TEXT NOT NULL,
    updated TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS experiment_title ON experiment (title);
CREATE TABLE IF NOT EXISTS parameter_set (
    id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL, namespace TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS parameter (
    id INTEGER PRIMARY KEY, parameter_set INTEGER NOT NULL, experiment INTEGER NOT NULL,
    name TEXT NOT NULL, value TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS parameter_experiment ON parameter (experiment, name);
CREATE TABLE IF NOT EXISTS acl (
    id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL, plugin TEXT NOT NULL,
    entity INTEGER NOT NULL, owner INTEGER NOT NULL, writes INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS acl_entity ON acl (plugin, entity, experiment);
CREATE TABLE IF NOT EXISTS dataset (
    id INTEGER PRIMARY KEY, description TEXT NOT NULL, directory TEXT, immutable INTEGER NOT NULL,
    instrument INTEGER, created TEXT NOT NULL, modified TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS dataset_experiment (
    experiment INTEGER NOT NULL, dataset INTEGER NOT NULL, PRIMARY KEY (experiment, dataset)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS experiment_of_dataset ON dataset_experiment (dataset);
CREATE TABLE IF NOT EXISTS datafile (
    id INTEGER PRIMARY KEY AUTOINCREMENT, dataset INTEGER NOT NULL, directory TEXT,
    filename TEXT NOT NULL, version INTEGER NOT NULL, size INTEGER NOT NULL,
    md5sum TEXT NOT NULL, sha512sum TEXT NOT NULL, mimetype TEXT NOT NULL,
    created TEXT, modified TEXT, UNIQUE (dataset, directory, filename, version)
);
CREATE INDEX IF NOT EXISTS datafile_of_dataset ON datafile (dataset);
CREATE INDEX IF NOT EXISTS datafile_sizes ON datafile (dataset, size);
CREATE TABLE IF NOT EXISTS replica (
    id INTEGER PRIMARY KEY AUTOINCREMENT, datafile INTEGER NOT NULL,
    dataset INTEGER NOT NULL, box INTEGER NOT NULL, uri TEXT,
    verified INTEGER NOT NULL, created TEXT NOT NULL, last_verified TEXT, UNIQUE (datafile, box)
);
CREATE INDEX IF NOT EXISTS replica_state ON replica (dataset, box, verified, last_verified);
CREATE TABLE IF NOT EXISTS chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT, replica INTEGER NOT NULL, start INTEGER NOT NULL,
    stop INTEGER NOT NULL, UNIQUE (replica, start)
);
CREATE TABLE IF NOT EXISTS violation (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""


Value = str | int | float | bytes | None
Row = sqlite3.Row


class Database:
    """The tables of the server; safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = RLock()
        self._db = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        self._db.row_factory = sqlite3.Row
        self._db.executescript(SCHEMA)

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """Return all rows of a query."""
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Value) -> Row | None:
        """Return the first row of a query, or None."""
        with self._lock:
            found: Row | None = self._db.execute(sql, values).fetchone()
        return found

    def number(self, sql: str, *values: Value) -> int:
        """Return the first value of a query as a number; 0 if there is none."""
        row = self.row(sql, *values)
        return 0 if row is None or row[0] is None else int(row[0])

    def insert(self, table: str, **values: Value) -> int:
        """Add a row and return its id. Raises `sqlite3.IntegrityError` if it exists."""
        columns = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        sql = f'INSERT INTO "{table}" ({columns}) VALUES ({marks})'  # noqa: S608 - our own names
        with self._lock:
            return self._db.execute(sql, tuple(values.values())).lastrowid or 0

    def change(self, sql: str, *values: Value) -> int:
        """Change rows and return their number."""
        with self._lock:
            return self._db.execute(sql, values).rowcount

    def change_many(self, sql: str, values: Sequence[tuple[Value, ...]]) -> None:
        """Execute a statement once for each tuple of values; call it within a transaction."""
        with self._lock:
            self._db.executemany(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes of the block together, or none of them if it raises."""
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
