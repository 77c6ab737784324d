"""Queries of one ledger for single files and folders, while another process may write to it."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from mydata_like.core.errors import Problem
from mydata_like.core.file_status import (
    Amount,
    FileEvidence,
    KnownOutcome,
    StepTimes,
    Suggestion,
)
from mydata_like.core.model import KeptCopy, Replacement
from mydata_like.ledger import ledger_file
from mydata_like.ledger.sql import (
    CODE,
    ENTRY,
    FIND_KEPT,
    FIND_REPLACEMENT,
    HINT,
    MESSAGE,
    SHOWN,
    parse_entry,
)

_OUTCOME: Final = f"outcome, {CODE}, {MESSAGE}, {HINT}, seen_at, key, seen_size, seen_modified_ns"
# Outcomes of folders apply to everything in them; the others are those of files.
_OF_FILE: Final = "outcome IN ('found', 'waiting', 'skipped', 'failed')"
_IS_FILE: Final = f"(state IS NOT NULL OR {_OF_FILE})"
_FILES: Final = f"""
    SELECT {ENTRY}, staged_at, registered_at, verified_at,
        (SELECT at FROM restored WHERE restored.root = files.root
            AND restored.key = files.key AND restored.checksum = files.checksum),
        coalesce(changed_at, 0),
        (SELECT listed_at FROM datasets WHERE datasets.root = files.root
            AND datasets.dataset = files.dataset),
        {_OF_FILE}, {_OUTCOME}
    FROM files WHERE root = :root AND {_IS_FILE} AND {{0}} ORDER BY key
"""
_ENTRY_COLUMNS: Final = 12
_OUTCOME_AT: Final = (
    f"SELECT {_OUTCOME} FROM files WHERE root = :root AND key = :key AND outcome IS NOT NULL"
)
# "At and below" a key are the key itself, and keys between it followed by "/" and by "0", the next
# character. In the data directory, these are all keys that do not begin like absolute paths.
_BELOW: Final = "key >= :key AND key < :high AND (key = :key OR key > :low)"
_INSIDE: Final = "substr(key, 1, 1) != x'2f' AND (:posix OR substr(key, 2, 1) != x'3a')"  # `C:`
# Files with an outcome count under it, even if an earlier version of them is verified.
_SUM: Final = f"""
    SELECT iif({SHOWN}, outcome, state), count(*), sum(iif({SHOWN}, seen_size, size))
    FROM files WHERE root = :root AND {_IS_FILE} AND {{0}} GROUP BY 1
"""
# Each file once, in the order in which `FileEvidence` ranks ledgers: the newest, then the verified
# one. An outcome that only skips a file does not contradict its verification.
_STATES: Final = f"""
    SELECT key, max(coalesce(changed_at, 0), coalesce(iif(kind != 'skipped', seen_at, 0), 0)),
        coalesce(state = 'verified' AND coalesce(kind = 'skipped', 1), 0), coalesce(kind, state),
        iif(kind IS NULL, size, seen_size)
    FROM (SELECT *, iif({_OF_FILE}, outcome, NULL) AS kind FROM files)
    WHERE root = :root AND {_IS_FILE} AND {{0}} ORDER BY key
