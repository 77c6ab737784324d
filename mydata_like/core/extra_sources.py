"""Folders and files outside of the data directory that a person wants to be carried as well."""

from datetime import datetime
from pathlib import PurePath
from typing import Final, NamedTuple

from mydata_like.core.errors import SourceError
from mydata_like.core.formatting import format_path

LONGEST_NAME: Final = 400  # characters; the server's own limit of titles


class Destination(NamedTuple):
    """What a source becomes on the server; without an owner it is the account's own.

    The owner is named as the layout's folders of owners are: by user name, e-mail or group.
    """

    owner: str
    experiment: str
    dataset: str


class SourceRequest(NamedTuple):
    """A folder or file that is to be carried; without a destination as it was or is called."""

    path: bytes
    destination: Destination | None = None


class ExtraSource(NamedTuple):
    """A folder or file outside of the data directory, and what it becomes.

    `path` is absolute, with `/` between its names: what the keys of its files begin with.
    """

    path: bytes
    destination: Destination
    alone: bool = False  # it is a single file

    @property
    def folder(self) -> bytes:
        """The folder that becomes a dataset: that of a single file has no other files."""
        return self.path.rpartition(b"/")[0] if self.alone else self.path


class KnownSource(NamedTuple):
    """A source as the ledger remembers it; `finished` is when all of it was safe.

    `open_files` and `open_bytes` are what is known of it and not verified, None where that was
    not asked or no run has looked at it yet.
    """

    path: bytes
    destination: Destination
    added: datetime
    finished: datetime | None
    open_files: int | None = None
    open_bytes: int | None = None


def parse_destination(text: str) -> Destination:
    """Return what `OWNER/EXPERIMENT/DATASET` says; the owner may be left out."""
    parts = text.split("/")
    if len(parts) not in (2, 3):
        shown = format_path(text.encode("utf-8", "backslashreplace"))
        raise SourceError(
            f"Nobody can tell what a folder is to become as {shown}.",
            hint="Write EXPERIMENT/DATASET, or OWNER/EXPERIMENT/DATASET.",
            code="source.name",
        )
    return check_destination(Destination(*["", *parts][-3:]))


def check_destination(destination: Destination) -> Destination:
    """Return the names as the server gets them; raises `SourceError` where it cannot hold them."""
    named = Destination(*(name.strip() for name in destination))
    for part, name in zip(("owner", "experiment", "dataset"), named, strict=True):
        if (why := _find_fault(name)) and (name or part != "owner"):
            raise SourceError(
                f"The server cannot hold the name of the {part}: {why}.",
                hint="Choose another name.",
                code="source.name",
            )
    return named


def lies_in(path: bytes, folder: bytes) -> bool:
    """Return whether a key is that of a folder, or of something in it."""
    return path == folder or path.startswith(folder + b"/")


def suggest_destination(path: bytes, *, alone: bool = False) -> Destination:
    """Return what a folder is called after: its own name, and that of the folder above it.

    Files are called after the folder in which they are.
    """
    folder = PurePath(path.decode("utf-8", "replace"))
    if alone:
        folder = folder.parent
    return Destination("", folder.parent.name or folder.name, folder.name)


def _find_fault(name: str) -> str:
    """Return what is wrong with a name; empty where nothing is."""
    if not name:
        return "it is empty"
    if len(name) > LONGEST_NAME:
        return f"it has more than {LONGEST_NAME} characters"
    plain = format_path(name.encode("utf-8", "backslashreplace"))
    return "" if plain == name else f"{plain} has characters that cannot be shown"
