"""The stage that waits until the server has compared its replicas with our checksums."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from enum import Enum
from itertools import chain, islice
from math import inf
from typing import NamedTuple

from mydata_like.catalogues.mytardis.reverify import PollInterval, ask_all
from mydata_like.catalogues.mytardis.server_api import ServerAPI
from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.events import FileFailed, FileWaiting
from mydata_like.core.id_set import IdSet
from mydata_like.core.model import (
    Batch,
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetStats,
    EntryState,
    FileRecord,
    Replica,
)
from mydata_like.core.ports import Emit, Ledger
from mydata_like.engine.gate import Gate
from mydata_like.engine.outcome_recorder import record_states
from mydata_like.engine.pipeline import StageInput
from mydata_like.settings.schema import Advanced

MANY = 1000  # newly verified datafiles that are worth a page of the listing
ASK_AFTER = 10.0  # seconds without progress after which verification is requested
ASK_AT_ONCE = 50
# Caches in front of a server that ignore `no-cache` keep an answer for a second or two. So a
# missing or wrong record is believed only if another check, so many seconds later, shows it as
# well.
LOOK_AGAIN_AFTER = 3.0

Key = tuple[str, str]


class VerificationState(Enum):
    """The state of the bytes that we sent, according to a record."""

    VERIFIED = "verified"
    REFUSED = "refused"
    PENDING = "pending"


def judge(record: Datafile, item: FileRecord, box: str = "") -> VerificationState:
    """Return the server's result; a verification before our bytes arrived does not count.

    `box` is the storage box to which we upload. The replica at our path in it decides, since others
    may have other bytes. If there is none, the server has moved the file or chosen the place, and
    any replica counts.
    """
    size = item.file.size
    if record.fault:
        return VerificationState.PENDING
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


def _find_ours(record: Datafile, item: FileRecord, box: str) -> list[Replica]:
    """Return the replicas at the path to which we uploaded."""
    if item.placed_by_server:
        return []
    remote = item.remote
    return [it for it in record.replicas if it.uri == remote and (not box or it.location == box)]


def _is_new_look(replica: Replica, item: FileRecord) -> bool:
    """Return whether the server may have verified our bytes; it may not report the time.

    A record that had a replica before was verified with other bytes then.
    """
    if replica.verified_at is None:
        return replica.verified and not item.repairs
    return replica.verified_at not in item.looks


Judged = tuple[Datafile, VerificationState]
_Records = Mapping[DatafileId, Datafile]


class PendingStores(NamedTuple):
    """The storage for any number of datafiles of one dataset.

    `early` has records that were seen before they were known to be ours.
    """

    new: MutableMapping[Key, FileRecord]
    early: MutableMapping[Key, Datafile]


class PendingVerification:
    """The unverified datafiles of one dataset: new in this run, and older ones by id."""

    def __init__(self, dataset: DatasetId, offset: int, rooms: PendingStores, box: str) -> None:
        self.dataset = dataset
        self.progressed = 0.0
        self.offset = offset  # of the first record to be checked
        self._box = box
        self._known_before = offset  # records are listed in the order of their creation
        self._counted = 0  # the server's number of verified ones at the last listing
        self._stats: DatasetStats | None = None  # the server's numbers at that time
        self._listed_at = -inf
        self._new, self._early = rooms
        self._seen = 0  # how many of the new ones have an id, from a listing
        self._settled = IdSet()  # records behind the offset that need no further check
        self._old: dict[DatafileId, FileRecord] = {}
        self._asked: dict[DatafileId, float] = {}  # when verification was requested
        self._confirmed: set[DatafileId] = set()  # changed records that were verified once
        self._ready: Batch = []  # verified, with their ids
        self._missed: dict[Key, float] = {}  # when a complete listing first lacked it
        self._listed_all = False

    def __len__(self) -> int:
        return len(self._new) + len(self._old) + len(self._ready)

    def add(self, item: FileRecord) -> None:
        if item.datafile is not None:
            self._old[item.datafile] = item
            return
        key = key_of(item)
        record = self._early.pop(key, None) if self._early else None
        if record is not None and self.judge(record, item) is VerificationState.VERIFIED:
            item.datafile = record.id
            self._ready.append(item)
            return
        if record is not None:
            self.offset = 0
        self._new[key] = item

    @property
    def older(self) -> Collection[DatafileId]:
        """The records that are fetched by their ids, without any need for the server's numbers."""
        return self._old.keys()

    @property
    def knows_more(self) -> bool:
        """Whether records were seen that may later turn out to be ours."""
        return bool(self._early)

    def judge(self, record: Datafile, item: FileRecord) -> VerificationState:
        """Return what a record says about one of our files."""
        return judge(record, item, self._box)

    def deserves_listing(self, stats: DatasetStats | None, now: float) -> bool:
        """Return whether fetching the records is worthwhile.

        That is the case if the server's numbers suggest that many, or all, have been verified. The
        numbers prove nothing and may be wrong, so a long time without progress is a reason as well.
        """
        if stats is None or self.is_quiet(now) or self.should_recheck(now):
            return True
        enough = stats.verified - self._counted >= min(MANY, len(self._new))
        worth = enough or stats.total == stats.verified
        if not worth or (stats == self._stats and now - self._listed_at < LOOK_AGAIN_AFTER):
            return False
        self._stats, self._counted, self._listed_at = stats, stats.verified, now
        return True

    def is_quiet(self, now: float) -> bool:
        """Return whether nothing has been verified for so long that verification is requested."""
        return now - self.progressed >= ASK_AFTER

    def should_recheck(self, now: float) -> bool:
        """Return whether it is time to check again for what seems to be missing."""
        first = min(self._missed.values(), default=now)
        return now - first >= LOOK_AGAIN_AFTER

    def fetch(self, server: ServerAPI, older: _Records | None, *, thorough: bool) -> list[Judged]:
        """Fetch the records of unverified files, and return those that are not verified.

        `older` has the records of `self.older` and of others; they are fetched if it is None.
        Verified files are returned by `take_ready`, also after a fetch that failed halfway. Of the
        new files, only those are returned that the server has refused. Records are read roughly in
        the order of their creation; after a long series of unverified ones, the rest is left for
        later. `thorough` reads all of them, since deleted records move later ones forward, and
        returns a few of the pending ones.
        """
        if thorough:
            self.offset = 0
        judged: list[Judged] = []
        for record in self._find_older(server, older):
            item = self._old.get(record.id)
            verdict = self._see(record, item)
            if item and verdict is not VerificationState.VERIFIED:
                judged.append((record, verdict))
        if self._new:
            judged += self._list_new(server, thorough=thorough)
        return judged

    def _find_older(self, server: ServerAPI, fetched: _Records | None) -> Sequence[Datafile]:
        if fetched is None:
            return server.fetch_datafiles(list(self._old)) if self._old else ()
        return [fetched[number] for number in self._old if number in fetched]

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
                verdict is VerificationState.VERIFIED
                if item
                else self._is_irrelevant(record, position)
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

    def _see(self, record: Datafile, item: FileRecord | None) -> VerificationState:
        """Judge a record, and note that ours exists."""
        if item is None:
            return VerificationState.PENDING
        verdict = self.judge(record, item)
        if verdict is VerificationState.VERIFIED and not self._is_certain(record, item):
            return VerificationState.PENDING
        if verdict is VerificationState.VERIFIED:
            self._settled.add(record.id)
            self._ready.append(self.take(record))
        elif item.datafile is None:
            item.datafile = record.id
            self._new[key_of(item)] = item  # it may have been read from a file
            self._seen += 1
        return verdict

    def _is_certain(self, record: Datafile, item: FileRecord) -> bool:
        """Return whether a verification was of the bytes that the record describes now.

        The server may have verified the earlier bytes of a changed record just before, or be doing
        it. So only the second verification counts of those requested after the change.
        """
        if not item.looks or record.id in self._confirmed:
            return True
        if self._asked.pop(record.id, None) is not None:
            self._confirmed.add(record.id)
        return False

    def _is_irrelevant(self, record: Datafile, position: int) -> bool:
        """Return whether a record that is not one of ours needs no further check.

        A record that was created in this run may turn out to be ours a moment later.
        """
        if record.id in self._settled:
            return True
        if record.verified and position >= self._known_before:
            self._early[_key(record)] = record
            self._settled.add(record.id)
        return record.verified

    def find_missing(self, now: float, *, thorough: bool) -> Batch:
        """Remove and return files missing from two listings, the second of them `thorough`."""
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

    def find(self, record: Datafile) -> FileRecord | None:
        found = self._old.get(record.id) if self._old else None
        return found or self._new.get(_key(record))

    def take(self, record: Datafile) -> FileRecord:
        """Remove a record's file, and return it with its id."""
        if self._old and record.id in self._old:
            return self._old.pop(record.id)
        item = self._new.pop(_key(record))
        self._seen -= item.datafile is not None
        item.datafile = record.id
        return item

    def take_ready(self) -> Batch:
        """Remove and return the files that were seen to be verified."""
        ready, self._ready = self._ready, []
        for item in ready:
            item.state = EntryState.VERIFIED
        return ready

    def was_asked(self, record: Datafile, now: float) -> bool | None:
        """Return whether verification was requested; None if that was just now."""
        asked = self._asked.get(record.id)
        if asked is None:
            return False
        return True if now - asked >= LOOK_AGAIN_AFTER else None

    def note_request(self, record: Datafile, now: float) -> None:
        """From now on, accept only a verification later than the record's last one."""
        item = self.take(record)
        self._asked[record.id] = now
        item.looks = record.looks
        self.add(item)

    def take_all(self) -> Iterator[Batch]:
        """Remove and yield all files, in parts."""
        items = iter(self._new.values())
        while part := list(islice(items, MANY)):
            yield part
        self._new.clear()
        yield list(self._old.values())
        self._old.clear()


