"""`ManifestCatalogue`: the catalogue of a destination that has no server."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from mydata_like.catalogues.manifest.prove import USUAL_MODE, Prove
from mydata_like.catalogues.manifest.segments import (
    MARKER,
    DestinationMarker,
    find_algorithm,
    format_marker,
    read_marker,
)
from mydata_like.catalogues.manifest.stored_view import (
    BOX,
    ManifestContext,
    StoredView,
    number_dataset,
)
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import (
    DestinationFiles,
    ListedPart,
    Placement,
    ProvenFile,
    StoredFile,
    digest_part,
)
from mydata_like.core.errors import ItemError, Problem, SettingsError, StagingError
from mydata_like.core.model import (
    Batch,
    Datafile,
    DatafileId,
    Dataset,
    DatasetFolder,
    Entry,
    KeptCopy,
    Registration,
    Replacement,
    Replica,
)
from mydata_like.core.parsing import moment_of_ns
from mydata_like.core.staging_path import kept_path
from mydata_like.engine.catalogue import BroughtBack, Stage
from mydata_like.engine.pipeline import SingleFlight, StageInput

NOT_KEPT: Final = Problem(
    "changed.nothing-kept",
    "The earlier content that was kept is gone, or is not what was kept.",
    "mydata-like where shows what is kept of a file.",
)
SINGLE: Final = b"single files"  # stands for all files that are copied one by one


class ManifestCatalogue:
    """The catalogue whose records are lines of a manifest beside the bytes.

    The id of a record is a number that stands for the attributes of the stored file, so that it
    changes with the file. `find_place` returns the path at the destination of a dataset folder, or
    those of single files by their keys; it raises `ItemError` if the folder has no place there.
    `list_parts` yields what is in a folder at the destination.
    """

    contradicted = 0
    verifiers = 2

    def __init__(
        self,
        destination: ManifestContext,
        find_place: Callable[[DatasetFolder], bytes | Mapping[bytes, bytes]],
        list_parts: Callable[[bytes], Iterable[ListedPart]],
    ) -> None:
        self._destination = destination
        self._find_place = find_place
        self._list_parts = list_parts
        self._single: SingleFlight[bytes, StoredView] = SingleFlight()
        self.verify: Stage = Prove(destination)

    def register(self, source: StageInput[Batch]) -> Iterator[Batch]:
        """Pass all files: they are listed once they are proven."""
        yield from source

    def look_up(self, folder: DatasetFolder) -> StoredView:
        place = self._find_place(folder)
        if isinstance(place, bytes):
            return self._open_view(folder.path, place)
        return self._single(SINGLE, lambda: self._open_single(place))

    def _open_view(self, folder: bytes, place: bytes) -> StoredView:
        """Return the view of a source that is a folder."""
        below, files = place + b"/" if place else b"", self._destination.files
        number = number_dataset(folder + b"\0" + place, files.algorithm)
        return StoredView(
            self._destination,
            Dataset(number, below.decode("utf-8", "replace")),
            folder,
            lambda key: below + key[len(folder) + 1 :],
            lambda path: folder + b"/" + path[len(below) :],
            partial(self._list_parts, place),
        )

    def _open_single(self, places: Mapping[bytes, bytes]) -> StoredView:
        """Return the view of all files that are copied one by one.

        One of the data directory that appears later has its own name as well.
        """
        paths = list(places.values())
        keys = {path: key for key, path in places.items()}
        files = self._destination.files

        def list_parts() -> list[ListedPart]:
            found = [it for it in files.look(paths) if it is not None]
            # Another run may have other files of these names.
            digest = digest_part(repr((keys, found)).encode())
            return [ListedPart(digest, len(found), lambda: found)]

        return StoredView(
            self._destination,
            Dataset(number_dataset(SINGLE, files.algorithm), ""),
            b"",
            lambda key: places.get(key) or (None if b"/" in key else key),
            keys.__getitem__,
            list_parts,
        )

    def fetch_records(self, ids: Sequence[DatafileId], *, sure: bool = False) -> list[Datafile]:
        """Return what is stored now under the names of files that were being replaced."""
        where, wanted = self._destination, set(ids)
        left = [it for it in where.ledger.find_replacements() if it.datafile in wanted]
        paths = [_encode(it.remote) for it in left]
        found = where.call(lambda: where.files.prove(paths)) if paths else []
        now = where.gate.clock.now().isoformat()
        records = []
        for it, proven in zip(left, found, strict=True):
            size, checksum = (proven.file.size, proven.checksum) if proven else (it.kept_size, "")
            replica = Replica(it.remote, BOX, verified=proven is not None, verified_at=now)
            records.append(_record(it, size, checksum, replica))
        return records

    def change_records(self, changes: Sequence[Registration]) -> None:
        """Do nothing: the next run that proves these files lists them."""

    def request_verification(self, ids: Sequence[DatafileId]) -> None:
        """Do nothing: `fetch_records` reads the stored bytes."""

    def withdraw(self, remotes: Sequence[str]) -> None:
        paths = set(map(_encode, remotes))
        self._destination.call(lambda: self._destination.manifest.withdraw(paths))

    def bring_back(self, copy: KeptCopy) -> BroughtBack:
        where, place, kept = self._destination, _encode(copy.remote), _encode(copy.path)
        if not where.files.has_temporary_names:
            raise ItemError(
                "In a bucket, earlier content cannot be brought back by this program.",
                hint=f"It is kept as {copy.path}: copy that object to where it is needed.",
                code=NOT_KEPT.code,
            )
        stored, present = where.call(lambda: where.files.prove([kept, place]))
        if stored is None or (stored.file.size, stored.checksum) != (copy.size, copy.checksum):
            raise _refuse(NOT_KEPT)
        where.call(lambda: where.manifest.withdraw([place]))
        newer = None
        if present:
            newer = copy._replace(
                path=kept_path(copy.remote, present.checksum),
                size=present.file.size,
                checksum=present.checksum,
                modified=moment_of_ns(present.file.modified_ns).isoformat(),
                verified_at=where.gate.clock.now().isoformat(),
                at=0,
                until=0,
            )
            self._move(place, _encode(newer.path))
        file = self._move(kept, place)
        at = int(where.gate.clock.now().timestamp())
        where.call(lambda: where.manifest.add([ProvenFile(file, copy.checksum)], at))
        return BroughtBack(DatafileId(file.mark), newer)

    def _move(self, path: bytes, final: bytes) -> StoredFile:
        where, placement = self._destination, Placement(path, final, USUAL_MODE)
        (result,) = where.call(lambda: where.files.place([placement]))
        if isinstance(result, Problem):
            raise _refuse(result)
        return result

    def note_new(self, entries: Sequence[Entry]) -> None:
        """Do nothing: the ledger believes nothing that was not proven or listed with it."""

    def audit(self) -> None:
        """Do nothing; see `note_new`."""

    def finish_audit(self) -> None:
        """Do nothing; see `note_new`."""


def _refuse(problem: Problem) -> ItemError:
    return ItemError(problem.message, hint=problem.hint, code=problem.code)


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _record(replaced: Replacement, size: int, checksum: str, replica: Replica) -> Datafile:
    folder, _, name = replaced.remote.rpartition("/")
    return Datafile(
        replaced.datafile, replaced.dataset, folder, name, size, checksum, "", (replica,)
    )


def identify(
    files: DestinationFiles,
    known: str,
    algorithm: Algorithm | None = None,
    *,
    create: bool = True,
) -> DestinationMarker:
    """Return the marker of an open destination, which is marked if it has none.

    Its files use the algorithm of its checksums from then on, which is chosen once: None is that of
    the marker, or of a manifest without one, or MD5. Raises `SettingsError` if the destination has
    another, and `StagingError` if it is not the one that is `known` from earlier runs.
    """
    found = read_marker(files.read(MARKER))
    if known and not found.id:
        raise StagingError(
            "The destination has lost its marker: earlier runs had put .mydata-like there.",
            hint="Check that it is mounted. If it was emptied on purpose, run again with "
            "--accept-missing.",
            code="destination.absent",
        )
    if known and found.id != known:
        raise StagingError(
            "This is another destination than in earlier runs: its marker has another id.",
            hint="Check what is mounted there. If it was replaced on purpose, run again with "
            "--accept-missing.",
            code="destination.other",
        )
    if not found.id:
        found = DestinationMarker("", algorithm or find_algorithm(files))
        files.use(found.algorithm)
        if create:
            new = found._replace(id=str(uuid.uuid4()))
            made = files.write(MARKER, format_marker(new))
            found = new if made else read_marker(files.read(MARKER))  # another run was faster
    if algorithm not in (None, found.algorithm):
        raise SettingsError(
            f"The destination has {found.algorithm.label} checksums, which its first copy has "
            "chosen.",
            hint="Copy without --checksum, or to another destination.",
            code="destination.checksum",
        )
    files.use(found.algorithm)
    return found
