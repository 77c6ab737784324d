"""Frees space: deletes local files of which the server proves, now, that it has every byte.

What the ledger says is where the questions begin, never the answer. A local file goes only when
its record was fetched a moment ago and has its size, its checksum and a replica that the server
has verified again since it was asked to, and when its own bytes, read again from the first to the
last, have that checksum as well.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Self

from mydata_like.core.archives import ArchiveFormat, Indexed, archive_path
from mydata_like.core.deletion import (
    CleanupCandidate,
    DeletedFile,
    DeletionLog,
    FileSystem,
    KeptFile,
    OpenFile,
)
from mydata_like.core.errors import ArchiveError, Cancelled, ItemError, Problem, RunError
from mydata_like.core.model import Datafile, DatafileId, DatasetId, Entry, EntryState
from mydata_like.core.ports import CancelSignal, Clock, Ledger, ServerAPI
from mydata_like.engine.reverify import NOT_AGAIN, FileToVerify, Reverify, judge_copies

logger = logging.getLogger(__name__)

FRESH: Final = 30.0  # seconds for which a fetched record counts
FEW: Final = 20  # names that are asked for one by one; for more their dataset is listed
LARGE: Final = 1024**3  # bytes of a local file about which the server is asked once it was read
MEMBERS_KEPT: Final = 300_000  # files in archives that we know of at once

UNVERIFIED = Problem(
    "free.unverified",
    "The server has not verified this file yet.",
    "Try again when a run has ended well.",
)
SETTLING = Problem(
    "free.settling",
    "The file changed a short while ago and may still be written.",
    "Try again later; filters.settle_seconds says how long it must be still.",
)
NO_RECORD = Problem(
    "free.no-record",
    "The server no longer has a record of this file, or does not show it to this account.",
    "Keep the file: the next run sends it again where it is missing.",
)
DIFFERS = Problem(
    "free.differs",
    "The server's record is of other bytes than the local file.",
    "Keep the file, and ask the server's administrator what became of the record.",
)
NOT_INSIDE = Problem(
    "free.not-inside",
    "The archive on the server that should hold this file does not have it.",
    "Keep the file, and tell the server's administrator.",
)
DAMAGED = Problem(
    "free.damaged-archive",
    "The archive on the server that should hold this file is damaged, or none of ours.",
    "Keep the file, and tell the server's administrator.",
)


_Member = tuple[bytes, int, int, str]  # name, size, modified time, checksum


class Records(NamedTuple):
    """What the server said, and when; by number, and by dataset and name."""

    by_id: Mapping[DatafileId, Datafile]
    by_name: Mapping[tuple[DatasetId, str], Sequence[Datafile]]
    at: float

    @classmethod
    def of(cls, found: Iterable[Datafile], at: float) -> Self:
        by_id = {record.id: record for record in found}
        by_name: dict[tuple[DatasetId, str], list[Datafile]] = {}
        for record in by_id.values():
            by_name.setdefault((record.dataset, record.name), []).append(record)
        return cls(by_id, by_name, at)

    def find(self, entry: Entry) -> Sequence[Datafile]:
        """Return the records that may be the one of a local file, or of its archive."""
        if entry.datafile is not None:
            record = self.by_id.get(entry.datafile)
            found = [record] if record and record.dataset == entry.dataset else []
        else:
            found = list(self.by_name.get((entry.dataset, _name_of(entry)), ()))
        return [record for record in found if _path_of(record) in set(_list_places(entry))]


class ServerCheck:
    """Asks the server, and reads the local files: what may be deleted now, and what may not.

    `settle` is for how many seconds a file must not have changed. Without `reverify` the server
    is not asked to verify its copies again: that is enough to look, and not to delete.
    """

    def __init__(  # noqa: PLR0913 - four of them are the outside world
        self,
        server: ServerAPI,
        form: ArchiveFormat,
        clock: Clock,
        cancel: CancelSignal,
        settle: float,
        *,
        box: str = "",
        reverify: Reverify | None = None,
    ) -> None:
        self.clock = clock
        self.cancel = cancel
        self._server = server
        self._form = form
        self._settle = settle
        self._box = box
        self._reverify = reverify
        self._numbers: tuple[DatasetId, Mapping[str, DatafileId]] = DatasetId(-1), {}
        self._archives: dict[str, frozenset[_Member] | ItemError] = {}  # by the archive's checksum

    def fetch(self, entries: Sequence[Entry], *, large: bool = False) -> Records:
        """Return the records that these rows of the ledger speak of, as they are now.

        The server has verified them again, as far as it did within our patience; those of files
        that take long to be read only with `large`, which is for when they were.
        """
        records = self._fetch(entries)
        if self._reverify is None:
            return records
        asked = self._reverify(
            FileToVerify(record, entry.remote)
            for entry in entries
            if large or entry.size < LARGE
            for record in records.find(entry)
            if self._judge_record(entry, record) is None
        )
        return self._fetch(entries) if asked else records

    def _fetch(self, entries: Sequence[Entry]) -> Records:
        """Return the records as they are now.

        Who we are is proven first: an account that has lost its rights is shown nothing.
        """
        at = self.clock.monotonic()
        self._server.fetch_account()
        found: list[Datafile] = []
        ids = {entry.datafile for entry in entries if entry.datafile is not None}
        for dataset, unnumbered in _group_unnumbered(entries).items():
            if len(unnumbered) > FEW:
                ids |= self._find_numbers(dataset, unnumbered)
                continue
            for name in {_name_of(entry) for entry in unnumbered}:
                found += self._server.find_datafiles(dataset, name)
        found += self._server.fetch_datafiles(sorted(ids)) if ids else []
        return Records.of(found, at)

    def judge(self, entry: Entry, records: Records) -> Datafile | Problem:
        """Return the record that proves a file to be safe, or why there is none.

        Where the server was not asked yet to verify it again, that is still to come: see
        `was_verified_again`. Raises `ItemError` where an archive cannot be read now.
        """
        known = judge_entry(entry)
        if known is not None:
            return known
        if entry.modified_ns > (self.clock.now().timestamp() - self._settle) * 1e9:
            return SETTLING
        verdicts = [self._prove(entry, record) for record in records.find(entry)]
        proofs = [verdict for verdict in verdicts if isinstance(verdict, Datafile)]
        return (proofs or verdicts or [NO_RECORD])[0]

    def is_stale(self, records: Records) -> bool:
        """Return whether what the server said is too old to delete anything because of it."""
        return self.clock.monotonic() - records.at > FRESH

    def was_verified_again(self, proof: Datafile) -> bool:
        """Return whether the server has verified a record again, so lately that it counts."""
        return self._reverify is None or self._reverify.was_asked(proof.id)

    def _find_numbers(self, dataset: DatasetId, entries: Sequence[Entry]) -> set[DatafileId]:
        """Return the numbers of the records that may be those of so many files."""
        if self._numbers[0] != dataset:
            listed = self._server.list_datafiles(dataset)
            self._numbers = dataset, {_path_of(record): record.id for record in listed}
        numbers = self._numbers[1]
        paths = (path for entry in entries for path in _list_places(entry))
        return {numbers[path] for path in paths if path in numbers}

    def _prove(self, entry: Entry, record: Datafile) -> Datafile | Problem:
        problem = self._judge_record(entry, record) or self._judge_answer(entry, record)
        if problem is not None:
            return problem
        return record if not entry.archive or self._holds(record, entry) else NOT_INSIDE

    def _judge_record(self, entry: Entry, record: Datafile) -> Problem | None:
        """Return why a record proves nothing, whatever the server would find now."""
        same_bytes = (record.size, record.checksum) == (entry.size, entry.checksum)
        if not entry.archive and not same_bytes:
            return DIFFERS
        return judge_copies(record, entry.remote, self._box)

    def _judge_answer(self, entry: Entry, record: Datafile) -> Problem | None:
        """Return why the answer proves nothing, where the server was asked lately."""
        if self._reverify is None or not self._reverify.was_asked(record.id):
            return None
        return self._reverify.judge(record, entry.remote)

    def _holds(self, archive: Datafile, entry: Entry) -> bool:
        """Return whether an archive has a local file's bytes: its record alone does not say."""
        wanted = entry.size, entry.modified_ns, entry.checksum
        index = self._read_archive(archive)
        return any((name, *wanted) in index for name in _list_endings(entry.key))

    def _read_archive(self, record: Datafile) -> frozenset[_Member]:
        """Return what an archive holds, by its index as the server has it; it is read once.

        Raises `ItemError`, for each of its files, where it cannot be read.
        """
        known = self._archives.get(record.checksum)
        if known is None:
            known = self._archives[record.checksum] = self._fetch_archive(record)
            self._forget_archives()
        if isinstance(known, ItemError):
            raise known
        return known

    def _fetch_archive(self, record: Datafile) -> frozenset[_Member] | ItemError:
        try:
            index = self._server.read_datafile(record, self._form.read_index)
        except ArchiveError as error:
            logger.info("The archive %s (datafile %d): %s", record.name, record.id, error)
            return ArchiveError(DAMAGED.message, hint=DAMAGED.hint, code=DAMAGED.code)
        except ItemError as error:
            logger.info("The archive %s (datafile %d): %s", record.name, record.id, error)
            return error
        return frozenset(map(_describe, index))

    def _forget_archives(self) -> None:
        """Forget those that were read first, so that the memory does for many."""
        counts = {key: len(it) for key, it in self._archives.items() if isinstance(it, frozenset)}
        total = sum(counts.values())
        for checksum in list(counts)[:-1]:
            if total <= MEMBERS_KEPT:
                return
            total -= counts[checksum]
            del self._archives[checksum]


