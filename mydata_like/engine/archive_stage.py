"""The stage that combines small files into archives, as the settings require."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mydata_like.core.archives import archive_name, archive_path, member_name
from mydata_like.core.local_files import ArchiveMember, LocalFile
from mydata_like.core.model import (
    Batch,
    CheckedGroup,
    Dataset,
    DatasetFolder,
    DatasetId,
    EntryState,
    FileRecord,
)
from mydata_like.core.ports import Ledger
from mydata_like.core.staging_path import staged_path
from mydata_like.settings.transfer_sections import Archive, ArchiveRule, Scope, parse_archive_rule

MOST_MEMBERS = 10_000  # per archive; limits the index and the size of one instruction to a channel
# The most that a member takes in addition to its bytes: headers, padding and its line in the index.
OVERHEAD = 2560
PER_CHARACTER = 8  # of its name: once in a header, up to six times in the index
FRAME = 4096  # the most that the index's own header and the end of the archive take


class Bundle:
    """The stage that decides which wanted files share an archive.

    Whether a rule applies to a folder is known once enough of its files, or all of them, have been
    seen. Files of an archive from an earlier run arrive one by one and are combined into one
    archive again. Items without a group pass through immediately: no archive waits for them.
    """

    def __init__(self, settings: Archive, ledger: Ledger) -> None:
        self.rules = tuple(map(parse_archive_rule, settings.rules))
        self.size_limit = settings.size_limit
        self._names = _Names(ledger)

    def __call__(self, groups: Iterable[CheckedGroup | Batch]) -> Iterator[Batch]:
        folders: dict[bytes, _Folder] = {}
        for checked in groups:
            if isinstance(checked, list):
                yield [*checked]
                continue
            path = checked.group.folder.path
            folder = folders.setdefault(path, _Folder(self, checked.group.folder))
            yield from filter(None, folder.take(checked))
            if folder.finished:
                del folders[path]
        for folder in folders.values():
            yield list(folder.close())

    def find_rule(self, file: LocalFile, above: int) -> ArchiveRule | None:
        """Return the first rule that matches a file's key without its first `above` bytes."""
        fitting = (rule for rule in self.rules if file.size < rule.below)
        path = file.key[above:].decode("utf-8", "surrogateescape")
        return next((rule for rule in fitting if rule.pattern.match(path)), None)

    def build(
        self, folder: DatasetFolder, directory: bytes, files: Sequence[FileRecord]
    ) -> FileRecord:
        """Return an archive of wanted files; `directory` is its place in the dataset.

        Its size is the sum of its files; the size of the archive itself is measured when it is
        packed.
        """
        dataset = files[0].dataset
        named = (ArchiveMember(item.file, member_name(folder.path, item.file)) for item in files)
        members = tuple(sorted(named, key=lambda member: member.name))
        text = directory.decode()
        stem = (directory or folder.path).rpartition(b"/")[2].decode()
        name = self._names.choose(dataset, text, stem, members)
        file = LocalFile(
            b"",
            b"/".join(part for part in (folder.path, directory, name.encode()) if part),
            directory,
            name.encode(),
            sum(item.file.size for item in files),
            max(item.file.modified_ns for item in files),
            0,
            0,
        )
        remote = staged_path(dataset.name, dataset.id, text, name)
        return FileRecord(file, dataset, remote, members=members)


