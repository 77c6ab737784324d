"""Waits until the server has compared its replicas with our checksums, and records it."""

import logging
from collections.abc import Iterator, MutableMapping, Sequence
from enum import Enum
from itertools import chain, islice

from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.events import FileFailed, FileVerified, FileWaiting
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetStats,
    EntryState,
    Registered,
    Wanted,
)
from mydata_like.core.ports import Emit, Ledger, ServerAPI
from mydata_like.engine.bookkeeping import Step, record_steps
from mydata_like.engine.retry import Gate
from mydata_like.engine.workers import Source
from mydata_like.settings.schema import Advanced

logger = logging.getLogger(__name__)

SOON = 0.1  # seconds until the first look after something was registered
MANY = 1000  # so many newly verified datafiles are worth a page of the listing
ASK_AFTER = 10.0  # seconds without progress after which verification is asked for
ASK_AT_ONCE = 50

NEVER_VERIFIED = Problem(
    "verify.failed",
    "The server's copy does not match the checksum, even after the file was sent again.",
    "Ask the facility's administrator to look at the server's storage; then run again.",
)
STILL_PENDING = Problem(
    "verify.pending",
    "The server has the bytes, but has not verified them yet.",
    "Keep the local file. The next run looks again; if this stays, tell the administrator.",
)

Key = tuple[str, str]


