"""The ledgers of a data directory: one for all of it, and one for each shard that ever ran."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mydata_like.app.settings_service import find_places, find_state, ledger_file
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import find_shards
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Settings


def list_ledgers(settings: Settings, config: Path | None) -> Iterator[tuple[Shard, Path]]:
    """Yield each shard with the file of its ledger, which may not exist yet; the whole first."""
    places, root = find_places(config), os.fsencode(settings.data.directory or "")
    for shard in (WHOLE, *find_shards(find_state(settings, places))):
        yield shard, ledger_file(settings, places, root, shard)


@contextmanager
def reading(
    settings: Settings, config: Path | None, shard: Shard = WHOLE
) -> Iterator[SqliteLedger | None]:
    """Open a ledger to read it; None if there is none yet, or if no data directory is set."""
    ledger = None
    if settings.data.directory is not None:
        root = os.fsencode(settings.data.directory)
        file = ledger_file(settings, find_places(config), root, shard)
        ledger = SqliteLedger.open_to_read(file, root, SystemClock())
    if ledger is None:
        yield None
        return
    with ledger:
        yield ledger
