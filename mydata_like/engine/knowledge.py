"""What is known about a dataset: from the ledger where it agrees with the server's numbers."""

from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from mydata_like.core.archives import Archive, archive_path, is_archive_name
from mydata_like.core.model import (
    Datafile,
    Dataset,
    DatasetStats,
    Entry,
    EntryState,
    LocalFile,
)
from mydata_like.core.ports import Ledger, ServerAPI
from mydata_like.engine.archives import Holdings, Recall, Records
from mydata_like.engine.once import KeyedOnce
from mydata_like.engine.retry import Gate

QUESTION = 100  # so many records of a listing cost as much as a question about one file


class Knowledge:
    """Where to ask about datafiles: the ledger first, the server through the gate."""

    def __init__(self, server: ServerAPI, ledger: Ledger, gate: Gate, recall: Recall) -> None:
        self.server = server
        self.ledger = ledger
        self.gate = gate
        self._recall = recall

    def look_up(self, dataset: Dataset, folder: bytes) -> "DatasetView":
        """Return a view of the dataset of a folder, which asks the server for numbers only."""
        return DatasetView(self, dataset, folder)

    def find_agreed(self, dataset: Dataset) -> DatasetStats | None:
        """Return the server's numbers where all is verified and the ledger knows as many."""
        if not dataset.id:
            return None
        stats = self.gate.call(lambda: self.server.fetch_stats(dataset.id))
        if stats is None or stats.total != stats.verified:
            return None
        return stats if stats == self.ledger.count_entries(dataset.id) else None

    def ask_for(self, dataset: Dataset, name: str) -> list[Datafile]:
        """Return the dataset's records of this name, whatever their directories are."""
        return self.gate.call(lambda: self.server.find_datafiles(dataset.id, name))

    def list_dataset(self, dataset: Dataset, folder: bytes) -> "Listing":
        """Return all records of the dataset, and what its archives hold: one listing."""
        if not dataset.id:
            return Listing({}, Holdings({}, {}))
        records = self.gate.call(lambda: self._fetch(dataset))
        return Listing(records, self._recall(dataset, folder, records))

    def _fetch(self, dataset: Dataset) -> Records:
        records: MutableMapping[tuple[str, str], Datafile] = self.ledger.open_room()
        for record in self.server.list_datafiles(dataset.id):
            records[record.directory or "", record.name] = record
        return records


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
        agreed = knowledge.find_agreed(dataset)
        self.agrees = agreed is not None
        self._spare = agreed.total - QUESTION if agreed else 0
        self._knowledge = knowledge
        self._listing: KeyedOnce[str, Listing] = KeyedOnce()

    @property
    def unread(self) -> bool:
        """Whether archives may hold more than is known of them now."""
        return self._list().holdings.unread

    def find(self, file: LocalFile) -> Datafile | None:
        """Return the record of this name."""
        place = file.directory.decode(), file.name.decode()
        if self._spare <= 0:
            return self._list().records.get(place)
        found = self._knowledge.ask_for(self.dataset, place[1])
        self._spare -= QUESTION + len(found)
        return next((it for it in found if (it.directory or "", it.name) == place), None)

    def find_inside(self, file: LocalFile) -> Entry | None:
        """Return the row of a file that was found in an archive which the ledger had not known."""
        return None if self.agrees else self._list().holdings.inside.get(file.key)

    def find_archive(self, path: str) -> tuple[Archive | None, Datafile | None]:
        """Return an archive that the ledger knows, and the server's record of it."""
        listing = self._list()
        archive = listing.holdings.archives.get(path)
        return archive, archive and listing.records.get(archive.place)

    def is_archive(self, file: LocalFile) -> bool:
        """Return whether a local file has the name of an archive that holds other files."""
        if not file.name.endswith(b".tar") or not is_archive_name(file.name.decode()):
            return False
        path = archive_path(file.directory.decode(), file.name.decode())
        known = self._find_archives().get(path)
        return known is not None and known.state is not EntryState.FAILED

    def _find_archives(self) -> Mapping[str, Archive]:
        if self.agrees:
            return self._knowledge.ledger.find_archives(self.dataset.id)
        return self._list().holdings.archives

    def _list(self) -> Listing:
        return self._listing("", lambda: self._knowledge.list_dataset(self.dataset, self.folder))