class _Names:
    """A source of archive names that neither the server nor the ledger has already."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._taken: dict[DatasetId, set[str]] = {}
        self._counts: Counter[tuple[DatasetId, str]] = Counter()  # by directory

    def choose(
        self, dataset: Dataset, directory: str, stem: str, members: Sequence[ArchiveMember]
    ) -> str:
        if dataset.id not in self._taken:
            self._take_stock(dataset.id)
        taken = self._taken[dataset.id]
        number = self._counts[dataset.id, directory] + 1
        while archive_path(directory, archive_name(stem, members, number)) in taken:
            number += 1
        name = archive_name(stem, members, number)
        taken.add(archive_path(directory, name))
        self._counts[dataset.id, directory] += 1
        return name

    def _take_stock(self, dataset: DatasetId) -> None:
        known = self._ledger.find_archives(dataset)
        self._taken[dataset] = set(known)
        self._counts.update((dataset, archive.place[0]) for archive in known.values())


class _Folder:
    """One dataset folder; its groups may arrive in any order, and the walk's order counts."""

    def __init__(self, bundle: Bundle, folder: DatasetFolder) -> None:
        self.finished = False
        self._bundle = bundle
        self._folder = folder
        self._early: dict[int, CheckedGroup] = {}
        self._next = 0
        self._directory = b""
        self._pools: dict[tuple[ArchiveRule, bytes], _Pool] = {}
        self._resumed: dict[str, tuple[FileRecord, list[ArchiveMember]]] = {}

    def take(self, checked: CheckedGroup) -> Iterator[Batch]:
        """Take a group; yield what need not wait, and archives that are complete."""
        passing: Batch = []
        waiting: Batch = []
        for item in checked.open:
            if item.state is EntryState.FOUND:
                (waiting if self._bundle.rules else passing).append(item)
            elif item.members:
                self._resume(item)
            else:
                passing.append(item)
        yield passing
        self._early[checked.group.number] = checked._replace(open=waiting)
        while self._next in self._early:
            group = self._early.pop(self._next)
            self._next += 1
            yield list(self._sort(group))
            if group.group.last:
                self.finished = True
                yield list(self.close())

    def close(self) -> Iterator[FileRecord]:
        """Yield the rest, when no more files are coming."""
        for number in sorted(self._early):  # these follow a group that never arrived
            yield from self._sort(self._early[number])
        yield from self._close_pools(list(self._pools))
        for item, members in self._resumed.values():
            item.members = tuple(members)
            yield item

    def _resume(self, item: FileRecord) -> None:
        """Take one file of an archive that an earlier run has sent."""
        _, members = self._resumed.setdefault(item.remote, (item, []))
        members += item.members

    def _sort(self, group: CheckedGroup) -> Iterator[FileRecord]:
        """Sort files by the rules; yield the archives that this completes."""
        if not self._bundle.rules:
            return
        wanted = {item.file.key: item for item in group.open}
        for file in group.group.files:
            item = wanted.get(file.key)
            if file.directory != self._directory:
                self._directory = file.directory
                yield from self._close_pools([key for key in self._pools if self._has_left(key)])
            rule = self._bundle.find_rule(file, self._folder.above)
            if rule is not None and (item is None or item.earlier is None):
                yield from self._pool(rule, file).take(item)
            elif item is not None:
                yield item

    def _pool(self, rule: ArchiveRule, file: LocalFile) -> "_Pool":
        directory = file.directory if rule.scope is Scope.FOLDER else b""
        key = rule, directory
        if key not in self._pools:
            self._pools[key] = _Pool(self._bundle, self._folder, directory, rule.files)
        return self._pools[key]

    def _has_left(self, key: tuple[ArchiveRule, bytes]) -> bool:
        """Return whether the walk has finished a folder and will not return to it."""
        rule, directory = key
        if rule.scope is Scope.DATASET or not directory:
            return False
        return not (self._directory + b"/").startswith(directory + b"/")

    def _close_pools(self, keys: Iterable[tuple[ArchiveRule, bytes]]) -> Iterator[FileRecord]:
        for key in keys:
            yield from self._pools.pop(key).close()


class _Pool:
    """Wanted files that share archives if there are enough of their kind, known files included."""

    def __init__(
        self, bundle: Bundle, folder: DatasetFolder, directory: bytes, enough: int
    ) -> None:
        self._bundle = bundle
        self._folder = folder
        self._directory = directory
        self._enough = enough
        self._seen = 0
        self._held: list[FileRecord] = []
        self._size = FRAME

    def take(self, item: FileRecord | None) -> Iterator[FileRecord]:
        """Take a file, or None for one that needs nothing; yield archives that are full."""
        self._seen += 1
        if item is not None:
            self._held.append(item)
            self._size += self._room(item)
        if self._seen >= self._enough and self._is_full(len(self._held), self._size):
            *full, rest = self._parts()
            self._held, self._size = rest, FRAME + sum(map(self._room, rest))
            yield from map(self._build, full)

    def close(self) -> Iterator[FileRecord]:
        """Yield the rest, as an archive or as single files."""
        if self._seen < self._enough:
            yield from self._held
        elif self._held:
            yield from map(self._build, self._parts())

    def _is_full(self, files: int, size: int) -> bool:
        return files > MOST_MEMBERS or size > self._bundle.size_limit

    def _parts(self) -> list[list[FileRecord]]:
        """Return the collected files in parts that each fit into one archive."""
        parts: list[list[FileRecord]] = [[]]
        size = FRAME
        for item in self._held:
            size += self._room(item)
            if parts[-1] and self._is_full(len(parts[-1]) + 1, size):
                parts.append([])
                size = FRAME + self._room(item)
            parts[-1].append(item)
        return parts

    def _room(self, item: FileRecord) -> int:
        """Return the most bytes that a file can take in an archive."""
        name = len(member_name(self._folder.path, item.file))
        return item.file.size + OVERHEAD + PER_CHARACTER * name

    def _build(self, files: Sequence[FileRecord]) -> FileRecord:
        return self._bundle.build(self._folder, self._directory, files)
