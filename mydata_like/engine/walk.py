"""Reads one dataset folder to its end, a group of files at a time, in constant memory."""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator

from mydata_like.core.errors import Cancelled, Problem
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesSeen,
    FileWaiting,
    FolderFailed,
    FolderSkipped,
)
from mydata_like.core.local_files import bounded_ns
from mydata_like.core.model import DatasetFolder, FileGroup, LocalFile
from mydata_like.core.openat import OpenFolder, join, look
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.engine.filters import FileFilter, directory_problem
from mydata_like.engine.root import (
    Identity,
    Links,
    Root,
    Target,
    identity_of,
    is_junction,
    reason,
)
from mydata_like.settings.schema import Filters

GROUP_LIMIT = 1000

_SPECIAL = Problem(
    "skipped.special",
    "This is no regular file but a pipe, a socket or a device.",
    "Nothing needs to be done.",
)
_CIRCLE = Problem(
    "skipped.symlink",
    "The symbolic link leads to a folder that this dataset folder has already.",
    "Nothing needs to be done: the files are taken once.",
)

_SETTLING = Problem(
    "waiting.settling",
    "The file changed a short while ago and may still be written.",
    "A later run takes it; filters.settle_seconds says how long it must be still.",
)
_FUTURE = Problem(
    "waiting.future",
    "The file's modified time lies in the future.",
    "Check the clocks of this computer and of the one that wrote the file.",
)

_ENCODING = sys.getfilesystemencoding()
_ERRORS = sys.getfilesystemencodeerrors()
_KIND = 0o170000  # the bits of a mode that tell what kind of thing it is


class Batch:
    """What was found since the last group; events about files wait until they are counted."""

    __slots__ = ("count", "events", "files", "settled_ns", "size")

    def __init__(self, settled_ns: int) -> None:
        self.settled_ns = settled_ns
        self.files: list[LocalFile] = []
        self.events: list[FileSkipped | FileWaiting | FileFailed] = []
        self.count = 0
        self.size = 0

    def leave(self, event: FileSkipped | FileWaiting | FileFailed) -> None:
        self.events.append(event)
        self.count += 1
        self.size += event.size


class Walk:
    """Reads dataset folders of one data directory, or a source."""

    def __init__(
        self, root: Root, settings: Filters, emit: Emit, clock: Clock, cancel: CancelSignal
    ) -> None:
        self.root = root
        self.links = Links(settings.symlinks, root)
        self.refuse = FileFilter(settings).refuse
        self.emit = emit
        self.found = 0  # files that were counted, those that are left out included
        self._settle_ns = round(settings.settle_seconds * 1e9)
        self._clock = clock
        self._cancel = cancel

    def open(self, folder: DatasetFolder, path: bytes) -> Iterator[FileGroup]:
        """Return the groups of a dataset folder that lies at `path`; the last one says so.

        Raises OSError at once where the folder itself cannot be opened.
        """
        reading = _FolderWalk(self, folder)
        reading.open(path)
        return reading.groups()

    def read_file(self, folder: DatasetFolder, path: bytes) -> Iterator[FileGroup]:
        """Return the only group of a dataset folder of which one file is taken; raises OSError."""
        reading = _FolderWalk(self, folder)
        reading.take_alone(path)
        return reading.groups()

    def now(self) -> float:
        return self._clock.now().timestamp()

    def new_batch(self) -> Batch:
        """Begin a batch, unless the run was asked to stop."""
        if self._cancel.is_set():
            raise Cancelled
        return Batch(round(self.now() * 1e9) - self._settle_ns)

    def report(self, folder: bytes, batch: Batch) -> None:
        """Emit what a batch found: first how much, then what becomes of what is left out."""
        if batch.count:
            self.found += batch.count
            self.emit(FilesSeen(folder=folder, files=batch.count, bytes=batch.size))
        for event in batch.events:
            self.emit(event)

    def fail_folder(self, key: bytes, error: OSError) -> None:
        """Report a folder that cannot be read, or raise where the whole data directory went."""
        self.root.check()
        problem = Problem(
            "folder.unreadable",
            f"The folder cannot be read: {reason(error)}.",
            "Check its permissions and its drive; the next run tries again.",
        )
        self.emit(FolderFailed(path=key, problem=problem))

    def unsettled(self, modified_ns: int) -> Problem | None:
        """Return why a file must wait, or None where it has settled meanwhile."""
        now = round(self.now() * 1e9)
        if modified_ns > now:
            return _FUTURE
        return _SETTLING if modified_ns > now - self._settle_ns else None


class _Place:
    """Where files lie: what their keys begin with, and their directory in the dataset.

    `top` says how much of their paths is trusted, as `core.openat` does.
    """

    __slots__ = ("directory", "prefix", "top")

    def __init__(self, prefix: bytes, directory: bytes, top: int) -> None:
        self.prefix = prefix
        self.directory = directory
        self.top = top


class _Open(_Place):
    """An open folder: its unread entries, and what their paths begin with."""

    __slots__ = ("identity", "listing", "path")

    def __init__(self, listing: OpenFolder, prefix: bytes, directory: bytes) -> None:
        super().__init__(prefix, directory, listing.top)
        self.listing = listing
        self.path = join(listing.path, b"")
        self.identity = identity_of(listing.status)


