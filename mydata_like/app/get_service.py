"""`get`: what is at a destination, or on a server, is brought to a local folder and compared there.

The manifest of the destination tells what there is, or the records of the server do. Neither the
original nor a ledger is needed.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, Union, cast

from mydata_like.app.directory_lock import directory_locked
from mydata_like.app.get_events import GetEvents, IncomingTransfer
from mydata_like.app.host_login import parse_destination
from mydata_like.app.known_copies import KNOWN_ID, list_addresses
from mydata_like.app.ledgers import list_ledgers, reading
from mydata_like.app.plain_destination import (
    FolderPlace,
    HostPlace,
    Place,
    Prompts,
    open_target,
)
from mydata_like.app.receiving import (
    SMALL,
    ProcessReceiver,
    Receiver,
    ReceivingService,
    SessionReceiver,
    describe_lost,
    find_right,
)
from mydata_like.app.settings_service import find_places, find_state, load_settings
from mydata_like.app.verify_service import MOST_NAMED, RESTS, VerifyProgress, call_again
from mydata_like.catalogues.manifest.listing import Listing, read_listing, require_marker
from mydata_like.catalogues.manifest.segments import MARKER
from mydata_like.core.checksums import Algorithm
from mydata_like.core.copy_arguments import CopyTarget, FolderTarget
from mydata_like.core.data_directory import Shard, find_key
from mydata_like.core.destination_files import (
    OCCUPIED,
    OWN_FOLDER,
    DestinationFiles,
    TreeFolder,
    TreeLink,
)
from mydata_like.core.errors import (
    AlreadyRunningError,
    Cancelled,
    Problem,
    ServerUnavailableError,
    SettingsError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.extra_sources import lies_in, source_key
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.model import Entry, EntryState
from mydata_like.core.openat import join
from mydata_like.core.ports import Emit
from mydata_like.core.staging_path import KEPT
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.engine.pipeline import CancelFlag, Lock, begin, call_unless
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT, SOME_FAILED_EXIT
from mydata_like.engine.walk import compile_patterns
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import await_helpers, find_helper_note
from mydata_like.ledger.ledger_file import note_restored
from mydata_like.settings.schema import Settings
from mydata_like.transfer.destination_problems import ABSENT
from mydata_like.transfer.folder.received_files import (
    PART,
    RESUMED,
    HashedFiles,
    ReceivedFiles,
    WantedFile,
)
from mydata_like.transfer.pool import count_cpus
from mydata_like.transfer.tar import is_plain

if TYPE_CHECKING:
    from mydata_like.app.mytardis_place import MyTardisPlace

logger = logging.getLogger(__name__)

T = TypeVar("T")

TOGETHER: Final = 500  # of these files, at most
TOGETHER_BYTES: Final = 8 * 1024 * 1024  # of content, at most
NAMES_BYTES: Final = 64 * 1024  # of their paths, at most
APART: Final = 128 * 1024 * 1024  # bytes; less comes by threads: a process starts in 0.4 s
UNMARKED: Final = "destination.unmarked"
HOST_REST: Final = 5.0  # seconds; a staging host that needs more is asked no more
NOTED: Final = 1.0  # seconds between notes in the ledger of what came back
_SLASH: Final = ord("/")
_RECORDS: Final = re.compile("(dataset|experiment):([0-9]{1,18})")
NO_TREE: Final = Problem(
    "destination.no-programs",
    "Times of folders, empty folders and links were not fetched: the host has no tar for that.",
    "Its administrator can install GNU tar. All files that are counted are complete.",
)
HOW_TO_REPLACE: Final = "Nothing was replaced. To replace files that differ, add --replace."


class RecordTarget(NamedTuple):
    """A dataset or an experiment on the server of the settings."""

    kind: str
    number: int


@frozen(kw_only=True)
class GetOrder:
    """What is to be brought to a local folder, and how.

    `contents` of a folder go to the `target` itself, else the folder does. `bandwidth` is in MB/s,
    0 for no limit, and `channels` 0 for automatic. Existing files are only replaced with `replace`.
    With `missing`, what was copied from the target is brought back to it; with an `origin`, what
    was copied from this local path goes to the target. With `sparse`, zeros become holes in all
    files, else in those that have holes there.
    """

    what: CopyTarget | RecordTarget
    contents: bool
    target: bytes
    missing: bool = False
    origin: bytes = b""
    config: Path | None = None
    dry_run: bool = False
    bandwidth: float = 0.0
    channels: int = 0
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    replace: bool = False
    sparse: bool = False
    accepted_keys: tuple[str, ...] = ()


class FileProblem(NamedTuple):
    """Why a file was not received, or without a path, why a folder or link could not be made."""

    path: bytes
    problem: Problem


@dataclass(slots=True)
class GetReport:
    """What was received.

    Of the `found` files, with `size` bytes, `here` were there already, `received` ones were fetched
    with `received_size` bytes, or would be in a dry run, and those that `failed` have problems. The
    first of the `unlisted` files are in `named`; the number is None if they were not looked for.
    `damaged` are segments of the manifest. `ended` is why not all was tried. What a server has was
    compared with its `records`; `note` is why not all of many files came over its staging host.
    """

    place: str
    records: bool = False
    algorithm: Algorithm = Algorithm.MD5
    found: int = 0
    size: int = 0
    here: int = 0
    received: int = 0
    received_size: int = 0
    failed: int = 0
    problems: list[FileProblem] = field(default_factory=list)
    unlisted: int | None = None
    named: list[bytes] = field(default_factory=list)
    damaged: list[Problem] = field(default_factory=list)
    ended: Problem | None = None
    note: Problem | None = None
    seconds: float = 0.0
    exit_code: int = 0


def plan_get(what: str, target: str) -> tuple[CopyTarget | RecordTarget, bool, bytes]:
    """Return source and target folder of a command line; raises `SettingsError`.

    In between is whether the contents of a folder are meant, as after a slash. Without a target,
    the source is one: what was copied from there is missing.
    """
    local, records = parse_destination(target or what), _RECORDS.fullmatch(what)
    source = RecordTarget(records[1], int(records[2])) if records else parse_destination(what)
    if not isinstance(local, FolderTarget):
        raise SettingsError(
            f"{format_path(os.fsencode(target or what))} is not a local folder.",
            hint="Write, for example: mydata-like get USER@HOST:PATH FOLDER",
            code="copy.destination",
        )
    last = what.replace("\\", "/") if os.name == "nt" else what
    contents = last.endswith(("/", "/.", "/..")) or last in (".", "..")
    return source, contents, source_key(Path(os.fsdecode(local.path)))


def get_files(
    order: GetOrder,
    prompts: Prompts | None,
    cancel: CancelFlag,
    report: Callable[[VerifyProgress], None],
    emit: Emit | None = None,
) -> GetReport:
    """Bring files here; an interruption ends it with what is known so far.

    Events are emitted from any thread. Raises `UploaderError` if it cannot begin.
    """
    if isinstance(order.what, RecordTarget):
        # Only a server needs it.
        from mydata_like.app.mytardis_place import list_records

        listed = list_records(
            *order.what,
            order.config,
            cancel,
            lambda known: report(VerifyProgress("records", known)),
        )
        copied: _Copied | None = _Copied(*listed, records=True)
    elif order.missing or order.origin:
        copied = _find_copied(order.origin or order.target, order, prompts, cancel)
    else:
        place = open_target(order.what, order.config, order.accepted_keys, prompts)
        try:
            return _Get(order, place, cancel, report, emit=emit).run()
        except StagingError as error:
            if error.problem_code != UNMARKED or not isinstance(place, FolderPlace):
                raise
            copied = _find_copied(place.path, order, prompts, cancel)
            if copied is None:
                raise StagingError(
                    f"{place.name} is not a destination of mydata-like copy, and this computer "
                    "does not know that it was copied.",
                    hint=error.hint,
                    code=UNMARKED,
                ) from error
    if copied is None:
        path = order.origin or order.target
        raise SettingsError(
            f"This computer does not know that {format_path(path)} was copied.",
            hint="Write the destination: mydata-like get USER@HOST:PATH FOLDER",
            code="copy.source",
        )
    if order.missing and copied.alone:
        order = replace(order, target=order.target.rpartition(b"/")[0])
    return _Get(order, copied.place, cancel, report, copied, emit=emit).run()


_Place = Union[Place, "MyTardisPlace"]


class _KnownFiles(NamedTuple):
    """What a ledger for a directory has of wanted files, by their places."""

    ledger: Path
    directory: bytes
    found: dict[bytes, Entry]


class _Copied(NamedTuple):
    """Files that are wanted, by their paths where they are, and why others cannot be fetched.

    They are as they were here, or as the `records` of a server have them. They go to a folder in
    the target, unless its name is empty. A single file was asked for if it is `alone`. The
    `ledgers` are those that know the files.
    """

    place: _Place
    files: Mapping[bytes, WantedFile]
    problems: Sequence[tuple[bytes, Problem]] = ()
    folder: bytes = b""
    alone: bool = False
    records: bool = False
    ledgers: Sequence[_KnownFiles] = ()

    def find_tops(self) -> dict[bytes, bytes]:
        """Return the folders that were sent as a whole, each with its path here.

        What else is at the top of a destination may be of others.
        """
        tops = dict[bytes, bytes]()
        for path, file in self.files.items():
            above, top = path.removesuffix(file.place), file.place.partition(b"/")[0]
            if above.endswith(b"/"):
                tops[above[:-1]] = b""
            elif not above and top != file.place:
                tops[top] = top
        return tops


def _find_copied(
    path: bytes, order: GetOrder, prompts: Prompts | None, cancel: CancelFlag
) -> _Copied | None:
    """Return what the newest ledgers say of a local folder or file; None if none knows it."""
    name = path.rpartition(b"/")[2]
    for target, settings, shards in _list_ledgers(order.config):
        inside = find_key(Path(settings.data.directory or ""), Path(os.fsdecode(path)))
        keys = [path] if inside is None else [inside, path]
        found, ledgers = dict[bytes, Entry](), list[_KnownFiles]()
        for shard, file in shards:
            with reading(settings, order.config, shard) as ledger:
                if ledger is None:
                    continue
                known = {
                    it.key[len(key) :].strip(b"/") or name: it
                    for key in keys
                    for it in ledger.iter_entries(key)
                    if it.state is EntryState.VERIFIED and _is_at(it.key, key)
                }
            found |= known
            ledgers.append(_KnownFiles(file, os.fsencode(settings.data.directory or ""), known))
        if not found:
            continue
        alone = any(it.key in keys for it in found.values())
        folder = b"" if order.missing or order.contents or alone else name
        if target is None:
            # Only a server needs it.
            from mydata_like.app.mytardis_place import open_known

            server, wanted = open_known(found, settings, order.config, cancel)
            return _Copied(server, wanted, (), folder, alone, records=True, ledgers=ledgers)
        files = {
            it.remote.encode("utf-8", "surrogateescape"): WantedFile(
                it.remote.encode("utf-8", "surrogateescape"),
                place,
                it.size,
                it.checksum,
                it.modified_ns,
            )
            for place, it in found.items()
            if it.remote
        }
        if files:
            accepted = order.accepted_keys + settings.transfer.host_keys
            opened = open_target(target, order.config, accepted, prompts, settings.transfer)
            return _Copied(opened, files, (), folder, alone, ledgers=ledgers)
    return None


def _is_at(key: bytes, path: bytes) -> bool:
    """Return whether a key is that of a path, or of a file below it; the path may be empty."""
    if not path:
        return not Path(os.fsdecode(key)).is_absolute()
    return key == path or key.startswith(path + b"/")


def _list_ledgers(
    config: Path | None,
) -> Iterator[tuple[CopyTarget | None, Settings, Sequence[tuple[Shard, Path]]]]:
    """Yield the ledgers of the settings, and of each copy; the target is None for a server."""
    settings = load_settings(config, must_exist=False).settings
    target = None
    if settings.destination.takes_tree:
        target = settings.destination.parse(os.fsencode(Path.home()))
    yield target, settings, list(list_ledgers(settings, config))
    for copied, address in list_addresses(config):
        yield parse_destination(address), copied, list(list_ledgers(copied, config))


def can_be_got(path: Path, config: Path | None) -> bool:
    """Return whether files of this local path can be brought back from where they were sent.

    Raises `UploaderError` if a ledger cannot be read.
    """
    wanted = source_key(path)
    for _, settings, shards in _list_ledgers(config):
        inside = find_key(Path(settings.data.directory or ""), path)
        keys = [wanted] if inside is None else [inside, wanted]
        for shard, _ in shards:
            with reading(settings, config, shard) as ledger:
                if ledger and any(
                    it.state is EntryState.VERIFIED and _is_at(it.key, key)
                    for key in keys
                    for it in ledger.iter_entries(key)
                ):
                    return True
    return False


def find_originals(
    paths: Collection[bytes], name: str, config: Path | None
) -> Iterator[tuple[bytes, Path, Entry]]:
    """Yield the local files that were copied to paths of the destination with this id.

    All ledgers are read as a whole. Raises `UploaderError` if one cannot be read.
    """
    for _, settings, shards in _list_ledgers(config):
        top = settings.data.directory or Path()
        for shard, _ in shards:
            with reading(settings, config, shard) as ledger:
                if ledger is None or ledger.find_meta(KNOWN_ID) != name:
                    continue
                for entry in ledger.iter_entries():
                    path = entry.remote.encode("utf-8", "surrogateescape")
                    if entry.state is EntryState.VERIFIED and path in paths:
                        yield path, top / os.fsdecode(entry.key), entry


def hash_files(
    place: Place,
    choose: Callable[[Listing], dict[bytes, WantedFile]],
    received: HashedFiles,
    bandwidth: float,
    cancel: CancelFlag,
    report: Callable[[VerifyProgress], None],
) -> GetReport:
    """Fetch the files that are chosen of what is listed, as `get_files` does; write them nowhere.

    `bandwidth` is in MB/s, 0 for no limit. Raises `UploaderError` if it cannot begin.
    """
    order = GetOrder(what=FolderTarget(b""), contents=True, target=b"", bandwidth=bandwidth)
    return _Get(order, place, cancel, report, choose=choose, received=received).run()


class _Get:
    """One `get`."""

    def __init__(
        self,
        order: GetOrder,
        place: _Place,
        cancel: CancelFlag,
        report: Callable[[VerifyProgress], None],
        copied: _Copied | None = None,
        *,
        choose: Callable[[Listing], dict[bytes, WantedFile]] | None = None,
        received: ReceivedFiles | None = None,
        emit: Emit | None = None,
    ) -> None:
        self._order = order
        self._events = GetEvents(emit)
        self._copied = copied  # else all files of a part of the destination are wanted
        self._find_wanted = choose  # of what is listed, once it is known
        self._place = place
        self._cancel = cancel
        self._stop = cancel.part()  # also set by an error
        self._show = report
        self._sessions = [place.open_files()]
        self._processes: list[ProcessReceiver] = []
        self._keeps: list[int] = []  # descriptors whose locks last as long as these processes
        self._state: Path | None = None  # has the locks that they hold themselves
        self._target = received or ReceivedFiles(order.target)
        self._present = True  # something is in the local folder
        self._listing = Listing()
        self._part = b""  # what is wanted of the destination
        # Where it goes below the local folder, with a slash at its end.
        self._prefix = copied.folder + b"/" if copied and copied.folder else b""
        self._lock = Lock()
        self._jobs: Iterator[list[bytes]] = iter(())
        self._done = self._moved = 0  # files and bytes, for the progress
        self._came: dict[bytes, str] = {}  # checksums by place, until the ledger has them
        self._noted_at = time.monotonic()
        self._bucket = TokenBucket(self._check)
        self._bucket.limit(order.bandwidth * 1e6)
        self._records = copied is not None and copied.records  # there is no manifest
        self.report = GetReport(place.name, self._records)
        # Files of a server that its staging host is asked for.
        server = cast("MyTardisPlace", place) if self._records else None
        self._staged = server.staged if server else {}
        self.report.note = server.note if server else None

    def run(self) -> GetReport:
        """Receive what is wanted; then make folders and links, and look for other files."""
        report, began = self.report, time.monotonic()
        with ExitStack() as stack:
            stack.callback(self._close)
            stack.callback(self._note_restored)
            call_unless(self._cancel, self._open)
            chosen = self._choose()
            self._open_target(stack)
            self._tell_start()
            try:
                # Later, the folders of files that came are no longer missing.
                tree = self._list_tree(chosen) if self._order.missing else None
                with self._events.reported():
                    self._receive_all(chosen)
                if not self._order.dry_run:
                    folders, links = tree or self._list_tree(chosen)
                    if folders or links:
                        problems = self._target.make_tree(sorted(folders), links)
                        report.problems += [FileProblem(b"", it) for it in problems]
                    self._target.sync()
                self._find_unlisted()
            except Cancelled:
                report.ended, report.exit_code = INTERRUPTED, INTERRUPTED_EXIT
            except UploaderError as error:
                report.ended, report.exit_code = error.problem, error.exit_code
        if not report.exit_code and (report.problems or report.damaged):
            report.exit_code = SOME_FAILED_EXIT
        report.seconds = time.monotonic() - began
        others = [it.problem for it in report.problems if not it.path] + report.damaged
        self._events.finish(others, report.note, report.ended)
        return report

    def _tell_start(self) -> None:
        order, report = self._order, self.report
        size = report.size
        self._events.start(order.target, report.found, size, dry_run=order.dry_run)
        for path, problem in report.problems:  # of what is not to be fetched
            self._events.settle(WantedFile(path, path, 0, "", 0), problem, here=False)

    def _open(self) -> None:
        """Find the destination, and read its marker and manifest."""
        if self._records:
            return
        wanted = self._place.path
        if b".." in wanted.split(b"/"):
            raise SettingsError(
                f"{self._place.name} leads to a folder above.",
                hint="Write the path without `..`.",
                code="copy.destination",
            )
        while not _has_marker(self._sessions[0]):
            above = self._place.open_above(self._sessions[0])
            if above is None:
                require_marker(self._sessions[0], self.report.place)
                return
            self._place, files = above
            self._sessions = [files]
        files = self._sessions[0]
        self._target.use(require_marker(files, self._place.name).algorithm)
        self.report.algorithm = self._target.algorithm
        self._part = wanted[len(self._place.path) :].strip(b"/")
        self._listing = read_listing(
            files,
            self._place.name,
            self.report.damaged,
            lambda known: self._show(VerifyProgress("manifest", known)),
        )
        if (
            self._copied is None
            and not self._order.contents
            and (name := wanted.rpartition(b"/")[2])
        ):
            self._prefix = name + b"/"

    def _choose(self) -> list[bytes]:
        """Return the files that are wanted, in the order of their paths."""
        if self._find_wanted is not None:
            self._copied = _Copied(self._place, self._find_wanted(self._listing))
        part, listing, copied = self._part, self._listing, self._copied
        if copied is not None:
            chosen = sorted(
                (it for it, file in copied.files.items() if self._wants(file.place)),
                key=lambda it: (copied.files[it].archive, it),
            )
            chosen = [it for it in chosen if self._is_as_copied(it)]
            self.report.found += len(copied.problems)
            for path, problem in copied.problems:
                self._fail(path, problem)
        elif part in listing and not self._order.contents:
            self._prefix = b""
            chosen = [part]
        else:
            below = part + b"/" if part else b""
            chosen = sorted(it for it in listing if it.startswith(below) and self._wants(it))
            if not chosen and not (self._order.includes or self._order.excludes):
                self._require_folder()
        wrong = [it for it in chosen if not _is_possible(it)]
        what = "A record of the server" if self._records else "The manifest"
        for path in wrong:
            message = f"{what} lists {format_path(path)}, which is no path of a file there."
            self._fail(path, Problem("destination.manifest", message))
        self.report.found += len(chosen)
        self.report.size = sum(self._look_up(it)[0] for it in chosen)
        return [it for it in chosen if it not in wrong] if wrong else chosen

    def _look_up(self, path: bytes) -> tuple[int, int]:
        """Return the size of a file, and the number of its archive or 0."""
        file = self._copied.files[path] if self._copied else None
        return (file.size, file.archive) if file else (self._listing.find(path)[1], 0)

    def _is_as_copied(self, path: bytes) -> bool:
        """Return whether a file is listed as the ledger has it; else it is a failure."""
        assert self._copied is not None
        checksum = self._copied.files[path].checksum
        if self._records or (path in self._listing and self._listing.find(path)[0] == checksum):
            return True
        self.report.found += 1
        self._fail(path, describe_lost(path, records=self._records))
        return False

    def _require_folder(self) -> None:
        """Raise an error if the destination has no such folder, for a path that is not listed."""
        part = self._part
        tree = self._ask(lambda: [*islice(self._sessions[0].list_tree(part), 1)])
        if not tree or part.split(b"/")[0] in (b"", OWN_FOLDER):
            raise SettingsError(
                f"{self.report.place} is not in the manifest of {self._place.name}.",
                hint="Check the path. Only what mydata-like copy has put there is fetched.",
                code="copy.source",
            )

    def _below(self, path: bytes) -> bytes:
        """Return a path of the destination, from the wanted folder on."""
        return path[len(self._part) + 1 if self._part else 0 :]

    def _wants(self, path: bytes) -> bool:
        """Return whether the patterns select a path of the destination."""
        return self._wants_place(self._below(path))

    def _wants_place(self, place: bytes) -> bool:
        """Return whether the patterns select a path, from the wanted folder on."""
        shown = place.decode("utf-8", "surrogateescape")
        return all(matches(shown) for matches in self._matchers)

    @cached_property
    def _matchers(self) -> list[Callable[[str], bool]]:
        order, found = self._order, list[Callable[[str], bool]]()
        if order.includes:
            found.append(compile_patterns("--include", order.includes).match)
        if order.excludes:
            excludes = compile_patterns("--exclude", order.excludes)
            found.append(lambda path: not excludes.match(path))
        return found

    def _open_target(self, stack: ExitStack) -> None:
        """Make the local folder, and lock it."""
        order = self._order
        if not order.target:
            self._present = False
            return
        real, there = os.path.realpath(order.target), os.path.realpath(self._place.path)
        inside = lies_in(real, there) or lies_in(join(real, self._prefix.rstrip(b"/")), there)
        if isinstance(self._place, FolderPlace) and inside:
            raise SettingsError(
                f"The target folder {format_path(order.target)} is in the destination.",
                hint="Choose another folder.",
                code="destination.inside",
            )
        if order.dry_run:
            self._present = os.path.isdir(system_path(order.target))  # noqa: PTH112 - bytes
            return
        try:
            self._target.open(create=True)
            with os.scandir(system_path(order.target)) as entries:
                self._present = any(entries)
            state = find_state(Settings(), find_places(order.config))
            lease = stack.enter_context(
                directory_locked(state, order.target, SystemClock(), self._cancel.set)
            )
            if lease.descriptor is not None:
                self._keeps = [lease.descriptor]
            else:  # on Windows, no other process can keep this lock
                self._state = state
        except AlreadyRunningError as error:
            who = error.message.partition(" since ")[2]
            raise AlreadyRunningError(
                f"Another command has used {format_path(order.target)} since {who}",
                hint="Wait until it has ended.",
                code=error.problem_code,
            ) from error
        if self._state and not await_helpers(self._state, order.target):
            raise AlreadyRunningError(
                f"A process of an earlier command still writes to {format_path(order.target)}.",
                hint="Wait until it has ended.",
            )

    def _receive_all(self, chosen: Sequence[bytes]) -> None:
        """Receive files over several sessions at once."""
        service = self._find_service()
        most = self._order.channels or self._count_sessions(apart=service is not None)
        together = (service.open_files() if service else self._sessions[0]).concurrent
        jobs = list(self._group(chosen, together, most))
        self._jobs = iter(jobs)
        most = min(most, len(jobs))
        receivers = self._start(service, most) if service else self._open_sessions(most)
        works = [begin(partial(self._work, *it)) for it in enumerate(receivers)]
        try:
            call_unless(self._cancel, lambda: _wait_all(works))
        finally:
            self._stop.set()
        if self._cancel.is_set():  # the threads may have noticed that first
            raise Cancelled

    def _find_service(self) -> ReceivingService | None:
        """Return how processes receive files, unless this one does."""
        order, place = self._order, self._place
        if (
            isinstance(place, HostPlace)
            and not place.is_shared
            and order.target
            and not order.bandwidth  # one process is fast enough, and keeps the limit
            and self.report.size >= APART
        ):
            opener = place.for_much().opener
            return ReceivingService(opener, self._target, order.replace, order.sparse)
        return None

    def _count_sessions(self, *, apart: bool) -> int:
        """Return how many sessions receive files: from a near host, what the processors can do.

        A process that receives large files decrypts them in a thread of its own.
        """
        most = self._place.readers
        if not self._sessions[0].is_near:
            return most
        is_large = apart and self.report.size > self.report.found * SMALL
        return min(most, max(1, count_cpus() // 2) if is_large else count_cpus())

    def _start(self, service: ReceivingService, most: int) -> Sequence[Receiver]:
        """Return what starts a process when it is needed."""
        for number in range(most):
            if self._state:
                lock = find_helper_note(self._state, self._order.target, number)
                service = service._replace(lock=lock)
            self._processes.append(ProcessReceiver(service, self._keeps))
        return self._processes

    def _open_sessions(self, most: int) -> Sequence[Receiver]:
        """Return what receives files in this process; no session is open yet."""
        order = self._order
        self._sessions += [self._place.open_files() for _ in range(1, most)]
        return [
            SessionReceiver(
                files,
                self._target,
                self._stop,
                order.replace,
                order.sparse,
                self._records,
                lambda path: self._staged.pop(path, None) is not None,
            )
            for files in self._sessions[:most]
        ]

    def _group(
        self, chosen: Sequence[bytes], together: int, sessions: int
    ) -> Iterator[list[bytes]]:
        """Yield small files in groups, those of an archive in one, and each other one alone.

        If there are many of these, as many are `together` as a session reads at once: hashing eight
        together takes a quarter of the time.
        """
        group, large = list[bytes](), list[bytes]()
        size = names = before = 0
        for path in chosen:
            file_size, archive = self._look_up(path)
            if file_size > SMALL and not archive:
                large.append(path)
                continue
            full = len(group) == TOGETHER or size > TOGETHER_BYTES or names > NAMES_BYTES
            if group and (archive != before or (full and not archive)):
                yield group
                group, size, names = [], 0, 0
            group.append(path)
            before = archive
            size, names = size + file_size, names + len(path)
        if group:
            yield group
        together = max(1, min(together, len(large) // sessions))
        for start in range(0, len(large), together):
            yield large[start : start + together]

    def _work(self, channel: int, receiver: Receiver) -> None:
        """Receive one group after the other, until none is left or the work ends."""
        try:
            with self._events.channel(channel, self._place.name):
                while not self._stop.is_set():
                    with self._lock:
                        job = next(self._jobs, None)
                    if job is None:
                        return
                    self._receive_group(channel, receiver, [self._describe(path) for path in job])
        except BaseException:
            self._stop.set()
            raise

    def _describe(self, path: bytes) -> WantedFile:
        if self._copied is not None:
            file = self._copied.files[path]
            return file._replace(place=self._prefix + file.place)
        checksum, size, _ = self._listing.find(path)
        alone = path == self._part
        place = path.rpartition(b"/")[2] if alone else self._prefix + self._below(path)
        return WantedFile(path, place, size, checksum, self._listing.find_modified(path))

    def _receive_group(
        self, channel: int, receiver: Receiver, wanted: Sequence[WantedFile]
    ) -> None:
        """Receive files of one group; what a broken connection has left is received again."""
        left = {it.path: it for it in self._skip_present(wanted)}
        if self._order.dry_run:
            for file in left.values():
                self.settle(file, None)
        elif left:
            with self._events.transfer(channel, list(left.values())) as transfer:
                self._receive_again(receiver, left, transfer)

    def _receive_again(
        self, receiver: Receiver, left: dict[bytes, WantedFile], transfer: IncomingTransfer
    ) -> None:
        """Receive files until none is `left`; raises what lasts.

        Without its staging host, files come from the server itself.
        """
        rests = iter(RESTS)
        while left:
            asked = bool(self._staged)
            before = len(left), self._moved // RESUMED
            transfer.begin()
            try:
                arrivals = _Arrivals(self, left, transfer)
                receiver.receive(list(left.values()), arrivals, again=transfer.attempt > 1)
            except (TransientError, ServerUnavailableError) as error:
                logger.info("The destination did not answer: %s", error)
                if (len(left), self._moved // RESUMED) != before:
                    rests = iter(RESTS)
                rest = next(rests, None)
                if asked and (rest is None or rest > HOST_REST):
                    self._staged.clear()
                    self.report.note = error.problem
                    rests, rest = iter(RESTS), 0.0
                if rest is None:
                    raise
                transfer.retry(error.problem, rest)
                if self._stop.wait(rest):
                    raise Cancelled from error

    def _skip_present(self, wanted: Sequence[WantedFile]) -> list[WantedFile]:
        """Return the files that are to be received; those of the same size are hashed first."""
        if not self._present:
            for file in wanted:
                self._events.want(file, None)
            return list(wanted)
        found, here = find_right(self._target, wanted)
        left = []
        for file, there in zip(wanted, found, strict=True):
            if file.path in here:
                self.settle(file, None, here=True)
            elif there and not self._order.replace:
                problem = Problem(
                    OCCUPIED,
                    f"Another file has the name {format_path(file.place)}.",
                    HOW_TO_REPLACE,
                )
                self.settle(file, problem)
            else:
                self._events.want(file, there.size if there else None)
                left.append(file)
        if not self._order.dry_run:
            again = {file.path for file in left}
            self._target.remove_parts(file for file in wanted if file.path not in again)
        return left

    def move(self, size: int, transfer: IncomingTransfer, *, waits: bool) -> None:
        """Count bytes that have arrived, and wait as the bandwidth demands."""
        with self._lock:
            self._moved += size
        transfer.move(size, omitted=not waits)
        self._check()
        while waits and size > 0:
            size -= self._bucket.take(size)
        self._report()

    def _check(self) -> None:
        """Raise `Cancelled` once the work is to end."""
        if self._stop.is_set():
            raise Cancelled

    def settle(
        self,
        file: WantedFile,
        problem: Problem | None,
        transfer: IncomingTransfer | None = None,
        *,
        here: bool = False,
    ) -> None:
        """Count a file that is here now, or cannot be received."""
        report = self.report
        with self._lock:
            self._done += 1
            if problem:
                self._fail(file.path, problem)
            elif here:
                report.here += 1
                self._moved += file.size
            else:
                report.received += 1
                report.received_size += file.size
                if self._order.missing and not self._order.dry_run:
                    self._came[file.place] = file.checksum
                if transfer:
                    transfer.arrived += 1
                    transfer.arrived_size += file.size
            due = self._came and time.monotonic() - self._noted_at >= NOTED
        if due:
            self._note_restored()
        if problem or here or transfer:  # else it would be fetched
            self._events.settle(file, problem, here=here)
        self._report()

    def _note_restored(self) -> None:
        """Note in the ledgers what has come back to its place; a failure is only logged."""
        with self._lock:
            came, self._came = self._came, {}
            self._noted_at = time.monotonic()
        for file, directory, found in self._copied.ledgers if self._copied else ():
            checksums = [
                (found[place].key, checksum) for place, checksum in came.items() if place in found
            ]
            try:
                if checksums:
                    note_restored(file, directory, checksums, SystemClock().now())
            except UploaderError as error:
                logger.warning("The ledger was not told what came back: %s", error)

    def _fail(self, path: bytes, problem: Problem) -> None:
        self.report.failed += 1
        self.report.problems.append(FileProblem(path, problem))

    def _report(self) -> None:
        done, moved, report = self._done, self._moved, self.report
        self._show(VerifyProgress("files", done, report.found, moved, report.size))

    def _list_tree(self, chosen: Sequence[bytes]) -> tuple[list[TreeFolder], list[TreeLink]]:
        """Return the folders and links that are wanted, by their paths here.

        In the place of the originals, folders that are there stay as they are.
        """
        order, copied = self._order, self._copied
        folders, links = list[TreeFolder](), list[TreeLink]()
        alone = self._part in self._listing if copied is None else copied.alone
        if order.dry_run or alone or self._records or not order.target:
            return folders, links
        tops = {self._part: b""} if copied is None else copied.find_tops()
        tree = self._ask(
            lambda: [(it, top) for top in sorted(tops) for it in self._sessions[0].list_tree(top)]
        )
        if tops and not tree and isinstance(self._place, HostPlace):
            self.report.problems.append(FileProblem(b"", NO_TREE))
        above = set[bytes]()
        if self._matchers:
            above = {it[:end] for it in chosen for end, byte in enumerate(it) if byte == _SLASH}
        for it, top in tree:
            below = join(tops[top], it.path[len(top) + 1 if top else 0 :]).strip(b"/")
            place = (self._prefix + below).rstrip(b"/")
            if not place or not is_plain(place):  # the target itself, or what a host made up
                continue
            if isinstance(it, TreeLink):
                if self._wants_place(below):
                    links.append(it._replace(path=place))
            elif (it.path in above or not self._matchers) and not (
                order.missing and os.path.lexists(system_path(join(order.target, place)))
            ):
                folders.append(it._replace(path=place))
        return folders, links

    def _find_unlisted(self) -> None:
        """Find the files that are not listed; name the first.

        Earlier content that `copy` has kept is not among them.
        """
        if self._copied is not None or self._part in self._listing:
            return

        def find() -> tuple[int, list[bytes]]:
            number, named = 0, list[bytes]()
            for seen, file in enumerate(self._sessions[0].list_files(self._part)):
                if seen % 4000 == 0:
                    self._show(VerifyProgress("others", seen))
                kept = file.path.rpartition(b"/")[2].startswith(KEPT.encode())
                if kept or file.path in self._listing or not self._wants(file.path):
                    continue
                number += 1
                if len(named) < MOST_NAMED:
                    named.append(file.path)
            return number, named

        self.report.unlisted, self.report.named = self._ask(find)

    def _ask(self, action: Callable[[], T]) -> T:
        return call_again(self._cancel, action)

    def _close(self) -> None:
        self._stop.set()
        for process in self._processes:
            process.stop()
        for process in self._processes:
            process.close()
        for files in self._sessions:
            with suppress(UploaderError):
                files.close()


class _Arrivals(NamedTuple):
    """Counts what comes of the files that are `left`."""

    get: _Get
    left: dict[bytes, WantedFile]
    transfer: IncomingTransfer

    def move(self, size: int, *, waits: bool) -> None:
        self.get.move(size, self.transfer, waits=waits)

    def settle(self, file: WantedFile, problem: Problem | None) -> None:
        del self.left[file.path]
        self.get.settle(file, problem, self.transfer)


def _is_possible(path: bytes) -> bool:
    """Return whether a path is below its folder, and none of those that this program uses."""
    own = path.split(b"/")[0] == OWN_FOLDER or path.rpartition(b"/")[2].startswith(PART)
    return is_plain(path) and not own


def _wait_all(works: Sequence[Callable[[], None]]) -> None:
    """Wait for the end of all; raise the error that has ended them, if any."""
    errors: list[UploaderError] = []
    for wait in works:
        try:
            wait()
        except Cancelled:
            pass
        except UploaderError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _has_marker(files: DestinationFiles) -> bool:
    try:
        return files.read(MARKER) is not None
    except ServerUnavailableError as error:
        if error.problem_code != ABSENT:
            raise
        return False  # a file, or nothing
