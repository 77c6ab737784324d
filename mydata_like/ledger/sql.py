"""The SQL statements of the ledger, and the parsers of its rows.

A row of `files` has two parts, and at least one of them. What the destination has of a file: the
columns of `Entry` with their times, written by each stage that brings bytes on; `state` is NULL if
it has none. Why the file as a run found it is not safe: the columns of `Outcome`, written when the
file is found and whenever an event reports it as waiting, skipped or failed; `outcome` is NULL if
nothing is to be said. Both may describe different bytes: those of an earlier version are verified,
while the present one waits. Verifying the bytes of an outcome removes it in the same statement.
A found file has no code, message and hint: they are those of `UNSENT`.
A folder that was skipped or failed only has an outcome.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, NamedTuple

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.deletion import PARTIAL_REASONS
from mydata_like.core.model import (
    UNSENT,
    ChangeChoice,
    ChangedFile,
    Entry,
    EntryState,
    HoldReason,
)
from mydata_like.core.parsing import moment_of, parse_json, parse_moment
from mydata_like.core.problems import INTENDED

ENTRY = (
    "key, size, modified_ns, state, dataset, checksum, remote, datafile, problem, archive,"
    " ctime_ns, inode"
)
_ENTRY_PART = (*ENTRY.split(", ")[1:], "staged_at", "registered_at", "verified_at", "changed_at")
_OUTCOME = "outcome, seen_size, seen_modified_ns, code, message, hint, seen_at"
_OUTCOME_PART = _OUTCOME.split(", ")
FIND = f"SELECT {ENTRY} FROM files WHERE root = ? AND state IS NOT NULL AND key IN (%s)"
# Parts of archives have no bytes of their own.
FIND_OF_INODES = (
    f"SELECT {ENTRY} FROM files WHERE root = ? AND inode IN (%s) AND archive = ''"
    " AND state IN ('verified', 'registered')"
)
# One query for many files: a row for each that has changed, and one for each dataset of the others.
# A row of an older version is not trusted until its ctime and inode are known. The plus sign keeps
# SQLite from searching by inodes, which are all the same on some shares.
FIND_OPEN = (
    "WITH seen (key, size, modified_ns, ctime_ns, inode) AS (VALUES %s)"
    " SELECT dataset, CASE WHEN files.key IS NULL THEN seen.key END FROM seen LEFT JOIN files"
    " ON root = ? AND files.key = seen.key AND state = 'verified' AND datafile IS NOT NULL"
    " AND files.size = seen.size AND files.modified_ns = seen.modified_ns"
    " AND files.ctime_ns = seen.ctime_ns AND +files.inode = seen.inode GROUP BY 1, 2"
)
KNOWS_ANY = "SELECT 1 FROM files WHERE root = ? AND key BETWEEN ? AND ? LIMIT 1"
# The plus signs keep SQLite from searching all rows of the dataset for each query.
FIND_VERIFIED = (
    "SELECT key, datafile FROM files WHERE root = ? AND key IN (%s) AND +state = 'verified'"
    " AND +dataset = ? AND datafile IS NOT NULL"
)
LAST_TOUCHED = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'touched'"
LIST_TOUCHED = "SELECT seq, key FROM touched WHERE seq > ? ORDER BY seq"
_STILL_KNOWN = "at > ? AND at <= ? AND seq >= (SELECT coalesce(min(seq), 1) - 1 FROM touched)"
FIND_PARTS = (
    f"SELECT digest, seq, keys FROM listed_parts WHERE root = ? AND dataset = ? AND {_STILL_KNOWN}"
)
LIST_PARTS = "SELECT digest FROM listed_parts WHERE root = ? AND dataset = ?"
FORGET_PART = "DELETE FROM listed_parts WHERE root = ? AND dataset = ? AND digest = ?"
RECORD_PART = (
    "INSERT OR REPLACE INTO listed_parts (root, dataset, at, seq, digest, keys)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
FIND_KNOWN = (
    "SELECT digest, dataset, seq, keys FROM known_groups WHERE root = ? AND digest IN (%s)"
    f" AND {_STILL_KNOWN}"
)
RECORD_KNOWN = (
    "INSERT OR REPLACE INTO known_groups (root, digest, dataset, at, seq, keys)"
    f" VALUES (?, ?, ?, ?, ({LAST_TOUCHED}), ?)"
)
FORGET_KNOWN = "DELETE FROM known_groups WHERE at <= ?"
# What changed before all comparisons whose results are stored does not matter any more. The last
# row stays: what another process compares since before that will not be known.
FORGET_TOUCHED = (
    "DELETE FROM touched WHERE seq < (SELECT max(seq) FROM touched) AND seq <= (SELECT min(seq)"
    " FROM (SELECT seq FROM listed_parts UNION ALL SELECT seq FROM known_groups))"
)
LIST = (
    f"SELECT {ENTRY} FROM files WHERE root = ? AND state IS NOT NULL AND key > ? AND key < ?"
    " ORDER BY key LIMIT ?"
)
_LIST_VERIFIED = (
    f"SELECT {ENTRY} FROM files WHERE root = :root AND dataset = :dataset"
    " AND state = :state AND archive = ''"
)
# Verified rows of a dataset with their own record, a part at a time.
LIST_VERIFIED = (
    f"{_LIST_VERIFIED} AND (datafile, key) > (:datafile, :key) ORDER BY datafile, key LIMIT :most"
)
# The same for rows without the id of their record.
LIST_UNNUMBERED = f"{_LIST_VERIFIED} AND datafile IS NULL AND key > :key ORDER BY key LIMIT :most"
# Uses indexes only; the files of an archive have its record. All states are named, so that SQLite
# searches each one by the range of ids, which is short after a listing.
_STATES = ", ".join(f"'{state.value}'" for state in EntryState)
COUNT = f"""
    SELECT count(DISTINCT datafile), coalesce(max(datafile), 0) FROM (
        SELECT datafile FROM files WHERE root = :root AND dataset = :dataset
        AND state IN ({_STATES}) AND datafile > :after AND datafile <= :until
        UNION ALL SELECT datafile FROM archives WHERE root = :root AND dataset = :dataset
        AND datafile > :after AND datafile <= :until
    )
