"""The SQLite file of the ledger: opening, migration, damage and serialized access."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import NamedTuple, TypeVar

from mydata_like.core.errors import Problem, RunError, SettingsError, UploaderError
from mydata_like.core.ports import Clock
from mydata_like.ledger import rechecks
from mydata_like.settings.atomic_write import make_private_file, require_plain

logger = logging.getLogger(__name__)
T = TypeVar("T")


class SqliteFile:
    """One connection for all threads; a damaged file is moved aside when it is closed."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        clock: Clock,
        *,
        reads_only: bool,
        waiting: "LockWaiting | None" = None,
    ) -> None:
        self._waiting = waiting or LockWaiting()
        self._connection = connection
        self._path = path
        self._clock = clock
        self._lock = Lock()
        self._damaged = False
        self._reads_only = reads_only

    @property
    def version(self) -> int:
        """The version of the tables; 0 if they do not exist yet."""
        with self.used() as cursor:
            (version,) = cursor.execute("PRAGMA user_version").fetchone()
        return int(version)

    @contextmanager
    def used(self) -> Iterator[sqlite3.Cursor]:
        """Lock the connection, and convert its errors to ours.

        A cursor that is still open would keep the file open after the connection is closed; Windows
        renames no open file.
        """
        with self._lock:
            try:
                with closing(self._connection.cursor()) as cursor:
                    yield cursor
            except FAILURES as error:
                outdated = self._reads_only and _is_of_the_statement(error)
                if outdated or not means_damage(error):
                    raise failure(self._path, error) from error
                self._damaged = True
                raise damage(self._path, error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Run the block in a transaction, which is rolled back if it raises.

        While another program has locked the file, the other threads can read it.
        """
        with ExitStack() as stack:
            cursor = self._waiting.persist(self._path, lambda: self._begin(stack))
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    def _begin(self, stack: ExitStack) -> sqlite3.Cursor:
        """Begin a transaction; if that succeeds, the connection is locked until the stack ends."""
        with ExitStack() as attempt:
            cursor = attempt.enter_context(self.used())
            cursor.execute("BEGIN IMMEDIATE")
            stack.push(attempt.pop_all())
        return cursor

    def close(self) -> None:
        """Close the file; may be called repeatedly."""
        with self._lock:
            try:
                self._connection.close()
            except sqlite3.Error as error:
                logger.warning("The ledger could not be closed cleanly: %s", error)
            if self._damaged and not self._reads_only:
                self._damaged = False
                self._put_aside()

    def _put_aside(self) -> None:
        try:
            aside = put_aside(self._path, self._clock.now())
            logger.warning("The ledger was damaged; it is now %s", aside)
        except OSError as error:
            logger.warning("The damaged ledger could not be moved aside: %s", error)


OURS = 0x4D79444C  # the application id in the file's header
LOCK_PATIENCE = 5.0  # seconds of one wait for a backup or a virus scanner; then it is reported
LOCK_LIMIT = 120.0  # seconds of all waits together
CHECK_INTERVAL = 86400  # seconds until the pages of a file are checked again
CHECKED = "checked"  # the key of when they were, in seconds since 1970
CHECK_SECONDS = 2.0  # limit of the check; damage in a file that large is found when it is read
KEPT = 3  # damaged files to keep
GOING_BACK = 30 * 86400  # seconds for which the file before a migration is kept at least
NO_ROOT = -1  # no row has it
UNSOUND = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
# A page that exists but cannot be read, now or later: the disk has lost it.
UNREADABLE = (
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
    sqlite3.SQLITE_IOERR_DATA,
)

FIRST = """
CREATE TABLE roots (
    id INTEGER PRIMARY KEY,
    directory BLOB NOT NULL UNIQUE
);
CREATE TABLE entries (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    state TEXT NOT NULL,
    dataset INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    remote TEXT NOT NULL,
    datafile INTEGER,
    problem TEXT NOT NULL,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
CREATE INDEX entries_by_dataset ON entries (root, dataset, state);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    root INTEGER NOT NULL,
    started TEXT NOT NULL,
    finished TEXT,
    summary TEXT NOT NULL
);
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
"""
ARCHIVES = """
CREATE TABLE archives (
    root INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    state TEXT NOT NULL,
    checksum TEXT NOT NULL,
    remote TEXT NOT NULL,
    datafile INTEGER,
    PRIMARY KEY (root, dataset, path)
) WITHOUT ROWID;
ALTER TABLE entries ADD COLUMN archive TEXT NOT NULL DEFAULT '';
CREATE INDEX entries_by_archive ON entries (root, dataset, archive, state) WHERE archive != '';
"""
# Times are whole seconds since 1970, NULL if unknown; those of `entries` belong to the current
# bytes. `outcomes` has every unhealthy file and folder, `folders` the totals.
TIMES = """
ALTER TABLE entries ADD COLUMN staged_at INTEGER;
ALTER TABLE entries ADD COLUMN registered_at INTEGER;
ALTER TABLE entries ADD COLUMN verified_at INTEGER;
ALTER TABLE entries ADD COLUMN changed_at INTEGER;
CREATE INDEX entries_by_time ON entries (root, changed_at);
CREATE TABLE outcomes (
    root INTEGER NOT NULL,
    path BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    hint TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, path)
) WITHOUT ROWID;
CREATE INDEX outcomes_by_code ON outcomes (root, outcome, code);
CREATE TABLE folders (
    root INTEGER NOT NULL,
    path BLOB NOT NULL,
    dataset TEXT NOT NULL,
    title TEXT,
    owner TEXT NOT NULL,
    grp TEXT NOT NULL,
    found INTEGER NOT NULL,
    found_bytes INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    verified_bytes INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, path)
) WITHOUT ROWID;
"""
# Sources outside the data directory; finished when all of their files are verified.
SOURCES = """
CREATE TABLE sources (
    root INTEGER NOT NULL,
    path BLOB NOT NULL,
    owner TEXT NOT NULL,
    experiment TEXT NOT NULL,
    dataset TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    finished_at INTEGER,
    PRIMARY KEY (root, path)
) WITHOUT ROWID;
"""
# `ctime_ns` and `inode` distinguish files of the same name, size and time. `datasets` has the last
# full listing of each dataset (`newest` is the highest id), `writes` the datasets to which a
# request may still be writing, and until when, `replacements` the records that describe bytes not
# yet in place.
EVIDENCE = """
ALTER TABLE entries ADD COLUMN ctime_ns INTEGER;
ALTER TABLE entries ADD COLUMN inode INTEGER;
DROP INDEX entries_by_dataset;
CREATE INDEX entries_by_dataset ON entries (root, dataset, state, datafile);
CREATE TABLE datasets (
    root INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    total INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    listed_at INTEGER NOT NULL,
    PRIMARY KEY (root, dataset)
) WITHOUT ROWID;
CREATE TABLE writes (
    root INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (root, dataset)
) WITHOUT ROWID;
CREATE TABLE replacements (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    dataset INTEGER NOT NULL,
    datafile INTEGER NOT NULL,
    remote TEXT NOT NULL,
    staged TEXT NOT NULL,
    size INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
"""
# `kept` has earlier bytes of datafiles that stay on the server for a while after a replacement.
KEPT_COPIES = """
ALTER TABLE replacements ADD COLUMN modified_ns INTEGER NOT NULL DEFAULT -1;
ALTER TABLE replacements ADD COLUMN kept TEXT NOT NULL DEFAULT '';
ALTER TABLE replacements ADD COLUMN kept_size INTEGER NOT NULL DEFAULT 0;
CREATE TABLE kept (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    dataset INTEGER NOT NULL,
    datafile INTEGER NOT NULL,
    remote TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    modified TEXT NOT NULL,
    verified_at TEXT NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (root, key, path)
) WITHOUT ROWID;
"""
# `changed_files` has the files that were rewritten or shrunk since they were verified: those that
# are held, and those of the last day, which count for the brake.
CHANGED = """
CREATE TABLE changed_files (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    copy_size INTEGER NOT NULL,
    copy_checksum TEXT NOT NULL,
    copy_verified_at TEXT NOT NULL,
    hold TEXT NOT NULL,
    choice TEXT NOT NULL,
    counted_at INTEGER,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
"""
# `verified` is the number of verified replicas that the server counted when the rest was last
# proven. `spot_checks` has records that were new to the ledger and are to be verified again.
SPOT_CHECKS = """
ALTER TABLE datasets ADD COLUMN verified INTEGER;
CREATE TABLE spot_checks (
    root INTEGER NOT NULL,
    datafile INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (root, datafile)
) WITHOUT ROWID;
"""
# `batches` has the keys, separated by NUL, of files in batches that were begun.
BATCHES = """
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    keys BLOB NOT NULL
);
"""
_FILES_COLUMNS = """
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    state TEXT,
    outcome TEXT,
    size INTEGER,
    modified_ns INTEGER,
    ctime_ns INTEGER,
    inode INTEGER,
    dataset INTEGER,
    checksum TEXT,
    remote TEXT,
    datafile INTEGER,
    archive TEXT,
    problem TEXT,
    staged_at INTEGER,
    registered_at INTEGER,
    verified_at INTEGER,
    changed_at INTEGER,
    seen_size INTEGER,
    seen_modified_ns INTEGER,
    code TEXT,
    message TEXT,
    hint TEXT,
    seen_at INTEGER,
    PRIMARY KEY (root, key)
"""
_FILES_INDEXES = """
CREATE INDEX files_left ON files (root, outcome, code) WHERE outcome IS NOT NULL;
CREATE INDEX files_of_dataset ON files (root, dataset, state, datafile) WHERE state IS NOT NULL;
CREATE INDEX files_of_archive ON files (root, dataset, archive) WHERE archive != '';
CREATE INDEX files_by_time ON files (root, changed_at) WHERE state IS NOT NULL;
"""
# `staged` of `writes` has path and checksum of files that were sent when the request began.
# `files` has one row for each file, see `ledger.sql`: an entry, which is what the destination has
# of it, or an outcome, which is why its bytes are not safe, or both. The statistics, of a large
# ledger, keep SQLite from reading all rows of a data directory where an index finds a few.
FILES = f"""
CREATE TABLE files ({_FILES_COLUMNS}) WITHOUT ROWID;
INSERT INTO files
SELECT it.root, key, state, outcome, it.size, it.modified_ns, ctime_ns, inode, dataset, checksum,
    remote, datafile, archive, problem, staged_at, registered_at, verified_at, changed_at,
    outcomes.size, outcomes.modified_ns, CASE WHEN outcome != 'found' THEN code END,
    CASE WHEN outcome != 'found' THEN message END,
    CASE WHEN outcome != 'found' THEN hint END, at
FROM entries AS it LEFT JOIN outcomes ON outcomes.root = it.root AND path = key
ORDER BY it.root, key;
INSERT INTO files (root, key, outcome, seen_size, seen_modified_ns, code, message, hint, seen_at)
SELECT root, path, outcome, size, modified_ns, CASE WHEN outcome != 'found' THEN code END,
    CASE WHEN outcome != 'found' THEN message END,
    CASE WHEN outcome != 'found' THEN hint END, at
FROM outcomes
WHERE NOT EXISTS (SELECT 1 FROM entries WHERE entries.root = outcomes.root AND key = path);
DROP TABLE entries;
DROP TABLE outcomes;
{_FILES_INDEXES}
ALTER TABLE writes ADD COLUMN staged TEXT NOT NULL DEFAULT '[]';
ANALYZE sqlite_master;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('files', 'files', '1000000 1000000 1'),
    ('files', 'files_left', '1000000 1000000 300000 100000'),
    ('files', 'files_of_dataset', '1000000 1000000 1000 500 1'),
    ('files', 'files_of_archive', '100000 100000 5000 1000'),
    ('files', 'files_by_time', '1000000 1000000 10');
"""
# `listed_parts` has digests of parts of a dataset's listing, `known_groups` those of groups of
# local files; every file in them was as its row, and verified, when they were compared, at the time
# `at`. Whatever changes a verified row removes those of its dataset. A shorter digest is a mark
# that lasts as long as no row changes during a listing.
DIGESTS = """
CREATE TABLE listed_parts (
    root INTEGER NOT NULL,
    dataset INTEGER NOT NULL,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, dataset, digest)
) WITHOUT ROWID;
CREATE TABLE known_groups (
    root INTEGER NOT NULL,
    digest BLOB NOT NULL,
    dataset INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, digest)
) WITHOUT ROWID;
CREATE INDEX known_groups_of_dataset ON known_groups (root, dataset);
CREATE TRIGGER verified_row_changed
AFTER UPDATE OF state, dataset, datafile, size, modified_ns, ctime_ns, inode ON files
WHEN OLD.state = 'verified' AND NOT (
    NEW.state IS OLD.state AND NEW.dataset IS OLD.dataset AND NEW.datafile IS OLD.datafile
    AND NEW.size IS OLD.size AND NEW.modified_ns IS OLD.modified_ns
    AND NEW.ctime_ns IS OLD.ctime_ns AND NEW.inode IS OLD.inode
)
BEGIN
    DELETE FROM listed_parts WHERE root = OLD.root AND dataset = OLD.dataset;
    DELETE FROM known_groups WHERE root = OLD.root AND dataset = OLD.dataset;
