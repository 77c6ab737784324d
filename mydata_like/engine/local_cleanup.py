"""The deletion of local files for which the server proves, now, that it has every byte.

The ledger only provides the candidates, never the proof. A local file is deleted only if two
conditions hold. Its record was fetched moments ago and has its size, its checksum and a replica
that the server has verified again since it was requested to. And its own bytes, read again from the
first to the last, have that checksum as well.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Generic, Protocol, TypeVar

from mydata_like.core.deletion import (
    CleanupCandidate,
    DeletedFile,
    DeletionLog,
    FileSystem,
    KeptFile,
    OpenFile,
)
from mydata_like.core.errors import Cancelled, ItemError, Problem, RunError
from mydata_like.core.model import Datafile, Entry, EntryState, Recheck
from mydata_like.core.ports import CancelSignal, Ledger

UNVERIFIED = Problem(
    "free.unverified",
    "The server has not verified this file yet.",
    "Try again after a successful run.",
)
CONTRADICTED = Problem(
    "free.unverified",
    "An answer of the server contradicts that it has this file.",
    "Keep the file. The next run compares it with the server again.",
)
SETTLING = Problem(
    "free.settling",
    "The file changed recently and may still be written to.",
    "Try again later; filters.settle_seconds sets how long it must stay unchanged.",
)
CHANGED = Problem(
    "free.changed",
    "The local file differs from the content that the server has verified.",
    "Keep the file. The next run sends it, unless its copy on the server is held or kept.",
)
NOT_AGAIN = Problem(
    "free.not-verified-again",
    "The server has not yet verified its copy of this file again, as requested.",
    "Keep the file and try again later. If this persists, notify the server's administrator: "
    "the server's verification may be stuck.",
)
UNKNOWN = Problem(
    "free.unknown",
    "No run has sent this file or found it on the server.",
    "The next run uploads it, unless the filters or the layout exclude it.",
)
OTHER_BYTES = Problem(
    "free.other-bytes",
    "The file's content has changed since it was sent, although size and time have not.",
    "Compare it with the server's copy: a disk fault or a program has changed it.",
)

AT_ONCE: Final = 300  # files whose records are fetched and verified again together
BYTES_AT_ONCE: Final = 4 * 1024**3  # of these files, so that reading them does not take too long

E = TypeVar("E")


class Proof(Protocol[E]):
    """The proof that the destination has the bytes of files now; `E` is its evidence."""

    def fetch(self, entries: Sequence[Entry], *, large: bool = False) -> E:
        """Return the present evidence for these rows of the ledger.

        That for large files is complete only with `large`, to be used after such a file was read.
        Raises `ItemError` and `RunError`.
        """

    def judge(self, entry: Entry, evidence: E) -> Datafile | Problem:
        """Return the record that proves a file to be safe, or why there is none.

        It may still lack a new verification: see `was_verified_again`. Raises `ItemError` if an
        archive cannot be read now.
        """

    def is_stale(self, evidence: E) -> bool:
        """Return whether the evidence is too old to delete anything because of it."""

    def was_verified_again(self, proof: Datafile) -> bool:
        """Return whether the bytes were verified again, recently enough to count."""

    def confirm(self, entry: Entry) -> None:
        """Raise `ItemError` if a last look shows that the destination does not have a file.

        Where the system allows it, the local file has another name meanwhile.
        """

    def find_doubted(self, entry: Entry, problem: Problem) -> Recheck | None:
        """Return what must be checked again, if a problem contradicts the ledger."""


def judge_entry(entry: Entry) -> Problem | None:
    """Return a problem if the ledger alone is enough reason to keep a file."""
    if entry.state is EntryState.CHANGED:
        return CHANGED
    return None if entry.state is EntryState.VERIFIED and entry.checksum else UNVERIFIED


class LocalCleanup(Generic[E]):
    """The cleanup of local files, which reports the result for each of them.

    Without `deeds` nothing is deleted: `DeletedFile` then stands for a file that could be deleted.
    `note` is called with what the server contradicts, before that is reported.
    """

    def __init__(
        self,
        proof: Proof[E],
        ledger: Ledger,
        disk: FileSystem,
        deeds: DeletionLog | None,
        note: Callable[[Sequence[Recheck]], None],
        cancel: CancelSignal,
    ) -> None:
        self._proof = proof
        self._ledger = ledger
        self._disk = disk
        self._deeds = deeds
        self._note = note  # what must be checked again
        self._cancel = cancel
        self._fatal: Problem | None = None  # why all further files are kept

    def __call__(self, found: Iterable[CleanupCandidate]) -> Iterator[DeletedFile | KeptFile]:
        """Yield the result for each file, in their order; end early if a stop is requested.

        If the server is unavailable or refuses the account, all files that follow are kept.
        """
        with suppress(Cancelled):
            yield from self._go_through(found)

    def _go_through(self, found: Iterable[CleanupCandidate]) -> Iterator[DeletedFile | KeptFile]:
        for part in _parts(found):
            if self._cancel.is_set():
                return
            yield from self._decide_all(part)

    def _decide_all(self, part: Sequence[CleanupCandidate]) -> Iterator[DeletedFile | KeptFile]:
        entries = self._ledger.find_entries([file.key for file in part])
        evidence = self._ask(entries.values())
        for number, file in enumerate(part):
            if self._cancel.is_set():
                return
            entry = entries.get(file.key)
            refused = file.problem or (UNKNOWN if entry is None else judge_entry(entry))
            if refused == UNVERIFIED and self._ledger.is_doubted(file.key):
                refused = CONTRADICTED
            if (
                refused is None
                and not isinstance(evidence, Problem)
                and self._proof.is_stale(evidence)
            ):
                evidence = self._ask(
                    entries[one.key] for one in part[number:] if one.key in entries
                )
            if refused is None and isinstance(evidence, Problem):
                refused = evidence
            if refused is not None or entry is None or isinstance(evidence, Problem):
                yield KeptFile(file.key, file.size, refused or UNKNOWN)
            else:
                yield self._decide(entry, evidence)

    def _ask(self, entries: Iterable[Entry]) -> E | Problem:
        """Return the present evidence of these, or why there are none."""
        if self._fatal is not None:
            return self._fatal
        try:
            return self._proof.fetch([entry for entry in entries if judge_entry(entry) is None])
        except RunError as error:
            self._fatal = error.problem
            return error.problem
        except ItemError as error:
            return error.problem

    def _decide(self, entry: Entry, evidence: E) -> DeletedFile | KeptFile:
        """Delete a file if that is allowed; any deviation keeps it."""
        try:
            return self._prove(entry, evidence)
        except (ItemError, RunError) as error:
            return self._keep(entry, error.problem)

    def _prove(self, entry: Entry, evidence: E) -> DeletedFile | KeptFile:
        verdict = self._proof.judge(entry, evidence)
        if isinstance(verdict, Problem):
            return self._keep(entry, verdict)
        with self._disk.hold(entry) as held:
            if held.measure(self._cancel) != entry.checksum:
                return KeptFile(entry.key, entry.size, OTHER_BYTES)
            # Reading a large file takes time. The largest ones are verified on the server only
            # after that.
            if self._proof.is_stale(evidence) or not self._proof.was_verified_again(verdict):
                verdict = self._proof.judge(entry, self._proof.fetch([entry], large=True))
            if isinstance(verdict, Problem):
                return self._keep(entry, verdict)
            if not self._proof.was_verified_again(verdict):
                return KeptFile(entry.key, entry.size, NOT_AGAIN)
            freed = DeletedFile(entry.key, entry.size, entry, verdict.id, held.aside)
            self._delete(held, freed)
        return freed

    def _keep(self, entry: Entry, problem: Problem) -> KeptFile:
        """Keep a file; first note it if the server's answer contradicts the ledger."""
        if doubted := self._proof.find_doubted(entry, problem):
            self._note([doubted])
        return KeptFile(entry.key, entry.size, problem)

    def _delete(self, held: OpenFile, freed: DeletedFile) -> None:
        if self._deeds is None:
            held.check_unused()
            return
        self._deeds.note(freed)
        try:
            held.delete(lambda: self._proof.confirm(freed.entry))
        except (ItemError, RunError) as error:
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