"""
# Those of them that are verified, as the server counts them if each has one replica.
COUNT_VERIFIED = """
    SELECT count(DISTINCT datafile) FROM (
        SELECT datafile FROM files WHERE root = :root AND dataset = :dataset
        AND state = 'verified' AND datafile > :after
        UNION ALL SELECT datafile FROM archives WHERE root = :root AND dataset = :dataset
        AND state = 'verified' AND datafile > :after
    )
"""
ADD_SPOT_CHECK = "INSERT OR IGNORE INTO spot_checks (root, datafile, key) VALUES (?, ?, ?)"
FIND_SPOT_CHECKS = (
    "SELECT spot_checks.datafile, spot_checks.key FROM spot_checks WHERE root = ?"
    " ORDER BY datafile LIMIT ?"
)
FORGET_SPOT_CHECK = "DELETE FROM spot_checks WHERE root = ? AND datafile = ?"
FIND_LISTED = (
    "SELECT total, newest, listed_at, verified FROM datasets WHERE root = ? AND dataset = ?"
)
RECORD_LISTED = (
    "INSERT OR REPLACE INTO datasets (root, dataset, total, newest, listed_at, verified)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
# Without a full listing, the records were compared when each was verified.
RECORD_PROVEN = """
    INSERT INTO datasets (root, dataset, total, newest, listed_at, verified)
    SELECT :root, :dataset, :total, :id, coalesce(min(verified_at), :now), :verified FROM files
    WHERE root = :root AND dataset = :dataset AND state = 'verified'
    ON CONFLICT DO UPDATE SET total = excluded.total, newest = excluded.newest,
        verified = excluded.verified
