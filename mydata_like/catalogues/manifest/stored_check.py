"""The proof that a destination without a server has a file now, before the local one is deleted."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mydata_like.core.destination_files import DestinationFiles, ProvenFile, StoredFile
from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.model import Datafile, DatafileId, Entry, Recheck
from mydata_like.core.ports import Clock
from mydata_like.engine.local_cleanup import SETTLING, judge_entry

FRESH: Final = 30.0  # seconds for which attributes are valid
LARGE: Final = 1024**3  # bytes; larger files are hashed there before the local one is renamed

NO_FILE: Final = Problem(
    "free.no-record",
    "The destination no longer has this file.",
    "Keep the file. The next run sends it again.",
)
DIFFERS: Final = Problem(
    "free.differs",
    "The file at the destination is not the one that was proven.",
    "Keep the file. The next run compares it again.",
)


class Stored(NamedTuple):
    """Files at the destination by their keys; `proven` ones were hashed there as well."""

    files: Mapping[bytes, StoredFile | None]
    proven: Mapping[bytes, ProvenFile | None]
    at: float


class StoredCheck:
    """The check of files at a destination; see `Proof`.

    What counts is its own checksum of a file while the local one has another name: so both cannot
    be the same file. For a large file, which would have that name for long, the checksum comes
    before, and its attributes after. To preview (`delete` is false), attributes are enough.
    """

    def __init__(
        self, files: DestinationFiles, clock: Clock, settle: float, *, delete: bool
    ) -> None:
        self._files = files
        self._clock = clock
        self._settle = settle
        self._delete = delete
        self._proven: set[DatafileId] = set()  # large files that were hashed

    def fetch(self, entries: Sequence[Entry], *, large: bool = False) -> Stored:
        at, paths = self._clock.monotonic(), [_path_of(it) for it in entries]
        keys = [it.key for it in entries]
        if not large:
            return Stored(dict(zip(keys, self._files.look(paths), strict=True)), {}, at)
        proven = self._files.prove(paths)
        files = [it.file if it else None for it in proven]
        return Stored(
            dict(zip(keys, files, strict=True)),
            dict(zip(keys, proven, strict=True)),
            self._clock.monotonic(),
        )

    def judge(self, entry: Entry, evidence: Stored) -> Datafile | Problem:
        if known := judge_entry(entry):
            return known
        if entry.modified_ns > (self._clock.now().timestamp() - self._settle) * 1e9:
            return SETTLING
        found = evidence.files.get(entry.key)
        if found is None:
            return NO_FILE
        if found.size != entry.size or found.mark != entry.datafile:
            return DIFFERS
        if entry.key in evidence.proven:
            proven = evidence.proven[entry.key]
            if proven is None or proven.checksum != entry.checksum:
                return DIFFERS
            self._proven.add(DatafileId(found.mark))
        folder, _, name = entry.remote.rpartition("/")
        return Datafile(
            DatafileId(found.mark), entry.dataset, folder, name, entry.size, entry.checksum, "", ()
        )

    def is_stale(self, evidence: Stored) -> bool:
        return self._clock.monotonic() - evidence.at > FRESH

    def was_verified_again(self, proof: Datafile) -> bool:
        """Return whether nothing is left to be asked but `confirm`."""
        return not self._delete or proof.size < LARGE or proof.id in self._proven

    def confirm(self, entry: Entry) -> None:
        path = _path_of(entry)
        if entry.size < LARGE:
            proven = self._files.prove([path])[0]
            same = proven is not None and proven.checksum == entry.checksum
        else:
            found = self._files.look([path])[0]
            same = found is not None and found.mark == entry.datafile
        if not same:
            raise ItemError(DIFFERS.message, hint=DIFFERS.hint, code=DIFFERS.code)

    def find_doubted(self, entry: Entry, problem: Problem) -> Recheck | None:
        return Recheck(entry.dataset, entry.key) if problem in (NO_FILE, DIFFERS) else None


def _path_of(entry: Entry) -> bytes:
    return entry.remote.encode("utf-8", "surrogateescape")
