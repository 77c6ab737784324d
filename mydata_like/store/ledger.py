"""The ledger as one SQLite file: what was sent and verified, the runs, and a few facts."""

import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from pathlib import Path
from threading import Lock
from types import NoneType, TracebackType
from typing import Any, NamedTuple, Self

from mydata_like.core.archives import Archive
from mydata_like.core.errors import Problem
from mydata_like.core.model import (
    NO_RISK,
    AtRisk,
    DatasetId,
    DatasetStats,
    Entry,
    EntryState,
    FolderSums,
    LocalFile,
    Outcome,
)
from mydata_like.core.ports import Clock
from mydata_like.core.sources import Destination, KnownSource, Source
from mydata_like.store import schema
from mydata_like.store.stock import Room, Stock

logger = logging.getLogger(__name__)

KEYS_AT_ONCE = 900  # older SQLite takes no more than 999 values in a statement
FILES_AT_ONCE = 250  # of three values each
ROWS_AT_ONCE = 1000
SEEN = attrgetter("key", "size", "modified_ns")
STATE_BY_TEXT = {state.value: state for state in EntryState}

FIND = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive FROM entries WHERE root = ? AND key IN (%s)"
)
# One answer for many files, in which nothing is made for those that are as they were.
FIND_OPEN = (
    "WITH seen (key, size, modified_ns) AS (VALUES %s) SELECT key FROM seen WHERE NOT EXISTS ("
    " SELECT 1 FROM entries WHERE root = ? AND entries.key = seen.key AND dataset = ?"
    " AND state = ? AND entries.size = seen.size AND entries.modified_ns = seen.modified_ns)"
)
# By the name of the file, or of the archive that holds it; every row is looked at.
FIND_NAMED = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive FROM entries WHERE root = :root AND (key = :name OR archive = :text"
    " OR substr(key, -length(:ending)) = :ending"
    " OR substr(archive, -length(:text) - 1) = '/' || :text) ORDER BY key"
)
LIST = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive FROM entries WHERE root = ? AND key > ? AND key < ? ORDER BY key LIMIT ?"
)
KINDS = frozenset(
    (bytes, int, int, str, int, str, str, datafile, str, str) for datafile in (int, NoneType)
)
ARCHIVE_KINDS = frozenset(
    (int, str, int, int, str, str, str, datafile) for datafile in (int, NoneType)
)
# Each part is answered by an index alone: all rows, but for those in archives, which count once.
COUNT = """
    SELECT sum(known), sum(verified) FROM (
        SELECT count(*) AS known, count(*) FILTER (WHERE state = :verified) AS verified
        FROM entries WHERE root = :root AND dataset = :dataset
        UNION ALL SELECT -count(*), -count(*) FILTER (WHERE state = :verified)
        FROM entries WHERE root = :root AND dataset = :dataset AND archive != ''
        UNION ALL SELECT count(*), count(*) FILTER (WHERE state = :verified)
        FROM archives WHERE root = :root AND dataset = :dataset AND state != 'staged'
    )
"""
# The times of the steps before are kept as long as the bytes are the same. What is staged anew
# goes the whole way anew.
RECORD = """
    INSERT INTO entries (
        root, key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,
        archive, staged_at, registered_at, verified_at, changed_at
    ) VALUES (
        ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
        CASE WHEN ?5 = 'staged' THEN ?12 END,
        CASE WHEN ?5 IN ('registered', 'repaired') THEN ?12 END,
        CASE WHEN ?5 = 'verified' THEN ?12 END,
        ?12
    ) ON CONFLICT (root, key) DO UPDATE SET
        size = ?3, modified_ns = ?4, state = ?5, dataset = ?6, checksum = ?7, remote = ?8,
        datafile = ?9, problem = ?10, archive = ?11, changed_at = ?12,
        staged_at = CASE WHEN ?5 = 'staged' THEN ?12
            WHEN (size, modified_ns, checksum) = (?3, ?4, ?7) THEN staged_at END,
        registered_at = CASE WHEN ?5 IN ('registered', 'repaired') THEN ?12
            WHEN ?5 != 'staged' AND (size, modified_ns, checksum) = (?3, ?4, ?7)
            THEN registered_at END,
        verified_at = CASE WHEN ?5 = 'verified' THEN ?12 END
"""
RECORD_OUTCOME = (
    "INSERT OR REPLACE INTO outcomes (root, path, size, modified_ns, outcome, code, message, hint,"
    " at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
RISK = (
    "SELECT count(*), sum(size), min(nullif(modified_ns, 0)) FROM outcomes"
    " WHERE root = ? AND outcome IN ('waiting', 'failed')"
)
FORGET_OUTCOME = "DELETE FROM outcomes WHERE root = ? AND path = ?"
RECORD_FOLDER = (
    "INSERT OR REPLACE INTO folders (root, path, dataset, title, owner, grp, found, found_bytes,"
    " verified, verified_bytes, waiting, skipped, failed, at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FIND_ARCHIVES = (
    "SELECT dataset, path, size, modified_ns, state, checksum, remote, datafile FROM archives"
    " WHERE root = ? AND dataset = ? ORDER BY path"
)
RECORD_ARCHIVE = (
    "INSERT OR REPLACE INTO archives (root, dataset, path, size, modified_ns, state, checksum,"
    " remote, datafile) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FORGET_ARCHIVE = "DELETE FROM archives WHERE root = ? AND dataset = ? AND path = ?"
EMPTY = "DELETE FROM entries WHERE root = ? AND dataset = ? AND archive = ? AND archive != ''"
FOLLOW = (
    "UPDATE entries SET state = ?1, datafile = ?2, changed_at = ?3,"
    " registered_at = CASE WHEN ?1 IN ('registered', 'repaired') THEN ?3 ELSE registered_at END,"
    " verified_at = CASE WHEN ?1 = 'verified' THEN ?3 END"
    " WHERE root = ?4 AND dataset = ?5 AND archive = ?6 AND archive != ''"
)
FIND_SOURCES = (
    "SELECT path, owner, experiment, dataset, added_at, finished_at FROM sources WHERE root = ?"
)
FIND_FOLDERS = (
    "SELECT path FROM folders WHERE root = :root AND dataset = :dataset AND title = :experiment"
    " AND coalesce(nullif(owner, ''), grp) = :owner ORDER BY path"
)
RECORD_SOURCE = (
    "INSERT OR REPLACE INTO sources (root, path, owner, experiment, dataset, added_at)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
# In it are the keys between its own followed by "/" and by "0", which comes next.
BELOW = "root = :root AND (path = :path OR (path > :low AND path < :high))"
FINISH_SOURCE = f"""
    UPDATE sources SET finished_at = :now WHERE root = :root AND path = :path AND NOT EXISTS (
        SELECT 1 FROM outcomes WHERE {BELOW}
        AND (outcome IN ('waiting', 'failed', 'folder-failed') OR code = 'skipped.owner')
    )
"""  # noqa: S608 - all of it is ours
# Keys of the data directory are relative: those of sources begin with "/" or a drive's letter.
INSIDE = "root = :root AND substr(path, 1, 1) != x'2f' AND (:posix OR substr(path, 2, 1) != x'3a')"
FORGET_BELOW, FORGET_INSIDE = (
    [
        f"DELETE FROM {table} WHERE at < :before AND {which}"  # noqa: S608 - all of it is ours
        for table in ("outcomes", "folders")
    ]
    for which in (BELOW, INSIDE)
)
ADD_ROOT = "INSERT OR IGNORE INTO roots (directory) VALUES (?)"
FIND_ROOT = "SELECT id FROM roots WHERE directory = ?"
NO_ROOT = -1  # no row has it
RECORD_RUN = (
    "INSERT OR REPLACE INTO runs (id, root, started, finished, summary) VALUES (?, ?, ?, ?, ?)"
)
FIND_RUNS = (
    "SELECT id, started, finished, summary FROM runs WHERE root = ?"
    " ORDER BY started DESC, id LIMIT ?"
)


class PastRun(NamedTuple):
    """A run as the ledger remembers it; `finished` is None where it was cut off."""

    run: str
    started: datetime
    finished: datetime | None
    summary: Mapping[str, object]


class SqliteLedger:
    """A ledger in a file, for one data directory; all methods may be called from any thread.

    One connection does everything, one caller at a time, and what is recorded is committed
    before `record` returns: a killed process loses nothing of it, a power failure at most
    the last moments. Every method raises `RunError` when the disk or the file fails; a
    damaged file is put aside on closing, so that the next run starts afresh.
    """

    def __init__(self, connection: sqlite3.Connection, file: Path, clock: Clock) -> None:
        self.problem: Problem | None = None  # what a person should know about the opening
        self._connection = connection
        self._file = file
        self._clock = clock
        self._lock = Lock()
        self._damaged = False
        self._reads_only = False
        self._stock = Stock()
        self._directory = b""
        self._root = NO_ROOT

    @classmethod
    def open(
        cls,
        file: Path,
        data_directory: bytes,
        clock: Clock,
        *,
        patience: float = schema.LOCK_PATIENCE,
    ) -> Self:
        """Open the ledger, made or made anew where there is no sound one.

        Another program that holds the file is waited for `patience` seconds.

        Raises `SettingsError` when the file is of a newer version, `RunError` when it cannot
        be used for reasons outside of it.
        """
        connection, problem = schema.open_sound(file, clock, patience)
        ledger = cls(connection, file, clock)
        ledger.problem = problem
        ledger._directory = data_directory
        with ledger._closed_on_error(), ledger._transaction() as cursor:
            cursor.execute(ADD_ROOT, (data_directory,))
            (ledger._root,) = cursor.execute(FIND_ROOT, (data_directory,)).fetchone()
        return ledger

    @classmethod
    def open_to_read(cls, file: Path, data_directory: bytes, clock: Clock) -> Self | None:
        """Open the ledger beside a process that writes it; None where there is none yet."""
        if not file.exists():
            return None
        ledger = cls(schema.connect_to_read(file), file, clock)
        ledger._reads_only = True
        with ledger._closed_on_error():
            if ledger._version == 0:  # the other process is about to make the tables
                ledger.close()
                return None
            with ledger._used() as cursor:
                row = cursor.execute(FIND_ROOT, (data_directory,)).fetchone()
            ledger._root = row[0] if row else NO_ROOT
        return ledger

    @property
    def outdated(self) -> bool:
        """Whether the file is of an older version, which the next run brings up to date."""
        return self._version < len(schema.MIGRATIONS)

    @property
    def _version(self) -> int:
        with self._used() as cursor:
            (version,) = cursor.execute("PRAGMA user_version").fetchone()
        return int(version)

    def find_entries(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """Return what is known about these files; unknown ones are left out."""
        found: dict[bytes, Entry] = {}
        for start in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[start : start + KEYS_AT_ONCE]
            query = FIND % ",".join("?" * len(part))
            with self._used() as cursor:
                rows = cursor.execute(query, (self._root, *part)).fetchall()
            found.update((row[0], entry) for row in rows if (entry := _parse_entry(row)))
        return found

    def find_open(self, dataset: DatasetId, files: Sequence[LocalFile]) -> set[bytes]:
        """Return the keys of those files that are not known as verified just as they are now."""
        found: set[bytes] = set()
        verified = self._root, dataset, EntryState.VERIFIED.value
        for start in range(0, len(files), FILES_AT_ONCE):
            part = files[start : start + FILES_AT_ONCE]
            query = FIND_OPEN % ",".join(["(?, ?, ?)"] * len(part))
            with self._used() as cursor:
                rows = cursor.execute(query, (*chain.from_iterable(map(SEEN, part)), *verified))
                found.update(key for (key,) in rows)
        return found

    def find_named(self, name: bytes) -> list[Entry]:
        """Return the entries of files of this name, or of those in an archive of this name."""
        text = name.decode("utf-8", "replace")
        chosen = {"root": self._root, "name": name, "ending": b"/" + name, "text": text}
        with self._used() as cursor:
            rows = cursor.execute(FIND_NAMED, chosen).fetchall()
        return [entry for row in rows if (entry := _parse_entry(row))]

    def iter_entries(self, prefix: bytes = b"") -> Iterator[Entry]:
        """Yield the entries whose keys begin with `prefix`, in the order of their keys."""
        after, end = prefix, prefix + b"\xff" * 4096
        if prefix:
            yield from self.find_entries([prefix]).values()
        while True:
            with self._used() as cursor:
                rows = cursor.execute(LIST, (self._root, after, end, ROWS_AT_ONCE)).fetchall()
            yield from (entry for row in rows if (entry := _parse_entry(row)))
            if len(rows) < ROWS_AT_ONCE:
                return
            after = rows[-1][0]

    def count_entries(self, dataset: DatasetId) -> DatasetStats:
        """Return how many records are known of a dataset, and how many are verified."""
        chosen = {"verified": EntryState.VERIFIED, "root": self._root, "dataset": dataset}
        with self._used() as cursor:
            row = cursor.execute(COUNT, chosen).fetchone()
        return DatasetStats(*row)

    def record(self, entries: Sequence[Entry]) -> None:
        """Keep these rows; they replace older ones."""
        with self._transaction() as cursor:
            self._insert(cursor, entries)

    def find_archives(self, dataset: DatasetId) -> dict[str, Archive]:
        """Return the archives of a dataset by their paths."""
        with self._used() as cursor:
            rows = cursor.execute(FIND_ARCHIVES, (self._root, dataset)).fetchall()
        return {row[1]: archive for row in rows if (archive := _parse_archive(row))}

    def record_archive(self, archive: Archive, members: Sequence[Entry] | None = None) -> None:
        """Keep an archive, with exactly these members or with those that it has."""
        place = self._root, archive.dataset, archive.path
        with self._transaction() as cursor:
            cursor.execute(RECORD_ARCHIVE, (self._root, *archive))
            if members is None:
                cursor.execute(FOLLOW, (archive.state, archive.datafile, self._seconds(), *place))
            else:
                cursor.execute(EMPTY, place)
                self._insert(cursor, members)

    def forget_archive(self, archive: Archive) -> None:
        """Drop an archive; its members are in none then."""
        place = self._root, archive.dataset, archive.path
        with self._transaction() as cursor:
            cursor.execute(FORGET_ARCHIVE, place)
            cursor.execute(EMPTY, place)

    def open_room(self) -> Room[Any]:
        """Return an empty mapping by directory and name, however much comes into it."""
        return self._stock.open_room()

    def record_outcomes(self, outcomes: Sequence[Outcome], well: Sequence[bytes] = ()) -> None:
        """Keep what is not well, for those who ask later; forget the paths that are well now."""
        now = self._seconds()
        rows = [
            (self._root, path, size, modified_ns, kind, *problem, now)
            for path, size, modified_ns, kind, problem in outcomes
        ]
        with self._transaction() as cursor:
            cursor.executemany(FORGET_OUTCOME, [(self._root, path) for path in well])
            cursor.executemany(RECORD_OUTCOME, rows)

    def measure_risk(self) -> AtRisk:
        """Return how much waits or failed; nothing where the file is of an older version."""
        if self.outdated:
            return NO_RISK
        with self._used() as cursor:
            files, size, oldest = cursor.execute(RISK, (self._root,)).fetchone()
        moment = datetime.fromtimestamp(oldest // 10**9, UTC) if oldest else None
        return AtRisk(files, size or 0, moment)

    def record_folders(self, folders: Sequence[FolderSums]) -> None:
        """Keep how the files of these dataset folders stand."""
        now = self._seconds()
        with self._transaction() as cursor:
            cursor.executemany(RECORD_FOLDER, [(self._root, *sums, now) for sums in folders])

    def forget_before(self, moment: datetime, sources: Sequence[bytes], *, inside: bool) -> None:
        """Forget outcomes and folders that were not told again since then: they are gone.

        That is of these sources, and with `inside` of all that is no source's.
        """
        before = int(moment.timestamp())
        with self._transaction() as cursor:
            for forget in FORGET_INSIDE if inside else ():
                posix = self._directory.startswith(b"/")
                cursor.execute(forget, {"root": self._root, "before": before, "posix": posix})
            for forget in FORGET_BELOW:
                cursor.executemany(forget, [self._below(it) | {"before": before} for it in sources])

    def record_run(self, past: PastRun) -> None:
        """Keep a run; the same run again replaces what was kept of it."""
        times = [time and time.isoformat() for time in (past.started, past.finished)]
        with self._transaction() as cursor:
            row = (past.run, self._root, *times, json.dumps(dict(past.summary)))
            cursor.execute(RECORD_RUN, row)

    def find_runs(self, most: int = 100) -> list[PastRun]:
        """Return the latest runs over this data directory, newest first."""
        with self._used() as cursor:
            rows = cursor.execute(FIND_RUNS, (self._root, most)).fetchall()
        return [past for row in rows if (past := _parse_run(row))]

    def find_destination(self, path: bytes) -> Destination | None:
        """Return what a source was to become when it was added last."""
        found = (known.destination for known in self.find_sources() if known.path == path)
        return next(found, None)

    def find_sources(self) -> list[KnownSource]:
        """Return all sources that were ever added, in the order of their paths."""
        with self._used() as cursor:
            rows = cursor.execute(FIND_SOURCES, (self._root,)).fetchall()
        return [
            KnownSource(path, Destination(*names), _moment(added), finished and _moment(finished))
            for path, *names, added, finished in rows
        ]

    def find_folders(self, destination: Destination) -> list[bytes]:
        """Return the folders that became this dataset in a run."""
        chosen = {"root": self._root} | destination._asdict()
        with self._used() as cursor:
            return [path for (path,) in cursor.execute(FIND_FOLDERS, chosen)]

    def record_source(self, source: Source) -> None:
        """Keep a source that is carried from now on."""
        row = self._root, source.path, *source.destination, self._seconds()
        with self._transaction() as cursor:
            cursor.execute(RECORD_SOURCE, row)

    def finish_source(self, path: bytes) -> None:
        """Keep that a source is safe, unless something of it is known to wait or to have failed."""
        with self._transaction() as cursor:
            cursor.execute(FINISH_SOURCE, self._below(path) | {"now": self._seconds()})

    def find_meta(self, key: str) -> str | None:
        """Return a fact about this installation, such as its uuid."""
        with self._used() as cursor:
            row = cursor.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def record_meta(self, key: str, value: str) -> None:
        """Keep a fact about this installation."""
        with self._transaction() as cursor:
            cursor.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def flush(self) -> None:
        """Return once all that was recorded would survive a power failure."""
        with self._used() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close the file; again and again if need be."""
        self._stock.close()
        with self._lock:
            try:
                self._connection.close()
            except sqlite3.Error as error:
                logger.warning("The ledger could not be closed properly: %s", error)
            if self._damaged and not self._reads_only:
                schema.put_aside(self._file, self._clock.now())
                self._damaged = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _insert(self, cursor: sqlite3.Cursor, entries: Sequence[Entry]) -> None:
        now = self._seconds()
        cursor.executemany(RECORD, [(self._root, *entry, now) for entry in entries])

    def _below(self, path: bytes) -> dict[str, object]:
        return {"root": self._root, "path": path, "low": path + b"/", "high": path + b"0"}

    def _seconds(self) -> int:
        return int(self._clock.now().timestamp())

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        with self._used() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Cursor]:
        """Have the connection to oneself, and tell of its errors in our words."""
        with self._lock:
            try:
                yield self._connection.cursor()
            except schema.FAILURES as error:
                self._damaged |= schema.means_damage(error)
                raise schema.failure(self._file, error) from error


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _parse_entry(row: tuple[Any, ...]) -> Entry | None:
    """Return a row as an entry, or None for one that we cannot have written."""
    state = STATE_BY_TEXT.get(row[3])
    if state is None or tuple(map(type, row)) not in KINDS:
        logger.warning("The ledger has a row that makes no sense; it is left out")
        return None
    return Entry(row[0], row[1], row[2], state, *row[4:])


def _parse_archive(row: tuple[Any, ...]) -> Archive | None:
    """Return a row as an archive, or None for one that we cannot have written."""
    state = STATE_BY_TEXT.get(row[4])
    if state is None or tuple(map(type, row)) not in ARCHIVE_KINDS:
        logger.warning("The ledger has an archive that makes no sense; it is left out")
        return None
    dataset, path, size, modified_ns, _, *rest = row
    return Archive(dataset, path, size, modified_ns, state, *rest)


def _parse_run(row: tuple[object, ...]) -> PastRun | None:
    try:
        run, started, finished, summary = (str(value) if value else "" for value in row)
        end = datetime.fromisoformat(finished) if finished else None
        return PastRun(run, datetime.fromisoformat(started), end, dict(json.loads(summary)))
    except (ValueError, TypeError):
        logger.warning("The ledger has a run that makes no sense; it is left out")
        return None
