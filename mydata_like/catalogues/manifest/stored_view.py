"""What is at a destination under the names of local files, compared with what the ledger knows."""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from mydata_like.catalogues.manifest.segments import Listed, Manifest
from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import DestinationFiles, ListedPart, StoredFile
from mydata_like.core.errors import Problem, RunError, TransientError
from mydata_like.core.events import Notice
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    LOST,
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    Entry,
    EntryState,
    Replica,
    hash_keys,
)
from mydata_like.core.parsing import moment_of_ns
from mydata_like.core.ports import Emit, Ledger
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Lock

logger = logging.getLogger(__name__)

T = TypeVar("T")

BOX: Final = "manifest"  # the storage box of what this program has put at a destination
FEW: Final = 20  # proven files that may be missing there before the run stops
SHARE: Final = 0.05  # the same, as a share of all
AT_ONCE: Final = 1000
ATTEMPTS: Final = 5  # of a request whose connection breaks
RELIED: Final = "segments read"  # the ledger's key for what `find_relied` returns
COMPARED_AT_ONCE: Final = 500  # files without a line in the manifest that are hashed together

OCCUPIED: Final = Problem(
    "destination.occupied",
    "The destination has another file of this name, which this program has not put there.",
    "Nothing was replaced. Rename or remove one of the two, or copy again with --overwrite, which "
    "keeps the other file beside it for 30 days.",
)


