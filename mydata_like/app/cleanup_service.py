"""Freeing space on the instrument's disk: deleting local files that the server has verified."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mydata_like.app.connection import open_connection, require_complete
from mydata_like.app.directory_lock import directory_locked
from mydata_like.app.ledgers import reading
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import (
    find_api_key,
    find_places,
    find_state,
    ledger_file,
    open_secrets,
    prepare_places,
)
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.app.transports.transport_kinds import find_kind
from mydata_like.app.unfinished_deletion import open_grounds, restore_unfinished
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.reverify import Reverification, Reverify
from mydata_like.catalogues.mytardis.server_check import ServerCheck
from mydata_like.core.data_directory import find_key
from mydata_like.core.deletion import CleanupCandidate, DeletedFile, KeptFile
from mydata_like.core.errors import Problem, RunError
from mydata_like.core.extra_sources import lies_in, source_key
from mydata_like.core.ports import Clock
from mydata_like.engine.local_cleanup import LocalCleanup, Proof
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.safe_delete import SafeDirectories
from mydata_like.ledger.rechecks import RecheckFile
from mydata_like.settings.schema import Settings
from mydata_like.settings.values import is_loopback
from mydata_like.state.state_files import (
    DELETIONS,
    DeletionLogFile,
    find_file,
)
from mydata_like.transfer.archive_reader import TarArchives

logger = logging.getLogger(__name__)

OUTSIDE = Problem(
    "free.outside",
    "This is not in the data directory.",
    "Only files that the program has uploaded can be freed.",
)


@dataclass(frozen=True, slots=True)
class CleanupService:
    """Checks local files, and deletes them if wanted."""

    root: Path
    sources: Sequence[bytes]
    grounds: SafeDirectories
    free: LocalCleanup[Any]

    def __call__(self, paths: Iterable[Path]) -> Iterator[DeletedFile | KeptFile]:
        """Yield the result for each of these files and each file in these folders."""
        return self.free(file for path in paths for file in self._find(path))

    def go_through(self, keys: Iterable[bytes]) -> Iterator[DeletedFile | KeptFile]:
        """Yield the result for exactly the files with these keys."""
        return self.free(file for key in keys for file in self.grounds.find(key))

    def _find(self, path: Path) -> Iterator[CleanupCandidate]:
        key = find_key(self.root, path)
        if key is None:
            key = find_source_key(self.sources, path)
        if key is None:
            return iter([CleanupCandidate(os.fsencode(path), 0, OUTSIDE)])
        return self.grounds.find(key)


def find_source_key(sources: Iterable[bytes], path: Path) -> bytes | None:
    """Return the ledger's key of a path in an extra source, None for a path outside."""
    key = source_key(path)
    return key if any(lies_in(key, source) for source in sources) else None


@contextmanager
def open_cleanup(
    settings: Settings, config: Path | None, observer: RunObserver, *, delete: bool
) -> Iterator[CleanupService]:
    """Connect to the destination; yield what checks files, and deletes them if `delete`.

    Raises a `RunError` if nothing can be proven, or, with `delete`, if a run is in progress.
    """
    require_complete(settings, config)
    address = urlsplit(settings.server.url)
    plain = settings.destination.takes_tree
    if not plain and address.scheme == "http" and not is_loopback(address.hostname or ""):
        raise RunError(
            "The connection to the server is not encrypted, so an attacker on the network could "
            "report files as safe.",
            hint="Nothing is deleted over http://. Use the server's https:// address.",
            code="free.unproven-server",
        )
    places, clock = find_places(config), SystemClock()
    prepare_places(settings, places)
    root = settings.data.directory or Path()
    with ExitStack() as stack:
        state = find_state(settings, places)
        if delete:
            stop = observer.cancel.set
            stack.enter_context(directory_locked(state, os.fsencode(root), clock, stop))
        ledger = stack.enter_context(reading(settings, config))
        if ledger is None:
            raise RunError(
                "This computer has no record of any upload from this data directory.",
                hint="Start a run. Files that the server has verified can then be freed.",
                code="free.nothing-sent",
            )
        if ledger.outdated:
            raise RunError(
                "The ledger was written by an older version of this program.",
                hint="The next run brings it up to date.",
                code="ledger.outdated",
            )
        sources = [source.path for source in ledger.find_sources()]
        proof: Proof[Any]
        if plain:
            # Imported late, as by runs: they import this module.
            from mydata_like.app.settings_destination import open_check

            tops = [source_key(root), *(path.rpartition(b"/")[0] for path in sources)]
            proof = open_check(settings, config, ledger, tops, stack, delete=delete)
        else:
            proof = _prove_on_server(settings, config, observer, clock, stack, delete=delete)
        file = find_file(state, DELETIONS)
        deeds = stack.enter_context(DeletionLogFile(file, clock)) if delete else None
        if delete:
            restore_unfinished(file, os.fsencode(root), sources, clock)
        grounds = open_grounds(os.fsencode(root), sources, stack)
        notes = RecheckFile(ledger_file(settings, places, os.fsencode(root)), clock)
        free = LocalCleanup[Any](proof, ledger, grounds, deeds, notes.add, observer.cancel)
        yield CleanupService(root, sources, grounds, free)


def _prove_on_server(
    settings: Settings,
    config: Path | None,
    observer: RunObserver,
    clock: Clock,
    stack: ExitStack,
    *,
    delete: bool,
) -> ServerCheck:
    """Return the proof of a MyTardis server, after connecting to it."""
    key, _ = find_api_key(settings, open_secrets(config))
    observer.hide(key.reveal())
    # As in a dry run: nothing is created on the server.
    connection = open_connection(
        ApiClient(settings.server, key.reveal(), clock, observer.cancel),
        settings.instrument,
        dry_run=True,
    )
    stack.callback(connection.close)
    request = RunRequest(settings=settings, config=config, dry_run=True)
    box = find_kind(settings).find_box(TransportAccess(request, RunObserver(), connection))
    how = Reverification(
        box,
        settings.advanced.verify_patience,
        settings.advanced.verify_interval,
        settings.server.requests,
    )
    server, cancel = connection.server, observer.cancel
    return ServerCheck(
        server,
        TarArchives(),
        clock,
        cancel,
        settings.filters.settle_seconds,
        box=box,
        reverify=Reverify(server, clock, cancel, how) if delete else None,
    )
