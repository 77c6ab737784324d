"""The walk through one dataset folder, a group of files at a time, in constant memory."""

import errno
import fnmatch
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from mydata_like.core.data_directory import WHOLE, Shard, is_lock_name
from mydata_like.core.destination_files import DESTINATION_MARKER, OWN_FOLDER
from mydata_like.core.errors import Cancelled, Problem, SettingsError
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesSeen,
    FileWaiting,
    FolderFailed,
    FolderSkipped,
)
from mydata_like.core.file_access import is_remote
from mydata_like.core.folder_entries import EntryReader
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import bounded_ns
from mydata_like.core.model import DatasetFolder, FileGroup
from mydata_like.core.openat import BY_DESCRIPTOR, NamedEntry, OpenFolder, join, look
from mydata_like.core.patterns import PathPatterns
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.core.scanned_files import FolderPart, ScannedFiles
from mydata_like.engine.data_root import (
    Identity,
    Links,
    Root,
    Target,
    identity_of,
    is_junction,
    reason,
)
from mydata_like.engine.layout import Level
from mydata_like.settings.schema import Filters
from mydata_like.settings.values import parse_age

NAME_LIMIT = 400  # characters; the server's own limits
DIRECTORY_LIMIT = 255
TITLE_LIMIT = 400

_IGNORED_FILE = re.compile(
    rb"(?i:thumbs\.db|ehthumbs\.db|desktop\.ini)|\.DS_Store|\._.+|~\$.*|\.~lock\..*#"
    rb"|.+\.crdownload|.+\.part"
    rb"|\.nfs[0-9a-f]{16,24}|\.fuse_hidden[0-9a-f]{16}|\.mydata-(?:like|get)-[0-9a-f]{16}"
    rb"|\.mydata-like(?:-[0-9a-z-]+)?\.lock",
    re.DOTALL,
)
_IGNORED_FOLDER = re.compile(
    rb"(?i:\$recycle\.bin|system volume information|lost\+found)|__MACOSX|@eaDir"
    rb"|\.Spotlight-V100|\.fseventsd|\.TemporaryItems|\.Trash-.+"
)

_IGNORED = Problem(
    "skipped.ignored",
    "Systems and programs create such files; they are not research data.",
    "Set filters.default_ignores to false to upload them.",
)
_EXCLUDED = Problem(
    "skipped.pattern",
    "The include and exclude patterns exclude this file.",
    "Change the patterns under filters to upload it.",
)
_UNSPEAKABLE = Problem(
    "skipped.name",
    "The name is not valid text, so the server cannot store it.",
    "Rename the file, using only characters that display correctly.",
)
_TOO_LONG = Problem(
    "skipped.name",
    f"The file's name has more than {NAME_LIMIT} characters, more than the server can store.",
    "Give it a shorter name.",
)
_TOO_DEEP = Problem(
    "skipped.name",
    f"The path below the dataset folder has more than {DIRECTORY_LIMIT} characters, "
    "more than the server can store.",
    "Use fewer or shorter folder names.",
)
_UNTITLED = Problem(
    "skipped.name",
    f"A folder's name must have text, and an experiment's title at most {TITLE_LIMIT} characters.",
    "Rename the folder.",
)
_HIDDEN = Problem(
    "skipped.hidden",
    "Folders whose names begin with a dot are not uploaded.",
    "Rename the folder to upload it.",
)
LEFT_OUT: Final = Problem(
    "skipped.destination",
    "The folder belongs to a destination of copy, and lists what is there.",
    "Nothing needs to be done.",
)
_OLD = Problem(
    "skipped.old",
    "The dataset folder has not changed for longer than filters.ignore_older_than.",
    "Raise that age to upload it.",
)
_YOUNG = Problem(
    "skipped.young",
    "The dataset folder changed more recently than filters.ignore_newer_than ago.",
    "It is uploaded once it is old enough.",
)

