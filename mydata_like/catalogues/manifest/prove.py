"""The stage that proves files at their destination, names them, and lists them in the manifest."""

import logging
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from mydata_like.catalogues.manifest.stored_view import BOX, OCCUPIED, ManifestContext
from mydata_like.core.destination_files import Placement, ProvenFile
from mydata_like.core.errors import Problem, TransientError
from mydata_like.core.events import FileFailed, FileRenamed, FileWaiting
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Batch, DatafileId, Entry, EntryState, FileRecord
from mydata_like.engine.pipeline import StageInput, map_concurrently

logger = logging.getLogger(__name__)

SHORTEST: Final = 1.0  # seconds between two rounds
LONGEST: Final = 30.0
EFFORT: Final = 4  # flushing may take a fifth of the time, as it delays what is being sent
ROUND: Final = 10_000  # files of a round, and of a segment: more would take memory, not time
AT_ONCE: Final = 4000  # files in one request
BYTES_AT_ONCE: Final = 256 << 20  # the same; the last file of a request may be larger
USUAL_MODE: Final = 0o644  # of a local file that has no permissions, or is gone

DIFFERS: Final = Problem(
    "destination.differs",
    "The copy at the destination does not match the checksum, even after it was sent again.",
    "Check the storage of the destination; then run again.",
)


