"""Asks ledger and server what is already there: yes, no or some of a group of files."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter

from mydata_like.core.archives import member_name
from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesKnown,
    FileWaiting,
    FileWanted,
    FolderFailed,
    FolderSkipped,
)
from mydata_like.core.model import (
    ArchiveMember,
    CheckedGroup,
    Datafile,
    DatasetId,
    Entry,
    EntryState,
    FileGroup,
    LocalFile,
    Registered,
    Replica,
    Staged,
    Wanted,
)
from mydata_like.core.ports import Emit
from mydata_like.core.staging import staged_path
from mydata_like.engine.archives import Verdict, judge_archive
from mydata_like.engine.datasets import Datasets, OwnerUnknownError
from mydata_like.engine.knowledge import DatasetView, Knowledge
from mydata_like.engine.once import KeyedOnce

Open = Wanted | Staged | Registered
SIZE = attrgetter("size")
ELSEWHERE = Problem(
    "server.elsewhere",
    "The local file differs from the server's, whose copy has left the staging area.",
    "Ask the facility's administrator to replace the datafile, or rename the local file.",
)
ARCHIVES_NAME = Problem(
    "archive.name",
    "The local file has the name of an archive on the server, which holds other files.",
    "Rename the local file.",
)
UNREAD = Problem(
    "waiting.archive",
    "An archive on the server may hold the file; it can be read once the server has verified it.",
    "The next run looks again; if this stays, tell the server's administrator.",
)


class Check:
    """The stage that compares local files with the ledger and one listing per dataset.

    It yields, group by group, what is not verified yet: files to send, files whose bytes
    are in the staging area already, and datafiles that only wait for verification. What
    concerns a file in an archive comes as that archive with this one member.
    """

    def __init__(self, knowledge: Knowledge, datasets: Datasets, emit: Emit, *, box: str) -> None:
        self._knowledge = knowledge
        self._ledger = knowledge.ledger
        self._datasets = datasets
        self._emit = emit
        self._box = box
        self._views: KeyedOnce[bytes, DatasetView] = KeyedOnce()
        # What the server says of these may be of earlier bytes, until it has looked again.
        self._replaced = {it.datafile for it in self._ledger.find_replacements()}
        self._claims: KeyedOnce[DatasetId, bytes] = KeyedOnce()

    def __call__(self, groups: Iterable[FileGroup]) -> Iterator[CheckedGroup]:
        for group in groups:
            path = group.folder.path
            found: list[Open] = []
            try:
                view = self._views(path, lambda group=group: self._open_view(group))  # type: ignore[misc]
                found = self._compare(view, group)
            except OwnerUnknownError as error:
                self._leave_out(group, error.problem)
            except ItemError as error:
                self._fail(group, error.problem)
            yield CheckedGroup(group, found)
            if group.last:
                self._views.forget(path)

    def _open_view(self, group: FileGroup) -> DatasetView:
        try:
            return self._make_view(group)
        except OwnerUnknownError as error:
            self._emit(FolderSkipped(path=group.folder.path, problem=error.problem))
            raise
        except ItemError as error:
            self._emit(FolderFailed(path=group.folder.path, problem=error.problem))
            raise

    def _make_view(self, group: FileGroup) -> DatasetView:
        folder = group.folder.path
        dataset = self._knowledge.gate.call(lambda: self._datasets.find_dataset(group.folder))
        if dataset.id and self._claims(dataset.id, lambda: folder) != folder:
            raise ItemError(
                f"Another folder of this run becomes the dataset {dataset.name} too.",
                hint="Rename one of the two folders, so that their files do not mix.",
                code="folder.same-dataset",
            )
        return self._knowledge.look_up(dataset, folder)

    def _leave_out(self, group: FileGroup, problem: Problem) -> None:
        for file in group.files:
            self._emit(FileSkipped(path=file.key, size=file.size, problem=problem))

    def _fail(self, group: FileGroup, problem: Problem) -> None:
        for file in group.files:
            self._emit(FileFailed.of(file, problem))

    def _compare(self, view: DatasetView, group: FileGroup) -> list[Open]:
        files = self._leave_out_known(view, group.files)
        entries = self._ledger.find_entries([file.key for file in files])
        open_files: list[Open] = []
        others: list[LocalFile] = []  # all that are not verified
        learnt: list[Entry] = []
        hopeless: list[FileFailed | FileWaiting] = []
        for file in files:
            entry = entries.get(file.key)
            found = self._judge(view, file, entry)
            match found:
                case Entry():
                    learnt += [found] if found != entry else []
                    continue
                case Problem():
                    kind = FileWaiting if found is UNREAD else FileFailed
                    hopeless.append(kind(path=file.key, size=file.size, problem=found))
                case _:
                    open_files.append(found)
            if entry and _is_earlier(view, entry, file):
                learnt.append(entry._replace(state=EntryState.CHANGED))
            others.append(file)
        self._tell_known(group, others)
        for event in hopeless:
            self._emit(event)
        self._tell(open_files)
        if learnt:
            self._ledger.record(learnt)
        return open_files

    def _tell_known(self, group: FileGroup, others: Sequence[LocalFile]) -> None:
        if len(group.files) > len(others):
            size = sum(map(SIZE, group.files)) - sum(map(SIZE, others))
            files = len(group.files) - len(others)
            self._emit(FilesKnown(folder=group.folder.path, files=files, bytes=size))

    def _leave_out_known(
        self, view: DatasetView, files: Sequence[LocalFile]
    ) -> Sequence[LocalFile]:
        """Return the files that have to be looked at one by one, most often none."""
        if not view.agrees:
            return files
        keys = self._ledger.find_open(view.dataset.id, files)
        return [file for file in files if file.key in keys or file.name.endswith(b".tar")]

    def _tell(self, open_files: list[Open]) -> None:
        for item in open_files:
            if isinstance(item, Wanted):
                changed = bool(item.datafile and item.datafile.replicas)
                file = item.file
                self._emit(FileWanted(path=file.key, size=file.size, changed=changed))

    def _judge(
        self, view: DatasetView, file: LocalFile, entry: Entry | None
    ) -> Open | Entry | Problem:
        """Return an entry for a verified file, a problem for a hopeless one, else what to do."""
        if view.is_archive(file):
            return ARCHIVES_NAME
        known = entry if entry and entry.dataset == view.dataset.id else None
        if view.agrees and known is None:
            return self._want(view, file, None)
        if view.agrees and known and known.state is EntryState.VERIFIED and _is_of(known, file):
            return known
        known = view.find_inside(file) or known
        if known and known.archive:
            # Of bytes that are not those of a record of its own, which may be there as well.
            inside = self._judge_inside(view, file, known) if _is_of(known, file) else None
            return inside or self._compare_record(view, file, None)
        return self._compare_record(view, file, known)

    def _judge_inside(
        self, view: DatasetView, file: LocalFile, entry: Entry
    ) -> Staged | Registered | Entry | None:
        """Decide by the archive that holds the file; None where that is gone.

        An archive is not sent again as it was: what a lost one held goes into another.
        """
        archive, record = view.find_archive(entry.archive)
        if archive is None:
            return None
        member = ArchiveMember(file, member_name(view.folder, file), entry.checksum)
        stand_in = archive.as_file(view.folder)
        wanted = Wanted(stand_in, view.dataset, archive.remote, record, members=(member,))
        verdict = judge_archive(archive, record)
        if verdict is Verdict.STAGED:
            return Staged(wanted, archive.checksum)
        if verdict is Verdict.GONE or record is None:
            return None
        if verdict is Verdict.VERIFIED:
            return entry._replace(state=EntryState.VERIFIED, datafile=record.id)
        return Registered(wanted, archive.checksum, record.id, record.looks)

    def _compare_record(
        self, view: DatasetView, file: LocalFile, entry: Entry | None
    ) -> Open | Entry | Problem:
        """Decide by the server's record; `entry` is what the ledger knows of this file."""
        record = view.find(file)
        wanted = self._want(view, file, record)
        state = entry.state if entry and _is_of(entry, file) else None
        if record is None and entry and state is EntryState.STAGED:
            return Staged(wanted._replace(remote=entry.remote), entry.checksum)
        if record is None or not record.replicas:
            return UNREAD if record is None and view.unread else wanted
        ours = self._find_ours(record)
        if not _matches(record, file, entry):
            return wanted if ours else ELSEWHERE
        unproven = state is EntryState.REPAIRED or record.id in self._replaced
        if (ours or record).verified and not unproven:
            return Entry.of(wanted, EntryState.VERIFIED, record.checksum, record.id)
        return Registered(wanted, record.checksum, record.id, record.looks)

    def _want(self, view: DatasetView, file: LocalFile, record: Datafile | None) -> Wanted:
        if record and record.replicas:
            stored = self._find_ours(record) or record.replicas[0]
            return Wanted(file, view.dataset, stored.uri, record)
        directory, name = file.directory.decode(), file.name.decode()
        remote = staged_path(view.dataset.name, view.dataset.id, directory, name)
        return Wanted(file, view.dataset, remote, record)

    def _find_ours(self, record: Datafile) -> Replica | None:
        """Return the replica that we can write to, wherever the record lists it."""
        return next((it for it in record.replicas if it.location == self._box), None)