END;
CREATE TRIGGER verified_row_removed AFTER DELETE ON files WHEN OLD.state = 'verified'
BEGIN
    DELETE FROM listed_parts WHERE root = OLD.root AND dataset = OLD.dataset;
    DELETE FROM known_groups WHERE root = OLD.root AND dataset = OLD.dataset;
END;
"""
# A file that was renamed is found by its inode. The last statement has this connection read the
# statistics: without them, the first run would read all rows to find a few.
INODES = """
CREATE INDEX files_by_inode ON files (root, inode) WHERE inode IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('files', 'files_by_inode', '1000000 1000000 1');
ANALYZE sqlite_master;
"""
# When the bytes of this checksum were brought back to their place here, in seconds since 1970. Not
# only runs write it; no statement about safety depends on it.
RESTORED = """
CREATE TABLE restored (
    root INTEGER NOT NULL,
    key BLOB NOT NULL,
    checksum TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
"""
MOST_TOUCHED = 10000
_TOUCH = f"""
    INSERT INTO touched (key) VALUES (OLD.key);
    DELETE FROM touched WHERE seq <= last_insert_rowid() - {MOST_TOUCHED};
"""
_TOUCH_TRIGGERS = f"""
CREATE TRIGGER verified_row_changed
AFTER UPDATE OF state, dataset, datafile, size, modified_ns, ctime_ns, inode ON files
WHEN OLD.state = 'verified' AND NOT (
    NEW.state IS OLD.state AND NEW.dataset IS OLD.dataset AND NEW.datafile IS OLD.datafile
    AND NEW.size IS OLD.size AND NEW.modified_ns IS OLD.modified_ns
    AND NEW.ctime_ns IS OLD.ctime_ns AND NEW.inode IS OLD.inode
)
BEGIN
    {_TOUCH}
END;
CREATE TRIGGER verified_row_removed AFTER DELETE ON files WHEN OLD.state = 'verified'
BEGIN
    {_TOUCH}
END;
"""
# Digests also have the number of the last row of `touched` when their files were compared (`seq`),
# and the hashes of the files' keys. `touched` has the verified rows that changed last, of any data
# directory. What was compared before the oldest of them is no longer known.
TOUCHED = f"""
DROP TRIGGER verified_row_changed;
DROP TRIGGER verified_row_removed;
DROP INDEX known_groups_of_dataset;
DELETE FROM listed_parts;
DELETE FROM known_groups;
ALTER TABLE listed_parts ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE listed_parts ADD COLUMN keys BLOB NOT NULL DEFAULT x'';
ALTER TABLE known_groups ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE known_groups ADD COLUMN keys BLOB NOT NULL DEFAULT x'';
CREATE TABLE touched (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL
);
{_TOUCH_TRIGGERS}
"""
# Indexes of a table with row numbers have those instead of the rows' long keys.
NUMBERED = f"""
DROP TRIGGER verified_row_changed;
DROP TRIGGER verified_row_removed;
CREATE TABLE numbered ({_FILES_COLUMNS});
INSERT INTO numbered SELECT * FROM files ORDER BY root, key;
DROP TABLE files;
ALTER TABLE numbered RENAME TO files;
{_FILES_INDEXES}
CREATE INDEX files_by_inode ON files (root, inode) WHERE inode IS NOT NULL;
{_TOUCH_TRIGGERS}
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('files', 'sqlite_autoindex_files_1', '1000000 1000000 1'),
    ('files', 'files_left', '1000000 1000000 300000 100000'),
    ('files', 'files_of_dataset', '1000000 1000000 1000 500 1'),
    ('files', 'files_of_archive', '100000 100000 5000 1000'),
    ('files', 'files_by_time', '1000000 1000000 10'),
    ('files', 'files_by_inode', '1000000 1000000 1');
ANALYZE sqlite_master;
"""
MIGRATIONS: Sequence[str] = (
    FIRST,
    ARCHIVES,
    TIMES,
    SOURCES,
    EVIDENCE,
    KEPT_COPIES,
    CHANGED,
    SPOT_CHECKS,
    BATCHES,
    FILES,
    DIGESTS,
    INODES,
    RESTORED,
    TOUCHED,
    NUMBERED,
)  # the n-th leads to version n; never change one, only add
PROBES = (
    "SELECT id, directory FROM roots LIMIT 1",
    "SELECT root, key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive, staged_at, registered_at, verified_at, changed_at, ctime_ns, inode, outcome,"
    " seen_size, seen_modified_ns, code, message, hint, seen_at FROM files LIMIT 1",
    "SELECT root, dataset, path, size, modified_ns, state, checksum, remote, datafile"
    " FROM archives LIMIT 1",
    "SELECT root, path, dataset, title, owner, grp, found, found_bytes, verified, verified_bytes,"
    " waiting, skipped, failed, at FROM folders LIMIT 1",
    "SELECT root, path, owner, experiment, dataset, added_at, finished_at FROM sources LIMIT 1",
    "SELECT root, dataset, total, newest, listed_at, verified FROM datasets LIMIT 1",
    "SELECT root, dataset, until, staged FROM writes LIMIT 1",
    "SELECT root, key, dataset, datafile, remote, staged, size, checksum, at, modified_ns, kept,"
    " kept_size FROM replacements LIMIT 1",
    "SELECT root, key, dataset, datafile, remote, path, size, checksum, modified, verified_at, at,"
    " until FROM kept LIMIT 1",
    "SELECT root, key, size, modified_ns, ctime_ns, inode, dataset, copy_size, copy_checksum,"
    " copy_verified_at, hold, choice, counted_at FROM changed_files LIMIT 1",
    "SELECT root, datafile, key FROM spot_checks LIMIT 1",
    "SELECT id, root, keys FROM batches LIMIT 1",
    "SELECT root, dataset, digest, at, seq, keys FROM listed_parts LIMIT 1",
    "SELECT root, digest, dataset, at, seq, keys FROM known_groups LIMIT 1",
    "SELECT seq, key FROM touched LIMIT 1",
    "SELECT root, key, checksum, at FROM restored LIMIT 1",
    "SELECT id, root, started, finished, summary FROM runs LIMIT 1",
    "SELECT key, value FROM meta LIMIT 1",
)


class UnsoundError(Exception):
    """The file is not a valid ledger."""


# Work-around: Python 3.11 raises UnicodeDecodeError instead of sqlite3.Error if the message of
# SQLite quotes a damaged schema that is not UTF-8.
# No report known; see test_damage_never_crashes_and_heals_automatically.
# Remove when `sqlite3` decodes messages with a replacement character.
FAILURES = (sqlite3.Error, UnicodeDecodeError)


class LockedError(RunError):
    """Another program has locked the file."""

    code = "ledger.locked"


def locked(file: Path, who: str = "Another program") -> LockedError:
    """Return the error for a file that another program has locked."""
    return LockedError(
        f"{who} has locked the ledger {file}.",
        hint="Close that program, or exclude this folder from backups and virus scans; then run "
        "again.",
    )


def _log(problem: Problem) -> None:
    logger.warning("%s", problem.message)


class LockWaiting(NamedTuple):
    """The wait for a file that another program has locked: at most so many `seconds`.

    `find_holders` names those that have locked one of some files; `report` gets the problem, once
    for each wait.
    """

    seconds: float = LOCK_LIMIT
    patience: float = LOCK_PATIENCE  # seconds of each attempt
    find_holders: Callable[[Sequence[Path]], Sequence[str]] = lambda files: ()
    report: Callable[[Problem], object] = _log

    def persist(self, file: Path, action: Callable[[], T]) -> T:
        """Return the result of `action`, tried again while another program has locked the file."""
        deadline, reported = monotonic() + self.seconds, False
        while True:
            try:
                return action()
            except LockedError as error:
                who = " and ".join(self.find_holders(_parts(file))) or "Another program"
                if monotonic() >= deadline:
                    raise locked(file, who) from error
            if not reported:
                hint = f"The program waits for it, for {self.seconds:.0f} seconds at most."
                self.report(locked(file, who).problem._replace(hint=hint))
                reported = True


def failure(file: Path, error: Exception) -> RunError:
    """Return the error for a failure of the database or the disk."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return locked(file)
    return RunError(
        f"The ledger {file} cannot be used: {error}.",
        hint="Check that the disk is not full, that the folder is writable, and that no other "
        "program uses the file; then run again.",
        code="ledger.failed",
    )


def damage(file: Path, error: Exception) -> RunError:
    """Return the error for a file that was found to be damaged while in use."""
    return RunError(
        f"The ledger {file} is damaged: {error}.",
        hint="It is moved aside before the next run. Nothing is lost: that run queries the server "
        "for its files, which takes a little longer.",
        code="ledger.damaged",
    )


def means_damage(error: Exception) -> bool:
    """Return whether the error means a damaged file; invalid UTF-8 text has no error code."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return False
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in UNSOUND or code in UNREADABLE


def _is_of_the_statement(error: Exception) -> bool:
    """Return whether a statement does not fit the tables, as in a file of an older version."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def open_sound(
    file: Path, clock: Clock, waiting: LockWaiting
) -> tuple[sqlite3.Connection, Problem | None]:
    """Open the ledger's file; a damaged one is moved aside and replaced by a new one.

    Raises `SettingsError` for a file of a newer version or a path that is not a file, `RunError` if
    the disk or another program causes the failure.
    """
    return waiting.persist(file, lambda: _open_sound(file, clock, waiting.patience))


