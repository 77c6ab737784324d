"""`verify`: the files of a destination of `copy` are read and hashed where they are.

They are compared with the manifest beside them, so neither the source nor a ledger is needed, and
nothing is proven about the source.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeVar

from mydata_like.app.identity import ensure_uuid
from mydata_like.app.known_copies import CopyCheck, note_check
from mydata_like.app.plain_destination import HostPlace, Place
from mydata_like.app.settings_destination import doubt_files
from mydata_like.app.settings_service import find_places
from mydata_like.catalogues.manifest.listing import (
    Listing,
    Segment,
    read_listing,
    require_marker,
)
from mydata_like.catalogues.manifest.segments import MARKER, Manifest
from mydata_like.catalogues.manifest.verify_records import (
    LAST,
    LastVerify,
    SegmentRecord,
    VerifyRecords,
    parse_last,
)
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import SERVICE, DestinationFiles, ProvenFile
from mydata_like.core.errors import (
    Cancelled,
    Problem,
    ServerUnavailableError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.hashing import LANES
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.core.staging_path import KEPT
from mydata_like.engine.pipeline import CancelFlag, call_unless
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT, SOME_FAILED_EXIT
from mydata_like.hostos.process import read_account
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

T = TypeVar("T")

FEWEST: Final = 100  # files in the first request, and the fewest while there are that many
MOST: Final = 4000
BYTES: Final = 1_000_000  # for each of these files: a request is full with the first that passes it
QUICK: Final = 1.0  # seconds; after quicker requests the next ones have more files
SLOW: Final = 4.0  # seconds; after slower ones they have less
RESTS: Final = (1.0, 3.0, 10.0, 30.0)  # seconds before a request is repeated
SAVED: Final = 30.0  # seconds after which the progress is kept at the destination
MOST_NAMED: Final = 100_000  # files that are not listed and are named
_KEPT: Final = KEPT.encode()


class Sample(NamedTuple):
    """Verify a random part of the files, at least one."""

    percent: float


class NotSince(NamedTuple):
    """Verify the files that were not verified, or proven by `copy`, for so many seconds."""

    seconds: float


Scope = Sample | NotSince | None  # None for all files


class FileFault(Enum):
    """What is wrong with a listed file."""

    MISSING = "missing"  # no regular file has its name, or its folder may not be entered
    CHANGED = "changed"  # it has other bytes
    UNREADABLE = "unreadable"  # or it changes while it is read


class WrongFile(NamedTuple):
    """A file that is not as it is listed; `found` is what it is now, if it could be read."""

    path: bytes
    fault: FileFault
    size: int
    checksum: str
    found: ProvenFile | None


class VerifyProgress(NamedTuple):
    """How far a check is: its step, and the files and bytes of this step that are done."""

    step: str  # "manifest", "records" of a server, "files", "others" or "receipt"
    files: int
    of: int = 0
    size: int = 0
    of_size: int = 0


class Surroundings(NamedTuple):
    """What a check needs beside the destination; `report` is called from any thread."""

    clock: Clock
    cancel: CancelFlag
    random: Random
    report: Callable[[VerifyProgress], None]


def call_again(cancel: CancelSignal, action: Callable[[], T]) -> T:
    """Return the result of an action on the files; repeat it if the connection breaks.

    Raises `Cancelled` at once if that is requested.
    """
    for rest in RESTS:
        try:
            return call_unless(cancel, action)
        except (TransientError, ServerUnavailableError) as error:
            logger.info("The destination did not answer: %s", error)
        if cancel.wait(rest):
            raise Cancelled
    return call_unless(cancel, action)


@dataclass(slots=True)
class VerifyReport:
    """What a check has found.

    `listed` files are in the manifest, of which `chosen` were to be checked, and `checked` ones
    were, with `size` bytes. The first of the `unlisted` files are in `named`; the number is None if
    they were not looked for. `damaged` are segments of the manifest. `ended` is why the check is
    incomplete, and `unsaved` why it is not remembered. `last` is the result of the one before.
    All checksums are of the `algorithm`.
    """

    evidence: str
    scope: Scope
    algorithm: Algorithm = Algorithm.MD5
    last: LastVerify | None = None
    listed: int = 0
    chosen: int = 0
    checked: int = 0
    size: int = 0
    wrong: list[WrongFile] = field(default_factory=list)
    unlisted: int | None = None
    named: list[bytes] = field(default_factory=list)
    damaged: list[Problem] = field(default_factory=list)
    ended: Problem | None = None
    unsaved: Problem | None = None
    exit_code: int = 0

    def count(self, fault: FileFault) -> int:
        """Return the number of files with a fault."""
        return sum(it.fault is fault for it in self.wrong)


def verify_destination(
    place: Place, scope: Scope, config: Path | None, around: Surroundings
) -> VerifyReport:
    """Check the files of a destination; an interruption ends it with what is known so far.

    Raises `UploaderError` if it cannot begin.
    """
    return _Verification(place, scope, config, around).run()


class _Verification:
    """One check of a destination."""

    def __init__(
        self, place: Place, scope: Scope, config: Path | None, around: Surroundings
    ) -> None:
        self._place = place
        self._config = config
        self._scope = scope
        self._around = around
        self._files = place.open_files()
        self._listing = Listing()
        self._records = VerifyRecords(ensure_uuid(Settings(), find_places(config))[:8])
        self._at_once = FEWEST
        self._saved_at = around.clock.monotonic()
        self._id = ""  # as in the marker, once it was read
        self.report = VerifyReport(self._files.evidence, scope)

    def run(self) -> VerifyReport:
        """Check what is chosen, then look for files that are not listed."""
        report = self.report
        try:
            call_unless(self._around.cancel, self._open)
            try:
                self._check_all(self._choose())
                self._compare_again(self._find_unlisted())
            except Cancelled:
                report.ended, report.exit_code = INTERRUPTED, INTERRUPTED_EXIT
                # Work that was abandoned may go on with the others.
                self._files.close()
                self._files = self._place.open_files()
            except UploaderError as error:
                report.ended, report.exit_code = error.problem, error.exit_code
            self._keep()
        finally:
            self._files.close()
        if not report.exit_code and (report.wrong or report.damaged):
            report.exit_code = SOME_FAILED_EXIT
        return report

    def _open(self) -> None:
        """Read the marker and the manifest; raises an error if this is no destination of ours."""
        files, report = self._files, self.report
        marker = require_marker(files, self._place.name)
        self._id = marker.id
        report.algorithm = marker.algorithm
        report.last = parse_last(files.read(LAST))
        self._listing = read_listing(
            files,
            self._place.name,
            report.damaged,
            lambda known: self._around.report(VerifyProgress("manifest", known)),
        )
        report.listed = len(self._listing)
        self._records.load(files)

    def _choose(self) -> list[bytes]:
        """Return the files that are to be checked, in the order of their segments."""
        paths: list[bytes] = list(self._listing)
        match self._scope:
            case Sample(percent):
                number = min(max(1, round(len(paths) * percent / 100)), len(paths))
                chosen = sorted(self._around.random.sample(range(len(paths)), number))
                paths = [paths[index] for index in chosen]
            case NotSince(seconds):
                since = self._now() - seconds
                due = {
                    it.name
                    for it in self._listing.segments
                    if self._records.find_last(it.name, it.at) < since
                }
                paths = [path for path in paths if self._listing.find(path)[2].name in due]
            case None:
                pass
        for path in paths:
            self._listing.find(path)[2].left += 1
        self.report.chosen = len(paths)
        return paths

    def _check_all(self, paths: Sequence[bytes]) -> None:
        """Check files in groups, and keep the progress from time to time."""
        report, clock = self.report, self._around.clock
        whole = sum(self._listing.find(path)[1] for path in paths)
        self._saved_at = clock.monotonic()
        for group in self._split(paths):
            begun, started = self._now(), clock.monotonic()
            wrong = self._check(group)
            self._adapt(clock.monotonic() - started)
            report.wrong += wrong
            report.checked += len(group)
            for path in group:
                _, size, segment = self._listing.find(path)
                report.size += size
                segment.left -= 1
            for it in wrong:
                self._listing.find(it.path)[2].wrong += 1
            touched = {it.name: it for it in (self._listing.find(path)[2] for path in group)}
            for segment in touched.values():
                self._note(segment, begun)
            progress = VerifyProgress("files", report.checked, len(paths), report.size, whole)
            self._around.report(progress)
            if clock.monotonic() - self._saved_at > SAVED:
                self._try(self._save_records)
                self._saved_at = clock.monotonic()

    def _split(self, paths: Sequence[bytes]) -> Iterator[list[bytes]]:
        """Yield files in groups of one request; a folder's large files are hashed several at once.

        A host answers when it has read them all, so smaller groups show more progress, and less is
        lost by an interruption.
        """
        least = 1 if isinstance(self._place, HostPlace) else LANES
        group: list[bytes] = []
        size = 0
        for path in paths:
            group.append(path)
            size += self._listing.find(path)[1]
            full = size >= self._at_once * BYTES and len(group) >= least
            if full or len(group) >= self._at_once:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _adapt(self, seconds: float) -> None:
        """Choose the size of the next request after the time of the last one."""
        if seconds < QUICK:
            self._at_once = min(2 * self._at_once, MOST)
        elif seconds > SLOW:
            self._at_once = max(self._at_once // 2, FEWEST)

    def _note(self, segment: Segment, at: int) -> None:
        """Remember that a segment was read, or that something of it is wrong."""
        whole = not segment.left and not isinstance(self._scope, Sample)
        whole = whole and self.report.evidence != SERVICE
        if whole or segment.wrong:
            self._records.note(segment.name, SegmentRecord(at, segment.wrong))

    def _check(self, paths: Sequence[bytes]) -> list[WrongFile]:
        """Return those of these files that are not as they are listed.

        Raises `StagingError` if the destination is gone, of which files only seem to be missing.
        """
        found = dict(zip(paths, self._ask(lambda: self._files.prove(paths)), strict=True))
        if unknown := [path for path, it in found.items() if it is None]:
            again = self._ask(lambda: self._files.prove(unknown))  # they may just have changed
            found.update(zip(unknown, again, strict=True))
        unknown = [path for path, it in found.items() if it is None]
        seen = self._ask(lambda: self._files.look(unknown)) if unknown else []
        missing = {path for path, it in zip(unknown, seen, strict=True) if it is None}
        if missing:
            self._ask(self._require_marker)
        wrong = []
        for path, proven in found.items():
            checksum, size, _ = self._listing.find(path)
            if proven is None:
                fault = FileFault.MISSING if path in missing else FileFault.UNREADABLE
            elif (proven.checksum, proven.file.size) != (checksum, size):
                fault = FileFault.CHANGED
            else:
                continue
            wrong.append(WrongFile(path, fault, size, checksum, proven))
        return wrong

    def _find_unlisted(self) -> int:
        """Find the files that are not listed; name the first, and return their number.

        Earlier content that `copy` has kept is not among them.
        """

        def find() -> tuple[int, list[bytes]]:
            number, named = 0, list[bytes]()
            for seen, file in enumerate(self._files.list_files(b"")):
                if seen % MOST == 0:
                    self._around.report(VerifyProgress("others", seen))
                if file.path in self._listing or _is_kept(file.path):
                    continue
                number += 1
                if len(named) < MOST_NAMED:
                    named.append(file.path)
            return number, named

        number, self.report.named = self._ask(find)
        return number

    def _compare_again(self, unlisted: int) -> None:
        """Compare what is wrong with the manifest as it is now, since a copy may have changed both.

        What it has listed or withdrawn in the meantime is no longer wrong.
        """
        report = self.report
        wanted = {*report.named, *(it.path for it in report.wrong)}
        if wanted:
            now, damaged = Listing(), list[Problem]()
            manifest = Manifest(self._files, "", damaged.append)
            self._ask(lambda: [*now.read(manifest, wanted)])
            named = [path for path in report.named if path not in now]
            unlisted -= len(report.named) - len(named)
            report.named = named
            if len(damaged) <= len(report.damaged):
                self._forgive(now)
        report.unlisted = unlisted

    def _forgive(self, now: Listing) -> None:
        """Remove from what is wrong the files that are as the manifest lists them now."""
        report, before = self.report, self._listing
        replaced = {
            it.path
            for it in report.wrong
            if it.path not in now or now.find(it.path)[:2] != (it.checksum, it.size)
        }
        if not replaced:
            return
        self._listing = now
        left = [path for path in replaced if path in now]
        wrong = self._check(left) if left else []
        report.wrong = [it for it in report.wrong if it.path not in replaced] + wrong
        for path in replaced.difference(it.path for it in wrong):
            segment = before.find(path)[2]
            segment.wrong -= 1
            self._note(segment, self._now())

    def _keep(self) -> None:
        """Keep the result and the progress at the destination."""
        report = self.report
        match self._scope:
            case Sample():
                scope = "sample"
            case NotSince():
                scope = "older"
            case None:
                scope = "all"
        result = LastVerify(
            self._now(),
            name_user(),
            scope,
            report.ended is None,
            report.listed,
            report.chosen,
            report.checked,
            report.count(FileFault.MISSING),
            report.count(FileFault.CHANGED),
            report.count(FileFault.UNREADABLE),
            report.unlisted,
            len(report.damaged),
            report.evidence != SERVICE,
        )

        def keep() -> None:
            self._save_records()
            if report.checked:  # else the result of the one before says more
                self._files.write(LAST, result.format(), replace=True)

        self._try(keep)
        if report.checked:
            note_check(CopyCheck(self._place.name, result, self._id), self._config)
        if report.wrong:
            try:
                doubt_files(self._config, self._id, {it.path for it in report.wrong})
            except UploaderError as error:
                logger.warning("Wrong files were not noted for the next run: %s", error)

    def _save_records(self) -> None:
        """Keep the progress, but not where a disk is no longer mounted."""
        self._require_marker()
        self._records.save(self._files)

    def _require_marker(self) -> None:
        require_still_marked(self._files, self._place.name)

    def _try(self, action: Callable[[], None]) -> None:
        """Change something at the destination; note if that is impossible, as on a read-only disk.

        It is not tried again then.
        """
        if self.report.unsaved:
            return
        try:
            action()
        except UploaderError as error:
            self.report.unsaved = error.problem

    def _ask(self, action: Callable[[], T]) -> T:
        return call_again(self._around.cancel, action)

    def _now(self) -> int:
        return int(self._around.clock.now().timestamp())


def _is_kept(path: bytes) -> bool:
    return path.rpartition(b"/")[2].startswith(_KEPT)


def require_still_marked(files: DestinationFiles, name: str) -> None:
    """Raise `StagingError` if the destination is gone, of which files only seem to be missing."""
    if files.read(MARKER) is None:
        raise StagingError(
            f"The destination {name} has lost its marker while it was verified.",
            hint="Check that its disk is mounted; then run again.",
            code="destination.absent",
        )


def name_user() -> str:
    """Return the user and this computer."""
    user = read_account() or (str(os.getuid()) if hasattr(os, "getuid") else "unknown")
    return f"{user}@{socket.gethostname()}"
