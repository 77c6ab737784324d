"""The ledger as one SQLite file: files sent and verified, runs, and a few facts."""

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain, product
from math import ceil, inf
from operator import attrgetter
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, NamedTuple, Self

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.errors import Problem, RunError
from mydata_like.core.extra_sources import Destination, ExtraSource, KnownSource
from mydata_like.core.local_files import LocalFile, signed
from mydata_like.core.model import (
    NO_RISK,
    AtRisk,
    ChangedFile,
    DatafileId,
    DatasetId,
    DatasetListing,
    EarlierWrite,
    Entry,
    EntryState,
    FolderSums,
    KeptCopy,
    KnownParts,
    NewestDatafile,
    OpenFiles,
    Outcome,
    Recheck,
    Replacement,
    hash_key,
    hash_keys,
    read_hashes,
)
from mydata_like.core.ports import Clock
from mydata_like.ledger import ledger_file, rechecks, sql
from mydata_like.ledger.ledger_file import LockWaiting, SqliteFile
from mydata_like.ledger.spill_dict import SpillDict, SpillStore
from mydata_like.ledger.sql import (
    PastRunRow,
    load_paths,
    moment,
    parse_archive,
    parse_changed,
    parse_entry,
    parse_run,
    parse_staged,
    store_paths,
)

logger = logging.getLogger(__name__)

# Work-around: SQLite 3.31 and earlier take at most 999 values in a statement.
# https://www.sqlite.org/limits.html#max_variable_number. Remove when SQLite 3.32 is required.
KEYS_AT_ONCE = 900
FILES_AT_ONCE = 190  # of five values each
KNOWN_FOR = 7 * 86400  # seconds after which all files are compared with their rows again
ENTRIES_AT_ONCE = 71  # of fourteen
ROWS_AT_ONCE = 1000
KEY = attrgetter("key")
SEEN = attrgetter("key", "size", "modified_ns", "ctime_ns", "inode")
NO_LIMIT = 2**63 - 1
FOUND, NO_TEXT = "found", (None, None, None)
LATE = 5.0  # seconds after which steps are written that were recorded late
LATE_IF_SMALL = 20.0  # the same for files that are sent again in no time
SMALL = 1 << 20  # bytes


class LateRow(NamedTuple):
    """A row that is not written yet, with its times; it is `due` on the monotonic clock."""

    entry: Entry
    due: float
    staged_at: int | None
    registered_at: int | None


