"""The records of a dataset, from the ledger where the server agrees with it."""

import logging
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

from mydata_like.catalogues.mytardis.server_api import ServerAPI
from mydata_like.core.archives import (
    ArchiveFormat,
    ArchiveRecord,
    ArchiveState,
    Indexed,
    archive_path,
    is_archive_name,
    judge_archive,
)
from mydata_like.core.errors import ArchiveError, ItemError, Problem, RejectedError
from mydata_like.core.events import Notice
from mydata_like.core.frozen import frozen
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    LOST,
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetListing,
    Entry,
    EntryState,
    NewestDatafile,
)
from mydata_like.core.ports import Clock, Emit, Ledger
from mydata_like.core.staging_path import staged_path
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import SingleFlight

logger = logging.getLogger(__name__)

ELSEWHERE = Problem(
    "server.elsewhere",
    "The local file differs from the server's copy, which is no longer in the staging area.",
    "Ask the facility's administrator to replace the datafile, or rename the local file.",
)

AT_ONCE = 1000  # rows per write

Records = Mapping[tuple[str, str], Datafile]


class ArchiveIndex(NamedTuple):
    """The archives of a dataset, according to a listing.

    `unread` states that some cannot be read until the server has verified them.
    """

    archives: Mapping[str, ArchiveRecord]
    unread: bool = False


