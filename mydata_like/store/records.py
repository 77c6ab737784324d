"""A dataset's records by directory and name, however many they are."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from threading import Lock

from mydata_like.core.errors import RunError
from mydata_like.core.model import Datafile, Replica

HELD = 20_000  # records in memory, about 1 kB each
AT_ONCE = 1000

Place = tuple[str, str]

MAKE = "CREATE TABLE records (directory BLOB, name BLOB, record TEXT)"
ADD = "INSERT INTO records VALUES (?, ?, ?)"
ORDER = "CREATE INDEX by_place ON records (directory, name)"
# Of two of one name the later counts, as in memory.
FIND = "SELECT record FROM records WHERE directory = ? AND name = ? ORDER BY rowid DESC LIMIT 1"
PLACES = "SELECT DISTINCT directory, name FROM records"
COUNT = f"SELECT count(*) FROM ({PLACES})"  # noqa: S608 - all of it is ours


def shelve(records: Iterable[Datafile]) -> Mapping[Place, Datafile]:
    """Return records by directory and name; beyond a certain number they lie in a file."""
    rest = iter(records)
    held = list(islice(rest, HELD))
    if len(held) < HELD:
        return {_place(record): record for record in held}
    return RecordsFile(chain(held, rest))


class RecordsFile(Mapping[Place, Datafile]):
    """Records in a temporary file, which vanishes with this; safe to call from any thread.

    Every method raises `RunError` where the disk of temporary files fails.
    """

    def __init__(self, records: Iterable[Datafile]) -> None:
        self._lock = Lock()
        # Without a name it is a file that SQLite makes, and deletes when it is closed.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        with self._used() as cursor:
            cursor.execute("PRAGMA journal_mode = OFF")
            cursor.execute("BEGIN")
            cursor.execute(MAKE)
            cursor.executemany(ADD, map(_row, records))
            cursor.execute(ORDER)
            cursor.execute("COMMIT")

    def __getitem__(self, place: Place) -> Datafile:
        with self._used() as cursor:
            row = cursor.execute(FIND, [*map(_bytes, place)]).fetchone()
        if row is None:
            raise KeyError(place)
        *values, replicas = json.loads(row[0])
        values.append(tuple(Replica(*replica) for replica in replicas))
        return Datafile(*values)

    def __iter__(self) -> Iterator[Place]:
        with self._used():
            cursor = self._connection.execute(PLACES)
        while True:
            with self._used():
                rows = cursor.fetchmany(AT_ONCE)
            yield from ((_text(directory), _text(name)) for directory, name in rows)
            if len(rows) < AT_ONCE:
                return

    def __len__(self) -> int:
        with self._used() as cursor:
            return int(cursor.execute(COUNT).fetchone()[0])

    def __del__(self) -> None:
        self._connection.close()

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Cursor]:
        with self._lock:
            try:
                yield self._connection.cursor()
            except sqlite3.Error as error:
                raise RunError(
                    f"The records of a large dataset cannot be laid out on the disk: {error}.",
                    hint="Check that the disk of temporary files has room; SQLITE_TMPDIR names "
                    "another folder for them.",
                ) from error


def _row(record: Datafile) -> tuple[bytes, bytes, str]:
    directory, name = _place(record)
    return _bytes(directory), _bytes(name), json.dumps(record)


def _place(record: Datafile) -> Place:
    return record.directory or "", record.name


def _bytes(text: str) -> bytes:
    """Return a text of the server as the database takes it: any text at all."""
    return text.encode("utf-8", "surrogatepass")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogatepass")
