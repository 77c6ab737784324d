"""The stage that reads local files that the server may already have, and compares checksums."""

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager

from mydata_like.core.errors import Cancelled, FileChangedError, Problem
from mydata_like.core.events import (
    FileFailed,
    FileRenamed,
    FileVerified,
    FileWaiting,
    FileWanted,
)
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    Batch,
    CheckedGroup,
    Comparison,
    Entry,
    EntryState,
    FileRecord,
)
from mydata_like.core.ports import Emit, FileChecksum, Ledger
from mydata_like.core.problems import LEFT_FOR_LATER
from mydata_like.engine.changed_files import ChangedFiles, describe_unsent
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import TICK, Lock, StageInput
from mydata_like.engine.user_overrides import UserOverrides

READERS = 2  # files that are read concurrently: the instrument's disk has other work
AT_ONCE = 100  # ledger rows per write
REPORT_INTERVAL = 1.0  # seconds after which results are passed on

UNREAD = Problem(
    "waiting.compare",
    "The server has a file of this name and size. The local file must be read to compare them.",
    "A run reads it once and compares the checksum. It is sent only if it differs.",
)


class Backlog:
    """A queue of files to be read, of any length, in order of arrival."""

    def __init__(self, room: MutableMapping[tuple[str, str], Comparison]) -> None:
        self._room = room
        self._lock = Lock()
        self._first = self._next = 0

    def __len__(self) -> int:
        return self._next - self._first

    def put(self, comparison: Comparison) -> None:
        with self._lock:
            self._room["", str(self._next)] = comparison
            self._next += 1

    def clear(self) -> None:
        """Remove all files; they wait for the next run."""
        with self._lock:
            self._first = self._next
            self._room.clear()

    def take(self) -> Comparison | None:
        """Remove and return the next file, None if there is none."""
        with self._lock:
            if self._first == self._next:
                return None
            place = "", str(self._first)
            self._first += 1
            comparison = self._room[place]
            del self._room[place]
            return comparison


class Compare:
    """The stage that reads files that the ledger does not know and the server seems to have.

    Files to send pass immediately. The others are read in the background, a few at a time, and
    follow later without a group. One worker is always free for the files that pass.
    """

    def __init__(
        self,
        checksum: FileChecksum,
        ledger: Ledger,
        emit: Emit,
        gate: Gate,
        choices: UserOverrides,
        changed: ChangedFiles,
        note_new: Callable[[Sequence[Entry]], None],
    ) -> None:
        self._checksum = checksum
        self._ledger = ledger
        self._emit = emit
        self._gate = gate
        self._choices = choices
        self._changed = changed
        self._note_new = note_new  # rows whose records were new to the ledger
        self._queue = Backlog(ledger.open_mapping())
        self._lock = Lock()
        self._readers = 0

    def __call__(self, source: StageInput[CheckedGroup]) -> Iterator[CheckedGroup | Batch]:
        while not source.finished or self._queue:
            with self._reading() as allowed:
                found = self._read_some() if allowed else []
            if found:
                yield found
            if source.finished and not allowed:
                return  # other workers read the rest
            checked = source.poll(0.0 if allowed and self._queue else TICK)
            if checked is not None:
                for item in checked.unread:
                    self._queue.put(item)
                yield checked._replace(unread=())

    def report_unread(self, checked: CheckedGroup) -> None:
        """Report the unread files of a group as waiting for a run; nothing is sent now.

        Renamed files are reported as such; only a run reads those that it must read.
        """
        for record in checked.open:
            if record.renamed:
                self._emit(FileRenamed.of(record))
        for item in checked.unread:
            known = item.matches[0].known if item.matches else None
            if isinstance(known, FileRecord) and known.renamed:
                self._emit(FileRenamed.of(known))
            elif item.matches:
                self._emit(FileWaiting.of(item.file, UNREAD))
            elif isinstance(item.differs, FileRecord):  # it differs, and probably was appended to
                self._emit(FileWanted.of(item.differs))
            else:
                self._emit(describe_unsent(item.file, item.differs))

    @contextmanager
    def _reading(self) -> Iterator[bool]:
        """Yield whether there are files to read and a reader is free."""
        with self._lock:
            if self._choices.finishing:
                self._queue.clear()
            allowed = len(self._queue) > 0 and self._readers < READERS
            self._readers += allowed
        try:
            yield allowed
        finally:
            with self._lock:
                self._readers -= allowed

    def _read_some(self) -> Batch:
        """Read some of the queued files; return those that are not verified yet."""
        until = self._gate.clock.monotonic() + REPORT_INTERVAL
        same: list[tuple[LocalFile, Entry]] = []
        found: Batch = []
        try:
            while len(same) < AT_ONCE and self._gate.clock.monotonic() < until:
                item = self._queue.take()
                if item is None:
                    break
                result = self._read(item)
                if isinstance(result, Entry):
                    same.append((item.file, result))
                elif result is not None:
                    found.append(result)
        finally:
            self._keep(same)
        return found

    def _read(self, item: Comparison) -> Entry | FileRecord | None:
        """Return the status of a file by its checksum; None if nothing can be done about it."""
        try:
            result = self._compare(item)
        except FileChangedError as error:
            kind = FileWaiting if error.problem_code in LEFT_FOR_LATER else FileFailed
            self._emit(kind.of(item.file, error.problem))
            return None
        wanted = isinstance(result, FileRecord) and result.state is EntryState.FOUND
        if wanted or isinstance(result, Problem):
            self._note_change(item.file)
        if isinstance(result, Problem):
            self._emit(describe_unsent(item.file, result))
            return None
        if isinstance(result, FileRecord) and wanted:
            self._emit(FileWanted.of(result))
        return result

    def _compare(self, item: Comparison) -> Entry | FileRecord | Problem:
        """Read a file and return its state, or the file to send if it differs.

        The beginning of a file that has grown is read once more than it is sent: a hold must be
        known before.
        """
        file, copy = item.file, item.copy
        if item.matches:
            checksum = self._checksum(file, self._wait_while_held)
            for match in item.matches:
                if match.checksum == checksum:
                    return match.known
        if copy is None or isinstance(item.differs, Problem):
            return item.differs
        appended = (
            self._changed.may_be_appended(file, copy)
            and self._checksum(file, self._wait_while_held, copy.size) == copy.checksum
        )
        return self._changed.judge(item.differs, copy, appended=appended)

    def _note_change(self, file: LocalFile) -> None:
        """Record that the ledger's verified entry describes an earlier state of a file."""
        entry = self._ledger.find_entries([file.key]).get(file.key)
        if entry and entry.state is EntryState.VERIFIED:
            self._ledger.record([entry._replace(state=EntryState.CHANGED)])

    def _wait_while_held(self) -> None:
        """Wait while sending is on hold; raises `Cancelled`."""
        if self._gate.cancel.is_set():
            raise Cancelled
        self._gate.wait_released()

    def _keep(self, same: list[tuple[LocalFile, Entry]]) -> None:
        if same:
            rows = [entry for _, entry in same]
            before = self._ledger.find_entries([row.key for row in rows])
            self._ledger.record(rows)
            self._note_new([row for row in rows if not row.archive and row.key not in before])
        for file, entry in same:
            checksum = entry.checksum
            self._emit(FileVerified(path=file.key, size=file.size, checksum=checksum, known=True))
