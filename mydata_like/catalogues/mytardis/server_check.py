"""The proof that the server has a file: its record, verified again since that was requested."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

from mydata_like.catalogues.mytardis.reverify import (
    NO_REPLICA,
    FileToVerify,
    Reverify,
    judge_copies,
)
from mydata_like.catalogues.mytardis.server_api import ServerAPI
from mydata_like.core.archives import ArchiveFormat, Indexed, archive_path
from mydata_like.core.errors import ArchiveError, ItemError, Problem
from mydata_like.core.model import Datafile, DatafileId, DatasetId, Entry, Recheck
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.engine.local_cleanup import SETTLING, judge_entry

logger = logging.getLogger(__name__)

FRESH: Final = 30.0  # seconds for which a fetched record is valid
FEW: Final = 20  # names that are requested one by one; for more, their dataset is listed
LARGE: Final = 1024**3  # bytes; larger files are verified on the server after they are read
MEMBERS_KEPT: Final = 300_000  # files in archives that are kept in memory

NO_RECORD = Problem(
    "free.no-record",
    "The server no longer has a record of this file, or this account may not see it.",
    "Keep the file. The next run sends it again if it is missing.",
)
DIFFERS = Problem(
    "free.differs",
    "The server's record does not match the local file.",
    "Keep the file, and ask the server's administrator what happened to the record.",
)
NOT_INSIDE = Problem(
    "free.not-inside",
    "The archive on the server that should contain this file does not.",
    "Keep the file, and notify the server's administrator.",
)
DAMAGED = Problem(
    "free.damaged-archive",
    "The archive on the server that should contain this file is damaged or of another program.",
    "Keep the file, and notify the server's administrator.",
)

_Member = tuple[bytes, int, int, str]  # name, size, modified time, checksum


class Records(NamedTuple):
    """The server's records at one moment, by id, and by dataset and name."""

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
        """Return the records that may be those of a local file, or of its archive."""
        if entry.datafile is not None:
            record = self.by_id.get(entry.datafile)
            found = [record] if record and record.dataset == entry.dataset else []
        else:
            found = list(self.by_name.get((entry.dataset, _name_of(entry)), ()))
        return [record for record in found if _path_of(record) in set(_list_places(entry))]


