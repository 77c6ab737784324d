"""The held changed files, and what the user chooses for them.

Only a run writes the ledger's rows of files. A choice is left next to it in a file, for the file in
one state; the next run records it in the ledger and removes the file.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.app.file_status_service import Disk
from mydata_like.app.held_choices import find_choices, select_choices, write_choice
from mydata_like.app.ledgers import list_ledgers, reading
from mydata_like.core.data_directory import WHOLE, find_key
from mydata_like.core.errors import ItemError, Problem
from mydata_like.core.extra_sources import lies_in, source_key
from mydata_like.core.file_status import LocalFacts
from mydata_like.core.model import ChangeChoice, ChangedFile, HoldReason, VerifiedCopy
from mydata_like.engine.changed_files import describe_hold
from mydata_like.ledger.sql import find_whole_run, is_newer
from mydata_like.settings.schema import Settings

_RUNS: Final = 100  # the latest ones, to find the newest over everything
AT_ONCE: Final = 2000  # choices in one file, whose size is limited


class HeldFile(NamedTuple):
    """A held file. `choice` is the user's, `changed_again` that it is not as a run has seen it."""

    changed: ChangedFile
    choice: ChangeChoice
    changed_again: bool
    ledger: Path  # its ledger

    @property
    def problem(self) -> Problem:
        """Why it is held."""
        changed = self.changed
        copy = VerifiedCopy(changed.copy_size, changed.copy_checksum, changed.copy_verified_at)
        return describe_hold(changed, copy, changed.hold)

    def allows(self, choice: ChangeChoice) -> bool:
        """Return whether this choice can be made for it."""
        hopeless = choice is ChangeChoice.REPLACE and self.changed.hold is HoldReason.HTTP
        return not self.changed_again and not hopeless


def list_held(settings: Settings, config: Path | None) -> list[HeldFile]:
    """Return the held files that exist; raises `RunError` if a ledger cannot be read."""
    root = settings.data.directory
    if root is None:
        return []
    disk = Disk(settings, config, root)
    held: list[HeldFile] = []
    whole = None
    for shard, file in list_ledgers(settings, config):
        with reading(settings, config, shard) as ledger:
            if ledger is None:
                continue
            runs, rows = ledger.find_runs(_RUNS), ledger.list_held()
        if shard == WHOLE:
            whole = find_whole_run(runs)
        elif not is_newer(next(iter(runs), None), whole):
            continue
        made = {choice.key: choice for choice in select_choices(find_choices(file), rows)}
        for row in rows:
            if facts := disk.look(row.key).facts:
                choice = made.get(row.key, row).choice
                held.append(HeldFile(row, choice, not _is_same(row, facts), file))
    return held


def _is_same(row: ChangedFile, now: LocalFacts) -> bool:
    # Windows reports no inode when it lists a folder.
    same_inode = not row.inode or not now.inode or row.inode == now.inode & (2**63 - 1)
    same_ctime = not row.ctime_ns or not now.ctime_ns or row.ctime_ns == now.ctime_ns
    same = (row.size, row.modified_ns) == (now.size, now.modified_ns)
    return same and same_ctime and same_inode


def choose(held: Sequence[HeldFile], choice: ChangeChoice) -> list[HeldFile]:
    """Leave a choice for held files to the next run; return those to which it does not apply.

    Those that have changed again must be seen by a run first, and over HTTP nothing is replaced.
    Raises `RunError` if the choice cannot be stored.
    """
    asked = [one for one in held if one.allows(choice)]
    for ledger in {one.ledger for one in asked}:
        ours = [one.changed for one in asked if one.ledger == ledger]
        for start in range(0, len(ours), AT_ONCE):
            write_choice(ledger, choice, ours[start : start + AT_ONCE])
    return [one for one in held if not one.allows(choice)]


def select_held(
    held: Sequence[HeldFile], settings: Settings, paths: Sequence[str]
) -> Iterator[HeldFile]:
    """Yield the held files at and below paths; raises `ItemError` if there is none at one."""
    root = settings.data.directory or Path()
    found: dict[bytes, HeldFile] = {}
    for text in paths:
        ours: list[HeldFile] = []
        for path in (Path.cwd() / text, root / text):
            key = find_key(root, path)
            key = source_key(path) if key is None else key
            ours = ours or [one for one in held if not key or lies_in(one.changed.key, key)]
        if not ours:
            raise ItemError(
                f"No changed file is held at {text}.",
                hint="To list all of them, run: mydata-like changed list",
                code="changed.unknown",
            )
        found.update((one.changed.key, one) for one in ours)
    yield from found.values()
