"""File operations below a mounted folder, with the interface of an SFTP session.

Every path is opened folder by folder below the folder itself, which stays open: what is written
never lands elsewhere, neither through a link nor in the empty directory that an unmounted folder
leaves behind. A file is durable when it is closed, its name when it is renamed.
"""

import errno
import os
import shutil
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Final, NamedTuple

from mydata_like.core.errors import (
    RejectedError,
    ServerUnavailableError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.openat import BY_DESCRIPTOR, FOLDER, NO_LINK, FolderCache
from mydata_like.ssh.session import RemoteEntry, SmallFile
from mydata_like.transfer.file_source import LARGE, advise
from mydata_like.transfer.folder.staging_folder import StagingFolder
from mydata_like.transfer.sparse import zeros
from mydata_like.transfer.tar import is_plain

_FLAGS: Final = (
    os.O_CREAT
    | NO_LINK
    | getattr(os, "O_NONBLOCK", 0)  # do not block on a FIFO
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)
_MODE: Final = 0o660
_SMALL: Final = 64 * 1024  # bytes that `read_file` reads
_TOGETHER: Final = (8, 1, 32)  # small files that become durable together: at first, least, most

_FULL: Final = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_FULL_WINDOWS: Final = {39, 112, 1295}  # ERROR_HANDLE_DISK_FULL, _DISK_FULL, _DISK_QUOTA_EXCEEDED
_PROTECTED_WINDOWS: Final = 19  # ERROR_WRITE_PROTECT
_GONE: Final = {
    getattr(errno, name)
    for name in (
        *("ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTDOWN", "EHOSTUNREACH", "EIO"),
        *("EKEYEXPIRED", "EKEYREVOKED", "ENETDOWN", "ENETRESET", "ENETUNREACH", "ENODEV"),
        *("ENOKEY", "ENOLINK", "ENONET", "ENOTCONN", "EPIPE", "EREMOTEIO", "ESHUTDOWN"),
        *("ESTALE", "ETIMEDOUT"),
    )
    if hasattr(errno, name)
}
# ERROR_NOT_READY, _BAD_NETPATH, _DEV_NOT_EXIST, _UNEXP_NET_ERR, _NETNAME_DELETED, _BAD_NET_NAME,
# _NO_NET_OR_BAD_PATH, _NETWORK_UNREACHABLE and its neighbours, and others of lost connections:
# https://learn.microsoft.com/windows/win32/debug/system-error-codes
_GONE_WINDOWS: Final = {21, 51, 53, 54, 55, 59, 64, 67, 121, 1203, 1222, 1225, 1231, 1236, 1256}


class _folder_errors:  # noqa: N801 - reads as the statement it is used in
    """Convert OSError of an operation on a path below the folder."""

    def __init__(self, path: bytes) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise translated(self._path, error) from error


def translated(path: bytes, error: OSError) -> UploaderError:
    """Return the error for what the system refuses.

    A lost folder is a `TransientError`, and so is one that is read-only: that is what Linux makes
    of a disk that was removed or fails. Everything else is a `RejectedError`; its message is that
    of a host where no space is left.
    """
    shown, reason = format_path(path), _name_reason(error)
    if is_full(error):
        return RejectedError(f"{shown}: No space left on device", code="staging.full")
    if is_lost(error) or is_read_only(error):
        return TransientError(f"The folder was lost: {shown}: {reason}.", code="staging.lost")
    return _rejected(shown, reason, error.errno)


def is_full(error: OSError) -> bool:
    """Return whether no space is left, or a quota is used up."""
    return error.errno in _FULL or getattr(error, "winerror", None) in _FULL_WINDOWS


def is_lost(error: OSError) -> bool:
    """Return whether the folder, or the disk or share that it is on, was lost."""
    return error.errno in _GONE or getattr(error, "winerror", None) in _GONE_WINDOWS


def is_read_only(error: BaseException | None) -> bool:
    """Return whether the file system is mounted read-only."""
    return isinstance(error, OSError) and (
        error.errno == errno.EROFS or getattr(error, "winerror", None) == _PROTECTED_WINDOWS
    )


@contextmanager
def opening(folder: StagingFolder) -> Iterator[None]:
    """Raise `ServerUnavailableError` if a folder is lost while it is opened."""
    try:
        yield
    except TransientError as error:
        cause = error.__cause__
        reason = _name_reason(cause) if isinstance(cause, OSError) else error.message
        raise _absent(folder.path, reason) from error


@contextmanager
def first_writing(folder: StagingFolder) -> Iterator[None]:
    """Raise `StagingError` if a folder is read-only to which nothing was written before."""
    try:
        yield
    except TransientError as error:
        if not is_read_only(error.__cause__):
            raise
        raise StagingError(
            f"The folder {folder.host} is mounted read-only.",
            hint="Mount it with write access.",
            code="staging.denied",
        ) from error


def _rejected(shown: str, reason: str, number: int | None) -> RejectedError:
    if number == errno.ELOOP:
        message = f"{shown} contains a symbolic link, which is not followed."
        return RejectedError(message, code="staging.denied")
    if number in (errno.EACCES, errno.EPERM):
        return RejectedError(
            f"{shown} cannot be written: {reason}.",
            hint="Give the account that runs this program write access to the folder.",
            code="staging.denied",
        )
    return RejectedError(f"{shown} cannot be written: {reason}.", code="staging.refused")


def _name_reason(error: OSError) -> str:
    return (error.strerror or str(error)).rstrip(".")


def open_files(folder: StagingFolder, *, by_descriptor: bool = BY_DESCRIPTOR) -> "FolderFiles":
    """Return the files of a folder after its marker was found in it.

    Raises `ServerUnavailableError` if the folder is not there or has no marker, and `StagingError`
    if it is that of another storage box.
    """
    files = FolderFiles(folder.path, by_descriptor=by_descriptor)
    try:
        files.require(folder)
    except UploaderError:
        files.close()
        raise
    return files


class FolderFiles:
    """File operations below a folder; see `SftpSession`. Paths begin with that of the folder."""

    round_trip = 0.0

    def __init__(self, root: bytes, *, by_descriptor: bool = BY_DESCRIPTOR) -> None:
        """Open the folder; raises `ServerUnavailableError` if it is not there."""
        self._root = root
        self._folders = FolderCache(by_descriptor=by_descriptor)
        self._marked: StagingFolder | None = None
        self._together = _Step(*_TOGETHER)
        try:
            # Without descriptors (Windows), the marker is read again before each file is written.
            self._stays_open = self._folders.enter(root, len(root)) is not None
        except OSError as error:
            raise _absent(root, _name_reason(error)) from error

    def require(self, folder: StagingFolder) -> None:
        """Read the marker, and expect it from now on."""
        self._marked = folder
        found = self._read_marker(folder)
        if not found:
            raise ServerUnavailableError(
                f"{folder.host} is not known as the folder of the storage box {folder.box}: it has "
                f"no file {folder.marker_name.decode()}.",
                hint="Before the first run, confirm it with: mydata-like register. If the folder "
                "is not mounted, mount it.",
                code="staging.unconfirmed",
            )
        if found != folder.marker:
            raise StagingError(
                f"{folder.host} is the folder of another storage box, not of {folder.box} with the "
                f"location {folder.location}.",
                hint="Correct transfer.folder, or the file "
                f"{folder.marker_name.decode()} in the folder if the storage box was renamed or "
                "moved.",
                code="staging.wrong",
            )

    def _read_marker(self, folder: StagingFolder) -> bytes:
        with opening(folder):
            return self.read_file(folder.below(folder.marker_name))

    def put_all(self, puts: Iterable[SmallFile]) -> Iterator[tuple[int, RejectedError | None]]:
        """Write small files; yield the index and error of each when it is durable.

        The system writes several to the disk at once, which is faster than one after another.
        """
        self._require_again()
        written: deque[_WrittenFile] = deque()
        try:
            for place, put in enumerate(puts):
                try:
                    written.append(_WrittenFile(place, put, self._write(put)))
                except RejectedError as error:
                    yield place, self._give_up(put, error)
                if len(written) >= self._together.size:
                    yield from self._settle(written)
            yield from self._settle(written)
        finally:
            for left in written:
                with suppress(OSError):
                    os.close(left.descriptor)

    def _write(self, put: SmallFile) -> int:
        """Return the descriptor of a small file that is written under its temporary name."""
        with _folder_errors(put.part):
            try:
                descriptor = self._open(put.part, os.O_WRONLY | os.O_EXCL)
            except FileExistsError:  # an earlier attempt has left it
                descriptor = self._open(put.part, os.O_WRONLY | os.O_TRUNC)
            try:
                view = memoryview(put.content)
                while view:
                    view = view[os.write(descriptor, view) :]
                _describe(descriptor, put.part, put.mode, put.modified)
            except OSError:
                os.close(descriptor)
                raise
            return descriptor

    def _settle(self, written: "deque[_WrittenFile]") -> Iterator[tuple[int, RejectedError | None]]:
        """Make written files durable, then their names; take them from the queue."""
        began = time.monotonic()
        for file in written:
            # On Linux, this starts to write what has changed.
            advise(file.descriptor, 0, 0, "POSIX_FADV_DONTNEED")
        renamed: dict[bytes, list[int]] = {}  # the indexes by directory
        while written:
            file = written.popleft()
            try:
                self._finish(file)
            except RejectedError as error:
                yield file.place, self._give_up(file.put, error)
            else:
                renamed.setdefault(file.put.target.rpartition(b"/")[0], []).append(file.place)
        for folder, places in renamed.items():
            refusal = self._try_sync(folder)
            yield from ((place, refusal) for place in places)
        self._together.adapt(time.monotonic() - began)

    def _finish(self, file: "_WrittenFile") -> None:
        """Make a written file durable, close and rename it."""
        put = file.put
        with _folder_errors(put.part):
            try:
                os.fsync(file.descriptor)
                complete = os.fstat(file.descriptor).st_size == len(put.content)
            finally:
                os.close(file.descriptor)
            if not complete:
                raise RejectedError(
                    f"{format_path(put.part)} was not written completely.", code="staging.refused"
                )
            self._rename(put.part, put.target)

    def _give_up(self, put: SmallFile, error: RejectedError) -> RejectedError:
        """Remove the temporary file of a small file that was refused; return the error."""
        with suppress(RejectedError):
            self.remove(put.part)
        return error

    def _try_sync(self, folder: bytes) -> RejectedError | None:
        """Make the names in a directory durable; return the error if that is refused."""
        try:
            with _folder_errors(folder):
                self._sync(folder)
        except RejectedError as error:
            return error
        return None

    def open_file(self, path: bytes, *, keep: bool = False) -> "FolderFile":
        """Open a file for writing at its start; with `keep`, only bytes that differ are written."""
        self._require_again()
        with _folder_errors(path):
            flags = os.O_RDWR if keep else os.O_WRONLY | os.O_TRUNC
            return FolderFile(self._open(path, flags), path, keep=keep)

    def read_file(self, path: bytes) -> bytes:
        """Return the content of a small file; empty if it does not exist."""
        with _folder_errors(path):
            try:
                descriptor = self._open(path, os.O_RDONLY, create=False)
            except FileNotFoundError:
                return b""
            try:
                return os.read(descriptor, _SMALL)
            finally:
                os.close(descriptor)

    def read_chunks(self, path: bytes, size: int) -> Iterator[bytes]:
        """Yield the content of a file in pieces of at most `size` bytes."""
        with _folder_errors(path):
            descriptor = self._open(path, os.O_RDONLY, create=False)
            try:
                while chunk := os.read(descriptor, size):
                    yield chunk
            finally:
                os.close(descriptor)

    def make_directories(self, path: bytes, mode: int) -> None:
        """Create a directory and its missing parents."""
        with _folder_errors(path):
            if self._has_folder(path):
                return
            if len(path) <= len(self._root):
                raise _deleted(path)
            above = path.rpartition(b"/")[0]
            self.make_directories(above, mode)
            name, place = self._at(path)
            try:
                os.mkdir(name, mode, dir_fd=place)
            except FileExistsError:  # another channel has created it
                pass
            except FileNotFoundError as error:
                raise _deleted(above) from error
            if place is not None:
                self._set_mode(path, mode)
            self._sync(above)

    def _has_folder(self, path: bytes) -> bool:
        try:
            self._enter(path)
        except FileNotFoundError:
            return False
        return True

    def find_size(self, path: bytes) -> int | None:
        """Return the size of a file, None if it does not exist."""
        with _folder_errors(path):
            try:
                return self._look(path).st_size
            except FileNotFoundError:
                return None

    def find_modified(self, path: bytes) -> int:
        """Return the modification time of a file, in seconds since 1970."""
        with _folder_errors(path):
            return int(self._look(path).st_mtime)

    def find_free(self, path: bytes) -> int | None:
        """Return the bytes that are free for new files below a path."""
        with _folder_errors(path):
            place = self._enter(path)
            if place is None:
                return shutil.disk_usage(system_path(path)).free
            status = os.fstatvfs(place)
            return status.f_bavail * status.f_frsize

    def list_files(self, path: bytes) -> list[RemoteEntry]:
        """Return the regular files of a directory."""
        with _folder_errors(path):
            place = self._enter(path)
            if place is None:
                return _list(system_path(path))
            descriptor = os.open(b".", FOLDER, dir_fd=place)
            try:
                return _list(descriptor)
            finally:
                os.close(descriptor)

    def replace(self, source: bytes, target: bytes) -> None:
        """Rename and replace `target`; the new name is durable on return."""
        with _folder_errors(target):
            self._rename(source, target)
            self._sync(target.rpartition(b"/")[0])

    def _rename(self, source: bytes, target: bytes) -> None:
        name, place = self._at(source)
        if source.rpartition(b"/")[0] == target.rpartition(b"/")[0] or place is None:
            os.replace(name, self._at(target)[0], src_dir_fd=place, dst_dir_fd=place)
            return
        kept = os.dup(place)
        try:
            final, other = self._at(target)
            os.replace(name, final, src_dir_fd=kept, dst_dir_fd=other)
        finally:
            os.close(kept)

    def link(self, source: bytes, target: bytes) -> bool:
        """Give a file a second name that does not exist yet; return whether that is possible."""
        with _folder_errors(target):
            name, place = self._at(source)
            final = self._at(target)[0]  # in the same directory
            try:
                os.link(name, final, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
            except (OSError, NotImplementedError):
                return False  # a rename follows, which reports what is wrong
            self._sync(target.rpartition(b"/")[0])
            return True

    def set_attributes(self, path: bytes, *, mode: int, modified: float) -> bool:
        """Set a file's mode and modification time; return whether the time was set."""
        with _folder_errors(path):
            descriptor = self._open(path, os.O_WRONLY, create=False)
            try:
                return _describe(descriptor, path, mode, modified)
            finally:
                os.close(descriptor)

    def remove(self, path: bytes) -> None:
        """Remove a file; a missing file is not an error."""
        with _folder_errors(path), suppress(FileNotFoundError):
            name, place = self._at(path)
            os.unlink(name, dir_fd=place)

    def remove_directory(self, path: bytes) -> None:
        """Remove a directory and all that is in it; a missing one is not an error."""
        with _folder_errors(path), suppress(FileNotFoundError):
            name, place = self._at(path)
            shutil.rmtree(name, dir_fd=place)

    def close(self) -> None:
        """Close the folder."""
        self._folders.close()

    def _require_again(self) -> None:
        """Read the marker again where the folder cannot be kept open."""
        if not self._stays_open and self._marked is not None:
            self.require(self._marked)

    def _at(self, path: bytes) -> tuple[bytes, int | None]:
        """Return the last name of a path and the descriptor of its folder.

        Without descriptors (Windows), return the whole path. Raises OSError, with ELOOP for a link.
        """
        folder, _, name = path.rpartition(b"/")
        if not _is_possible(path[len(self._root) + 1 :]):
            raise _impossible()
        place = self._folders.enter(folder, len(self._root))
        return (system_path(path), None) if place is None else (name, place)

    def _enter(self, folder: bytes) -> int | None:
        """Return the descriptor of a directory as `FolderCache.enter` does."""
        if folder != self._root and not _is_possible(folder[len(self._root) + 1 :]):
            raise _impossible()
        return self._folders.enter(folder, len(self._root))

    def _open(self, path: bytes, flags: int, *, create: bool = True) -> int:
        """Return a descriptor of a regular file; raises OSError.

        Raises `TransientError` if its directory, in which it would be created, was deleted.
        """
        name, place = self._at(path)
        flags |= _FLAGS if create else _FLAGS & ~os.O_CREAT
        try:
            descriptor = os.open(name, flags, _MODE, dir_fd=place)
        except FileNotFoundError as error:
            if create:
                raise _deleted(path.rpartition(b"/")[0]) from error
            raise
        created = flags & os.O_EXCL  # which is never anything but a regular file
        if not created and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a regular file")
        return descriptor

    def _look(self, path: bytes) -> os.stat_result:
        name, place = self._at(path)
        return os.stat(name, dir_fd=place, follow_symlinks=False)

    def _set_mode(self, path: bytes, mode: int) -> None:
        """Set the mode of a directory as far as the file system does that."""
        place = self._enter(path)
        descriptor = os.open(b".", FOLDER, dir_fd=place)
        try:
            _is_allowed(partial(os.fchmod, descriptor, mode))
        finally:
            os.close(descriptor)

    def _sync(self, folder: bytes) -> None:
        """Make the names in a directory durable, where a directory can be opened for that."""
        place = self._enter(folder)
        if place is None:
            return
        try:
            descriptor = os.open(b".", FOLDER, dir_fd=place)
        except PermissionError:  # it can be written but not listed
            return
        try:
            _is_allowed(partial(os.fsync, descriptor))
        finally:
            os.close(descriptor)


_SOON: Final = 0.5  # seconds; if it takes less, the step is doubled
_LATE: Final = 2.0  # seconds; if it takes longer, the step is halved


class _Step:
    """How much is written before it is made durable, so that a slow folder still shows progress."""

    def __init__(self, first: int, least: int, most: int) -> None:
        self.size = first
        self._least = least
        self._most = most

    def adapt(self, took: float) -> None:
        """Change the size by the seconds that it took to make this much durable."""
        if took < _SOON:
            self.size = min(2 * self.size, self._most)
        elif took > _LATE:
            self.size = max(self.size // 2, self._least)


class _WrittenFile(NamedTuple):
    """A small file that is written and not yet durable; until then its descriptor is open."""

    place: int
    put: SmallFile
    descriptor: int


_MIB: Final = 1024 * 1024
_STEP: Final = (16 * _MIB, _MIB, 128 * _MIB)  # bytes: at first, the least and the most


class FolderFile:
    """A file below the folder that is opened for writing; see `RemoteFile`.

    Bytes that are there already are compared, and only written from the first that differ. What is
    written becomes durable in steps, so that a slow folder is not taken for one that hangs, and
    does not stay in the page cache.
    """

    def __init__(self, descriptor: int, path: bytes, *, keep: bool) -> None:
        self._descriptor = descriptor
        self._path = path
        self._there = os.fstat(descriptor).st_size if keep else 0
        self._offset = 0
        self._pending = 0  # bytes that may be in the page cache only
        self._begun = 0  # up to here, the system has been told to write
        self._step = _Step(*_STEP)
        if self._there:
            advise(descriptor, 0, 0, "POSIX_FADV_DONTNEED")  # compare what the server has

    def move_to(self, offset: int) -> None:
        """Set the offset of the next write; what is passed is zeros."""
        with _folder_errors(self._path):
            for piece in zeros(min(offset, self._there) - self._offset):
                self._pass(piece)
        self._offset = offset

    def write(self, data: bytes | memoryview) -> None:
        """Write data that is not there already."""
        view = memoryview(data).cast("B")
        with _folder_errors(self._path):
            if self._pass(view):
                return
            os.lseek(self._descriptor, self._offset, os.SEEK_SET)
            while view:
                count = os.write(self._descriptor, view)
                self._offset += count
                self._pending += count
                view = view[count:]
            self._write_through()

    def close(self) -> None:
        """Make everything that was written durable."""
        try:
            with _folder_errors(self._path):
                os.fsync(self._descriptor)
                if self._offset >= LARGE:
                    advise(self._descriptor, 0, 0, "POSIX_FADV_DONTNEED")
        finally:
            with _folder_errors(self._path):
                os.close(self._descriptor)

    def _pass(self, view: memoryview) -> bool:
        """Pass bytes that are there already; otherwise truncate the file here."""
        end = self._offset + len(view)
        if end <= self._there and self._read(len(view)) == view:
            self._offset = end
            return True
        if self._offset < self._there:
            os.ftruncate(self._descriptor, self._offset)
        self._there = 0
        return False

    def _read(self, size: int) -> bytes:
        os.lseek(self._descriptor, self._offset, os.SEEK_SET)
        found = bytearray()
        while len(found) < size and (more := os.read(self._descriptor, size - len(found))):
            found += more
        return bytes(found)

    def _write_through(self) -> None:
        """Let the system start to write, and after each step wait until it has."""
        if self._pending >= self._step.size:
            began = time.monotonic()
            os.fsync(self._descriptor)
            self._step.adapt(time.monotonic() - began)
            self._pending = 0
            advise(self._descriptor, 0, self._offset, "POSIX_FADV_DONTNEED")
            self._begun = self._offset
        elif self._offset - self._begun >= LARGE:
            # On Linux, this starts to write what has changed.
            advise(self._descriptor, self._begun, LARGE, "POSIX_FADV_DONTNEED")
            self._begun = self._offset


_UNSUPPORTED: Final = {
    getattr(errno, name)
    for name in ("EACCES", "EBADF", "EINVAL", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EPERM")
    if hasattr(errno, name)
}


def _is_allowed(change: Callable[[], object]) -> bool:
    """Make a change; return False if the file system does not support or allow it."""
    try:
        change()
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    return True


def _describe(descriptor: int, path: bytes, mode: int, modified: float) -> bool:
    """Set the mode and modification time of an open file; return whether the time was set."""
    if os.utime not in os.supports_fd:  # Windows
        return _is_allowed(partial(os.utime, system_path(path), (modified, modified)))
    _is_allowed(partial(os.fchmod, descriptor, mode))
    return _is_allowed(partial(os.utime, descriptor, (modified, modified)))


def _list(folder: int | bytes) -> list[RemoteEntry]:
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    return [
        RemoteEntry(os.fsencode(name), status.st_size, int(status.st_mtime))
        for name, status in found
        if stat.S_ISREG(status.st_mode)
    ]


def _is_possible(below: bytes) -> bool:
    """Return whether a relative path names the same on this system as on the server."""
    return is_plain(below) and (os.sep == "/" or not any(byte in below for byte in b"\\:"))


def _impossible() -> OSError:
    return OSError(errno.EINVAL, "the path is not possible below the folder")


def _deleted(folder: bytes) -> TransientError:
    """Return the error for a directory that is gone while it is used; a new session opens it."""
    return TransientError(f"The folder {format_path(folder)} was deleted.", code="staging.lost")


def _absent(root: bytes, reason: str) -> ServerUnavailableError:
    return ServerUnavailableError(
        f"The folder {format_path(root)} cannot be reached: {reason}.",
        hint="Mount it, or correct transfer.folder.",
        code="staging.absent",
    )
