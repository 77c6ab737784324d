"""Totals of the ledger: problems by code, and folders with their files."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mydata_like.core.errors import Problem
from mydata_like.core.problems import INTENDED
from mydata_like.core.queries import FolderGroup, ProblemGroup, RecentDataset
from mydata_like.ledger import ledger_file
from mydata_like.ledger.sql import CODE, HINT, MESSAGE, SHOWN, UNDER_WAY

SLASH: Final = ord("/")
FOLDERS_AT_ONCE = 1000  # listed in a folder; longer lists are of no use

# With `min`, SQLite takes the other columns from the row with the minimum.
_GROUP_PROBLEMS: Final = (
    f"SELECT outcome, {CODE}, count(*), sum(seen_size), max(seen_at), min(key), {MESSAGE}, {HINT}"
    " FROM files WHERE root = ? AND outcome IS NOT NULL GROUP BY outcome, code"
)
# Found files in a dataset folder are its own, unless they are in another dataset folder below it.
# An interrupted run may have counted fewer than there are.
_UNSENT_IN: Final = f"""
    FROM files WHERE files.root = folders.root AND outcome IN ('found', 'waiting')
        AND {CODE} IN ('waiting.unsent', 'waiting.recheck')
        AND key > CAST(folders.path || x'2f' AS BLOB)
        AND key < CAST(folders.path || x'30' AS BLOB)
        AND (NOT instr(substr(key, length(folders.path) + 2), x'2f') OR NOT EXISTS (
            SELECT 1 FROM folders AS inner WHERE inner.root = folders.root
            AND inner.path > CAST(folders.path || x'2f' AS BLOB)
            AND inner.path < CAST(folders.path || x'30' AS BLOB)
        ))
"""
_UNINTENDED: Final = f"code NOT IN ({', '.join(map(repr, sorted(INTENDED)))})"
# The files of a dataset folder that were skipped unintentionally. The plus prevents SQLite from
# using the index of outcomes, which covers all folders.
_LEFT_BEHIND: Final = f"""
    CASE WHEN skipped THEN (
        SELECT count(*) FROM files
        WHERE files.root = folders.root AND +outcome = 'skipped' AND {_UNINTENDED}
            AND key > CAST(folders.path || '/' AS BLOB)
            AND key < CAST(folders.path || '0' AS BLOB)
    ) ELSE 0 END
"""
# Changed files that were found again count as verified in the totals until a run has ended.
_CHANGED: Final = "state IN ('verified', 'changed', 'repaired')"
_COUNTED: Final = f"""
    FROM (
        SELECT owner, grp, title, dataset, path,
            max(found, verified + waiting + skipped + failed + unsent) AS found,
            max(found_bytes, verified_bytes + unsent_bytes) AS found_bytes,
            max(0, min(verified, found - waiting - skipped - failed - changed)) AS verified,
            max(0, min(verified_bytes, found_bytes - changed_bytes)) AS verified_bytes,
            waiting, skipped, failed, left_behind, sent_bytes
        FROM (
            SELECT folders.*, (SELECT count(*) {_UNSENT_IN}) AS unsent,
                (SELECT coalesce(sum(seen_size), 0) {_UNSENT_IN}) AS unsent_bytes,
                (SELECT count(*) {_UNSENT_IN} AND {_CHANGED}) AS changed,
                (SELECT coalesce(sum(seen_size), 0) {_UNSENT_IN} AND {_CHANGED}) AS changed_bytes,
                (SELECT coalesce(sum(seen_size), 0) {_UNSENT_IN} AND {UNDER_WAY}) AS sent_bytes,
                {_LEFT_BEHIND} AS left_behind
            FROM folders WHERE root = ?
        )
    ) WHERE true
"""
_SUMS: Final = (
    "sum(found), sum(found_bytes), sum(verified), sum(verified_bytes), sum(waiting),"
    f" sum(skipped), sum(failed), sum(left_behind), sum(sent_bytes) {_COUNTED}"
)
_OWNERS: Final = " ".join(
    ("SELECT owner, grp, NULL, NULL, NULL, count(*),", _SUMS, "GROUP BY grp, owner")
)
_OF_OWNER: Final = "AND owner = ? AND grp = ? GROUP BY title"
_EXPERIMENTS: Final = " ".join(
    ("SELECT owner, grp, title, NULL, NULL, count(*),", _SUMS, _OF_OWNER)
)
_DATASET: Final = (
    "SELECT owner, grp, title, dataset, path, 1, found, found_bytes, verified, verified_bytes,"
    f" waiting, skipped, failed, left_behind, sent_bytes {_COUNTED}"
)
_DATASETS: Final = f"{_DATASET} AND owner = ? AND grp = ? AND title IS ? ORDER BY dataset, path"
# The first folder within a range of keys with a common beginning: it is found by its first file,
# and the next one after its last, so that not every file is read.
_NEXT_FOLDER: Final = f"""
    SELECT substr(key, 1, :known + instr(substr(key, :known + 1), x'2f') - 1) FROM files
    WHERE root = :root AND key >= :low AND key < :high AND (state IS NOT NULL OR {SHOWN})
        AND instr(substr(key, :known + 1), x'2f') ORDER BY key LIMIT 1