"""
# The outcome describes bytes that are verified now; for each row, a list of words would cost a lot.
_SAFE_NOW = (
    "excluded.state = 'verified' AND outcome != 'skipped' AND seen_size = excluded.size"
    " AND (seen_modified_ns = excluded.modified_ns OR seen_modified_ns = 0)"
)
# The times of earlier steps are kept while the bytes are the same; bytes staged again repeat all
# steps. One statement writes many rows: other threads run during a statement, but wait between
# statements.
RECORD = f"""
    WITH
        new ({ENTRY}, staged_at, registered_at) AS (VALUES %s),
        one (root, now) AS (VALUES (?, ?))
    INSERT INTO files (root, {ENTRY}, staged_at, registered_at, verified_at, changed_at)
    SELECT root, new.*, CASE WHEN state = 'verified' THEN now END, now
    FROM new, one WHERE true ON CONFLICT (root, key) DO UPDATE SET
        size = excluded.size, modified_ns = excluded.modified_ns, state = excluded.state,
        dataset = excluded.dataset, checksum = excluded.checksum, remote = excluded.remote,
        datafile = excluded.datafile, problem = excluded.problem, archive = excluded.archive,
        ctime_ns = excluded.ctime_ns, inode = excluded.inode, changed_at = excluded.changed_at,
        staged_at = CASE WHEN excluded.staged_at IS NOT NULL THEN excluded.staged_at
            WHEN (size, modified_ns, checksum)
                = (excluded.size, excluded.modified_ns, excluded.checksum)
            THEN staged_at END,
        registered_at = CASE WHEN excluded.registered_at IS NOT NULL THEN excluded.registered_at
            WHEN excluded.state != 'staged' AND (size, modified_ns, checksum)
                = (excluded.size, excluded.modified_ns, excluded.checksum)
            THEN registered_at END,
        verified_at = excluded.verified_at,
        {", ".join(f"{it} = CASE WHEN NOT ({_SAFE_NOW}) THEN {it} END" for it in _OUTCOME_PART)}
"""
SEEN = "(?, ?, ?, ?, ?)"
ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
RECORD_OUTCOME = (
    f"INSERT INTO files (root, key, {_OUTCOME}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    f" ON CONFLICT (root, key) DO UPDATE SET ({_OUTCOME})"
    f" = ({', '.join(f'excluded.{it}' for it in _OUTCOME_PART)})"
)
_INTENDED = ", ".join(map(repr, sorted(INTENDED)))
# Files known to exist only here: found, waiting, failed, or skipped unintentionally.
AT_RISK = (
    "outcome IS NOT NULL AND (outcome IN ('found', 'waiting', 'failed')"
    f" OR (outcome = 'skipped' AND code NOT IN ({_INTENDED})))"
)
# What outcomes say; a found file has none of it in its row.
CODE, MESSAGE, HINT = (f"coalesce({name}, '{text}')" for name, text in UNSENT._asdict().items())
# The outcome describes bytes that are verified now.
_SAFE = (
    "state = 'verified' AND outcome IN ('found', 'waiting', 'failed') AND seen_size = size"
    " AND seen_modified_ns IN (modified_ns, 0)"
)
# The found file was sent and is not verified yet.
UNDER_WAY = (
    "coalesce(state IN ('staged', 'registered', 'repaired')"
    " AND (size, modified_ns) = (seen_size, seen_modified_ns), false)"
)
# Outcomes of files that are shown under them; found files in transfer are shown by their entry.
SHOWN = f"(outcome IN ('waiting', 'skipped', 'failed') OR (outcome = 'found' AND NOT {UNDER_WAY}))"
# Files that the ledger does not have as verified and unchanged; older versions stored neither ctime
# nor inode. A file's failure is kept while the file is the same, and so is what this run has
# already recorded.
_RECORD_FOUND = f"""
    WITH
        seen (key, size, modified_ns, ctime_ns, inode) AS (VALUES %s),
        one (root, now) AS (VALUES (?, ?))
    INSERT INTO files (root, key, {_OUTCOME})
    SELECT root, key, 'found', size, modified_ns, NULL, NULL, NULL, now FROM seen, one
    WHERE {{}} ON CONFLICT (root, key) DO UPDATE SET ({_OUTCOME})
        = ({", ".join(f"excluded.{it}" for it in _OUTCOME_PART)})
    WHERE outcome IS NULL OR (seen_at < ? OR code IN ({_INTENDED}) OR (outcome = 'found'
        AND (seen_size, seen_modified_ns) != (excluded.seen_size, excluded.seen_modified_ns))
    ) AND NOT (outcome = 'failed'
        AND (seen_size, seen_modified_ns) = (excluded.seen_size, excluded.seen_modified_ns))
