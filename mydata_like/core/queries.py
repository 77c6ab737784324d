"""What a person sees of the ledger: which rows, in which order, and the sums of many."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from mydata_like.core.errors import Problem


class Table(StrEnum):
    """What the rows are: local files, what is not well (folders too), or runs."""

    FILES = "files"
    PROBLEMS = "problems"
    RUNS = "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Which rows of a table are wanted, in which order.

    `text` is a part of the path, in any case of its ASCII letters; `folder` a path below the
    data directory; `since` and `until` are seconds since 1970. What is empty does not filter.
    """

    table: Table = Table.FILES
    text: str = ""
    states: frozenset[str] = frozenset()
    code: str = ""
    folder: bytes = b""
    since: int | None = None
    until: int | None = None
    order: str = "at"
    descending: bool = True

    def ordered(self, order: str, *, descending: bool) -> "View":
        """Return the same rows in another order."""
        return replace(self, order=order, descending=descending)

    @property
    def filtered(self) -> bool:
        """Whether there may be rows that it leaves out."""
        return replace(self, order="at", descending=True) != View(table=self.table)


class FileRow(NamedTuple):
    """A local file, or a folder that is not well, as a table shows it.

    `state` is that of the ledger's entry, or the kind of an outcome that is not well; empty for
    what the ledger no longer has. Times are seconds since 1970, None where unknown.
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
    """A run as a table shows it; `finished` is None where it goes on, or was cut off."""

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


class FolderGroup(NamedTuple):
    """An owner, an experiment of one, a dataset folder or one in it, and how its files stand.

    `title` is None for an owner, and where the server names the experiment; `dataset` is None for
    all but dataset folders, `path` for owners and experiments. A folder in one has only its path;
    `left_behind` of the `skipped` files are left out by no setting. `rest` stands for all that is
    not listed by itself beside it.
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
    rest: bool = False

    @property
    def open(self) -> int:
        """How many files have been found, and nothing has come of them yet."""
        return self.found - self.verified - self.waiting - self.skipped - self.failed
