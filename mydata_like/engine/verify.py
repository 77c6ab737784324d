"""Waits until the server has compared its replicas with our checksums."""

import logging
from collections import Counter
from collections.abc import Iterator, MutableMapping
from enum import Enum
from itertools import chain, islice
from math import inf
from typing import NamedTuple

from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.events import FileFailed, FileWaiting
from mydata_like.core.id_set import IdSet
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetStats,
    EntryState,
    FileToSend,
    Registered,
    Replica,
    Staged,
)
from mydata_like.core.ports import Clock, Emit, Ledger, ServerAPI
from mydata_like.engine.gate import Gate
from mydata_like.engine.outcome_recorder import LedgerStep, Verified, record_steps
from mydata_like.engine.pipeline import StageInput
from mydata_like.settings.schema import Advanced

MANY = 1000  # so many newly verified datafiles are worth a page of the listing
ASK_AFTER = 10.0  # seconds without progress after which verification is asked for
ASK_AT_ONCE = 50
# Caches before a server that ignore `no-cache` keep an answer for a second or two: what one look
# showed to be missing or wrong is believed only if a look so many seconds later shows it too.
LOOK_AGAIN_AFTER = 3.0

Key = tuple[str, str]


class VerificationState(Enum):
    """What a record says about the bytes that we sent."""

    VERIFIED = "verified"
    REFUSED = "refused"
    PENDING = "pending"


def judge(record: Datafile, item: Registered, box: str = "") -> VerificationState:
    """Return what the server found; a look it took before our bytes came says nothing.

    `box` is the storage box in which we put bytes. What lies there at our path decides: another
    replica may have other bytes. Where nothing is there, the server has moved or chosen the
    place, and any replica counts.
    """
    size = item.wanted.file.size
    if (record.checksum, record.size) != (item.checksum, size) or not record.replicas:
        return VerificationState.REFUSED
    ours = _find_ours(record, item, box)
    for replica in ours or record.replicas:
        if replica.verified and _is_new_look(replica, item):
            return VerificationState.VERIFIED
    looked = [it for it in record.replicas if it.verified_at and _is_new_look(it, item)]
    if looked and all(replica in looked for replica in ours):
        return VerificationState.REFUSED
    return VerificationState.PENDING


def _find_ours(record: Datafile, item: Registered, box: str) -> list[Replica]:
    """Return the replicas that are where we put the bytes."""
    if item.placed_by_server:
        return []
    remote = item.wanted.remote
    return [it for it in record.replicas if it.uri == remote and (not box or it.location == box)]


def _is_new_look(replica: Replica, item: Registered) -> bool:
    """Return whether the server may have looked at our bytes; it may not tell when it did.

    A record that had a replica before was verified with other bytes then.
    """
    if replica.verified_at is None:
        repaired = item.wanted.datafile is not None and bool(item.wanted.datafile.replicas)
        return replica.verified and not repaired
    return replica.verified_at not in item.before


Judged = tuple[Datafile, VerificationState]


class PendingStores(NamedTuple):
    """Where the datafiles of one dataset are kept, however many they are.

    `early` has records that were seen before we were told that they are ours.
    """

    new: MutableMapping[Key, Registered]
    early: MutableMapping[Key, Datafile]


