"""The recovery of replacements that earlier runs left unfinished."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from mydata_like.core.errors import ItemError, Problem, TransientError
from mydata_like.core.events import (
    Event,
    FileFailed,
    FileSkipped,
    FilesSeen,
    FileVerified,
    FileWaiting,
)
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    DatasetId,
    Entry,
    EntryState,
    Registration,
    Replacement,
    Undo,
)
from mydata_like.core.parsing import moment_of_ns
from mydata_like.core.ports import SentFile, UnsentFile
from mydata_like.core.staging_path import is_kept
from mydata_like.engine.catalogue import BroughtBack
from mydata_like.engine.changed_files import KEPT_THERE
from mydata_like.engine.replace import MISSING, TOGETHER, KeptCopies, describe_undo, discard
from mydata_like.engine.run_context import RunContext
from mydata_like.settings.schema import Advanced

logger = logging.getLogger(__name__)

OUTCOMES = (FileVerified, FileWaiting, FileSkipped, FileFailed)
SHORTEST = 0.1  # seconds between two checks, at least

NOT_LOOKED = Problem(
    "waiting.replacing",
    "The server has not verified the new content of this file yet.",
    "Keep the local file. The next run continues. If this persists, contact the administrator.",
)
REPLACING = Problem(
    "server.replacing",
    "The server's record describes a newer version of this file that never arrived, and the "
    "local file was missing when it should have been sent again.",
    "Restore the file and run again. To return to the earlier version that the server still has, "
    "run: mydata-like changed undo PATH.",
)


NO_RECORD = Problem(
    "changed.no-record",
    "The server has no record of this file any more.",
    "Ask the server's administrator.",
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

    Those not known to be complete at the end are reported, so that they do not count as safe. Kept
    copies whose time has passed are removed. `undo` has kept bytes that take their place again.
    """

    def __init__(
        self,
        context: RunContext,
        settings: Advanced,
        copies: KeptCopies,
        unreported: UnreportedFiles,
        undo: Undo | None = None,
    ) -> None:
        self._context = context
        self._ledger = context.ledger
        self._gate = context.gate
        self._settings = settings
        self._copies = copies
        self._unreported = unreported
        self._undo = undo
        self._looks_before: dict[DatafileId, tuple[str, ...]] = {}  # before our request
        self._asked_again: set[DatafileId] = set()

    def begin(self) -> None:
        """Put staged bytes in place, change their records, and request verification of all."""
        if self._undo:
            self._note_undo(self._undo)
        left = self._drop_complete(self._ledger.find_replacements())
        records = self._fetch([it.datafile for it in left]) if left else None
        if records is None:
            return
        left = [it for it in left if not _is_invalid(it, records)]
        logger.info("%d datafiles were being replaced when a run ended", len(left))
        # Older versions changed the record first: an unchanged one keeps its bytes.
        old = [it for it in left if it.modified_ns < 0 and not _is_changed(it, records)]
        gone = [it for it in left if it.datafile not in records and it not in old]
        self._abandon([*old, *gone])
        left = [it for it in left if it not in old and it not in gone]
        self._revoke_verified(left)
        placed, missing = self._place(left)
        self._abandon([it for it in missing if not _is_changed(it, records)])
        unchanged = [it for it in placed if not _is_changed(it, records)]
        if unchanged and self._register(unchanged, records):
            records = self._fetch([it.datafile for it in left]) or records
        self._ask([(it, records[it.datafile]) for it in left if _is_changed(it, records)])

    def end(self) -> None:
        """Report replacements that are incomplete and have no outcome; remove expired copies."""
        left = self._drop_complete(self._ledger.find_replacements())
        unreported = [it for it in left if it.key in self._unreported.keys]
        if unreported:
            self._wait_for_results(unreported)
        self._copies.remove_expired()

    def _note_undo(self, undone: Undo) -> None:
        """Record that kept bytes are to take their place again; other local ones are changed."""
        undo = undone.copy
        try:
            if done := self._context.catalogue.bring_back(undo):
                self._record_undo(undone, done)
                return
        except ItemError as error:
            self._context.emit(FileFailed(path=undo.key, size=undo.size, problem=error.problem))
            return
        self._unreported.keys.add(undo.key)
        record = (self._fetch([undo.datafile]) or {}).get(undo.datafile)
        if record is None:
            self._context.emit(FileFailed(path=undo.key, size=undo.size, problem=NO_RECORD))
            return
        now = int(self._context.clock.now().timestamp())
        back, newer = describe_undo(undo, record, now)
        earlier = Entry(
            undo.key,
            undo.size,
            0,
            EntryState.CHANGED if undone.local else EntryState.REPAIRED,
            undo.dataset,
            undo.checksum,
            undo.remote,
            undo.datafile,
        )
        self._ledger.record([earlier])
        if undone.local:
            self._ledger.record_changed(undone.local)
        if undone.in_place:
            back = back._replace(kept="", kept_size=0)
            newer = undo._replace(modified=record.modified)
        self._ledger.record_kept([newer])
        self._ledger.record_replacements([back])

    def _record_undo(self, undone: Undo, back: BroughtBack) -> None:
        """Record and report kept bytes that are in their place again."""
        copy = undone.copy
        state = EntryState.CHANGED if undone.local else EntryState.VERIFIED
        entry = Entry(
            copy.key,
            copy.size,
            0,
            state,
            copy.dataset,
            copy.checksum,
            copy.remote,
            back.datafile,
        )
        self._ledger.record([entry])
        if undone.local:
            self._ledger.record_changed(undone.local)
        self._ledger.forget_kept([copy])
        if back.newer:
            self._copies.keep(back.newer)
        self._report_undo(copy.key, copy.size, copy.checksum)

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

    def _abandon(self, over: Sequence[Replacement]) -> None:
        """Forget replacements of which nothing has changed on the server."""
        if over:
            discard(self._context, [it.staged for it in over if not is_kept(it.staged)])
            self._copies.forget(over)
            self._ledger.forget_replacements(over)

    def _fetch(self, numbers: Sequence[DatafileId]) -> Mapping[DatafileId, Datafile] | None:
        """Return the records, None if they cannot be fetched."""
        try:
            found = self._context.catalogue.fetch_records(numbers, sure=True)
            return {it.id: it for it in found}
        except ItemError as error:
            logger.warning("Cannot fetch the datafiles that were being replaced: %s", error)
            return None

    def _ask(self, doubtful: Sequence[tuple[Replacement, Datafile]]) -> None:
        """Request verification; only a later one than those the server has made counts."""
        self._looks_before.update((it.datafile, record.looks) for it, record in doubtful)
        numbers = [it.datafile for it, _ in doubtful]
        self._context.catalogue.request_verification(numbers)

    def _revoke_verified(self, left: Sequence[Replacement]) -> None:
        """Revoke the verified state of earlier bytes: other ones are taking their place."""
        entries = self._ledger.find_entries([it.key for it in left]).values()
        doubtful = [it for it in entries if it.state is EntryState.VERIFIED]
        if doubtful:
            self._ledger.record([it._replace(state=EntryState.CHANGED) for it in doubtful])

    def _place(self, left: Sequence[Replacement]) -> tuple[list[Replacement], list[Replacement]]:
        """Put staged bytes in place; return those in place, and those that are nowhere.

        The next run continues with the others.
        """
        channels = self._context.channels
        fates: list[SentFile | UnsentFile] = []
        try:
            with channels.borrowed() as channel:
                channel = channels.ensure_open(channel)
                self._context.catalogue.withdraw([it.remote for it in left])
                for start in range(0, len(left), TOGETHER):
                    part = left[start : start + TOGETHER]
                    fates += self._gate.call(partial(channel.replace, part, {}), staging=True)
        except TransientError as error:
            logger.warning("Staged replacements could not be completed: %s", error)
        placed, missing = [], []
        for it, fate in zip(left, fates, strict=False):
            if isinstance(fate, SentFile):
                placed.append(it)
            elif fate.problem.code == MISSING:
                missing.append(it)
            else:
                logger.warning("A replacement is left as it is: %s", fate.problem.message)
        self._copies.note_placed(placed)
        return placed, missing

    def _register(
        self, placed: Sequence[Replacement], records: Mapping[DatafileId, Datafile]
    ) -> bool:
        """Change the records of bytes that are in place; return whether that was possible now."""
        by_dataset: defaultdict[DatasetId, list[Registration]] = defaultdict(list)
        for it in placed:
            record = records[it.datafile]
            modified = self._find_modified(it)
            change = Registration(
                record.dataset,
                record.directory or "",
                record.name,
                it.size,
                it.checksum,
                modified,
                modified,
                None,
                self._context.box,
                record.id,
            )
            by_dataset[record.dataset].append(change)
        try:
            for changes in by_dataset.values():
                for start in range(0, len(changes), TOGETHER):
                    part = changes[start : start + TOGETHER]
                    self._context.catalogue.change_records(part)
        except ItemError as error:
            logger.warning("Records of replaced datafiles could not be changed: %s", error)
            return False
        return True

    def _find_modified(self, it: Replacement) -> str:
        """Return the modification time of the new bytes; the server has told that of kept ones."""
        kept = (old.modified for old in self._ledger.find_kept(it.key) if old.path == it.staged)
        return next(kept, "") or moment_of_ns(it.modified_ns).isoformat()

    def _wait_for_results(self, unreported: list[Replacement]) -> None:
        """Wait for the server to verify each file, then record or report the result."""
        began = self._find_moment()
        while unreported:
            records = self._fetch([it.datafile for it in unreported])
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
        if record is None:
            return True
        if record.fault:
            return False
        if not _describes(record, it):  # `begin` could not put the new bytes in place
            self._report(it, NOT_LOOKED)
            return True
        if it.datafile not in self._looks_before:
            self._ask([(it, record)])
        elif set(record.looks) <= set(self._looks_before[it.datafile]):
            return False
        elif _is_verified(record, it):
            self._record_verified(it)
            return True
        elif it.datafile in self._asked_again:
            self._report(it, REPLACING)
            return True
        else:
            # The server may have begun before the bytes were moved.
            self._asked_again.add(it.datafile)
            self._ask([(it, record)])
        return False

    def _record_verified(self, it: Replacement) -> None:
        """Record the new bytes as verified, although the local file is gone or has changed."""
        entry = self._ledger.find_entries([it.key]).get(it.key)
        if entry and (entry.state, entry.checksum) == (EntryState.REPAIRED, it.checksum):
            self._ledger.record([entry._replace(state=EntryState.VERIFIED, datafile=it.datafile)])
        self._ledger.forget_replacements([it])
        if self._undo and self._undo.copy.key == it.key:
            self._report_undo(it.key, it.size, it.checksum)

    def _report_undo(self, key: bytes, size: int, checksum: str) -> None:
        if self._undo and (local := self._undo.local):
            self._see(key, local.size)
            self._context.emit(FileSkipped(path=key, size=local.size, problem=KEPT_THERE))
        else:
            self._see(key, size)
            self._context.emit(FileVerified(path=key, size=size, checksum=checksum))

    def _report(self, it: Replacement, problem: Problem) -> None:
        """Report an outcome for a file that the run has not found; it counts like any other."""
        self._see(it.key, it.size)
        kind = FileWaiting if problem == NOT_LOOKED else FileFailed
        self._context.emit(kind(path=it.key, size=it.size, problem=problem))

    def _see(self, key: bytes, size: int) -> None:
        folder = key.rpartition(b"/")[0]
        self._context.emit(FilesSeen(folder=folder, files=1, bytes=size))

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
    return record is not None and _describes(record, it)


def _describes(record: Datafile, it: Replacement) -> bool:
    """Return whether a record describes the new bytes."""
    return (record.size, record.checksum) == (it.size, it.checksum)


def _is_verified(record: Datafile, it: Replacement) -> bool:
    """Return whether the server reports that our replica matches its record."""
    return any(replica.verified for replica in record.copies_at(it.remote))