def _open_sound(
    file: Path, clock: Clock, patience: float
) -> tuple[sqlite3.Connection, Problem | None]:
    try:
        make_private_file(file)
        try:
            return _open(file, clock, patience), None
        except UnsoundError as reason:
            aside = put_aside(file, clock.now())
            logger.warning("The ledger was damaged (%s); it is now %s", reason, aside)
            make_private_file(file)
            return _open(file, clock, patience), _lost(aside)
    except (sqlite3.Error, OSError) as error:
        raise failure(file, error) from error
    except UnsoundError as error:
        raise failure(file, sqlite3.DatabaseError(str(error))) from error


def connect_to_read(file: Path) -> sqlite3.Connection:
    """Connect to a file that another process may be writing. Raises `RunError`.

    The connection sees no row as verified that must be checked again.
    """
    require_plain(file)
    try:
        connection = _connect(f"{file.absolute().as_uri()}?mode=ro", LOCK_PATIENCE)
    except sqlite3.Error as error:
        raise failure(file, error) from error
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == len(MIGRATIONS):
            rechecks.overlay(connection, file)
    except FAILURES as error:
        connection.close()
        raise failure(file, error) from error
    return connection


def connect_to_current(file: Path) -> sqlite3.Connection | None:
    """Connect for reading to a ledger of the current version; None if there is none yet.

    Raises `RunError` for one of an older version, `SettingsError` for one of a newer version.
    """
    if not file.exists():
        return None
    connection = connect_to_read(file)
    with ExitStack() as stack:
        stack.callback(connection.close)
        try:
            _require_current(connection)
        except FAILURES as error:
            raise failure(file, error) from error
        stack.pop_all()
    return connection