"""
RECORD_UNSENT = _RECORD_FOUND.format("true")
RECORD_FOUND = _RECORD_FOUND.format("""NOT EXISTS (
        SELECT 1 FROM files WHERE files.root = one.root AND files.key = seen.key
        AND state = 'verified' AND files.size = seen.size AND files.modified_ns = seen.modified_ns
        AND coalesce(files.ctime_ns, seen.ctime_ns) = seen.ctime_ns
        AND coalesce(files.inode, seen.inode) = seen.inode
    )""")


# Few files have an outcome: without their index, SQLite would read all rows below a folder.
_LEFT = "files INDEXED BY files_left"


def _forget_outcomes(which: str, table: str = "files") -> Sequence[str]:
    """Return the statements that forget the outcomes of some files, but not their entries."""
    return _forget(_OUTCOME_PART, "state", which, table)


def _forget(part: Sequence[str], other: str, which: str, table: str = "files") -> Sequence[str]:
    """Return the statements that forget a part of some rows, and rows without the `other` part."""
    nothing = ", ".join(f"{it} = NULL" for it in part)
    return (
        f"DELETE FROM {table} WHERE {other} IS NULL AND {which}",
        f"UPDATE {table} SET {nothing} WHERE {which}",
    )


FORGET_SAFE_MEMBERS = _forget_outcomes(
    f"root = ? AND dataset = ? AND archive = ? AND archive != '' AND {_SAFE}"
)[1]

RISK = (
    "SELECT count(*), sum(seen_size), min(nullif(seen_modified_ns, 0)) FROM files"
    f" WHERE root = :root AND {AT_RISK}"
)
COUNT_RECHECKS = (
    "SELECT count(*) FROM files WHERE root = ? AND outcome = 'waiting' AND code = 'waiting.recheck'"
)
FIND_VERIFIED_AT = "SELECT verified_at FROM files WHERE root = ? AND key = ?"
FIND_DOUBTED = (
    "SELECT 1 FROM files WHERE root = ? AND key = ? AND outcome = 'waiting'"
    " AND code = 'waiting.recheck'"
)
COUNT_KEPT = (
    "SELECT count(*) FROM files WHERE root = ? AND outcome = 'skipped' AND code = 'skipped.changed'"
)
# A file that has been sent with other bytes since then is not counted.
COUNT_RESTORED = (
    "SELECT count(*), max(at) FROM restored JOIN files USING (root, key, checksum) WHERE root = ?"
)
# What must be checked again may have been reported as verified before that was known.
FIND_OUTDATED = (
    "SELECT root, key FROM files WHERE root = ? AND key IN (%s) AND outcome IS NOT NULL"
    f" AND (code IS NOT 'waiting.recheck' OR {_SAFE})"
)
FORGET_OUTCOMES = _forget_outcomes("root = ? AND key = ?")
_FOLDER = (
    " INTO folders (root, path, dataset, title, owner, grp, found, found_bytes,"
    " verified, verified_bytes, waiting, skipped, failed, at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
RECORD_FOLDER, ADD_FOLDER = f"INSERT OR REPLACE{_FOLDER}", f"INSERT OR IGNORE{_FOLDER}"
RECORD_REPLACEMENT = (
    "INSERT OR REPLACE INTO replacements (root, key, dataset, datafile, remote, staged, size,"
    " checksum, at, modified_ns, kept, kept_size) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_REPLACEMENT = (
    "SELECT key, dataset, datafile, remote, staged, size, checksum, at, modified_ns, kept,"
    " kept_size FROM replacements WHERE root = "
)
FIND_REPLACEMENTS = f"{_REPLACEMENT}? ORDER BY key"
FIND_REPLACEMENT = f"{_REPLACEMENT}:root AND key = :key"
FORGET_REPLACEMENT = "DELETE FROM replacements WHERE root = ? AND key = ? AND checksum = ?"
NOTE_BATCH = "INSERT INTO batches (root, keys) VALUES (?, ?)"
FIND_BATCHES = "SELECT id, CAST(keys AS BLOB) FROM batches WHERE root = ?"
FORGET_BATCH = "DELETE FROM batches WHERE id = ?"
RECORD_KEPT = (
    "INSERT OR REPLACE INTO kept (root, key, dataset, datafile, remote, path, size, checksum,"
    " modified, verified_at, at, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FIND_KEPT = (
    "SELECT key, dataset, datafile, remote, path, size, checksum, modified, verified_at, at, until"
    " FROM kept WHERE root = ?1 AND (?2 IS NULL OR key = ?2) ORDER BY at DESC, key, path"
)
FORGET_KEPT = "DELETE FROM kept WHERE root = ? AND key = ? AND path = ?"
_CHANGED = (
    "key, size, modified_ns, ctime_ns, inode, dataset, copy_size, copy_checksum,"
    " copy_verified_at, hold, choice, counted_at"
)
FIND_CHANGED = f"SELECT {_CHANGED} FROM changed_files WHERE root = ? AND key = ?"
# Files that are verified by now, as after they were restored, are held no longer, and neither are
# those that a run did not find any more, unless their copies are to be kept.
_PAST = (
    "(EXISTS (SELECT 1 FROM files WHERE files.root = changed_files.root"
    " AND files.key = changed_files.key AND state = 'verified'"
    " AND files.dataset = changed_files.dataset) OR choice != 'keep' AND NOT EXISTS"
    " (SELECT 1 FROM files WHERE files.root = changed_files.root"
    " AND files.key = changed_files.key AND outcome IS NOT NULL))"
)
_HELD = f"FROM changed_files WHERE root = ? AND hold != '' AND NOT {_PAST}"
LIST_HELD = f"SELECT {_CHANGED} {_HELD} ORDER BY key"
COUNT_HELD = f"SELECT count(*) {_HELD} AND choice = ''"
RECORD_CHANGED = (
    f"INSERT OR REPLACE INTO changed_files (root, {_CHANGED})"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
COUNT_CHANGED = (
    "SELECT dataset, count(*) FROM changed_files WHERE root = ? AND counted_at > ? GROUP BY dataset"
)
FORGET_CHANGED = (
    "DELETE FROM changed_files WHERE root = :root AND (counted_at IS NULL"
    f" OR counted_at <= :before) AND (hold = '' OR {_PAST})"
)
# A choice applies to the state for which it was made.
CHOOSE = (
    "UPDATE changed_files SET choice = ? WHERE root = ? AND key = ? AND hold != ''"
    " AND (size, modified_ns, ctime_ns, inode) = (?, ?, ?, ?)"
)
# Who replaces files that the brake holds has confirmed the changes of their datasets.
RELEASE_BRAKE = (
    "UPDATE changed_files SET counted_at = NULL WHERE root = ?1 AND dataset IN (SELECT dataset"
    " FROM changed_files WHERE root = ?1 AND hold = 'brake' AND choice = 'replace')"
)
COUNT_FILES = "SELECT count(*) FROM files WHERE root = ? AND dataset = ? AND state IS NOT NULL"
FIND_ARCHIVES = (
    "SELECT dataset, path, size, modified_ns, state, checksum, remote, datafile FROM archives"
    " WHERE root = ? AND dataset = ? ORDER BY path"
)
RECORD_ARCHIVE = (
    "INSERT OR REPLACE INTO archives (root, dataset, path, size, modified_ns, state, checksum,"
    " remote, datafile) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FORGET_ARCHIVE = "DELETE FROM archives WHERE root = ? AND dataset = ? AND path = ?"
EMPTY = _forget(
    _ENTRY_PART, "outcome", "root = ? AND dataset = ? AND archive = ? AND archive != ''"
)
FORGET = _forget(_ENTRY_PART, "outcome", "root = ? AND key = ?")
# Files that were not compared with their archive keep their state.
FOLLOW = (
    "UPDATE files SET state = ?1, datafile = ?2, changed_at = ?3,"
    " registered_at = CASE WHEN ?1 IN ('registered', 'repaired') THEN ?3 ELSE registered_at END,"
    " verified_at = CASE WHEN ?1 = 'verified' THEN ?3 END"
    " WHERE root = ?4 AND dataset = ?5 AND archive = ?6 AND archive != ''"
    " AND ctime_ns IS NOT 0"
)
NOTE_WRITE = "INSERT OR REPLACE INTO writes (root, dataset, until, staged) VALUES (?, ?, ?, ?)"
FORGET_WRITE = "DELETE FROM writes WHERE root = ? AND dataset = ?"
FIND_WRITES = "SELECT dataset, until, staged FROM writes WHERE root = ?"
FIND_STAGED = (
    "SELECT remote, checksum FROM files"
    " WHERE root = ?1 AND dataset = ?2 AND state = 'staged' AND archive = ''"
    " UNION ALL SELECT remote, checksum FROM archives"
    " WHERE root = ?1 AND dataset = ?2 AND state = 'staged'"
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
# Keys in it are between its own followed by "/" and by "0", the next character.
_BELOW = "root = :root AND ({0} = :path OR ({0} > :low AND {0} < :high))"
RISK_BELOW = f"{RISK} AND {_BELOW.format('key')}"
# Folders skipped unintentionally may contain files that no run has found.
FINISH_SOURCE = f"""
    UPDATE sources SET finished_at = :now WHERE root = :root AND path = :path AND NOT EXISTS (
        SELECT 1 FROM {_LEFT} WHERE outcome IS NOT NULL AND {_BELOW.format("key")}
        AND ({AT_RISK} OR outcome = 'folder-failed' OR code = 'skipped.owner')
    )