"""
_DATASET: Final = "SELECT min(dataset), max(dataset) FROM files WHERE root = :root AND {0}"
_FOLDERS: Final = (
    "SELECT path, found_bytes FROM folders WHERE root = :root"
    " AND CAST(path AS TEXT) LIKE :like ESCAPE '\\' ORDER BY path LIMIT :most"
)
_KEYS: Final = (
    f"SELECT key FROM files WHERE root = :root AND {_IS_FILE}"
    " AND CAST(key AS TEXT) LIKE :like ESCAPE '\\' ORDER BY key LIMIT :most"
)
# By the name of the file, or of the archive that contains it; this scans all rows.
_NAMED: Final = (
    "(key = :name OR archive = :text OR substr(key, -length(:ending)) = :ending"
    " OR substr(archive, -length(:text) - 1) = '/' || :text)"
)
# Files in a folder of this name, at whatever depth.
_IN_NAMED: Final = "(substr(key, 1, length(:begin)) = :begin OR instr(key, :middle))"


class FileQueries:
    """Queries of the ledger of one data directory; every method raises `RunError` if it fails."""

    def __init__(self, connection: sqlite3.Connection, data_directory: bytes) -> None:
        self._connection = connection
        self._root = ledger_file.find_root(connection, data_directory)
        self._posix = data_directory.startswith(b"/")
        self._kept: defaultdict[bytes, list[KeptCopy]] | None = None

    @classmethod
    @contextmanager
    def opened(cls, file: Path, data_directory: bytes) -> Iterator[Self | None]:
        """Open the ledger for reading; returns None if there is none yet."""
        with ledger_file.opened(file) as connection:
            yield cls(connection, data_directory) if connection else None

    def find(self, key: bytes) -> FileEvidence | None:
        """Return the ledger's knowledge of a file; None if it has none."""
        return next((evidence for _, evidence in self._iter_files("key = :key", key=key)), None)

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
        return self._iter_files(_BELOW if key else _INSIDE, **self._range(key))

    def iter_named(self, name: bytes) -> Iterator[tuple[bytes, FileEvidence]]:
        """Yield the knowledge of files with this name, or in an archive with this name."""
        text = name.decode("utf-8", "replace")
        values = {"name": name, "ending": b"/" + name, "text": text}
        return self._iter_files(_NAMED, **values)

    def iter_in_named(self, name: bytes) -> Iterator[tuple[bytes, FileEvidence]]:
        """Yield the knowledge of all files in folders with this name, ordered by key."""
        values = {"begin": name + b"/", "middle": b"/" + name + b"/"}
        return self._iter_files(_IN_NAMED, **values)

    def find_outcome_above(self, key: bytes) -> KnownOutcome | None:
        """Return the outcome of a folder, or of the nearest folder above that has one."""
        while key:
            for row in self._ask(_OUTCOME_AT, key=key):
                return _parse_outcome(row)
            key = key.rpartition(b"/")[0]
        return None

    def sum_folder(self, key: bytes) -> dict[str, Amount]:
        """Return the number of files per state at and below a path; an empty key stands for all."""
        return {state: Amount(files, size) for state, files, size in self._sum(_SUM, key)}

    def iter_states(self, key: bytes) -> Iterator[tuple[bytes, int, int, str, int]]:
        """Yield key, time, whether verified, state and size of all files at and below a path."""
        query = _STATES.format(_BELOW if key else _INSIDE)
        return self._iterate(query, self._range(key))

    def find_datasets(self, key: bytes) -> tuple[int, ...]:
        """Return the lowest and the highest dataset of the files of a folder, if any."""
        ((least, most),) = self._sum(_DATASET, key)
        return () if least is None else (least, most)

    def find_folders(self, text: str, most: int) -> list[Suggestion]:
        """Return the dataset folders whose path contains a text."""
        rows = self._ask(_FOLDERS, like=_pattern(text), most=most)
        return [Suggestion(path, size, "", folder=True) for path, size in rows]

    def find_keys(self, text: str, most: int) -> list[bytes]:
        """Return the first keys of files that contain a text, in order."""
        values = {"like": _pattern(text), "most": most}
        return [key for (key,) in self._ask(_KEYS, **values)]

    def _iter_files(self, which: str, **values: object) -> Iterator[tuple[bytes, FileEvidence]]:
        """Yield the knowledge of some files, ordered by key."""
        for row in self._iterate(_FILES.format(which), values):
            entry = None if row[3] is None else parse_entry(row[:_ENTRY_COLUMNS])
            *times, changed_at, listed_at, has_outcome = row[_ENTRY_COLUMNS : _ENTRY_COLUMNS + 7]
            outcome = _parse_outcome(row[_ENTRY_COLUMNS + 7 :]) if has_outcome else None
            if entry is None:
                evidence = FileEvidence(outcome=outcome)
            else:
                evidence = FileEvidence(entry, StepTimes(*times), changed_at, outcome, listed_at)
            if entry or outcome:
                yield row[0], evidence

    def _sum(self, query: str, key: bytes) -> Sequence[Any]:
        return self._ask(query.format(_BELOW if key else _INSIDE), **self._range(key))

    def _range(self, key: bytes) -> dict[str, object]:
        return {"key": key, "low": key + b"/", "high": key + b"0", "posix": self._posix}

    def _ask(self, query: str, **values: object) -> Sequence[Any]:
        return list(self._iterate(query, values))

    def _iterate(self, query: str, values: dict[str, object]) -> Iterator[Any]:
        yield from self._connection.execute(query, {"root": self._root, **values})


def _parse_outcome(row: Sequence[Any]) -> KnownOutcome:
    kind, code, message, hint, at, path, size, modified_ns = row
    return KnownOutcome(kind, Problem(code, message, hint), at, path, size, modified_ns)


def _pattern(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"