class ArchiveRecovery:
    """The update of the ledger's archives from the server's records."""

    def __init__(
        self, server: ServerAPI, ledger: Ledger, gate: Gate, emit: Emit, form: ArchiveFormat
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._gate = gate
        self._emit = emit
        self._form = form

    def __call__(
        self, dataset: Dataset, folder: bytes, records: Records, before: Container[str]
    ) -> ArchiveIndex:
        """Return the archives of a dataset, given all of its records.

        `folder` is the dataset folder's path. `before` has the archives that were known before the
        records were fetched; the records say nothing about others, which are being uploaded. Raises
        `TransientError` if an archive on the server cannot be read now, because its files must not
        be sent again.
        """
        known: dict[str, ArchiveRecord] = {}
        for row in self._ledger.find_archives(dataset.id).values():
            record = records.get(row.place)
            if row.path not in before:
                known[row.path] = row
            elif self._is_gone(row, record):
                self._forget(row)
            else:
                known[row.path] = self._catch_up(row, record)
        unread = False
        for record in _unknown(records, known):
            if record.replicas and not record.verified and record.replicas[0].verified_at is None:
                unread = True
                continue
            archive = self._recover(record, folder)
            known[archive.path] = archive
        return ArchiveIndex(known, unread)

    def _is_gone(self, archive: ArchiveRecord, record: Datafile | None) -> bool:
        """Return whether the server has lost an archive; an unreadable archive is not lost."""
        if archive.state is EntryState.FAILED:
            return record is None
        return judge_archive(archive, record) is ArchiveState.GONE

    def _forget(self, archive: ArchiveRecord) -> None:
        if archive.state is EntryState.VERIFIED:
            self._emit(Notice(problem=_lost(archive)))
        self._ledger.forget_archive(archive)

    def _catch_up(self, archive: ArchiveRecord, record: Datafile | None) -> ArchiveRecord:
        """Record that an archive was verified, or is no longer verified, since the last check."""
        verdict, now = judge_archive(archive, record), archive
        if record and verdict is ArchiveState.VERIFIED:
            now = archive._replace(state=EntryState.VERIFIED, datafile=record.id)
        elif verdict is ArchiveState.REGISTERED and archive.state is EntryState.VERIFIED:
            now = archive._replace(state=EntryState.REGISTERED)
            self._emit(Notice(problem=_lost(archive)))
        if now != archive:
            self._ledger.record_archive(now)
        return now

    def _recover(self, record: Datafile, folder: bytes) -> ArchiveRecord:
        """Read an archive's index and record its members in the ledger.

        They count for a local file once it has been compared with the index.
        """
        index = self._read(record) if record.verified else None
        state = EntryState.FAILED if index is None else EntryState.VERIFIED
        archive = ArchiveRecord(
            record.dataset,
            archive_path(record.directory or "", record.name),
            record.size,
            max((member.modified_ns for member in index or ()), default=0),
            state,
            record.checksum,
            record.replicas[0].uri if record.replicas else "",
            record.id,
        )
        members = (member for member in index or () if member.checksum)
        while part := [_entry(archive, folder, each) for each in islice(members, AT_ONCE)]:
            known = self._ledger.find_entries([entry.key for entry in part])
            self._ledger.record([entry for entry in part if not _is_known(known.get(entry.key))])
        self._ledger.record_archive(archive)  # last: until then it is read again
        return archive

    def _read(self, record: Datafile) -> list[Indexed] | None:
        """Return an archive's index, or None if it is not an archive or may not be read."""
        logger.info("Reading the archive %s (datafile %d)", record.name, record.id)
        try:
            return self._gate.call(
                lambda: self._server.read_datafile(record, self._form.read_index)
            )
        except ArchiveError as error:
            self._report(f"The archive {record.name} on the server is ignored: {error.message}")
        except RejectedError as error:
            self._report(
                f"The server does not allow reading the archive {record.name}: {error.message}"
            )
        return None

    def _report(self, message: str) -> None:
        hint = "Its contents are unknown, so its files are sent again."
        self._emit(Notice(problem=Problem("archive.unreadable", message, hint)))


def _unknown(records: Records, known: Mapping[str, ArchiveRecord]) -> list[Datafile]:
    """Return records that may be archives, oldest first: later ones have later states of files."""
    possible = [
        records[directory, name]
        for directory, name in records
        if is_archive_name(name) and archive_path(directory, name) not in known
    ]
    return sorted(
        (it for it in possible if not (it.unfinished or it.fault)), key=lambda record: record.id
    )


def _entry(archive: ArchiveRecord, folder: bytes, member: Indexed) -> Entry:
    """Return the row of an archived file; its name there begins with the dataset's folder."""
    key = folder + b"/" + member.name.partition(b"/")[2]
    file = LocalFile(b"", key, b"", b"", member.size, member.modified_ns, 0, 0)
    return archive.entry(file, member.checksum)._replace(state=EntryState.REGISTERED)


def _is_known(entry: Entry | None) -> bool:
    """Return whether a row is based on a comparison with a local file, unlike an index."""
    return entry is not None and entry.ctime_ns != 0 and entry.state is EntryState.VERIFIED


def _lost(archive: ArchiveRecord) -> Problem:
    return Problem(
        LOST,
        f"The server no longer has the archive {archive.path} as verified: its record "
        "or its copy is missing or differs.",
        "Its files that are still on this computer are sent or verified again now. Notify the "
        "server's administrator: other copies may be lost as well.",
    )


AUDITS_AT_ONCE: Final = 1000  # rows that are compared per write
DAY: Final = 86_400
SPREAD: Final = 0.6180339887  # of a period, between the days of two consecutive datasets


@frozen(kw_only=True)
class AuditPolicy:
    """The storage box for our replicas, and the number of days between full comparisons."""

    box: str
    full_check_days: float = 7.0


class Audit:
    """The audit of "verified" rows against their records; rows that differ lose that state."""

    def __init__(self, ledger: Ledger, emit: Emit, clock: Clock, policy: AuditPolicy) -> None:
        self._ledger = ledger
        self._emit = emit
        self._clock = clock
        self._box = policy.box
        self._period = policy.full_check_days * DAY

    @property
    def is_always_due(self) -> bool:
        """Whether each run lists all datasets."""
        return not self._period

    def is_due(self, dataset: DatasetId, listed_at: datetime) -> bool:
        """Return whether the day of a dataset has come since its last full listing.

        Each dataset has its own day in the period, so that not all are due at once. A time of 0
        means that it is due now.
        """
        if self.is_always_due or not listed_at.timestamp():
            return True
        phase = dataset * SPREAD % 1
        then, now = (
            (moment.timestamp() / self._period + phase) // 1
            for moment in (listed_at, self._clock.now())
        )
        return then != now

    def __call__(self, dataset: Dataset, folder: bytes, records: Records) -> None:
        """Compare the ledger's rows of a dataset with its records; report what is lost.

        `folder` is the dataset folder's path.
        """
        lost = 0
        rows = self._ledger.iter_verified(dataset.id)
        strangers: list[Entry] = []
        while part := list(islice(rows, AUDITS_AT_ONCE)):
            inside = [row for row in part if row.key.startswith(folder + b"/")]
            strangers += [row for row in part if not row.key.startswith(folder + b"/")]
            lost += self._compare((row, records.get(_place(row, folder))) for row in inside)
        # Rows from a time when the folder had another place, or files from elsewhere: the current
        # place is unknown.
        lost += self._compare(_find_by_id(strangers, records))
        if lost:
            self._emit(Notice(problem=_lost_on_server(dataset, lost)))

    def _compare(self, pairs: Iterator[tuple[Entry, Datafile | None]]) -> int:
        """Compare rows with records; return how many have changed."""
        judged = [(row, self._judge(row, record)) for row, record in pairs]
        changed = [now for row, now in judged if now != row]
        if changed:
            self._ledger.record(changed)
        return sum(now.state in (EntryState.FAILED, EntryState.REGISTERED) for now in changed)

    def _judge(self, row: Entry, record: Datafile | None) -> Entry:
        """Return the row as it should be."""
        same = record and (record.size, record.checksum) == (row.size, row.checksum)
        if record is None or not same or not record.replicas:
            return row._replace(state=EntryState.FAILED, datafile=None, problem=LOST)
        copy = record.find_replica(self._box) or record
        if not copy.verified and row.state is EntryState.VERIFIED:
            return row._replace(state=EntryState.REGISTERED, datafile=record.id)
        return row._replace(datafile=record.id)


def _place(row: Entry, folder: bytes) -> tuple[str, str]:
    """Return the directory and the name of a file below its dataset folder."""
    directory, _, name = row.key[len(folder) + 1 :].rpartition(b"/")
    return directory.decode("utf-8", "surrogateescape"), name.decode("utf-8", "surrogateescape")


def _find_by_id(
    rows: Sequence[Entry], records: Mapping[tuple[str, str], Datafile]
) -> Iterator[tuple[Entry, Datafile | None]]:
    """Yield rows with their records; rows without a record's id stay as they are."""
    wanted = {row.datafile for row in rows if row.datafile is not None}
    found = {it.id: it for it in records.values() if it.id in wanted} if wanted else {}
    for row in rows:
        if row.datafile is not None:
            yield row, found.get(row.datafile)


def _lost_on_server(dataset: Dataset, files: int) -> Problem:
    what = "1 file" if files == 1 else f"{files} files"
    return Problem(
        LOST,
        f"The server no longer has {what} of the dataset {dataset.name} as verified: "
        "records or copies are missing or differ.",
        "Files still on this computer are sent or verified again now. Notify the server's "
        "administrator: other copies may be lost as well.",
    )


REQUEST_COST = 100  # records of a listing that cost as much as one request about a single file
NOTHING = NewestDatafile(0, 0)


class DatasetIndex:
    """The source of datafile records: the ledger first, then the server through the gate."""

    def __init__(
        self, server: ServerAPI, ledger: Ledger, gate: Gate, recovery: ArchiveRecovery, audit: Audit
    ) -> None:
        self.server = server
        self.ledger = ledger
        self.gate = gate
        self._recover = recovery
        self._audit = audit

    def look_up(self, dataset: Dataset, folder: bytes, above: int = 0) -> "DatasetView":
        """Return a view of a folder's dataset, which usually takes one request."""
        return DatasetView(self, dataset, folder, above)

    def prove(self, dataset: Dataset) -> DatasetListing | None:
        """Return the dataset's newest record if the dataset has exactly the records that we know.

        Each of them was compared with the ledger, in the last full listing or after it was created.
        The number of records and the id of the newest prove that none was removed since then and
        none was added by others. The number of verified replicas proves nothing, since a second
        replica of one file makes up for the lost one of another; but fewer than before mean that
        something was lost.
        """
        if not dataset.id:
            return None
        listed = self.ledger.find_listed(dataset.id)
        before = listed.newest if listed else NOTHING
        ours = self.ledger.count_records(dataset.id, before.id)
        expected = NewestDatafile(before.total + ours.total, max(before.id, ours.id))
        due = listed is not None and self._audit.is_due(dataset.id, listed.at)
        if due or (expected.total and self._audit.is_always_due):
            return None
        found = self.gate.call(lambda: self.server.fetch_newest(dataset.id, expected.total))
        if found != expected:
            return None
        if not found.total:
            return DatasetListing(found, self.gate.clock.now())
        verified = self._count_verified(dataset)
        known = listed.verified if listed else None
        newer = self.ledger.count_verified(dataset.id, 0 if known is None else before.id)
        if verified is not None and verified < (known or 0) + newer:
            logger.info("Dataset %d has fewer verified replicas than before", dataset.id)
            return None
        if listed is None or (found, verified) != (before, known):
            self.ledger.record_proven(dataset.id, found, verified)
        return self.ledger.find_listed(dataset.id)

    def _count_verified(self, dataset: Dataset) -> int | None:
        """Return the server's number of verified replicas, None if it does not count them."""
        try:
            stats = self.gate.call(lambda: self.server.fetch_stats(dataset.id))
        except ItemError as error:
            logger.info("The verified replicas of dataset %d are not known: %s", dataset.id, error)
            return None
        return stats.verified if stats else None

    def knows_all(self, dataset: DatasetId, found: NewestDatafile) -> bool:
        """Return whether the ledger has a row for each record of a dataset."""
        return self.ledger.count_records(dataset, until=found.id).total == found.total

    def fetch_by_id(self, ids: Sequence[DatafileId]) -> list[Datafile]:
        """Return those of these records that the server has, of any dataset."""
        return self.gate.call(lambda: self.server.fetch_datafiles(ids))

    def find_by_name(self, dataset: Dataset, name: str) -> list[Datafile]:
        """Return the dataset's records of this name, in any directory."""
        return self.gate.call(lambda: self.server.find_datafiles(dataset.id, name))

    def list_dataset(self, dataset: Dataset, folder: bytes, *, audit: bool) -> "KnownRecords":
        """Return all records of the dataset and the contents of its archives, from one listing.

        With `audit`, the ledger's rows of this dataset are correct afterwards; none of its files
        may be in transfer then.
        """
        if not dataset.id:
            return KnownRecords({}, ArchiveIndex({}))
        before = self.ledger.find_archives(dataset.id)
        verified = self._count_verified(dataset) if audit else None
        records, newest = self.gate.call(lambda: self._fetch(dataset))
        if audit:
            self._audit(dataset, folder, records)
        holdings = self._recover(dataset, folder, records, before)
        if audit and not holdings.unread:
            self.ledger.record_listed(dataset.id, newest, verified)
        return KnownRecords(records, holdings)

    def _fetch(self, dataset: Dataset) -> tuple[Records, NewestDatafile]:
        records: MutableMapping[tuple[str, str], Datafile] = self.ledger.open_mapping()
        total = newest = 0
        for record in self.server.list_datafiles(dataset.id):
            records[record.directory or "", record.name] = record
            total, newest = total + 1, max(newest, record.id)
        return records, NewestDatafile(total, newest)


class KnownRecords(NamedTuple):
    """The records of a dataset by directory and name, and the contents of its archives."""

    records: Records
    holdings: ArchiveIndex


class DatasetView:
    """One dataset during one run; its listing is fetched at most once, and only if needed.

    If the ledger agrees, usually only a few files differ. Their records are requested by their ids,
    many at once, or else one by one by name, until the listing would have been cheaper.
    """

    def __init__(
        self, knowledge: DatasetIndex, dataset: Dataset, folder: bytes, above: int
    ) -> None:
        self.dataset = dataset
        self.folder = folder
        self.above = above  # bytes of keys that patterns ignore
        self._proven = knowledge.prove(dataset)
        self._spare = self._proven.newest.total - REQUEST_COST if self._proven else 0
        self._knowledge = knowledge
        self._knows_all: bool | None = None
        self._listing: SingleFlight[str, KnownRecords] = SingleFlight()
        self._records: dict[tuple[str, str], Datafile] = {}  # those that were requested by id
        self.requested: dict[DatafileId, Datafile | None] = {}  # the same; None for missing ones

    @property
    def agrees(self) -> bool:
        """Whether the server has exactly the records that we know."""
        return self._proven is not None

    @property
    def compared(self) -> datetime | None:
        """When all records were last compared with the ledger; None if that is in this run."""
        return self._proven.at if self._proven else None

    @property
    def knows_all(self) -> bool:
        """Whether a file that is not in the ledger has no record here."""
        if self._knows_all is None:
            proven = self._proven
            self._knows_all = proven is not None and self._knowledge.knows_all(
                self.dataset.id, proven.newest
            )
        return self._knows_all

    @property
    def unread(self) -> bool:
        """Whether archives may have more members than are known now."""
        return not self.agrees and self._list().holdings.unread

    def settle(self) -> None:
        """Ensure that the ledger's rows of this dataset are correct; list it if in doubt."""
        if not self.agrees:
            self._list()

    def fetch(self, ids: Sequence[DatafileId]) -> None:
        """Request records that `find` is going to return, unless the listing is cheaper."""
        if self.wants(ids):
            self.add(ids, self._knowledge.fetch_by_id(ids))

    def wants(self, ids: Sequence[DatafileId]) -> bool:
        """Return whether there are records to request, and the listing is not cheaper."""
        return bool(ids) and self._spare > 0

    def add(self, ids: Sequence[DatafileId], found: Iterable[Datafile]) -> None:
        """Add the records that were requested by these ids; `found` may have others as well."""
        self._spare -= REQUEST_COST + len(ids)
        found = list(found)
        self.requested.update(dict.fromkeys(ids))
        self.requested.update((it.id, it) for it in found if it.id in self.requested)
        ours = (it for it in found if it.dataset == self.dataset.id)
        self._records.update(((it.directory or "", it.name), it) for it in ours)

    def find(self, file: LocalFile) -> Datafile | None:
        """Return the record of this name."""
        place = file.directory.decode(), file.name.decode()
        if place in self._records:
            return self._records[place]
        if self._spare <= 0:
            return self._list().records.get(place)
        found = self._knowledge.find_by_name(self.dataset, place[1])
        self._spare -= REQUEST_COST + len(found)
        return next((it for it in found if (it.directory or "", it.name) == place), None)

    def place(self, file: LocalFile) -> str:
        """Return the path of the server's own rule."""
        directory, name = file.directory.decode(), file.name.decode()
        return staged_path(self.dataset.name, self.dataset.id, directory, name)

    def find_obstacle(self, record: Datafile) -> Problem | None:
        return ELSEWHERE

    def find_archive(self, path: str) -> tuple[ArchiveRecord | None, Datafile | None]:
        """Return an archive of the ledger, and the server's record of it."""
        listing = self._list()
        archive = listing.holdings.archives.get(path)
        return archive, archive and listing.records.get(archive.place)

    def find_verified(self, path: str) -> ArchiveRecord | None:
        """Return an archive that the server has verified, according to the ledger."""
        archive = self._find_archives().get(path)
        return archive if archive and archive.state is EntryState.VERIFIED else None

    def is_archive(self, file: LocalFile) -> bool:
        """Return whether a local file has the name of an archive of other files."""
        if not file.name.endswith(b".tar") or not is_archive_name(file.name.decode()):
            return False
        path = archive_path(file.directory.decode(), file.name.decode())
        known = self._find_archives().get(path)
        return known is not None and known.state is not EntryState.FAILED

    def _find_archives(self) -> Mapping[str, ArchiveRecord]:
        if self.agrees:
            return self._knowledge.ledger.find_archives(self.dataset.id)
        return self._list().holdings.archives

    def _list(self) -> KnownRecords:
        return self._listing(
            "",
            lambda: self._knowledge.list_dataset(self.dataset, self.folder, audit=not self.agrees),
        )
