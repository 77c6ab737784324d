"""The files of a destination on a host that is used over SFTP, and reads no file for us."""

import secrets
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from itertools import groupby
from threading import RLock
from typing import Final, NamedTuple, TypeVar

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
    Unpack,
    describe_occupied,
)
from mydata_like.core.errors import (
    Problem,
    RejectedError,
    ServerUnavailableError,
    StagingError,
    TransientError,
)
from mydata_like.core.formatting import format_path
from mydata_like.ssh import sftp_protocol as wire
from mydata_like.ssh import sftp_steps as steps
from mydata_like.ssh.capabilities import SPARE
from mydata_like.ssh.session import OpenSession
from mydata_like.ssh.sftp import Sftp, Steps, open_on
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

T = TypeVar("T")

_AT_ONCE: Final = 64  # files that are open at once
_BLOCK: Final = 1024 * 1024  # bytes of a file that are hashed at once
_IN_FLIGHT: Final = 8 * 1024 * 1024  # bytes that are requested and not yet received
_MOST_EARLY: Final = 128  # blocks that may arrive before one that was requested earlier
_FOLDERS: Final = 32  # folders that are listed at once
_SECOND: Final = 1_000_000_000
_PART: Final = b".write-"  # the beginning of a temporary name in a folder of ours
_PROBE: Final = b".mydata-probe-"


class _Kind(Enum):
    """What the path of a folder leads to."""

    FOLDER = auto()
    LINK = auto()
    MISSING = auto()
    OTHER = auto()


class _Opened(NamedTuple):
    """A file that is read back."""

    path: bytes
    file: steps.OpenedFile
    checksum: hashing.Checksum