Entry = os.DirEntry[str] | os.DirEntry[bytes] | NamedEntry
Matcher = Callable[[str, str], bool]  # of a path below the data directory and its base name


def refuse_destination(path: bytes) -> Problem | None:
    """Return why a folder with the name of our own is left out: a destination keeps its list in it.

    It is read otherwise, as any folder is.
    """
    return LEFT_OUT if os.path.lexists(join(path, DESTINATION_MARKER)) else None


class TreeRules(NamedTuple):
    """How files are read for a destination that gets the tree as it is.

    Names that a server could not store are read as well. `judge_own` returns why a folder that has
    the name of our own is left out, by its path. Only files of the `shard` are read. Symbolic
    `links` are followed wherever they lead, left to somebody else without a report, or treated as
    the settings say. `note` gets each folder that is opened, and each link that is left: the key of
    its dataset folder, its path from there, and the status of a folder.
    """

    judge_own: Callable[[bytes], Problem | None] = refuse_destination
    shard: Shard = WHOLE
    links: Literal["follow", "leave", "settings"] = "settings"
    note: Callable[[bytes, bytes, os.stat_result | None], None] = lambda *_: None


class FileFilter:
    """The filter that decides, by name and path alone, which files are excluded.

    Pattern files are read once, on creation; raises `SettingsError` if one cannot be read or a
    pattern is invalid.
    """

    def __init__(self, settings: Filters, *, any_name: bool = False) -> None:
        self._any_name = any_name  # whether the destination takes every name
        self._ignored = _IGNORED_FILE.fullmatch if settings.default_ignores else is_lock_name
        self._matchers = tuple(_matchers(settings))
        self.has_patterns = bool(self._matchers)

    def takes_all(self, names: Sequence[bytes]) -> bool:
        """Return whether no file with one of these names is excluded, as far as that is certain.

        Only of a filter without patterns.
        """
        if any(map(self._ignored, names)):
            return False
        return self._any_name or (
            all(map(bytes.isascii, names)) and max(map(len, names), default=0) <= NAME_LIMIT
        )

    def refuse(self, key: bytes, name: bytes, above: int = 0) -> Problem | None:
        """Return why a file is excluded; patterns do not apply to the first bytes of its key."""
        if self._ignored(name):
            return _IGNORED
        if not self._any_name and (not name.isascii() or len(name) > NAME_LIMIT):
            problem = name_problem(name)
            if problem:
                return problem
        if not self._matchers:
            return None
        path, base = (it.decode("utf-8", "surrogateescape") for it in (key[above:], name))
        taken = all(matcher(path, base) for matcher in self._matchers)
        return None if taken else _EXCLUDED


class FolderFilter:
    """The filter that decides which folders of the layout's levels are excluded."""

    def __init__(self, settings: Filters) -> None:
        self._settings = settings
        self._wanted = {
            Level.OWNER: settings.owner.casefold(),
            Level.GROUP: settings.owner.casefold(),
            Level.EXPERIMENT: settings.experiment.casefold(),
            Level.DATASET: settings.dataset.casefold(),
        }
        self._oldest = parse_age(settings.ignore_older_than)
        self._youngest = parse_age(settings.ignore_newer_than)

    @property
    def wants_age(self) -> bool:
        return self._oldest is not None or self._youngest is not None

    def refuse(self, level: Level, name: bytes, *, any_name: bool = False) -> Problem | None:
        """Return why a folder is excluded because of its name."""
        if problem := ignored_folder(self._settings, name):
            return problem
        if not any_name and name.startswith(b"."):
            return _HIDDEN
        try:
            text = name.decode()
        except UnicodeDecodeError:
            if not any_name:
                return _UNSPEAKABLE
            text = format_path(name)
        if not any_name and (not text.strip() or len(text) > TITLE_LIMIT):
            return _UNTITLED
        wanted = self._wanted.get(level, "")
        return None if wanted in text.casefold() else _filtered(wanted)

    def refuse_title(self, title: str | None) -> Problem | None:
        """Return why a folder is excluded because of its experiment's title."""
        return _UNTITLED if title is not None and len(title) > TITLE_LIMIT else None

    def refuse_age(self, status: os.stat_result, now: float) -> Problem | None:
        """Return why a dataset folder is excluded because of its age.

        The later of the folder's own mtime and ctime counts. MyData uses ctime alone, which is the
        creation time on Windows, so a folder in daily use for years would be too old. A streaming
        scan learns the times of the files too late.
        """
        age = now - max(status.st_mtime, status.st_ctime)
        if self._oldest is not None and age > self._oldest:
            return _OLD
        if self._youngest is not None and age < self._youngest:
            return _YOUNG
        return None


