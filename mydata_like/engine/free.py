"""Frees space: deletes local files of which the server proves, now, that it has every byte.

What the ledger says is where the questions begin, never the answer. A local file goes only when
its record was fetched a moment ago and has its size, its checksum and a replica that the server
has verified again since it was asked to, and when its own bytes, read again from the first to the
last, have that checksum as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from mydata_like.core.deletion import (
    CleanupCandidate,
    DeletedFile,
    DeletionLog,
    FileSystem,
    KeptFile,
    OpenFile,
)
from mydata_like.core.errors import Cancelled, ItemError, Problem, RunError
from mydata_like.core.model import Entry
from mydata_like.core.ports import Ledger
from mydata_like.engine.proving import Proof, Records, judge_entry
from mydata_like.engine.reverify import NOT_AGAIN

AT_ONCE: Final = 300  # files whose records are fetched, and verified again, together
BYTES_AT_ONCE: Final = 4 * 1024**3  # of these files: that they take no longer to be read

UNKNOWN = Problem(
    "free.unknown",
    "No run has sent this file, or found it on the server.",
    "The next run takes it, unless the filters or the layout leave it out.",
)
OTHER_BYTES = Problem(
    "free.other-bytes",
    "The file's bytes are no longer those that were sent, although size and time are.",
    "Compare it with the server's copy: the disk, or a program, has changed it.",
)


class Free:
    """Goes through local files and tells of each what became of it.

    Without `deeds` nothing is deleted: `DeletedFile` is then what would have been.
    """

    def __init__(
        self, proof: Proof, ledger: Ledger, disk: FileSystem, deeds: DeletionLog | None
    ) -> None:
        self._proof = proof
        self._ledger = ledger
        self._disk = disk
        self._deeds = deeds
        self._hopeless: Problem | None = None  # why it makes no sense to ask any more

    def __call__(self, found: Iterable[CleanupCandidate]) -> Iterator[DeletedFile | KeptFile]:
        """Yield the fate of each file, in their order; ends early where somebody asks to stop.

        What makes it senseless to go on (the server is away, or refuses the account) keeps all
        that follow.
        """
        with suppress(Cancelled):
            yield from self._go_through(found)

    def _go_through(self, found: Iterable[CleanupCandidate]) -> Iterator[DeletedFile | KeptFile]:
        for part in _parts(found):
            if self._proof.cancel.is_set():
                return
            yield from self._decide_all(part)

    def _decide_all(self, part: Sequence[CleanupCandidate]) -> Iterator[DeletedFile | KeptFile]:
        entries = self._ledger.find_entries([file.key for file in part])
        records = self._ask(entries.values())
        for number, file in enumerate(part):
            if self._proof.cancel.is_set():
                return
            entry = entries.get(file.key)
            refused = file.problem or (UNKNOWN if entry is None else judge_entry(entry))
            if refused is None and isinstance(records, Records) and self._proof.is_stale(records):
                records = self._ask(entries[one.key] for one in part[number:] if one.key in entries)
            if refused is None and isinstance(records, Problem):
                refused = records
            if refused is not None or entry is None or isinstance(records, Problem):
                yield KeptFile(file.key, file.size, refused or UNKNOWN)
            else:
                yield self._decide(entry, records)

    def _ask(self, entries: Iterable[Entry]) -> Records | Problem:
        """Return what the server has of these now, or why nobody can say."""
        if self._hopeless is not None:
            return self._hopeless
        try:
            return self._proof.fetch([entry for entry in entries if judge_entry(entry) is None])
        except RunError as error:
            self._hopeless = error.problem
            return error.problem
        except ItemError as error:
            return error.problem

    def _decide(self, entry: Entry, records: Records) -> DeletedFile | KeptFile:
        """Delete a file, if it may be; whatever is not as it should be keeps it."""
        try:
            return self._prove(entry, records)
        except (ItemError, RunError) as error:
            return KeptFile(entry.key, entry.size, error.problem)

    def _prove(self, entry: Entry, records: Records) -> DeletedFile | KeptFile:
        verdict = self._proof.judge(entry, records)
        if isinstance(verdict, Problem):
            return KeptFile(entry.key, entry.size, verdict)
        with self._disk.hold(entry) as held:
            if held.measure(self._proof.cancel) != entry.checksum:
                return KeptFile(entry.key, entry.size, OTHER_BYTES)
            # A large file takes its time to be read; of the largest the server is asked then.
            if self._proof.is_stale(records) or not self._proof.was_verified_again(verdict):
                verdict = self._proof.judge(entry, self._proof.fetch([entry], large=True))
            if isinstance(verdict, Problem):
                return KeptFile(entry.key, entry.size, verdict)
            if not self._proof.was_verified_again(verdict):
                return KeptFile(entry.key, entry.size, NOT_AGAIN)
            freed = DeletedFile(entry.key, entry.size, entry, verdict.id)
            self._delete(held, freed)
        return freed

    def _delete(self, held: OpenFile, freed: DeletedFile) -> None:
        if self._deeds is None:
            return
        self._deeds.note(freed)
        try:
            held.delete()
        except ItemError as error:
            self._deeds.take_back(freed, error.problem)
            raise


def _parts(found: Iterable[CleanupCandidate]) -> Iterator[list[CleanupCandidate]]:
    part: list[CleanupCandidate] = []
    size = 0
    for file in found:
        if part and (len(part) >= AT_ONCE or size + file.size > BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(file)
        size += file.size
    if part:
        yield part