def key_of(item: FileRecord) -> Key:
    """Return the directory and name of a file on the server."""
    file = item.file
    return file.directory.decode(), file.name.decode()


def _key(record: Datafile) -> Key:
    return record.directory or "", record.name


logger = logging.getLogger(__name__)

RECORDS_LOST = 3  # times that a record is created again that the server has not stored

NEVER_VERIFIED = Problem(
    "verify.failed",
    "The server's copy does not match the checksum, even after the file was sent again.",
    "Ask the facility's administrator to check the server's storage; then run again.",
)
NEVER_KEPT = Problem(
    "register.lost",
    "The server has repeatedly confirmed the record of this file without storing it.",
    "Ask the server's administrator whether a gateway or a proxy in front of the server answers "
    "in its place.",
)
STILL_PENDING = Problem(
    "verify.pending",
    "The server has the file, but has not verified it yet.",
    "Keep the local file. The next run checks again. If this persists, contact the administrator.",
)


class Verification(NamedTuple):
    """The time limits of the wait, and the storage box of our replicas."""

    settings: Advanced
    box: str


class Verify:
    """The stage that polls a dataset's numbers, and its listing only if that is worthwhile.

    Numbers never make a file verified: each record must be seen in a listing. The stage yields
    verified files, files that must be sent again, and files whose records the server has not
    stored.
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
        ] = {}  # they have records that may turn out to be ours
        self._offsets: dict[DatasetId, int] = {}  # where to continue with the listing of the others
        self._lost: Counter[bytes] = Counter()  # records not stored, by the file's key
        self._separately = False  # whether records are fetched for each dataset alone

    def __call__(self, source: StageInput[Batch]) -> Iterator[Batch]:
        rhythm = PollInterval(self._clock, self._settings.verify_interval)
        while self._watches or not source.finished:
            items = self._await(source, rhythm.rest)
            if items:
                rhythm.note_registered(first=not self._watches)
            for item in items or ():
                self._watch(item)
            if source.finished:
                rhythm.note_end()
            if rhythm.rest:
                continue
            older = self._fetch_older()
            for watch in list(self._watches.values()):
                yield from self._look_or_log(watch, older)
            rhythm.step(news=bool(items))

    def _await(self, source: StageInput[Batch], rest: float) -> Batch | None:
        """Return what has been registered, or None when the next check is due."""
        if source.finished:  # a finished source does not wait
            self._gate.rest(rest)
            return None
        return source.poll(rest if self._watches else None)

    def _watch(self, item: FileRecord) -> None:
        dataset = item.dataset
        if dataset.id not in self._watches:
            watch = self._open_watch(dataset)
            watch.progressed = self._find_moment()
            self._watches[dataset.id] = watch
        self._watches[dataset.id].add(item)

    def _fetch_older(self) -> _Records | None:
        """Return the older records of all datasets; None if each must be fetched separately.

        A record that is invalid must not keep those of other datasets from being checked.
        """
        numbers = [number for watch in self._watches.values() for number in watch.older]
        if not numbers or self._separately:
            return None
        try:
            records = self._gate.call(lambda: self._server.fetch_datafiles(numbers))
        except ItemError as error:
            logger.info("%d records could not be fetched together: %s", len(numbers), error)
            self._separately = True
            return None
        return {record.id: record for record in records}

    def _open_watch(self, dataset: Dataset) -> PendingVerification:
        if dataset.id in self._resting:
            return self._resting.pop(dataset.id)
        rooms = PendingStores(self._ledger.open_mapping(), self._ledger.open_mapping())
        offset = self._offsets.get(dataset.id, dataset.files)
        return PendingVerification(dataset.id, offset, rooms, self._box)

    def _close_watch(self, watch: PendingVerification) -> None:
        """Stop watching a dataset until more of its files are registered."""
        del self._watches[watch.dataset]
        if watch.knows_more:
            self._resting[watch.dataset] = watch
        else:
            self._offsets[watch.dataset] = watch.offset

    def _look_or_log(self, watch: PendingVerification, older: _Records | None) -> Iterator[Batch]:
        """Check a dataset; one that cannot be checked now does not block the others."""
        before = len(watch)
        try:
            yield from self._look(watch, older)
        except ItemError as error:
            logger.info("Dataset %d could not be checked: %s", watch.dataset, error)
        if len(watch) < before:
            watch.progressed = self._find_moment()
        elif self._find_moment() - watch.progressed >= self._settings.verify_patience:
            self._give_up(watch)
        if not watch:
            self._close_watch(watch)

    def _find_moment(self) -> float:
        """Return the time on a clock that stops while the run is stopped."""
        return self._clock.monotonic() - self._gate.stopped

    def _look(self, watch: PendingVerification, older: _Records | None) -> Iterator[Batch]:
        if ready := watch.take_ready():
            yield ready
        if not watch:
            return
        now = self._find_moment()
        if not (watch.older or self._is_worthwhile(watch, now)):
            return
        impatient = watch.is_quiet(now)
        thorough = impatient or watch.should_recheck(now)
        records = self._gate.call(lambda: watch.fetch(self._server, older, thorough=thorough))
        if ready := watch.take_ready():
            yield ready
        yield from self._resolve(watch, records, impatient=impatient)
        for item in watch.find_missing(now, thorough=thorough):
            yield from self._register_again(item)

    def _is_worthwhile(self, watch: PendingVerification, now: float) -> bool:
        stats = self._gate.call(lambda: self._server.fetch_stats(watch.dataset))
        return watch.deserves_listing(stats, now)

    def _resolve(
        self, watch: PendingVerification, records: list[Judged], *, impatient: bool
    ) -> Iterator[Batch]:
        """Request verification, or send files again; `impatient` requests it for all."""
        unasked: list[Datafile] = []
        for record, verdict in records:
            item = watch.find(record)
            if item is None:  # it was seen in a listing and in a request for its id
                continue
            asked = watch.was_asked(record, self._find_moment())
            if asked is False:
                # The server does not verify a changed record automatically.
                eager = verdict is VerificationState.REFUSED or bool(item.looks)
                if eager or (impatient and len(unasked) < ASK_AT_ONCE):
                    unasked.append(record)
            elif asked and verdict is VerificationState.REFUSED:
                yield from self._send_again(watch.take(record), record)
        self._ask(watch, unasked)

    def _ask(self, watch: PendingVerification, records: Sequence[Datafile]) -> None:
        for record in records:
            watch.note_request(record, self._find_moment())
        ask_all(self._server, self._gate, [record.id for record in records])

    def _send_again(self, item: FileRecord, record: Datafile) -> Iterator[Batch]:
        if item.round:
            self._fail(item, NEVER_VERIFIED)
            return
        logger.warning("The server did not verify datafile %d; it is sent again", record.id)
        moved = record.replicas and not record.copies_at(item.remote)
        uri = record.replicas[0].uri if moved else item.remote
        item.remote, item.earlier, item.round, item.release = uri, record, 1, True
        yield [item.send_again()]

    def _register_again(self, item: FileRecord) -> Iterator[Batch]:
        """Register a file again whose record was acknowledged and not stored, a few times.

        If the server has chosen the place of the bytes, these are lost as well.
        """
        key = item.file.key
        self._lost[key] += 1
        item.state = EntryState.STAGED
        if not item.placed_by_server:
            record_states(self._ledger, [item])
        if self._lost[key] > RECORDS_LOST:
            self._fail(item, NEVER_KEPT)
            return
        logger.warning("The server has not stored the record of %s", item.remote)
        yield [item.send_again() if item.placed_by_server else item]

    def _fail(self, item: FileRecord, problem: Problem) -> None:
        for file in item.files:
            self._emit(FileFailed.of(file, problem))

    def _give_up(self, watch: PendingVerification) -> None:
        for item in chain.from_iterable(watch.take_all()):
            for file in item.files:
                self._emit(FileWaiting.of(file, STILL_PENDING))
