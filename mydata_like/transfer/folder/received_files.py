"""Files that a local folder receives from a destination: written beside their places, then named.

Bytes are hashed while they are written. A file gets its name once its size and checksum are those
of the manifest, and its bytes are on stable storage. Nothing that exists is replaced unless that is
asked for, and no link below the folder is followed.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Final, NamedTuple

from mydata_like.core import hashing
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import StoredContent, TreeFolder, TreeLink, Unpack
from mydata_like.core.errors import FULL, Problem, StagingError
from mydata_like.core.file_access import system_path
from mydata_like.core.openat import FolderCache
from mydata_like.transfer.destination_problems import DENIED, READ_ONLY, no_folder
from mydata_like.transfer.file_source import advise
from mydata_like.transfer.folder.mounted_files import (
    LocalFiles,
    NameInFolder,
    describe_error,
)
from mydata_like.transfer.sparse import SMALLEST_HOLE
from mydata_like.transfer.tiny_files import COMPLETE, MOST_FILES, TinyFileWriter
from mydata_like.transfer.zero_runs import is_zero

RESUMED: Final = 1024 * 1024  # bytes; files of this size are continued after an interruption
DIFFERS: Final = "destination.differs"
PART: Final = b".mydata-get-"  # the beginning of a temporary name
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL
_READ: Final = 1024 * 1024
_AHEAD: Final = 8 * 1024 * 1024  # bytes that the system begins to store at once
_BLOCK: Final = SMALLEST_HOLE  # of zeros, which becomes a hole
_FLUSHED_TOGETHER: Final = hasattr(os, "sync")

_WORDS: Final = (  # of problems at destinations; here they are about the folder that receives
    ("The destination", "The target folder"),
    ("the destination is", "the target folder is"),
    ("another destination", "another folder"),
    ("Give the account of the destination write access.", "Choose a folder with write access."),
    ("Check the destination.", "Check the target folder."),
    (" at the destination", ""),
)


HashedPiece = tuple[hashing.Checksum, bytes]


def hash_alone(steps: Generator[HashedPiece, None, bool]) -> bool:
    """Run the steps of `Reception.write`; return their result."""
    try:
        while True:
            checksum, piece = next(steps)
            checksum.update(piece)
    except StopIteration as end:
        return bool(end.value)


class WantedFile(NamedTuple):
    """A file that is to be received, with the size and checksum that its bytes must have.

    `path` is its path at the destination, `place` that below the local folder. Files that are read
    together, of whatever size, have the same number of an `archive`, 0 for none.
    """

    path: bytes
    place: bytes
    size: int
    checksum: str
    modified_ns: int
    archive: int = 0

    @property
    def part(self) -> bytes:
        """Its temporary name, which has the same folder and is the same for each attempt."""
        folder, slash, name = self.place.rpartition(b"/")
        return folder + slash + PART + hashlib.sha256(name).hexdigest()[:16].encode()


class ReceivedFiles(LocalFiles):
    """The files below a local folder that receives others."""

    def __init__(self, path: bytes, *, together: bool = True) -> None:
        """Open nothing yet; this is to be called before other threads make files.

        Tiny ones are written `together` by the library, where there is one.
        """
        super().__init__(path)
        self.together = together
        self.umask = os.umask(0o077)
        os.umask(self.umask)

    def open(self, *, create: bool) -> None:
        """Check that it is a folder; with `create`, make it. Raises `StagingError`.

        Nothing is written to it: a kill would leave that.
        """
        try:
            there = self._find_root(create=create)
        except OSError as error:
            raise _error(_about_target(self._refused(error).problem)) from error
        if not stat.S_ISDIR(there.st_mode):
            raise _error(_about_target(no_folder(self._root).problem))
        self._opened = there.st_dev, there.st_ino

    def make_tree(self, folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> list[Problem]:
        """Make folders and links that are missing; return what cannot be made."""
        return [*map(_about_target, super().make_tree(folders, links))]

    @contextmanager
    def receiving(self, *, replace: bool, sparse: bool) -> "Iterator[Reception]":
        """Yield what receives some files; those that did not get their names leave nothing."""
        with self._folders() as folders:
            yield Reception(self, folders, replace=replace, sparse=sparse)

    def remove_parts(self, files: Iterable[WantedFile]) -> None:
        """Remove the temporary files that interrupted attempts have left for these."""
        with self._folders() as folders:
            for file in files:
                with suppress(OSError):
                    self._at(folders, file.part).unlink()

    def find_place(self, folders: FolderCache, path: bytes) -> NameInFolder:
        """Return the place of a path; folders above it that are missing are made."""
        return self._make_parents(folders, path)

    def rename(self, source: NameInFolder, target: NameInFolder, *, replace: bool) -> None:
        """Give a file its name; unless it may `replace` a regular one, that must be free."""
        if replace:
            with suppress(FileNotFoundError):
                if stat.S_ISREG(target.look().st_mode):
                    os.replace(
                        source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder
                    )
                    return
        self._rename(source, target)

    def judge(self, path: bytes, error: OSError) -> Problem:
        """Return the problem of a path; raises if it is one of the folder itself."""
        self._raise_if_lost(error)
        problem = _about_target(describe_error(path, error))
        if problem.code in (FULL, READ_ONLY) or (problem.code == DENIED and self._is_empty()):
            raise _error(problem) from error
        return problem

    def _is_empty(self) -> bool:
        """Return whether nothing is in the folder, so that what is denied is denied there."""
        with suppress(OSError), os.scandir(system_path(self._root)) as entries:
            return not any(entries)
        return False


class Reception:
    """Receives files of one folder one after the other, and names them together."""

    def __init__(
        self, files: ReceivedFiles, folders: FolderCache, *, replace: bool, sparse: bool
    ) -> None:
        self._files = files
        self._folders = folders
        self._replace = replace
        self._sparse = sparse
        self._written: list[WantedFile] = []
        self._writer = TinyFileWriter() if files.together else TinyFileWriter(None)

    def unpack(self, wanted: Sequence[WantedFile], moved: Callable[[int], None]) -> Unpack | None:
        """Return what writes files that come as a tar stream in this order; None if nothing does.

        `moved` is called with numbers of bytes. What is not as wanted leaves nothing.
        """
        if not self._writer or self._files.algorithm is not Algorithm.MD5:
            return None
        parts = [_last(file.part) for file in wanted]
        position = 0

        def take(stream: bytes, start: int) -> tuple[int, Sequence[bytes]]:
            nonlocal position
            used, first = 0, position
            for _ in range(2):  # the host may have no others of the first folder
                group = _of_one_folder(wanted, first)
                if not used and group:
                    chosen = parts[first : first + len(group)]
                    used, came = self._unpack(group, chosen, (stream, start), moved)
                    first += came if used else len(group)
            before, position = position, first if used else position
            return used, [file.path for file in wanted[before:position]]

        return take

    def _unpack(
        self,
        group: Sequence[WantedFile],
        parts: Sequence[bytes],
        stream: tuple[bytes, int],
        moved: Callable[[int], None],
    ) -> tuple[int, int]:
        """Write files of one folder; return the bytes that were used, and the files that came.

        Files that should have come before those count as well.
        """
        try:
            folder = self._files.find_place(self._folders, group[0].place).folder
        except OSError:  # `open` raises it again for each of them
            return 0, 0
        assert folder is not None
        paths = [file.path for file in group]
        table = [(file.size, file.modified_ns, file.checksum) for file in group]
        used, ends = self._writer.unpack(folder, paths, parts, table, stream)
        whole = [file for file, end in zip(group, ends, strict=True) if end == COMPLETE]
        self._written += whole
        if whole:
            moved(sum(file.size for file in whole))
        return used, len(ends.rstrip(b"\0"))

    @contextmanager
    def open(self, file: WantedFile) -> "Iterator[IncomingFile]":
        """Open the temporary file, which may have the first bytes already; raises OSError.

        After an error, that of a large file is kept.
        """
        incoming = self._resume(file) if file.size >= RESUMED else None
        if incoming is None:
            place = self._files.find_place(self._folders, file.part)
            try:
                descriptor = place.open(_NEW, 0o600)
            except FileExistsError:  # of an earlier attempt
                place.unlink()
                descriptor = place.open(_NEW, 0o600)
            incoming = IncomingFile(file, place, descriptor, self._files.algorithm)
        try:
            yield incoming
        except BaseException:
            if file.size < RESUMED:
                incoming.remove()
            raise
        finally:
            incoming.close()

    def _resume(self, file: WantedFile) -> "IncomingFile | None":
        """Return what an interrupted attempt has left, if it can be used."""
        place = self._files.find_place(self._folders, file.part)
        try:
            incoming = IncomingFile(file, place, place.open(os.O_RDWR), self._files.algorithm)
        except OSError:
            return None
        try:
            incoming.resume()
        except OSError:
            incoming.remove()
            return None
        return incoming

    def write(
        self, incoming: "IncomingFile", content: StoredContent, moved: Callable[[bytes], None]
    ) -> Generator[HashedPiece, None, bool]:
        """Write the content, of which each piece is given to `moved`; return whether it was right.

        Whoever runs this appends each piece to the checksum that comes with it, before the next
        step. What was not right leaves nothing. Raises OSError, and what reading the content
        raises.
        """
        incoming.sparse = content.sparse or self._sparse
        for piece in content.pieces:
            moved(piece)
            if not incoming.accept(piece):
                break
            yield incoming.checksum, piece
            incoming.write(piece)
        mode = 0o666 & ~self._files.umask if content.mode is None else content.mode
        flush = incoming.file.size >= RESUMED or not _FLUSHED_TOGETHER
        if not incoming.finish(mode, content.modified_ns, flush=flush):
            incoming.remove()
            return False
        self._written.append(incoming.file)
        return True

    def name_all(self) -> list[tuple[WantedFile, Problem | None]]:
        """Give the files their names; return them, each with what prevented that."""
        written, self._written = self._written, []
        if any(file.size < RESUMED for file in written) and _FLUSHED_TOGETHER:
            self._files.sync()
        named = self._name_together(written)
        return [(it, None if it.place in named else self._name(it)) for it in written]

    def _name_together(self, written: Sequence[WantedFile]) -> set[bytes]:
        """Give files their names that are free; return the places of those that have them."""
        named, position = set[bytes](), 0
        while self._writer and (group := _of_one_folder(written, position)):
            position += len(group)
            with suppress(OSError):
                folder = self._files.find_place(self._folders, group[0].place).folder
                assert folder is not None
                parts = [_last(file.part) for file in group]
                done = self._writer.rename(folder, parts, [_last(file.place) for file in group])
                named.update(file.place for file, it in zip(group, done, strict=True) if it)
        return named

    def _name(self, file: WantedFile) -> Problem | None:
        part = file.part
        source = self._files.find_place(self._folders, part)
        target = source._replace(name=source.name.removesuffix(_last(part)) + _last(file.place))
        try:
            self._files.rename(source, target, replace=self._replace)
        except OSError as error:
            with suppress(OSError):
                source.unlink()
            return self._files.judge(file.place, error)
        return None


class IncomingFile:
    """A temporary file that is written and hashed; the first `offset` bytes were there before."""

    def __init__(
        self, file: WantedFile, place: NameInFolder, descriptor: int, algorithm: Algorithm
    ) -> None:
        self.file = file
        self.sparse = False
        self.offset = 0
        self._place = place
        # The library saves time only with several at once.
        small = file.size < RESUMED
        self.checksum = hashing.Checksum(None, algorithm) if small else hashing.new(algorithm)
        self._received = 0
        self._begun = 0  # bytes that the system has begun to store
        self._rest = b""  # of a sparse file, less than a block
        self._descriptor = descriptor

    def resume(self) -> None:
        """Hash what an interrupted attempt has left, in whole blocks; raises OSError."""
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(errno.EINVAL, "not a temporary file of ours")
        size = min(status.st_size, self.file.size)
        while self.offset < size - size % _BLOCK:
            piece = os.read(self._descriptor, min(_READ, size - size % _BLOCK - self.offset))
            if not piece:
                raise OSError(errno.EIO, "shorter than before")
            self.checksum.update(piece)
            self.offset += len(piece)
        os.ftruncate(self._descriptor, self.offset)
        self._received = self.offset

    def accept(self, piece: bytes) -> bool:
        """Count the next bytes; return False if there are more than there should be."""
        self._received += len(piece)
        return self._received <= self.file.size

    def write(self, piece: bytes) -> None:
        """Write the bytes that were accepted last."""
        if self.sparse:
            self._write_blocks(self._rest + piece)
        else:
            self._write(memoryview(piece))
        if self._received - self._begun >= _AHEAD:
            # Linux then begins to store them, which flushing otherwise has to wait for: a third of
            # the time of files of 128 MiB.
            length = self._received - self._begun
            advise(self._descriptor, self._begun, length, "POSIX_FADV_DONTNEED")
            self._begun = self._received

    def _write_blocks(self, data: bytes) -> None:
        """Write whole blocks; those of zeros become holes."""
        view = memoryview(data)
        while len(view) >= _BLOCK:
            block, view = view[:_BLOCK], view[_BLOCK:]
            if is_zero(block):
                os.lseek(self._descriptor, _BLOCK, os.SEEK_CUR)
            else:
                self._write(block)
        self._rest = bytes(view)

    def _write(self, view: memoryview) -> None:
        while view:
            view = view[os.write(self._descriptor, view) :]

    @property
    def is_right(self) -> bool:
        """Whether size and checksum are those of the manifest."""
        same_size = self._received == self.file.size
        return same_size and self.checksum.hexdigest() == self.file.checksum

    def finish(self, mode: int, modified_ns: int | None, *, flush: bool) -> bool:
        """Return whether the bytes are right; such a file is complete then, with mode and time."""
        if not self.is_right:
            return False
        self._write(memoryview(self._rest))
        if self.sparse:
            os.ftruncate(self._descriptor, self.file.size)
        if hasattr(os, "fchmod"):
            os.fchmod(self._descriptor, mode)
        if flush:
            os.fsync(self._descriptor)
        self.close()
        times = (self.file.modified_ns if modified_ns is None else modified_ns,) * 2
        with suppress(OSError, OverflowError):  # times that the file system does not have
            os.utime(self._place.name, ns=times, dir_fd=self._place.folder)
        return True

    def close(self) -> None:
        """Close the file; it keeps its temporary name."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def remove(self) -> None:
        """Close and remove the file."""
        self.close()
        with suppress(OSError):
            self._place.unlink()


