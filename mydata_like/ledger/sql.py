"""The SQL statements of the ledger, and the parsers of its rows."""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, NamedTuple

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.deletion import PARTIAL_REASONS
from mydata_like.core.model import ChangeChoice, ChangedFile, Entry, EntryState, HoldReason
from mydata_like.core.parsing import moment_of, parse_json, parse_moment
from mydata_like.core.problems import INTENDED

FIND = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive, ctime_ns, inode FROM entries WHERE root = ? AND key IN (%s)"
)
# One query for many files: a row for each that has changed, and one for each dataset of the others.
# A row of an older version is not trusted until its ctime and inode are known.
FIND_OPEN = (
    "WITH seen (key, size, modified_ns, ctime_ns, inode) AS (VALUES %s)"
    " SELECT dataset, CASE WHEN entries.key IS NULL THEN seen.key END FROM seen LEFT JOIN entries"
    " ON root = ? AND entries.key = seen.key AND state = 'verified' AND datafile IS NOT NULL"
    " AND entries.size = seen.size AND entries.modified_ns = seen.modified_ns"
    " AND entries.ctime_ns = seen.ctime_ns AND entries.inode = seen.inode GROUP BY 1, 2"
)
KNOWS_ANY = "SELECT 1 FROM entries WHERE root = ? AND key BETWEEN ? AND ? LIMIT 1"
LIST = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive, ctime_ns, inode FROM entries WHERE root = ? AND key > ? AND key < ?"
    " ORDER BY key LIMIT ?"
)
# Verified rows of a dataset with their own record, a part at a time, in the order of the index.
LIST_VERIFIED = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive, ctime_ns, inode FROM entries WHERE root = :root AND dataset = :dataset"
    " AND state = :state AND archive = '' AND (datafile, key) > (:datafile, :key)"
    " ORDER BY datafile, key LIMIT :most"
)
# The same for rows without the id of their record.
LIST_UNNUMBERED = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive, ctime_ns, inode FROM entries WHERE root = :root AND dataset = :dataset"
    " AND state = :state AND archive = '' AND datafile IS NULL AND key > :key"
    " ORDER BY key LIMIT :most"
)
# Uses indexes only; the files of an archive have its record. All states are named, so that SQLite
# searches each one by the range of ids, which is short after a listing.
_STATES = ", ".join(f"'{state.value}'" for state in EntryState)
COUNT = f"""
    SELECT count(DISTINCT datafile), coalesce(max(datafile), 0) FROM (
        SELECT datafile FROM entries WHERE root = :root AND dataset = :dataset
        AND state IN ({_STATES}) AND datafile > :after AND datafile <= :until
        UNION ALL SELECT datafile FROM archives WHERE root = :root AND dataset = :dataset
        AND datafile > :after AND datafile <= :until
    )
"""  # noqa: S608 - all of it is ours
# Those of them that are verified, as the server counts them if each has one replica.
COUNT_VERIFIED = """
    SELECT count(DISTINCT datafile) FROM (
        SELECT datafile FROM entries WHERE root = :root AND dataset = :dataset
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
    SELECT :root, :dataset, :total, :id, coalesce(min(verified_at), :now), :verified FROM entries
    WHERE root = :root AND dataset = :dataset AND state = 'verified'
    ON CONFLICT DO UPDATE SET total = excluded.total, newest = excluded.newest,
        verified = excluded.verified
"""
# The times of earlier steps are kept while the bytes are the same; bytes staged again repeat all
# steps. One statement writes many rows: other threads run during a statement, but wait between
# statements.
RECORD = """
    WITH
        new (
            key, size, modified_ns, state, dataset, checksum, remote, datafile, problem, archive,
            ctime_ns, inode
        ) AS (VALUES %s),
        one (root, now) AS (VALUES (?, ?))
    INSERT INTO entries (
        root, key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,
        archive, ctime_ns, inode, staged_at, registered_at, verified_at, changed_at
    ) SELECT
        root, new.*,
        CASE WHEN state = 'staged' THEN now END,
        CASE WHEN state IN ('registered', 'repaired') THEN now END,
        CASE WHEN state = 'verified' THEN now END,
        now
    FROM new, one WHERE true ON CONFLICT (root, key) DO UPDATE SET
        size = excluded.size, modified_ns = excluded.modified_ns, state = excluded.state,
        dataset = excluded.dataset, checksum = excluded.checksum, remote = excluded.remote,
        datafile = excluded.datafile, problem = excluded.problem, archive = excluded.archive,
        ctime_ns = excluded.ctime_ns, inode = excluded.inode, changed_at = excluded.changed_at,
        staged_at = CASE WHEN excluded.state = 'staged' THEN excluded.staged_at
            WHEN (size, modified_ns, checksum)
                = (excluded.size, excluded.modified_ns, excluded.checksum)
            THEN staged_at END,
        registered_at = CASE WHEN excluded.state IN ('registered', 'repaired')
            THEN excluded.registered_at
            WHEN excluded.state != 'staged' AND (size, modified_ns, checksum)
                = (excluded.size, excluded.modified_ns, excluded.checksum)
            THEN registered_at END,
        verified_at = excluded.verified_at
"""
SEEN = "(?, ?, ?, ?, ?)"
ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
RECORD_OUTCOME = (
    "INSERT OR REPLACE INTO outcomes (root, path, size, modified_ns, outcome, code, message, hint,"
    " at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INTENDED = ", ".join(map(repr, sorted(INTENDED)))
# Files known to exist only here: found, waiting, failed, or skipped unintentionally.
AT_RISK = (
    "(outcome IN ('found', 'waiting', 'failed')"
    f" OR (outcome = 'skipped' AND code NOT IN ({_INTENDED})))"
)
_OF_ITS_ENTRY = "entries.root = outcomes.root AND entries.key = outcomes.path"
# The found file was sent and is not verified yet.
UNDER_WAY = (
    f"EXISTS (SELECT 1 FROM entries WHERE {_OF_ITS_ENTRY}"  # noqa: S608 - all of it is ours
    " AND state IN ('staged', 'registered', 'repaired')"
    " AND (entries.size, entries.modified_ns) = (outcomes.size, outcomes.modified_ns))"
)
# Outcomes of files that are shown under them; found files in transfer are shown by their entry.
SHOWN = f"(outcome IN ('waiting', 'skipped', 'failed') OR (outcome = 'found' AND NOT {UNDER_WAY}))"
# The outcome's row describes bytes that are verified now.
_SAFE = (
    "outcome IN ('found', 'waiting', 'failed') AND EXISTS"  # noqa: S608 - all of it is ours
    f" (SELECT 1 FROM entries WHERE {_OF_ITS_ENTRY} AND state = 'verified'"
    " AND entries.size = outcomes.size AND outcomes.modified_ns IN (entries.modified_ns, 0))"
)
# An entry for the same file as scanned; older versions stored neither its ctime nor its inode.
_AS_SEEN = """state = 'verified' AND entries.size = seen.size
        AND entries.modified_ns = seen.modified_ns
        AND coalesce(entries.ctime_ns, seen.ctime_ns) = seen.ctime_ns
        AND coalesce(entries.inode, seen.inode) = seen.inode"""
# Files that the ledger does not have as verified and unchanged. A file's failure is kept while the
# file is the same, and so is what this run has already recorded.
_RECORD_FOUND = f"""
    WITH
        seen (key, size, modified_ns, ctime_ns, inode) AS (VALUES %s),
        one (root, since, now, code, message, hint) AS (VALUES (?, ?, ?, ?, ?, ?))
    INSERT INTO outcomes (root, path, size, modified_ns, outcome, code, message, hint, at)
    SELECT root, key, size, modified_ns, 'found', code, message, hint, now FROM seen, one
    WHERE {{}} ON CONFLICT (root, path) DO UPDATE SET
        size = excluded.size, modified_ns = excluded.modified_ns, outcome = excluded.outcome,
        code = excluded.code, message = excluded.message, hint = excluded.hint, at = excluded.at
    WHERE (outcomes.at < ? OR outcomes.code IN ({_INTENDED}) OR (outcome = 'found'
        AND (size, modified_ns) != (excluded.size, excluded.modified_ns))
    ) AND NOT (outcome = 'failed'
        AND (size, modified_ns) = (excluded.size, excluded.modified_ns))
"""  # noqa: S608 - all of it is ours
RECORD_UNSENT = _RECORD_FOUND.format("true")
RECORD_FOUND = _RECORD_FOUND.format(f"""NOT EXISTS (
        SELECT 1 FROM entries WHERE entries.root = one.root AND entries.key = seen.key
        AND {_AS_SEEN}
    )""")  # noqa: S608 - all of it is ours
FORGET_SAFE = f"DELETE FROM outcomes WHERE root = ? AND path IN (%s) AND {_SAFE}"  # noqa: S608
FORGET_SAFE_MEMBERS = (
    "DELETE FROM outcomes WHERE root = ?1 AND path IN (SELECT key FROM entries"  # noqa: S608
    " WHERE root = ?1 AND dataset = ?2 AND archive = ?3 AND archive != '' AND state = 'verified')"
    f" AND {_SAFE}"
)
RISK = (
    "SELECT count(*), sum(size), min(nullif(modified_ns, 0)) FROM outcomes"  # noqa: S608
    f" WHERE root = :root AND {AT_RISK}"
)
COUNT_RECHECKS = (
    "SELECT count(*) FROM outcomes WHERE root = ? AND outcome = 'waiting'"
    " AND code = 'waiting.recheck'"
)
FIND_DOUBTED = (
    "SELECT 1 FROM outcomes WHERE root = ? AND path = ? AND code = 'waiting.recheck' LIMIT 1"
)
COUNT_KEPT = "SELECT count(*) FROM outcomes WHERE root = ? AND code = 'skipped.changed'"
# What must be checked again may have been reported as verified before that was known.
FORGET_OUTCOMES = (
    "DELETE FROM outcomes WHERE root = ? AND path IN (%s)"  # noqa: S608 - all of it is ours
    f" AND (code != 'waiting.recheck' OR {_SAFE})"
)
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
FIND_CHANGED = f"SELECT {_CHANGED} FROM changed_files WHERE root = ? AND key = ?"  # noqa: S608
# Files that are verified by now, as after they were restored, are held no longer, and neither are
# those that a run did not find any more, unless their copies are to be kept.
_PAST = (
    "(EXISTS (SELECT 1 FROM entries WHERE entries.root = changed_files.root"
    " AND entries.key = changed_files.key AND state = 'verified'"
    " AND entries.dataset = changed_files.dataset) OR choice != 'keep' AND NOT EXISTS"
    " (SELECT 1 FROM outcomes WHERE outcomes.root = changed_files.root"
    " AND path = changed_files.key))"
)
_HELD = f"FROM changed_files WHERE root = ? AND hold != '' AND NOT {_PAST}"
LIST_HELD = f"SELECT {_CHANGED} {_HELD} ORDER BY key"
COUNT_HELD = f"SELECT count(*) {_HELD} AND choice = ''"
RECORD_CHANGED = (
    f"INSERT OR REPLACE INTO changed_files (root, {_CHANGED})"  # noqa: S608
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
COUNT_CHANGED = (
    "SELECT dataset, count(*) FROM changed_files WHERE root = ? AND counted_at > ? GROUP BY dataset"
)
FORGET_CHANGED = (
    "DELETE FROM changed_files WHERE root = :root AND (counted_at IS NULL"  # noqa: S608
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
COUNT_FILES = "SELECT count(*) FROM entries WHERE root = ? AND dataset = ?"
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
# Files that were not compared with their archive keep their state.
FOLLOW = (
    "UPDATE entries SET state = ?1, datafile = ?2, changed_at = ?3,"
    " registered_at = CASE WHEN ?1 IN ('registered', 'repaired') THEN ?3 ELSE registered_at END,"
    " verified_at = CASE WHEN ?1 = 'verified' THEN ?3 END"
    " WHERE root = ?4 AND dataset = ?5 AND archive = ?6 AND archive != ''"
    " AND ctime_ns IS NOT 0"
)
NOTE_WRITE = "INSERT OR REPLACE INTO writes (root, dataset, until) VALUES (?, ?, ?)"
FORGET_WRITE = "DELETE FROM writes WHERE root = ? AND dataset = ?"
FIND_WRITES = "SELECT dataset, until FROM writes WHERE root = ?"
FIND_STAGED = (
    "SELECT remote, checksum FROM entries"
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
BELOW = "root = :root AND (path = :path OR (path > :low AND path < :high))"
RISK_BELOW = f"{RISK} AND (path = :path OR (path > :low AND path < :high))"
# Folders skipped unintentionally may contain files that no run has found.
FINISH_SOURCE = f"""
    UPDATE sources SET finished_at = :now WHERE root = :root AND path = :path AND NOT EXISTS (
        SELECT 1 FROM outcomes WHERE {BELOW}
        AND ({AT_RISK} OR outcome = 'folder-failed' OR code = 'skipped.owner')
    )
"""  # noqa: S608 - all of it is ours
FORGET_SOURCE = "DELETE FROM sources WHERE root = :root AND path = :path"
# Files skipped by no setting count as open, even if an earlier version of them is verified.
MEASURE_SOURCE = f"""
    SELECT count(*), count(*) FILTER (WHERE open), sum(size) FILTER (WHERE open) FROM (
        SELECT size, {AT_RISK} AS open FROM outcomes WHERE {BELOW}
        UNION ALL SELECT size, state != 'verified' FROM entries
        WHERE root = :root AND (key = :path OR (key > :low AND key < :high)) AND NOT EXISTS (
            SELECT 1 FROM outcomes WHERE outcomes.root = entries.root AND path = key
        )
    )
"""  # noqa: S608 - all of it is ours
# Files of the data directory that any run has found, ordered by key.
KNOWN = """
    SELECT {key}, {checksum} FROM {table} WHERE root = :root AND {key} > :after
    AND (:low = x'' OR ({key} > :low AND {key} < :high))
    AND substr({key}, 1, 1) != x'2f' AND (:posix OR substr({key}, 2, 1) != x'3a') {more}
    ORDER BY {key} LIMIT :most
"""
KNOWN_ENTRIES = KNOWN.format(key="key", checksum="checksum", table="entries", more="")
KNOWN_OUTCOMES = KNOWN.format(
    key="path",
    checksum="''",
    table="outcomes",
    more="AND outcome IN ('found', 'waiting', 'failed')",
)
# Keys of the data directory are relative: those of sources begin with "/" or a drive letter.
INSIDE = "root = :root AND substr(path, 1, 1) != x'2f' AND (:posix OR substr(path, 2, 1) != x'3a')"
FORGET_BELOW, FORGET_INSIDE = (
    [
        f"DELETE FROM {table} WHERE at < :before AND {which}"  # noqa: S608 - all of it is ours
        for table in ("outcomes", "folders")
    ]
    for which in (BELOW, INSIDE)
)
FORGET_ALL_BELOW = [
    f"DELETE FROM {table} WHERE {BELOW}"  # noqa: S608 - all of it is ours
    for table in ("outcomes", "folders")
]
FORGET_FOUND = f"DELETE FROM outcomes WHERE root = :root AND outcome = 'found' AND {_SAFE}"  # noqa: S608
FIND_FAILED_FOLDERS = (
    "SELECT path FROM outcomes WHERE root = :root AND outcome = 'folder-failed' AND at >= :before"
)
KEEP_BELOW = [
    f"UPDATE {table} SET at = :before WHERE at < :before AND {BELOW}"  # noqa: S608
    for table in ("outcomes", "folders")
]
ADD_ROOT = "INSERT OR IGNORE INTO roots (directory) VALUES (?)"
LIST_FOLDERS = "SELECT path FROM folders WHERE root = ? ORDER BY path"
FIND_ROOT = "SELECT id FROM roots WHERE directory = ?"
RECORD_RUN = (
    "INSERT OR REPLACE INTO runs (id, root, started, finished, summary) VALUES (?, ?, ?, ?, ?)"
)
FIND_RUNS = (
    "SELECT id, started, finished, summary FROM runs WHERE root = ?"
    " ORDER BY started DESC, id LIMIT ?"
)


logger = logging.getLogger(__name__)

STATE_BY_TEXT = {state.value: state for state in EntryState}
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


def parse_entry(row: tuple[Any, ...]) -> Entry | None:
    """Return a row as an entry, or None if it is invalid."""
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


def parse_run(row: tuple[object, ...]) -> PastRunRow | None:
    """Return a row as a run, or None if it is invalid."""
    try:
        run, started, finished, summary = (str(value) if value else "" for value in row)
        end = parse_moment(finished) if finished else None
        return PastRunRow(run, parse_moment(started), end, dict(parse_json(summary)))
    except (ValueError, TypeError):
        logger.warning("The ledger has an invalid run, which is ignored")
        return None
