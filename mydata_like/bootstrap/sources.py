"""Folders from outside of the data directory: what they would become, and what is left of them."""

import os
from pathlib import Path

from mydata_like.bootstrap.job import ledger_file
from mydata_like.bootstrap.settings import find_places
from mydata_like.core.sources import KnownSource
from mydata_like.settings.schema import Settings
from mydata_like.store.ledger import SqliteLedger
from mydata_like.system.clock import SystemClock


def open_known(settings: Settings, config: Path | None) -> SqliteLedger | None:
    """Return the ledger, to be read only; None where there is none that knows of sources yet."""
    root = os.fsencode(settings.data.directory or "")
    file = ledger_file(settings, find_places(config), root)
    ledger = SqliteLedger.open_to_read(file, root, SystemClock())
    if ledger is not None and ledger.outdated:
        ledger.close()
        return None
    return ledger


def find_unfinished_sources(settings: Settings, config: Path | None) -> list[KnownSource]:
    """Return the sources of which something is not safe yet, as far as is known."""
    ledger = open_known(settings, config)
    if ledger is None:
        return []
    with ledger:
        return [source for source in ledger.find_sources() if source.finished is None]
