"""The files of a destination that is a folder of this computer, or is mounted here."""

import ctypes
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple

from mydata_like.core import hashing
from mydata_like.core.destination_files import (
    OWN_FOLDER,
    DestinationFiles,
    Placement,
    ProvenFile,
    StoredContent,
    StoredFile,
    TreeFolder,
    TreeLink,
    describe_occupied,
)
from mydata_like.core.errors import Problem, ServerUnavailableError, StagingError, TransientError
from mydata_like.core.file_access import open_shared, system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.openat import (
    BY_DESCRIPTOR,
    FOLDER,
    NO_LINK,
    FolderCache,
    OpenFolder,
    is_link,
)
from mydata_like.transfer.destination_problems import (
    ABSENT,
    absent,
    check_own,
    check_path,
    describe_link,
    describe_missing,
    describe_refusal,
    no_folder,
    unreadable,
)
from mydata_like.transfer.file_source import CHUNK, advise
from mydata_like.transfer.folder.folder_files import is_full, is_lost, is_read_only

_FLAGS: Final = (
    NO_LINK
    | getattr(os, "O_NONBLOCK", 0)  # do not block on a FIFO
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)
_PART: Final = b".write-"  # the beginning of a temporary name in a folder of ours
_NO_LINKS: Final = {
    getattr(errno, name)
    for name in ("EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EINVAL", "EMLINK")
    if hasattr(errno, name)
}
_NAME: Final = {errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}
_NAME_WINDOWS: Final = {123, 161, 206}  # ERROR_INVALID_NAME, _BAD_PATHNAME, _FILENAME_EXCED_RANGE
_IN_THE_WAY: Final = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY}
# File systems that have no storage behind the page cache, or of which Linux does not know it.
_CACHED: Final = ("tmpfs", "ramfs", "fuse", "9p", "virtiofs")


class NameInFolder(NamedTuple):
    """A name in an open folder; without descriptors (Windows), a whole path."""

    name: bytes
    folder: int | None

    def look(self) -> os.stat_result:
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def open(self, flags: int, mode: int = 0o666) -> int:
        if self.folder is None and not flags & (os.O_WRONLY | os.O_RDWR):
            return open_shared(self.name, flags | _FLAGS)
        return os.open(self.name, flags | _FLAGS, mode, dir_fd=self.folder)

    def link(self, to: "NameInFolder") -> None:
        """Give the file a second name; raises OSError, also where Python cannot."""
        try:
            os.link(
                self.name,
                to.name,
                src_dir_fd=self.folder,
                dst_dir_fd=to.folder,
                follow_symlinks=self.folder is None,
            )
        except NotImplementedError as error:
            raise OSError(errno.ENOSYS, "no hard links") from error

    def unlink(self) -> None:
        os.unlink(self.name, dir_fd=self.folder)


