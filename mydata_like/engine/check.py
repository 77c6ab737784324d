"""Asks ledger and server what is already there: yes, no or some of a group of files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from mydata_like.core.archives import member_name
from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesKnown,
    FileVerified,
    FileWaiting,
    FileWanted,
    FolderFailed,
    FolderSkipped,
)
from mydata_like.core.model import (
    ArchiveMember,
    CheckedGroup,
    Comparison,
    Datafile,
    DatasetId,
    Entry,
    EntryState,
    FileGroup,
    FileToSend,
    LocalFile,
    Match,
    Registered,
    Staged,
)
from mydata_like.core.ports import Emit
from mydata_like.core.staging_path import staged_path
from mydata_like.engine.dataset_index import (
    ArchiveState,
    DatasetIndex,
    DatasetView,
    find_replica,
    judge_archive,
)
from mydata_like.engine.datasets import Datasets, OwnerUnknownError, SingleFlight

Open = FileToSend | Staged | Registered
Judged = Open | Comparison | Entry | Problem
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
    """The stage that looks files up in the ledger, and in a listing where that is not proven.

    It yields, group by group, what is not verified yet: files to send, files whose bytes
    are in the staging area already, and datafiles that only wait for verification. What
    concerns a file in an archive comes as that archive with this one member. What nobody has
    read as it is now, and the server may have, comes apart.
    """

    def __init__(
        self, knowledge: DatasetIndex, datasets: Datasets, emit: Emit, *, box: str
    ) -> None:
        self._knowledge = knowledge
        self._ledger = knowledge.ledger
        self._datasets = datasets
        self._emit = emit
        self._box = box
        self._views: SingleFlight[bytes, DatasetView] = SingleFlight()
        # What the server says of these may be of earlier bytes, until it has looked again.
        self._replaced = {it.datafile for it in self._ledger.find_replacements()}
        self._claims: SingleFlight[DatasetId, bytes] = SingleFlight()

    def __call__(self, groups: Iterable[FileGroup]) -> Iterator[CheckedGroup]:
        for group in groups:
            path = group.folder.path
            checked = CheckedGroup(group, [])
            try:
                view = self._views(path, lambda group=group: self._open_view(group))  # type: ignore[misc]
                checked = self._compare(view, group)
            except OwnerUnknownError as error:
                self._leave_out(group, error.problem)
            except ItemError as error:
                self._fail(group, error.problem)
            yield checked
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

    def _compare(self, view: DatasetView, group: FileGroup) -> CheckedGroup:
        files = self._leave_out_known(view, group)
        entries = self._ledger.find_entries([file.key for file in files])
        judged = [(file, self._judge(view, file, entries.get(file.key))) for file in files]
        self._tell_known(group, files)
        checked = CheckedGroup(group, [], unread := [])
        verified: list[tuple[LocalFile, Entry]] = []
        for file, found in judged:
            match found:
                case Entry():
                    verified.append((file, found))
                case Problem():
                    kind = FileWaiting if found is UNREAD else FileFailed
                    self._emit(kind(path=file.key, size=file.size, problem=found))
                case Comparison():
                    unread.append(found)
                case _:
                    checked.open.append(found)
        self._tell(checked.open)
        self._keep([found for file, found in verified if found != entries.get(file.key)])
        self._keep(list(_find_earlier(view, judged, entries)))
        for file, found in verified:
            checksum = found.checksum
            self._emit(FileVerified(path=file.key, size=file.size, checksum=checksum, known=True))
        return checked

    def _keep(self, learnt: Sequence[Entry]) -> None:
        if learnt:
            self._ledger.record(learnt)

    def _tell_known(self, group: FileGroup, others: Sequence[LocalFile]) -> None:
        if len(group.files) > len(others):
            size = sum(map(SIZE, group.files)) - sum(map(SIZE, others))
            files = len(group.files) - len(others)
            self._emit(FilesKnown(folder=group.folder.path, files=files, bytes=size))

    def _leave_out_known(self, view: DatasetView, group: FileGroup) -> Sequence[LocalFile]:
        """Return the files that have to be looked at one by one, most often none."""
        files, agreed = group.files, view.agrees
        view.settle()
        if agreed and group.known == view.dataset.id:
            return [file for file in files if file.name.endswith(b".tar")]
        if group.new:
            return files
        found = self._ledger.find_open(files)
        if not found.datasets <= {view.dataset.id}:
            return files
        return [file for file in files if file.key in found.keys or file.name.endswith(b".tar")]

    def _tell(self, open_files: list[Open]) -> None:
        for item in open_files:
            if isinstance(item, FileToSend):
                changed = bool(item.datafile and item.datafile.replicas)
                file = item.file
                self._emit(FileWanted(path=file.key, size=file.size, changed=changed))

    def _judge(self, view: DatasetView, file: LocalFile, entry: Entry | None) -> Judged:
        """Return an entry for a verified file, a problem for a hopeless one, else what to do."""
        if view.is_archive(file):
            return ARCHIVES_NAME
        known = entry if entry and entry.dataset == view.dataset.id else None
        if known is None and view.knows_all:
            return self._want(view, file, None)
        if known is None or not known.is_of(file):
            return self._compare_record(view, file, known)
        if known.state is EntryState.VERIFIED and known.datafile is not None:
            return known.adopt(file)
        return self._judge_known(view, file, known)

    def _judge_known(self, view: DatasetView, file: LocalFile, entry: Entry) -> Judged:
        """Decide about a file whose checksum the ledger knows, and which is not verified."""
        if not entry.archive:
            return self._judge_record(view, file, entry)
        # Of bytes that are not those of a record of its own, which may be there as well.
        return self._judge_inside(view, file, entry) or self._compare_record(view, file, None)

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
        wanted = FileToSend(stand_in, view.dataset, archive.remote, record, members=(member,))
        verdict = judge_archive(archive, record)
        if verdict is ArchiveState.STAGED:
            return Staged(wanted, archive.checksum)
        if verdict is ArchiveState.GONE or record is None:
            return None
        if verdict is ArchiveState.VERIFIED:
            return entry._replace(state=EntryState.VERIFIED, datafile=record.id)
        return Registered(wanted, archive.checksum, record.id, record.looks)

    def _judge_record(self, view: DatasetView, file: LocalFile, entry: Entry) -> Judged:
        """Decide by the server's record of a file whose checksum the ledger knows."""
        record = view.find(file)
        wanted = self._want(view, file, record)
        if record is None and entry.state is EntryState.STAGED:
            return Staged(wanted._replace(remote=entry.remote), entry.checksum)
        if record is None or not record.replicas:
            return UNREAD if record is None and view.unread else wanted
        if (record.size, record.checksum) != (file.size, entry.checksum):
            return self._differs(wanted)
        return self._describe(wanted, record, entry)

    def _compare_record(self, view: DatasetView, file: LocalFile, entry: Entry | None) -> Judged:
        """Decide by what the server has of a file that was never read as it is now.

        `entry` is what the ledger knows of it as it was, or of a file of its name.
        """
        record = view.find(file)
        wanted = self._want(view, file, record)
        matches = []
        if record and record.replicas and record.size == file.size and not record.unfinished:
            matches.append(Match(record.checksum, self._describe(wanted, record, entry)))
        inside = self._find_inside(view, file, entry) if entry else None
        if inside:
            matches.append(Match(inside.checksum, inside))
        if record is None and not matches and view.unread:
            return UNREAD
        differs = self._differs(wanted)
        return Comparison(file, tuple(matches), differs) if matches else differs

    def _differs(self, wanted: FileToSend) -> FileToSend | Problem:
        """Return a file to be sent, unless its record is out of our reach."""
        record = wanted.datafile
        hopeless = record and record.replicas and not find_replica(record, self._box)
        return ELSEWHERE if hopeless else wanted

    def _describe(
        self, wanted: FileToSend, record: Datafile, entry: Entry | None
    ) -> Entry | Registered:
        """Return how far a file has come that has the record's bytes.

        A record that was verified with other bytes before still says so.
        """
        repaired = entry and (entry.state, entry.checksum) == (EntryState.REPAIRED, record.checksum)
        unproven = repaired or record.id in self._replaced
        if (find_replica(record, self._box) or record).verified and not unproven:
            return Entry.of(wanted, EntryState.VERIFIED, record.checksum, record.id)
        return Registered(wanted, record.checksum, record.id, record.looks)

    def _find_inside(self, view: DatasetView, file: LocalFile, entry: Entry) -> Entry | None:
        """Return the row of a file that is in an archive, if its bytes are what they were.

        One that was written since goes into another archive, whatever its bytes are.
        """
        if (entry.size, entry.modified_ns) != (file.size, file.modified_ns):
            return None
        archive = view.find_verified(entry.archive) if entry.archive else None
        if archive is None:
            return None
        row = entry._replace(state=EntryState.VERIFIED, datafile=archive.datafile)
        return row.adopt(file)

    def _want(self, view: DatasetView, file: LocalFile, record: Datafile | None) -> FileToSend:
        if record and record.replicas:
            stored = find_replica(record, self._box) or record.replicas[0]
            return FileToSend(file, view.dataset, stored.uri, record)
        directory, name = file.directory.decode(), file.name.decode()
        remote = staged_path(view.dataset.name, view.dataset.id, directory, name)
        return FileToSend(file, view.dataset, remote, record)


def _find_earlier(
    view: DatasetView, judged: Sequence[tuple[LocalFile, Judged]], entries: Mapping[bytes, Entry]
) -> Iterator[Entry]:
    """Yield the rows that are of an earlier state of a file; they say so from now on."""
    for file, found in judged:
        entry = entries.get(file.key)
        verified = entry and entry.state is EntryState.VERIFIED
        if not (entry and verified and entry.dataset == view.dataset.id):
            continue
        if isinstance(found, FileToSend | Problem) and not entry.is_of(file):
            yield entry._replace(state=EntryState.CHANGED)
