"""The stage that replaces the verified bytes of a datafile by new ones.

A record must never be verified with bytes that it does not describe, and the API allows only one
set of bytes per record. So the new bytes are stored in a separate file, the ledger notes the
replacement, the record is changed, and the server verifies it: it finds the earlier bytes and
reports them as not verified. Only then are the new bytes moved into place. If the server repeatedly
reports the replica as verified, only the record was wrong: the new bytes are in place already, and
the separate file is removed.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence

from mydata_like.core.errors import ItemError, Problem, TransientError
from mydata_like.core.events import FileFailed, FileWaiting
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    FileToSend,
    Registered,
    Replacement,
    Replica,
    Staged,
)
from mydata_like.core.ports import Channel, SentFile, UnsentFile
from mydata_like.core.problems import LEFT_FOR_LATER
from mydata_like.core.staging_path import aside_path
from mydata_like.engine.pipeline import Lock, StageInput
from mydata_like.engine.reverify import PollInterval, ask_all
from mydata_like.engine.run_context import RunContext
from mydata_like.settings.schema import Advanced

logger = logging.getLogger(__name__)

ASK_AGAIN = 30.0  # seconds after which a request may have been lost
STALE = 10.0  # seconds for which a cache in front of the server may return an old record
TOGETHER = 200  # replacements that are moved into place at once
PATIENCE = 1.0  # seconds to wait for a channel while other work continues
FAILURES = 4  # of the connection or the host, for the same bytes, before their files fail
MISSING = "staging.missing"

NOT_LOOKED = Problem(
    "waiting.replacing",
    "The server still reports the earlier content as verified, so the new content must wait.",
    "Keep the local file. The next run continues. If this persists, contact the administrator.",
)


class Replace:
    """The stage between registering and verifying; other files pass through."""

    def __init__(self, context: RunContext, settings: Advanced) -> None:
        self._context = context
        self._settings = settings
        self._lock = Lock()
        self._noted: dict[DatafileId, Replacement] = {}

    def note(self, staged: Iterable[Staged]) -> None:
        """Record in the ledger what is to be replaced, before anything is changed."""
        now = int(self._context.gate.clock.now().timestamp())
        noted = [
            self._describe(item, item.wanted.datafile, now)
            for item in staged
            if item.wanted.replaces and item.wanted.datafile and not item.registered
        ]
        if noted:
            self._context.ledger.record_replacements(noted)
            with self._lock:
                self._noted.update((it.datafile, it) for it in noted)

    def __call__(self, source: StageInput[list[Registered]]) -> Iterator[list[Registered]]:
        pending = Pending(self._context, self._settings)
        while pending or not source.finished:
            items = self._await(source, pending)
            replacing, passing = self._divide(items or ())
            if replacing:
                pending.add(replacing)
            if passing:
                yield passing
            if source.finished:
                pending.rhythm.note_end()
            if pending.due:
                yield from pending.step()

    def _describe(self, item: Staged, record: Datafile, now: int) -> Replacement:
        wanted, file = item.wanted, item.wanted.file
        mark = self._context.transport.mark
        return Replacement(
            file.key,
            wanted.dataset.id,
            record.id,
            wanted.remote,
            aside_path(wanted.remote, file.size, file.modified_ns, mark),
            file.size,
            item.checksum,
            now,
        )

    def _await(self, source: StageInput[list[Registered]], pending: "Pending") -> "_Items":
        if source.finished:  # a finished source does not wait
            self._context.gate.rest(pending.rhythm.rest)
            return None
        return source.poll(pending.rhythm.rest if pending else None)

    def _divide(self, items: Sequence[Registered]) -> tuple[list["Replacing"], list[Registered]]:
        """Return replacements, and the others: those that the check found registered, too."""
        replacing: list[Replacing] = []
        others: list[Registered] = []
        for item in items:
            with self._lock:
                noted = self._noted.pop(item.datafile, None) if item.datafile else None
            if noted:
                replacing.append((noted, item))
            else:
                others.append(item)
        return replacing, others


Replacing = tuple[Replacement, Registered]
_Items = list[Registered] | None


def is_verified(record: Datafile, replacement: Replacement) -> bool:
    """Return whether the server reports that our replica matches its record."""
    return any(replica.verified for replica in record.copies_at(replacement.remote))


def describes(record: Datafile, replacement: Replacement) -> bool:
    """Return whether a record describes the new bytes."""
    return (record.size, record.checksum) == (replacement.size, replacement.checksum)


class Pending:
    """The replacements of a run, before and after the server has checked them."""

    def __init__(self, context: RunContext, settings: Advanced) -> None:
        self._context = context
        self._gate = context.gate
        self._settings = settings
        self._waiting: dict[DatafileId, Replacing] = {}
        self._ready: list[Replacing] = []
        self._unchanged: dict[DatafileId, float] = {}  # unchanged records, and since when
        self._confirmed: set[DatafileId] = set()  # verified again, with the same result
        self._failures = 0
        self._asked = self._progressed = self._find_moment()
        self._news = False  # whether verification was requested since the last step
        self.rhythm = PollInterval(self._gate.clock, settings.verify_interval)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._ready)

    @property
    def due(self) -> bool:
        return bool(self) and self.rhythm.rest == 0

    def add(self, replacing: Sequence[Replacing]) -> None:
        """Add replacements whose records have just been changed, and request verification."""
        first = not self
        if first:
            self._progressed = self._find_moment()
        unasked = {}
        for noted, item in replacing:
            record = item.wanted.datafile
            if record is not None and describes(record, noted):
                self._ready.append((noted, item))  # the server has verified these very bytes
            else:
                unasked[noted.datafile] = noted, item
        if unasked:
            self._waiting.update(unasked)
            self._ask(list(unasked))
            self._asked = self._find_moment()
        self._news = True
        self.rhythm.note_registered(first=first)

    def _ask(self, numbers: Sequence[DatafileId]) -> None:
        ask_all(self._context.server, self._gate, numbers)

    def step(self) -> Iterator[list[Registered]]:
        """Check which records are ready for new bytes; yield those that have received them."""
        before = len(self)
        if self._waiting and (unchanged := self._look()):
            yield unchanged
        while self._ready and (placed := self._place()):
            yield placed
        if len(self) < before:
            self._progressed = self._find_moment()
        elif self._find_moment() - self._progressed >= self._settings.verify_patience:
            self._give_up()
        self.rhythm.step(news=self._news or len(self) < before)
        self._news = False

    def _find_moment(self) -> float:
        """Return the time on a clock that stops while the run is stopped."""
        return self._gate.clock.monotonic() - self._gate.stopped

    def _look(self) -> list[Registered]:
        """Find records that are ready for their new bytes; return those that were not changed.

        The latter keep their bytes and are not going to be verified.
        """
        server = self._context.server
        try:
            records = self._gate.call(lambda: server.fetch_datafiles(list(self._waiting)))
        except ItemError as error:
            logger.info("%d records could not be fetched: %s", len(self._waiting), error)
            return []
        doubtful: list[DatafileId] = []
        unchanged = [item for record in records if (item := self._sort_out(record, doubtful))]
        if doubtful:
            self._ask(doubtful)
            self._news = True
        if self._waiting and self._find_moment() - self._asked >= ASK_AGAIN:
            self._asked = self._find_moment()
            self._ask(list(self._waiting))
        return unchanged

    def _sort_out(self, record: Datafile, doubtful: list[DatafileId]) -> Registered | None:
        """Return a datafile whose record was not changed, although the server acknowledged it.

        Add those to `doubtful` that the server must verify again.
        """
        noted, item = self._waiting[record.id]
        if describes(record, noted):
            if not is_verified(record, noted) or self._is_confirmed(record, doubtful):
                self._remove(record)
                wanted = item.wanted._replace(datafile=record)
                self._ready.append((noted, item._replace(wanted=wanted, before=record.looks)))
            return None
        now = self._find_moment()
        if now - self._unchanged.setdefault(record.id, now) < STALE:
            return None
        self._remove(record)
        return item

    def _is_confirmed(self, record: Datafile, doubtful: list[DatafileId]) -> bool:
        """Return whether the server has verified the new bytes twice.

        A single verification may have begun before the record changed, and be of the earlier bytes.
        """
        noted, item = self._waiting[record.id]
        if not any(_is_new_look(it, item) for it in record.copies_at(noted.remote)):
            return False
        if record.id in self._confirmed:
            return True
        self._confirmed.add(record.id)
        self._waiting[record.id] = noted, item._replace(before=record.looks)
        doubtful.append(record.id)
        return False

    def _remove(self, record: Datafile) -> None:
        del self._waiting[record.id]
        self._unchanged.pop(record.id, None)
        self._confirmed.discard(record.id)

    def _place(self) -> list[Registered]:
        """Move bytes into place, if a channel is available now."""
        part = self._ready[:TOGETHER]
        with self._context.limits.channels.borrowed_first(PATIENCE) as channel:
            if channel is None:
                return []
            try:
                fates = self._replace(channel, part)
            except TransientError as error:
                fates = [UnsentFile(i, error.problem, again=True) for i in range(len(part))]
        return self._sort(part, fates)

    def _replace(self, channel: Channel, part: Sequence[Replacing]) -> list[SentFile | UnsentFile]:
        channels = self._context.limits.channels
        needless = [pair for pair in part if _is_there(*pair)]
        moved = [pair for pair in part if not _is_there(*pair)]
        files = {noted.key: item.wanted for noted, item in moved}
        fates: dict[bytes, SentFile | UnsentFile] = {}
        channel = channels.ensure_open(channel)
        if needless:
            self._gate.call(lambda: channel.discard([noted for noted, _ in needless]), staging=True)
        if moved:
            answers = self._gate.call(
                lambda: channel.replace([noted for noted, _ in moved], files), staging=True
            )
            fates = {moved[fate.index][0].key: fate for fate in answers}
        return [
            _at(index, fates.get(noted.key, SentFile(index, noted.checksum)))
            for index, (noted, _) in enumerate(part)
        ]

    def _sort(
        self, part: Sequence[Replacing], fates: Sequence[SentFile | UnsentFile]
    ) -> list[Registered]:
        """Return the replaced items; missing bytes are found later, when the server verifies."""
        placed, again = [], []
        self._failures += any(isinstance(fate, UnsentFile) and fate.again for fate in fates)
        for (noted, item), fate in zip(part, fates, strict=True):
            if isinstance(fate, SentFile) or fate.problem.code == MISSING:
                placed.append(item)
            elif fate.again and self._failures < FAILURES:
                again.append((noted, item))
            else:
                self._leave(item.wanted, fate.problem)
        self._ready = [*again, *self._ready[len(part) :]]
        self._failures = self._failures if again else 0
        if again:
            self._gate.rest(self._gate.delay(self._failures))
        return placed

    def _give_up(self) -> None:
        for _, item in self._waiting.values():
            self._leave(item.wanted, NOT_LOOKED)
        self._waiting.clear()
        self._unchanged.clear()
        self._confirmed.clear()

    def _leave(self, wanted: FileToSend, problem: Problem) -> None:
        waits = problem.code in LEFT_FOR_LATER or problem == NOT_LOOKED
        for file in wanted.files:
            kind = FileWaiting if waits else FileFailed
            self._context.emit(kind.of(file, problem))


def _is_there(noted: Replacement, item: Registered) -> bool:
    """Return whether the verified bytes of a record are those that were sent now."""
    record = item.wanted.datafile
    return record is not None and describes(record, noted) and is_verified(record, noted)


def _is_new_look(replica: Replica, item: Registered) -> bool:
    """Return whether the server has verified a replica again since the record was read."""
    at = replica.verified_at
    return replica.verified and at is not None and at not in item.before


def _at(index: int, fate: SentFile | UnsentFile) -> SentFile | UnsentFile:
    if isinstance(fate, SentFile):
        return SentFile(index, fate.checksum)
    return UnsentFile(index, fate.problem, fate.again)
