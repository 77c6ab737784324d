"""Ledgers for tests of the window, without a run."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from mydata_like.app.settings_service import find_places, ledger_file
from mydata_like.core.errors import Problem
from mydata_like.core.model import DatasetId, Entry, EntryState, Outcome
from mydata_like.core.queries import View
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Settings
from tests.fakes.clock import FakeClock

ROOT = b"/data"


def an_entry(
    key: bytes, size: int = 1, state: EntryState = EntryState.VERIFIED, dataset: int = 7
) -> Entry:
    return Entry(key, size, 0, state, DatasetId(dataset), "0" * 32, "d/x")


def an_outcome(path: bytes, kind: str = "failed", code: str = "file.changed") -> Outcome:
    return Outcome(path, 5, 0, kind, Problem(code, "It changed.", "Send it again."))


class WrittenLedger:
    """A ledger that a test writes, and opens for a table as the window does."""

    def __init__(self, file: Path, root: bytes = ROOT) -> None:
        self.file = file
        self.root = root
        self.clock = FakeClock()
        self.ledger = SqliteLedger.open(self.file, root, self.clock)
        self.opened = 0

    @classmethod
    def of(cls, settings: Settings, config: Path) -> Self:
        """Create the ledger that the window reads with these settings."""
        root = os.fsencode(str(settings.data.directory))
        return cls(ledger_file(settings, find_places(config), root), root)

    def fill(self, count: int, name: Callable[[int], bytes] = b"d/file %06d.tif".__mod__) -> None:
        """Record `count` verified files of increasing size."""
        self.ledger.record([an_entry(name(number), size=number) for number in range(count)])

    def open(self, view: View) -> RowQuery | None:
        self.opened += 1
        return RowQuery.open(self.file, self.root, view)

    def close(self) -> None:
        self.ledger.close()