class Losses:
    """How many proven files a run has looked for, and how many are missing; from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known = self._missing = 0

    def add(self, known: int, missing: int = 0) -> tuple[int, int]:
        """Add what is known of a source; return the sums of the run so far."""
        with self._lock:
            self._known += known
            self._missing += missing
            return self._known, self._missing


class ManifestContext(NamedTuple):
    """What the views and stages of a run share.

    `temporary` is the folder of bytes that have no name yet, or empty if they are sent under their
    final names. With `accept_missing`, any number of proven files may be missing: they are sent
    again. The ledger is not `trusted` if segments that it knows are gone from the manifest: what
    these listed is proven and listed again. With `overwrite`, files that the manifest does not list
    are replaced as changed ones are.
    """

    files: DestinationFiles
    manifest: Manifest
    ledger: Ledger
    gate: Gate
    emit: Emit
    temporary: bytes
    losses: Losses
    accept_missing: bool = False
    trusted: bool = True
    overwrite: bool = False

    def call(self, action: Callable[[], T]) -> T:
        """Return the result of an action on the files, waiting at the gate while necessary.

        Raises `TransientError` if its connection breaks again and again.
        """
        return self.repeat(lambda: self.gate.call(action, staging=True))

    def repeat(self, action: Callable[[], T]) -> T:
        """Return the result of an action, which is repeated if its connection breaks."""
        for attempt in range(1, ATTEMPTS):
            try:
                return action()
            except TransientError as error:
                logger.info("The destination did not answer: %s", error)
                self.gate.rest(self.gate.backoff(attempt))
        return action()


class StoredView:
    """The files of one source at a destination; see `FolderView`.

    `find_place` returns the path of a file there by its key, None for one that is not in the
    source, and `list_parts` what there is. When the view is opened, each stored file is compared
    with the ledger's row: size, times, the destination's ctime and inode. Those that differ, or
    have no row, are kept in memory. A row without its file, or whose file differs, is no longer
    verified. Parts of the listing that are exactly as before, when all of their files were as the
    ledger still has them, need no comparison.
    """

    compared: datetime | None = None
    unread = False
    requested: Mapping[DatafileId, Datafile | None] = MappingProxyType({})

    def __init__(
        self,
        destination: ManifestContext,
        dataset: Dataset,
        folder: bytes,
        find_place: Callable[[bytes], bytes | None],
        find_key: Callable[[bytes], bytes],
        list_parts: Callable[[], Iterable[ListedPart]],
    ) -> None:
        self.dataset = dataset
        self.folder = folder
        self.above = len(folder) + 1
        self._destination = destination
        self._find_place = find_place
        self._others: dict[bytes, StoredFile] = {}  # not as the ledger knows them, by path
        self._listed: dict[bytes, Listed] | None = None  # what the manifest has of these
        self._checksums: dict[bytes, str] = {}  # of those that were hashed there
        self._unhashed: defaultdict[bytes, list[bytes]] = defaultdict(list)  # by folder
        self._own: dict[bytes, bool] = {}  # whether this program has put unlisted files there
        self._unasked: defaultdict[bytes, list[bytes]] = defaultdict(list)
        seen = destination.call(lambda: self._compare(find_key, list_parts))
        self.dataset = replace(dataset, files=seen + len(self._others))
        self.agrees = True
        known = destination.ledger.count_records(dataset.id).total
        destination.losses.add(known)
        if seen < known:
            self.agrees = not destination.call(self._check_rows)

    @property
    def knows_all(self) -> bool:
        return not self._others

    def _compare(
        self,
        find_key: Callable[[bytes], bytes],
        list_parts: Callable[[], Iterable[ListedPart]],
    ) -> int:
        """Compare what is stored with the ledger; return how many files are as it knows them."""
        where, dataset = self._destination, self.dataset.id
        known = where.ledger.begin_listing(dataset)
        same: dict[bytes, bytes] = {}  # parts of which all files are as the ledger knows them
        seen = 0
        self._others.clear()
        for part in list_parts():
            if where.trusted and part.digest in known.digests:
                same[part.digest] = b""
                seen += part.files
                continue
            files = part.read()
            keys = [find_key(it.path) for it in files]
            count = self._compare_files(keys, files)
            if count == part.files:
                same[part.digest] = hash_keys(keys)
            seen += count
        where.ledger.record_listing(dataset, known, same)
        return seen

    def _compare_files(self, keys: Sequence[bytes], files: Sequence[StoredFile]) -> int:
        """Keep those files that are not as the ledger knows them; return the number of others."""
        marks = self._destination.ledger.find_verified(self.dataset.id, keys)
        # What was changed here may have been withdrawn from the manifest already.
        others = [
            it
            for key, it in zip(keys, files, strict=True)
            if not self._destination.trusted or marks.get(key) != it.mark
        ]
        self._others.update((it.path, it) for it in others)
        return len(files) - len(others)

    def _check_rows(self) -> int:
        """Take "verified" from rows whose file is missing or differs; return their number."""
        where = self._destination
        rows = where.ledger.iter_verified(self.dataset.id)
        missing = 0
        doubted: list[Entry] = []
        while part := list(islice(rows, AT_ONCE)):
            placed = [(row, place) for row in part if (place := self._find_place(row.key))]
            found = where.files.look([place for _, place in placed])
            for (row, place), stored in zip(placed, found, strict=True):
                if stored is None:
                    missing += 1
                    doubted.append(
                        row._replace(state=EntryState.FAILED, datafile=None, problem=LOST)
                    )
                elif stored.mark != row.datafile or not (where.trusted or self._is_listed(place)):
                    doubted.append(row._replace(state=EntryState.CHANGED))
        known, lost = where.losses.add(0, missing)
        if missing and lost > max(FEW, SHARE * known) and not where.accept_missing:
            raise RunError(
                f"{lost} of {known} proven files are no longer at the destination.",
                hint="If they were moved or removed there on purpose, run again with "
                "--accept-missing: they are sent again. If not, look at the destination first.",
                code="destination.missing",
            )
        if doubted:
            where.ledger.record(doubted)
        if missing:
            where.emit(Notice(problem=_describe_missing(missing)))
        return len(doubted)

    def settle(self) -> None:
        """Do nothing: the rows are correct since the view was opened."""

    def fetch(self, ids: Sequence[DatafileId]) -> None:
        """Do nothing: nothing has to be requested."""

    def wants(self, ids: Sequence[DatafileId]) -> bool:
        return False

    def add(self, ids: Sequence[DatafileId], found: Iterable[Datafile]) -> None:
        """Do nothing: nothing was requested."""

    def find(self, file: LocalFile) -> Datafile | None:
        """Return what is stored under a file's name, as a record.

        If this program has not put it there, its replica is in another box than ours.
        """
        path = self._place_of(file)
        stored = self._others.get(path)
        if stored is None:
            return self._find_known(file, path)
        listed = self._find_listed().get(path)
        if listed is None:
            return self._find_unlisted(file, stored)
        proven, at = listed.proven, datetime.fromtimestamp(listed.at, UTC).isoformat()
        same = proven.file.mark == stored.mark
        # What was touched or changed there is read, so that nothing of others is lost.
        checksum = proven.checksum if same else self._hash(path)
        replica = Replica(_text(path), BOX, same, at if same else None)
        return self._describe(file, stored, checksum, replica)

    def _find_unlisted(self, file: LocalFile, stored: StoredFile) -> Datafile:
        """Return what is stored and not listed; it is ours if the ledger has its mark.

        An interrupted run may have put it there as well.
        """
        path = stored.path
        row = self._destination.ledger.find_entries([file.key]).get(file.key)
        if row and row.datafile == stored.mark and row.dataset == self.dataset.id:
            replica = Replica(_text(path), BOX, verified=False, verified_at=None)
            return self._describe(file, stored, row.checksum, replica)
        own = self._is_own(path)
        wanted = own or self._destination.overwrite or stored.size == file.size
        checksum = self._hash(path) if wanted else ""
        replica = Replica(_text(path), BOX if own else "", verified=False, verified_at=None)
        return self._describe(file, stored, checksum, replica)

    def find_obstacle(self, record: Datafile) -> Problem | None:
        """Return why a file of others is not replaced; also if it is unknown what would be lost."""
        return None if self._destination.overwrite and record.checksum else OCCUPIED

    def _find_known(self, file: LocalFile, path: bytes) -> Datafile | None:
        """Return what the ledger knows, if the destination has it unchanged."""
        row = self._destination.ledger.find_entries([file.key]).get(file.key)
        known = row and row.state in (EntryState.VERIFIED, EntryState.CHANGED)
        if row is None or not known or row.datafile is None or row.dataset != self.dataset.id:
            return None
        stored = StoredFile(path, row.size, row.modified_ns, 0, 0)
        at = self._destination.ledger.find_verified_at(file.key)
        replica = Replica(
            _text(path), BOX, verified=True, verified_at=at.isoformat() if at else None
        )
        return self._describe(file, stored, row.checksum, replica)._replace(id=row.datafile)

    def _describe(
        self, file: LocalFile, stored: StoredFile, checksum: str, replica: Replica
    ) -> Datafile:
        return Datafile(
            DatafileId(stored.mark),
            self.dataset.id,
            _text(file.directory),
            _text(file.name),
            stored.size,
            checksum,
            moment_of_ns(stored.modified_ns).isoformat(),
            (replica,),
        )

    def _find_listed(self) -> Mapping[bytes, Listed]:
        """Return the newest lines of the manifest about the files that the ledger does not know."""
        if self._listed is None:
            listed: dict[bytes, Listed] = {}
            for it in self._destination.call(self._read_manifest):
                known = listed.get(it.path)
                if known is None or known.at <= it.at:
                    listed[it.path] = it
            self._listed = listed
        return self._listed

    def _is_listed(self, path: bytes) -> bool:
        return path in self._find_listed()

    def _read_manifest(self) -> list[Listed]:
        """Read what may make rows verified; the segments that have it are noted before."""
        where, listed, names = self._destination, [], set[str]()
        for name, segment in where.manifest.read_segments():
            found = [it for it in segment if it.path in self._others]
            listed += found
            names |= {name} if found else set()
        noted = find_relied(where.ledger)
        if not names <= noted:
            where.ledger.record_meta(RELIED, "\n".join(sorted(noted | names)))
        return listed

    def _hash(self, path: bytes) -> str:
        """Return the checksum of a stored file; those beside it are hashed in the same request."""
        if path not in self._checksums:
            paths, where = self._take_beside(path, self._unhashed), self._destination
            found = where.call(lambda: where.files.prove(paths))
            self._checksums.update(
                (name, proven.checksum if proven else "")
                for name, proven in zip(paths, found, strict=True)
            )
        return self._checksums[path]

    def _is_own(self, path: bytes) -> bool:
        where = self._destination
        if where.files.has_temporary_names:
            return False
        if path not in self._own:
            paths = self._take_beside(path, self._unasked)
            found = where.call(lambda: where.files.find_own(paths))
            self._own.update(zip(paths, found, strict=True))
        return self._own[path]

    def _take_beside(self, path: bytes, left: defaultdict[bytes, list[bytes]]) -> list[bytes]:
        """Return a path, and some of those that are `left` of its folder, which are removed."""
        if not left:
            for it in self._others:
                left[it.rpartition(b"/")[0]].append(it)
        beside = left[path.rpartition(b"/")[0]]
        paths = list(dict.fromkeys([path, *beside[-COMPARED_AT_ONCE:]]))
        del beside[-COMPARED_AT_ONCE:]
        return paths

    def place(self, file: LocalFile) -> str:
        """Return the path under which a file is sent; see `ManifestContext.temporary`."""
        return _text(self._destination.temporary + self._place_of(file))

    def _place_of(self, file: LocalFile) -> bytes:
        place = self._find_place(file.key)
        assert place is not None
        return place

    def is_archive(self, file: LocalFile) -> bool:
        return False

    def find_archive(self, path: str) -> tuple[ArchiveRecord | None, Datafile | None]:
        return None, None

    def find_verified(self, path: str) -> ArchiveRecord | None:
        return None


def find_relied(ledger: Ledger) -> set[str]:
    """Return the names of the segments, also those of others, that have made rows verified."""
    return set((ledger.find_meta(RELIED) or "").splitlines())


def number_dataset(source: bytes, algorithm: Algorithm) -> DatasetId:
    """Return a number in 62 bits that stands for a source and the algorithm of its checksums.

    So rows of the ledger are compared only with checksums of the same algorithm.
    """
    if algorithm is not Algorithm.MD5:
        source += b"\0" + algorithm.value.encode()
    digest = hashlib.blake2b(source, digest_size=8).digest()
    return DatasetId(int.from_bytes(digest, "big") >> 2 or 1)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _describe_missing(files: int) -> Problem:
    what = "1 proven file is" if files == 1 else f"{files} proven files are"
    return Problem(
        LOST,
        f"{what} no longer at the destination.",
        "Files that are still on this computer are sent again now.",
    )