def _require_current(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < len(MIGRATIONS):
        raise RunError(
            "The ledger was written by an older version of this program.",
            hint="The next run updates it.",
            code="ledger.outdated",
        )
    if version > len(MIGRATIONS):
        raise _newer()


def note_restored(
    file: Path, directory: bytes, checksums: Iterable[tuple[bytes, str]], now: datetime
) -> None:
    """Note that files were brought back to their places, also while a run writes to the ledger.

    They are given by key. Raises `RunError`.
    """
    at = int(now.timestamp())
    try:
        with closing(_connect(f"{file.absolute().as_uri()}?mode=rw", LOCK_LIMIT)) as connection:
            _require_current(connection)
            root = find_root(connection, directory)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT OR REPLACE INTO restored (root, key, checksum, at) VALUES (?, ?, ?, ?)",
                [(root, key, checksum, at) for key, checksum in checksums],
            )
            connection.execute("COMMIT")
    except FAILURES as error:
        raise failure(file, error) from error


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a ledger as `connect_to_current` does, close it in the end, and convert its errors."""
    connection = connect_to_current(file)
    if connection is None:
        yield None
        return
    with closing(connection):
        try:
            yield connection
        except FAILURES as error:
            raise failure(file, error) from error


def find_root(connection: sqlite3.Connection | sqlite3.Cursor, directory: bytes) -> int:
    """Return the number of a data directory in the ledger; one that no row has if it has none."""
    row = connection.execute("SELECT id FROM roots WHERE directory = ?", (directory,)).fetchone()
    return int(row[0]) if row else NO_ROOT


def read_directories(file: Path) -> list[bytes]:
    """Return the data directories of a ledger; none if it cannot be read."""
    try:
        with closing(connect_to_read(file)) as connection:
            return [directory for (directory,) in connection.execute("SELECT directory FROM roots")]
    except (UploaderError, *FAILURES) as error:
        logger.info("The ledger %s cannot be read: %s", file, error)
        return []


def put_aside(file: Path, now: datetime) -> Path:
    """Rename a damaged file and the files that belong to it; keep only the newest few.

    Raises OSError, as on Windows while another program has one of them open; the file itself is the
    last, so that what belonged to it is never taken for a part of a new one.
    """
    older = sorted(file.parent.glob(f"{file.stem}.corrupt-*{file.suffix}"))
    for path in older[: max(0, len(older) + 1 - KEPT)]:
        for part in _parts(path):
            part.unlink(missing_ok=True)
    stamp = now.strftime("%Y%m%dT%H%M%S.%f")
    aside = file.with_name(f"{file.stem}.corrupt-{stamp}{file.suffix}")
    for part, target in reversed(list(zip(_parts(file), _parts(aside), strict=True))):
        if part.exists():
            part.replace(target)
    return aside


def _parts(file: Path) -> list[Path]:
    return [file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")]


def _lost(aside: Path) -> Problem:
    return Problem(
        "ledger.damaged",
        f"The ledger was damaged and has been moved aside as {aside.name}.",
        "Nothing is lost: this run queries the server for its files, which takes a little longer.",
    )


def _connect(uri: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )


def _open(file: Path, clock: Clock, patience: float) -> sqlite3.Connection:
    unclean = any(part.exists() for part in _parts(file)[1:])  # of a process that was killed
    connection = _connect(file.absolute().as_uri(), patience)
    try:
        _prepare(connection, file, int(clock.now().timestamp()), unclean=unclean)
    except FAILURES as error:
        connection.close()
        if means_damage(error):
            raise UnsoundError(str(error)) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, file: Path, now: int, *, unclean: bool) -> None:
    _check_header(file)
    version = _check_version(connection)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -16000")  # kibibytes, for indexes of 100,000 files
    checked = 0
    if version and not unclean:
        for (text,) in connection.execute("SELECT value FROM meta WHERE key = ?", (CHECKED,)):
            checked = int(text) if str(text).isdecimal() else 0
    if version and not now - CHECK_INTERVAL < checked <= now:
        _check_pages(connection)
        _remove_copies(file, now - GOING_BACK)
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (CHECKED, str(now)))
    migrate(connection, file, MIGRATIONS)
    for probe in PROBES:
        connection.execute(probe).fetchall()


def _remove_copies(file: Path, before: int) -> None:
    """Remove what `migrate` has kept, if it was made before a time, in seconds since 1970."""
    for copy in file.parent.glob(f"{file.stem}.before-v*{file.suffix}"):
        with suppress(OSError):  # another day
            if copy.stat().st_mtime < before:
                copy.unlink()


def _check_header(file: Path) -> None:
    """Reject a file whose header has a later format, which SQLite would open read-only."""
    with file.open("rb") as opened:
        formats = opened.read(20)[18:]
    if not set(formats) <= {1, 2}:
        raise UnsoundError("its header is damaged")


def _check_version(connection: sqlite3.Connection) -> int:
    """Return the file's version, 0 for an empty one; changes nothing."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (version or tables) and application != OURS:
        raise UnsoundError("it is not a ledger")
    if version < 0 or (tables and not version):
        raise UnsoundError("it has no version")
    if version > len(MIGRATIONS):
        raise _newer()
    return int(version)


def _newer() -> SettingsError:
    return SettingsError(
        "The ledger was written by a newer version of this program.",
        hint="Install that version, or choose another folder in advanced.state_directory.",
        code="ledger.newer",
    )


def _check_pages(connection: sqlite3.Connection) -> None:
    """Check the pages for damage within a time limit."""
    deadline = monotonic() + CHECK_SECONDS
    connection.set_progress_handler(lambda: monotonic() > deadline, 10_000)
    try:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        logger.info("The ledger is too large to be checked in %.0f s", CHECK_SECONDS)
        return
    finally:
        connection.set_progress_handler(None, 0)
    if verdict != "ok":
        raise UnsoundError(verdict)


def migrate(connection: sqlite3.Connection, file: Path, migrations: Sequence[str]) -> None:
    """Migrate the file to the latest version; if it has data, keep it as it was beside it."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if 0 < version < len(migrations):
        copy = file.with_name(f"{file.stem}.before-v{version + 1}{file.suffix}")
        make_private_file(copy)
        with closing(sqlite3.connect(copy)) as target:
            connection.backup(target)
    for number, script in enumerate(migrations[version:], version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {script}; PRAGMA application_id = {OURS};"
            f" PRAGMA user_version = {number}; COMMIT;"
        )
