"""Keeps in the ledger how far files have come; those in an archive come as far as it does."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.model import DatafileId, Entry, EntryState, FileToSend, Registered
from mydata_like.core.ports import Ledger


class Step(NamedTuple):
    """How far a wanted file or archive has come."""

    wanted: FileToSend
    state: EntryState
    checksum: str
    datafile: DatafileId | None = None


class Verified(NamedTuple):
    """What the server was seen to have verified, with the ids of its records."""

    items: Sequence[Registered]


def record_staged(ledger: Ledger, steps: Iterable[Step]) -> None:
    """Keep what has just been sent; an archive holds what was sent in it, and nothing else."""
    for archive, step in _record(ledger, steps):
        members = step.wanted.members
        ledger.record_archive(
            archive, [archive.entry(member.file, member.checksum) for member in members]
        )


def record_steps(ledger: Ledger, steps: Iterable[Step]) -> None:
    """Keep how far what was sent has come since."""
    for archive, _ in _record(ledger, steps):
        ledger.record_archive(archive)


def _record(ledger: Ledger, steps: Iterable[Step]) -> list[tuple[ArchiveRecord, Step]]:
    """Keep what has a record of its own; return the archives."""
    entries, archives = [], []
    for step in steps:
        if step.wanted.members:
            archives.append((ArchiveRecord.of(*step), step))
        else:
            entries.append(Entry.of(*step))
    if entries:
        ledger.record(entries)
    return archives