def judge_entry(entry: Entry) -> Problem | None:
    """Return why the ledger alone is reason enough to keep a file."""
    if entry.state is EntryState.CHANGED:
        return DIFFERS
    return None if entry.state is EntryState.VERIFIED and entry.checksum else UNVERIFIED


def _path_of(record: Datafile) -> str:
    return archive_path(record.directory or "", record.name)


def _list_places(entry: Entry) -> Iterator[str]:
    """Yield where in its dataset a local file's record may be, or that of its archive.

    Which folders of the path are the dataset's own the ledger does not tell.
    """
    if entry.archive:
        yield entry.archive
        return
    for ending in _list_endings(entry.key):
        yield ending.decode(errors="replace")


def _name_of(entry: Entry) -> str:
    """Return how the datafile is called that holds a local file's bytes."""
    path = entry.archive or entry.key.decode(errors="replace")
    return path.rpartition("/")[2]


def _group_unnumbered(entries: Iterable[Entry]) -> dict[DatasetId, list[Entry]]:
    """Return by dataset the entries whose datafile's number the ledger does not know."""
    groups: dict[DatasetId, list[Entry]] = {}
    for entry in entries:
        if entry.datafile is None:
            groups.setdefault(entry.dataset, []).append(entry)
    return groups


def _describe(member: Indexed) -> _Member:
    # Its first folder is the dataset's own.
    return member.name.partition(b"/")[2], member.size, member.modified_ns, member.checksum


def _list_endings(path: bytes) -> Iterator[bytes]:
    """Yield a path, and what is left of it as one folder after the other is taken away."""
    while path:
        yield path
        path = path.partition(b"/")[2]


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


class LocalCleanup:
    """Goes through local files and tells of each what became of it.

    Without `deeds` nothing is deleted: `DeletedFile` is then what would have been.
    """

    def __init__(
        self, proof: ServerCheck, ledger: Ledger, disk: FileSystem, deeds: DeletionLog | None
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
