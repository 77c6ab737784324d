"""Folders and files outside the data directory that the user added."""

import os
from datetime import datetime
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from mydata_like.core.data_directory import spell_completely
from mydata_like.core.errors import SourceError
from mydata_like.core.formatting import format_path

LONGEST_NAME: Final = 400  # characters; the server's limit for titles


class Destination(NamedTuple):
    """The owner, experiment and dataset of a source; an empty owner is the account itself.

    The owner is named as in the folders of the layout: by user name, e-mail address or group.
    """

    owner: str
    experiment: str
    dataset: str


class SourceRequest(NamedTuple):
    """A folder or file to upload; without a destination, its earlier or default names are used."""

    path: bytes
    destination: Destination | None = None


class ExtraSource(NamedTuple):
    """A folder or file outside the data directory, and its destination.

    `path` is absolute, separated by `/`; the keys of its files begin with it.
    """

    path: bytes
    destination: Destination
    alone: bool = False  # it is a single file

    @property
    def folder(self) -> bytes:
        """The folder that becomes a dataset; that of a single file has no other files."""
        return self.path.rpartition(b"/")[0] if self.alone else self.path


class KnownSource(NamedTuple):
    """A source in the ledger; `finished` is when all of it was verified.

    `open_files` and `open_bytes` are its known files that are not verified. They are None if they
    were not requested, or if no run has scanned the source yet.
    """

    path: bytes
    destination: Destination
    added: datetime
    finished: datetime | None
    open_files: int | None = None
    open_bytes: int | None = None


def parse_destination(text: str) -> Destination:
    """Parse `OWNER/EXPERIMENT/DATASET`; the owner is optional."""
    parts = text.split("/")
    if len(parts) not in (2, 3):
        shown = format_path(text.encode("utf-8", "backslashreplace"))
        raise SourceError(
            f"{shown} does not name an experiment and a dataset.",
            hint="Write EXPERIMENT/DATASET, or OWNER/EXPERIMENT/DATASET.",
            code="source.name",
        )
    return check_destination(Destination(*["", *parts][-3:]))


def check_destination(destination: Destination) -> Destination:
    """Return the names as sent to the server; raises `SourceError` for invalid ones."""
    named = Destination(*(name.strip() for name in destination))
    for part, name in zip(("owner", "experiment", "dataset"), named, strict=True):
        if (why := _find_fault(name)) and (name or part != "owner"):
            raise SourceError(
                f"The server cannot store the name of the {part}: {why}.",
                hint="Choose another name.",
                code="source.name",
            )
    return named


def lies_in(path: bytes, folder: bytes) -> bool:
    """Return whether a key is a folder's own or that of something in it."""
    return path == folder or path.startswith(folder + b"/")


def source_key(path: Path) -> bytes:
    """Return the ledger's key of a path outside the data directory, as its folders list it.

    Links are not resolved; only the name of the path matters. A drive of Windows is `E:`.
    """
    complete = Path(os.path.normpath(path.absolute()))
    return os.fsencode(spell_completely(complete).as_posix()).rstrip(b"/")


def suggest_destination(path: bytes, *, alone: bool = False) -> Destination:
    """Return default names for a folder: its own, and that of the folder above it.

    A file gets the names of its folder, a drive its letter, a network share its own name.
    """
    folder = PurePath(path.decode("utf-8", "replace"))
    if alone:
        folder = folder.parent
    name = folder.name or folder.drive.rstrip(":").rpartition("\\")[2]
    return Destination("", folder.parent.name or name, name)


def _find_fault(name: str) -> str:
    """Return what is wrong with a name; empty if it is valid."""
    if not name:
        return "it is empty"
    if len(name) > LONGEST_NAME:
        return f"it has more than {LONGEST_NAME} characters"
    plain = format_path(name.encode("utf-8", "backslashreplace"))
    return "" if plain == name else f"{plain} has characters that cannot be shown"
