"""What is known of a dataset's archives: the ledger's rows beside the server's records.

Archives that the ledger does not know (it was lost, or a run was killed while the server made
the record) are read from the server, whose index tells which local files they hold.
"""

import logging
from collections.abc import Container, Mapping
from enum import Enum
from itertools import islice
from typing import NamedTuple

from mydata_like.core.archives import (
    ArchiveFormat,
    ArchiveRecord,
    Indexed,
    archive_path,
    is_archive_name,
)
from mydata_like.core.errors import ArchiveError, Problem, RejectedError
from mydata_like.core.events import Notice
from mydata_like.core.model import LOST, Datafile, Dataset, Entry, EntryState, LocalFile
from mydata_like.core.ports import Emit, Ledger, ServerAPI
from mydata_like.engine.retry import Gate

logger = logging.getLogger(__name__)

AT_ONCE = 1000  # rows between two writings

Records = Mapping[tuple[str, str], Datafile]


class Verdict(Enum):
    """How far an archive has come: `STAGED` are its bytes, of which the server has to be told."""

    STAGED = "staged"
    REGISTERED = "registered"
    VERIFIED = "verified"
    GONE = "gone"


def judge_archive(archive: ArchiveRecord, record: Datafile | None) -> Verdict:
    """Return how far an archive of the ledger has come, by the server's record of its name."""
    if archive.state is EntryState.FAILED:
        return Verdict.GONE
    if record is None or not record.replicas:
        return Verdict.STAGED if archive.state is EntryState.STAGED else Verdict.GONE
    repaired = archive.state is EntryState.REPAIRED
    if (record.size, record.checksum) != (archive.size, archive.checksum):
        return Verdict.STAGED if repaired else Verdict.GONE
    verified = record.is_verified_at(archive.remote) and not repaired
    return Verdict.VERIFIED if verified else Verdict.REGISTERED


class Holdings(NamedTuple):
    """The archives of a dataset, as a listing of it tells.

    With `unread` there are some that cannot be read before the server has verified them.
    """

    archives: Mapping[str, ArchiveRecord]
    unread: bool = False


class Recall:
    """Brings the ledger's knowledge of archives up to what the server has."""

    def __init__(
        self, server: ServerAPI, ledger: Ledger, gate: Gate, emit: Emit, form: ArchiveFormat
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._gate = gate
        self._emit = emit
        self._form = form

    def __call__(
        self, dataset: Dataset, folder: bytes, records: Records, before: Container[str]
    ) -> Holdings:
        """Return what the archives hold, given all records of their dataset.

        `folder` is the dataset folder's path, `before` are the archives that were known before
        the records were fetched: of others, which are on their way, these tell nothing. Raises
        `TransientError` where the server has an archive that could not be read just now: what it
        holds must not be sent again.
        """
        known: dict[str, ArchiveRecord] = {}
        for row in self._ledger.find_archives(dataset.id).values():
            record = records.get(row.place)
            if row.path not in before:
                known[row.path] = row
            elif self._is_gone(row, record):
                self._forget(row)
            else:
                known[row.path] = self._catch_up(row, record)
        unread = False
        for record in _unknown(records, known):
            if record.replicas and not record.verified and record.replicas[0].verified_at is None:
                unread = True
                continue
            archive = self._recall(record, folder)
            known[archive.path] = archive
        return Holdings(known, unread)

    def _is_gone(self, archive: ArchiveRecord, record: Datafile | None) -> bool:
        """Return whether the server has lost an archive; one that cannot be read stays one."""
        if archive.state is EntryState.FAILED:
            return record is None
        return judge_archive(archive, record) is Verdict.GONE

    def _forget(self, archive: ArchiveRecord) -> None:
        if archive.state is EntryState.VERIFIED:
            self._emit(Notice(problem=_lost(archive)))
        self._ledger.forget_archive(archive)

    def _catch_up(self, archive: ArchiveRecord, record: Datafile | None) -> ArchiveRecord:
        """Note that an archive was verified, or is so no more, while we did not look."""
        verdict, now = judge_archive(archive, record), archive
        if record and verdict is Verdict.VERIFIED:
            now = archive._replace(state=EntryState.VERIFIED, datafile=record.id)
        elif verdict is Verdict.REGISTERED and archive.state is EntryState.VERIFIED:
            now = archive._replace(state=EntryState.REGISTERED)
            self._emit(Notice(problem=_lost(archive)))
        if now != archive:
            self._ledger.record_archive(now)
        return now

    def _recall(self, record: Datafile, folder: bytes) -> ArchiveRecord:
        """Read an archive's index, and let the ledger know what it says that it holds.

        That counts for a local file once it was compared with what the index says of it.
        """
        index = self._read(record) if record.verified else None
        state = EntryState.FAILED if index is None else EntryState.VERIFIED
        archive = ArchiveRecord(
            record.dataset,
            archive_path(record.directory or "", record.name),
            record.size,
            max((member.modified_ns for member in index or ()), default=0),
            state,
            record.checksum,
            record.replicas[0].uri if record.replicas else "",
            record.id,
        )
        members = (member for member in index or () if member.checksum)
        while part := [_entry(archive, folder, each) for each in islice(members, AT_ONCE)]:
            known = self._ledger.find_entries([entry.key for entry in part])
            self._ledger.record([entry for entry in part if not _is_known(known.get(entry.key))])
        self._ledger.record_archive(archive)  # last: until then it is read again
        return archive

    def _read(self, record: Datafile) -> list[Indexed] | None:
        """Return an archive's index, or None for what is no archive or not given to us."""
        logger.info("Reading the archive %s (datafile %d)", record.name, record.id)
        try:
            return self._gate.call(
                lambda: self._server.read_datafile(record, self._form.read_index)
            )
        except ArchiveError as error:
            self._report(f"The archive {record.name} on the server is left out: {error.message}")
        except RejectedError as error:
            self._report(
                f"The server does not let us read the archive {record.name}: {error.message}"
            )
        return None

    def _report(self, message: str) -> None:
        hint = "What it holds is sent again, since nobody can tell what that is."
        self._emit(Notice(problem=Problem("archive.unreadable", message, hint)))


def _unknown(records: Records, known: Mapping[str, ArchiveRecord]) -> list[Datafile]:
    """Return records that may be archives, oldest first: later ones hold later states of files."""
    possible = [
        records[directory, name]
        for directory, name in records
        if is_archive_name(name) and archive_path(directory, name) not in known
    ]
    return sorted((it for it in possible if not it.unfinished), key=lambda record: record.id)


def _entry(archive: ArchiveRecord, folder: bytes, member: Indexed) -> Entry:
    """Return the row of a file that an archive may hold; the first folder is the dataset's own."""
    key = folder + b"/" + member.name.partition(b"/")[2]
    file = LocalFile(b"", key, b"", b"", member.size, member.modified_ns, 0, 0)
    return archive.entry(file, member.checksum)._replace(state=EntryState.REGISTERED)


def _is_known(entry: Entry | None) -> bool:
    """Return whether a row says more than an index could: it was compared with a local file."""
    return entry is not None and entry.ctime_ns != 0 and entry.state is EntryState.VERIFIED


def _lost(archive: ArchiveRecord) -> Problem:
    return Problem(
        LOST,
        f"The server no longer has the archive {archive.path} as it had verified it: its record "
        "or its copy is gone, or differs.",
        "What it held and is still on this computer is sent or verified again now. Tell the "
        "server's administrator: other copies may be lost, too.",
    )
