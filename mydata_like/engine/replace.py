"""The stage that puts new bytes of changed files in place of earlier ones, which it keeps.

The API allows only one set of bytes per record. So the new bytes are stored in a separate file, and
the ledger notes the replacement. Then the earlier file is renamed, and the new one takes its place.
Only after that the next stage changes the record. In between, and for good if a run ends there, the
record describes bytes that no local file has any more, so that the file counts as changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from mydata_like.core.errors import HELD, Problem, TransientError
from mydata_like.core.events import FileFailed, FileReplaced, FileWaiting
from mydata_like.core.model import (
    Batch,
    Datafile,
    Entry,
    EntryState,
    FileRecord,
    KeptCopy,
    Replacement,
)
from mydata_like.core.parsing import moment_of
from mydata_like.core.ports import Channel, SentFile, UnsentFile
from mydata_like.core.problems import LEFT_FOR_LATER
from mydata_like.core.staging_path import aside_path, is_kept, kept_path
from mydata_like.engine.changed_files import ChangedFiles
from mydata_like.engine.pipeline import Lock, StageInput
from mydata_like.engine.run_context import RunContext

TOGETHER: Final = 200  # replacements that are moved into place at once
COLLECT: Final = 1.0  # seconds to wait for them; each time, the lists of all files may be rewritten
PATIENCE: Final = 1.0  # seconds to wait for a channel while other work continues
FAILURES: Final = 4  # of the connection or the host, for the same bytes, before their files fail
MISSING: Final = "staging.missing"
DAY: Final = 24 * 3600

Replacing = tuple[Replacement, FileRecord]
Fates = list[SentFile | UnsentFile]


class KeptCopies:
    """The earlier bytes that stay in the staging area for `days` after they were replaced."""

    def __init__(self, context: RunContext, days: float) -> None:
        self._context = context
        self._ledger = context.ledger
        self._seconds = int(days * DAY)

    def note_placed(self, placed: Iterable[Replacement]) -> None:
        """Record and report that earlier bytes were replaced."""
        now = int(self._context.clock.now().timestamp())
        kept = []
        for it in placed:
            if is_kept(it.staged):  # kept bytes are in their place again
                back = [copy for copy in self._ledger.find_kept(it.key) if copy.path == it.staged]
                kept += [copy._replace(until=0) for copy in back]
            if copy := self._find(it):
                copy = copy._replace(at=now, until=now + self._seconds)
                kept.append(copy)
                self._report(it, copy, moment_of(copy.until) if self._seconds else None)
        if kept:
            self._ledger.record_kept(kept)

    def keep(self, copy: KeptCopy) -> None:
        """Record bytes that have just been kept."""
        now = int(self._context.clock.now().timestamp())
        self._ledger.record_kept([copy._replace(at=now, until=now + self._seconds)])

    def give_up(self, it: Replacement) -> None:
        """Record and report that earlier bytes were replaced without keeping them."""
        if copy := self._find(it):
            self._ledger.forget_kept([copy])
            self._report(it, copy, None)

    def forget(self, abandoned: Iterable[Replacement]) -> None:
        """Forget the copies of replacements that were not made."""
        copies = [copy for it in abandoned if (copy := self._find(it)) and not copy.until]
        if copies:
            self._ledger.forget_kept(copies)

    def remove_expired(self) -> None:
        """Remove the copies whose time has passed; the next run removes those that stay."""
        expired = self._find_expired()
        for start in range(0, len(expired), TOGETHER):
            part = expired[start : start + TOGETHER]
            if not discard(self._context, [it.path for it in part]):
                return
            self._ledger.forget_kept(part)

    def _find_expired(self) -> list[KeptCopy]:
        """Return the copies whose time has passed, and that no unfinished replacement needs."""
        now = self._context.clock.now().timestamp()
        needed = {it.key for it in self._ledger.find_replacements()}
        return [
            it for it in self._ledger.find_kept() if 0 < it.until <= now and it.key not in needed
        ]

    def _find(self, it: Replacement) -> KeptCopy | None:
        if not it.kept:
            return None
        return next((copy for copy in self._ledger.find_kept(it.key) if copy.path == it.kept), None)

    def _report(self, it: Replacement, copy: KeptCopy, until: datetime | None) -> None:
        self._context.emit(
            FileReplaced(
                path=it.key,
                size=it.size,
                size_before=copy.size,
                verified_at=copy.verified_at,
                kept_until=until,
            )
        )


class Replace:
    """The stage between sending and registering; files that replace nothing pass through."""

    def __init__(self, context: RunContext, copies: KeptCopies, changed: ChangedFiles) -> None:
        self._context = context
        self._gate = context.gate
        self._ledger = context.ledger
        self._copies = copies
        self._changed = changed
        self._lock = Lock()
        self._noted: dict[bytes, Replacement] = {}  # by the file's key
        self._failures = 0

    def note(self, staged: Sequence[FileRecord]) -> None:
        """Record in the ledger what is to be replaced, before anything is changed."""
        mark = self._context.transport.mark
        now = int(self._gate.clock.now().timestamp())
        noted, copies = [], []
        for item in staged:
            if not item.replaces or item.placed_by_server:
                continue
            copy = _describe_copy(item)
            noted.append(_describe(item, mark, now, copy))
            copies += [copy] if copy else []
        if noted:
            self._ledger.record_kept(copies)
            self._ledger.record_replacements(noted)
            with self._lock:
                self._noted.update((it.key, it) for it in noted)

    def __call__(self, source: StageInput[Batch]) -> Iterator[Batch]:
        waiting: list[Replacing] = []
        clock, due = self._gate.clock, 0.0
        while waiting or not source.finished:
            items = None
            if not source.finished:
                items = source.poll(max(0.0, due - clock.monotonic()) if waiting else None)
            passing: Batch = []
            for item in items or ():
                with self._lock:
                    noted = self._noted.pop(item.file.key, None)
                if noted and item.state is EntryState.STAGED:
                    due = due if waiting else clock.monotonic() + COLLECT
                    waiting.append((noted, item))
                else:
                    passing.append(item)
            if passing:
                yield passing
            enough = source.finished or len(waiting) >= TOGETHER or clock.monotonic() >= due
            if waiting and enough:
                placed, again = self._place(waiting[:TOGETHER])
                waiting = again + waiting[TOGETHER:]
                if placed:
                    yield [*placed]

    def _place(self, part: Sequence[Replacing]) -> tuple[Batch, list[Replacing]]:
        """Move bytes into place, if a channel is available now; return those to try again, too."""
        with self._context.channels.borrowed_first(PATIENCE) as channel:
            if channel is None:
                return [], [*part]
            try:
                self._context.catalogue.withdraw([item.remote for _, item in part])
                fates = self._replace(self._context.channels.ensure_open(channel), part)
            except TransientError as error:
                fates = [UnsentFile(i, error.problem, again=True) for i in range(len(part))]
        placed, again = [], []
        self._failures += any(isinstance(fate, UnsentFile) and fate.again for fate in fates)
        for (noted, item), fate in zip(part, fates, strict=True):
            if isinstance(fate, SentFile):
                placed.append((noted, item))
            elif fate.again and self._failures < FAILURES:
                again.append((noted, item))
            else:
                self._leave(noted, item, fate.problem)
        self._copies.note_placed(noted for noted, _ in placed)
        self._failures = self._failures if again else 0
        if again:
            self._gate.rest(self._gate.backoff(self._failures))
        return [item for _, item in placed], again

    def _replace(self, channel: Channel, part: Sequence[Replacing]) -> Fates:
        """Move bytes into place; earlier ones that cannot be kept only if the user chose that."""
        files = {noted.key: item for noted, item in part}
        fates = self._move(channel, [noted for noted, _ in part], files)
        for index, (noted, item) in enumerate(part):
            fate = fates[index]
            if isinstance(fate, UnsentFile) and fate.problem.code == HELD and item.release:
                (fates[index],) = self._move(channel, [noted._replace(kept="")], files)
                if isinstance(fates[index], SentFile):
                    self._copies.give_up(noted)
        return fates

    def _move(
        self, channel: Channel, noted: Sequence[Replacement], files: Mapping[bytes, FileRecord]
    ) -> Fates:
        return self._gate.call(lambda: channel.replace(noted, files), staging=True)

    def _leave(self, noted: Replacement, item: FileRecord, problem: Problem) -> None:
        """Report a file whose bytes are not in place; if these were refused, forget them."""
        waits = problem.code in LEFT_FOR_LATER or problem.code == MISSING
        if problem.code == HELD:
            self._abandon(noted, item)
        kind = FileWaiting if waits else FileFailed
        for file in item.files:
            self._context.emit(kind.of(file, problem))

    def _abandon(self, noted: Replacement, item: FileRecord) -> None:
        """Leave the earlier bytes as they are: the ledger has them as the server's."""
        record = item.earlier
        assert record
        earlier = Entry.of(item)._replace(
            state=EntryState.CHANGED,
            size=record.size,
            modified_ns=0,
            checksum=record.checksum,
            datafile=record.id,
        )
        self._ledger.record([earlier])
        self._copies.forget([noted])
        self._changed.hold_for_host(item)
        discard(self._context, [noted.staged])
        self._ledger.forget_replacements([noted])


