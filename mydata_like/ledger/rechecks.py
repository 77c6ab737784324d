"""Notes of processes that only read a ledger: which of its rows an answer contradicts.

A note is honoured by every connection that reads the ledger, from the moment it is written; the
next run takes it into the ledger itself.
"""

import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from mydata_like.core.errors import RunError
from mydata_like.core.model import RECHECK, DatasetId, Recheck
from mydata_like.core.parsing import parse_json
from mydata_like.core.ports import Clock
from mydata_like.settings.atomic_write import (
    PRIVATE_FILE,
    load_limited,
    make_private_file,
    write_private,
)

logger = logging.getLogger(__name__)

MOST: Final = 1000  # notes; beyond that, those of a dataset become one about all of it
PATIENCE: Final = 10.0  # seconds to wait for another process that writes notes
ALL: Final = Recheck(DatasetId(-1))  # everything in the ledger
Noted = Mapping[Recheck, float]


class RecheckFile:
    """The file with the notes about one ledger; safe to use from any process."""

    def __init__(self, ledger: Path, clock: Clock) -> None:
        self.path = find_file(ledger)
        self._clock = clock

    def load(self) -> Noted:
        """Return the notes, each with the time at which it was last written."""
        return load(self.path)

    def add(self, found: Iterable[Recheck]) -> None:
        """Write notes durably. Raises `RunError`."""
        with self._locked():
            now = self._clock.now().timestamp()
            self._write(_bound({**load(self.path), **dict.fromkeys(found, now)}))

    def remove(self, taken: Noted) -> None:
        """Remove notes, except for those that were written again since they were loaded."""
        if not taken:
            return
        with self._locked():
            left = {it: at for it, at in load(self.path).items() if taken.get(it) != at}
            if left:
                self._write(left)
            else:
                self.path.unlink(missing_ok=True)

    def _write(self, notes: Noted) -> None:
        rows = [[it.dataset, it.key.hex(), it.archive, at] for it, at in notes.items()]
        write_private(self.path, json.dumps(rows).encode())

    def _locked(self) -> "_Lock":
        lock = self.path.with_suffix(".lock")
        make_private_file(lock)
        return _Lock(str(lock), PATIENCE, mode=PRIVATE_FILE)


class _Lock(FileLock):
    def __enter__(self) -> Any:
        try:
            return super().__enter__()
        except Timeout as error:
            raise RunError(
                f"Another process keeps the file {self.lock_file} locked.",
                hint="Stop that process; then try again.",
                code="ledger.failed",
            ) from error


def find_file(ledger: Path) -> Path:
    """Return the path of the notes about a ledger."""
    return ledger.with_name(f"{ledger.stem}.recheck.json")


