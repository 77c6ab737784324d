"""What this computer knows of destinations without a server: the last copy and the last check."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from mydata_like.app.ledgers import list_ledgers, reading
from mydata_like.app.settings_service import find_places, find_state
from mydata_like.catalogues.manifest.verify_records import LastRestore as LastRestore
from mydata_like.catalogues.manifest.verify_records import LastVerify as LastVerify
from mydata_like.catalogues.manifest.verify_records import RestoreRecord
from mydata_like.core.destination_files import EVIDENCE
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Settings, check_values
from mydata_like.state.state_files import load_record, save_record, to_plain

T = TypeVar("T")

COPIES: Final = "copies"  # the folder of the state of all copies
KNOWN_ID: Final = "destination-id"  # the ledger's key for the id in the destination's marker
WEAKEST: Final = "weakest-evidence"  # that for the weakest kind of evidence of all runs
_ADDRESS: Final = "address.json"
_RUN: Final = "run-*.json"
_CHECK: Final = "check-*.json"
_RESTORE: Final = "restore-test-*.json"


class CopyRun(NamedTuple):
    """The last run to a destination: its end, the files that it found, and those proven then."""

    destination: str
    at: datetime
    found: int
    proven: int


class CopyCheck(NamedTuple):
    """The last check of a destination that was made on this computer.

    `id` is that of its marker; earlier versions did not note it.
    """

    destination: str
    result: LastVerify
    id: str = ""


class CopyRestore(NamedTuple):
    """The last restore test of a destination that was made on this computer; see `CopyCheck`."""

    destination: str
    record: RestoreRecord
    id: str


class LastChecks(NamedTuple):
    """The last check of a destination and its last restore test, as far as there were any."""

    verify: LastVerify | None
    restore: LastRestore | None


class CopyAddress(NamedTuple):
    """Where the files of a ledger of `copy` went, as it is written on the command line."""

    address: str


class RestoredFiles(NamedTuple):
    """The files that `get` has brought back to their places here, and when the last one came."""

    destination: str
    files: int
    last: datetime

    def as_record(self) -> Mapping[str, object]:
        """Return it as plain values for JSON; docs/headless.md describes them."""
        return self._asdict() | {"last": self.last.isoformat()}


class KnownCopy(NamedTuple):
    """A destination, and what was last done with it on this computer."""

    destination: str
    run: CopyRun | None
    check: LastVerify | None
    restore_test: LastRestore | None

    @property
    def checks(self) -> LastChecks:
        """What was last found there."""
        return LastChecks(self.check, self.restore_test)

    def as_record(self) -> Mapping[str, object]:
        """Return it as plain values for JSON; docs/headless.md describes them."""
        record: Mapping[str, object] = to_plain(self)
        return record


def note_address(folder: Path, address: str) -> None:
    """Keep where copies with this folder of the state go; an error of the disk is only logged."""
    save_record(folder / _ADDRESS, CopyAddress(address))


def list_addresses(config: Path | None) -> Iterator[tuple[Settings, str]]:
    """Yield settings that lead to the ledger of each copy, and its destination; newest first."""
    found = _find_folder(config).glob(f"*/{_ADDRESS}")
    for file in sorted(found, key=lambda it: it.stat().st_mtime, reverse=True):
        settings, _ = check_values({"data.directory": str(file.parent)})
        if settings and (record := load_record(file, CopyAddress)):
            yield settings, record.address


def note_run(run: CopyRun, config: Path | None) -> None:
    """Keep the result of a run; an error of the disk is only logged."""
    save_record(_find_file(_RUN, run.destination, config), run)


def note_check(check: CopyCheck, config: Path | None) -> None:
    """Keep the result of a check; an error of the disk is only logged."""
    save_record(_find_file(_CHECK, check.destination, config), check)


def note_restore(test: CopyRestore, config: Path | None) -> None:
    """Keep the result of a restore test; an error of the disk is only logged."""
    save_record(_find_file(_RESTORE, test.destination, config), test)


def find_restore(destination: str, name: str, config: Path | None) -> RestoreRecord | None:
    """Return the last restore test on this computer of a destination with this id."""
    known = load_record(_find_file(_RESTORE, destination, config), CopyRestore)
    return known.record if known and known.id == name else None


def list_copies(config: Path | None) -> list[KnownCopy]:
    """Return the known destinations in alphabetical order."""
    run = {it.destination: it for it in _load(_RUN, CopyRun, config)}
    check = {it.destination: it.result for it in _load(_CHECK, CopyCheck, config)}
    restore = {it.destination: it.record.result for it in _load(_RESTORE, CopyRestore, config)}
    return [
        KnownCopy(name, run.get(name), check.get(name), restore.get(name))
        for name in sorted({*run, *check, *restore})
    ]


def find_checks(settings: Settings, config: Path | None) -> LastChecks:
    """Return the last checks of the destination of these settings, whatever it was called then.

    There are none if this computer has made none, or if no run has sent anything there. Raises
    `UploaderError` if the ledger cannot be read.
    """
    with reading(settings, config) as ledger:
        known = (ledger.find_meta(KNOWN_ID) if ledger else None) or None
    checks = [it.result for it in _load(_CHECK, CopyCheck, config) if it.id == known]
    tests = [it.record.result for it in _load(_RESTORE, CopyRestore, config) if it.id == known]
    return LastChecks(
        max(checks, key=lambda it: it.at, default=None),
        max(tests, key=lambda it: it.at, default=None),
    )


def list_restored(settings: Settings, config: Path | None) -> list[RestoredFiles]:
    """Return what was brought back from the destination of these settings, and of copies.

    Raises `UploaderError` if a ledger cannot be read.
    """
    sent = settings.destination
    own = sent.address if sent.takes_tree else settings.server.url
    found = dict[str, RestoredFiles]()
    for known, place in [(settings, own), *list_addresses(config)]:
        for shard, _ in list_ledgers(known, config):
            with reading(known, config, shard) as ledger:
                files, last = ledger.count_restored() if ledger else (0, None)
            if last:
                before = found.get(place, RestoredFiles(place, 0, last))
                files += before.files
                found[place] = RestoredFiles(place, files, max(before.last, last))
    return list(found.values())


def note_evidence(ledger: SqliteLedger, evidence: str) -> None:
    """Note in a ledger how a run proves files, before that run notes the id of the destination.

    The weakest of all runs counts; it stays unknown if that of an earlier run is.
    """
    known = ledger.find_meta(WEAKEST) if ledger.find_meta(KNOWN_ID) else evidence
    if known:
        ledger.record_meta(WEAKEST, min(known, evidence, key=EVIDENCE.index))


def find_evidence(settings: Settings, config: Path | None) -> str:
    """Return the weakest kind of evidence of the files in these ledgers; empty if it is unknown."""
    kinds = set[str]()
    for shard, _ in list_ledgers(settings, config):
        with reading(settings, config, shard) as ledger:
            if ledger is not None:
                kinds.add(ledger.find_meta(WEAKEST) or "")
    return "" if "" in kinds else min(kinds, key=EVIDENCE.index, default="")


def _load(pattern: str, kind: type[T], config: Path | None) -> list[T]:
    records = [load_record(it, kind) for it in _find_folder(config).glob(pattern)]
    return [it for it in records if it is not None]


def _find_folder(config: Path | None) -> Path:
    return find_state(Settings(), find_places(config)) / COPIES


def _find_file(pattern: str, destination: str, config: Path | None) -> Path:
    digest = hashlib.sha256(destination.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return _find_folder(config) / pattern.replace("*", digest)
