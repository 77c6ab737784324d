"""Keeps in the ledger how far files have come; those in an archive come as far as it does."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mydata_like.core.archives import Archive
from mydata_like.core.events import FileVerified
from mydata_like.core.model import DatafileId, Entry, EntryState, Registered, Staged, Wanted
from mydata_like.core.ports import Emit, Ledger
from mydata_like.engine.queues import Source


class Step(NamedTuple):
    """How far a wanted file or archive has come."""

    wanted: Wanted
    state: EntryState
    checksum: str
    datafile: DatafileId | None = None


class Verified(NamedTuple):
    """What the server was seen to have verified, with the ids of its records."""

    items: Sequence[Registered]


class Record:
    """The stage that keeps and tells what is verified, while the next records are looked at.

    It passes on what is to be sent or registered once more.
    """

    def __init__(self, ledger: Ledger, emit: Emit) -> None:
        self._ledger = ledger
        self._emit = emit

    def __call__(self, source: Source[Wanted | Staged | Verified]) -> Iterator[Wanted | Staged]:
        for found in source:
            if isinstance(found, Verified):
                self._record(found.items)
            else:
                yield found

    def _record(self, items: Sequence[Registered]) -> None:
        steps = (Step(it.wanted, EntryState.VERIFIED, it.checksum, it.datafile) for it in items)
        record_steps(self._ledger, steps)
        for item in items:
            for file, checksum in item.wanted.checked_files(item.checksum):
                self._emit(FileVerified(path=file.key, size=file.size, checksum=checksum))


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


def _record(ledger: Ledger, steps: Iterable[Step]) -> list[tuple[Archive, Step]]:
    """Keep what has a record of its own; return the archives."""
    entries, archives = [], []
    for step in steps:
        if step.wanted.members:
            archives.append((Archive.of(*step), step))
        else:
            entries.append(Entry.of(*step))
    if entries:
        ledger.record(entries)
    return archives
