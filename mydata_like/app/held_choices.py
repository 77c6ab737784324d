"""The user's choices for held files: files next to the ledger, which the next run takes.

Only a run writes the ledger's rows of files. A choice is for a file in one state.
"""

import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path

from mydata_like.core.errors import RunError
from mydata_like.core.model import ChangeChoice, ChangedFile
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.state.state_files import FileState, HeldChoices, load_record, save_record

logger = logging.getLogger(__name__)


def write_choice(ledger: Path, choice: ChangeChoice, rows: Sequence[ChangedFile]) -> None:
    """Leave a choice for held files to the next run; raises `RunError` if that fails."""
    files = {
        row.key.decode("utf-8", "surrogateescape"): FileState(
            row.size, row.modified_ns, row.ctime_ns, row.inode
        )
        for row in rows
    }
    name = f"{_prefix(ledger)}-{time.time_ns():020}-{secrets.token_hex(4)}.json"
    if not save_record(ledger.with_name(name), HeldChoices(choice.value, files)):
        raise RunError(
            "The choice cannot be written into the state folder.",
            hint="Check that the disk is not full, and that the folder is writable.",
            code="changed.unwritten",
        )


def _prefix(ledger: Path) -> str:
    return f"choices-{ledger.stem.removeprefix('ledger-')}"


def find_choices(ledger: Path) -> list[Path]:
    """Return the files of choices that no run has taken, the oldest first."""
    return sorted(ledger.parent.glob(f"{escape(_prefix(ledger))}-*.json"))


def select_choices(files: Iterable[Path], rows: Iterable[ChangedFile]) -> Iterator[ChangedFile]:
    """Yield held files with the choices made for them in their present state."""
    by_key = {row.key: row for row in rows}
    for file in files:
        choices = load_record(file, HeldChoices)
        if choices is None or choices.choice not in list(ChangeChoice):
            continue
        for text, state in choices.files.items():
            row = by_key.get(text.encode("utf-8", "surrogateescape"))
            if row and FileState(row.size, row.modified_ns, row.ctime_ns, row.inode) == state:
                yield row._replace(choice=ChangeChoice(choices.choice))


def read_choices(ledger: SqliteLedger, file: Path) -> list[ChangedFile]:
    """Return what the user has chosen since the last run."""
    files = find_choices(file)
    return list(select_choices(files, ledger.list_held())) if files else []


def take_choices(ledger: SqliteLedger, file: Path) -> None:
    """Record in the ledger what the user has chosen since the last run."""
    files = find_choices(file)
    if not files:
        return
    choices = list(select_choices(files, ledger.list_held()))
    ledger.choose(choices)
    logger.info("%d choices for changed files were taken", len(choices))
    for taken in files:
        with suppress(OSError):
            taken.unlink(missing_ok=True)
