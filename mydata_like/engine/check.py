"""The stage that checks, for a group of files, what the ledger and the server already have."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, TypeGuard

from mydata_like.core.archives import ArchiveState, judge_archive, member_name
from mydata_like.core.errors import (
    ItemError,
    Problem,
    describe_strange_record,
)
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesKnown,
    FileVerified,
    FileWanted,
    FolderFailed,
    FolderSkipped,
)
from mydata_like.core.local_files import ArchiveMember, LocalFile
from mydata_like.core.model import (
    Batch,
    CheckedGroup,
    Comparison,
    Datafile,
    DatafileId,
    Entry,
    EntryState,
    FileGroup,
    FileRecord,
    Match,
    Recheck,
    VerifiedCopy,
)
from mydata_like.core.ports import Emit, EmitAll, Ledger
from mydata_like.core.scanned_files import is_named_like_archive
from mydata_like.engine.catalogue import Catalogue, FolderExcludedError, FolderView
from mydata_like.engine.changed_files import (
    KEPT_THERE,
    REMOTE,
    UNREAD,
    ChangedFiles,
    describe_unsent,
    has_shrunk,
)
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import SingleFlight, StageInput

logger = logging.getLogger(__name__)

TOGETHER = 8  # groups whose records are fetched in one request
COLLECTING = 0.1  # seconds for which a group that needs records waits for others

Judged = FileRecord | Comparison | Entry | Problem
SIZE = attrgetter("size")
ARCHIVES_NAME = Problem(
    "archive.name",
    "The local file has the same name as an archive of other files on the server.",
    "Rename the local file.",
)


class _LookedUp(NamedTuple):
    """A group with what the ledger knows, and the records that it needs; no view if that failed."""

    group: FileGroup
    view: FolderView | None = None
    files: Sequence[LocalFile] = ()
    entries: Mapping[bytes, Entry] = MappingProxyType({})
    needed: Sequence[DatafileId] = ()


class Check:
    """The stage that looks files up in the ledger, or in a listing if the ledger is not proven.

    It yields, group by group, what is not verified yet: files to send, files whose bytes are
    already in the staging area, and datafiles that only wait for verification. A file in an archive
    is represented by that archive with this one member. Files that the server may have, but whose
    current content was never read, come separately. Files that may not be finished wait for a later
    run.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        ledger: Ledger,
        emit: Emit,
        emit_all: EmitAll,
        gate: Gate,
        changed: ChangedFiles,
        find_unfinished: Callable[[Sequence[LocalFile]], Mapping[bytes, Problem]],
        find_renamed: Callable[[Sequence[LocalFile]], Mapping[bytes, Entry]],
        *,
        box: str,
    ) -> None:
        self._catalogue = catalogue
        self._ledger = ledger
        self._emit = emit
        self._emit_all = emit_all
        self._clock = gate.clock
        self._changed = changed
        self._find_unfinished = find_unfinished
        self._find_renamed = find_renamed
        self._box = box
        self._views: SingleFlight[bytes, FolderView] = SingleFlight()
        # The server's status of these may refer to earlier bytes until it verifies them again.
        self._replaced = {it.datafile for it in self._ledger.find_replacements()}

    def __call__(self, groups: StageInput[FileGroup]) -> Iterator[CheckedGroup]:
        while (group := groups.poll(None)) is not None:
            for found in self._fetch_records(self._collect(group, groups)):
                yield self._finish(found)
                if found.group.last:
                    self._views.forget(found.group.folder.path)

    def _collect(self, group: FileGroup, groups: StageInput[FileGroup]) -> list[_LookedUp]:
        """Look up a group; if it needs records, also the groups that come soon after it."""
        found = [self._look_up(group)]
        end = self._clock.monotonic() + COLLECTING if found[0].needed else 0.0
        while end and len(found) < TOGETHER:
            more = groups.poll(max(0.0, end - self._clock.monotonic()))
            if more is None:
                break
            found.append(self._look_up(more))
        return found

    def _look_up(self, group: FileGroup) -> _LookedUp:
        """Find what the ledger knows about the files; report a group that cannot be checked."""
        try:
            view = self._views(group.folder.path, lambda: self._open_view(group))
            files = self._leave_out_known(view, group)
            entries = self._ledger.find_entries([file.key for file in files])
            needed = _find_records_needed(view, files, entries)
            return _LookedUp(group, view, files, entries, needed)
        except FolderExcludedError as error:
            self._leave_out(group, error.problem)
        except ItemError as error:
            self._fail(group, error.problem)
        return _LookedUp(group)

    def _fetch_records(self, groups: list[_LookedUp]) -> list[_LookedUp]:
        """Return groups of which most have the records that they need, after one request."""
        wanted = [it for it in groups if it.view and it.view.wants(it.needed)]
        if len(wanted) < 2:
            return groups
        ids = [number for it in wanted for number in it.needed]
        try:
            records = self._catalogue.fetch_records(ids)
        except ItemError as error:  # an invalid record must not affect other groups
            logger.info("%d records could not be fetched together: %s", len(ids), error)
            return groups
        for it in wanted:
            assert it.view
            it.view.add(it.needed, records)
        return [it._replace(needed=()) if it in wanted else it for it in groups]

    def _finish(self, found: _LookedUp) -> CheckedGroup:
        if found.view is not None:
            try:
                return self._compare(found, found.view)
            except ItemError as error:
                self._fail(found.group, error.problem)
        return CheckedGroup(found.group, [])

    def _open_view(self, group: FileGroup) -> FolderView:
        try:
            return self._catalogue.look_up(group.folder)
        except FolderExcludedError as error:
            self._emit(FolderSkipped(path=group.folder.path, problem=error.problem))
            raise
        except ItemError as error:
            self._emit(FolderFailed(path=group.folder.path, problem=error.problem))
            raise

    def _leave_out(self, group: FileGroup, problem: Problem) -> None:
        for file in group.files:
            self._emit(FileSkipped(path=file.key, size=file.size, problem=problem))

    def _fail(self, group: FileGroup, problem: Problem) -> None:
        for file in group.files:
            self._emit(FileFailed.of(file, problem))

    def _compare(self, looked_up: _LookedUp, view: FolderView) -> CheckedGroup:
        group, files, entries = looked_up.group, looked_up.files, looked_up.entries
        view.fetch(looked_up.needed)
        judged = self._leave_unfinished(
            [
                (
                    file,
                    _require_content(self._judge(view, file, entries.get(file.key)), file, group),
                )
                for file in files
            ]
        )
        judged = self._take_over_renamed(judged)
        self._report_known(group, files, view)
        checked = CheckedGroup(group, [], unread := [])
        verified: list[tuple[LocalFile, Entry]] = []
        for file, found in judged:
            match found:
                case Entry():
                    verified.append((file, found))
                case Problem():
                    self._emit(describe_unsent(file, found))
                case Comparison():
                    unread.append(found)
                case _:
                    checked.open.append(found)
        self._report_open(checked.open)
        self._note_contradictions(view, entries.values())
        self._keep([found for file, found in verified if found != entries.get(file.key)])
        self._keep(list(_find_earlier(view, judged, entries)))
        self._emit_all(
            [
                FileVerified(path=file.key, size=file.size, checksum=found.checksum, known=True)
                for file, found in verified
            ]
        )
        return checked

    def _leave_unfinished(
        self, judged: Sequence[tuple[LocalFile, Judged]]
    ) -> Sequence[tuple[LocalFile, Judged]]:
        """Return a problem instead of each file that would be read and may not be finished."""
        read = [file for file, found in judged if _must_be_read(found)]
        waiting = self._find_unfinished(read) if read else {}
        if not waiting:
            return judged
        return [(file, waiting.get(file.key, found)) for file, found in judged]

    def _take_over_renamed(
        self, judged: Sequence[tuple[LocalFile, Judged]]
    ) -> Sequence[tuple[LocalFile, Judged]]:
        """Return what has arrived under a former name instead of each file that was renamed."""
        new = [it for it, found in judged if _is_to_be_sent(found) and not found.earlier]
        rows = self._find_renamed(new) if new else {}
        if not rows:
            return judged
        return [
            (file, _as_renamed(found, row) if _is_to_be_sent(found) and row else found)
            for file, found in judged
            for row in [rows.get(file.key)]
        ]

    def _note_contradictions(self, view: FolderView, entries: Iterable[Entry]) -> None:
        """Make a full listing due if a record that was requested differs from its verified row."""
        doubted = [
            Recheck(entry.dataset, entry.key)
            for entry in entries
            if entry.state is EntryState.VERIFIED and not entry.archive
            if entry.datafile is not None and entry.datafile in view.requested
            if not _is_verified(view.requested[entry.datafile], entry)
        ]
        if doubted:
            self._ledger.recheck(doubted)

    def _keep(self, learnt: Sequence[Entry]) -> None:
        if learnt:
            self._ledger.record(learnt)

    def _report_known(
        self, group: FileGroup, others: Sequence[LocalFile], view: FolderView
    ) -> None:
        if len(group.files) > len(others):
            size = group.size - sum(map(SIZE, others))
            files = len(group.files) - len(others)
            folder, compared = group.folder.path, view.compared
            self._emit(FilesKnown(folder=folder, files=files, bytes=size, compared=compared))

    def _leave_out_known(self, view: FolderView, group: FileGroup) -> Sequence[LocalFile]:
        """Return the files that must be checked one by one, usually none."""
        files, agreed = group.files, view.agrees
        view.settle()
        if group.new or (agreed and group.known == view.dataset.id):
            return group.open
        found = self._ledger.find_open(files)
        if not found.datasets <= {view.dataset.id}:
            return files
        return [it for it in files if it.key in found.keys or is_named_like_archive(it)]

    def _report_open(self, open_files: Batch) -> None:
        wanted = [FileWanted.of(item) for item in open_files if item.state is EntryState.FOUND]
        self._emit_all([event for event in wanted if not event.changed])
        for event in wanted:
            if event.changed:
                self._emit(event)

    def _judge(self, view: FolderView, file: LocalFile, entry: Entry | None) -> Judged:
        """Return an entry if verified, a problem if the file cannot be sent, else the next step."""
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

    def _judge_known(self, view: FolderView, file: LocalFile, entry: Entry) -> Judged:
        """Decide on an unverified file whose checksum is in the ledger."""
        if not entry.archive:
            return self._judge_record(view, file, entry)
        # The file may be in an archive and have a record of its own as well.
        return self._judge_inside(view, file, entry) or self._compare_record(view, file, None)

    def _judge_inside(
        self, view: FolderView, file: LocalFile, entry: Entry
    ) -> FileRecord | Entry | None:
        """Decide by the archive that contains the file; None if that archive is gone.

        A lost archive is not sent again as it was: its files go into another one.
        """
        archive, record = view.find_archive(entry.archive)
        if archive is None:
            return None
        member = ArchiveMember(file, member_name(view.folder, file), entry.checksum)
        stand_in = archive.as_file(view.folder)
        wanted = FileRecord(stand_in, view.dataset, archive.remote, record, members=(member,))
        verdict = judge_archive(archive, record)
        if verdict is ArchiveState.STAGED:
            return wanted.arrive(archive.checksum)
        if verdict is ArchiveState.GONE or record is None:
            return None
        if verdict is ArchiveState.VERIFIED:
            return entry._replace(state=EntryState.VERIFIED, datafile=record.id)
        wanted.become(record).checksum = archive.checksum  # the record may be unreadable
        return wanted

    def _judge_record(self, view: FolderView, file: LocalFile, entry: Entry) -> Judged:
        """Decide by the server's record of a file whose checksum is in the ledger."""
        record = view.find(file)
        if record and record.fault:
            return describe_strange_record(record.fault)
        wanted = self._want(view, file, record)
        if record is None and entry.state is EntryState.STAGED:
            wanted.remote = entry.remote
            return wanted.arrive(entry.checksum)
        if record is None or not record.replicas:
            return UNREAD if record is None and view.unread else wanted
        if (record.size, record.checksum) != (file.size, entry.checksum):
            if entry.state is EntryState.REPAIRED:  # the record had these bytes: it has changed
                return self._require_place(view, wanted)
            return self._differs(view, wanted, self._find_copy(view, wanted, entry))
        return self._describe(wanted, record, entry)

    def _compare_record(self, view: FolderView, file: LocalFile, entry: Entry | None) -> Judged:
        """Decide by the server's record of a file whose current content was never read.

        `entry` is the ledger's row of its earlier state, or of a file of the same name.
        """
        record = view.find(file)
        if record and record.fault:
            return describe_strange_record(record.fault)
        wanted = self._want(view, file, record)
        matches = []
        copy = self._find_copy(view, wanted, entry)
        if copy and self._changed.knows(file, copy):
            return self._differs(view, wanted, copy)
        if record and record.replicas and record.size == file.size and not record.unfinished:
            matches.append(Match(record.checksum, self._describe(wanted, record, entry)))
        inside = self._find_inside(view, file, entry) if entry else None
        if inside:
            matches.append(Match(inside.checksum, inside))
        if record is None and not matches and view.unread:
            return UNREAD
        if not matches:
            return self._differs(view, wanted, copy)
        return Comparison(file, tuple(matches), self._require_place(view, wanted), copy)

    def _differs(
        self, view: FolderView, wanted: FileRecord, copy: VerifiedCopy | None
    ) -> FileRecord | Problem | Comparison:
        """Return a file to send, unless its verified copy must not be replaced now."""
        if copy and self._changed.keeps(wanted.file, copy):
            return KEPT_THERE
        found = self._require_place(view, wanted)
        if copy is None or isinstance(found, Problem):
            return found
        if self._changed.may_be_appended(wanted.file, copy):
            return Comparison(wanted.file, (), wanted, copy)
        return self._changed.judge(wanted, copy)

    def _require_place(self, view: FolderView, wanted: FileRecord) -> FileRecord | Problem:
        """Return a file to send, unless its record cannot be replaced."""
        record = wanted.earlier
        if record and self._is_elsewhere(record) and self._changed.can_replace:
            return view.find_obstacle(record) or wanted
        return wanted

    def _is_elsewhere(self, record: Datafile) -> bool:
        """Return whether what a record describes was not put there by us."""
        return bool(record.replicas) and not record.find_replica(self._box)

    def _find_copy(
        self, view: FolderView, wanted: FileRecord, entry: Entry | None
    ) -> VerifiedCopy | None:
        """Return what the server has of a file that must not be lost, also in an archive."""
        record, copy = wanted.earlier, None
        if record and record.replicas:
            stored = record.find_replica(self._box) or record.replicas[0]
            verified_at = stored.verified_at if stored.verified else None
            proven = stored.verified or self._was_verified(wanted.file, record, entry)
            # A file of others that may be replaced must not be lost either.
            proven = proven or (self._is_elsewhere(record) and view.find_obstacle(record) is None)
            # What shrinks is held even if the server does not verify its copy, or not yet.
            if (proven or has_shrunk(wanted.file, record)) and not record.unfinished:
                copy = VerifiedCopy(record.size, record.checksum, verified_at or "")
        elif entry and entry.archive and entry.checksum and view.find_verified(entry.archive):
            copy = VerifiedCopy(entry.size, entry.checksum)
        if copy is None:
            return None
        return copy._replace(freely=self._changed.is_free(wanted.file.key[view.above :]))

    def _was_verified(self, file: LocalFile, record: Datafile, entry: Entry | None) -> bool:
        """Return whether the server has verified what a record describes at an earlier time."""
        earlier = entry and entry.state in (EntryState.VERIFIED, EntryState.CHANGED)
        same = entry and (entry.size, entry.checksum) == (record.size, record.checksum)
        return bool(earlier and same) or self._changed.has_seen(file, record.size, record.checksum)

    def _describe(
        self, wanted: FileRecord, record: Datafile, entry: Entry | None
    ) -> Entry | FileRecord:
        """Return the status of a file that has the record's content.

        A record that was verified with other bytes before still counts as verified.
        """
        repaired = entry and (entry.state, entry.checksum) == (EntryState.REPAIRED, record.checksum)
        unproven = repaired or record.id in self._replaced
        if (record.find_replica(self._box) or record).verified and not unproven:
            return Entry.of(wanted)._replace(
                state=EntryState.VERIFIED, checksum=record.checksum, datafile=record.id
            )
        return replace(wanted).become(record)

    def _find_inside(self, view: FolderView, file: LocalFile, entry: Entry) -> Entry | None:
        """Return the row of a file that is in an archive, if its content is unchanged.

        A file that was written to since then goes into another archive, whatever its content.
        """
        if (entry.size, entry.modified_ns) != (file.size, file.modified_ns):
            return None
        archive = view.find_verified(entry.archive) if entry.archive else None
        if archive is None:
            return None
        row = entry._replace(state=EntryState.VERIFIED, datafile=archive.datafile)
        return row.adopt(file)

    def _want(self, view: FolderView, file: LocalFile, record: Datafile | None) -> FileRecord:
        if record and record.replicas:
            stored = record.find_replica(self._box) or record.replicas[0]
            return FileRecord(file, view.dataset, stored.uri, record)
        return FileRecord(file, view.dataset, view.place(file), record)