class SqliteLedger:
    """A ledger in a file, for one data directory; all methods may be called from any thread.

    One connection serves one caller at a time, and rows are committed before `record` returns. A
    killed process loses nothing but rows that were recorded late; a power failure loses the last
    moments at most. Each method raises
    `RunError` if the disk or the file fails. A damaged file is moved aside on closing, so that the
    next run creates a new one.
    """

    def __init__(self, file: SqliteFile, clock: Clock) -> None:
        self.problem: Problem | None = None  # a warning for the user about the opening
        self._file = file
        self._clock = clock
        self._stock = SpillStore()
        self._late: dict[bytes, LateRow] = {}  # by key
        self._late_lock = RLock()
        self._left_batches: list[tuple[float, int]] = []  # when they are due, and their notes
        self._touched: dict[int, int] = {}  # the last change of a verified row, by hash of its key
        self._touched_until = 0
        self._directory = b""
        self._root = ledger_file.NO_ROOT

    @classmethod
    def open(
        cls,
        file: Path,
        data_directory: bytes,
        clock: Clock,
        *,
        waiting: LockWaiting | None = None,
    ) -> Self:
        """Open the ledger; create a new one if there is none, or if it is damaged.

        `waiting` is for a file that another program has locked, now or later.

        Raises `SettingsError` if the file is of a newer version, `RunError` if it cannot be used
        for external reasons.
        """
        waiting = waiting or LockWaiting()
        connection, problem = ledger_file.open_sound(file, clock, waiting)
        sound = SqliteFile(connection, file, clock, reads_only=False, waiting=waiting)
        ledger = cls(sound, clock)
        ledger.problem = problem
        ledger._directory = data_directory
        with ledger._closed_on_error(), ledger._file.transaction() as cursor:
            cursor.execute(sql.ADD_ROOT, (data_directory,))
            cursor.execute(sql.FORGET_KNOWN, (ledger._seconds() - KNOWN_FOR,))
            cursor.execute(sql.FORGET_TOUCHED)
            ledger._root = ledger_file.find_root(cursor, data_directory)
        return ledger

    @classmethod
    def open_to_read(cls, file: Path, data_directory: bytes, clock: Clock) -> Self | None:
        """Open the ledger while another process writes it; returns None if there is none yet."""
        if not file.exists():
            return None
        connection = ledger_file.connect_to_read(file)
        ledger = cls(SqliteFile(connection, file, clock, reads_only=True), clock)
        ledger._directory = data_directory
        with ledger._closed_on_error():
            if ledger._file.version == 0:  # the other process is about to create the tables
                ledger.close()
                return None
            with ledger._file.used() as cursor:
                ledger._root = ledger_file.find_root(cursor, data_directory)
        return ledger

    @property
    def outdated(self) -> bool:
        """Whether the file is of an older version, which the next run updates."""
        return self._file.version < len(ledger_file.MIGRATIONS)

    def find_entries(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """Return the entries of these files; unknown files are omitted."""
        found: dict[bytes, Entry] = {}
        for start in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[start : start + KEYS_AT_ONCE]
            query = sql.FIND % ",".join("?" * len(part))
            rows = self._fetch(query, (self._root, *part))
            found.update((row[0], entry) for row in rows if (entry := parse_entry(row)))
        if self._late:
            found.update((key, late.entry) for key in keys if (late := self._late.get(key)))
        return found

    def find_of_inodes(self, inodes: Sequence[int]) -> list[Entry]:
        """Return the rows of files with these inodes that are registered or verified."""
        found: list[Any] = []
        for start in range(0, len(inodes), KEYS_AT_ONCE):
            part = inodes[start : start + KEYS_AT_ONCE]
            query = sql.FIND_OF_INODES % ",".join("?" * len(part))
            found += self._fetch(query, (self._root, *part))
        return [entry for row in found if (entry := parse_entry(row))]

    def find_verified(self, dataset: DatasetId, keys: Sequence[bytes]) -> dict[bytes, DatafileId]:
        """Return the records of those files that are known as verified in a dataset."""
        found: dict[bytes, DatafileId] = {}
        for start in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[start : start + KEYS_AT_ONCE]
            query = sql.FIND_VERIFIED % ",".join("?" * len(part))
            found.update(self._fetch(query, (self._root, *part, dataset)))
        if self._late:
            found = {key: it for key, it in found.items() if key not in self._late}
        return found

    def begin_listing(self, dataset: DatasetId) -> KnownParts:
        """Return the parts of earlier listings of a dataset whose files need no comparison."""
        now = self._seconds()
        with self._file.used() as cursor:
            ((seq,),) = cursor.execute(sql.LAST_TOUCHED)
            values = self._root, dataset, now - KNOWN_FOR, now
            rows = cursor.execute(sql.FIND_PARTS, values).fetchall()
            self._learn_touched(cursor)
        known = (digest for digest, *row in rows if not self._late and self._is_known(*row))
        return KnownParts(seq, frozenset(known))

    def record_listing(
        self, dataset: DatasetId, known: KnownParts, same: Mapping[bytes, bytes]
    ) -> None:
        """Record the parts of a listing of which all files were the same as their rows."""
        place = self._root, dataset
        with self._file.transaction() as cursor:
            there = {it for (it,) in cursor.execute(sql.LIST_PARTS, place)}
            cursor.executemany(sql.FORGET_PART, ((*place, it) for it in there - same.keys()))
            row = *place, self._seconds(), known.seq
            new = [(*row, *part) for part in same.items() if part[0] not in known.digests]
            cursor.executemany(sql.RECORD_PART, new)

    def _learn_touched(self, cursor: sqlite3.Cursor) -> None:
        """Learn which verified rows have changed; not in a transaction that may be rolled back."""
        for seq, key in cursor.execute(sql.LIST_TOUCHED, (self._touched_until,)):
            self._touched[hash_key(key)] = self._touched_until = seq

    def _is_known(self, seq: int, keys: bytes) -> bool:
        """Return whether no row of these files has changed since."""
        touched = self._touched
        return not touched or all(touched.get(it, 0) <= seq for it in read_hashes(keys))

    def find_open(self, files: Sequence[LocalFile]) -> OpenFiles:
        """Return the files that are not known as verified and unchanged."""
        with self._file.used() as cursor:
            return self._find_open(cursor, files)

    def find_open_parts(
        self, parts: Sequence[tuple[bytes, Sequence[LocalFile]]]
    ) -> list[OpenFiles]:
        """Do the same for several parts, and record what `find_known` returns for their digests."""
        with self._file.transaction() as cursor:  # no row changes before the digests are recorded
            found = [self._find_open(cursor, files) for _, files in parts]
            known = [
                (self._root, digest, *it.datasets, self._seconds(), hash_keys(map(KEY, files)))
                for (digest, files), it in zip(parts, found, strict=True)
                if digest and not it.keys and len(it.datasets) == 1
            ]
            cursor.executemany(sql.RECORD_KNOWN, known)
            return found

    def _find_open(self, cursor: sqlite3.Cursor, files: Sequence[LocalFile]) -> OpenFiles:
        rows: list[tuple[Any, Any]] = []
        for start in range(0, len(files), FILES_AT_ONCE):
            part = files[start : start + FILES_AT_ONCE]
            if self._knows_any(cursor, part):
                rows += _execute_with(cursor, sql.FIND_OPEN, part, self._root)
            else:
                rows += [(None, file.key) for file in part]
        return OpenFiles(
            frozenset(key for _, key in rows if key is not None),
            frozenset(dataset for dataset, _ in rows if dataset is not None),
        )

    def find_known(self, digests: Sequence[bytes]) -> dict[bytes, DatasetId]:
        """Return the datasets in which all files with a digest are verified and unchanged."""
        now, query = self._seconds(), sql.FIND_KNOWN % ",".join("?" * len(digests))
        with self._file.used() as cursor:
            values = self._root, *digests, now - KNOWN_FOR, now
            rows = cursor.execute(query, values).fetchall()
            self._learn_touched(cursor)
        return {digest: dataset for digest, dataset, *row in rows if self._is_known(*row)}

    def iter_entries(self, prefix: bytes = b"") -> Iterator[Entry]:
        """Yield the entries whose keys begin with `prefix`, ordered by key."""
        after, end = prefix, prefix + b"\xff" * 4096
        if prefix:
            yield from self.find_entries([prefix]).values()
        while True:
            with self._file.used() as cursor:
                rows = cursor.execute(sql.LIST, (self._root, after, end, ROWS_AT_ONCE)).fetchall()
                (after,) = _advance((after,), rows[-1:], 0)
            yield from (entry for row in rows if (entry := parse_entry(row)))
            if len(rows) < ROWS_AT_ONCE:
                return

    def iter_known(self, below: bytes = b"") -> Iterator[tuple[bytes, str]]:
        """Yield key and checksum, if any, of each known file of the data directory."""
        folder = {"low": below and below + b"/", "high": below + b"0"}
        posix = self._directory.startswith(b"/")
        chosen = {"root": self._root, "posix": posix, "most": ROWS_AT_ONCE} | folder
        rows: list[tuple[bytes, str]] = [(b"", "")]
        after = b""
        while rows:
            with self._file.used() as cursor:
                rows = cursor.execute(sql.KNOWN, chosen | {"after": after}).fetchall()
                (after,) = _advance((after,), rows[-1:], 0)
            yield from rows

    def iter_verified(self, dataset: DatasetId) -> Iterator[Entry]:
        """Yield the rows of a dataset of which the server has verified this or an earlier version.

        Rows of files in archives are omitted.
        """
        chosen = {"root": self._root, "dataset": dataset, "most": ROWS_AT_ONCE}
        states = EntryState.VERIFIED, EntryState.CHANGED
        listed = sql.LIST_VERIFIED, sql.LIST_UNNUMBERED
        for state, statement in product(states, listed):
            datafile, key = -1, b""
            while True:
                after = {"datafile": datafile, "key": key, "state": state}
                with self._file.used() as cursor:
                    rows = cursor.execute(statement, chosen | after).fetchall()
                    if statement is sql.LIST_VERIFIED:
                        datafile, key = _advance((datafile, key), rows[-1:], 7, 0)
                    else:
                        (key,) = _advance((key,), rows[-1:], 0)
                yield from (entry for row in rows if (entry := parse_entry(row)))
                if len(rows) < ROWS_AT_ONCE:
                    break

    def count_records(
        self, dataset: DatasetId, after: int = 0, until: int = NO_LIMIT
    ) -> NewestDatafile:
        """Return the number of known records of a dataset within a range of ids."""
        chosen = {"root": self._root, "dataset": dataset, "after": after, "until": until}
        return NewestDatafile(*self._fetch(sql.COUNT, chosen)[0])

    def count_verified(self, dataset: DatasetId, after: int = 0) -> int:
        """Return the number of known records of a dataset with ids above `after` and verified."""
        chosen = {"root": self._root, "dataset": dataset, "after": after}
        return self._count(sql.COUNT_VERIFIED, chosen)

    def find_listed(self, dataset: DatasetId) -> DatasetListing | None:
        """Return when the records of a dataset were last compared, and which."""
        for total, newest, at, verified in self._fetch(sql.FIND_LISTED, (self._root, dataset)):
            return DatasetListing(NewestDatafile(total, newest), moment(at), verified)
        return None

    def record_listed(
        self, dataset: DatasetId, newest: NewestDatafile, verified: int | None
    ) -> None:
        """Record a full listing of a dataset."""
        self._write(sql.RECORD_LISTED, [(self._root, dataset, *newest, self._seconds(), verified)])

    def record_proven(
        self, dataset: DatasetId, newest: NewestDatafile, verified: int | None
    ) -> None:
        """Record that a dataset has exactly these records; the time of the last listing is kept."""
        values = {"root": self._root, "dataset": dataset, "verified": verified}
        self._write(sql.RECORD_PROVEN, [values | newest._asdict() | {"now": self._seconds()}])

    def add_spot_checks(self, entries: Sequence[Entry]) -> None:
        """Record which records the server is to verify again."""
        self._write(sql.ADD_SPOT_CHECK, [(self._root, it.datafile, it.key) for it in entries])

    def find_spot_checks(self, most: int) -> dict[DatafileId, bytes]:
        """Return the first of the records that are to be verified again, with their files' keys."""
        return dict(self._fetch(sql.FIND_SPOT_CHECKS, (self._root, most)))

    def forget_spot_checks(self, records: Sequence[DatafileId]) -> None:
        """Remove records that were verified again, or that are no longer known."""
        self._write(sql.FORGET_SPOT_CHECK, [(self._root, record) for record in records])

    def recheck(self, found: Iterable[Recheck]) -> int:
        """Take "verified" away from what must be checked again; its datasets are due for a listing.

        The effect is durable on return. Return the number of files.
        """
        with self._file.transaction() as cursor:
            files = rechecks.take(cursor, found, self._seconds())
        self.flush()
        return files

    def find_verified_at(self, key: bytes) -> datetime | None:
        """Return when a file was recorded as verified last; None if it never was."""
        rows = self._fetch(sql.FIND_VERIFIED_AT, (self._root, key))
        return moment(rows[0][0]) if rows and rows[0][0] is not None else None

    def is_doubted(self, key: bytes) -> bool:
        """Return whether an answer of the server contradicted that it has a file as verified."""
        return bool(self._fetch(sql.FIND_DOUBTED, (self._root, key)))

    def record(self, entries: Sequence[Entry]) -> None:
        """Record these rows; they replace older ones."""
        with self._late_lock:
            with self._file.transaction() as cursor:
                self._insert(cursor, entries)
            self._drop_late(entries)

    def forget(self, entries: Sequence[Entry]) -> None:
        """Remove these rows; outcomes of these files are kept."""
        with self._late_lock:
            with self._file.transaction() as cursor:
                for statement in sql.FORGET:
                    cursor.executemany(statement, [(self._root, it.key) for it in entries])
            self._drop_late(entries)

    def record_late(self, entries: Sequence[Entry]) -> None:
        """Record steps that soon become others; they are written if that takes some seconds.

        A run that is killed before repeats these steps.
        """
        at, now = self._clock.monotonic(), self._seconds()
        with self._late_lock:
            for entry in entries:
                due = at + (LATE_IF_SMALL if entry.size < SMALL else LATE)
                self._late[entry.key] = LateRow(entry, due, *self._find_times(entry, now))

    def write_late(self, *, also_early: bool = False) -> None:
        """Write what was recorded late and is due by now, or all of it."""
        now = inf if also_early else self._clock.monotonic()
        with self._late_lock:
            due = [it.entry for it in self._late.values() if it.due <= now]
            notes = [(note,) for at, note in self._left_batches if at <= now]
            if due or notes:
                with self._file.transaction() as cursor:
                    self._insert(cursor, due)
                    cursor.executemany(sql.FORGET_BATCH, notes)
            self._drop_late(due)
            self._left_batches = [it for it in self._left_batches if it[0] > now]

    def record_replacements(self, replacements: Sequence[Replacement]) -> None:
        """Record which bytes are to replace others; newer ones of a file override older ones."""
        self._write(sql.RECORD_REPLACEMENT, [(self._root, *store_paths(it)) for it in replacements])

    def find_replacements(self) -> list[Replacement]:
        """Return all replacements that are not known to be complete."""
        rows = self._fetch(sql.FIND_REPLACEMENTS, (self._root,))
        return [Replacement._make(load_paths(row)) for row in rows]

    def forget_replacements(self, replacements: Sequence[Replacement]) -> None:
        """Remove replacements, unless they are of other bytes by now."""
        rows = [(self._root, it.key, it.checksum) for it in replacements]
        self._write(sql.FORGET_REPLACEMENT, rows)

    def note_batch(self, keys: Sequence[bytes]) -> int:
        """Record that a batch of these files is about to be sent; return the note's number."""
        with self._file.transaction() as cursor:
            cursor.execute(sql.NOTE_BATCH, (self._root, b"\0".join(keys)))
            return int(cursor.lastrowid or 0)

    def find_batches(self) -> dict[int, list[bytes]]:
        """Return the files of batches that are not known to have arrived, by note."""
        rows = self._fetch(sql.FIND_BATCHES, (self._root,))
        return {note: keys.split(b"\0") for note, keys in rows}

    def forget_batches(self, notes: Sequence[int]) -> None:
        """Remove these notes, after the rows that were recorded late before."""
        due = self._clock.monotonic() + LATE_IF_SMALL
        with self._late_lock:
            self._left_batches += [(due, note) for note in notes]
            if not self._late:
                self.write_late(also_early=True)

    def record_kept(self, copies: Sequence[KeptCopy]) -> None:
        """Record earlier bytes that are, or are to be, kept on the server."""
        self._write(sql.RECORD_KEPT, [(self._root, *store_paths(copy)) for copy in copies])

    def find_kept(self, key: bytes | None = None) -> list[KeptCopy]:
        """Return what is kept of a file, or of all; the newest first."""
        rows = self._fetch(sql.FIND_KEPT, (self._root, key))
        return [KeptCopy._make(load_paths(row)) for row in rows]

    def forget_kept(self, copies: Sequence[KeptCopy]) -> None:
        """Remove the record of bytes that are kept no longer."""
        self._write(
            sql.FORGET_KEPT, [(self._root, *store_paths((copy.key, copy.path))) for copy in copies]
        )

    def find_changed(self, key: bytes) -> ChangedFile | None:
        """Return what is known about a changed file."""
        found = map(parse_changed, self._fetch(sql.FIND_CHANGED, (self._root, key)))
        return next(found, None)

    def list_held(self) -> list[ChangedFile]:
        """Return the held files by key; none if the ledger is of an older version."""
        rows = [] if self.outdated else self._fetch(sql.LIST_HELD, (self._root,))
        return [changed for row in rows if (changed := parse_changed(row))]

    def count_held(self) -> int:
        """Return the number of held files without a choice of the user."""
        return 0 if self.outdated else self._count(sql.COUNT_HELD, (self._root,))

    def count_kept(self) -> int:
        """Return the number of changed files whose copies the user keeps."""
        return 0 if self.outdated else self._count(sql.COUNT_KEPT, (self._root,))

    def count_restored(self) -> tuple[int, datetime | None]:
        """Return the number of files that were brought back here, and when the last one was."""
        rows = [] if self.outdated else self._fetch(sql.COUNT_RESTORED, (self._root,))
        ((files, at),) = rows or [(0, None)]
        return files, moment(at) if files else None

    def record_changed(self, changed: ChangedFile) -> None:
        """Record the state of a changed file; replaces an older one."""
        self._write(sql.RECORD_CHANGED, [(self._root, *changed)])

    def count_changed(self, since: datetime) -> dict[DatasetId, int]:
        """Return how many files of each dataset count for the brake since a time."""
        return dict(self._fetch(sql.COUNT_CHANGED, (self._root, int(since.timestamp()))))

    def count_files(self, dataset: DatasetId) -> int:
        """Return the number of known files of a dataset, including those in archives."""
        return self._count(sql.COUNT_FILES, (self._root, dataset))

    def forget_changed(self, before: datetime) -> None:
        """Remove held files that are verified by now, and others that counted before a time."""
        chosen = {"root": self._root, "before": int(before.timestamp())}
        self._write(sql.FORGET_CHANGED, [chosen])

    def choose(self, choices: Sequence[ChangedFile]) -> None:
        """Record the user's choices for held files that are still in the same state."""
        rows = [
            (it.choice, self._root, it.key, it.size, it.modified_ns, it.ctime_ns, it.inode)
            for it in choices
        ]
        with self._file.transaction() as cursor:
            cursor.executemany(sql.CHOOSE, rows)
            cursor.execute(sql.RELEASE_BRAKE, (self._root,))

    def find_archives(self, dataset: DatasetId) -> dict[str, ArchiveRecord]:
        """Return the archives of a dataset by path."""
        rows = self._fetch(sql.FIND_ARCHIVES, (self._root, dataset))
        return {row[1]: archive for row in rows if (archive := parse_archive(row))}

    def record_archive(
        self, archive: ArchiveRecord, members: Sequence[Entry] | None = None
    ) -> None:
        """Record an archive, with exactly these members or with those that it has."""
        place = self._root, archive.dataset, archive.path
        with self._late_lock, self._file.transaction() as cursor:
            cursor.execute(sql.RECORD_ARCHIVE, (self._root, *archive))
            if members is None:
                cursor.execute(
                    sql.FOLLOW, (archive.state, archive.datafile, self._seconds(), *place)
                )
                cursor.execute(sql.FORGET_SAFE_MEMBERS, place)
            else:
                _execute_all(cursor, sql.EMPTY, place)
                self._insert(cursor, members)

    def forget_archive(self, archive: ArchiveRecord) -> None:
        """Remove an archive and the rows of its members."""
        place = self._root, archive.dataset, archive.path
        with self._file.transaction() as cursor:
            cursor.execute(sql.FORGET_ARCHIVE, place)
            _execute_all(cursor, sql.EMPTY, place)

    def note_write(self, dataset: DatasetId, until: datetime) -> None:
        """Record that a request may write to a dataset until a time."""
        staged = [
            (it.entry.remote, it.entry.checksum)
            for it in self._late.copy().values()
            if it.entry.dataset == dataset and it.entry.state is EntryState.STAGED
        ]
        row = (self._root, dataset, ceil(until.timestamp()), json.dumps(staged))
        self._write(sql.NOTE_WRITE, [row])

    def forget_write(self, dataset: DatasetId) -> None:
        """Remove the record of a request that has ended."""
        self._write(sql.FORGET_WRITE, [(self._root, dataset)])

    def find_writes(self) -> dict[DatasetId, EarlierWrite]:
        """Return the requests of earlier runs that may still be writing."""
        with self._file.used() as cursor:
            rows = cursor.execute(sql.FIND_WRITES, (self._root,)).fetchall()
            return {
                dataset: EarlierWrite(
                    moment(until),
                    frozenset(cursor.execute(sql.FIND_STAGED, (self._root, dataset)))
                    | parse_staged(staged),
                )
                for dataset, until, staged in rows
            }

    def open_mapping(self) -> SpillDict[Any]:
        """Return an empty mapping by directory and name, of unlimited size."""
        return self._stock.open_mapping()

    def record_outcomes(self, outcomes: Sequence[Outcome], healthy: Sequence[bytes] = ()) -> None:
        """Record the outcomes of unhealthy files, and remove the paths that are healthy now."""
        now = self._seconds()
        rows = [
            (
                self._root,
                path,
                kind,
                size,
                modified_ns,
                *(problem if kind != "found" else (None,) * 3),
                now,
            )
            for path, size, modified_ns, kind, problem in outcomes
        ]
        with self._file.transaction() as cursor:
            for start in range(0, len(healthy), KEYS_AT_ONCE):
                part = healthy[start : start + KEYS_AT_ONCE]
                query = sql.FIND_OUTDATED % ",".join("?" * len(part))
                outdated = cursor.execute(query, (self._root, *part)).fetchall()
                for forget in sql.FORGET_OUTCOMES:
                    cursor.executemany(forget, outdated)
            cursor.executemany(sql.RECORD_OUTCOME, rows)

    def record_found(
        self, files: Sequence[LocalFile], since: datetime, *, unsent: bool = False
    ) -> int:
        """Record that these files exist only here, unless they are known as verified and unchanged.

        With `unsent`, the server lacks them, whatever is known. Outcomes recorded `since` the run
        began are kept. Returns the number of files for which this is new.
        """
        new = 0
        began = int(since.timestamp())
        one = self._root, self._seconds()
        files = sorted(files, key=KEY)  # neighbours in the file, which then has fewer gaps
        with self._file.transaction() as cursor:
            for start in range(0, len(files), FILES_AT_ONCE):
                part = files[start : start + FILES_AT_ONCE]
                known = not unsent and self._knows_any(cursor, part)
                query = sql.RECORD_FOUND if known else sql.RECORD_UNSENT
                _execute_with(cursor, query, part, *one, began)
                new += cursor.execute("SELECT changes()").fetchone()[0]
        return new

    def measure_risk(self, below: bytes | None = None) -> AtRisk:
        """Return the files that exist only here; empty if the ledger is of an older version.

        `below` limits it to a source and the files in it.
        """
        if self.outdated:
            return NO_RISK
        query = sql.RISK if below is None else sql.RISK_BELOW
        ((files, size, oldest),) = self._fetch(query, self._below(below or b""))
        oldest_at = moment(oldest // 10**9) if oldest else None
        return AtRisk(files, size or 0, oldest_at)

    def count_rechecks(self) -> int:
        """Return the number of files at risk because an answer of the server contradicts them."""
        return 0 if self.outdated else self._count(sql.COUNT_RECHECKS, (self._root,))

    def record_folders(self, folders: Sequence[FolderSums]) -> None:
        """Record the totals of these dataset folders."""
        self._write_folders(sql.RECORD_FOLDER, folders)

    def add_folders(self, folders: Sequence[FolderSums]) -> None:
        """Record these folders, unless they are already known."""
        self._write_folders(sql.ADD_FOLDER, folders)

    def forget_before(self, moment: datetime, sources: Sequence[bytes], *, inside: bool) -> None:
        """Remove outcomes and folders that were not reported since a time: they no longer exist.

        This applies to these sources and, with `inside`, to everything outside all sources. Files
        in a folder that could not be read since then are kept, because they may still exist.
        """
        before = int(moment.timestamp())
        times = {"root": self._root, "before": before}
        with self._file.transaction() as cursor:
            cursor.execute(sql.FORGET_FOUND, times)
            unread = cursor.execute(sql.FIND_FAILED_FOLDERS, times).fetchall()
            for keep in sql.KEEP_BELOW:
                cursor.executemany(keep, [times | self._below(path) for (path,) in unread])
            if inside:
                posix = self._directory.startswith(b"/")
                _execute_all(cursor, sql.FORGET_INSIDE, times | {"posix": posix})
            for forget in sql.FORGET_BELOW:
                cursor.executemany(forget, [times | self._below(it) for it in sources])

    def record_run(self, past: PastRunRow) -> None:
        """Record a run, replacing an earlier record of it."""
        times = [time and time.isoformat() for time in (past.started, past.finished)]
        row = (past.run, self._root, *times, json.dumps(dict(past.summary)))
        self._write(sql.RECORD_RUN, [row])

    def find_runs(self, most: int = 100) -> list[PastRunRow]:
        """Return the latest runs for this data directory, newest first."""
        rows = self._fetch(sql.FIND_RUNS, (self._root, most))
        return [past for row in rows if (past := parse_run(row))]

    def find_destination(self, path: bytes) -> Destination | None:
        """Return the destination of a source when it was last added."""
        found = (known.destination for known in self.find_sources() if known.path == path)
        return next(found, None)

    def find_sources(self) -> list[KnownSource]:
        """Return all sources ever added, ordered by path."""
        return [
            KnownSource(path, Destination(*names), moment(added), finished and moment(finished))
            for path, *names, added, finished in self._fetch(sql.FIND_SOURCES, (self._root,))
        ]

    def list_folders(self) -> list[bytes]:
        """Return the keys of all dataset folders of the last complete run, and of later ones."""
        return [path for (path,) in self._fetch(sql.LIST_FOLDERS, (self._root,))]

    def find_folders(self, destination: Destination) -> list[bytes]:
        """Return the folders that became this dataset in any run."""
        chosen = {"root": self._root} | destination._asdict()
        return [path for (path,) in self._fetch(sql.FIND_FOLDERS, chosen)]

    def record_source(self, source: ExtraSource) -> None:
        """Record a source that is uploaded from now on."""
        row = self._root, source.path, *source.destination, self._seconds()
        self._write(sql.RECORD_SOURCE, [row])

    def finish_source(self, path: bytes) -> None:
        """Record that a source is finished, unless a file of it waits or has failed."""
        self._write(sql.FINISH_SOURCE, [self._below(path) | {"now": self._seconds()}])

    def remove_source(self, path: bytes) -> None:
        """Remove a source and the files that exist only in it; files that were sent stay known."""
        below = self._below(path)
        with self._file.transaction() as cursor:
            _execute_all(cursor, (sql.FORGET_SOURCE, *sql.FORGET_ALL_BELOW), below)

    def measure_source(self, source: KnownSource) -> KnownSource:
        """Return a source with the amount of its known files that are not verified."""
        ((known, files, size),) = self._fetch(sql.MEASURE_SOURCE, self._below(source.path))
        return source._replace(open_files=files, open_bytes=size or 0) if known else source

    def find_meta(self, key: str) -> str | None:
        """Return a fact about this installation, such as its uuid."""
        rows = self._fetch("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def record_meta(self, key: str, value: str) -> None:
        """Record a fact about this installation."""
        self._write("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", [(key, value)])

    def flush(self) -> None:
        """Write everything recorded to the disk, so that it survives a power failure."""
        self._fetch("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Write what was recorded late, and close the file; may be called repeatedly."""
        try:
            self.write_late(also_early=True)
        except RunError as error:
            logger.warning("The last steps of files were not written: %s", error)
        self._stock.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _knows_any(self, cursor: sqlite3.Cursor, files: Sequence[LocalFile]) -> bool:
        """Return whether there may be rows of these files; a new folder has none."""
        keys = [file.key for file in files]
        between = self._root, min(keys), max(keys)
        return cursor.execute(sql.KNOWS_ANY, between).fetchone() is not None

    def _insert(self, cursor: sqlite3.Cursor, entries: Sequence[Entry]) -> None:
        now = self._seconds()
        entries = sorted(entries, key=KEY)  # as `record_found`
        for start in range(0, len(entries), ENTRIES_AT_ONCE):
            part = entries[start : start + ENTRIES_AT_ONCE]
            query = sql.RECORD % ",".join([sql.ROW] * len(part))
            rows = ((*_storable(entry), *self._find_times(entry, now)) for entry in part)
            cursor.execute(query, (*chain.from_iterable(rows), self._root, now))

    def _drop_late(self, entries: Iterable[Entry]) -> None:
        if self._late:
            for entry in entries:
                self._late.pop(entry.key, None)

    def _find_times(self, entry: Entry, now: int) -> tuple[int | None, int | None]:
        """Return when bytes were staged and registered, as far as the file does not know it."""
        late = self._late.get(entry.key)
        if late is None and entry.state is EntryState.VERIFIED:  # at once, as for most files
            return None, None
        staged_at = registered_at = None
        if late and late.entry[1:3] == entry[1:3] and late.entry.checksum == entry.checksum:
            staged_at, registered_at = late.staged_at, late.registered_at
        if late and late.entry is entry:
            return staged_at, registered_at
        if entry.state is EntryState.STAGED:
            return now, None
        if entry.state in (EntryState.REGISTERED, EntryState.REPAIRED):
            return staged_at, now
        return staged_at, registered_at

    def _write_folders(self, query: str, folders: Sequence[FolderSums]) -> None:
        now = self._seconds()
        self._write(query, [(self._root, *sums, now) for sums in folders])

    def _fetch(self, query: str, values: Any = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._file.used() as cursor:
            return cursor.execute(query, values).fetchall()

    def _count(self, query: str, values: Any) -> int:
        return int(self._fetch(query, values)[0][0])

    def _write(self, statement: str, rows: Sequence[Any]) -> None:
        """Execute a statement for each row, in one transaction."""
        with self._file.transaction() as cursor:
            cursor.executemany(statement, rows)

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


def _advance(
    after: tuple[Any, ...], last: Sequence[tuple[Any, ...]], *columns: int
) -> tuple[Any, ...]:
    """Return where to continue after the last row, if any; rows of a damaged file may go back."""
    for row in last:
        place = tuple(row[column] for column in columns)
        if list(map(type, place)) != list(map(type, after)) or place <= after:
            raise sqlite3.DatabaseError("its rows are not in order, so it is damaged")
        return place
    return after


def _execute_all(cursor: sqlite3.Cursor, statements: Iterable[str], values: Any) -> None:
    for statement in statements:
        cursor.execute(statement, values)


def _execute_with(
    cursor: sqlite3.Cursor, query: str, files: Sequence[LocalFile], *values: object
) -> sqlite3.Cursor:
    """Execute a statement with these files, as they were scanned, and further values."""
    seen = list(map(SEEN, files))
    statement = query % ",".join([sql.SEEN] * len(seen))
    try:
        return cursor.execute(statement, (*chain.from_iterable(seen), *values))
    except OverflowError:  # an inode longer than SQLite's integers
        seen = [(*each[:-1], signed(each[-1])) for each in seen]
        return cursor.execute(statement, (*chain.from_iterable(seen), *values))


def _storable(entry: Entry) -> tuple[Any, ...]:
    return entry if entry.remote.isascii() else store_paths(entry)
