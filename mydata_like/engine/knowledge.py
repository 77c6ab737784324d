"""What is known about a dataset: from the ledger where it agrees with what the server has."""

from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from mydata_like.core.archives import ArchiveRecord, archive_path, is_archive_name
from mydata_like.core.model import (
    Datafile,
    Dataset,
    DatasetId,
    EntryState,
    LocalFile,
    NewestDatafile,
)
from mydata_like.core.ports import Ledger, ServerAPI
from mydata_like.engine.archives import Holdings, Recall, Records
from mydata_like.engine.audit import Audit
from mydata_like.engine.once import KeyedOnce
from mydata_like.engine.retry import Gate

QUESTION = 100  # so many records of a listing cost as much as a question about one file
NOTHING = NewestDatafile(0, 0)


class Knowledge:
    """Where to ask about datafiles: the ledger first, the server through the gate."""

    def __init__(
        self, server: ServerAPI, ledger: Ledger, gate: Gate, recall: Recall, audit: Audit
    ) -> None:
        self.server = server
        self.ledger = ledger
        self.gate = gate
        self._recall = recall
        self._audit = audit

    def look_up(self, dataset: Dataset, folder: bytes) -> "DatasetView":
        """Return a view of the dataset of a folder; as a rule that costs one question."""
        return DatasetView(self, dataset, folder)

    def prove(self, dataset: Dataset) -> NewestDatafile | None:
        """Return what the dataset has, where that is the very set of records that we know.

        Each of them was compared with what the ledger says, in the last full listing or after it
        was made. The number of records and the id of the newest prove that since then none has
        gone and none has come from elsewhere.
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
        if listed is None and found.total:
            self.ledger.record_listed(dataset.id, found)
        return found

    def knows_all(self, dataset: DatasetId, found: NewestDatafile) -> bool:
        """Return whether the ledger has a row for each record that a dataset had."""
        return self.ledger.count_records(dataset, until=found.id).total == found.total

    def ask_for(self, dataset: Dataset, name: str) -> list[Datafile]:
        """Return the dataset's records of this name, whatever their directories are."""
        return self.gate.call(lambda: self.server.find_datafiles(dataset.id, name))

    def list_dataset(self, dataset: Dataset, folder: bytes, *, audit: bool) -> "Listing":
        """Return all records of the dataset, and what its archives hold: one listing.

        With `audit` what the ledger says of this dataset is right from then on; files of it must
        not be on their way yet.
        """
        if not dataset.id:
            return Listing({}, Holdings({}))
        before = self.ledger.find_archives(dataset.id)
        records, newest = self.gate.call(lambda: self._fetch(dataset))
        if audit:
            self._audit(dataset, folder, records)
        holdings = self._recall(dataset, folder, records, before)
        if audit and not holdings.unread:
            self.ledger.record_listed(dataset.id, newest)
        return Listing(records, holdings)

    def _fetch(self, dataset: Dataset) -> tuple[Records, NewestDatafile]:
        records: MutableMapping[tuple[str, str], Datafile] = self.ledger.open_room()
        total = newest = 0
        for record in self.server.list_datafiles(dataset.id):
            records[record.directory or "", record.name] = record
            total, newest = total + 1, max(newest, record.id)
        return records, NewestDatafile(total, newest)


class Listing(NamedTuple):
    """The records of a dataset by directory and name, and what its archives hold."""

    records: Records
    holdings: Holdings


class DatasetView:
    """One dataset during one run: the listing is fetched once, and only if it is needed.

    Where the ledger agrees, few files differ as a rule: their records are asked for one by one
    until the listing would have been cheaper.
    """

    def __init__(self, knowledge: Knowledge, dataset: Dataset, folder: bytes) -> None:
        self.dataset = dataset
        self.folder = folder
        self._found = knowledge.prove(dataset)
        self._spare = self._found.total - QUESTION if self._found else 0
        self._knowledge = knowledge
        self._knows_all: bool | None = None
        self._listing: KeyedOnce[str, Listing] = KeyedOnce()

    @property
    def agrees(self) -> bool:
        """Whether the server has the very set of records that we know."""
        return self._found is not None

    @property
    def knows_all(self) -> bool:
        """Whether a file that the ledger does not know has no record here."""
        if self._knows_all is None:
            found = self._found
            self._knows_all = found is not None and self._knowledge.knows_all(
                self.dataset.id, found
            )
        return self._knows_all

    @property
    def unread(self) -> bool:
        """Whether archives may hold more than is known of them now."""
        return not self.agrees and self._list().holdings.unread

    def settle(self) -> None:
        """Make sure that what the ledger says of this dataset is right: list where it may not."""
        if not self.agrees:
            self._list()

    def find(self, file: LocalFile) -> Datafile | None:
        """Return the record of this name."""
        place = file.directory.decode(), file.name.decode()
        if self._spare <= 0:
            return self._list().records.get(place)
        found = self._knowledge.ask_for(self.dataset, place[1])
        self._spare -= QUESTION + len(found)
        return next((it for it in found if (it.directory or "", it.name) == place), None)

    def find_archive(self, path: str) -> tuple[ArchiveRecord | None, Datafile | None]:
        """Return an archive that the ledger knows, and the server's record of it."""
        listing = self._list()
        archive = listing.holdings.archives.get(path)
        return archive, archive and listing.records.get(archive.place)

    def find_verified(self, path: str) -> ArchiveRecord | None:
        """Return an archive that the server has verified, by what the ledger says of it."""
        archive = self._find_archives().get(path)
        return archive if archive and archive.state is EntryState.VERIFIED else None

    def is_archive(self, file: LocalFile) -> bool:
        """Return whether a local file has the name of an archive that holds other files."""
        if not file.name.endswith(b".tar") or not is_archive_name(file.name.decode()):
            return False
        path = archive_path(file.directory.decode(), file.name.decode())
        known = self._find_archives().get(path)
        return known is not None and known.state is not EntryState.FAILED

    def _find_archives(self) -> Mapping[str, ArchiveRecord]:
        if self.agrees:
            return self._knowledge.ledger.find_archives(self.dataset.id)
        return self._list().holdings.archives

    def _list(self) -> Listing:
        return self._listing(
            "",
            lambda: self._knowledge.list_dataset(self.dataset, self.folder, audit=not self.agrees),
        )
