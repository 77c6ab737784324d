"""A ledger in memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any, Self

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    AtRisk,
    ChangeChoice,
    ChangedFile,
    DatafileId,
    DatasetId,
    DatasetListing,
    EarlierWrite,
    Entry,
    EntryState,
    HoldReason,
    KeptCopy,
    KnownParts,
    NewestDatafile,
    OpenFiles,
    Recheck,
    Replacement,
    hash_key,
    hash_keys,
    read_hashes,
)
from mydata_like.core.parsing import moment_of
from tests.fakes.clock import FakeClock


class MemoryLedger:
    """A ledger that stores entries in a dict; `history` has every row that was ever recorded."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.history: list[Entry] = []
        self.archives: dict[tuple[DatasetId, str], ArchiveRecord] = {}
        self.spot_checks: dict[DatafileId, bytes] = {}
        self.found: dict[bytes, LocalFile] = {}  # files that exist only here
        self.listed: dict[DatasetId, DatasetListing] = {}
        self.doubted: set[bytes] = set()
        self.clock = FakeClock()
        self.writes: dict[DatasetId, datetime] = {}
        self.replacements: dict[bytes, Replacement] = {}
        self.kept: dict[tuple[bytes, str], KeptCopy] = {}
        self.changed: dict[bytes, ChangedFile] = {}
        self.meta: dict[str, str] = {}
        self.batches: dict[int, list[bytes]] = {}
        self.parts: dict[DatasetId, dict[bytes, tuple[int, bytes]]] = {}
        self.known: dict[bytes, tuple[DatasetId, int, bytes]] = {}
        self.touched: list[bytes] = []  # keys of verified rows that have changed
        self.record(list(entries))

    def find_entries(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        return {key: self.entries[key] for key in keys if key in self.entries}

    def find_of_inodes(self, inodes: Sequence[int]) -> list[Entry]:
        stored = EntryState.VERIFIED, EntryState.REGISTERED
        return [
            entry
            for entry in self.entries.values()
            if entry.inode in inodes and entry.state in stored and not entry.archive
        ]

    def forget(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.entries.pop(entry.key, None)

    def find_verified(self, dataset: DatasetId, keys: Sequence[bytes]) -> dict[bytes, DatafileId]:
        return {
            key: entry.datafile
            for key, entry in self.find_entries(keys).items()
            if (entry.state, entry.dataset) == (EntryState.VERIFIED, dataset)
            if entry.datafile is not None
        }

    def begin_listing(self, dataset: DatasetId) -> KnownParts:
        parts = self.parts.get(dataset, {})
        known = (digest for digest, part in parts.items() if self._is_known(*part))
        return KnownParts(len(self.touched), frozenset(known))

    def record_listing(
        self, dataset: DatasetId, known: KnownParts, same: Mapping[bytes, bytes]
    ) -> None:
        parts = self.parts.get(dataset, {})
        self.parts[dataset] = {
            digest: parts[digest] if digest in known.digests else (known.seq, keys)
            for digest, keys in same.items()
        }

    def find_known(self, digests: Sequence[bytes]) -> dict[bytes, DatasetId]:
        found = {digest: self.known[digest] for digest in digests if digest in self.known}
        return {digest: of for digest, (of, *part) in found.items() if self._is_known(*part)}

    def _is_known(self, seq: int, keys: bytes) -> bool:
        return {*read_hashes(keys)}.isdisjoint(map(hash_key, self.touched[seq:]))

    def find_open_parts(
        self, parts: Sequence[tuple[bytes, Sequence[LocalFile]]]
    ) -> list[OpenFiles]:
        found = [self.find_open(files) for _, files in parts]
        for (digest, files), it in zip(parts, found, strict=True):
            if digest and not it.keys and len(it.datasets) == 1:
                keys = hash_keys(file.key for file in files)
                self.known[digest] = (*it.datasets, len(self.touched), keys)
        return found

    def find_open(self, files: Sequence[LocalFile]) -> OpenFiles:
        known = {file.key: self.entries.get(file.key) for file in files}
        well = {
            entry.key: entry.dataset
            for file in files
            if (entry := known[file.key])
            and entry.state is EntryState.VERIFIED
            and None not in (entry.datafile, entry.ctime_ns, entry.inode)
            and entry.is_of(file)
        }
        return OpenFiles(frozenset(known.keys() - well.keys()), frozenset(well.values()))

    def iter_verified(self, dataset: DatasetId) -> Iterator[Entry]:
        rows = list(self.entries.values())
        verified = EntryState.VERIFIED
        return (
            row for row in rows if (row.dataset, row.state, row.archive) == (dataset, verified, "")
        )

    def count_records(
        self, dataset: DatasetId, after: int = 0, until: int = 2**63 - 1
    ) -> NewestDatafile:
        rows: list[Entry | ArchiveRecord] = [
            *(row for row in list(self.entries.values()) if row.dataset == dataset),
            *self.find_archives(dataset).values(),
        ]
        ids = {row.datafile for row in rows if row.datafile and after < row.datafile <= until}
        return NewestDatafile(len(ids), max(ids, default=0))

    def count_verified(self, dataset: DatasetId, after: int = 0) -> int:
        rows: list[Entry | ArchiveRecord] = [
            *(row for row in list(self.entries.values()) if row.dataset == dataset),
            *self.find_archives(dataset).values(),
        ]
        verified = (row for row in rows if row.state is EntryState.VERIFIED)
        return len({row.datafile for row in verified if row.datafile and row.datafile > after})

    def find_listed(self, dataset: DatasetId) -> DatasetListing | None:
        return self.listed.get(dataset)

    def record_listed(
        self, dataset: DatasetId, newest: NewestDatafile, verified: int | None
    ) -> None:
        self.listed[dataset] = DatasetListing(newest, self.clock.now(), verified)

    def record_proven(
        self, dataset: DatasetId, newest: NewestDatafile, verified: int | None
    ) -> None:
        known = self.listed.get(dataset)
        at = known.at if known else self.clock.now()
        self.listed[dataset] = DatasetListing(newest, at, verified)

    def add_spot_checks(self, entries: Sequence[Entry]) -> None:
        self.spot_checks.update((it.datafile, it.key) for it in entries if it.datafile)

    def find_spot_checks(self, most: int) -> dict[DatafileId, bytes]:
        return dict(sorted(self.spot_checks.items())[:most])

    def forget_spot_checks(self, records: Sequence[DatafileId]) -> None:
        for record in records:
            self.spot_checks.pop(record, None)

    def recheck(self, found: Iterable[Recheck]) -> int:
        files = 0
        for it in found:
            self.listed[it.dataset] = DatasetListing(NewestDatafile(0, 0), moment_of(0))
            doubted = [
                row._replace(state=EntryState.REPAIRED)
                for row in self.entries.values()
                if row.dataset == it.dataset and row.state is EntryState.VERIFIED
                if it == Recheck(it.dataset)
                or it.key == row.key
                or row.archive == (it.archive or None)
            ]
            self.record(doubted)
            self.doubted.update(row.key for row in doubted)
            files += len(doubted)
        return files

    def is_doubted(self, key: bytes) -> bool:
        return key in self.doubted

    def open_mapping(self) -> dict[tuple[str, str], Any]:
        return {}

    def record(self, entries: Sequence[Entry]) -> None:
        self.history.extend(entries)
        for entry in entries:
            earlier = self.entries.get(entry.key)
            if earlier and earlier.state is EntryState.VERIFIED and entry != earlier:
                self.touched.append(entry.key)
        self.entries.update((entry.key, entry) for entry in entries)
        for key in [key for key, file in self.found.items() if self._is_verified(file)]:
            del self.found[key]

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

    def record_late(self, entries: Sequence[Entry]) -> None:
        self.record(entries)

    def record_replacements(self, replacements: Sequence[Replacement]) -> None:
        self.replacements.update((it.key, it) for it in replacements)

    def find_replacements(self) -> list[Replacement]:
        return [self.replacements[key] for key in sorted(self.replacements)]

    def forget_replacements(self, replacements: Sequence[Replacement]) -> None:
        for it in replacements:
            if self.replacements.get(it.key, it).checksum == it.checksum:
                self.replacements.pop(it.key, None)

    def note_batch(self, keys: Sequence[bytes]) -> int:
        note = max(self.batches, default=0) + 1
        self.batches[note] = list(keys)
        return note

    def find_batches(self) -> dict[int, list[bytes]]:
        return dict(self.batches)

    def forget_batches(self, notes: Sequence[int]) -> None:
        for note in notes:
            self.batches.pop(note, None)

    def record_kept(self, copies: Sequence[KeptCopy]) -> None:
        self.kept.update(((it.key, it.path), it) for it in copies)

    def find_kept(self, key: bytes | None = None) -> list[KeptCopy]:
        found = [it for it in self.kept.values() if key in (None, it.key)]
        return sorted(found, key=lambda it: (-it.at, it.key, it.path))

    def forget_kept(self, copies: Sequence[KeptCopy]) -> None:
        for it in copies:
            self.kept.pop((it.key, it.path), None)

    def find_changed(self, key: bytes) -> ChangedFile | None:
        return self.changed.get(key)

    def list_held(self) -> list[ChangedFile]:
        rows = [self.changed[key] for key in sorted(self.changed)]
        return [row for row in rows if row.hold and not self._is_past(row.key)]

    def count_held(self) -> int:
        return sum(not row.choice for row in self.list_held())

    def record_changed(self, changed: ChangedFile) -> None:
        self.changed[changed.key] = changed

    def count_changed(self, since: datetime) -> dict[DatasetId, int]:
        rows = self.changed.values()
        return Counter(
            row.dataset for row in rows if (row.counted_at or 0) > int(since.timestamp())
        )

    def count_files(self, dataset: DatasetId) -> int:
        return sum(row.dataset == dataset for row in self.entries.values())

    def forget_changed(self, before: datetime) -> None:
        for key, row in list(self.changed.items()):
            old = (row.counted_at or 0) <= int(before.timestamp())
            if old and (not row.hold or self._is_past(key)):
                del self.changed[key]

    def choose(self, choices: Sequence[ChangedFile]) -> None:
        for chosen in choices:
            row = self.changed.get(chosen.key)
            if row and row.hold and row[1:5] == chosen[1:5]:
                self.changed[row.key] = row._replace(choice=chosen.choice)
        confirmed = {
            row.dataset
            for row in self.changed.values()
            if (row.hold, row.choice) == (HoldReason.BRAKE, ChangeChoice.REPLACE)
        }
        for row in list(self.changed.values()):
            if row.dataset in confirmed:
                self.changed[row.key] = row._replace(counted_at=None)

    def _is_past(self, key: bytes) -> bool:
        entry, dataset = self.entries.get(key), self.changed[key].dataset
        verified = entry and (entry.state, entry.dataset) == (EntryState.VERIFIED, dataset)
        return key not in self.found or bool(verified)

    def find_meta(self, key: str) -> str | None:
        return self.meta.get(key)

    def record_meta(self, key: str, value: str) -> None:
        self.meta[key] = value

    def find_archives(self, dataset: DatasetId) -> dict[str, ArchiveRecord]:
        found = {path: archive for (id_, path), archive in self.archives.items() if id_ == dataset}
        return dict(sorted(found.items()))

    def record_archive(
        self, archive: ArchiveRecord, members: Sequence[Entry] | None = None
    ) -> None:
        self.archives[archive.dataset, archive.path] = archive
        inside = {
            key: entry._replace(state=archive.state, datafile=archive.datafile)
            for key, entry in self.entries.items()
            if (entry.dataset, entry.archive) == (archive.dataset, archive.path)
        }
        if members is None:
            self.record([entry for entry in inside.values() if entry.ctime_ns != 0])
            return
        for key in inside:
            del self.entries[key]
        self.record(members)

    def forget_archive(self, archive: ArchiveRecord) -> None:
        self.record_archive(archive, [])
        del self.archives[archive.dataset, archive.path]

    def note_write(self, dataset: DatasetId, until: datetime) -> None:
        self.writes[dataset] = datetime.fromtimestamp(ceil(until.timestamp()), UTC)

    def forget_write(self, dataset: DatasetId) -> None:
        self.writes.pop(dataset, None)

    def find_writes(self) -> dict[DatasetId, EarlierWrite]:
        return {
            dataset: EarlierWrite(until, frozenset(self._find_staged(dataset)))
            for dataset, until in self.writes.items()
        }

    def _find_staged(self, dataset: DatasetId) -> list[tuple[str, str]]:
        rows: list[Entry | ArchiveRecord] = [it for it in self.entries.values() if not it.archive]
        rows += self.archives.values()
        staged = [it for it in rows if (it.dataset, it.state) == (dataset, EntryState.STAGED)]
        return [(it.remote, it.checksum) for it in staged]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
