"""The ledger as a front end reads it, while a run may be writing it: nothing is changed."""

import os
from pathlib import Path

from mydata_like.app.settings_service import find_places, ledger_file
from mydata_like.core.queries import View
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.summaries import LedgerSummary
from mydata_like.settings.schema import Settings

__all__ = ["LedgerSummary", "RowQuery", "open_listing", "open_survey"]


def open_listing(settings: Settings, config: Path | None, view: View) -> RowQuery | None:
    """Return the rows that a view shows of the ledger; None where there is no ledger yet.

    Raises `UploaderError` where it is of another version, or cannot be read.
    """
    if settings.data.directory is None:
        return None
    root = os.fsencode(settings.data.directory)
    return RowQuery.open(ledger_file(settings, find_places(config), root), root, view)


def open_survey(settings: Settings, config: Path | None) -> LedgerSummary | None:
    """Return what answers questions about sums; None where no data directory is set."""
    if settings.data.directory is None:
        return None
    root = os.fsencode(settings.data.directory)
    return LedgerSummary(ledger_file(settings, find_places(config), root), root)
