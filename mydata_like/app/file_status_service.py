"""The status of local files and folders, from the disk and from every ledger.

Both the window's page and `mydata-like where` use this. The server is not queried.
"""

import heapq
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from mydata_like.app.ledgers import list_ledgers
from mydata_like.app.source_service import find_sources
from mydata_like.core.data_directory import find_key
from mydata_like.core.errors import Problem, SettingsError
from mydata_like.core.extra_sources import lies_in, source_key
from mydata_like.core.file_access import system_path
from mydata_like.core.file_status import (
    NO_EVIDENCE,
    Amount,
    FileEvidence,
    FileStatus,
    FolderStatus,
    KnownOutcome,
    LocalFacts,
    LocalState,
    PathStatus,
    Suggestion,
    UnknownReason,
    choose_evidence,
    compare,
)
from mydata_like.core.local_files import bounded_ns
from mydata_like.core.openat import is_link, join
from mydata_like.engine.data_root import Links, Root
from mydata_like.ledger.file_queries import FileQueries
from mydata_like.settings.schema import Settings


def suggest(settings: Settings, config: Path | None, text: str, most: int) -> list[Suggestion]:
    """Return files and dataset folders whose paths contain this text; folders come first."""
    if settings.data.directory is None:
        return []
    with _opened(settings, config) as lookup:
        folders = lookup.find_folders(text, most // 4)
        return folders + lookup.find_files_with(text, most - len(folders))


def find_status(settings: Settings, config: Path | None, path: Path) -> PathStatus:
    """Return the status of a path, absolute or relative to the data directory.

    Raises `UploaderError` if a ledger cannot be read.
    """
    root = settings.data.directory
    path = Path(os.path.normpath((root or Path()) / path))
    if root is None:
        return _describe_outside(path)
    key = _key_of(root, path)
    with _opened(settings, config) as lookup:
        status = lookup.describe(path, key)
    known = status.states if isinstance(status, FolderStatus) else status.evidence != NO_EVIDENCE
    if known or not os.path.isabs(key):  # noqa: PTH117 - of bytes
        return status
    in_source = any(lies_in(key, source.path) for source in find_sources(settings, config))
    return status if in_source else _describe_outside(path)


def find_files(settings: Settings, config: Path | None, text: str) -> list[FileStatus]:
    """Return the status of a file, or of all files in a folder, of a name or in an archive.

    A name that is no path may be that of files, of archives, or else of folders.

    Raises `SettingsError` if no data directory is set, `RunError` if a ledger cannot be read.
    """
    root = settings.data.directory
    if root is None:
        raise SettingsError(
            "No data directory is set.",
            hint="Set it with: mydata-like settings set data.directory FOLDER",
        )
    with _opened(settings, config) as lookup:
        for path in (Path.cwd() / text, root / text):
            if found := lookup.list_below(_key_of(root, path)):
                return found
        name = os.fsencode(text.rstrip("/"))
        return lookup.list_named(name) or lookup.list_in_named(name)


def list_known(
    settings: Settings, config: Path | None, key: bytes
) -> list[tuple[bytes, FileStatus]]:
    """Return all known files at and below an absolute path, each with its own path.

    Paths are as `source_key` returns them. Raises `RunError` if a ledger cannot be read.
    """
    root = settings.data.directory
    if root is None:
        return []
    top, keys = source_key(root), {key}  # files from outside the data directory have such keys
    if (inside := find_key(root, Path(os.fsdecode(key)))) is not None:
        keys.add(inside)
    elif lies_in(top, key):
        keys.add(b"")
    with _opened(settings, config) as lookup:
        found = [status for one in keys for status in lookup.list_below(one)]
    outside = os.path.isabs
    return [(it.key if outside(it.key) else join(top, it.key), it) for it in found]


def _key_of(root: Path, path: Path) -> bytes:
    """Return the key of a path in the ledgers; a path outside may be in an extra source."""
    key = find_key(root, path)
    return source_key(path) if key is None else key


def _describe_outside(path: Path) -> FileStatus:
    local = LocalState.NEW if os.path.lexists(path) else LocalState.GONE
    return FileStatus(
        path, os.fsencode(path.as_posix()), local, 0, 0, unknown=UnknownReason.OUTSIDE
    )


class DiskState(NamedTuple):
    """The state of a path on the disk; `problem` is why a scan would not follow a link to it."""

    state: LocalState
    facts: LocalFacts | None = None
    folder: bool = False
    problem: Problem | None = None


_GONE = DiskState(LocalState.GONE)
_UNREADABLE = DiskState(LocalState.UNREADABLE)


class Disk:
    """The disk, as a scan with these settings reads it."""

    def __init__(self, settings: Settings, config: Path | None, root: Path) -> None:
        self._settings = settings
        self._config = config
        self._path = os.fsencode(root)
        self._roots: dict[bytes, Root | None] = {}

    def look(self, key: bytes) -> DiskState:
        """Return what exists at the path of a ledger's key."""
        top, below = self._split(key)
        root = self._open(top)
        if root is None:
            return _UNREADABLE
        try:
            return self._walk(root, below)
        except (FileNotFoundError, NotADirectoryError):
            return _GONE
        except (OSError, ValueError):  # a name that the system rejects, such as one with NUL
            return _UNREADABLE

    def _split(self, key: bytes) -> tuple[bytes, bytes]:
        """Return the folder at which a scan starts, and the path below it."""
        if not os.path.isabs(key):  # noqa: PTH117 - of bytes
            return self._path, key
        source = next((path for path in self._sources if lies_in(key, path)), key)
        if key == source:  # a single file, or the folder itself
            top, _, name = key.rpartition(b"/")
            return top, name
        return source, key[len(source) + 1 :]

    @cached_property
    def _sources(self) -> list[bytes]:
        return [source.path for source in find_sources(self._settings, self._config)]

    def _open(self, top: bytes) -> Root | None:
        if top not in self._roots:
            try:
                self._roots[top] = Root(top + b"/")  # the drive `E:` alone is its current folder
            except SettingsError:
                self._roots[top] = None
        return self._roots[top]

    def _walk(self, root: Root, below: bytes) -> DiskState:
        links = Links(self._settings.filters.symlinks, root)
        path, status, problem = root.path, Path(os.fsdecode(root.path)).stat(), None
        for name in below.split(b"/") if below else ():
            path = os.path.join(path, name)  # noqa: PTH118 - of bytes
            status = os.lstat(system_path(path))
            if problem is None and is_link(status):
                target = links.resolve(path)
                if isinstance(target, Problem):
                    problem = target  # the rest is inspected here, but not by a scan
                else:
                    path, status = target.path, target.status
        facts = LocalFacts(
            status.st_size, bounded_ns(status.st_mtime_ns), status.st_ctime_ns, status.st_ino
        )
        return DiskState(LocalState.NEW, facts, stat.S_ISDIR(status.st_mode), problem)


class _Lookup:
    """Combines the state of the disk with the records of all ledgers."""

    def __init__(self, settings: Settings, disk: Disk, ledgers: Sequence[FileQueries]) -> None:
        self._settings = settings
        self._disk = disk
        self._ledgers = ledgers

    def describe(self, path: Path, key: bytes) -> PathStatus:
        """Return the status of a file or folder."""
        found = [known for ledger in self._ledgers if (known := ledger.find(key))]
        look = self._disk.look(key)
        if not found and (look.folder or (look.facts is None and self._sum(key))):
            return self._describe_folder(path, key)
        return self._describe_file(path, key, found, look)

    def list_below(self, key: bytes) -> list[FileStatus]:
        """Return the status of all files at and below a path."""
        return self._list([ledger.iter_below(key) for ledger in self._ledgers])

    def list_named(self, name: bytes) -> list[FileStatus]:
        """Return the status of files of a name, or of those in an archive of this name."""
        return self._list([ledger.iter_named(name) for ledger in self._ledgers])

    def list_in_named(self, name: bytes) -> list[FileStatus]:
        """Return the status of all files in folders of a name."""
        return self._list([ledger.iter_in_named(name) for ledger in self._ledgers])

    def find_folders(self, text: str, most: int) -> list[Suggestion]:
        """Return the dataset folders whose path contains this text."""
        found = {
            one.key: one for ledger in self._ledgers for one in ledger.find_folders(text, most)
        }
        return [found[key] for key in sorted(found)[:most]]

    def find_files_with(self, text: str, most: int) -> list[Suggestion]:
        """Return the files whose path contains this text, with their current state."""
        keys = {key for ledger in self._ledgers for key in ledger.find_keys(text, most)}
        return [self._suggest(key) for key in sorted(keys)[:most]]

    def _suggest(self, key: bytes) -> Suggestion:
        found = [known for ledger in self._ledgers if (known := ledger.find(key))]
        status = self._describe_file(Path(), key, found, self._disk.look(key))
        return Suggestion(key, status.size, status.state, modified_ns=status.modified_ns)

    def _list(self, parts: Iterable[Iterator[tuple[bytes, FileEvidence]]]) -> list[FileStatus]:
        """Return the status of files, given what several ledgers have recorded of each."""
        root, listed = self._settings.data.directory or Path(), []
        merged = heapq.merge(*parts, key=itemgetter(0))
        for key, rows in groupby(merged, key=itemgetter(0)):
            found = [evidence for _, evidence in rows]
            path, look = root / os.fsdecode(key), self._disk.look(key)
            listed.append(self._describe_file(path, key, found, look))
        return listed

    def _describe_file(
        self, path: Path, key: bytes, found: Sequence[FileEvidence], look: DiskState
    ) -> FileStatus:
        evidence = choose_evidence(found, look.facts)
        entry, local = evidence.entry, look.state
        if look.facts is not None:
            local = compare(entry, look.facts)
        above = self._find_above(key, look) if evidence == NO_EVIDENCE or look.problem else None
        unknown = None
        if evidence == NO_EVIDENCE and above is None:
            unknown = UnknownReason.ABSENT if local is LocalState.GONE else UnknownReason.UNSEEN
        known = look.facts or evidence.entry or evidence.outcome  # the latest recorded, if gone
        size, modified_ns = (known.size, known.modified_ns) if known else (0, 0)
        web = self._page_of(entry.dataset) if entry else ""
        kept = tuple(copy for ledger in self._ledgers for copy in ledger.find_kept(key))
        return FileStatus(path, key, local, size, modified_ns, evidence, above, unknown, web, kept)

    def _describe_folder(self, path: Path, key: bytes) -> FolderStatus:
        sums = self._sum(key)
        ends = {number for ledger in self._ledgers for number in ledger.find_datasets(key)}
        web = self._page_of(ends.pop()) if len(ends) == 1 else ""
        above = _latest(ledger.find_outcome_above(key) for ledger in self._ledgers)
        return FolderStatus(path, key, sums, above, None if sums else UnknownReason.UNSEEN, web)

    def _find_above(self, key: bytes, look: DiskState) -> KnownOutcome | None:
        """Return a problem on the path to a file: a link, or a folder above it."""
        if look.problem is not None:
            return KnownOutcome("skipped", look.problem, 0, key)
        return _latest(
            ledger.find_outcome_above(key.rpartition(b"/")[0]) for ledger in self._ledgers
        )

    def _sum(self, key: bytes) -> dict[str, Amount]:
        knowing = [ledger for ledger in self._ledgers if any(True for _ in ledger.iter_states(key))]
        if len(knowing) == 1:
            return knowing[0].sum_folder(key)
        # Files in several ledgers (runs over all, or other numbers of shards) must count only once:
        # the last of the rows counts.
        files, sizes = Counter[str](), Counter[str]()
        merged = heapq.merge(*(ledger.iter_states(key) for ledger in knowing))
        for _, rows in groupby(merged, key=itemgetter(0)):
            *_, (_, _, _, state, size) = rows
            files[state] += 1
            sizes[state] += size
        return {state: Amount(number, sizes[state]) for state, number in files.items()}

    def _page_of(self, dataset: int) -> str:
        """Return the address of a dataset's page; empty if there is no server."""
        if self._settings.destination.takes_tree or not self._settings.server.url:
            return ""
        return f"{self._settings.server.url}/dataset/{dataset}"


def _latest(found: Iterable[KnownOutcome | None]) -> KnownOutcome | None:
    known = [outcome for outcome in found if outcome is not None]
    return max(known, key=lambda outcome: outcome.at, default=None)


@contextmanager
def _opened(settings: Settings, config: Path | None) -> Iterator[_Lookup]:
    """Open all ledgers of this data directory, including those of shards."""
    directory = settings.data.directory or Path()
    with ExitStack() as stack:
        opened = (
            stack.enter_context(FileQueries.opened(file, os.fsencode(directory)))
            for _, file in list_ledgers(settings, config)
        )
        ledgers = [queries for queries in opened if queries]
        yield _Lookup(settings, Disk(settings, config, directory), ledgers)