class _FolderWalk:
    """One reading of one dataset folder, depth first; no folder is ever held as a list."""

    def __init__(self, walk: Walk, folder: DatasetFolder) -> None:
        self._walk = walk
        self._folder = folder
        self._above = folder.above
        self._followed: set[Identity] = set()
        self._batch = walk.new_batch()  # may end the run, so nothing is open yet
        self._stack: list[_Open] = []

    def open(self, path: bytes) -> None:
        listing = self._walk.root.open(path)
        self._stack.append(_Open(listing, self._folder.path + b"/", b""))

    def take_alone(self, path: bytes) -> None:
        top = self._walk.root.top_of(path)
        status = look(path, top)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "It is no longer a regular file")
        prefix, name = self._folder.path + b"/", os.path.basename(path)  # noqa: PTH119 - bytes
        self._take_file(_Place(prefix, b"", top), name, path, status)

    def groups(self) -> Iterator[FileGroup]:
        try:
            while self._stack:
                self._read()
                if self._batch.count >= GROUP_LIMIT:
                    yield self._finish_batch(last=False)
                    self._batch = self._walk.new_batch()
            self._walk.root.check()  # what is open can be read to its end although it went away
            yield self._finish_batch(last=True)
        finally:
            for folder in self._stack:
                folder.listing.close()

    def _finish_batch(self, *, last: bool) -> FileGroup:
        self._walk.report(self._folder.path, self._batch)
        return FileGroup(self._folder, tuple(self._batch.files), last)

    def _read(self) -> None:
        """Read on in the innermost folder: to its end, to a full batch, or to a sub-folder."""
        folder = self._stack[-1]
        try:
            for entry in folder.listing.entries:
                if self._take(folder, entry):
                    return
        except OSError as error:
            self._walk.fail_folder(folder.prefix[:-1], error)
        folder.listing.close()
        self._stack.pop()

    def _take(self, folder: _Open, entry: os.DirEntry[str] | os.DirEntry[bytes]) -> bool:
        """Take one entry; return whether reading has to pause after it."""
        name = entry.name
        if isinstance(name, str):  # as `os.fsencode` does it, in a fifth of the time
            name = name.encode(_ENCODING, _ERRORS)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            self._fail(folder, name, error)
            return False
        kind = status.st_mode & _KIND
        if kind == stat.S_IFREG:
            self._take_file(folder, name, folder.path + name, status)
        elif kind == stat.S_IFDIR and not is_junction(entry):
            return self._enter(folder, name, folder.listing.open_below)
        elif kind == stat.S_IFLNK or kind == stat.S_IFDIR:
            return self._follow(folder, name)
        else:
            self._skip(folder, name, _SPECIAL)
        return self._batch.count >= GROUP_LIMIT

    def _take_file(self, folder: _Place, name: bytes, path: bytes, status: os.stat_result) -> None:
        batch, key, size = self._batch, folder.prefix + name, status.st_size
        refused = self._walk.refuse(key, name, self._above)
        if refused:
            batch.leave(FileSkipped(path=key, size=size, problem=refused))
            return
        modified_ns = bounded_ns(status.st_mtime_ns)
        if modified_ns > batch.settled_ns:
            waiting = self._walk.unsettled(modified_ns)
            if waiting:
                batch.leave(
                    FileWaiting(path=key, size=size, problem=waiting, modified_ns=modified_ns)
                )
                return
        batch.files.append(
            LocalFile(
                path,
                key,
                folder.directory,
                name,
                size,
                modified_ns,
                status.st_dev,
                status.st_ino,
                status.st_ctime_ns,
                folder.top,
            )
        )
        batch.count += 1
        batch.size += size

    def _enter(
        self, folder: _Open, name: bytes, open_folder: Callable[[bytes], OpenFolder]
    ) -> bool:
        if not self._folder.recursive:
            return False
        key = folder.prefix + name
        directory = folder.directory + b"/" + name if folder.directory else name
        problem = directory_problem(directory)
        if problem:
            self._walk.emit(FolderSkipped(path=key, problem=problem))
            return False
        try:
            self._stack.append(_Open(open_folder(name), key + b"/", directory))
        except OSError as error:
            self._walk.fail_folder(key, error)
            return False
        return True

    def _follow(self, folder: _Open, name: bytes) -> bool:
        target = self._walk.links.resolve(folder.path + name)
        if isinstance(target, Problem):
            self._skip(folder, name, target)
        elif stat.S_ISREG(target.status.st_mode):
            place = _Place(folder.prefix, folder.directory, self._walk.root.top_of(target.path))
            self._take_file(place, name, target.path, target.status)
        elif not stat.S_ISDIR(target.status.st_mode):
            self._skip(folder, name, _SPECIAL)
        elif self._folder.recursive:
            return self._follow_folder(folder, name, target)
        return self._batch.count >= GROUP_LIMIT

    def _follow_folder(self, folder: _Open, name: bytes, target: Target) -> bool:
        identity = identity_of(target.status)
        ancestors = {opened.identity for opened in self._stack}
        if identity in self._followed or identity in ancestors:
            self._skip(folder, name, _CIRCLE)
            return self._batch.count >= GROUP_LIMIT
        self._followed.add(identity)
        return self._enter(folder, name, lambda _: self._walk.root.open(target.path))

    def _skip(self, folder: _Open, name: bytes, problem: Problem) -> None:
        self._batch.leave(FileSkipped(path=folder.prefix + name, size=0, problem=problem))

    def _fail(self, folder: _Open, name: bytes, error: OSError) -> None:
        """Report an entry that cannot be looked at; one that has just been deleted is no loss."""
        self._walk.root.check()
        if isinstance(error, FileNotFoundError):
            return
        problem = Problem(
            "file.unreadable",
            f"The file cannot be read: {reason(error)}.",
            "Check its permissions and its drive; the next run tries again.",
        )
        self._batch.leave(FileFailed(path=folder.prefix + name, size=0, problem=problem))
