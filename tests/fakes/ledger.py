"""A ledger that forgets when the test ends."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from mydata_like.core.archives import Archive
from mydata_like.core.model import AtRisk, DatasetId, DatasetStats, Entry, EntryState, LocalFile


class MemoryLedger:
    """Keeps entries in a dict; `history` has every row that was ever recorded."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.history: list[Entry] = []
        self.archives: dict[tuple[DatasetId, str], Archive] = {}
        self.found: dict[bytes, LocalFile] = {}  # files that exist only here
        self.record(list(entries))

    def find_entries(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        return {key: self.entries[key] for key in keys if key in self.entries}

    def find_open(self, dataset: DatasetId, files: Sequence[LocalFile]) -> set[bytes]:
        verified = {
            (entry.key, entry.size, entry.modified_ns)
            for entry in self.entries.values()
            if (entry.dataset, entry.state) == (dataset, EntryState.VERIFIED)
        }
        return {
            file.key for file in files if (file.key, file.size, file.modified_ns) not in verified
        }

    def open_room(self) -> dict[tuple[str, str], Any]:
        return {}

    def count_entries(self, dataset: DatasetId) -> DatasetStats:
        rows: list[Entry | Archive] = [
            entry
            for entry in list(self.entries.values())
            if entry.dataset == dataset and not entry.archive
        ]
        archives = self.find_archives(dataset).values()
        rows += [archive for archive in archives if archive.state is not EntryState.STAGED]
        return DatasetStats(len(rows), sum(row.state is EntryState.VERIFIED for row in rows))

    def record(self, entries: Sequence[Entry]) -> None:
        self.history.extend(entries)
        self.entries.update((entry.key, entry) for entry in entries)
        for key in [key for key, file in self.found.items() if self._is_verified(file)]:
            del self.found[key]

    def find_known_dataset(self, files: Sequence[LocalFile]) -> DatasetId | None:
        if not all(self._is_verified(file, exactly=True) for file in files):
            return None
        datasets = {self.entries[file.key].dataset for file in files}
        return datasets.pop() if len(datasets) == 1 else None

    def record_found(
        self, files: Sequence[LocalFile], since: datetime, *, unsent: bool = False
    ) -> int:
        left = [file for file in files if unsent or not self._is_verified(file, exactly=True)]
        news = [file for file in left if self.found.get(file.key) != file]
        self.found.update((file.key, file) for file in news)
        return len(news)

    def measure_risk(self) -> AtRisk:
        files = self.found.values()
        oldest = min((file.modified_ns for file in files), default=0)
        moment = datetime.fromtimestamp(oldest // 10**9, UTC) if oldest else None
        return AtRisk(len(files), sum(file.size for file in files), moment)

    def _is_verified(self, file: LocalFile, *, exactly: bool = False) -> bool:
        entry = self.entries.get(file.key)
        if entry is None or entry.state is not EntryState.VERIFIED:
            return False
        seen = entry.ctime_ns in (None, file.ctime_ns) and entry.inode in (None, file.inode)
        same = (entry.size, entry.modified_ns) == (file.size, file.modified_ns)
        return same and (seen or not exactly)

    def find_archives(self, dataset: DatasetId) -> dict[str, Archive]:
        found = {path: archive for (id_, path), archive in self.archives.items() if id_ == dataset}
        return dict(sorted(found.items()))

    def record_archive(self, archive: Archive, members: Sequence[Entry] | None = None) -> None:
        self.archives[archive.dataset, archive.path] = archive
        inside = {
            key: entry._replace(state=archive.state, datafile=archive.datafile)
            for key, entry in self.entries.items()
            if (entry.dataset, entry.archive) == (archive.dataset, archive.path)
        }
        if members is None:
            self.record(list(inside.values()))
            return
        for key in inside:
            del self.entries[key]
        self.record(members)

    def forget_archive(self, archive: Archive) -> None:
        self.record_archive(archive, [])
        del self.archives[archive.dataset, archive.path]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
