"""The recovery of replacements that earlier runs left unfinished."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from mydata_like.core.errors import ItemError, Problem, TransientError
from mydata_like.core.events import (
    Event,
    FileFailed,
    FileSkipped,
    FilesSeen,
    FileVerified,
    FileWaiting,
)
from mydata_like.core.model import Datafile, DatafileId, EntryState, Replacement
from mydata_like.core.ports import Channel
from mydata_like.engine.replace import NOT_LOOKED, describes, is_verified
from mydata_like.engine.reverify import ask_all
from mydata_like.engine.run_context import RunContext
from mydata_like.settings.schema import Advanced

logger = logging.getLogger(__name__)

OUTCOMES = (FileVerified, FileWaiting, FileSkipped, FileFailed)
WRITING = 900  # seconds for which the request of a killed run may still change a record
SHORTEST = 0.1  # seconds between two checks, at least

REPLACING = Problem(
    "server.replacing",
    "The server's record describes a newer version of this file that never arrived, and the "
    "local file was missing when it should have been sent again.",
    "Restore the file and run again, or ask the server's administrator to delete the record.",
)


class UnreportedFiles:
    """The files of unfinished replacements that have no outcome in this run yet."""

    def __init__(self, left: Iterable[Replacement]) -> None:
        self.keys = {it.key for it in left}

    def add(self, event: Event) -> None:
        """Process an event."""
        if isinstance(event, OUTCOMES):
            self.keys.discard(event.path)


class Recovery:
    """The unfinished replacements of earlier runs: `begin` runs first in a run, `end` last.

    Those not known to be complete at the end are reported, so that they do not count as safe.
    """

    def __init__(
        self, context: RunContext, settings: Advanced, unreported: UnreportedFiles
    ) -> None:
        self._context = context
        self._ledger = context.ledger
        self._gate = context.gate
        self._settings = settings
        self._unreported = unreported
        self._looks_before: dict[DatafileId, tuple[str, ...]] = {}  # before our request
        self._asked_again: set[DatafileId] = set()

    def begin(self) -> None:
        """Move staged bytes into place, and request verification of the rest."""
        left = self._drop_complete(self._ledger.find_replacements())
        records = self._fetch(left) if left else None
        if records is None:
            return
        left = [it for it in left if not _is_invalid(it, records)]
        logger.info("%d datafiles were being replaced when a run ended", len(left))
        self._drop_unchanged([it for it in left if not _is_changed(it, records)], records)
        changed = [it for it in left if _is_changed(it, records)]
        if changed:
            self._revoke_verified(changed)
            self._place(changed)
        self._ask([(it, records[it.datafile]) for it in changed])

    def end(self) -> None:
        """Report replacements that are incomplete and have no outcome in this run."""
        left = self._drop_complete(self._ledger.find_replacements())
        unreported = [it for it in left if it.key in self._unreported.keys]
        if unreported:
            self._wait_for_results(unreported)

    def _drop_complete(self, left: Sequence[Replacement]) -> list[Replacement]:
        """Remove replacements that are verified according to the ledger; return the rest."""
        entries = self._ledger.find_entries([it.key for it in left])
        complete = [
            it
            for it in left
            if (entry := entries.get(it.key))
            and (entry.state, entry.checksum) == (EntryState.VERIFIED, it.checksum)
        ]
        if complete:
            self._ledger.forget_replacements(complete)
        return [it for it in left if it not in complete]

    def _drop_unchanged(
        self, unchanged: Sequence[Replacement], records: Mapping[DatafileId, Datafile]
    ) -> None:
        """Remove replacements that never started, once no old request can start them any more."""
        now = self._gate.clock.now().timestamp()
        over = [it for it in unchanged if it.datafile not in records or now - it.at > WRITING]
        if over:
            self._discard(over)
            self._ledger.forget_replacements(over)

    def _fetch(self, left: Iterable[Replacement]) -> Mapping[DatafileId, Datafile] | None:
        """Return the records, None if they cannot be fetched.

        The account is checked first: an unknown account gets an empty answer, not an error.
        """
        numbers = [it.datafile for it in left]
        server = self._context.server
        try:
            self._gate.call(server.fetch_account)
            return {it.id: it for it in self._gate.call(lambda: server.fetch_datafiles(numbers))}
        except ItemError as error:
            logger.warning("Cannot fetch the datafiles that were being replaced: %s", error)
            return None

    def _ask(self, doubtful: Sequence[tuple[Replacement, Datafile]]) -> None:
        """Request verification; only a later one than those the server has made counts."""
        self._looks_before.update((it.datafile, record.looks) for it, record in doubtful)
        numbers = [it.datafile for it, _ in doubtful]
        ask_all(self._context.server, self._gate, numbers)

    def _revoke_verified(self, changed: Sequence[Replacement]) -> None:
        """Revoke the verified state of earlier bytes: the record describes the new ones now."""
        entries = self._ledger.find_entries([it.key for it in changed]).values()
        doubtful = [it for it in entries if it.state is EntryState.VERIFIED]
        if doubtful:
            self._ledger.record([it._replace(state=EntryState.CHANGED) for it in doubtful])

    def _place(self, changed: Sequence[Replacement]) -> None:
        self._run_on_channel(lambda channel: channel.replace(changed, {}))

    def _discard(self, over: Sequence[Replacement]) -> None:
        self._run_on_channel(lambda channel: channel.discard(over))

    def _run_on_channel(self, action: Callable[[Channel], object]) -> None:
        """Run an action on a channel; if the connection breaks, the next run retries it."""
        channels = self._context.limits.channels
        try:
            with channels.borrowed() as channel:
                channel = channels.ensure_open(channel)
                self._gate.call(lambda: action(channel), staging=True)
        except TransientError as error:
            logger.warning("Staged replacements could not be completed: %s", error)

    def _wait_for_results(self, unreported: list[Replacement]) -> None:
        """Wait for the server to verify each file, then record or report the result."""
        began = self._find_moment()
        while unreported:
            records = self._fetch(unreported)
            if records is None:
                break
            unreported = [
                it for it in unreported if not self._is_settled(it, records.get(it.datafile))
            ]
            if self._find_moment() - began >= self._settings.verify_patience:
                break
            if unreported:
                self._gate.rest(max(SHORTEST, self._settings.verify_interval))
        for it in unreported:
            self._report(it, NOT_LOOKED)

    def _is_settled(self, it: Replacement, record: Datafile | None) -> bool:
        """Return whether the server's state is known."""
        if record is not None and record.fault:
            return False
        if record is None or not describes(record, it):
            return True  # unchanged, or handled by `begin`
        if it.datafile not in self._looks_before:
            self._ask([(it, record)])
        elif set(record.looks) <= set(self._looks_before[it.datafile]):
            return False
        elif is_verified(record, it):
            self._record_verified(it)
            return True
        elif it.datafile in self._asked_again:
            self._report(it, REPLACING)
            return True
        else:
            # The server may have verified it for the previous run, before the bytes were moved.
            self._asked_again.add(it.datafile)
            self._ask([(it, record)])
        return False

    def _record_verified(self, it: Replacement) -> None:
        """Record the new bytes as verified, although the local file is gone or has changed."""
        entry = self._ledger.find_entries([it.key]).get(it.key)
        if entry and (entry.state, entry.checksum) == (EntryState.REPAIRED, it.checksum):
            self._ledger.record([entry._replace(state=EntryState.VERIFIED, datafile=it.datafile)])
        self._ledger.forget_replacements([it])

    def _report(self, it: Replacement, problem: Problem) -> None:
        """Report an outcome for a file that the run has not found; it counts like any other."""
        folder = it.key.rpartition(b"/")[0]
        self._context.emit(FilesSeen(folder=folder, files=1, bytes=it.size))
        kind = FileWaiting if problem == NOT_LOOKED else FileFailed
        self._context.emit(kind(path=it.key, size=it.size, problem=problem))

    def _find_moment(self) -> float:
        """Return the time on a clock that stops while the run is stopped."""
        return self._gate.clock.monotonic() - self._gate.stopped


def _is_invalid(it: Replacement, records: Mapping[DatafileId, Datafile]) -> bool:
    """Return whether the record does not say which bytes it describes."""
    record = records.get(it.datafile)
    return record is not None and bool(record.fault)


def _is_changed(it: Replacement, records: Mapping[DatafileId, Datafile]) -> bool:
    """Return whether the record already describes the new bytes."""
    record = records.get(it.datafile)
    return record is not None and describes(record, it)
