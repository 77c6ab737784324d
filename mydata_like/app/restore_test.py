"""A restore test: a sample of files comes back from a destination, by the way of `get`.

Each file is hashed when it arrives, and compared with the manifest; the local file that was copied
is read and compared too, if it has not changed since. What did not come back as listed is fetched
again by all later tests, until it does.
"""

import hashlib
import json
import logging
import os
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from math import log
from operator import itemgetter
from pathlib import Path
from typing import Final

from mydata_like.app.get_service import FileProblem, find_originals, hash_files
from mydata_like.app.identity import ensure_uuid
from mydata_like.app.known_copies import CopyRestore, find_restore, note_restore
from mydata_like.app.plain_destination import Place
from mydata_like.app.settings_destination import doubt_files
from mydata_like.app.settings_service import find_places, load_settings
from mydata_like.app.verify_service import (
    SAVED,
    Surroundings,
    VerifyProgress,
    name_user,
    require_still_marked,
)
from mydata_like.catalogues.manifest.listing import Listing, require_marker
from mydata_like.catalogues.manifest.segments import FORMAT
from mydata_like.catalogues.manifest.verify_records import (
    LAST_RESTORE,
    NO_TIME,
    LastRestore,
    RestoreRecord,
    SegmentRecord,
    VerifyRecords,
)
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import DestinationFiles
from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.formatting import format_path
from mydata_like.core.model import LOST
from mydata_like.core.parsing import parse_json
from mydata_like.engine.channels import find_planned
from mydata_like.engine.pipeline import Lock, call_unless
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT, SOME_FAILED_EXIT
from mydata_like.settings.schema import Settings
from mydata_like.state.state_files import parse_plain, to_plain
from mydata_like.transfer.folder.mounted_files import LocalFiles
from mydata_like.transfer.folder.received_files import DIFFERS, HashedFiles, WantedFile

logger = logging.getLogger(__name__)

MOST: Final = 1000  # files of a test
_REMEMBERED: Final = 5000  # files of which the time of their last test is kept
DIFFERS_HERE: Final = "file.differs-here"
_FAULTS: Final = {LOST: "missing", DIFFERS: "changed", DIFFERS_HERE: "differs here"}


def name_fault(problem: Problem) -> str:
    """Return what is wrong with a file in one or two words."""
    return _FAULTS.get(problem.code, "unreadable")


@dataclass(slots=True)
class RestoreReport:
    """What a restore test has found; `last` is the result of the one before.

    What is `wrong` was found now; the result also counts what earlier tests have found. `size` are
    the bytes of the files that came back as listed. `damaged` are segments of the manifest. `ended`
    is why the test is incomplete, and `unsaved` why it is not remembered at the destination.
    """

    result: LastRestore = field(init=False)
    algorithm: Algorithm = Algorithm.MD5
    last: LastRestore | None = None
    size: int = 0
    wrong: list[FileProblem] = field(default_factory=list)
    damaged: list[Problem] = field(default_factory=list)
    ended: Problem | None = None
    unsaved: Problem | None = None
    exit_code: int = 0


def run_restore_test(
    place: Place, number: int, bandwidth: float, config: Path | None, around: Surroundings
) -> RestoreReport:
    """Fetch a sample of so many files; an interruption ends it with what is known so far.

    `bandwidth` is in MB/s; with 0, that of the settings applies. Raises `UploaderError` if it
    cannot begin.
    """
    if not bandwidth:
        limits = load_settings(config, must_exist=False).settings.limits
        bandwidth = find_planned(limits, around.clock.now().astimezone())[0] / 1e6
    return _RestoreTest(place, number, bandwidth, config, around).run()