"""
FORGET_SOURCE = "DELETE FROM sources WHERE root = :root AND path = :path"
# Files skipped by no setting count as open, even if an earlier version of them is verified.
MEASURE_SOURCE = f"""
    SELECT count(*), count(*) FILTER (WHERE open), sum(size) FILTER (WHERE open) FROM (
        SELECT coalesce(seen_size, size) AS size,
            CASE WHEN outcome IS NULL THEN state != 'verified' ELSE {AT_RISK} END AS open
        FROM files WHERE {_BELOW.format("key")}
    )
"""
# Files of the data directory that any run has found, ordered by key.
KNOWN = """
    SELECT key, coalesce(checksum, '') FROM files WHERE root = :root AND key > :after
    AND (:low = x'' OR (key > :low AND key < :high))
    AND substr(key, 1, 1) != x'2f' AND (:posix OR substr(key, 2, 1) != x'3a')
    AND (state IS NOT NULL OR outcome IN ('found', 'waiting', 'failed'))
    ORDER BY key LIMIT :most
"""
# Keys of the data directory are relative: those of sources begin with "/" or a drive letter.
_INSIDE = "root = :root AND substr({0}, 1, 1) != x'2f' AND (:posix OR substr({0}, 2, 1) != x'3a')"
FORGET_BELOW, FORGET_INSIDE = (
    (
        *_forget_outcomes(
            f"outcome IS NOT NULL AND seen_at < :before AND {which.format('key')}", _LEFT
        ),
        f"DELETE FROM folders WHERE at < :before AND {which.format('path')}",
    )
    for which in (_BELOW, _INSIDE)
)
FORGET_ALL_BELOW = (
    *_forget_outcomes(f"outcome IS NOT NULL AND {_BELOW.format('key')}"),
    f"DELETE FROM folders WHERE {_BELOW.format('path')}",
)
FORGET_FOUND = _forget_outcomes(f"root = :root AND outcome = 'found' AND {_SAFE}")[1]
FIND_FAILED_FOLDERS = (
    "SELECT key FROM files WHERE root = :root AND outcome = 'folder-failed' AND seen_at >= :before"
)
KEEP_BELOW = (
    f"UPDATE files SET seen_at = :before WHERE seen_at < :before AND {_BELOW.format('key')}",
    f"UPDATE folders SET at = :before WHERE at < :before AND {_BELOW.format('path')}",
)
ADD_ROOT = "INSERT OR IGNORE INTO roots (directory) VALUES (?)"
LIST_FOLDERS = "SELECT path FROM folders WHERE root = ? ORDER BY path"
RECORD_RUN = (
    "INSERT OR REPLACE INTO runs (id, root, started, finished, summary) VALUES (?, ?, ?, ?, ?)"
)
FIND_RUNS = (
    "SELECT id, started, finished, summary FROM runs WHERE root = ?"
    " ORDER BY started DESC, id LIMIT ?"
)


logger = logging.getLogger(__name__)

STATE_BY_TEXT = {state.value: state for state in EntryState}
REMOTE = 6  # the position of the path in a row of `files`
KINDS = frozenset(
    (bytes, int, int, str, int, str, str, datafile, str, str, seen, seen)
    for datafile in (int, NoneType)
    for seen in (int, NoneType)
)
ARCHIVE_KINDS = frozenset(
    (int, str, int, int, str, str, str, datafile) for datafile in (int, NoneType)
)


class PastRunRow(NamedTuple):
    """A run in the ledger; `finished` is None if it was interrupted."""

    run: str
    started: datetime
    finished: datetime | None
    summary: Mapping[str, object]

    @property
    def partial(self) -> bool:
        """Whether it was not over everything."""
        return self.summary.get("reason") in PARTIAL_REASONS


def find_whole_run(runs: Iterable[PastRunRow]) -> PastRunRow | None:
    """Return the newest run over everything that has ended, given the newest first."""
    return next((past for past in runs if past.finished and not past.partial), None)


def is_newer(last: PastRunRow | None, whole: PastRunRow | None) -> bool:
    """Return whether a run, such as of a shard, began after the one over everything."""
    return last is not None and (whole is None or last.started > whole.started)


def moment(seconds: int) -> datetime:
    """Return the time of a row, in whole seconds since 1970, or the nearest valid one."""
    return moment_of(seconds if isinstance(seconds, int | float) else 0)


def store_paths(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return values for a row; a path that is no valid text is stored as its bytes."""
    return tuple(_store(it) if isinstance(it, str) and not it.isascii() else it for it in values)


