"""What is known about a dataset: from the ledger where it agrees with the server's numbers."""

from mydata_like.core.model import Datafile, Dataset, LocalFile
from mydata_like.core.ports import Ledger, ServerAPI
from mydata_like.engine.retry import Gate
from mydata_like.engine.workers import KeyedOnce

Records = dict[tuple[str, str], Datafile]


class Knowledge:
    """Where to ask about datafiles: the ledger first, the server through the gate."""

    def __init__(self, server: ServerAPI, ledger: Ledger, gate: Gate) -> None:
        self.server = server
        self.ledger = ledger
        self.gate = gate

    def look_up(self, dataset: Dataset) -> "DatasetView":
        """Return a view of the dataset, which asks the server for numbers only."""
        return DatasetView(self, dataset)

    def ledger_agrees(self, dataset: Dataset) -> bool:
        """Return whether every datafile is verified and the ledger knows as many."""
        if not dataset.id:
            return False
        stats = self.gate.call(lambda: self.server.fetch_stats(dataset.id))
        if stats is None or stats.total != stats.verified:
            return False
        return stats == self.ledger.count_entries(dataset.id)

    def fetch_records(self, dataset: Dataset) -> Records:
        """Return all records of the dataset by directory and name: one listing."""
        listing = self.gate.call(lambda: list(self.server.list_datafiles(dataset.id)))
        return {(record.directory or "", record.name): record for record in listing}


class DatasetView:
    """One dataset during one run: the listing is fetched once, and only if it is needed."""

    def __init__(self, knowledge: Knowledge, dataset: Dataset) -> None:
        self.dataset = dataset
        self.agrees = knowledge.ledger_agrees(dataset)
        self._knowledge = knowledge
        self._listing: KeyedOnce[str, Records] = KeyedOnce()

    def find(self, file: LocalFile) -> Datafile | None:
        """Return the record of this name."""
        if not self.dataset.id:
            return None
        records = self._listing("", lambda: self._knowledge.fetch_records(self.dataset))
        return records.get((file.directory.decode(), file.name.decode()))