@dataclass(slots=True)
class _RestoreTest:
    """One restore test of a destination; `first` and `tested` are as in `RestoreRecord`.

    `before` files came back in the test that this one continues; `id` is that of the destination.
    """

    place: Place
    number: int
    bandwidth: float
    config: Path | None
    around: Surroundings
    records: VerifyRecords = field(init=False)
    received: HashedFiles = field(default_factory=HashedFiles)
    listing: Listing = field(default_factory=Listing)
    id: str = ""
    before: int = 0
    compared: int = 0
    first: dict[bytes, str] = field(default_factory=dict)
    tested: Mapping[str, int] = field(default_factory=dict)
    saving: Lock = field(default_factory=Lock)
    saved_at: float = 0.0  # monotonic
    report: RestoreReport = field(default_factory=RestoreReport)

    def run(self) -> RestoreReport:
        """Fetch what is chosen, and once more what was wrong: a copy may have changed it."""
        report = self.report
        self.records = VerifyRecords(ensure_uuid(Settings(), find_places(self.config))[:8])
        self.saved_at = self.around.clock.monotonic()
        call_unless(self.around.cancel, self._open)
        try:
            self._fetch(self._choose)
            if report.wrong and not report.ended:
                with closing(self.place.open_files()) as files:
                    require_still_marked(files, self.place.name)
                self._fetch(lambda: [path for path, _ in report.wrong if path in self.first])
            if not report.ended:
                self._compare_here()
        except Cancelled:
            report.ended, report.exit_code = INTERRUPTED, INTERRUPTED_EXIT
        except UploaderError as error:
            report.ended, report.exit_code = error.problem, error.exit_code
        report.result = self._build_record().result
        if self.received.right or report.wrong:  # else the result of the one before says more
            self._keep()
        if not report.exit_code and (report.result.wrong or report.damaged):
            report.exit_code = SOME_FAILED_EXIT
        return report

    def _open(self) -> None:
        """Read the marker and what earlier tests have found; the newest counts."""
        with closing(self.place.open_files()) as files:
            marker = require_marker(files, self.place.name)
            self.id, self.report.algorithm = marker.id, marker.algorithm
            self.records.load(files)
            there = _parse_record(files.read(LAST_RESTORE))
        here = find_restore(self.place.name, marker.id, self.config)
        known = max(filter(None, (there, here)), key=lambda it: it.result.at, default=None)
        if known:
            self.report.last, self.tested = known.result, known.tested
            self.first = {b64decode(path): fault for path, fault in known.first.items()}

    def _fetch(self, choose: Callable[[], list[bytes]]) -> None:
        """Fetch files, and note those that did not come back as listed."""

        def choose_listed(listing: Listing) -> dict[bytes, WantedFile]:
            self.listing = listing
            self.first = {path: fault for path, fault in self.first.items() if path in listing}
            listed = ((path, *listing.find(path)) for path in choose())
            return {it: WantedFile(it, it, size, checksum, 0) for it, checksum, size, _ in listed}

        cancel, report = self.around.cancel, self.report
        got = hash_files(
            self.place, choose_listed, self.received, self.bandwidth, cancel, self._show
        )
        report.size += got.received_size
        report.wrong, report.damaged = sorted(got.problems), got.damaged
        if got.ended:
            report.ended, report.exit_code = got.ended, got.exit_code

    def _choose(self) -> list[bytes]:
        """Return what the last test has left or found wrong, and a sample of the others.

        If that test was interrupted, this one continues it.
        """
        last = self.report.last
        if last and "" in self.first.values() and last.asked == self.number:
            self.before, self.compared = last.restored, last.compared
        else:
            self.first |= dict.fromkeys(self._draw(max(0, self.number - len(self.first))), "")
        return list(self.first)

    def _draw(self, number: int) -> list[bytes]:
        """Return a random sample, in which a file of twice the age is twice as likely.

        The age is the time since it was proven, verified or tested.
        """
        now = self._now()

        def draw(path: bytes) -> float:
            segment = self.listing.find(path)[2]
            verified = self.records.find_last(segment.name, segment.at)
            seen = max(segment.at, verified, self.tested.get(_digest(path), 0))
            # Weighted sampling of Efraimidis and Spirakis (2006), doi:10.1016/j.ipl.2005.11.003.
            return log(1 - self.around.random.random()) / max(1, now - seen)

        return nlargest(number, (path for path in self.listing if path not in self.first), key=draw)

    def _compare_here(self) -> None:
        """Compare the local files that were copied, if they have the size and time from then."""
        compared = set[bytes]()
        for path, local, entry in find_originals(self.received.right, self.id, self.config):
            checksum = self.received.right[path]
            if path in compared or entry.checksum != checksum or not os.path.lexists(local):
                continue
            files = LocalFiles(os.fsencode(local.parent))
            files.use(self.report.algorithm)
            prove = partial(files.prove, [os.fsencode(local.name)])
            (found,) = call_unless(self.around.cancel, prove)
            as_copied = entry.size, entry.modified_ns
            if found is None or (found.file.size, found.file.modified_ns) != as_copied:
                continue
            compared.add(path)
            if found.checksum != checksum:
                self.report.wrong.append(FileProblem(path, _describe_local(local)))
        self.compared += len(compared)

    def _show(self, progress: VerifyProgress) -> None:
        """Report the progress, and keep it from time to time; called from any thread."""
        self.around.report(progress)
        with self.saving:
            now = self.around.clock.monotonic()
            if now - self.saved_at < SAVED:
                return
            self.saved_at = now
        self._save()

    def _build_record(self) -> RestoreRecord:
        """Return the result so far, and what the next test has to know."""
        report, now = self.report, self._now()
        wrong = {path: name_fault(problem) for path, problem in report.wrong}
        right = self.received.right.copy().keys() - wrong.keys()
        first = {path: fault for path, fault in self.first.items() if path not in right} | wrong
        tested = dict(self.tested) | dict.fromkeys(map(_digest, right | wrong.keys()), now)
        newest = nlargest(_REMEMBERED, tested.items(), key=itemgetter(1))
        restored = self.before + len(right)
        result = LastRestore(
            now,
            name_user(),
            report.ended is None and "" not in first.values(),
            self.number,
            len(self.listing),
            restored + len(first),
            restored,
            self.compared,
            dict(sorted(Counter(filter(None, first.values())).items())),
        )
        files = {b64encode(path).decode(): fault for path, fault in first.items()}
        return RestoreRecord(FORMAT, result, files, dict(newest))

    def _save(self) -> None:
        """Keep the result here and at the destination; note if the latter is impossible."""
        record = self._build_record()
        note_restore(CopyRestore(self.place.name, record, self.id), self.config)
        content = json.dumps(to_plain(record)).encode() + b"\n"
        self._change(lambda files: files.write(LAST_RESTORE, content, replace=True))

    def _keep(self) -> None:
        """Keep the result; let the next run and the next verification doubt what is wrong there."""
        self.report.unsaved = None  # an attempt in between may have failed
        self._save()
        wrong = [path for path, why in self.report.wrong if why.code != DIFFERS_HERE]
        if not wrong:
            return
        numbers, now = Counter(self.listing.find(path)[2].name for path in wrong), self._now()

        def note(files: DestinationFiles) -> None:
            self.records.load(files)
            for segment, number in numbers.items():
                self.records.note(segment, SegmentRecord(now, number))
            self.records.save(files)

        self._change(note)
        try:
            doubt_files(self.config, self.id, set(wrong))
        except UploaderError as error:
            logger.warning("Wrong files were not noted for the next run: %s", error)

    def _change(self, action: Callable[[DestinationFiles], object]) -> None:
        if self.report.unsaved:
            return
        try:
            with closing(self.place.open_files()) as files:
                require_still_marked(files, self.place.name)
                action(files)
        except UploaderError as error:
            self.report.unsaved = error.problem

    def _now(self) -> int:
        return int(self.around.clock.now().timestamp())


def _parse_record(content: bytes | None) -> RestoreRecord | None:
    """Return the record in the file's content; None if it is missing, damaged or of a newer one."""
    if content is None:
        return None
    try:
        record: RestoreRecord = parse_plain(parse_json(content), RestoreRecord)
        for path in record.first:
            b64decode(path)
    except (ValueError, TypeError) as error:
        logger.warning("The result of the last restore test cannot be read: %s", error)
        return None
    return record if record.format == FORMAT and 0 <= record.result.at < NO_TIME else None


def _digest(path: bytes) -> str:
    return hashlib.blake2b(path, digest_size=8).hexdigest()


def _describe_local(local: Path) -> Problem:
    return Problem(
        DIFFERS_HERE,
        f"The local file {format_path(os.fsencode(local))} has other bytes than its copy, although "
        "it has the same size and time.",
        "Its disk may be failing. The copy is as it was proven: get brings it back.",
    )
