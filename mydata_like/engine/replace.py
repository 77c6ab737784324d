"""Lets new bytes of a datafile take the place of those that the server has verified.

No record may be verified over bytes that it does not describe, and the API lets no record have two
sets of bytes. So the new ones are laid aside, the ledger notes what is about to happen, the record
is changed, and the server looks: it finds the earlier bytes and no longer vouches for them. Only
then the new ones take their place. Where it goes on vouching, look after look, only the record was
wrong: the bytes are in their place already, and what was laid aside is removed.
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
from mydata_like.core.staging_path import aside_path
from mydata_like.engine.pipeline import Lock, StageInput
from mydata_like.engine.run_context import RunContext
from mydata_like.settings.schema import Advanced

logger = logging.getLogger(__name__)

SOON = 0.1  # seconds until the first look after a question
ASK_AGAIN = 30.0  # seconds after which a question may have been lost
STALE = 10.0  # seconds for which a cache before the server may show a record as it was
TOGETHER = 200  # replacements that take their places at once
PATIENCE = 1.0  # seconds to wait for a channel, while what needs none goes on
FAILURES = 4  # of the line or the host, for the same bytes, before their files fail
MISSING = "staging.missing"
LEFT = frozenset({"file.changed", "file.vanished", "file.replaced"})

NOT_LOOKED = Problem(
    "waiting.replacing",
    "The server still vouches for the earlier bytes of the file; the new ones wait for it to look.",
    "Keep the local file. The next run carries on; if this stays, tell the administrator.",
)


class Replace:
    """The stage between registering and verifying; what replaces nothing passes by."""

    def __init__(self, context: RunContext, settings: Advanced) -> None:
        self._context = context
        self._settings = settings
        self._lock = Lock()
        self._noted: dict[DatafileId, Replacement] = {}

    def note(self, staged: Iterable[Staged]) -> None:
        """Keep in the ledger what is about to be replaced; nothing of it has been changed yet."""
        now = int(self._context.gate.clock.now().timestamp())
        noted = [
            _describe(item, item.wanted.datafile, now)
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
            passing = [item for item in items or () if not self._take(item, pending)]
            if passing:
                yield passing
            if pending.due:
                yield from pending.step()

    def _await(self, source: StageInput[list[Registered]], pending: "Pending") -> "_Items":
        if source.finished:  # whose poll would not wait
            self._context.gate.rest(pending.rest)
            return None
        return source.poll(pending.rest if pending else None)

    def _take(self, item: Registered, pending: "Pending") -> bool:
        """Take what is to be replaced; what the check found to be registered already is not."""
        if item.datafile is None:
            return False
        with self._lock:
            noted = self._noted.pop(item.datafile, None)
        if noted is None:
            return False
        pending.add(noted, item)
        return True


_Items = list[Registered] | None


def _describe(item: Staged, record: Datafile, now: int) -> Replacement:
    wanted, file = item.wanted, item.wanted.file
    return Replacement(
        file.key,
        wanted.dataset.id,
        record.id,
        wanted.remote,
        aside_path(wanted.remote, file.size, file.modified_ns),
        file.size,
        item.checksum,
        now,
    )


def vouches(record: Datafile, replacement: Replacement) -> bool:
    """Return whether the server says that our replica has the bytes of its record."""
    return any(replica.verified for replica in record.copies_at(replacement.remote))


def describes(record: Datafile, replacement: Replacement) -> bool:
    """Return whether a record is of the new bytes."""
    return (record.size, record.checksum) == (replacement.size, replacement.checksum)


class Pending:
    """Replacements of one worker: those that wait for the server's look, and those after it."""

    def __init__(self, context: RunContext, settings: Advanced) -> None:
        self._context = context
        self._gate = context.gate
        self._settings = settings
        self._vouched: dict[DatafileId, tuple[Replacement, Registered]] = {}
        self._ready: list[tuple[Replacement, Registered]] = []
        self._unchanged: dict[DatafileId, float] = {}  # records that are as before, since when
        self._affirmed: set[DatafileId] = set()  # the server has looked, and vouches as before
        self._failures = 0
        self._asked = self._progressed = self._find_moment()
        self._interval = SOON
        self._next = 0.0

    def __len__(self) -> int:
        return len(self._vouched) + len(self._ready)

    @property
    def rest(self) -> float:
        """Seconds until there is something to be done."""
        return max(0.0, self._next - self._gate.clock.monotonic())

    @property
    def due(self) -> bool:
        return bool(self) and self.rest == 0

    def add(self, noted: Replacement, item: Registered) -> None:
        """Take a replacement whose record has just been changed, and have the server look."""
        record = item.wanted.datafile
        if not self:
            self._progressed = self._find_moment()
        if record is not None and describes(record, noted):
            self._ready.append((noted, item))  # the server speaks of these very bytes
        else:
            self._vouched[noted.datafile] = noted, item
            ask(self._context, noted.datafile)
            self._asked = self._find_moment()
        self._interval = SOON
        soon = self._gate.clock.monotonic() + (0.0 if self._ready else SOON)
        self._next = soon if len(self) == 1 else min(soon, self._next)

    def step(self) -> Iterator[list[Registered]]:
        """Look which records may be given new bytes; yield those that have got them."""
        before = len(self)
        if self._vouched and (unchanged := self._look()):
            yield unchanged
        if self._ready:
            placed = self._place()
            if placed:
                yield placed
        if len(self) < before:
            self._progressed, self._interval = self._find_moment(), SOON
        elif self._find_moment() - self._progressed >= self._settings.verify_patience:
            self._give_up()
        self._interval = min(self._interval * 1.5, max(SOON, self._settings.verify_interval))
        self._next = self._gate.clock.monotonic() + self._interval

    def _find_moment(self) -> float:
        """Return the time on a clock that stands while the run does: then nobody can be asked."""
        return self._gate.clock.monotonic() - self._gate.stopped

    def _look(self) -> list[Registered]:
        """Find those that may have their new bytes; return those whose record was not changed.

        These keep their bytes, and will not be verified.
        """
        server = self._context.server
        try:
            records = self._gate.call(lambda: server.fetch_datafiles(list(self._vouched)))
        except ItemError as error:
            logger.info("%d records could not be looked at: %s", len(self._vouched), error)
            return []
        unchanged = [item for record in records if (item := self._sort_out(record))]
        if self._vouched and self._find_moment() - self._asked >= ASK_AGAIN:
            self._asked = self._find_moment()
            for number in self._vouched:
                ask(self._context, number)
        return unchanged

    def _sort_out(self, record: Datafile) -> Registered | None:
        """Return a datafile whose record was not changed, though the server said so."""
        noted, item = self._vouched[record.id]
        if describes(record, noted):
            if not vouches(record, noted) or self._affirms(record):
                self._let_go(record)
                wanted = item.wanted._replace(datafile=record)
                self._ready.append((noted, item._replace(wanted=wanted, before=record.looks)))
            return None
        now = self._find_moment()
        if now - self._unchanged.setdefault(record.id, now) < STALE:
            return None
        self._let_go(record)
        return item

    def _affirms(self, record: Datafile) -> bool:
        """Return whether the server has looked twice, and vouches for the new bytes each time.

        A single look may have begun before the record changed, and be of the earlier bytes.
        """
        noted, item = self._vouched[record.id]
        if not any(_is_new_look(it, item) for it in record.copies_at(noted.remote)):
            return False
        if record.id in self._affirmed:
            return True
        self._affirmed.add(record.id)
        self._vouched[record.id] = noted, item._replace(before=record.looks)
        self._interval = SOON
        ask(self._context, record.id)
        return False

    def _let_go(self, record: Datafile) -> None:
        del self._vouched[record.id]
        self._unchanged.pop(record.id, None)
        self._affirmed.discard(record.id)

    def _place(self) -> list[Registered]:
        """Let bytes take their places, as far as a channel can be had for it now."""
        part = self._ready[:TOGETHER]
        with self._context.limits.channels.borrowed_first(PATIENCE) as channel:
            if channel is None:
                return []
            try:
                fates = self._replace(channel, part)
            except TransientError as error:
                fates = [UnsentFile(i, error.problem, again=True) for i in range(len(part))]
        return self._sort(part, fates)

    def _replace(
        self, channel: Channel, part: Sequence[tuple[Replacement, Registered]]
    ) -> list[SentFile | UnsentFile]:
        channels = self._context.limits.channels
        needless = [pair for pair in part if _is_there(*pair)]
        moved = [pair for pair in part if not _is_there(*pair)]
        files = {noted.key: item.wanted for noted, item in moved}
        fates: dict[bytes, SentFile | UnsentFile] = {}
        channels.ensure_open(channel)
        if needless:
            self._gate.call(lambda: channel.discard([noted for noted, _ in needless]))
        if moved:
            answers = self._gate.call(lambda: channel.replace([noted for noted, _ in moved], files))
            fates = {moved[fate.index][0].key: fate for fate in answers}
        return [
            _at(index, fates.get(noted.key, SentFile(index, noted.checksum)))
            for index, (noted, _) in enumerate(part)
        ]

    def _sort(
        self, part: Sequence[tuple[Replacement, Registered]], fates: Sequence[SentFile | UnsentFile]
    ) -> list[Registered]:
        """Return what has its place now; what is not to be found there the server will say."""
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
        for _, item in self._vouched.values():
            self._leave(item.wanted, NOT_LOOKED)
        self._vouched.clear()
        self._unchanged.clear()
        self._affirmed.clear()

    def _leave(self, wanted: FileToSend, problem: Problem) -> None:
        waits = problem.code in LEFT or problem == NOT_LOOKED
        for file in wanted.files:
            kind = FileWaiting if waits else FileFailed
            self._context.emit(kind.of(file, problem))


def _is_there(noted: Replacement, item: Registered) -> bool:
    """Return whether the verified bytes of a record are those that were sent now."""
    record = item.wanted.datafile
    return record is not None and describes(record, noted) and vouches(record, noted)


def _is_new_look(replica: Replica, item: Registered) -> bool:
    """Return whether the server vouches for a replica since a later look than it had taken."""
    at = replica.verified_at
    return replica.verified and at is not None and at not in item.before


def _at(index: int, fate: SentFile | UnsentFile) -> SentFile | UnsentFile:
    if isinstance(fate, SentFile):
        return SentFile(index, fate.checksum)
    return UnsentFile(index, fate.problem, fate.again)


def ask(context: RunContext, number: DatafileId) -> None:
    """Have the server look at a datafile; one that will not be asked looks now and then."""
    try:
        context.gate.call(lambda: context.server.request_verification(number))
    except ItemError as error:
        logger.info("Datafile %d could not be asked for: %s", number, error)
