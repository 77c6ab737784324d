"""The decision whether a changed local file may replace its verified copy, or is held."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from mydata_like.core.errors import HELD, KEPT, STRANGE_RECORD, Problem
from mydata_like.core.events import FileFailed, FileSkipped, FileWaiting, Notice
from mydata_like.core.formatting import format_path, format_size
from mydata_like.core.local_files import LocalFile, signed
from mydata_like.core.model import (
    HELD_FILES,
    ChangeChoice,
    ChangedFile,
    Datafile,
    DatasetId,
    FileRecord,
    HoldReason,
    VerifiedCopy,
)
from mydata_like.core.parsing import moment_of_ns, parse_moment
from mydata_like.core.ports import Clock, Emit
from mydata_like.engine.pipeline import Lock
from mydata_like.engine.walk import compile_patterns
from mydata_like.settings.sections import Data

WINDOW: Final = timedelta(days=1)  # in which changed files count for the brake
SHARE: Final = 0.05  # of a dataset's files, up to which the brake never acts
ALL_DATASETS: Final = 25  # times the limit for one dataset
NOTICED: Final = "changed-files-noticed"  # the key of the time of the last notice

UNREAD = Problem(
    "waiting.archive",
    "An archive that the server has not verified yet may contain this file.",
    "The next run checks again. If this persists, contact the server's administrator.",
)
REMOTE = Problem(
    "skipped.remote",
    "The content is not on this computer, but in cloud storage such as OneDrive, or on tape.",
    "Have the system keep the file on this computer (in OneDrive: Always keep on this device); the "
    "next run uploads it.",
)
KEPT_THERE = Problem(
    KEPT,
    "The local file differs from the copy on the server, and the user chose to keep the copy.",
    "If the local file changes again, this choice no longer applies.",
)


class ChangedFileStore(Protocol):
    """The storage for changed files: the ledger."""

    def find_changed(self, key: bytes) -> ChangedFile | None: ...

    def record_changed(self, changed: ChangedFile) -> None: ...

    def count_changed(self, since: datetime) -> Mapping[DatasetId, int]: ...

    def count_files(self, dataset: DatasetId) -> int: ...

    def forget_changed(self, before: datetime) -> None: ...

    def find_meta(self, key: str) -> str | None: ...

    def record_meta(self, key: str, value: str) -> None: ...


class ChangedFiles:
    """The judge of changed files in one run, by the settings, the user's choices and the brake.

    Safe to call from any thread. Over HTTP nothing `can_replace` a copy. A dry run stores nothing;
    `chosen` are the choices that the next run takes.
    """

    def __init__(
        self,
        store: ChangedFileStore,
        emit: Emit,
        clock: Clock,
        settings: Data,
        *,
        can_replace: bool = True,
        dry_run: bool = False,
        chosen: Sequence[ChangedFile] = (),
    ) -> None:
        self._store = store
        self._chosen = {row.key: row for row in chosen}
        self._emit = emit
        self._clock = clock
        self._settings = settings
        self._freely = compile_patterns("data.replace_freely", settings.replace_freely)
        self.can_replace = can_replace
        self._dry_run = dry_run
        self._lock = Lock()
        self._since = clock.now() - WINDOW
        self._counts = Counter(store.count_changed(self._since))
        self._totals: dict[DatasetId, int] = {}  # the number of files of each dataset
        self._noticed = dry_run
        if not dry_run:
            store.forget_changed(self._since)

    def _find(self, key: bytes) -> ChangedFile | None:
        return self._chosen.get(key) or self._store.find_changed(key)

    def is_free(self, path: bytes) -> bool:
        """Return whether the settings allow replacing copies of a path without a question."""
        return self._freely.match(path.decode("utf-8", "surrogateescape"))

    def knows(self, file: LocalFile, copy: VerifiedCopy) -> bool:
        """Return whether an earlier run has read the file and found that it differs."""
        row = self._find(file.key)
        return row is not None and _applies(row, file, copy)

    def keeps(self, file: LocalFile, copy: VerifiedCopy) -> bool:
        """Return whether the user keeps the copy."""
        row = self._find(file.key)
        return bool(row and row.choice is ChangeChoice.KEEP and _applies(row, file, copy))

    def has_seen(self, file: LocalFile, size: int, checksum: str) -> bool:
        """Return whether an earlier run has seen this content as the verified copy of a file."""
        row = self._find(file.key)
        return row is not None and (row.copy_size, row.copy_checksum) == (size, checksum)

    def may_be_appended(self, file: LocalFile, copy: VerifiedCopy) -> bool:
        """Return whether the file must be read to see if the copy is its beginning."""
        row = self._find(file.key)
        known = row and row.hold is not HoldReason.HTTP and _applies(row, file, copy)
        return self.can_replace and file.size > copy.size > 0 and not known

    def judge(
        self, wanted: FileRecord, copy: VerifiedCopy, *, appended: bool = False
    ) -> FileRecord | Problem:
        """Return the file as it is to be sent, or why it is not.

        `appended` states that the copy is the beginning of the file.
        """
        file = wanted.file
        with self._lock:
            row = self._find(file.key)
            choice = row.choice if row and _applies(row, file, copy) else ChangeChoice.NONE
            if choice is ChangeChoice.KEEP:
                return KEPT_THERE
            hold = HoldReason.NONE
            if wanted.replaces and not self.can_replace:
                hold = HoldReason.HTTP
            elif appended or not copy.size:
                wanted.appended = True
                return wanted
            elif (
                choice is ChangeChoice.REPLACE or copy.freely or self._settings.changed == "replace"
            ):
                wanted.release = True
                return wanted
            else:
                hold = self._find_hold(wanted, copy, row)
            self._record(wanted, copy, row, hold)
            if hold is HoldReason.NONE:
                return wanted
            self._notify()
            return describe_hold(file, copy, hold)

    def hold_for_host(self, wanted: FileRecord) -> None:
        """Hold a file until the user chooses, since its host cannot keep the verified copy."""
        record = wanted.earlier
        assert record
        copy = VerifiedCopy(record.size, record.checksum, record.verified_time(wanted.remote))
        with self._lock:
            row = self._find(wanted.file.key)
            self._record(wanted, copy, row, HoldReason.HOST)
            self._notify()

    def _find_hold(
        self, wanted: FileRecord, copy: VerifiedCopy, row: ChangedFile | None
    ) -> HoldReason:
        if has_shrunk(wanted.file, copy):
            return HoldReason.SHRUNK
        if row and row.hold is HoldReason.HOST and _applies(row, wanted.file, copy):
            return HoldReason.HOST
        if self._settings.changed == "hold":
            return HoldReason.SETTING
        limit = self._settings.brake
        if not limit or self._is_counted(row):
            return HoldReason.NONE
        if row and row.hold is HoldReason.BRAKE:  # also after the window, until it is confirmed
            return HoldReason.BRAKE
        number = wanted.dataset.id
        here = self._counts[number]
        if number not in self._totals and here >= limit:
            self._totals[number] = max(wanted.dataset.files, self._store.count_files(number))
        many = here >= limit and here + 1 > SHARE * self._totals[number]
        over = many or self._counts.total() >= ALL_DATASETS * limit
        return HoldReason.BRAKE if over else HoldReason.NONE

    def _is_counted(self, row: ChangedFile | None) -> bool:
        return bool(row and row.counted_at and row.counted_at > self._since.timestamp())

    def _record(
        self, wanted: FileRecord, copy: VerifiedCopy, row: ChangedFile | None, hold: HoldReason
    ) -> None:
        """Record the file; it counts for the brake unless the brake or the setting holds it."""
        file, counted_at = wanted.file, row.counted_at if row else None
        if hold in (HoldReason.NONE, HoldReason.SHRUNK) and not self._is_counted(row):
            self._counts[wanted.dataset.id] += 1
            counted_at = int(self._clock.now().timestamp())
        changed = ChangedFile(
            file.key,
            file.size,
            file.modified_ns,
            file.ctime_ns,
            signed(file.inode),
            wanted.dataset.id,
            copy.size,
            copy.checksum,
            copy.verified_at,
            hold,
            counted_at=counted_at,
        )
        if changed != row and not self._dry_run:
            self._store.record_changed(changed)

    def _notify(self) -> None:
        """Notify the user that files are held, once per day."""
        if self._noticed:
            return
        self._noticed = True
        now, last = self._clock.now(), self._store.find_meta(NOTICED)
        try:
            recent = last is not None and now - WINDOW < parse_moment(last) <= now
        except ValueError:
            recent = False
        if not recent:
            self._store.record_meta(NOTICED, now.isoformat())
            self._emit(Notice(problem=HELD_FILES))


def has_shrunk(file: LocalFile, copy: VerifiedCopy | Datafile) -> bool:
    """Return whether a file is so much smaller than its copy that it may be damaged."""
    return file.size * 2 < copy.size


def _applies(row: ChangedFile, file: LocalFile, copy: VerifiedCopy) -> bool:
    """Return whether a row is of the file as it is now, and of the copy that the server has."""
    return row.is_of(file) and (row.copy_size, row.copy_checksum) == (copy.size, copy.checksum)


def describe_unsent(file: LocalFile, problem: Problem) -> FileWaiting | FileSkipped | FileFailed:
    """Return the outcome of a file that is not sent because of this problem."""
    if problem.code.startswith("waiting.") or problem.code == STRANGE_RECORD:
        return FileWaiting.of(file, problem)
    if problem.code.startswith("skipped."):
        return FileSkipped(path=file.key, size=file.size, problem=problem)
    return FileFailed.of(file, problem)


def describe_hold(file: LocalFile | ChangedFile, copy: VerifiedCopy, hold: HoldReason) -> Problem:
    """Return why a changed file is held, with both sizes and times, and what the user can do."""
    at = f"{moment_of_ns(file.modified_ns):%Y-%m-%d %H:%M} UTC"
    local = f"{format_size(file.size)}, changed on {at}"
    verified = copy.verified_at[:10]
    verified_on = f", verified on {verified} by the server's clock" if verified else ""
    there, path = f"{format_size(copy.size)}{verified_on}", format_path(file.key)
    # Also one that the server contradicts, or that somebody else has put there.
    stored = "verified copy" if verified else "copy"
    hint = (
        f'To replace the copy, run: mydata-like changed replace "{path}". To keep it, run: '
        f'mydata-like changed keep "{path}".'
    )
    match hold:
        case HoldReason.SHRUNK:
            return Problem(
                HELD,
                f"The local file ({local}) is much smaller than the {stored} on the server "
                f"({there}).",
                hint,
            )
        case HoldReason.BRAKE:
            return Problem(
                HELD,
                f"Many files changed within a day. The local file ({local}) differs from the "
                f"{stored} on the server ({there}).",
                hint,
            )
        case HoldReason.HOST:
            return Problem(
                HELD,
                f"The local file ({local}) differs from the {stored} on the server "
                f"({there}), which the staging area cannot keep in addition to the new content.",
                hint,
            )
        case HoldReason.HTTP:
            return Problem(
                HELD,
                f"The local file ({local}) differs from the {stored} on the server "
                f"({there}), which uploads over HTTP cannot replace.",
                f'To keep the copy, run: mydata-like changed keep "{path}". To upload the local '
                "file as well, rename it.",
            )
        case _:
            return Problem(
                HELD,
                f"The local file ({local}) differs from the {stored} on the server ({there}).",
                hint,
            )
