"""Queries of one ledger for single files and folders, while another process may write to it."""

import heapq
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Self

from mydata_like.core.errors import Problem
from mydata_like.core.file_status import (
    NONE,
    Amount,
    FileEvidence,
    KnownOutcome,
    StepTimes,
    Suggestion,
)
from mydata_like.core.model import KeptCopy, Replacement
from mydata_like.ledger import ledger_file
from mydata_like.ledger.row_query import connect_to_current
from mydata_like.ledger.sql import FIND_KEPT, FIND_REPLACEMENT, FIND_ROOT, SHOWN, parse_entry
from mydata_like.ledger.sqlite_ledger import NO_ROOT

_ENTRY: Final = (
    "SELECT key, size, modified_ns, state, dataset, checksum, remote, datafile, problem, archive,"
    " ctime_ns, inode, staged_at, registered_at, verified_at, coalesce(changed_at, 0),"
    " (SELECT listed_at FROM datasets WHERE datasets.root = entries.root"
    " AND datasets.dataset = entries.dataset)"
    " FROM entries WHERE root = :root AND "
)
_ENTRY_COLUMNS: Final = 12
_OUTCOME: Final = (
    "SELECT path, outcome, code, message, hint, at, size, modified_ns"
    " FROM outcomes WHERE root = :root AND "
)
# Only files: outcomes of folders apply to everything in them.
_FILE: Final = " AND outcome IN ('found', 'waiting', 'skipped', 'failed')"
# "At and below" a key are the key itself, and keys between it followed by "/" and by "0", the next
# character. In the data directory, these are all keys that do not begin like absolute paths.
_BELOW: Final = "{0} >= :key AND {0} < :high AND ({0} = :key OR {0} > :low)"
_INSIDE: Final = (
    "substr({0}, 1, 1) != x'2f' AND (:posix OR substr({0}, 2, 1) != x'3a')"  # such as `C:`
)
_SUM: Final = "SELECT state, count(*), sum(size) FROM entries WHERE root = :root AND {0} GROUP BY 1"
_SUM_OUTCOMES: Final = (
    "SELECT outcome, count(*), sum(size) FROM outcomes WHERE root = :root AND {0}"  # noqa: S608
    f" AND {SHOWN} GROUP BY 1"
)
# Files with an outcome count under it, even if an earlier version of them is verified.
_SUM_BOTH: Final = (
    "SELECT entries.state, -count(*), -sum(entries.size) FROM outcomes JOIN entries"  # noqa: S608
    " ON entries.root = outcomes.root AND key = path WHERE outcomes.root = :root AND {0}"
    f" AND {SHOWN} GROUP BY 1"
)
# Each file once, in the order in which `FileEvidence` ranks ledgers: the newest, then the verified
# one. An outcome that only skips a file does not contradict its verification.
_STATES: Final = """
    SELECT key, max(coalesce(changed_at, 0), coalesce(iif(outcome != 'skipped', at, 0), 0)),
        state = 'verified' AND coalesce(outcome = 'skipped', 1), coalesce(outcome, state),
        coalesce(outcomes.size, entries.size)
    FROM entries LEFT JOIN outcomes ON outcomes.root = entries.root AND path = key
        AND outcome IN ('found', 'waiting', 'skipped', 'failed')
    WHERE entries.root = :root AND {0}
    UNION ALL
    SELECT path, iif(outcome != 'skipped', at, 0), 0, outcome, size
    FROM outcomes WHERE root = :root AND {1}
        AND outcome IN ('found', 'waiting', 'skipped', 'failed') AND NOT EXISTS (
            SELECT 1 FROM entries WHERE entries.root = outcomes.root AND key = path
        )
    ORDER BY 1
"""
_DATASET: Final = "SELECT min(dataset), max(dataset) FROM entries WHERE root = :root AND {0}"
_FOLDERS: Final = (
    "SELECT path, found_bytes FROM folders WHERE root = :root"
    " AND CAST(path AS TEXT) LIKE :like ESCAPE '\\' ORDER BY path LIMIT :most"
)
_KEYS: Final = (
    "SELECT key FROM entries WHERE root = :root AND CAST(key AS TEXT) LIKE :like ESCAPE '\\'"
    " ORDER BY key LIMIT :most"
)
_OUTCOME_KEYS: Final = (
    "SELECT path FROM outcomes WHERE root = :root AND CAST(path AS TEXT) LIKE :like ESCAPE '\\'"
    " AND outcome IN ('found', 'waiting', 'skipped', 'failed') ORDER BY path LIMIT :most"
)
# By the name of the file, or of the archive that contains it; this scans all rows.
_NAMED: Final = (
    "(key = :name OR archive = :text OR substr(key, -length(:ending)) = :ending"
    " OR substr(archive, -length(:text) - 1) = '/' || :text) ORDER BY key"
)
_NAMED_OUTCOMES: Final = (
    f"(path = :name OR substr(path, -length(:ending)) = :ending){_FILE} ORDER BY path"
)
# Files in a folder of this name, at whatever depth.
_IN_NAMED: Final = "(substr({0}, 1, length(:begin)) = :begin OR instr({0}, :middle))"