class PendingVerification:
    """What is open in one dataset: datafiles new in this run, and older ones by their ids."""

    def __init__(self, dataset: DatasetId, offset: int, rooms: PendingStores, box: str) -> None:
        self.dataset = dataset
        self.progressed = 0.0
        self.offset = offset  # of the first record that is to be looked at
        self._box = box
        self._known_before = offset  # records come in the order of their making
        self._counted = 0  # verified ones, as the server's numbers said when they were listed last
        self._stats: DatasetStats | None = None  # these numbers
        self._listed_at = -inf
        self._new, self._early = rooms
        self._seen = 0  # how many of the new ones have an id, as a listing has shown their record
        self._settled = IdSet()  # records that need no further look, behind the offset
        self._old: dict[DatafileId, Registered] = {}
        self._asked: dict[DatafileId, float] = {}  # when verification was asked for
        self._ready: list[Registered] = []  # verified, with their ids
        self._missed: dict[Key, float] = {}  # when a whole listing lacked it first
        self._listed_all = False

    def __len__(self) -> int:
        return len(self._new) + len(self._old) + len(self._ready)

    def add(self, item: Registered) -> None:
        if item.datafile is not None:
            self._old[item.datafile] = item
            return
        key = key_of(item)
        record = self._early.pop(key, None) if self._early else None
        if record is not None and self.judge(record, item) is VerificationState.VERIFIED:
            self._ready.append(item._replace(datafile=record.id))
            return
        if record is not None:
            self.offset = 0
        self._new[key] = item

    @property
    def knows_more(self) -> bool:
        """Whether records were seen of which we may still be told that they are ours."""
        return bool(self._early)

    def judge(self, record: Datafile, item: Registered) -> VerificationState:
        """Return what a record says of one of ours."""
        return judge(record, item, self._box)

    def deserves_listing(self, stats: DatasetStats | None, now: float) -> bool:
        """Return whether the records are worth a look.

        That is where the server's numbers suggest that much, or all, has been verified. As they
        prove nothing and may be wrong, silence is a reason, too.
        """
        if stats is None or self._old or self.is_quiet(now) or self.doubts(now):
            return True
        enough = stats.verified - self._counted >= min(MANY, len(self._new))
        worth = enough or stats.total == stats.verified
        if not worth or (stats == self._stats and now - self._listed_at < LOOK_AGAIN_AFTER):
            return False
        self._stats, self._counted, self._listed_at = stats, stats.verified, now
        return True

    def is_quiet(self, now: float) -> bool:
        """Return whether nothing has been verified for so long that it is to be asked for."""
        return now - self.progressed >= ASK_AFTER

    def doubts(self, now: float) -> bool:
        """Return whether it is time to look again for what seems to be missing."""
        first = min(self._missed.values(), default=now)
        return now - first >= LOOK_AGAIN_AFTER

    def fetch(self, server: ServerAPI, *, thorough: bool) -> list[Judged]:
        """Look at the records of what is open, and return those that are not verified.

        What is verified is let go by `take_ready`, also after a look that failed halfway. Of the
        new ones only those are returned that the server has refused. It looks in the order of their
        making, more or less: after many that it has not looked at the rest is left for later.
        `thorough` looks at all, as records that vanish move later ones forward, and returns a few
        of the pending ones.
        """
        if thorough:
            self.offset = 0
        judged: list[Judged] = []
        for record in server.fetch_datafiles(list(self._old)) if self._old else ():
            item = self._old.get(record.id)
            verdict = self._see(record, item)
            if item and verdict is not VerificationState.VERIFIED:
                judged.append((record, verdict))
        if self._new:
            judged += self._list_new(server, thorough=thorough)
        return judged

    def _list_new(self, server: ServerAPI, *, thorough: bool) -> list[Judged]:
        refused: list[Judged] = []
        pending: list[Judged] = []
        done, leading, in_a_row = 0, True, 0
        self._listed_all = False
        listing = server.list_datafiles(self.dataset, self.offset)
        for position, record in enumerate(listing, self.offset):
            in_a_row = 0 if record.verified else in_a_row + 1
            if in_a_row > MANY and not thorough:
                break
            item = self.find(record)
            verdict = self._see(record, item)
            settled = (
                verdict is VerificationState.VERIFIED if item else self._pass_by(record, position)
            )
            leading = leading and settled
            done += leading
            if item and verdict is VerificationState.REFUSED:
                refused.append((record, verdict))
            elif item and not settled and thorough and len(pending) < ASK_AT_ONCE:
                pending.append((record, verdict))
        else:
            self._listed_all = True
        self.offset += done
        return refused + pending

    def _see(self, record: Datafile, item: Registered | None) -> VerificationState:
        """Judge a record, and note that ours is there."""
        if item is None:
            return VerificationState.PENDING
        verdict = self.judge(record, item)
        if verdict is VerificationState.VERIFIED:
            self._settled.add(record.id)
            self._ready.append(self.take(record))
        elif item.datafile is None:
            self._new[key_of(item)] = item._replace(datafile=record.id)
            self._seen += 1
        return verdict

    def _pass_by(self, record: Datafile, position: int) -> bool:
        """Return whether a record that is none of what is open needs no further look.

        We may be told in a moment that one that was made in this run is ours.
        """
        if record.id in self._settled:
            return True
        if record.verified and position >= self._known_before:
            self._early[_key(record)] = record
            self._settled.add(record.id)
        return record.verified

    def find_missing(self, now: float, *, thorough: bool) -> list[Registered]:
        """Let go what two listings lacked, of which the second was `thorough`, and return it."""
        if not self._listed_all or len(self._new) == self._seen:
            self._missed.clear()
            return []
        keys = [key for key, item in self._new.items() if item.datafile is None]
        self._missed = {key: self._missed.get(key, now) for key in keys}
        if not thorough:
            return []
        due = [key for key in keys if now - self._missed[key] >= LOOK_AGAIN_AFTER]
        for key in due:
            del self._missed[key]
        return [self._new.pop(key) for key in due]

    def find(self, record: Datafile) -> Registered | None:
        found = self._old.get(record.id) if self._old else None
        return found or self._new.get(_key(record))

    def take(self, record: Datafile) -> Registered:
        """Let go what a record is of, and return it with its id."""
        if self._old and record.id in self._old:
            return self._old.pop(record.id)
        item = self._new.pop(_key(record))
        self._seen -= item.datafile is not None
        # `_replace` takes three times as long.
        return Registered(item.wanted, item.checksum, record.id, item.before, item.placed_by_server)

    def take_ready(self) -> list[Registered]:
        """Let go what was seen to be verified, and return it."""
        ready, self._ready = self._ready, []
        return ready

    def was_asked(self, record: Datafile, now: float) -> bool | None:
        """Return whether verification was asked for; None where that was a moment ago."""
        asked = self._asked.get(record.id)
        if asked is None:
            return False
        return True if now - asked >= LOOK_AGAIN_AFTER else None

    def note_question(self, record: Datafile, now: float) -> None:
        """From now on only an answer later than the record's last one counts."""
        item = self.take(record)
        self._asked[record.id] = now
        self.add(item._replace(datafile=record.id, before=record.looks))

    def take_all(self) -> Iterator[list[Registered]]:
        """Let all go, a part at a time."""
        items = iter(self._new.values())
        while part := list(islice(items, MANY)):
            yield part
        self._new.clear()
        yield list(self._old.values())
        self._old.clear()