def ignored_folder(settings: Filters, name: bytes) -> Problem | None:
    """Return why a folder is excluded because systems and programs create such ones."""
    return _IGNORED if settings.default_ignores and _IGNORED_FOLDER.fullmatch(name) else None


def name_problem(name: bytes) -> Problem | None:
    """Return why the server cannot store a file's name."""
    try:
        return _TOO_LONG if len(name.decode()) > NAME_LIMIT else None
    except UnicodeDecodeError:
        return _UNSPEAKABLE


def directory_problem(directory: bytes) -> Problem | None:
    """Return why the server cannot store a path below a dataset folder."""
    try:
        return _TOO_DEEP if len(directory.decode()) > DIRECTORY_LIMIT else None
    except UnicodeDecodeError:
        return _UNSPEAKABLE


def _filtered(wanted: str) -> Problem:
    return Problem(
        "skipped.filtered",
        f"The folder's name does not contain {wanted}.",
        "Change or clear the filter to upload it.",
    )


def _matchers(settings: Filters) -> Iterable[Matcher]:
    if settings.includes:
        includes = compile_patterns("filters.includes", settings.includes)
        yield lambda path, _name: includes.match(path)
    if settings.excludes:
        excludes = compile_patterns("filters.excludes", settings.excludes)
        yield lambda path, _name: not excludes.match(path)
    if settings.includes_file or settings.excludes_file:
        yield _legacy_matcher(settings.includes_file, settings.excludes_file)


def compile_patterns(key: str, patterns: tuple[str, ...]) -> PathPatterns:
    """Return the patterns of a setting; raises `SettingsError`."""
    try:
        return PathPatterns(patterns)
    except ValueError as error:
        raise SettingsError(
            f"A pattern in {key} is invalid: {error}",
            hint="Write patterns as in a .gitignore file, such as *.tmp or /raw/**.",
        ) from error


def _legacy_matcher(includes_file: Path | None, excludes_file: Path | None) -> Matcher:
    """Return MyData's rule for its pattern files, which compares base names only."""
    includes = _load_patterns(includes_file) if includes_file else None
    excludes = _load_patterns(excludes_file) if excludes_file else None

    def is_taken(_path: str, name: str) -> bool:
        name = os.path.normcase(name)
        if includes and includes.match(name):
            return True
        if excludes is None:
            return False
        return not excludes.match(name)

    return is_taken


