"""The recorder that stores problem files and the state of each folder in the ledger."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    Event,
    FileFailed,
    FileRetried,
    FileSkipped,
    FilesKnown,
    FilesSeen,
    FileVerified,
    FileWaiting,
    FolderFailed,
    FolderFound,
    FolderSkipped,
)
from mydata_like.core.model import (
    UNSENT,
    Entry,
    EntryState,
    FileRecord,
    FolderSums,
    Outcome,
)
from mydata_like.core.ports import Ledger
from mydata_like.engine.pipeline import Lock

_PASSING: Final = (EntryState.STAGED, EntryState.REGISTERED)
NO_FOLDER = FolderSums(b"", "", None, "", "")


class OutcomeStore(Protocol):
    """The storage for outcomes and folders: the ledger."""

    def record_outcomes(
        self, outcomes: Sequence[Outcome], healthy: Sequence[bytes] = ()
    ) -> None: ...

    def record_folders(self, folders: Sequence[FolderSums]) -> None: ...


class OutcomeRecorder:
    """A collector of events from any thread; `write` stores what came since the last call."""

    def __init__(self, store: OutcomeStore) -> None:
        self._store = store
        self._lock = Lock()
        self._folders: dict[bytes, FolderSums] = {}
        self._changed: set[bytes] = set()
        # Files and bytes that were verified since the last call, by their folders.
        self._verified: defaultdict[bytes, list[int]] = defaultdict(lambda: [0, 0])
        self._outcomes: dict[bytes, Outcome] = {}
        self._well: list[bytes] = []
        self._steps: dict[type[Event], Callable[[Any], None]] = {
            FolderFound: self._open_folder,
            FolderSkipped: self._note_folder,
            FolderFailed: self._note_folder,
            FilesSeen: self._count_group,
            FilesKnown: self._count_group,
            FileVerified: self._note_verified,
            FileRetried: self._reopen,
            FileWaiting: self._note_problem,
            FileSkipped: self._note_problem,
            FileFailed: self._note_problem,
        }

    def add(self, event: Event) -> None:
        """Process an event."""
        step = self._steps.get(type(event))
        if step is not None:
            with self._lock:
                step(event)

    def add_all(self, events: Sequence[Event]) -> None:
        """Process events of many files, all of one kind."""
        step = self._steps.get(type(events[0])) if events else None
        if step is not None:
            with self._lock:
                for event in events:
                    step(event)

    def write(self) -> None:
        """Write the changes since the last call to the ledger; the next call retries failures."""
        with self._lock:
            self._add_verified()
            outcomes, self._outcomes = self._outcomes, {}
            well, self._well = self._well, []
            changed, self._changed = self._changed, set()
            folders = [self._folders[path] for path in sorted(changed)]
        try:
            if outcomes or well:
                self._store.record_outcomes(list(outcomes.values()), well)
            if folders:
                self._store.record_folders(folders)
        except BaseException:
            with self._lock:
                for path in self._well:
                    outcomes.pop(path, None)
                self._outcomes = outcomes | self._outcomes
                self._well = well + self._well
                self._changed |= changed
            raise

    def _open_folder(self, event: FolderFound) -> None:
        sums = FolderSums(event.path, event.dataset, event.title, event.owner, event.group)
        self._folders.setdefault(event.path, sums)  # single files may come from one folder
        self._changed.add(event.path)

    def _note_folder(self, event: FolderSkipped | FolderFailed) -> None:
        kind = "folder-skipped" if isinstance(event, FolderSkipped) else "folder-failed"
        self._outcomes[event.path] = Outcome(event.path, 0, 0, kind, event.problem)

    def _count_group(self, event: FilesSeen | FilesKnown) -> None:
        sums = self._find_folder(event.folder + b"/")
        if sums is NO_FOLDER:
            return
        if isinstance(event, FilesSeen):
            found, size = sums.found + event.files, sums.found_bytes + event.bytes
            self._change(sums._replace(found=found, found_bytes=size))
        else:
            verified, size = sums.verified + event.files, sums.verified_bytes + event.bytes
            self._change(sums._replace(verified=verified, verified_bytes=size))

    def _note_verified(self, event: FileVerified) -> None:
        self._outcomes.pop(event.path, None)
        self._well.append(event.path)
        added = self._verified[self._find_folder(event.path).path]
        added[0] += 1
        added[1] += event.size

    def _add_verified(self) -> None:
        for path, (files, size) in self._verified.items():
            sums = self._folders.get(path, NO_FOLDER)
            verified, total = sums.verified + files, sums.verified_bytes + size
            self._change(sums._replace(verified=verified, verified_bytes=total))
        self._verified.clear()

    def _reopen(self, event: FileRetried) -> None:
        """Record that a file is to be sent after all: until then it exists only here."""
        self._keep("found", event, UNSENT, event.modified_ns)
        sums = self._find_folder(event.path)
        if event.outcome == "failed":
            self._change(sums._replace(failed=sums.failed - 1))
        else:
            self._change(sums._replace(waiting=sums.waiting - 1))

    def _note_problem(self, event: FileWaiting | FileSkipped | FileFailed) -> None:
        sums = self._find_folder(event.path)
        match event:
            case FileWaiting():
                self._change(sums._replace(waiting=sums.waiting + 1))
                self._keep("waiting", event, event.problem, event.modified_ns)
            case FileSkipped():
                self._change(sums._replace(skipped=sums.skipped + 1))
                self._keep("skipped", event, event.problem)
            case FileFailed():
                self._change(sums._replace(failed=sums.failed + 1))
                self._keep("failed", event, event.problem, event.modified_ns)

    def _keep(
        self,
        kind: str,
        event: FileWaiting | FileSkipped | FileFailed | FileRetried,
        problem: Problem,
        modified_ns: int = 0,
    ) -> None:
        self._outcomes[event.path] = Outcome(event.path, event.size, modified_ns, kind, problem)

    def _find_folder(self, path: bytes) -> FolderSums:
        """Return the sums of the nearest dataset folder above a file."""
        while path:
            path = path.rpartition(b"/")[0]
            if path in self._folders:
                return self._folders[path]
        return NO_FOLDER

    def _change(self, sums: FolderSums) -> None:
        if sums.path:
            self._folders[sums.path] = sums
            self._changed.add(sums.path)


def record_sent(ledger: Ledger, batch: Sequence[FileRecord]) -> None:
    """Record what was just sent; an archive contains exactly what was sent in it."""
    for archive, record in _record(ledger, batch):
        ledger.record_archive(
            archive, [archive.entry(member.file, member.checksum) for member in record.members]
        )


def record_states(ledger: Ledger, batch: Sequence[FileRecord]) -> None:
    """Record the present states of what was sent."""
    for archive, _ in _record(ledger, batch):
        ledger.record_archive(archive)


def _record(ledger: Ledger, batch: Sequence[FileRecord]) -> list[tuple[ArchiveRecord, FileRecord]]:
    """Record files that have a record of their own; return the archives.

    Most files are verified within seconds. Their states on the way are recorded late, but not those
    of records that had other bytes: what the server says of these bytes would be taken for ours.
    """
    late: list[Entry] = []
    now: list[Entry] = []
    archives = []
    for record in batch:
        if record.members:
            archives.append((ArchiveRecord.of(record), record))
            continue
        row = Entry.of(record)
        (late if row.state in _PASSING else now).append(row)
    if late:
        ledger.record_late(late)
    if now:
        ledger.record(now)
    return archives