def discard(context: RunContext, paths: Sequence[str]) -> bool:
    """Remove bytes in the staging area; return whether that was possible now."""
    channels = context.channels
    try:
        with channels.borrowed() as channel:
            channel = channels.ensure_open(channel)
            context.gate.call(lambda: channel.discard(paths), staging=True)
    except TransientError:
        return False
    return True


def _describe_copy(item: FileRecord) -> KeptCopy | None:
    """Return the bytes to be kept; None if the record describes none that would be lost."""
    record = item.earlier
    assert record
    if item.appended or record.unfinished or record.checksum == item.checksum:
        return None
    return KeptCopy(
        item.file.key,
        item.dataset.id,
        record.id,
        item.remote,
        kept_path(item.remote, record.checksum),
        record.size,
        record.checksum,
        record.modified,
        record.verified_time(item.remote),
    )


def describe_undo(undo: KeptCopy, record: Datafile, now: int) -> tuple[Replacement, KeptCopy]:
    """Return how kept bytes take their place again, and the present ones, which are then kept."""
    newer = undo._replace(
        path=kept_path(undo.remote, record.checksum),
        size=record.size,
        checksum=record.checksum,
        modified=record.modified,
        verified_at=record.verified_time(undo.remote),
        at=0,
        until=0,
    )
    back = Replacement(
        undo.key,
        undo.dataset,
        undo.datafile,
        undo.remote,
        undo.path,
        undo.size,
        undo.checksum,
        now,
        0,
        newer.path,
        newer.size,
    )
    return back, newer


def _describe(item: FileRecord, mark: bytes, now: int, copy: KeptCopy | None) -> Replacement:
    file = item.file
    assert item.earlier
    return Replacement(
        file.key,
        item.dataset.id,
        item.earlier.id,
        item.remote,
        aside_path(item.remote, file.size, file.modified_ns, mark),
        file.size,
        item.checksum,
        now,
        file.modified_ns,
        copy.path if copy else "",
        copy.size if copy else 0,
    )