class HashedFiles(ReceivedFiles):
    """Files that are hashed when they arrive, and written nowhere.

    `right` has the checksums of those that were as listed, by their paths.
    """

    def __init__(self) -> None:
        super().__init__(b"", together=False)
        self.right: dict[bytes, str] = {}
        self.begun: dict[bytes, HashedFile] = {}  # large ones, until their last byte

    @contextmanager
    def receiving(self, *, replace: bool, sparse: bool) -> "Iterator[Reception]":
        """Yield what receives some files."""
        yield _HashingReception(self)

    def sync(self) -> None:
        """Do nothing: nothing was written."""


class _HashingReception(Reception):
    def __init__(self, files: HashedFiles) -> None:
        super().__init__(files, FolderCache(), replace=False, sparse=False)
        self._hashed = files

    @contextmanager
    def open(self, file: WantedFile) -> "Iterator[IncomingFile]":
        """Begin to hash a file; a large one is continued after an error."""
        incoming = self._hashed.begun.pop(file.path, None)
        incoming = incoming or HashedFile(file, self._hashed.algorithm)
        incoming.resume()
        try:
            yield incoming
        except BaseException:
            if file.size >= RESUMED:
                self._hashed.begun[file.path] = incoming
            raise

    def _name(self, file: WantedFile) -> None:
        self._hashed.right[file.path] = file.checksum