class LocalFiles(DestinationFiles):
    """The files below a folder that is mounted here; see `DestinationFiles`.

    Every path is opened folder by folder, so that no link is followed; where the system has no
    `openat` (Windows), it is checked before. After `open`, the folder must remain the same one, so
    that nothing is written to the empty folder of a disk that is no longer mounted.

    On Windows, the change time of a file is that of its creation, so that a file that was
    rewritten with the same size and modification time has the same mark.
    """

    attributes_complete = True

    def __init__(
        self, path: bytes, *, links: bool = True, by_descriptor: bool = BY_DESCRIPTOR
    ) -> None:
        self._root = path.rstrip(b"/") or b"/"
        self._by_descriptor = by_descriptor
        self._opened: tuple[int, int] | None = None
        self._links = links  # until a hard link was refused
        self._evidence = ""

    @property
    def evidence(self) -> str:
        """`read-back` if files are read from the storage, past the cache of this system."""
        if not self._evidence:
            known = hasattr(os, "posix_fadvise") and _find_type(self._root)
            cached = not known or known.startswith(_CACHED)
            self._evidence = "read-back-cached" if cached else "read-back"
        return self._evidence

    def open(self, *, create: bool) -> None:
        """Check that the destination is a folder that takes files; with `create`, make it."""
        try:
            there = self._find_root(create=create)
        except OSError as error:
            raise self._refused(error) from error
        if not stat.S_ISDIR(there.st_mode):
            raise no_folder(self._root)
        self._opened = there.st_dev, there.st_ino
        part = b".mydata-probe-" + secrets.token_hex(8).encode()
        with self._folders() as folders:
            place = self._at(folders, part)
            try:
                self._write_part(place, b"x\n")
            except OSError as error:
                raise self._refused(error) from error
            finally:
                with suppress(OSError):
                    place.unlink()

    def _find_root(self, *, create: bool) -> os.stat_result:
        where = system_path(self._root)
        try:
            return os.stat(where)  # noqa: PTH116 - bytes
        except FileNotFoundError:
            if not create:
                raise absent(self._root) from None
        os.makedirs(where, exist_ok=True)  # noqa: PTH103 - bytes
        return os.stat(where)  # noqa: PTH116 - bytes

    def _refused(self, error: OSError) -> StagingError | ServerUnavailableError:
        if is_lost(error):
            return self._unavailable(error)
        if error.errno in _IN_THE_WAY:
            return no_folder(self._root)
        problem = describe_error(self._root, error)
        return StagingError(problem.message, hint=problem.hint, code=problem.code)

    def list_files(self, folder: bytes) -> Iterator[StoredFile]:
        """Yield the files below a folder; folders that may not be read are omitted."""
        if folder:
            check_path(folder)
        if folder.split(b"/")[0] == OWN_FOLDER:
            return
        for path, status in self._walk(folder):
            if stat.S_ISREG(status.st_mode):
                yield _file(path, status)

    def _walk(self, folder: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield the files, links and folders below a folder with their status."""
        waiting: list[tuple[bytes, OpenFolder]] = []
        with ExitStack() as opened, self._lost(folder):
            opened.callback(_close, waiting)
            with self._folders(), _omitted():
                first = OpenFolder.open(
                    self._full(folder), len(self._root), by_descriptor=self._by_descriptor
                )
                waiting.append((folder, first))
            while waiting:
                path, current = waiting[-1]
                entry = next(current.entries, None)
                if entry is None:
                    waiting.pop()[1].close()
                    continue
                name = os.fsencode(entry.name)
                below = path + b"/" + name if path else name
                with _omitted():
                    # What scandir of Windows knows lacks the number of the file.
                    status = (
                        entry.stat(follow_symlinks=False)
                        if self._by_descriptor
                        else os.lstat(system_path(self._full(below)))
                    )
                    if stat.S_ISREG(status.st_mode) or is_link(status):
                        yield below, status
                    elif stat.S_ISDIR(status.st_mode) and below != OWN_FOLDER:
                        waiting.append((below, current.open_below(name)))
                        yield below, status

    def look(self, paths: Sequence[bytes]) -> list[StoredFile | None]:
        """Return the attributes of files in the order given."""
        with self._folders() as folders:
            return [self._look(folders, path) for path in paths]

    def _look(self, folders: FolderCache, path: bytes) -> StoredFile | None:
        check_path(path)
        with self._lost(path), _omitted():
            status = self._at(folders, path).look()
            return _file(path, status) if stat.S_ISREG(status.st_mode) else None
        return None

    def sync(self) -> None:
        """Return once everything that was written before is on stable storage."""
        with self._folders(), self._lost(b""):
            if _SYNC is not None:
                _SYNC(self._root)
            elif hasattr(os, "sync"):
                os.sync()

    def prove(self, paths: Sequence[bytes]) -> list[ProvenFile | None]:
        """Read files back and hash them, several at once; in the order given."""
        proven: list[ProvenFile | None] = []
        with self._folders() as folders:
            for start in range(0, len(paths), hashing.LANES):
                proven += self._prove(folders, paths[start : start + hashing.LANES])
        return proven

    def _prove(self, folders: FolderCache, paths: Sequence[bytes]) -> list[ProvenFile | None]:
        opened: list[_Opened | None] = []
        try:
            for path in paths:
                opened.append(self._open_file(folders, path))
            for file in opened:
                if file is not None:
                    # Before this, `sync` or the writer has written what had changed.
                    advise(file.descriptor, 0, 0, "POSIX_FADV_DONTNEED")
            active = [file for file in opened if file is not None]
            while active:
                pieces = [(file, self._read_piece(file)) for file in active]
                hashing.update_all([(file.checksum, piece) for file, piece in pieces if piece])
                active = [file for file, piece in pieces if piece]
            return [self._finish(folders, file) if file else None for file in opened]
        finally:
            for file in opened:
                if file is not None:
                    os.close(file.descriptor)

    def _open_file(self, folders: FolderCache, path: bytes) -> "_Opened | None":
        """Return an open regular file with its attributes; None for anything else."""
        file = self._look(folders, path)
        if file is None:
            return None
        with self._lost(path), _omitted():
            descriptor = self._at(folders, path).open(os.O_RDONLY)
            if _SYNC is None:
                with suppress(OSError):  # Windows flushes only what is open for writing
                    os.fsync(descriptor)
            return _Opened(file, descriptor, hashing.new(self.algorithm))
        return None

    def _read_piece(self, file: "_Opened") -> bytes:
        try:
            return os.read(file.descriptor, CHUNK)
        except OSError as error:
            if is_lost(error) and error.errno != errno.EIO:
                raise self._unavailable(error) from error
            file.failed.append(error)
            return b""

    def _finish(self, folders: FolderCache, file: "_Opened") -> ProvenFile | None:
        """Return the result for a file that was read, if its path still has the same attributes."""
        read = os.fstat(file.descriptor)
        same = self._look(folders, file.file.path) == file.file
        if file.failed or not same or (read.st_ino and read.st_ino != file.file.inode):
            return None
        return ProvenFile(file.file, file.checksum.hexdigest())

    def place(self, placements: Sequence[Placement]) -> list[StoredFile | Problem]:
        """Give temporary files their final names; in the order given."""
        with self._folders() as sources, self._folders() as targets:
            return [self._place(sources, targets, placement) for placement in placements]

    def _place(
        self, sources: FolderCache, targets: FolderCache, placement: Placement
    ) -> StoredFile | Problem:
        temporary, final, mode, *_ = placement
        check_path(final)
        if self._look(sources, temporary) is None:
            return describe_missing(temporary)
        try:
            source = self._at(sources, temporary)
            target = self._make_parents(targets, final)
            _set_mode(source, os.O_RDONLY, mode)
            self._rename(source, target)
            return _file(final, target.look())
        except OSError as error:
            self._raise_if_lost(error)
            return describe_error(final, error)

    def _rename(self, source: NameInFolder, target: NameInFolder) -> None:
        """Rename a file, never replacing anything; raises FileExistsError instead."""
        try:
            if self._links and self._link(source, target):
                source.unlink()
            else:
                self._move(source, target)
                self._links = False
        except FileExistsError:
            if not os.path.samestat(source.look(), target.look()):
                raise
            source.unlink()  # an interrupted call has given it its final name

    def _link(self, source: NameInFolder, target: NameInFolder) -> bool:
        """Give a file a second name; return False where the file system has no hard links."""
        try:
            source.link(target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        return True

    def _move(self, source: NameInFolder, target: NameInFolder) -> None:
        """Rename a file where there are no hard links (FAT, some mounts).

        Windows refuses a name that is taken. Elsewhere, it is checked before, so that a file that
        somebody makes in between would be replaced.
        """
        if os.name != "nt":
            with suppress(FileNotFoundError):
                target.look()
                raise FileExistsError(errno.EEXIST, "the name is taken")
        os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)

    def set_mode(self, paths: Sequence[bytes], mode: int) -> None:
        """Set the permissions of regular files, as far as the system allows it."""
        with self._folders() as folders:
            for path in paths:
                if os.name == "nt" or self._look(folders, path) is None:
                    continue
                with suppress(OSError):
                    descriptor = self._at(folders, path).open(os.O_RDONLY)
                    try:
                        os.fchmod(descriptor, mode)
                    finally:
                        os.close(descriptor)

    def remove(self, paths: Sequence[bytes]) -> None:
        """Remove files below `.mydata-like`; missing ones count as removed."""
        for path in paths:
            check_own(path)
        with self._folders() as folders:
            for path in paths:
                with self._refusals(path), suppress(FileNotFoundError):
                    self._at(folders, path).unlink()

    def read(self, path: bytes) -> bytes | None:
        """Return the content of a file below `.mydata-like`; None if it is missing."""
        check_own(path)
        with self._folders() as folders:
            if self._look(folders, path) is None:
                return None
            with self._refusals(path), suppress(FileNotFoundError):
                descriptor = self._at(folders, path).open(os.O_RDONLY)
                with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
                    return file.read()
        return None

    @contextmanager
    def open_content(self, path: bytes, offset: int = 0) -> Iterator[StoredContent | None]:
        """Open a file for reading from an offset on."""
        with self._folders() as folders:
            found = self._look(folders, path)
            opened = self._open_file(folders, path) if found else None
        if opened is None and found is not None:
            raise unreadable(path, b"Permission denied")
        if opened is None:
            yield None
            return
        try:
            status = os.fstat(opened.descriptor)
            os.lseek(opened.descriptor, offset, os.SEEK_SET)
            sparse = getattr(status, "st_blocks", status.st_size) * 512 + CHUNK < status.st_size
            pieces = self._read_on(opened)
            yield StoredContent(path, pieces, status.st_mode & 0o777, sparse=sparse)
        finally:
            os.close(opened.descriptor)

    def _read_on(self, opened: "_Opened") -> Iterator[bytes]:
        while piece := self._read_piece(opened):
            yield piece
        for error in opened.failed:
            raise unreadable(opened.file.path, os.fsencode(str(error.strerror))) from error

    def list_tree(self, folder: bytes) -> Iterator[TreeFolder | TreeLink]:
        """Yield a folder, and the folders and links below it."""
        with self._folders() as folders, self._lost(folder), _omitted():
            top = self._at(folders, folder).look() if folder else os.stat(system_path(self._root))  # noqa: PTH116 - bytes
            if not _is_folder(top):
                return
            for path, status in [(folder, top), *self._walk(folder)]:
                if _is_folder(status):
                    yield TreeFolder(path, status.st_mode & 0o777, status.st_mtime_ns)
                elif is_link(status):
                    place = self._at(folders, path)
                    yield TreeLink(path, os.readlink(place.name, dir_fd=place.folder))

    def list_own(self, folder: bytes) -> list[bytes]:
        """Return the sorted paths of the complete files below a folder, from there."""
        folder = folder.removesuffix(b"/")
        check_own(folder)
        return sorted(
            path[len(folder) + 1 :]
            for path, status in self._walk(folder)
            if stat.S_ISREG(status.st_mode) and not path.rpartition(b"/")[2].startswith(_PART)
        )

    def write(self, path: bytes, content: bytes, *, replace: bool = False) -> bool:
        """Write a file below `.mydata-like`; return False if its name is taken."""
        check_own(path)
        folder = path.rpartition(b"/")[0]
        part = folder + b"/" + _PART + secrets.token_hex(8).encode()
        with self._folders() as folders, self._refusals(path):
            target = self._make_parents(folders, path)
            source = self._at(folders, part)
            try:
                self._write_part(source, content)
                if replace:
                    os.replace(
                        source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder
                    )
                else:
                    self._rename(source, target)
            except FileExistsError:
                return False
            finally:
                with suppress(OSError):
                    source.unlink()
            if target.folder is not None:
                _sync_folder(target.folder)
        return True

    def make_tree(self, folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> list[Problem]:
        """Make folders and links that are missing; return what cannot be made."""
        problems = []
        with self._folders() as opened:
            for folder in folders:
                problems += self._try_making(opened, folder.path, None)
            for link in links:
                problems += self._try_making(opened, link.path, link.target)
            for folder in reversed(folders):  # the inner ones first, while they can be entered
                with suppress(OSError):
                    place = self._at(opened, folder.path)
                    _set_mode(place, FOLDER, folder.mode)
                    times = (folder.modified_ns, folder.modified_ns)
                    follow = os.utime not in os.supports_follow_symlinks
                    os.utime(place.name, ns=times, dir_fd=place.folder, follow_symlinks=follow)
        return problems

    def _try_making(self, folders: FolderCache, path: bytes, target: bytes | None) -> list[Problem]:
        """Make a link, or a folder if there is no `target`; return what is in the way."""
        check_path(path)
        try:
            place = self._make_parents(folders, path)
            if target is not None:
                _make_link(place, target)
            else:
                with suppress(FileExistsError):
                    os.mkdir(place.name, dir_fd=place.folder)
                folders.enter(self._full(path), len(self._root))
                if not stat.S_ISDIR(place.look().st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, "a file is in the way")
        except OSError as error:
            self._raise_if_lost(error)
            return [describe_error(path, error)]
        return []

    def clear(self, folder: bytes) -> bool:
        """Remove the empty folders at and below a folder below `.mydata-like`."""
        check_own(folder)
        below = (path for path, status in self._walk(folder) if _is_folder(status))
        found = [folder, *below]
        with self._folders() as folders:
            for path in sorted(found, reverse=True):
                with suppress(OSError):
                    place = self._at(folders, path)
                    os.rmdir(place.name, dir_fd=place.folder)
        return True

    def close(self) -> None:
        """Do nothing: what a method opens it closes."""

    @contextmanager
    def _folders(self) -> Iterator[FolderCache]:
        """Yield a cache of open folders; raises unless the destination is the one of `open`."""
        with FolderCache(by_descriptor=self._by_descriptor) as folders:
            try:
                there = os.stat(system_path(self._root))  # noqa: PTH116 - bytes
                folders.enter(self._root, len(self._root))
            except OSError as error:
                raise self._unavailable(error) from error
            if self._opened not in (None, (there.st_dev, there.st_ino)):
                raise self._unavailable(OSError(errno.ENOENT, "another folder is in its place"))
            yield folders

    def _full(self, path: bytes) -> bytes:
        return (self._root.rstrip(b"/") + b"/" + path) if path else self._root

    def _at(self, folders: FolderCache, path: bytes) -> NameInFolder:
        """Return the place of a path; raises OSError, with ELOOP for a link above it."""
        if os.sep != "/" and any(byte in path for byte in b"\\:"):
            raise OSError(errno.EINVAL, "the name is not possible on this system")
        full = self._full(path)
        folder, _, name = full.rpartition(b"/")
        place = folders.enter(folder or b"/", len(self._root))
        return NameInFolder(system_path(full), None) if place is None else NameInFolder(name, place)

    def _make_parents(self, folders: FolderCache, path: bytes) -> NameInFolder:
        """Return the place of a path; make the folders above it that are missing."""
        try:
            return self._at(folders, path)
        except FileNotFoundError:
            above = path.rpartition(b"/")[0]
            if not above:
                raise
            place = self._make_parents(folders, above)
            with suppress(FileExistsError):
                os.mkdir(place.name, dir_fd=place.folder)
            return self._at(folders, path)

    def _write_part(self, place: NameInFolder, content: bytes) -> None:
        """Write a new file, and flush it."""
        descriptor = place.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _refusals(self, path: bytes) -> Iterator[None]:
        """Raise `StagingError` for what the system refuses."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            self._raise_if_lost(error)
            problem = describe_error(path, error)
            raise StagingError(problem.message, hint=problem.hint, code=problem.code) from error

    @contextmanager
    def _lost(self, path: bytes) -> Iterator[None]:
        """Raise `TransientError` if the destination was lost; other errors are passed on."""
        try:
            yield
        except OSError as error:
            self._raise_if_lost(error)
            raise StagingError(
                f"{format_path(path or self._root)} at the destination cannot be read: "
                f"{error.strerror}.",
                code="destination.refused",
            ) from error

    def _raise_if_lost(self, error: OSError) -> None:
        if is_lost(error):
            raise TransientError(
                f"The destination {format_path(self._root)} was lost: {error.strerror}.",
                code="staging.lost",
            ) from error

    def _unavailable(self, error: OSError) -> ServerUnavailableError:
        return ServerUnavailableError(
            f"The destination {format_path(self._root)} cannot be reached: "
            f"{(error.strerror or str(error)).rstrip('.')}.",
            hint="If it is on a disk or a share, mount it.",
            code=ABSENT,
        )


def _close(folders: list[tuple[bytes, OpenFolder]]) -> None:
    for _, folder in folders:
        folder.close()


class _Opened:
    """A file that is read and hashed."""

    def __init__(self, file: StoredFile, descriptor: int, checksum: hashing.Checksum) -> None:
        self.file = file
        self.descriptor = descriptor
        self.checksum = checksum
        self.failed: list[OSError] = []


def _is_folder(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and not is_link(status)


def _file(path: bytes, status: os.stat_result) -> StoredFile:
    return StoredFile(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@contextmanager
def _omitted() -> Iterator[None]:
    """Omit what is missing, may not be read, or leads over a link."""
    try:
        yield
    except OSError as error:
        if error.errno not in (
            errno.ENOENT,
            errno.ENOTDIR,
            errno.ELOOP,
            errno.EACCES,
            errno.EPERM,
            errno.ENAMETOOLONG,
            errno.EINVAL,
            errno.ENXIO,
            errno.EISDIR,
        ):
            raise


def _set_mode(place: NameInFolder, flags: int, mode: int) -> None:
    """Set the mode of a file or folder as far as the file system does that."""
    if not hasattr(os, "fchmod"):  # Windows
        return
    descriptor = place.open(flags)
    try:
        with suppress(PermissionError, NotImplementedError):
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def _make_link(place: NameInFolder, target: bytes) -> None:
    """Make a link, unless an identical one exists; raises OSError."""
    try:
        os.symlink(target, place.name, dir_fd=place.folder)
    except FileExistsError:
        if not is_link(place.look()):
            raise
        if os.readlink(place.name, dir_fd=place.folder) != target:
            raise


def _sync_folder(folder: int) -> None:
    """Make the names in a folder durable, where that is possible."""
    with suppress(OSError):
        descriptor = os.open(b".", FOLDER, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def describe_error(path: bytes, error: OSError) -> Problem:
    """Return the problem of a path that the system refuses."""
    code = getattr(error, "winerror", None)
    if error.errno == errno.ELOOP:
        return describe_link(path)
    if is_full(error):
        return describe_refusal(path, b"No space left on device")
    if is_read_only(error):
        return describe_refusal(path, b"Read-only file system")
    if error.errno in (errno.EACCES, errno.EPERM):
        return describe_refusal(path, b"Permission denied")
    if error.errno in _NAME or code in _NAME_WINDOWS:
        return describe_refusal(path, b"File name too long")
    if error.errno in _IN_THE_WAY:
        return describe_occupied(path)
    return describe_refusal(path, os.fsencode(error.strerror or str(error)))


def _find_type(path: bytes) -> str:
    """Return the type of the file system of a path; empty if it is not known."""
    found, longest = "", -1
    there = os.path.realpath(path) + b"/"
    try:
        with open("/proc/self/mountinfo", "rb") as mounts:  # noqa: PTH123 - no other path
            lines = mounts.read().splitlines()
    except OSError:
        return ""
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        mounted = fields.split(b" ")[4].decode("unicode_escape").encode("latin-1", "replace")
        if there.startswith(mounted.rstrip(b"/") + b"/") and len(mounted) >= longest:
            found, longest = rest.split(b" ")[0].decode("ascii", "replace"), len(mounted)
    return found


def _sync_file_system(path: bytes) -> None:
    """Write everything to the file system of a path (`syncfs` of Linux); raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


_SYNC: Final = _sync_file_system if sys.platform == "linux" else None