def key_of(item: Registered) -> Key:
    """Return the directory and name under which the server has a file."""
    file = item.wanted.file
    return file.directory.decode(), file.name.decode()


def _key(record: Datafile) -> Key:
    return record.directory or "", record.name


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
        self._watches: dict[DatasetId, PendingVerification] = {}
        self._resting: dict[
            DatasetId, PendingVerification
        ] = {}  # they know what we may be told of next
        self._offsets: dict[DatasetId, int] = {}  # where to go on with the listing of the others
        self._lost: Counter[bytes] = Counter()  # how often a record was not kept, by the file's key

    def __call__(self, source: StageInput[list[Registered]]) -> Iterator[Found]:
        rhythm = _PollInterval(self._clock, self._settings.verify_interval)
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

    def _await(self, source: StageInput[list[Registered]], rest: float) -> list[Registered] | None:
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

    def _open_watch(self, dataset: Dataset) -> PendingVerification:
        if dataset.id in self._resting:
            return self._resting.pop(dataset.id)
        rooms = PendingStores(self._ledger.open_room(), self._ledger.open_room())
        offset = self._offsets.get(dataset.id, dataset.files)
        return PendingVerification(dataset.id, offset, rooms, self._box)

    def _close_watch(self, watch: PendingVerification) -> None:
        """Look no more at a dataset, until more of it is registered."""
        del self._watches[watch.dataset]
        if watch.knows_more:
            self._resting[watch.dataset] = watch
        else:
            self._offsets[watch.dataset] = watch.offset

    def _look_patiently(self, watch: PendingVerification) -> Iterator[Found]:
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

    def _look(self, watch: PendingVerification) -> Iterator[Found]:
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
        self, watch: PendingVerification, records: list[Judged], *, impatient: bool
    ) -> Iterator[FileToSend]:
        """Ask for what is not verified, or send it again; `impatient` asks for all of it."""
        questions = 0
        for record, verdict in records:
            item = watch.find(record)
            if item is None:  # a listing and a question for its id told of it
                continue
            asked = watch.was_asked(record, self._find_moment())
            if asked is False:
                eager = verdict is VerificationState.REFUSED or bool(item.before)
                if eager or (impatient and questions < ASK_AT_ONCE):
                    questions += 1
                    self._ask(watch, record)
            elif asked and verdict is VerificationState.REFUSED:
                yield from self._send_again(watch.take(record), record)

    def _ask(self, watch: PendingVerification, record: Datafile) -> None:
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
            record_steps(self._ledger, [LedgerStep(item.wanted, EntryState.STAGED, item.checksum)])
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

    def _give_up(self, watch: PendingVerification) -> None:
        for item in chain.from_iterable(watch.take_all()):
            for file in item.wanted.files:
                self._emit(FileWaiting.of(file, STILL_PENDING))


class _PollInterval:
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