def _is_to_be_sent(found: Judged) -> TypeGuard[FileRecord]:
    return isinstance(found, FileRecord) and found.state is EntryState.FOUND


def _as_renamed(wanted: FileRecord, former: Entry) -> FileRecord | Comparison:
    """Return a file whose bytes arrived under its former name, or which must be read before.

    Only a folder above it was renamed if its own name and its ctime are the same. The name counts
    since FAT makes inodes up, and has no ctime.
    """
    file, arrived = wanted.file, replace(wanted, renamed=former).arrive(former.checksum)
    if (former.ctime_ns, former.key.rpartition(b"/")[2]) == (file.ctime_ns, file.name):
        return arrived
    return Comparison(wanted.file, (Match(former.checksum, arrived),), wanted)


def _must_be_read(found: Judged) -> bool:
    return isinstance(found, Comparison) or _is_to_be_sent(found)


def _require_content(found: Judged, file: LocalFile, group: FileGroup) -> Judged:
    """Return a problem if the file must be read, which would first download it."""
    if file.key in group.remote and _must_be_read(found):
        return REMOTE
    return found


def _is_verified(record: Datafile | None, entry: Entry) -> bool:
    """Return whether a record has the bytes of a row, and a verified replica."""
    same = record and (record.size, record.checksum) == (entry.size, entry.checksum)
    return bool(record and same and record.verified)


def _find_records_needed(
    view: FolderView, files: Iterable[LocalFile], entries: Mapping[bytes, Entry]
) -> list[DatafileId]:
    """Return the known records of files that are not known to be verified as they are."""
    found = ((file, entries.get(file.key)) for file in files)
    return [
        entry.datafile
        for file, entry in found
        if entry and entry.datafile is not None
        if entry.dataset == view.dataset.id and not entry.archive
        if entry.state is not EntryState.VERIFIED or not entry.is_of(file)
    ]


def _find_earlier(
    view: FolderView, judged: Sequence[tuple[LocalFile, Judged]], entries: Mapping[bytes, Entry]
) -> Iterator[Entry]:
    """Yield the rows of earlier states of a file, marked as such."""
    for file, found in judged:
        entry = entries.get(file.key)
        verified = entry and entry.state is EntryState.VERIFIED
        if not (entry and verified and entry.dataset == view.dataset.id):
            continue
        differs = isinstance(found, Problem) or _is_to_be_sent(found)
        if differs and not entry.is_of(file):
            yield entry._replace(state=EntryState.CHANGED)