class FileQueries:
    """Queries of the ledger of one data directory; every method raises `RunError` if it fails."""

    def __init__(self, connection: sqlite3.Connection, file: Path, data_directory: bytes) -> None:
        self._connection = connection
        self._file = file
        row = connection.execute(FIND_ROOT, (data_directory,)).fetchone()
        self._root = row[0] if row else NO_ROOT
        self._posix = data_directory.startswith(b"/")
        self._kept: defaultdict[bytes, list[KeptCopy]] | None = None

    @classmethod
    @contextmanager
    def opened(cls, file: Path, data_directory: bytes) -> Iterator[Self | None]:
        """Open the ledger for reading; returns None if there is none yet."""
        connection = connect_to_current(file)
        if connection is None:
            yield None
            return
        with closing(connection):
            try:
                yield cls(connection, file, data_directory)
            except ledger_file.FAILURES as error:
                raise ledger_file.failure(file, error) from error

    def find(self, key: bytes) -> FileEvidence | None:
        """Return the ledger's knowledge of a file; None if it has none."""
        found = _merge(
            self._entries("key = :key", key=key), self._outcomes(f"path = :key{_FILE}", key=key)
        )
        return next((evidence for _, evidence in found), None)

    def find_kept(self, key: bytes) -> list[KeptCopy]:
        """Return the earlier bytes of a file that are kept on the server; the newest first."""
        if self._kept is None:  # there are few, and they are needed for each of many files
            self._kept = defaultdict(list)
            for row in self._connection.execute(FIND_KEPT, (self._root, None)):
                copy = KeptCopy._make(row)
                self._kept[copy.key] += [copy] if copy.until else []
        return self._kept.get(key, [])

    def find_replacement(self, key: bytes) -> Replacement | None:
        """Return the replacement of a file that is not known to be complete."""
        rows = self._ask(FIND_REPLACEMENT, root=self._root, key=key)
        return Replacement._make(rows[0]) if rows else None

    def iter_below(self, key: bytes) -> Iterator[tuple[bytes, FileEvidence]]:
        """Yield the knowledge of all files at and below a path, ordered by key."""
        values = self._range(key)
        which = _BELOW if key else _INSIDE
        return _merge(
            self._entries(which.format("key") + " ORDER BY key", **values),
            self._outcomes(which.format("path") + f"{_FILE} ORDER BY path", **values),
        )

    def iter_named(self, name: bytes) -> Iterator[tuple[bytes, FileEvidence]]:
        """Yield the knowledge of files with this name, or in an archive with this name."""
        text = name.decode("utf-8", "replace")
        values = {"name": name, "ending": b"/" + name, "text": text}
        return _merge(
            self._entries(_NAMED, **values),
            self._outcomes(_NAMED_OUTCOMES, **values),
        )

    def iter_in_named(self, name: bytes) -> Iterator[tuple[bytes, FileEvidence]]:
        """Yield the knowledge of all files in folders with this name, ordered by key."""
        values = {"begin": name + b"/", "middle": b"/" + name + b"/"}
        return _merge(
            self._entries(_IN_NAMED.format("key") + " ORDER BY key", **values),
            self._outcomes(_IN_NAMED.format("path") + f"{_FILE} ORDER BY path", **values),
        )

    def find_outcome_above(self, key: bytes) -> KnownOutcome | None:
        """Return the outcome of a folder, or of the nearest folder above that has one."""
        while key:
            for _, outcome in self._outcomes("path = :key", key=key):
                return outcome
            key = key.rpartition(b"/")[0]
        return None

    def sum_folder(self, key: bytes) -> dict[str, Amount]:
        """Return the number of files per state at and below a path; an empty key stands for all."""
        rows = [*self._sum(_SUM, "key", key), *self._sum(_SUM_BOTH, "path", key)]
        rows += self._sum(_SUM_OUTCOMES, "path", key)
        sums: dict[str, Amount] = {}
        for state, files, size in rows:
            known = sums.get(state, NONE)
            sums[state] = Amount(known.files + files, known.bytes + size)
        return {state: amount for state, amount in sums.items() if amount.files}

    def iter_states(self, key: bytes) -> Iterator[tuple[bytes, int, int, str, int]]:
        """Yield key, time, whether verified, state and size of all files at and below a path."""
        which = _BELOW if key else _INSIDE
        query = _STATES.format(which.format("key"), which.format("path"))
        return self._iterate(query, self._range(key))

    def find_datasets(self, key: bytes) -> tuple[int, ...]:
        """Return the lowest and the highest dataset of the files of a folder, if any."""
        ((least, most),) = self._sum(_DATASET, "key", key)
        return () if least is None else (least, most)

    def find_folders(self, text: str, most: int) -> list[Suggestion]:
        """Return the dataset folders whose path contains a text."""
        rows = self._ask(_FOLDERS, like=_pattern(text), most=most)
        return [Suggestion(path, size, "", folder=True) for path, size in rows]

    def find_keys(self, text: str, most: int) -> list[bytes]:
        """Return the first keys of files that contain a text, in order."""
        values = {"like": _pattern(text), "most": most}
        rows = [*self._ask(_KEYS, **values), *self._ask(_OUTCOME_KEYS, **values)]
        return sorted({key for (key,) in rows})[:most]

    def _entries(self, which: str, **values: object) -> Iterator[tuple[bytes, FileEvidence]]:
        for row in self._iterate(_ENTRY + which, values):
            entry = parse_entry(row[:_ENTRY_COLUMNS])
            if entry is not None:
                *times, changed_at, listed_at = row[_ENTRY_COLUMNS:]
                steps = StepTimes(*times)
                yield entry.key, FileEvidence(entry, steps, changed_at, listed_at=listed_at)

    def _outcomes(self, which: str, **values: object) -> Iterator[tuple[bytes, KnownOutcome]]:
        for path, kind, code, message, hint, at, size, modified_ns in self._iterate(
            _OUTCOME + which, values
        ):
            problem = Problem(code, message, hint)
            yield path, KnownOutcome(kind, problem, at, path, size, modified_ns)

    def _sum(self, query: str, column: str, key: bytes) -> Sequence[Any]:
        which = (_BELOW if key else _INSIDE).format(column)
        return self._ask(query.format(which), **self._range(key))

    def _range(self, key: bytes) -> dict[str, object]:
        return {"key": key, "low": key + b"/", "high": key + b"0", "posix": self._posix}

    def _ask(self, query: str, **values: object) -> Sequence[Any]:
        return list(self._iterate(query, values))

    def _iterate(self, query: str, values: dict[str, object]) -> Iterator[Any]:
        yield from self._connection.execute(query, {"root": self._root, **values})


def _merge(
    *parts: Iterator[tuple[bytes, FileEvidence | KnownOutcome]],
) -> Iterator[tuple[bytes, FileEvidence]]:
    """Join entries and outcomes by file; both are ordered by key."""
    for key, known in groupby(heapq.merge(*parts, key=itemgetter(0)), key=itemgetter(0)):
        evidence = FileEvidence()
        for _, part in known:
            evidence = part if isinstance(part, FileEvidence) else evidence._replace(outcome=part)
        yield key, evidence


def _pattern(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"