def _store(path: str) -> str | bytes:
    stored = path.encode("utf-8", "surrogateescape")
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def load_paths(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a row, of which only the key at its beginning is bytes."""
    return (*row[:1], *(_load(it) if isinstance(it, bytes) else it for it in row[1:]))


def _load(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def parse_entry(row: tuple[Any, ...]) -> Entry | None:
    """Return a row as an entry, or None if it is invalid."""
    if bytes in map(type, row[REMOTE : REMOTE + 1]):
        row = load_paths(row)
    state = STATE_BY_TEXT.get(row[3])
    if state is None or tuple(map(type, row)) not in KINDS:
        logger.warning("The ledger has an invalid row, which is ignored")
        return None
    return Entry(row[0], row[1], row[2], state, *row[4:])


def parse_archive(row: tuple[Any, ...]) -> ArchiveRecord | None:
    """Return a row as an archive, or None if it is invalid."""
    state = STATE_BY_TEXT.get(row[4])
    if state is None or tuple(map(type, row)) not in ARCHIVE_KINDS:
        logger.warning("The ledger has an invalid archive, which is ignored")
        return None
    dataset, path, size, modified_ns, _, *rest = row
    return ArchiveRecord(dataset, path, size, modified_ns, state, *rest)


HOLDS = {hold.value: hold for hold in HoldReason}
CHOICES = {choice.value: choice for choice in ChangeChoice}
CHANGED_KINDS = frozenset(
    (bytes, int, int, int, int, int, int, str, str, str, str, counted_at)
    for counted_at in (int, NoneType)
)


def parse_changed(row: tuple[Any, ...]) -> ChangedFile | None:
    """Return a row as a changed file, or None if it is invalid."""
    hold, choice = HOLDS.get(row[9]), CHOICES.get(row[10])
    if hold is None or choice is None or tuple(map(type, row)) not in CHANGED_KINDS:
        logger.warning("The ledger has an invalid changed file, which is ignored")
        return None
    return ChangedFile._make((*row[:9], hold, choice, row[11]))


def parse_staged(text: str) -> frozenset[tuple[str, str]]:
    """Return path and checksum of files that were sent; none if that is invalid."""
    try:
        return frozenset((str(remote), str(checksum)) for remote, checksum in parse_json(text))
    except (ValueError, TypeError):
        logger.warning("The ledger has an invalid write, which is ignored")
        return frozenset()


def parse_run(row: tuple[object, ...]) -> PastRunRow | None:
    """Return a row as a run, or None if it is invalid."""
    try:
        run, started, finished, summary = (str(value) if value else "" for value in row)
        end = parse_moment(finished) if finished else None
        return PastRunRow(run, parse_moment(started), end, dict(parse_json(summary)))
    except (ValueError, TypeError):
        logger.warning("The ledger has an invalid run, which is ignored")
        return None