def load(file: Path) -> Noted:
    """Return the notes in a file; a file that cannot be read stands for everything."""
    try:
        rows = parse_json(load_limited(file))
        return {
            Recheck(DatasetId(int(dataset)), bytes.fromhex(key), str(archive)): float(at)
            for dataset, key, archive, at in rows
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return {ALL: 0.0}


def _bound(notes: Noted) -> Noted:
    """Return at most so many notes as are allowed, by joining those of the largest datasets."""
    while len(notes) > MOST:
        sizes = Counter(it.dataset for it in notes)
        dataset, size = sizes.most_common(1)[0]
        last = max(notes.values())
        if size == 1:
            return {ALL: last}
        others = {it: at for it, at in notes.items() if it.dataset != dataset}
        notes = {**others, Recheck(dataset): last}
    return notes


# The rows that notes are about, each found by an index.
_FIND: Final = """
    CREATE TEMP TABLE doubted (root INTEGER, key BLOB, PRIMARY KEY (root, key)) WITHOUT ROWID;
    INSERT OR IGNORE INTO doubted
    SELECT it.root, it.key FROM rechecks CROSS JOIN main.roots CROSS JOIN main.files AS it
        ON it.root = roots.id AND it.key = rechecks.key AND it.dataset = rechecks.dataset
        WHERE rechecks.key != x'' AND state = 'verified'
    UNION ALL
    SELECT it.root, it.key FROM rechecks CROSS JOIN main.roots CROSS JOIN main.files AS it
        ON it.root = roots.id AND it.dataset = rechecks.dataset AND it.archive = rechecks.archive
        AND it.archive != '' AND state = 'verified'
        WHERE rechecks.key = x'' AND rechecks.archive != ''
    UNION ALL
    SELECT it.root, it.key FROM rechecks CROSS JOIN main.roots CROSS JOIN main.files AS it
        ON it.root = roots.id AND it.dataset = rechecks.dataset AND state = 'verified'
        WHERE rechecks.key = x'' AND rechecks.archive = ''
    UNION ALL
    SELECT root, key FROM main.files
        WHERE state = 'verified' AND EXISTS (SELECT 1 FROM rechecks WHERE rechecks.dataset = -1);
"""
_DROP: Final = """
    DROP VIEW IF EXISTS temp.runs; DROP VIEW IF EXISTS temp.files;
    DROP TABLE IF EXISTS temp.doubted; DROP TABLE IF EXISTS temp.rechecks;
"""
# Readers see these views instead of the tables of the same names. In the totals of the newest run,
# the files wait.
_CODE, _MESSAGE, _HINT = (text.replace("'", "''") for text in RECHECK)
_OVERLAY: Final = f"""
    CREATE TEMP VIEW files AS
    SELECT root, key, iif(doubted, 'repaired', state) AS state,
        iif(waits, 'waiting', outcome) AS outcome, size, modified_ns, ctime_ns, inode, dataset,
        checksum, remote, datafile, archive, problem, staged_at, registered_at,
        iif(doubted, NULL, verified_at) AS verified_at, changed_at,
        iif(waits, size, seen_size) AS seen_size,
        iif(waits, modified_ns, seen_modified_ns) AS seen_modified_ns,
        iif(waits, '{_CODE}', code) AS code, iif(waits, '{_MESSAGE}', message) AS message,
        iif(waits, '{_HINT}', hint) AS hint,
        iif(waits, coalesce(changed_at, 0), seen_at) AS seen_at
    FROM (SELECT *, doubted AND outcome IS NULL AS waits FROM (
        SELECT *, state = 'verified' AND (root, key) IN temp.doubted AS doubted FROM main.files
    ));
    CREATE TEMP VIEW runs AS
    SELECT id, root, started, finished, iif(
        json_valid(summary) AND finished IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM main.runs AS later WHERE later.root = it.root
            AND later.finished IS NOT NULL AND later.started > it.started
        ),
        (SELECT json_set(summary, '$.verified', verified - doubted, '$.waiting', waiting + doubted)
            FROM (SELECT verified, waiting, min(verified, files) AS doubted FROM (
                SELECT coalesce(json_extract(summary, '$.verified'), 0) AS verified,
                    coalesce(json_extract(summary, '$.waiting'), 0) AS waiting,
                    (SELECT count(*) FROM temp.files AS doubt WHERE doubt.root = it.root
                        AND doubt.outcome IS NOT NULL AND doubt.code = '{_CODE}') AS files
            ))),
        summary
    ) AS summary
    FROM main.runs AS it;
"""
# A file that its archive does not contain is to be sent on its own or in another one.
_TAKE: Final = """
    UPDATE files SET outcome = 'waiting', seen_size = size, seen_modified_ns = modified_ns,
        code = :code, message = :message, hint = :hint, seen_at = :now
    WHERE (root, key) IN doubted;
    UPDATE archives SET state = 'repaired' WHERE state = 'verified' AND (root, dataset, path) IN (
        SELECT it.root, it.dataset, it.archive
        FROM doubted CROSS JOIN files AS it USING (root, key)
        WHERE (it.dataset, it.key, '') NOT IN rechecks
    );
    UPDATE files SET state = 'failed', problem = 'server.lost', archive = '', datafile = NULL,
        verified_at = NULL, changed_at = :now
    WHERE archive != '' AND (root, key) IN doubted AND (dataset, key, '') IN rechecks;
    UPDATE files SET state = 'repaired', verified_at = NULL, changed_at = :now
    WHERE state = 'verified' AND (root, key) IN doubted;
    INSERT OR IGNORE INTO datasets (root, dataset, total, newest, listed_at)
    SELECT DISTINCT roots.id, rechecks.dataset, 0, 0, 0 FROM rechecks CROSS JOIN roots
    WHERE rechecks.dataset >= 0 AND EXISTS (
        SELECT 1 FROM files WHERE files.root = roots.id AND files.dataset = rechecks.dataset
    )
    UNION SELECT root, dataset, 0, 0, 0 FROM doubted CROSS JOIN files USING (root, key);
    UPDATE datasets SET listed_at = 0 WHERE dataset IN (SELECT dataset FROM rechecks)
        OR EXISTS (SELECT 1 FROM rechecks WHERE rechecks.dataset = -1);
"""


def overlay(connection: sqlite3.Connection, ledger: Path) -> None:
    """Let a connection see the rows of a ledger as the present notes about it demand."""
    notes = load(find_file(ledger))
    (known,) = connection.execute(
        "SELECT count(*) FROM sqlite_temp_master WHERE name = 'doubted'"
    ).fetchone()
    if known:
        connection.executescript(_DROP)
    if notes:
        _find(connection, notes)
        connection.executescript(_OVERLAY)


def take(cursor: sqlite3.Cursor, notes: Iterable[Recheck], now: int) -> int:
    """Change the rows of a ledger as notes demand, in the transaction; return their number."""
    _find(cursor, notes)
    (files,) = cursor.execute("SELECT count(*) FROM doubted").fetchone()
    values = {**RECHECK._asdict(), "now": now}
    for statement in filter(str.strip, _TAKE.split(";")):
        cursor.execute(statement, values)
    for statement in filter(str.strip, _DROP.split(";")):
        cursor.execute(statement)
    return int(files)


def _find(connection: sqlite3.Connection | sqlite3.Cursor, notes: Iterable[Recheck]) -> None:
    """Find the verified rows that the notes are about."""
    connection.execute(
        "CREATE TEMP TABLE rechecks (dataset INTEGER, key BLOB, archive TEXT,"
        " PRIMARY KEY (dataset, key, archive)) WITHOUT ROWID"
    )
    connection.executemany("INSERT OR IGNORE INTO temp.rechecks VALUES (?, ?, ?)", list(notes))
    for statement in filter(str.strip, _FIND.split(";")):
        connection.execute(statement)