class Verify:
    """The stage that polls: numbers of a dataset first, its listing only where that pays.

    It yields the files that have to be sent once more.
    """

    def __init__(
        self, server: ServerAPI, ledger: Ledger, emit: Emit, gate: Gate, settings: Advanced
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._emit = emit
        self._gate = gate
        self._settings = settings
        self._clock = gate.clock
        self._watches: dict[DatasetId, _Watch] = {}

    def __call__(self, source: Source[list[Registered]]) -> Iterator[Wanted]:
        interval, due = SOON, self._clock.monotonic()
        while self._watches or not source.finished:
            items = self._await(source, max(0.0, due - self._clock.monotonic()))
            if items and not self._watches:
                due = self._clock.monotonic() + SOON
            for item in items or ():
                self._watch(item)
            if self._clock.monotonic() < due:
                continue
            for watch in list(self._watches.values()):
                yield from self._look_patiently(watch)
            interval = SOON if items else min(interval * 1.5, self._settings.verify_interval)
            due = self._clock.monotonic() + interval

    def _await(self, source: Source[list[Registered]], rest: float) -> list[Registered] | None:
        """Return what has been registered, or None until the next look is due."""
        if source.finished:  # whose poll would not wait
            self._gate.rest(rest)
            return None
        return source.poll(rest if self._watches else None)

    def _watch(self, item: Registered) -> None:
        dataset = item.wanted.dataset
        if dataset.id not in self._watches:
            room: MutableMapping[Key, Registered] = self._ledger.open_room()
            self._watches[dataset.id] = _Watch(dataset, self._clock.monotonic(), room)
        self._watches[dataset.id].add(item)

    def _look_patiently(self, watch: "_Watch") -> Iterator[Wanted]:
        """Look at a dataset; one that cannot be looked at now holds no other back."""
        before = len(watch)
        try:
            yield from self._look(watch)
        except ItemError as error:
            logger.info("Dataset %d could not be looked at: %s", watch.dataset, error)
        if len(watch) < before:
            watch.progressed = self._clock.monotonic()
        elif self._quiet(watch) >= self._settings.verify_patience:
            self._give_up(watch)
        if not watch:
            del self._watches[watch.dataset]

    def _quiet(self, watch: "_Watch") -> float:
        """Return for how many seconds nothing has been verified."""
        return self._clock.monotonic() - watch.progressed

    def _look(self, watch: "_Watch") -> Iterator[Wanted]:
        stats = self._gate.call(lambda: self._server.fetch_stats(watch.dataset))
        if stats is not None and stats.total == stats.verified:
            for items in watch.take_new():
                self._finish(items)
        quiet = self._quiet(watch)
        if watch and watch.deserves_listing(stats, quiet):
            yield from self._compare(watch, impatient=quiet >= ASK_AFTER)

    def _compare(self, watch: "_Watch", *, impatient: bool) -> Iterator[Wanted]:
        """Compare the server's records with what is open; `impatient` asks for what is pending."""
        verified, questions = [], 0
        for record in self._gate.call(lambda: watch.fetch(self._server, thorough=impatient)):
            item = watch.find(record)
            if item is None:
                continue
            verdict = judge(record, item)
            if verdict is Verdict.VERIFIED:
                verified.append(watch.take(record))
            elif not watch.was_asked(record):
                eager = verdict is Verdict.REFUSED or item.since is not None
                if eager or (impatient and questions < ASK_AT_ONCE):
                    questions += 1
                    self._ask(watch, record)
            elif verdict is Verdict.REFUSED:
                yield from self._send_again(watch.take(record), record)
        self._finish(verified)

    def _ask(self, watch: "_Watch", record: Datafile) -> None:
        """Ask once; a server that will not be asked looks by itself now and then."""
        watch.note_question(record)
        try:
            self._gate.call(lambda: self._server.request_verification(record.id))
        except ItemError as error:
            logger.info("Datafile %d could not be asked for: %s", record.id, error)

    def _send_again(self, item: Registered, record: Datafile) -> Iterator[Wanted]:
        if item.wanted.round:
            for file in item.wanted.files:
                self._emit(
                    FileFailed(
                        path=file.key,
                        size=file.size,
                        problem=NEVER_VERIFIED,
                        modified_ns=file.modified_ns,
                    )
                )
            return
        logger.warning("The server did not verify datafile %d; it is sent again", record.id)
        uri = record.replicas[0].uri if record.replicas else item.wanted.remote
        yield item.wanted._replace(remote=uri, datafile=record, round=1)

    def _finish(self, items: Sequence[Registered]) -> None:
        record_steps(
            self._ledger,
            [
                Step(item.wanted, EntryState.VERIFIED, item.checksum, item.datafile)
                for item in items
            ],
        )
        for item in items:
            for file, checksum in item.wanted.checked_files(item.checksum):
                self._emit(FileVerified(path=file.key, size=file.size, checksum=checksum))

    def _give_up(self, watch: "_Watch") -> None:
        for item in chain.from_iterable(watch.take_all()):
            for file in item.wanted.files:
                self._emit(
                    FileWaiting(
                        path=file.key,
                        size=file.size,
                        problem=STILL_PENDING,
                        modified_ns=file.modified_ns,
                    )
                )


class Verdict(Enum):
    """What a record says about the bytes that we sent."""

    VERIFIED = "verified"
    REFUSED = "refused"
    PENDING = "pending"


def judge(record: Datafile, item: Registered) -> Verdict:
    """Return what the server found; a look it took before our bytes came says nothing."""
    looked = [replica for replica in record.replicas if replica.verified_at != item.since]
    if record.checksum != item.checksum:
        return Verdict.REFUSED
    if any(replica.verified for replica in looked):
        return Verdict.VERIFIED
    if any(replica.verified_at is not None for replica in looked):
        return Verdict.REFUSED
    return Verdict.PENDING


class _Watch:
    """What is open in one dataset: datafiles new in this run, and older ones by their ids."""

    def __init__(self, dataset: Dataset, now: float, room: MutableMapping[Key, Registered]) -> None:
        self.dataset = dataset.id
        self.progressed = now
        self._offset = dataset.files  # records come in the order of their making
        self._listed = 0
        self._new = room
        self._old: dict[DatafileId, Registered] = {}
        self._asked: set[DatafileId] = set()

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, item: Registered) -> None:
        if item.datafile is None:
            file = item.wanted.file
            self._new[file.directory.decode(), file.name.decode()] = item
        else:
            self._old[item.datafile] = item

    def deserves_listing(self, stats: DatasetStats | None, quiet: float) -> bool:
        """Return whether the records are worth a look: many verified, old ones, or silence."""
        if stats is None or self._old or quiet >= ASK_AFTER:
            return True
        worth = stats.verified - self._listed >= MANY
        self._listed = stats.verified if worth else self._listed
        return worth

    def fetch(self, server: ServerAPI, *, thorough: bool) -> list[Datafile]:
        """Return the records of what is open and the server has looked at; of new ones only those.

        It looks in the order of their making, more or less: after many that it has not looked at
        the rest is left for later. `thorough` looks at all, as records that vanish move later ones
        forward, and returns a few of the pending ones.
        """
        if thorough:
            self._offset = 0
        records = server.fetch_datafiles(list(self._old)) if self._old else []
        if self._new:
            records += self._list_new(server, thorough=thorough)
        return records

    def _list_new(self, server: ServerAPI, *, thorough: bool) -> list[Datafile]:
        told: list[Datafile] = []
        pending: list[Datafile] = []
        done, leading, in_a_row = 0, True, 0
        for record in server.list_datafiles(self.dataset, self._offset):
            leading = leading and record.verified
            done += leading
            in_a_row = 0 if record.verified else in_a_row + 1
            if in_a_row > MANY and not thorough:
                break
            item = self.find(record)
            if item and judge(record, item) is not Verdict.PENDING:
                told.append(record)
            elif item and thorough and len(pending) < ASK_AT_ONCE:
                pending.append(record)
        self._offset += done
        return told + pending

    def find(self, record: Datafile) -> Registered | None:
        return self._old.get(record.id) or self._new.get(_key(record))

    def take(self, record: Datafile) -> Registered:
        if record.id in self._old:
            return self._old.pop(record.id)
        return self._new.pop(_key(record))

    def was_asked(self, record: Datafile) -> bool:
        return record.id in self._asked

    def note_question(self, record: Datafile) -> None:
        """From now on only an answer later than the record's last one counts."""
        item = self.take(record)
        told = record.replicas[0].verified_at if record.replicas else None
        self._asked.add(record.id)
        self.add(item._replace(datafile=record.id, since=told))

    def take_new(self) -> Iterator[list[Registered]]:
        """Yield what is new in this run, a part at a time, and let it go."""
        items = iter(self._new.values())
        while part := list(islice(items, MANY)):
            yield part
        self._new.clear()

    def take_all(self) -> Iterator[list[Registered]]:
        yield from self.take_new()
        yield list(self._old.values())
        self._old.clear()


def _key(record: Datafile) -> Key:
    return record.directory or "", record.name
