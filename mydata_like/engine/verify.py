"""Waits until the server has compared its replicas with our checksums."""

import logging
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.events import FileFailed, FileWaiting
from mydata_like.core.model import (
    Datafile,
    Dataset,
    DatasetId,
    EntryState,
    FileToSend,
    Registered,
    Staged,
)
from mydata_like.core.ports import Clock, Emit, Ledger, ServerAPI
from mydata_like.engine.bookkeeping import Step, Verified, record_steps
from mydata_like.engine.queues import Source
from mydata_like.engine.retry import Gate
from mydata_like.engine.unverified import ASK_AT_ONCE, Judged, Rooms, Unverified, Verdict
from mydata_like.settings.schema import Advanced

logger = logging.getLogger(__name__)

SOON = 0.1  # seconds until the first look after something was registered
AT_LAST = 0.02  # the same when nothing more will be registered: nothing else is left to do

RECORDS_LOST = 3  # times that a record is made again which the server has not kept

NEVER_VERIFIED = Problem(
    "verify.failed",
    "The server's copy does not match the checksum, even after the file was sent again.",
    "Ask the facility's administrator to look at the server's storage; then run again.",
)
NEVER_KEPT = Problem(
    "register.lost",
    "The server has said again and again that it keeps the record of this file, and has none.",
    "Ask the server's administrator what stands before the server: a gateway or a proxy may answer "
    "in its place.",
)
STILL_PENDING = Problem(
    "verify.pending",
    "The server has the bytes, but has not verified them yet.",
    "Keep the local file. The next run looks again; if this stays, tell the administrator.",
)


Found = FileToSend | Staged | Verified  # to be sent or registered once more, or to be recorded


class Verification(NamedTuple):
    """How long to wait for the server, and in which storage box our replicas are."""

    settings: Advanced
    box: str