"""
_IS_DATASET: Final = (
    "SELECT EXISTS (SELECT 1 FROM folders WHERE root = :root AND path = :path)"
    " OR EXISTS (SELECT 1 FROM folders WHERE root = :root AND path >= :low AND path < :high)"
)
# Files with an outcome count under it, whatever is known of earlier bytes.
_SUM_BELOW: Final = f"""
    SELECT iif({SHOWN}, outcome, state) AS shown, count(*), sum(iif({SHOWN}, seen_size, size)),
        sum(coalesce(outcome = 'skipped' AND {_UNINTENDED}, 0))
    FROM files WHERE root = :root AND key >= :low AND key < :high
        AND (state IS NOT NULL OR {SHOWN})
    GROUP BY 1
"""
# Reads the index of times backwards, which has all the columns: 0.1 s for a million files.
_NEWEST: Final = (
    "SELECT key, changed_at FROM files WHERE root = ? AND state IS NOT NULL AND changed_at <= ?"
)
_NOT_BELOW: Final = " AND NOT (key >= ? AND key < ?)"
_NEWEST_FIRST: Final = " ORDER BY changed_at DESC LIMIT 1"
NO_LIMIT: Final = 2**62  # seconds since 1970
TRIES: Final = 4  # times the wanted number of datasets is the most folders that are looked at
_FIND_DATASET: Final = (
    "SELECT dataset FROM files WHERE root = ? AND key >= ? AND key < ? AND dataset IS NOT NULL"
    " LIMIT 1"
)


class LedgerSummary:
    """Totals of the ledger of one data directory; each query opens it again.

    Every method raises `RunError` if the ledger cannot be read; results are empty if there is none
    yet.
    """

    def __init__(self, file: Path, data_directory: bytes) -> None:
        self._file = file
        self._directory = data_directory

    def group_problems(self) -> list[ProblemGroup]:
        """Return the outcomes, grouped by kind and code."""
        return [
            ProblemGroup(kind, files, size, at, path, Problem(code, message, hint))
            for kind, code, files, size, at, path, message, hint in self._ask(_GROUP_PROBLEMS)
        ]

    def list_folders(self, *parents: str | None) -> list[FolderGroup]:
        """Return the owners, the experiments of an owner and group, or the datasets of one.

        `parents` are the owner, the group, and the experiment's title, as far as they are given.
        """
        query = {0: _OWNERS, 2: _EXPERIMENTS, 3: _DATASETS}[len(parents)]
        return [FolderGroup(*row) for row in self._ask(query, *parents)]

    def find_dataset_folders(self, files: Iterable[bytes]) -> list[FolderGroup]:
        """Return the dataset folders of these files, each once, ordered by path."""
        found = (self._find_dataset_folder(file) for file in files)
        groups = {group.path: group for group in found if group is not None}
        return [groups[path] for path in sorted(filter(None, groups))]

    def find_recent_datasets(self, files: Iterable[bytes], most: int) -> list[RecentDataset]:
        """Return the dataset folders of these files, then those of the files that changed last.

        There are `most` of them at most. A dataset folder in another one is missing if a file of
        the outer one has changed later.
        """
        found = [RecentDataset(group, None) for group in self.find_dataset_folders(files)]
        known = [group.path for group, _ in found if group.path is not None]
        at = NO_LIMIT
        for _ in range(TRIES * most):
            newest = self._find_newest(at, known) if len(found) < most else None
            if newest is None:
                break
            key, at = newest
            group = self._find_dataset_folder(key)
            if group is not None:
                found.append(RecentDataset(group, at))
            known.append((group and group.path) or key.rpartition(b"/")[0])
        return found[:most]

    def list_inside(self, folder: bytes) -> list[FolderGroup]:
        """Return the folders in a dataset folder, or in a folder in one.

        Folders that are datasets themselves are excluded. If there are very many, the first are
        listed, and one that stands for the rest.
        """
        with ledger_file.opened(self._file) as connection:
            if connection is None:
                return []
            root = ledger_file.find_root(connection, self._directory)
            return list(_Inside(connection, root, folder).list_folders())

    def find_dataset(self, folder: bytes) -> int | None:
        """Return the server's id of the dataset of a folder's files."""
        rows = self._ask(_FIND_DATASET, folder + b"/", folder + b"0")
        return int(rows[0][0]) if rows else None

    def _find_newest(self, until: int, known: Sequence[bytes]) -> tuple[bytes, int] | None:
        """Return the file that changed last until a time and is in no known folder, and when."""
        query = f"{_NEWEST}{_NOT_BELOW * len(known)}{_NEWEST_FIRST}"
        limits = (end for folder in known for end in (folder + b"/", folder + b"0"))
        rows = self._ask(query, until, *limits)
        return rows[0] if rows else None

    def _find_dataset_folder(self, file: bytes) -> FolderGroup | None:
        """Return the innermost dataset folder above a file."""
        above = [file[:at] for at, byte in enumerate(file) if byte == SLASH]
        places = ", ".join("?" * len(above))
        query = f"{_DATASET} AND path IN ({places}) ORDER BY length(path) DESC LIMIT 1"
        rows = self._ask(query, *above) if above else ()
        return FolderGroup(*rows[0]) if rows else None

    def _ask(self, query: str, *values: object) -> Sequence[Any]:
        with ledger_file.opened(self._file) as connection:
            if connection is None:
                return []
            root = ledger_file.find_root(connection, self._directory)
            return connection.execute(query, (root, *values)).fetchall()


class _Inside:
    """The folders of one folder, with the totals of all files below each."""

    def __init__(self, connection: sqlite3.Connection, root: int, folder: bytes) -> None:
        self._connection = connection
        self._chosen = {"root": root, "known": len(folder) + 1}
        self._low, self._high = folder + b"/", folder + b"0"  # "0" is the character after "/"

    def list_folders(self) -> Iterator[FolderGroup]:
        """Yield the first folders and, if there are more, one that stands for the rest."""
        after = self._low
        for _ in range(FOLDERS_AT_ONCE):
            folder = self._find_next(after)
            if folder is None:
                return
            after = folder + b"0"
            yield self._sum(folder, folder + b"/", after)
        if self._find_next(after) is not None:
            yield self._sum(None, after, self._high)

    def _find_next(self, after: bytes) -> bytes | None:
        """Return the first folder after a key that neither is nor contains a dataset."""
        while row := self._ask(_NEXT_FOLDER, after, self._high).fetchone():
            folder: bytes = row[0]
            after = folder + b"0"
            if not self._ask(_IS_DATASET, folder + b"/", after, folder).fetchone()[0]:
                return folder
        return None

    def _sum(self, path: bytes | None, low: bytes, high: bytes) -> FolderGroup:
        """Return the totals of all files in a range."""
        files: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        left_behind = 0
        for shown, count, size, behind in self._ask(_SUM_BELOW, low, high):
            files[shown], sizes[shown] = count, size
            left_behind += behind
        return FolderGroup(
            owner="",
            group="",
            title=None,
            dataset=None,
            path=path,
            folders=1,
            found=files.total(),
            found_bytes=sizes.total(),
            verified=files["verified"],
            verified_bytes=sizes["verified"],
            waiting=files["waiting"],
            skipped=files["skipped"],
            failed=files["failed"],
            left_behind=left_behind,
            sent_bytes=sizes["staged"] + sizes["registered"] + sizes["repaired"],
            rest=path is None,
        )

    def _ask(self, query: str, low: bytes, high: bytes, path: bytes = b"") -> sqlite3.Cursor:
        chosen = self._chosen | {"low": low, "high": high, "path": path}
        return self._connection.execute(query, chosen)


_FILES: Final = (
    "SELECT key, size, modified_ns FROM files WHERE state != 'verified' AND size >= :least"
    " UNION SELECT key, seen_size, seen_modified_ns FROM files"
    " WHERE outcome IN ('found', 'waiting', 'failed') AND seen_size >= :least"
)
_ARCHIVES: Final = (
    "SELECT CAST(path AS BLOB), size, modified_ns FROM archives"
    " WHERE state != 'verified' AND size >= :least"
)
_STAGED: Final = "SELECT CAST(staged AS BLOB) FROM replacements"
_ASIDE: Final = (".corrupt-", ".before-v")  # in the names of damaged and backed-up ledgers


class UnsentRow(NamedTuple):
    """An unsent file, by its name without folders."""

    name: bytes
    size: int
    modified_ns: int


def find_unsent(state: Path, least: int) -> Iterator[UnsentRow]:
    """Yield the unsent files of at least this size in any ledger below a state folder.

    Raises `RunError` if a ledger cannot be read, because the result would be incomplete.
    """
    for query in (_FILES, _ARCHIVES):
        for key, size, modified_ns in _ask_all(state, query, {"least": least}):
            yield UnsentRow(bytes(key).rpartition(b"/")[2], size, modified_ns)


def find_staged(state: Path) -> Iterator[bytes]:
    """Yield the temporary paths of replacements that any ledger below a state folder has noted.

    Raises `RunError` if a ledger cannot be read.
    """
    for (staged,) in _ask_all(state, _STAGED, {}):
        yield bytes(staged)


def _ask_all(state: Path, query: str, values: Mapping[str, int]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query in each ledger below a state folder."""
    for folder in (state, *state.glob("shard-*-of-*")):
        for file in folder.glob("ledger-*.db"):
            if any(word in file.name for word in _ASIDE):
                continue
            with ledger_file.opened(file) as connection:
                yield from connection.execute(query, values) if connection else ()