class Prove:
    """The last stage before the record: what it yields as verified is proven and listed.

    It works in rounds, since each makes the destination write everything to its disk first: then
    the destination hashes the new bytes, gives them their final names if these are free, and gets a
    segment of the manifest. Bytes that are wrong are sent again, once. While one worker has a round
    proven, another one collects the next.
    """

    def __init__(self, destination: ManifestContext) -> None:
        self._destination = destination
        self._files = destination.files
        self._call = destination.call
        self._clock = destination.gate.clock
        self._due = 0.0  # when the next round begins, unless it is full before

    def __call__(self, source: StageInput[Batch]) -> Iterator[Batch]:
        waiting: Batch = []
        due = self._due = self._clock.monotonic() + SHORTEST
        while waiting or not source.finished:
            if not source.finished:
                left = due - self._clock.monotonic()
                came = source.poll(max(0.0, left) if waiting else None) or ()
                if came and not waiting:
                    due = self._due  # the rounds of other workers do not postpone it further
                waiting += came
                early = self._clock.monotonic() < due and len(waiting) < ROUND
                if early and not source.finished:
                    continue
            while part := waiting[:ROUND]:
                waiting = waiting[ROUND:]
                self._due = self._clock.monotonic() + SHORTEST
                yield from self._prove(part)

    def _sync(self) -> None:
        """Make the destination write everything to its disk, which sets when it does so again."""
        begun = self._clock.monotonic()
        self._call(self._files.sync)
        ended = self._clock.monotonic()
        self._due = ended + min(max(SHORTEST, EFFORT * (ended - begun)), LONGEST)

    def _prove(self, batch: Batch) -> Iterator[Batch]:
        """Prove some files; yield those that are verified, and those to be sent again."""
        former: list[Entry] = []
        try:
            placements = [self._place(record) for record in batch]
            # An older line of a file that was removed there would say that it has other bytes.
            paths = [it.final or it.temporary for it in placements]
            self._call(lambda: self._destination.manifest.withdraw_earlier(paths))
            former = self._take_over(batch)
            self._sync()
            verified: list[tuple[FileRecord, ProvenFile]] = []
            wrong = [it for it in batch if it.state is EntryState.FOUND]
            placed = zip(batch, placements, strict=True)
            parts = list(_divide([it for it in placed if it[0].state is not EntryState.FOUND]))
            found = map_concurrently(
                lambda part: self._call(partial(self._prove_part, part)),
                parts,
                self._files.concurrent,
            )
            for part, results in zip(parts, found, strict=True):
                for (record, _), result in zip(part, results, strict=True):
                    if isinstance(result, ProvenFile):
                        verified.append((record, result))
                    elif result is None or record.renamed:
                        wrong.append(record)
                    else:
                        self._fail(record, result)
            if verified:
                at = int(self._clock.now().timestamp())
                proven = [it for _, it in verified]
                self._call(lambda: self._destination.manifest.add(proven, at))
        except TransientError as error:
            for record in batch:
                for file in record.files:
                    self._destination.emit(FileWaiting.of(file, error.problem))
            return
        if former:
            self._destination.ledger.forget(former)
        for record, result in verified:
            if record.renamed:
                self._destination.emit(FileRenamed.of(record))
            record.state, record.datafile = EntryState.VERIFIED, DatafileId(result.file.mark)
            record.remote = result.file.path.decode("utf-8", "surrogateescape")
        if verified:
            yield [record for record, _ in verified]
        if again := [record for record in wrong if self._may_be_sent_again(record)]:
            yield again

    def _take_over(self, batch: Batch) -> list[Entry]:
        """Withdraw what is said of renamed files under their former names; return their rows.

        Their lines go first, as those of all files that are about to change. Their rows stay until
        the files have their names, so that they are not missed after an interruption. What another
        uploader has put there keeps its name; that file is to be sent.
        """
        manifest, ledger = self._destination.manifest, self._destination.ledger
        former: list[Entry] = []
        renamed = [(it, _encode(it.renamed.remote), it.renamed) for it in batch if it.renamed]
        others = manifest.find_of_others([path for _, path, _ in renamed]) if renamed else ()
        for record, path, entry in renamed:
            if path in others:
                record.send_again()
            else:
                former.append(entry)
        if former:
            paths = {_encode(it.remote) for it in former}
            self._call(lambda: manifest.withdraw(paths))
            ledger.record(
                [it._replace(state=EntryState.REGISTERED, datafile=None) for it in former]
            )
            ledger.flush()
        return former

    def _prove_part(
        self, part: Sequence[tuple[FileRecord, Placement]]
    ) -> list[ProvenFile | Problem | None]:
        """Return each file as it is proven, None if its bytes are wrong, or why it has no name."""
        records, placements = zip(*part, strict=True)
        self._set_modes([record for record in records if record.replaces])
        results = self._files.prove_and_place(placements)
        lost = [
            at
            for at, (placement, result) in enumerate(zip(placements, results, strict=True))
            if placement.final and not isinstance(result, ProvenFile)
        ]
        self._accept_named(placements, lost, results)
        proven = {at for at, it in enumerate(results) if isinstance(it, ProvenFile)}
        for at in proven.intersection(lost):  # somebody else has put the same bytes there
            records[at].renamed = None
        # Where two names are one, as on two mounts of one folder, the only one is gone now.
        renamed = [at for at in proven if records[at].renamed]
        seen = self._files.look([placements[at].final for at in renamed]) if renamed else ()
        for at, file in zip(renamed, seen, strict=True):
            if file is None:
                results[at] = None
        return results

    def _set_modes(self, replaced: Batch) -> None:
        """Give files that have replaced others the permissions of the local ones."""
        by_mode: defaultdict[int, list[bytes]] = defaultdict(list)
        # Those of earlier runs were interrupted after that.
        unfinished = {it.key for it in self._destination.ledger.find_replacements()}
        for record in replaced:
            if record.state is EntryState.STAGED or record.file.key in unfinished:
                by_mode[_find_mode(record.file)].append(_encode(record.remote))
        for mode, paths in by_mode.items():
            self._files.set_mode(paths, mode)

    def _accept_named(
        self,
        placements: Sequence[Placement],
        lost: Sequence[int],
        results: list[ProvenFile | Problem | None],
    ) -> None:
        """Accept files that have their names and bytes already.

        An earlier attempt, whose answer was lost, may have named them.
        """
        finals = [placements[at].final for at in lost]
        for at, found in zip(lost, self._files.prove(finals) if finals else (), strict=True):
            if placements[at].is_right(found):
                results[at] = found
                if placements[at].temporary.startswith(self._destination.temporary):
                    self._files.remove([placements[at].temporary])

    def _place(self, record: FileRecord) -> Placement:
        """Return where a file is, and its final path; that is empty if it has its name already."""
        path, file, temporary = _encode(record.remote), record.file, self._destination.temporary
        final = path[len(temporary) :] if temporary and path.startswith(temporary) else b""
        if record.renamed:
            path = _encode(record.renamed.remote)
        mode = _find_mode(file) if final else 0
        return Placement(path, final, mode, file.size, record.checksum)

    def _may_be_sent_again(self, record: FileRecord) -> bool:
        """Prepare a file whose bytes are wrong to be sent again; report one that cannot be."""
        if record.renamed or record.state is EntryState.FOUND:
            record.send_again()
            return True
        ours = record.earlier is None or bool(record.earlier.find_replica(BOX))
        ours = ours or self._destination.overwrite
        if record.round or not ours:
            self._fail(record, DIFFERS if ours else OCCUPIED)
            return False
        logger.warning("The destination has other bytes of %s", record.remote)
        record.send_again().round = 1
        return True

    def _fail(self, record: FileRecord, problem: Problem) -> None:
        for file in record.files:
            self._destination.emit(FileFailed.of(file, problem))


def _divide(
    files: Sequence[tuple[FileRecord, Placement]],
) -> Iterator[Sequence[tuple[FileRecord, Placement]]]:
    """Yield files in parts that several requests prove at once."""
    part: list[tuple[FileRecord, Placement]] = []
    size = 0
    for file in files:
        if len(part) == AT_ONCE or size >= BYTES_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(file)
        size += file[1].size
    if part:
        yield part


def _find_mode(file: LocalFile) -> int:
    """Return the permissions of a local file."""
    if os.name != "posix":
        return USUAL_MODE
    try:
        return (file.mode or os.lstat(file.path).st_mode) & 0o777
    except OSError:
        return USUAL_MODE


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
