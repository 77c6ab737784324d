"""Rows of the ledger as values; what we cannot have written is left out."""

import logging
from collections.abc import Mapping
from datetime import datetime
from types import NoneType
from typing import Any, NamedTuple

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.model import Entry, EntryState
from mydata_like.core.parsing import moment_of, parse_json, parse_moment

logger = logging.getLogger(__name__)

STATE_BY_TEXT = {state.value: state for state in EntryState}
KINDS = frozenset(
    (bytes, int, int, str, int, str, str, datafile, str, str, seen, seen)
    for datafile in (int, NoneType)
    for seen in (int, NoneType)
)
ARCHIVE_KINDS = frozenset(
    (int, str, int, int, str, str, str, datafile) for datafile in (int, NoneType)
)


class PastRun(NamedTuple):
    """A run as the ledger remembers it; `finished` is None where it was cut off."""

    run: str
    started: datetime
    finished: datetime | None
    summary: Mapping[str, object]


def moment(seconds: int) -> datetime:
    """Return the time that a row tells in whole seconds since 1970, the nearest there is."""
    return moment_of(seconds if isinstance(seconds, int | float) else 0)


def parse_entry(row: tuple[Any, ...]) -> Entry | None:
    """Return a row as an entry, or None for one that we cannot have written."""
    state = STATE_BY_TEXT.get(row[3])
    if state is None or tuple(map(type, row)) not in KINDS:
        logger.warning("The ledger has a row that makes no sense; it is left out")
        return None
    return Entry(row[0], row[1], row[2], state, *row[4:])


def parse_archive(row: tuple[Any, ...]) -> ArchiveRecord | None:
    """Return a row as an archive, or None for one that we cannot have written."""
    state = STATE_BY_TEXT.get(row[4])
    if state is None or tuple(map(type, row)) not in ARCHIVE_KINDS:
        logger.warning("The ledger has an archive that makes no sense; it is left out")
        return None
    dataset, path, size, modified_ns, _, *rest = row
    return ArchiveRecord(dataset, path, size, modified_ns, state, *rest)


def parse_run(row: tuple[object, ...]) -> PastRun | None:
    """Return a row as a run, or None for one that we cannot have written."""
    try:
        run, started, finished, summary = (str(value) if value else "" for value in row)
        end = parse_moment(finished) if finished else None
        return PastRun(run, parse_moment(started), end, dict(parse_json(summary)))
    except (ValueError, TypeError):
        logger.warning("The ledger has a run that makes no sense; it is left out")
        return None
