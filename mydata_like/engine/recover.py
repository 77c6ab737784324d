"""Completes or reports the replacements of bytes that earlier runs have left in the middle."""

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
from mydata_like.engine.replace import NOT_LOOKED, ask, describes, vouches
from mydata_like.engine.run_context import RunContext
from mydata_like.settings.schema import Advanced

logger = logging.getLogger(__name__)

TOLD = (FileVerified, FileWaiting, FileSkipped, FileFailed)
WRITING = 900  # seconds for which a request of a run that was killed may still change a record
SHORTEST = 0.1  # seconds between two looks

REPLACING = Problem(
    "server.replacing",
    "The server's record is of a newer state of this file, whose bytes did not arrive, and the "
    "local file was not there to be sent again.",
    "Put the file back where it was and run again, or ask the server's administrator to delete "
    "the record.",
)


class Untold:
    """The files of replacements that earlier runs have left, as long as they have no outcome."""

    def __init__(self, left: Iterable[Replacement]) -> None:
        self.keys = {it.key for it in left}

    def add(self, event: Event) -> None:
        """Take the next event into account."""
        if isinstance(event, TOLD):
            self.keys.discard(event.path)


class Recovery:
    """What earlier runs have left: `begin` comes before all that a run does, `end` after it.

    What is not known to be complete at the end is reported, so that nothing counts as safe.
    """

    def __init__(self, context: RunContext, settings: Advanced, untold: Untold) -> None:
        self._context = context
        self._ledger = context.ledger
        self._gate = context.gate
        self._settings = settings
        self._untold = untold
        self._looks: dict[DatafileId, tuple[str, ...]] = {}  # before the server was asked
        self._asked_again: set[DatafileId] = set()

    def begin(self) -> None:
        """Let bytes that lie aside take their places, and have the server look at the rest."""
        left = self._drop_complete(self._ledger.find_replacements())
        records = self._fetch(left) if left else None
        if records is None:
            return
        logger.info("%d datafiles were being replaced when a run ended", len(left))
        self._drop_unchanged([it for it in left if not _is_changed(it, records)], records)
        changed = [it for it in left if _is_changed(it, records)]
        if changed:
            self._doubt(changed)
            self._place(changed)
        for it in changed:
            self._ask(it, records[it.datafile])

    def end(self) -> None:
        """Tell of what is not complete and has no outcome in this run."""
        left = self._drop_complete(self._ledger.find_replacements())
        untold = [it for it in left if it.key in self._untold.keys]
        if untold:
            self._judge(untold)

    def _drop_complete(self, left: Sequence[Replacement]) -> list[Replacement]:
        """Drop what the ledger knows to be verified; return the rest."""
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
        """Drop what never began, once no request can begin it any more; nothing is lost by that."""
        now = self._gate.clock.now().timestamp()
        over = [it for it in unchanged if it.datafile not in records or now - it.at > WRITING]
        if over:
            self._discard(over)
            self._ledger.forget_replacements(over)

    def _fetch(self, left: Iterable[Replacement]) -> Mapping[DatafileId, Datafile] | None:
        """Return the records, None where nobody can say which there are.

        Who we are is proven first: an account that is not known is shown nothing.
        """
        numbers = [it.datafile for it in left]
        server = self._context.server
        try:
            self._gate.call(server.fetch_account)
            return {it.id: it for it in self._gate.call(lambda: server.fetch_datafiles(numbers))}
        except ItemError as error:
            logger.warning("Datafiles that were being replaced cannot be looked at: %s", error)
            return None

    def _ask(self, it: Replacement, record: Datafile) -> None:
        """Have the server look; only a later look than those it has taken is the answer."""
        self._looks[it.datafile] = record.looks
        ask(self._context, it.datafile)

    def _doubt(self, changed: Sequence[Replacement]) -> None:
        """Call no other state of a file verified: its record is of the new bytes now."""
        entries = self._ledger.find_entries([it.key for it in changed]).values()
        doubtful = [it for it in entries if it.state is EntryState.VERIFIED]
        if doubtful:
            self._ledger.record([it._replace(state=EntryState.CHANGED) for it in doubtful])

    def _place(self, changed: Sequence[Replacement]) -> None:
        self._have(lambda channel: channel.replace(changed, {}))

    def _discard(self, over: Sequence[Replacement]) -> None:
        self._have(lambda channel: channel.discard(over))

    def _have(self, action: Callable[[Channel], object]) -> None:
        """Have a channel do something; where its line breaks the next run tries again."""
        channels = self._context.limits.channels
        try:
            with channels.borrowed() as channel:
                channels.ensure_open(channel)
                self._gate.call(lambda: action(channel))
        except TransientError as error:
            logger.warning("What lies aside could not be seen to: %s", error)

    def _judge(self, untold: list[Replacement]) -> None:
        """Wait for the server's look at each, then keep or tell what it has found."""
        began = self._find_moment()
        while untold:
            records = self._fetch(untold)
            if records is None:
                break
            untold = [it for it in untold if not self._settle(it, records.get(it.datafile))]
            if self._find_moment() - began >= self._settings.verify_patience:
                break
            if untold:
                self._gate.rest(max(SHORTEST, self._settings.verify_interval))
        for it in untold:
            self._tell(it, NOT_LOOKED)

    def _settle(self, it: Replacement, record: Datafile | None) -> bool:
        """Return whether it is known what the server has."""
        if record is None or not describes(record, it):
            return True  # nothing of it has changed, as far as `begin` had not seen to it
        if it.datafile not in self._looks:
            self._ask(it, record)
        elif set(record.looks) <= set(self._looks[it.datafile]):
            return False
        elif vouches(record, it):
            self._keep(it)
            return True
        elif it.datafile in self._asked_again:
            self._tell(it, REPLACING)
            return True
        else:
            # It may have looked, for the run before, just before the bytes took their place.
            self._asked_again.add(it.datafile)
            self._ask(it, record)
        return False

    def _keep(self, it: Replacement) -> None:
        """Keep that the new bytes are verified, though the local file is gone or has changed."""
        entry = self._ledger.find_entries([it.key]).get(it.key)
        if entry and (entry.state, entry.checksum) == (EntryState.REPAIRED, it.checksum):
            self._ledger.record([entry._replace(state=EntryState.VERIFIED, datafile=it.datafile)])
        self._ledger.forget_replacements([it])

    def _tell(self, it: Replacement, problem: Problem) -> None:
        """Give a file that the run has not come across an outcome, which counts as any other."""
        folder = it.key.rpartition(b"/")[0]
        self._context.emit(FilesSeen(folder=folder, files=1, bytes=it.size))
        kind = FileWaiting if problem == NOT_LOOKED else FileFailed
        self._context.emit(kind(path=it.key, size=it.size, problem=problem))

    def _find_moment(self) -> float:
        """Return the time on a clock that stands while the run does."""
        return self._gate.clock.monotonic() - self._gate.stopped


def _is_changed(it: Replacement, records: Mapping[DatafileId, Datafile]) -> bool:
    """Return whether the record is of the new bytes already."""
    record = records.get(it.datafile)
    return record is not None and describes(record, it)