def _is_earlier(view: DatasetView, entry: Entry, file: LocalFile) -> bool:
    """Return whether the ledger calls an earlier state of the file verified."""
    verified = entry.state is EntryState.VERIFIED and entry.dataset == view.dataset.id
    return verified and not _is_of(entry, file)


def _is_of(entry: Entry, file: LocalFile) -> bool:
    """Return whether the ledger speaks of the file as it is now."""
    return (entry.size, entry.modified_ns) == (file.size, file.modified_ns)


def _matches(record: Datafile, file: LocalFile, entry: Entry | None) -> bool:
    """Return whether the record describes the bytes that the local file has."""
    if record.size != file.size:
        return False
    if entry and entry.checksum and _is_of(entry, file):
        return record.checksum == entry.checksum
    if entry and entry.checksum == record.checksum:
        return False  # of an earlier state of this file, whatever the times seem to say
    return times_agree(record.modified, file.modified_ns)


def times_agree(text: str, modified_ns: int) -> bool:
    """Return whether a server's time without a zone may be this local file's time.

    The server answers in its own zone, which it does not tell. Zones differ from UTC by
    whole quarters of an hour, so times agree when what is left of that is next to nothing.
    Servers that keep no fractions of a second are met halfway.
    """
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        return False
    if told.tzinfo is None:
        told = told.replace(tzinfo=UTC)
    local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=modified_ns // 1000)
    difference = abs((told - local).total_seconds())
    tolerance = 0.01 if told.microsecond else 1.0
    rest = difference % 900
    return difference <= 15 * 3600 and min(rest, 900 - rest) <= tolerance