class SftpFiles(DestinationFiles):
    """The files below a location on a host, over SFTP; see `DestinationFiles`.

    The location is absolute or relative to the account's home. The session is opened at the first
    call, and again after a call that raised `TransientError`. Calls run one at a time, each with
    many requests in flight.

    SFTP has no request that refuses links on the way. Each call looks at the folders on its way
    first, once: what is replaced by a link after that, during the call, is followed. Likewise, a
    file is opened, and its permissions are set, by its path after it was looked at.
    """

    attributes_complete = False

    def __init__(
        self, connect: Callable[[], OpenSession], location: bytes, *, flushes: bool = True
    ) -> None:
        """`flushes` is whether the host is known to write files to stable storage on request."""
        self._connect = connect
        self._location = location
        self._flushes = flushes  # until a session offers it not, or a file system cannot
        self._lock = RLock()
        self._session: OpenSession | None = None
        self._opened: Sftp | None = None
        self._read_size = wire.READ_SIZE
        self._target_first: bool | None = None  # the order in a request for a link, if known

    @property
    def evidence(self) -> str:
        """`read-back` if files are written to the storage before they are read back."""
        return "read-back" if self._flushes else "read-back-cached"

    def open(self, *, create: bool) -> None:
        """Check that the destination is a folder that takes files; with `create`, make it."""
        with self._connected() as sftp:
            self._make_root(sftp, create=create)
            probe = self._full(_PROBE + secrets.token_hex(8).encode())
            try:
                for step in (steps.write_new(probe, b"x\n", flush=False), steps.remove(probe)):
                    _run_one(sftp, step)
            except RejectedError as error:
                raise self._refused(sftp, self._location, error) from error

    def _make_root(self, sftp: Sftp, *, create: bool) -> None:
        """Raise unless the location is a folder; with `create`, make it and those above it."""
        missing: list[bytes] = []
        where = self._location.rstrip(b"/") or b"/"
        try:
            while (found := _run_one(sftp, steps.find(where, follow=True))) is None:
                missing.append(where)
                above, slash, _ = where.rpartition(b"/")
                where = above.rstrip(b"/") or slash or b"."
            if not stat.S_ISDIR(found.mode):
                raise no_folder(self._location)
            if missing and not create:
                raise absent(self._location)
            for folder in reversed(missing):
                _run_one(sftp, steps.make_folder(folder))
        except RejectedError as error:
            raise self._refused(sftp, self._location, error) from error

    def list_files(self, folder: bytes) -> Iterator[StoredFile]:
        """Yield the files below a folder; folders that may not be read are omitted."""
        if folder:
            check_path(folder)
        if folder.split(b"/")[0] == OWN_FOLDER:
            return
        for path, attributes in self._walk(folder):
            if stat.S_ISREG(attributes.mode):
                yield _file(path, attributes)

    def _walk(self, folder: bytes) -> Iterator[tuple[bytes, wire.Attributes]]:
        """Yield the regular files, the links and the folders below a folder."""
        waiting = [folder]
        with self._files() as sftp:
            if self._find_folders(sftp, [folder])[folder] is not _Kind.FOLDER:
                return
        while waiting:
            folders, waiting = waiting[-_FOLDERS:], waiting[:-_FOLDERS]
            with self._files() as sftp:
                entries = self._list(sftp, folders)
            for path, attributes in entries:
                if stat.S_ISREG(attributes.mode) or stat.S_ISLNK(attributes.mode):
                    yield path, attributes
                elif stat.S_ISDIR(attributes.mode) and path != OWN_FOLDER:
                    waiting.append(path)
                    yield path, attributes

    def _list(self, sftp: Sftp, folders: Sequence[bytes]) -> list[tuple[bytes, wire.Attributes]]:
        """Return what is in folders; those that are missing or may not be read are omitted."""
        entries: list[tuple[bytes, wire.Attributes]] = []
        unknown: list[bytes] = []
        results = _run(sftp, (steps.list_folder(self._full(it)) for it in folders))
        for folder, result in zip(folders, results, strict=True):
            if isinstance(result, RejectedError):
                if _is_harmless(result):
                    continue
                raise TransientError(
                    f"The destination could not be listed: {result.message}", code="staging.lost"
                ) from result
            for name, attributes in result:
                path = folder + b"/" + name if folder else name
                if stat.S_IFMT(attributes.mode):
                    entries.append((path, attributes))
                else:  # some servers tell no type here
                    unknown.append(path)
        found = _run(sftp, (steps.find(self._full(it)) for it in unknown))
        entries += [
            (path, it)
            for path, it in zip(unknown, found, strict=True)
            if it is not None and not isinstance(it, RejectedError)
        ]
        return entries

    def look(self, paths: Sequence[bytes]) -> list[StoredFile | None]:
        """Return the attributes of files in the order given."""
        for path in paths:
            check_path(path)
        with self._files() as sftp:
            return self._look(sftp, paths)

    def _look(self, sftp: Sftp, paths: Sequence[bytes]) -> list[StoredFile | None]:
        kinds = self._find_folders(sftp, map(_above, paths))
        reached = [path for path in paths if kinds[_above(path)] is _Kind.FOLDER]
        found = dict(
            zip(reached, _run(sftp, (steps.find(self._full(it)) for it in reached)), strict=True)
        )
        files: list[StoredFile | None] = []
        for path in paths:
            attributes = found.get(path)
            if isinstance(attributes, RejectedError):
                if not _is_harmless(attributes):
                    raise self._refused(sftp, path, attributes)
                attributes = None
            regular = attributes is not None and stat.S_ISREG(attributes.mode)
            files.append(_file(path, attributes) if attributes and regular else None)
        return files

    def sync(self) -> None:
        """Do nothing: SFTP flushes only single files, and `prove` does that before it reads."""

    def prove(self, paths: Sequence[bytes]) -> list[ProvenFile | None]:
        """Read files back and hash them; in the order given."""
        for path in paths:
            check_path(path)
        with self._files() as sftp:
            kinds = self._find_folders(sftp, map(_above, paths))
            proven: dict[bytes, ProvenFile] = {}
            reached = [it for it in dict.fromkeys(paths) if kinds[_above(it)] is _Kind.FOLDER]
            for start in range(0, len(reached), _AT_ONCE):
                proven.update(self._prove(sftp, reached[start : start + _AT_ONCE]))
        return [proven.get(path) for path in paths]

    def _prove(self, sftp: Sftp, paths: Sequence[bytes]) -> dict[bytes, ProvenFile]:
        """Return those of the files that could be read and did not change meanwhile."""
        flush = self._flushes
        found = _run(sftp, (steps.open_to_read(self._full(it), flush=flush) for it in paths))
        opened = [
            _Opened(path, file, hashing.new(self.algorithm))
            for path, file in zip(paths, found, strict=True)
            if isinstance(file, steps.OpenedFile)
        ]
        if not all(it.file.flushed for it in opened):
            self._flushes = False
        broken = self._hash(sftp, opened)
        after = _run(
            sftp, (steps.close_after(it.file.handle, self._full(it.path)) for it in opened)
        )
        return {
            it.path: ProvenFile(_file(it.path, it.file.attributes), it.checksum.hexdigest())
            for it, attributes in zip(opened, after, strict=True)
            if attributes == it.file.attributes and it.path not in broken
        }

    def _hash(self, sftp: Sftp, opened: Sequence[_Opened]) -> set[bytes]:
        """Read and hash open files, several at once; return those that could not be read."""
        broken: set[bytes] = set()
        due: deque[list[_Block]] = deque()  # rows of blocks that are hashed together
        blocks: dict[int, bytes | RejectedError] = {}  # that arrived, by their number
        first = 0  # the number of the first block of the first row that is due

        def request() -> Iterator[Steps[bytes]]:
            for row in _arrange(opened):
                due.append(row)
                for it, start, size in row:
                    yield steps.read_block(it.file.handle, start, size, self._read_size)

        for number, block in sftp.run_all(request(), _IN_FLIGHT // self._read_size):
            blocks[number] = block
            if len(blocks) > _MOST_EARLY:
                raise wire.protocol_error()
            while due and all(first + index in blocks for index in range(len(due[0]))):
                row = due.popleft()
                arrived = [blocks.pop(first + index) for index in range(len(row))]
                first += len(row)
                pieces = []
                for (it, _, size), content in zip(row, arrived, strict=True):
                    if isinstance(content, RejectedError) or len(content) != size:
                        broken.add(it.path)
                    else:
                        pieces.append((it.checksum, content))
                hashing.update_all(pieces)
        return broken

    def place(self, placements: Sequence[Placement]) -> list[StoredFile | Problem]:
        """Give temporary files their final names; in the order given."""
        for placement in placements:
            check_path(placement.temporary)
            check_path(placement.final)
        with self._files() as sftp:
            found = self._look(sftp, [placement.temporary for placement in placements])
            present = [it for it, file in zip(placements, found, strict=True) if file]
            folders = self._make_folders(sftp, {_above(it.final) for it in present})
            first: dict[bytes, Placement] = {}  # of those for the same name
            for it in present:
                if folders.kinds[_above(it.final)] is _Kind.FOLDER:
                    first.setdefault(it.final, it)
            renamed = _run(
                sftp,
                (
                    steps.rename(self._full(it.temporary), self._full(it.final), it.mode)
                    for it in first.values()
                ),
            )
            results = dict(zip(first.values(), renamed, strict=True))
            return [
                self._judge_placing(sftp, folders, it, results.get(it))
                if file
                else describe_missing(it.temporary)
                for it, file in zip(placements, found, strict=True)
            ]

    def _judge_placing(
        self,
        sftp: Sftp,
        folders: "_Folders",
        placement: Placement,
        result: wire.Attributes | RejectedError | None,
    ) -> StoredFile | Problem:
        final = placement.final
        if problem := self._judge_folder(sftp, folders, _above(final), final):
            return problem
        if result is None:
            return describe_occupied(final)
        if isinstance(result, RejectedError):
            return self._describe(sftp, final, result)
        return _file(final, result)

    def set_mode(self, paths: Sequence[bytes], mode: int) -> None:
        """Set the permissions of regular files, as far as the host allows it."""
        with self._files() as sftp:
            found = self._look(sftp, paths)
            _run(sftp, (steps.set_mode(self._full(it.path), mode) for it in found if it))

    def remove(self, paths: Sequence[bytes]) -> None:
        """Remove files below `.mydata-like`; missing ones count as removed."""
        for path in paths:
            check_own(path)
        with self._files() as sftp:
            kinds = self._find_folders(sftp, map(_above, paths))
            for path in paths:
                if kinds[_above(path)] is _Kind.LINK:
                    raise _error(describe_link(path))
            reached = [path for path in paths if kinds[_above(path)] is _Kind.FOLDER]
            results = _run(sftp, (steps.remove(self._full(path)) for path in reached))
            for path, result in zip(reached, results, strict=True):
                if isinstance(result, RejectedError):
                    raise self._refused(sftp, path, result)

    def read(self, path: bytes) -> bytes | None:
        """Return the content of a file below `.mydata-like`; None if it is missing."""
        check_own(path)
        with self._files() as sftp:
            if self._look(sftp, [path]) == [None]:
                return None
            try:
                file = _run_one(sftp, steps.open_to_read(self._full(path), flush=False))
                if file is None:
                    return None
                size, unit = file.attributes.size, self._read_size
                blocks = (
                    steps.read_block(file.handle, start, min(_BLOCK, size - start), unit)
                    for start in range(0, size, _BLOCK)
                )
                content = b"".join(map(_require, _run(sftp, blocks, _IN_FLIGHT // unit)))
                _run_one(sftp, steps.close_after(file.handle, self._full(path)))
            except RejectedError as error:
                raise StagingError(
                    f"{format_path(path)} at the destination cannot be read: {error.message}",
                    hint="Give the account of the destination access to it.",
                    code="destination.denied",
                ) from error
            return content

    @contextmanager
    def open_content(self, path: bytes, offset: int = 0) -> Iterator[StoredContent | None]:
        """Open a file for reading from an offset on, with many requests in flight."""
        check_path(path)
        with self._files() as sftp:
            if self._look(sftp, [path]) == [None]:
                yield None
                return
            try:
                file = _run_one(sftp, steps.open_to_read(self._full(path), flush=False))
            except RejectedError as error:
                raise unreadable(path, error.message.encode()) from error
            if file is None:
                yield None
                return
            pieces = self._read_on(sftp, path, file, offset)
            yield StoredContent(path, pieces, file.attributes.mode & 0o777)
            if next(pieces, None) is not None:  # what was requested is still to arrive
                self.close()
                return
            _run_one(sftp, steps.close_after(file.handle, self._full(path)))

    def _read_on(
        self, sftp: Sftp, path: bytes, file: steps.OpenedFile, offset: int
    ) -> Iterator[bytes]:
        """Yield the blocks of a file in their order, which they do not arrive in."""
        starts = range(offset, file.attributes.size, _BLOCK)
        blocks = (steps.read_block(file.handle, it, _BLOCK, self._read_size) for it in starts)
        arrived: dict[int, bytes | RejectedError] = {}
        due = 0
        for number, block in sftp.run_all(blocks, _IN_FLIGHT // self._read_size):
            arrived[number] = block
            if len(arrived) > _MOST_EARLY:
                raise wire.protocol_error()
            while due in arrived:
                found = arrived.pop(due)
                if isinstance(found, RejectedError):
                    raise unreadable(path, found.message.encode()) from found
                yield found
                due += 1

    def open_contents(
        self, paths: Sequence[bytes], unpack: Unpack | None = None
    ) -> Iterator[StoredContent]:
        """Yield small files, of which many are read at once; larger ones are omitted."""
        with self._files() as sftp:
            found = self._look(sftp, paths)
            small = [it.path for it in found if it and it.size <= _BLOCK]
            reading = (steps.read_whole(self._full(it), _BLOCK, self._read_size) for it in small)
            for number, result in sftp.run_all(reading):
                if not isinstance(result, RejectedError) and result is not None:
                    content, attributes = result
                    yield StoredContent(small[number], iter((content,)), attributes.mode & 0o777)

    def list_tree(self, folder: bytes) -> Iterator[TreeFolder | TreeLink]:
        """Yield a folder, and the folders and links below it."""
        if folder:
            check_path(folder)
        found = [*self._walk(folder)]
        links = [path for path, it in found if stat.S_ISLNK(it.mode)]
        with self._files() as sftp:
            if self._find_folders(sftp, [folder])[folder] is not _Kind.FOLDER:
                return
            top = _require(_run(sftp, [steps.find(self._full(folder))])[0])
            targets = _run(sftp, (steps.read_link(self._full(it)) for it in links))
        for path, it in [(folder, top), *found]:
            if it is not None and stat.S_ISDIR(it.mode):
                yield TreeFolder(path, it.mode & 0o777, it.modified * _SECOND)
        for path, target in zip(links, targets, strict=True):
            if isinstance(target, bytes):
                yield TreeLink(path, target)

    def relocate(self, location: bytes) -> None:
        """Use another folder on the same host, over the same session."""
        self._location = location

    def list_own(self, folder: bytes) -> list[bytes]:
        """Return the sorted paths of the complete files below a folder, from there."""
        folder = folder.removesuffix(b"/")
        check_own(folder)
        return sorted(
            path[len(folder) + 1 :]
            for path, attributes in self._walk(folder)
            if stat.S_ISREG(attributes.mode) and not path.rpartition(b"/")[2].startswith(_PART)
        )

    def write(self, path: bytes, content: bytes, *, replace: bool = False) -> bool:
        """Write a file below `.mydata-like`; return False if its name is taken."""
        check_own(path)
        folder, target = _above(path), self._full(path)
        part = self._full(folder + b"/" + _PART + secrets.token_hex(8).encode())
        with self._files() as sftp:
            folders = self._make_folders(sftp, {folder})
            if problem := self._judge_folder(sftp, folders, folder, path):
                raise _error(problem)
            try:
                _run_one(sftp, steps.write_new(part, content, flush=sftp.flushes))
                if replace:
                    sftp.replace(part, target)
                elif _run_one(sftp, steps.rename(part, target, None)) is None:
                    _run_one(sftp, steps.remove(part))
                    return False
                if sftp.flushes:
                    _run_one(sftp, steps.flush_folder(self._full(folder)))
            except RejectedError as error:
                _run(sftp, [steps.remove(part)])
                (there,) = _run(sftp, [steps.find(target)])
                if isinstance(there, wire.Attributes) and stat.S_ISDIR(there.mode):
                    raise _error(describe_occupied(path)) from error
                raise self._refused(sftp, path, error) from error
        return True

    def make_tree(self, folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> list[Problem]:
        """Make folders and links that are missing; return what cannot be made."""
        for path in [folder.path for folder in folders] + [link.path for link in links]:
            check_path(path)
        problems: list[Problem | None] = []
        with self._files() as sftp:
            wanted = [folder.path for folder in folders] + [_above(link.path) for link in links]
            made = self._make_folders(sftp, wanted)
            problems += [self._judge_folder(sftp, made, it.path, it.path) for it in folders]
            problems += self._make_links(sftp, made, links) if links else []
            _run(
                sftp,
                (  # the inner ones first, while they can be entered
                    steps.describe(self._full(it.path), it.mode, it.modified_ns / _SECOND)
                    for it in reversed(folders)
                    if made.kinds[it.path] is _Kind.FOLDER
                ),
            )
        return [problem for problem in problems if problem]

    def _make_links(
        self, sftp: Sftp, folders: "_Folders", links: Sequence[TreeLink]
    ) -> Iterator[Problem | None]:
        """Make links; yield what is in the way of each."""
        reached = [it for it in links if folders.kinds[_above(it.path)] is _Kind.FOLDER]
        made: list[bool | RejectedError]
        try:
            first = self._find_link_order(sftp)
        except RejectedError as error:
            made = [error] * len(reached)
        else:
            made = _run(
                sftp,
                (
                    steps.make_link(self._full(it.path), it.target, target_first=first)
                    for it in reached
                ),
            )
        results = dict(zip((it.path for it in reached), made, strict=True))
        for link in links:
            result = results.get(link.path)
            if isinstance(result, RejectedError):
                yield self._describe(sftp, link.path, result)
            elif result is False:
                yield describe_occupied(link.path)
            else:
                yield self._judge_folder(sftp, folders, _above(link.path), link.path)

    def _find_link_order(self, sftp: Sftp) -> bool:
        """Return whether the target of a link comes first; raises `RejectedError`."""
        if self._target_first is None:
            probe = self._full(_PROBE + secrets.token_hex(8).encode())
            self._target_first = _run_one(sftp, steps.find_link_order(probe + b"-a", probe + b"-b"))
        return self._target_first

    def clear(self, folder: bytes) -> bool:
        """Remove the empty folders at and below a folder below `.mydata-like`."""
        check_own(folder)
        found = [path for path, it in self._walk(folder) if stat.S_ISDIR(it.mode)]
        with self._files() as sftp:
            if self._find_folders(sftp, [folder])[folder] is _Kind.FOLDER:
                order = [*sorted(found, reverse=True), folder]
                _run(sftp, (steps.remove_folder(self._full(path)) for path in order))
        return True

    def close(self) -> None:
        session, self._session, self._opened = self._session, None, None
        if session is not None:
            session.close()

    def _find_folders(self, sftp: Sftp, folders: Iterable[bytes]) -> dict[bytes, _Kind]:
        """Return what folders and those above them are; what is below a link counts as a link."""
        wanted = {b""}
        for folder in folders:
            while folder not in wanted:
                wanted.add(folder)
                folder = _above(folder)
        kinds = {b"": _Kind.FOLDER}
        order = sorted(wanted - {b""}, key=_depth)
        found = _run(sftp, (steps.find(self._full(it)) for it in order))
        for folder, attributes in zip(order, found, strict=True):
            above = kinds[_above(folder)]
            if isinstance(attributes, RejectedError):
                if not _is_harmless(attributes):
                    raise self._refused(sftp, folder, attributes)
                attributes = None
            kinds[folder] = _find_kind(attributes) if above is _Kind.FOLDER else above
        return kinds

    def _make_folders(self, sftp: Sftp, folders: Iterable[bytes]) -> "_Folders":
        """Make folders, and those above them, that are missing."""
        kinds, refused = self._find_folders(sftp, folders), dict[bytes, RejectedError]()
        missing = sorted((it for it, kind in kinds.items() if kind is _Kind.MISSING), key=_depth)
        for _, level in groupby(missing, _depth):
            wanted = [it for it in level if kinds[_above(it)] is _Kind.FOLDER]
            made = _run(sftp, (steps.make_folder(self._full(it)) for it in wanted))
            for folder, result in zip(wanted, made, strict=True):
                if isinstance(result, RejectedError):
                    refused[folder] = result
                else:
                    kinds[folder] = _find_kind(result)
        for folder in missing:  # below what is no folder now
            if kinds[_above(folder)] in (_Kind.LINK, _Kind.OTHER):
                kinds[folder] = kinds[_above(folder)]
        return _Folders(kinds, refused)

    def _judge_folder(
        self, sftp: Sftp, folders: "_Folders", folder: bytes, path: bytes
    ) -> Problem | None:
        """Return why nothing can be made in a folder, for a `path` in it; None if it can."""
        kind = folders.kinds[folder]
        if kind is _Kind.FOLDER:
            return None
        if kind is _Kind.LINK:
            return describe_link(path)
        if kind is _Kind.OTHER:
            return describe_occupied(path)
        while folder and folder not in folders.refused:
            folder = _above(folder)
        error = folders.refused.get(folder)
        return self._describe(sftp, path, error) if error else describe_refusal(path, b"missing")

    def _describe(self, sftp: Sftp, path: bytes, error: RejectedError) -> Problem:
        """Return the problem of a path for which the server refused something."""
        reason = b""
        if isinstance(error, wire.StatusError):
            reason = _REASONS.get(error.status, error.reason.encode())
        if not reason:  # OpenSSH gives none for most errors of the system
            try:
                free = sftp.find_free(self._location)
                if sftp.is_read_only(self._location):
                    reason = b"Read-only file system"
                elif free is not None and free < SPARE:
                    reason = b"No space left"
            except RejectedError:
                pass
        return describe_refusal(path, reason)

    def _refused(self, sftp: Sftp, path: bytes, error: RejectedError) -> StagingError:
        return _error(self._describe(sftp, path, error))

    def _full(self, path: bytes) -> bytes:
        return self._location.rstrip(b"/") + b"/" + path if path else self._location

    @contextmanager
    def _files(self) -> Iterator[Sftp]:
        """Yield the session; raises unless the destination is there."""
        with self._connected() as sftp:
            try:
                found = _run_one(sftp, steps.find(self._location, follow=True))
            except RejectedError as error:
                raise self._unavailable() from error
            if found is None or not stat.S_ISDIR(found.mode):
                raise self._unavailable()
            yield sftp

    @contextmanager
    def _connected(self) -> Iterator[Sftp]:
        """Yield the session, which is opened if necessary, for a call that runs alone."""
        with self._lock:
            try:
                yield self._opened or self._log_in()
            except (StagingError, ServerUnavailableError):
                raise
            except BaseException:  # replies may be left unread
                self.close()
                raise

    def _log_in(self) -> Sftp:
        self._session = self._connect()
        try:
            sftp = open_on(self._session)
        except RejectedError as error:
            raise StagingError(
                f"The host allows no SFTP: {error.message}",
                hint="Its administrator can allow it for this account.",
                code="destination.no-sftp",
            ) from error
        self._read_size = sftp.find_read_size()
        self._flushes = self._flushes and sftp.flushes
        self._opened = sftp
        return sftp

    def _unavailable(self) -> ServerUnavailableError:
        return ServerUnavailableError(
            f"The destination {format_path(self._location)} cannot be entered.",
            hint="If it is on a disk or a share, mount it on the host.",
            code=ABSENT,
        )


class _Folders(NamedTuple):
    """What folders are now, and why some could not be made."""

    kinds: dict[bytes, _Kind]
    refused: dict[bytes, RejectedError]


_Block = tuple[_Opened, int, int]  # a part of a file: its start and size

_REASONS: Final = {  # of the system, for which OpenSSH has these codes
    wire.DENIED: b"Permission denied",
    wire.BAD_MESSAGE: b"Invalid argument",
}


def _arrange(opened: Sequence[_Opened]) -> Iterator[list[_Block]]:
    """Yield the blocks of all files, in rows of different files."""
    for at in range(0, len(opened), hashing.LANES):
        group = opened[at : at + hashing.LANES]
        for start in range(0, max(it.file.attributes.size for it in group), _BLOCK):
            sizes = ((it, it.file.attributes.size - start) for it in group)
            yield [(it, start, min(_BLOCK, size)) for it, size in sizes if size > 0]


def _run(
    sftp: Sftp, operations: Iterable[Steps[T]], most: int = wire.MOST_REQUESTS
) -> list[T | RejectedError]:
    """Run operations at once; return their results in their order."""
    results = dict(sftp.run_all(operations, most))
    return [results[place] for place in range(len(results))]


def _run_one(sftp: Sftp, operation: Steps[T]) -> T:
    return _require(_run(sftp, [operation])[0])


def _require(result: T | RejectedError) -> T:
    if isinstance(result, RejectedError):
        raise result
    return result


def _find_kind(attributes: wire.Attributes | None) -> _Kind:
    if attributes is None:
        return _Kind.MISSING
    if stat.S_ISLNK(attributes.mode):
        return _Kind.LINK
    return _Kind.FOLDER if stat.S_ISDIR(attributes.mode) else _Kind.OTHER


def _is_harmless(error: RejectedError) -> bool:
    """Return whether an error only says that there is nothing, or nothing for this account."""
    codes = (wire.NO_SUCH_FILE, wire.DENIED, wire.BAD_MESSAGE)
    return isinstance(error, wire.StatusError) and error.status in codes


def _file(path: bytes, attributes: wire.Attributes) -> StoredFile:
    return StoredFile(path, attributes.size, attributes.modified * _SECOND, 0, 0)


def _error(problem: Problem) -> StagingError:
    return StagingError(problem.message, hint=problem.hint, code=problem.code)


def _above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _depth(path: bytes) -> int:
    return path.count(b"/")
