"""What the ledger says to SQLite."""

from mydata_like.core.model import ON_PURPOSE

FIND = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive, ctime_ns, inode FROM entries WHERE root = ? AND key IN (%s)"
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
    " archive, ctime_ns, inode FROM entries WHERE root = :root AND (key = :name OR archive = :text"
    " OR substr(key, -length(:ending)) = :ending"
    " OR substr(archive, -length(:text) - 1) = '/' || :text) ORDER BY key"
)
LIST = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem,"
    " archive, ctime_ns, inode FROM entries WHERE root = ? AND key > ? AND key < ?"
    " ORDER BY key LIMIT ?"
)
# Each part is answered by an index alone: all rows, but for those in archives, which count once.
# A record of an earlier state of a file is verified like any other.
COUNT = """
    SELECT sum(known), sum(verified) FROM (
        SELECT count(*) AS known, count(*) FILTER (WHERE state IN (:verified, :changed)) AS verified
        FROM entries WHERE root = :root AND dataset = :dataset
        UNION ALL SELECT -count(*), -count(*) FILTER (WHERE state IN (:verified, :changed))
        FROM entries WHERE root = :root AND dataset = :dataset AND archive != ''
        UNION ALL SELECT count(*), count(*) FILTER (WHERE state IN (:verified, :changed))
        FROM archives WHERE root = :root AND dataset = :dataset AND state != 'staged'
    )
"""
# The times of the steps before are kept as long as the bytes are the same. What is staged anew
# goes the whole way anew. Many rows go in one statement: while it runs, other threads do too,
# and between statements each waits for the others.
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
ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
RECORD_OUTCOME = (
    "INSERT OR REPLACE INTO outcomes (root, path, size, modified_ns, outcome, code, message, hint,"
    " at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ON_PURPOSE = ", ".join(map(repr, sorted(ON_PURPOSE)))
RISK = f"""
    SELECT count(*), sum(size), min(nullif(modified_ns, 0)) FROM outcomes WHERE root = ? AND (
        outcome IN ('waiting', 'failed') OR (outcome = 'skipped' AND code NOT IN ({_ON_PURPOSE}))
    )
"""  # noqa: S608 - all of it is ours
FORGET_OUTCOMES = "DELETE FROM outcomes WHERE root = ? AND path IN (%s)"
RECORD_FOLDER = (
    "INSERT OR REPLACE INTO folders (root, path, dataset, title, owner, grp, found, found_bytes,"
    " verified, verified_bytes, waiting, skipped, failed, at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
RECORD_REPLACEMENT = (
    "INSERT OR REPLACE INTO replacements (root, key, dataset, datafile, remote, staged, size,"
    " checksum, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FIND_REPLACEMENTS = (
    "SELECT key, dataset, datafile, remote, staged, size, checksum, at FROM replacements"
    " WHERE root = ? ORDER BY key"
)
FORGET_REPLACEMENT = "DELETE FROM replacements WHERE root = ? AND key = ? AND checksum = ?"
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
RECORD_RUN = (
    "INSERT OR REPLACE INTO runs (id, root, started, finished, summary) VALUES (?, ?, ?, ?, ?)"
)
FIND_RUNS = (
    "SELECT id, started, finished, summary FROM runs WHERE root = ?"
    " ORDER BY started DESC, id LIMIT ?"
)
