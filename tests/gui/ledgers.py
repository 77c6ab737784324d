"""Ledgers for tests of the window, without a run."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Self

from mydata_like.app.settings_service import find_places, ledger_file
from mydata_like.core.errors import Problem
from mydata_like.core.local_files import signed
from mydata_like.core.model import (
    ChangedFile,
    DatasetId,
    Entry,
    EntryState,
    HoldReason,
    Outcome,
    VerifiedCopy,
)
from mydata_like.core.queries import View
from mydata_like.engine.changed_files import describe_hold
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Settings
from tests.builders import a_file
from tests.fakes.clock import MONDAY, FakeClock

ROOT = b"/data"
LONG_AGO = 1_600_000_000


def an_entry(
    key: bytes, size: int = 1, state: EntryState = EntryState.VERIFIED, dataset: int = 7
) -> Entry:
    return Entry(key, size, 0, state, DatasetId(dataset), "0" * 32, "d/x")


def an_outcome(path: bytes, kind: str = "failed", code: str = "file.changed") -> Outcome:
    return Outcome(path, 5, 0, kind, Problem(code, "It changed.", "Send it again."))


class WrittenLedger:
    """A ledger that a test writes, and opens for a table as the window does."""

    def __init__(self, file: Path, root: bytes = ROOT, start: datetime = MONDAY) -> None:
        self.file = file
        self.root = root
        self.clock = FakeClock(start)
        self.ledger = SqliteLedger.open(self.file, root, self.clock)
        self.opened = 0

    @classmethod
    def of(cls, settings: Settings, config: Path, start: datetime = MONDAY) -> Self:
        """Create the ledger that the window reads with these settings."""
        root = os.fsencode(str(settings.data.directory))
        return cls(ledger_file(settings, find_places(config), root), root, start)

    def fill(self, count: int, name: Callable[[int], bytes] = b"d/file %06d.tif".__mod__) -> None:
        """Record `count` verified files of increasing size."""
        self.ledger.record([an_entry(name(number), size=number) for number in range(count)])

    def hold(self, name: str, size: int = 0, at: int = LONG_AGO) -> None:
        """Record a file of `alice/Scan` that became smaller at this time, and is held."""
        path = a_file(Path(os.fsdecode(self.root)) / "alice/Scan" / name, size, at)
        status, key = path.stat(), f"alice/Scan/{name}".encode()
        row = ChangedFile(
            key,
            size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            signed(status.st_ino),
            DatasetId(7),
            10_000_000,
            "c" * 32,
            "2020-11-03T10:00:00",
            HoldReason.SHRUNK,
        )
        self.ledger.record_changed(row)
        copy = VerifiedCopy(row.copy_size, row.copy_checksum, row.copy_verified_at)
        problem = describe_hold(row, copy, row.hold)
        self.ledger.record_outcomes([Outcome(key, size, row.modified_ns, "waiting", problem)])

    def open(self, view: View) -> RowQuery | None:
        self.opened += 1
        return RowQuery.open(self.file, self.root, view)

    def close(self) -> None:
        self.ledger.close()