class HashedFile(IncomingFile):
    """A file that is hashed when it arrives, and written nowhere."""

    def __init__(self, file: WantedFile, algorithm: Algorithm) -> None:
        super().__init__(file, NameInFolder(b"", None), -1, algorithm)

    def resume(self) -> None:
        """Continue after the bytes that have arrived."""
        self.offset = self._received

    def write(self, piece: bytes) -> None:
        """Do nothing: they are only hashed."""

    def finish(self, mode: int, modified_ns: int | None, *, flush: bool) -> bool:
        """Return whether the bytes are right."""
        return self.is_right

    def remove(self) -> None:
        """Do nothing: nothing was written."""


def _of_one_folder(files: Sequence[WantedFile], start: int) -> Sequence[WantedFile]:
    """Return files from there on that go to the same folder, as many as are written at once."""
    folder = b"" if start >= len(files) else files[start].place.rpartition(b"/")[0]
    some = files[start : start + MOST_FILES]
    return list(takewhile(lambda it: it.place.rpartition(b"/")[0] == folder, some))


def _last(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _about_target(problem: Problem) -> Problem:
    message, hint = problem.message, problem.hint
    for before, after in _WORDS:
        message, hint = message.replace(before, after), hint.replace(before, after)
    return problem._replace(message=message, hint=hint)


def _error(problem: Problem) -> StagingError:
    return StagingError(problem.message, hint=problem.hint, code=problem.code)
