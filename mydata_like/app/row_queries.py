"""Read-only access to the ledger for front ends, also while a run writes to it."""

import os
from pathlib import Path

from mydata_like.app.settings_service import find_places, ledger_file
from mydata_like.core.queries import View
from mydata_like.ledger.row_query import RowQuery
from mydata_like.ledger.summaries import LedgerSummary
from mydata_like.settings.schema import Settings

__all__ = ["LedgerSummary", "RowQuery", "open_listing", "open_survey"]


def open_listing(settings: Settings, config: Path | None, view: View) -> RowQuery | None:
    """Return the rows of the ledger that a view shows; None if there is no ledger yet.

    Raises `UploaderError` if it has another version, or cannot be read.
    """
    if settings.data.directory is None:
        return None
    root = os.fsencode(settings.data.directory)
    return RowQuery.open(ledger_file(settings, find_places(config), root), root, view)


def open_survey(settings: Settings, config: Path | None) -> LedgerSummary | None:
    """Return the queries for totals; None if no data directory is set."""
    if settings.data.directory is None:
        return None
    root = os.fsencode(settings.data.directory)
    return LedgerSummary(ledger_file(settings, find_places(config), root), root)
