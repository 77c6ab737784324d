"""Compares what the ledger knows of a dataset with all that the server has, now and then."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from mydata_like.core.errors import Problem
from mydata_like.core.events import Notice
from mydata_like.core.model import (
    LOST,
    Datafile,
    Dataset,
    DatasetId,
    Entry,
    EntryState,
    Replica,
)
from mydata_like.core.ports import Clock, Emit, Ledger
from mydata_like.engine.archives import Records

AT_ONCE: Final = 1000  # rows that are compared between two writings
DAY: Final = 86_400
SPREAD: Final = 0.6180339887  # of a period, between the day of a dataset and that of the next


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPolicy:
    """Which storage box is ours, and after how many days each record is compared again."""

    box: str
    full_check_days: float = 7.0


class Audit:
    """Compares each row that says "verified" with its record; what differs says so no more."""

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
        """Return whether the day of a dataset has come since it was listed in full.

        Each dataset has its own day of the period, so that not all are due at once.
        """
        if self.is_always_due:
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
        while part := list(islice(rows, AT_ONCE)):
            inside = [row for row in part if row.key.startswith(folder + b"/")]
            strangers += [row for row in part if not row.key.startswith(folder + b"/")]
            lost += self._compare((row, records.get(_place(row, folder))) for row in inside)
        # Rows of a folder that was elsewhere, or came from elsewhere, then: its place is unknown.
        lost += self._compare(_find_by_id(strangers, records))
        if lost:
            self._emit(Notice(problem=_lost(dataset, lost)))

    def _compare(self, pairs: Iterator[tuple[Entry, Datafile | None]]) -> int:
        """Compare rows with records; return how many are not what they were."""
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
        copy = find_replica(record, self._box) or record
        if not copy.verified and row.state is EntryState.VERIFIED:
            return row._replace(state=EntryState.REGISTERED, datafile=record.id)
        return row._replace(datafile=record.id)


def find_replica(record: Datafile, box: str) -> Replica | None:
    """Return the replica of a record that is in this storage box, wherever it is listed."""
    return next((it for it in record.replicas if it.location == box), None)


def _place(row: Entry, folder: bytes) -> tuple[str, str]:
    """Return the directory and the name of a file below its dataset folder."""
    directory, _, name = row.key[len(folder) + 1 :].rpartition(b"/")
    return directory.decode("utf-8", "surrogateescape"), name.decode("utf-8", "surrogateescape")


def _find_by_id(
    rows: Sequence[Entry], records: Mapping[tuple[str, str], Datafile]
) -> Iterator[tuple[Entry, Datafile | None]]:
    """Yield rows with their records; those that do not say which it is are left as they are."""
    wanted = {row.datafile for row in rows if row.datafile is not None}
    found = {it.id: it for it in records.values() if it.id in wanted} if wanted else {}
    for row in rows:
        if row.datafile is not None:
            yield row, found.get(row.datafile)


def _lost(dataset: Dataset, files: int) -> Problem:
    what = "1 file" if files == 1 else f"{files} files"
    return Problem(
        LOST,
        f"The server no longer has {what} of the dataset {dataset.name} as it had verified them: "
        "their records or copies are gone, or differ.",
        "What is still on this computer is sent or verified again now. Tell the server's "
        "administrator: other copies may be lost, too.",
    )