def _load_patterns(path: Path) -> re.Pattern[str]:
    """Return one expression for all patterns of a file; it matches nothing if there are none.

    `fnmatch` writes expressions that do not backtrack to earlier wildcards.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The pattern file {format_path(os.fsencode(path))} cannot be read: {error}",
            hint="Check filters.includes_file and filters.excludes_file.",
        ) from error
    lines = (line.strip() for line in text.splitlines())
    patterns = [line for line in lines if line and not line.startswith(("#", ";"))]
    expressions = [fnmatch.translate(os.path.normcase(pattern)) for pattern in patterns]
    return re.compile("|".join(expressions) or r"(?!)")


GROUP_LIMIT = 1000

_SPECIAL = Problem(
    "skipped.special",
    "This is not a regular file but a pipe, a socket or a device.",
    "Nothing needs to be done.",
)
_CIRCLE = Problem(
    "skipped.symlink",
    "The symbolic link points to a folder that this dataset folder already contains.",
    "Nothing needs to be done: the files are uploaded once.",
)

_SETTLING = Problem(
    "waiting.settling",
    "The file changed recently and may still be written to.",
    "A later run uploads it; filters.settle_seconds sets how long it must stay unchanged.",
)
_ENCODING = sys.getfilesystemencoding()
_ERRORS = sys.getfilesystemencodeerrors()
_KIND = 0o170000  # the bits of a mode for the file type
_REGULAR_FILE = stat.S_IFREG
_HAS_ATTRIBUTES = sys.platform == "win32"


class Batch:
    """The results since the last group; events about files wait until the files are counted."""

    __slots__ = ("count", "events", "parts", "remote", "settled_ns", "size")

    def __init__(self, settled_ns: int) -> None:
        self.settled_ns = settled_ns
        self.parts: list[FolderPart] = []
        self.remote: set[bytes] = set()  # the keys of those whose content is elsewhere
        self.events: list[FileSkipped | FileWaiting | FileFailed] = []
        self.count = 0
        self.size = 0

    def leave(self, event: FileSkipped | FileWaiting | FileFailed) -> None:
        self.events.append(event)
        self.count += 1
        self.size += event.size


class Walk:
    """A reader of the dataset folders of one data directory, or of a source."""

    def __init__(
        self,
        root: Root,
        settings: Filters,
        emit: Emit,
        clock: Clock,
        cancel: CancelSignal,
        *,
        as_is: TreeRules | None = None,
    ) -> None:
        self.root = root
        self.as_is = as_is
        follow = as_is is not None and as_is.links == "follow"
        self.links = Links("all" if follow else settings.symlinks, root)
        self.filter = FileFilter(settings, any_name=as_is is not None)
        self.refuse_folder = partial(ignored_folder, settings)
        self.emit = emit
        self.found = 0  # files that were counted, including excluded ones
        self.reader = EntryReader(GROUP_LIMIT)
        self._settle_ns = round(settings.settle_seconds * 1e9)
        self._clock = clock
        self._cancel = cancel

    def open(self, folder: DatasetFolder, path: bytes) -> Iterator[FileGroup]:
        """Return the groups of a dataset folder at `path`; the last one is marked.

        Raises OSError immediately if the folder itself cannot be opened.
        """
        reading = _FolderWalk(self, folder)
        reading.open(path)
        return reading.groups()

    def read_file(self, folder: DatasetFolder, path: bytes) -> Iterator[FileGroup]:
        """Return the only group of a dataset folder with a single wanted file; raises OSError."""
        reading = _FolderWalk(self, folder)
        reading.take_alone(path)
        return reading.groups()

    def now(self) -> float:
        return self._clock.now().timestamp()

    def new_batch(self) -> Batch:
        """Start a batch, unless a stop is requested."""
        if self._cancel.is_set():
            raise Cancelled
        return Batch(round(self.now() * 1e9) - self._settle_ns)

    def report(self, folder: bytes, batch: Batch) -> None:
        """Emit the results of a batch: first the totals, then the excluded files."""
        if batch.count:
            self.found += batch.count
            self.emit(FilesSeen(folder=folder, files=batch.count, bytes=batch.size))
        for event in batch.events:
            self.emit(event)

    def fail_folder(self, key: bytes, error: OSError) -> None:
        """Report an unreadable folder; raise an error if the whole data directory is missing."""
        self.root.check()
        problem = Problem(
            "folder.unreadable",
            f"The folder cannot be read: {reason(error)}.",
            "Check its permissions and its drive; the next run tries again.",
        )
        self.emit(FolderFailed(path=key, problem=problem))

    def unsettled(self, modified_ns: int) -> Problem | None:
        """Return why a file must wait, or None if it has settled in the meantime.

        A time in the future says nothing; such a file is judged when it is to be sent.
        """
        now = round(self.now() * 1e9)
        return _SETTLING if now >= modified_ns > now - self._settle_ns else None


def _encode(name: bytes | str) -> bytes:
    """Return a name as `os.fsencode` does, in a fifth of the time."""
    return name if isinstance(name, bytes) else name.encode(_ENCODING, _ERRORS)


class _WalkFolder:
    """The location of files: the prefix of their keys, and their directory in the dataset.

    `top` is the length of the trusted part of their paths, as in `core.openat`.
    """

    __slots__ = ("directory", "prefix", "top")

    def __init__(self, prefix: bytes, directory: bytes, top: int) -> None:
        self.prefix = prefix
        self.directory = directory
        self.top = top


class _Open(_WalkFolder):
    """An open folder: its unread entries, and the prefix of their paths.

    Those that are `left` were read, and are taken one by one.
    """

    __slots__ = ("identity", "left", "listing", "path")

    def __init__(self, listing: OpenFolder, prefix: bytes, directory: bytes) -> None:
        super().__init__(prefix, directory, listing.top)
        self.listing = listing
        self.path = join(listing.path, b"")
        self.identity = identity_of(listing.status)
        self.left: Iterator[Entry] = iter(())


class _FolderWalk:
    """One depth-first reading of a dataset folder; no folder is ever stored as a list."""

    def __init__(self, walk: Walk, folder: DatasetFolder) -> None:
        self._walk = walk
        self._filter = walk.filter
        self._folder = folder
        self._above = folder.above
        as_is = walk.as_is
        self._shard = as_is.shard if as_is and as_is.shard != WHOLE else None
        self._together = BY_DESCRIPTOR and not self._shard and not walk.filter.has_patterns
        self._followed: set[Identity] = set()
        self._batch = walk.new_batch()  # may end the run, so nothing is open yet
        self._stack: list[_Open] = []

    def open(self, path: bytes) -> None:
        listing = self._walk.root.open(path)
        prefix = self._folder.path + b"/" if self._folder.path else b""
        self._push(_Open(listing, prefix, b""))

    def _push(self, opened: _Open) -> None:
        self._stack.append(opened)
        if as_is := self._walk.as_is:
            as_is.note(self._folder.path, opened.directory, opened.listing.status)

    def take_alone(self, path: bytes) -> None:
        top = self._walk.root.top_of(path)
        status = look(path, top)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "It is no longer a regular file")
        prefix, name = self._folder.path + b"/", os.path.basename(path)  # noqa: PTH119 - bytes
        self._take_file(_WalkFolder(prefix, b"", top), name, path, status)

    def groups(self) -> Iterator[FileGroup]:
        try:
            while self._stack:
                self._read()
                if self._batch.count >= GROUP_LIMIT:
                    yield self._finish_batch(last=False)
                    self._batch = self._walk.new_batch()
            self._walk.root.check()  # an open folder can be read to its end even if it was removed
            yield self._finish_batch(last=True)
        finally:
            for folder in self._stack:
                folder.listing.close()

    def _finish_batch(self, *, last: bool) -> FileGroup:
        self._walk.report(self._folder.path, self._batch)
        remote = frozenset(self._batch.remote)
        return FileGroup(self._folder, ScannedFiles(self._batch.parts), last, remote=remote)

    def _read(self) -> None:
        """Continue in the innermost folder: to its end, to a full batch, or to a sub-folder."""
        folder = self._stack[-1]
        try:
            while True:
                for entry in folder.left:
                    if self._take(folder, entry):
                        return
                entries = self._take_some(folder, GROUP_LIMIT - self._batch.count)
                if entries is None:
                    break
                folder.left = iter(entries)
                if self._batch.count >= GROUP_LIMIT:
                    return
        except OSError as error:
            self._walk.fail_folder(folder.prefix[:-1], error)
        folder.listing.close()
        self._stack.pop()

    def _take_some(self, folder: _Open, most: int) -> Iterable[Entry] | None:
        """Read at most so many entries; return those to be taken one by one, None at the end.

        Regular files are taken together if all of them are wanted and have settled.
        """
        listing = folder.listing
        if not self._together:
            return list(islice(listing.entries, most)) or None
        found = listing.read(self._walk.reader, most)
        names, others = found.names, found.others
        if not names and not others:
            return None
        if names and found.newest_ns <= self._batch.settled_ns and self._filter.takes_all(names):
            numbers = found.facts, found.devices, found.modes
            self._add(folder, folder.path, names, *numbers, found.size)
        else:
            others = names + others
        return map(listing.look, others)

    def _add(
        self,
        folder: _WalkFolder,
        path: bytes,
        names: Sequence[bytes],
        facts: Sequence[int],
        devices: Sequence[int],
        modes: Sequence[int],
        size: int,
    ) -> None:
        """Add files to the batch; see `FolderPart`."""
        batch, place = self._batch, (folder.prefix, folder.directory, folder.top)
        batch.parts.append(FolderPart(path, *place, names, facts, devices, modes, size))
        batch.count += len(names)
        batch.size += size

    def _take(self, folder: _Open, entry: Entry) -> bool:
        """Process one entry; return whether reading has to pause after it."""
        name = _encode(entry.name)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            self._fail(folder, name, error)
            return False
        kind = status.st_mode & _KIND
        if kind == _REGULAR_FILE:
            self._take_file(folder, name, folder.path + name, status)
        elif kind == stat.S_IFDIR and not is_junction(entry):
            return self._enter(folder, name, folder.listing.open_below)
        elif kind == stat.S_IFLNK or kind == stat.S_IFDIR:
            return self._follow(folder, name)
        else:
            self._skip(folder, name, _SPECIAL)
        return self._batch.count >= GROUP_LIMIT

    def _take_file(
        self, folder: _WalkFolder, name: bytes, path: bytes, status: os.stat_result
    ) -> None:
        batch, key, size = self._batch, folder.prefix + name, status.st_size
        if self._shard and not self._shard.has_file(key[self._above :]):
            return
        refused = self._filter.refuse(key, name, self._above)
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
        facts = size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        self._add(folder, path, [name], facts, [status.st_dev], [status.st_mode], size)
        if _HAS_ATTRIBUTES and is_remote(status):
            batch.remote.add(key)

    def _enter(
        self, folder: _Open, name: bytes, open_folder: Callable[[bytes], OpenFolder]
    ) -> bool:
        if not self._folder.recursive:
            return False
        key = folder.prefix + name
        directory = folder.directory + b"/" + name if folder.directory else name
        problem, as_is = self._walk.refuse_folder(name), self._walk.as_is
        if as_is is None:
            problem = problem or directory_problem(directory)
        elif name == OWN_FOLDER:
            problem = as_is.judge_own(folder.path + name)
        if problem:
            self._walk.emit(FolderSkipped(path=key, problem=problem))
            return False
        try:
            self._push(_Open(open_folder(name), key + b"/", directory))
        except OSError as error:
            self._walk.fail_folder(key, error)
            return False
        return True

    def _follow(self, folder: _Open, name: bytes) -> bool:
        target, as_is = self._walk.links.resolve(folder.path + name), self._walk.as_is
        if isinstance(target, Problem):
            if as_is is None or as_is.links != "leave":
                self._skip(folder, name, target)
            else:
                below = folder.directory + b"/" + name if folder.directory else name
                as_is.note(self._folder.path, below, None)
        elif stat.S_ISREG(target.status.st_mode):
            place = _WalkFolder(
                folder.prefix, folder.directory, self._walk.root.top_of(target.path)
            )
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
        """Report an entry that cannot be examined; one that was just deleted is ignored."""
        self._walk.root.check()
        if isinstance(error, FileNotFoundError):
            return
        problem = Problem(
            "file.unreadable",
            f"The file cannot be read: {reason(error)}.",
            "Check its permissions and its drive; the next run tries again.",
        )
        self._batch.leave(FileFailed(path=folder.prefix + name, size=0, problem=problem))