class Verify:
    """The stage that polls: numbers of a dataset first, its listing only where that pays.

    No number makes a file verified: each record is seen in a listing. It yields what is verified,
    the files that have to be sent once more, and those whose records the server has not kept.
    """

    def __init__(
        self, server: ServerAPI, ledger: Ledger, emit: Emit, gate: Gate, how: Verification
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._emit = emit
        self._gate = gate
        self._settings, self._box = how
        self._clock = gate.clock
        self._watches: dict[DatasetId, Unverified] = {}
        self._resting: dict[DatasetId, Unverified] = {}  # they know what we may be told of next
        self._offsets: dict[DatasetId, int] = {}  # where to go on with the listing of the others
        self._lost: Counter[bytes] = Counter()  # how often a record was not kept, by the file's key

    def __call__(self, source: Source[list[Registered]]) -> Iterator[Found]:
        rhythm = _Rhythm(self._clock, self._settings.verify_interval)
        while self._watches or not source.finished:
            items = self._await(source, rhythm.rest)
            if items:
                rhythm.hear(first=not self._watches)
            for item in items or ():
                self._watch(item)
            if source.finished:
                rhythm.hear_end()
            if rhythm.rest:
                continue
            for watch in list(self._watches.values()):
                yield from self._look_patiently(watch)
            rhythm.step(news=bool(items))

    def _await(self, source: Source[list[Registered]], rest: float) -> list[Registered] | None:
        """Return what has been registered, or None until the next look is due."""
        if source.finished:  # whose poll would not wait
            self._gate.rest(rest)
            return None
        return source.poll(rest if self._watches else None)

    def _watch(self, item: Registered) -> None:
        dataset = item.wanted.dataset
        if dataset.id not in self._watches:
            watch = self._open_watch(dataset)
            watch.progressed = self._find_moment()
            self._watches[dataset.id] = watch
        self._watches[dataset.id].add(item)

    def _open_watch(self, dataset: Dataset) -> Unverified:
        if dataset.id in self._resting:
            return self._resting.pop(dataset.id)
        rooms = Rooms(self._ledger.open_room(), self._ledger.open_room())
        offset = self._offsets.get(dataset.id, dataset.files)
        return Unverified(dataset.id, offset, rooms, self._box)

    def _close_watch(self, watch: Unverified) -> None:
        """Look no more at a dataset, until more of it is registered."""
        del self._watches[watch.dataset]
        if watch.knows_more:
            self._resting[watch.dataset] = watch
        else:
            self._offsets[watch.dataset] = watch.offset

    def _look_patiently(self, watch: Unverified) -> Iterator[Found]:
        """Look at a dataset; one that cannot be looked at now holds no other back."""
        before = len(watch)
        try:
            yield from self._look(watch)
        except ItemError as error:
            logger.info("Dataset %d could not be looked at: %s", watch.dataset, error)
        if len(watch) < before:
            watch.progressed = self._find_moment()
        elif self._find_moment() - watch.progressed >= self._settings.verify_patience:
            self._give_up(watch)
        if not watch:
            self._close_watch(watch)

    def _find_moment(self) -> float:
        """Return the time on a clock that stands while the run does: then nobody can be asked."""
        return self._clock.monotonic() - self._gate.stopped

    def _look(self, watch: Unverified) -> Iterator[Found]:
        if ready := watch.take_ready():
            yield Verified(ready)
        if not watch:
            return
        stats = self._gate.call(lambda: self._server.fetch_stats(watch.dataset))
        now = self._find_moment()
        if not watch.deserves_listing(stats, now):
            return
        impatient = watch.is_quiet(now)
        thorough = impatient or watch.doubts(now)
        records = self._gate.call(lambda: watch.fetch(self._server, thorough=thorough))
        if ready := watch.take_ready():
            yield Verified(ready)
        yield from self._resolve(watch, records, impatient=impatient)
        for item in watch.find_missing(now, thorough=thorough):
            yield from self._register_again(item)

    def _resolve(
        self, watch: Unverified, records: list[Judged], *, impatient: bool
    ) -> Iterator[FileToSend]:
        """Ask for what is not verified, or send it again; `impatient` asks for all of it."""
        questions = 0
        for record, verdict in records:
            item = watch.find(record)
            if item is None:  # a listing and a question for its id told of it
                continue
            asked = watch.was_asked(record, self._find_moment())
            if asked is False:
                eager = verdict is Verdict.REFUSED or bool(item.before)
                if eager or (impatient and questions < ASK_AT_ONCE):
                    questions += 1
                    self._ask(watch, record)
            elif asked and verdict is Verdict.REFUSED:
                yield from self._send_again(watch.take(record), record)

    def _ask(self, watch: Unverified, record: Datafile) -> None:
        """Ask once; a server that will not be asked looks by itself now and then."""
        watch.note_question(record, self._find_moment())
        try:
            self._gate.call(lambda: self._server.request_verification(record.id))
        except ItemError as error:
            logger.info("Datafile %d could not be asked for: %s", record.id, error)

    def _send_again(self, item: Registered, record: Datafile) -> Iterator[FileToSend]:
        if item.wanted.round:
            self._fail(item, NEVER_VERIFIED)
            return
        logger.warning("The server did not verify datafile %d; it is sent again", record.id)
        moved = record.replicas and not record.copies_at(item.wanted.remote)
        uri = record.replicas[0].uri if moved else item.wanted.remote
        yield item.wanted._replace(remote=uri, datafile=record, round=1)

    def _register_again(self, item: Registered) -> Iterator[FileToSend | Staged]:
        """Repeat what the server has acknowledged and not kept, a few times.

        Where the server has put the bytes, it has lost them as well.
        """
        key = item.wanted.file.key
        self._lost[key] += 1
        if not item.placed_by_server:
            record_steps(self._ledger, [Step(item.wanted, EntryState.STAGED, item.checksum)])
        if self._lost[key] > RECORDS_LOST:
            self._fail(item, NEVER_KEPT)
            return
        logger.warning("The server has not kept the record of %s", item.wanted.remote)
        if item.placed_by_server:
            yield item.wanted
            return
        yield Staged(item.wanted, item.checksum)

    def _fail(self, item: Registered, problem: Problem) -> None:
        for file in item.wanted.files:
            self._emit(FileFailed.of(file, problem))

    def _give_up(self, watch: Unverified) -> None:
        for item in chain.from_iterable(watch.take_all()):
            for file in item.wanted.files:
                self._emit(FileWaiting.of(file, STILL_PENDING))


class _Rhythm:
    """When the server is looked at next: soon after news, then ever more seldom."""

    def __init__(self, clock: Clock, longest: float) -> None:
        self._clock = clock
        self._longest = longest
        self._interval = SOON
        self._due = clock.monotonic()
        self._ended = False

    @property
    def rest(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self._due - self._clock.monotonic())

    def hear(self, *, first: bool) -> None:
        """Look soon at what has been registered, `first` where nothing was open before."""
        soon = self._clock.monotonic() + SOON
        self._due = soon if first else min(soon, self._due)

    def hear_end(self) -> None:
        """Look soon, the first time that this is said: nothing more will be registered."""
        if not self._ended:
            self._interval, self._ended = AT_LAST, True
            self._due = min(self._due, self._clock.monotonic() + AT_LAST)

    def step(self, *, news: bool) -> None:
        """Set the time of the next look, after one."""
        longer = min(self._interval * 1.5, self._longest)
        self._interval = SOON if news and not self._ended else longer
        self._due = self._clock.monotonic() + self._interval