class ServerCheck:
    """The check on the server, and in the local files, of what may be deleted now.

    `settle` is for how many seconds a file must be unchanged. Without `reverify` the server is not
    requested to verify its replicas again: that is enough for a preview, but not to delete.
    """

    def __init__(
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
        self._ids: tuple[DatasetId, Mapping[str, DatafileId]] = DatasetId(-1), {}
        self._archives: dict[str, frozenset[_Member] | ItemError] = {}  # by the archive's checksum

    def fetch(self, entries: Sequence[Entry], *, large: bool = False) -> Records:
        """Return the current records for these rows of the ledger.

        The server has verified them again, unless it took longer than allowed. Records of large
        files are verified again only with `large`, to be used after such a file was read.
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
        """Return the current records.

        The account is checked first: one without permissions gets an empty answer, not an error.
        """
        at = self.clock.monotonic()
        self._server.fetch_account()
        found: list[Datafile] = []
        ids = {entry.datafile for entry in entries if entry.datafile is not None}
        for dataset, without_id in _group_without_id(entries).items():
            if len(without_id) > FEW:
                ids |= self._find_ids(dataset, without_id)
                continue
            for name in {_name_of(entry) for entry in without_id}:
                found += self._server.find_datafiles(dataset, name)
        found += self._server.fetch_datafiles(sorted(ids)) if ids else []
        return Records.of(found, at)

    def judge(self, entry: Entry, records: Records) -> Datafile | Problem:
        """Return the record that proves a file to be safe, or why there is none.

        A record may still have to be verified again: see `was_verified_again`. Raises `ItemError`
        if an archive cannot be read now.
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
        """Return whether the records are too old to delete anything because of them."""
        return self.clock.monotonic() - records.at > FRESH

    def was_verified_again(self, proof: Datafile) -> bool:
        """Return whether the server has verified a record again, recently enough to count."""
        return self._reverify is None or self._reverify.was_asked(proof.id)

    def confirm(self, entry: Entry) -> None:
        """Do nothing: the server has just verified its copy again."""

    def find_doubted(self, entry: Entry, problem: Problem) -> Recheck | None:
        """Return what must be checked again, if a problem contradicts the ledger."""
        if problem in (NOT_INSIDE, DAMAGED):
            return Recheck(entry.dataset, entry.key)
        if problem in (NO_RECORD, DIFFERS, NO_REPLICA):
            return Recheck(entry.dataset, b"" if entry.archive else entry.key, entry.archive)
        return None

    def _find_ids(self, dataset: DatasetId, entries: Sequence[Entry]) -> set[DatafileId]:
        """Return the ids of the records that may be those of these files."""
        if self._ids[0] != dataset:
            listed = self._server.list_datafiles(dataset)
            self._ids = dataset, {_path_of(record): record.id for record in listed}
        numbers = self._ids[1]
        paths = (path for entry in entries for path in _list_places(entry))
        return {numbers[path] for path in paths if path in numbers}

    def _prove(self, entry: Entry, record: Datafile) -> Datafile | Problem:
        problem = self._judge_record(entry, record) or self._judge_answer(entry, record)
        if problem is not None:
            return problem
        return record if not entry.archive or self._contains(record, entry) else NOT_INSIDE

    def _judge_record(self, entry: Entry, record: Datafile) -> Problem | None:
        """Return why a record proves nothing, whatever a new verification would find."""
        same_bytes = (record.size, record.checksum) == (entry.size, entry.checksum)
        if not entry.archive and not same_bytes:
            return DIFFERS
        return judge_copies(record, entry.remote, self._box)

    def _judge_answer(self, entry: Entry, record: Datafile) -> Problem | None:
        """Return why the result of a recent verification proves nothing."""
        if self._reverify is None or not self._reverify.was_asked(record.id):
            return None
        return self._reverify.judge(record, entry.remote)

    def _contains(self, archive: Datafile, entry: Entry) -> bool:
        """Return whether an archive contains a local file's bytes, according to its index."""
        wanted = entry.size, entry.modified_ns, entry.checksum
        index = self._read_archive(archive)
        return any((name, *wanted) in index for name in list_endings(entry.key))

    def _read_archive(self, record: Datafile) -> frozenset[_Member]:
        """Return the members of an archive, by its index on the server; each index is read once.

        Raises `ItemError`, for each of its files, if it cannot be read.
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
        """Remove the oldest indexes from memory, to limit its use."""
        counts = {key: len(it) for key, it in self._archives.items() if isinstance(it, frozenset)}
        total = sum(counts.values())
        for checksum in list(counts)[:-1]:
            if total <= MEMBERS_KEPT:
                return
            total -= counts[checksum]
            del self._archives[checksum]


def _path_of(record: Datafile) -> str:
    return archive_path(record.directory or "", record.name)


def _list_places(entry: Entry) -> Iterator[str]:
    """Yield the places in its dataset where a local file's record, or its archive's, may be.

    The ledger does not store which folders of the path are the dataset's own.
    """
    if entry.archive:
        yield entry.archive
        return
    for ending in list_endings(entry.key):
        yield ending.decode(errors="replace")


def _name_of(entry: Entry) -> str:
    """Return the name of the datafile that contains a local file's bytes."""
    path = entry.archive or entry.key.decode(errors="replace")
    return path.rpartition("/")[2]


def _group_without_id(entries: Iterable[Entry]) -> dict[DatasetId, list[Entry]]:
    """Return by dataset the entries without the id of a datafile."""
    groups: dict[DatasetId, list[Entry]] = {}
    for entry in entries:
        if entry.datafile is None:
            groups.setdefault(entry.dataset, []).append(entry)
    return groups


def _describe(member: Indexed) -> _Member:
    # The first folder is the dataset's own.
    return member.name.partition(b"/")[2], member.size, member.modified_ns, member.checksum


def list_endings(path: bytes) -> Iterator[bytes]:
    """Yield a path, then the path without its first folder, and so on."""
    while path:
        yield path
        path = path.partition(b"/")[2]
