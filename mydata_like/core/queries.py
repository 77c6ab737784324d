"""Queries of the ledger for display: which rows, in which order, and totals."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from mydata_like.core.errors import Problem
from mydata_like.core.frozen import frozen


class Table(StrEnum):
    """The tables: local files, unhealthy files and folders, or runs."""

    FILES = "files"
    PROBLEMS = "problems"
    RUNS = "runs"


@frozen(kw_only=True)
class View:
    """The filter and order of a table's rows.

    `text` is a part of the path, case-insensitive for ASCII letters; `folder` is a path below the
    data directory; `since` and `until` are seconds since 1970. An empty value does not filter.
    With `run_began`, it has no files that the run that began then sends later: those found and not
    sent yet, and those that failed before.
    """

    table: Table = Table.FILES
    text: str = ""
    states: frozenset[str] = frozenset()
    code: str = ""
    folder: bytes = b""
    since: int | None = None
    until: int | None = None
    run_began: int | None = None
    order: str = "at"
    descending: bool = True

    def ordered(self, order: str, *, descending: bool) -> "View":
        """Return the same rows in another order."""
        return replace(self, order=order, descending=descending)

    @property
    def filtered(self) -> bool:
        """Whether it may exclude rows."""
        return replace(self, order="at", descending=True) != View(table=self.table)


class FileRow(NamedTuple):
    """A local file, or an unhealthy folder, as shown in a table.

    `state` is that of the ledger's entry, or the kind of an outcome; empty if the ledger no longer
    has the file. Times are seconds since 1970, None if unknown.
    """

    key: bytes
    size: int | None
    state: str
    at: int | None
    code: str = ""
    message: str = ""
    hint: str = ""
    dataset: int | None = None
    verified_at: int | None = None
    archive: str = ""


class RunRow(NamedTuple):
    """A run as shown in a table; `finished` is None if it is in progress or was interrupted."""

    key: str
    started: datetime | None
    finished: datetime | None
    summary: Mapping[str, Any]


Row = FileRow | RunRow


class ProblemGroup(NamedTuple):
    """All outcomes of one kind and code; path and problem are those of the first."""

    kind: str
    files: int
    size: int
    at: int
    path: bytes
    problem: Problem


MAX_UNFINISHED = 0.97  # the largest share that does not look like the whole in a bar


class FolderGroup(NamedTuple):
    """An owner, an experiment, a dataset folder or a folder in one, with its totals.

    `title` is None for an owner, and if the server names the experiment. `dataset` is None for all
    but dataset folders, `path` for owners and experiments. A folder in a dataset folder has only
    its path. `left_behind` of the `skipped` files are skipped by no setting. `sent_bytes` are those
    of files that were sent and are not verified yet. `rest` stands for everything that is not
    listed separately.
    """

    owner: str
    group: str
    title: str | None
    dataset: str | None
    path: bytes | None
    folders: int
    found: int
    found_bytes: int
    verified: int
    verified_bytes: int
    waiting: int
    skipped: int
    failed: int
    left_behind: int = 0
    sent_bytes: int = 0
    rest: bool = False

    @property
    def open(self) -> int:
        """The number of files that were found and have no outcome yet."""
        return self.found - self.verified - self.waiting - self.skipped - self.failed

    @property
    def wanted(self) -> int:
        """The number of files that were found and not skipped."""
        return self.found - self.skipped

    @property
    def verified_share(self) -> float:
        """The share of the bytes that is verified; 1 only if every wanted file is.

        The sizes of skipped files are not known separately, so the share is too low with them.
        """
        if self.verified >= self.wanted:
            return 1.0
        return min(self.verified_bytes / max(1, self.found_bytes), MAX_UNFINISHED)


class RecentDataset(NamedTuple):
    """A dataset folder, and when the state of a file in it changed last.

    `at` is in seconds since 1970; None for a dataset that was asked for by its files.
    """

    group: FolderGroup
    at: int | None
