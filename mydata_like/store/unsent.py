"""The large files that a ledger knows and the server has not verified: their sending may go on."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.store import schema
from mydata_like.store.listing import connect_to_current

_FILES: Final = (
    "SELECT key, size, modified_ns FROM entries WHERE state != 'verified' AND size >= :least"
    " UNION SELECT path, size, modified_ns FROM outcomes"
    " WHERE outcome IN ('found', 'waiting', 'failed') AND size >= :least"
)
_ARCHIVES: Final = (
    "SELECT CAST(path AS BLOB), size, modified_ns FROM archives"
    " WHERE state != 'verified' AND size >= :least"
)
_ASIDE: Final = (".corrupt-", ".before-v")  # what the names of no ledgers in use have


class Unsent(NamedTuple):
    """One of them, by its name without folders."""

    name: bytes
    size: int
    modified_ns: int


def find_unsent(state: Path, least: int) -> Iterator[Unsent]:
    """Yield those of at least so many bytes that any ledger below a state folder knows.

    Raises `RunError` where a ledger cannot be read: then nobody knows.
    """
    for folder in (state, *state.glob("shard-*-of-*")):
        for file in folder.glob("ledger-*.db"):
            if not any(word in file.name for word in _ASIDE):
                yield from _find(file, least)


def _find(file: Path, least: int) -> Iterator[Unsent]:
    connection = connect_to_current(file)
    if connection is None:
        return
    with closing(connection):
        try:
            for query in (_FILES, _ARCHIVES):
                for key, size, modified_ns in connection.execute(query, {"least": least}):
                    yield Unsent(bytes(key).rpartition(b"/")[2], size, modified_ns)
        except schema.FAILURES as error:
            raise schema.failure(file, error) from error
