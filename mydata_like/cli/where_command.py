"""`mydata-like where`: the status of a local file or folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mydata_like.app.file_status_service import find_files, find_status
from mydata_like.app.host_login import parse_destination
from mydata_like.app.known_copies import list_addresses
from mydata_like.app.settings_service import load_settings
from mydata_like.cli.options import ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import (
    describe_problem,
    format_comparison,
    name_destination,
    print_json,
    print_lines,
    reword,
)
from mydata_like.core.checksums import Algorithm
from mydata_like.core.file_status import FileSafety, FileStatus, KnownOutcome, UnknownReason
from mydata_like.core.formatting import format_path, format_size
from mydata_like.core.model import EntryState
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

UNKNOWN_EXIT = 1
_SAFETY = {
    FileSafety.VERIFIED: "verified: safe on the server",
    FileSafety.UNCERTAIN: (
        "may have changed since it was verified: the next run checks it, and sends it if it has"
    ),
    FileSafety.CHANGED: "changed since it was sent: the server does not have these bytes",
    FileSafety.DOUBTFUL: "not known to be safe: an answer of the server contradicts that",
    FileSafety.UNSENT: "not on the server",
    FileSafety.GONE_VERIFIED: "verified: the server had a verified copy when it was last asked",
    FileSafety.GONE: "not verified, and no longer here",
    FileSafety.UNREADABLE: "the local file cannot be looked at now",
    FileSafety.UNKNOWN: "nothing is known of it",
}
_PENDING = {
    EntryState.STAGED: "in the staging area; the server does not know it yet",
    EntryState.REGISTERED: "registered; the server has not verified it yet",
    EntryState.REPAIRED: "being replaced; the server has not verified its new bytes yet",
}
_REMARKS = {
    FileSafety.CHANGED: "The local file has changed since; the next run takes it.",
    FileSafety.GONE_VERIFIED: "The local file is no longer there.",
    FileSafety.GONE: "The local file is no longer there.",
}
_UNKNOWN = {
    UnknownReason.OUTSIDE: "It does not lie below the data directory, and was never a source.",
    UnknownReason.UNSEEN: "No run has come across it: it may be new, or left out by the layout.",
    UnknownReason.ABSENT: "There is no such file below the data directory.",
}


def where(
    text: Annotated[
        str, typer.Argument(metavar="PATH_OR_NAME", help="A file, a folder, or a file name.")
    ],
    config: ConfigOption = None,
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the status of a local file and where it is stored.

    A folder stands for all in it, the name of an archive for what it holds. Nobody is asked:
    this is what the ledger knows.
    """
    settings = load_settings(config, assignments or ()).settings
    places = list(_find(settings, config, text))
    found = [file for _, files in places for file in files]
    # A path is meant from the current folder on, else from the data directory.
    path = Path.cwd() / text if os.path.lexists(text) else Path(text)
    nothing = None if found else find_status(settings, config, path)
    if as_json:
        print_json({"files": [file.as_record() for file in found]})
    elif nothing is not None:
        unknown = f"Nothing is known of {text}: no run has sent it or found it on the server."
        print_lines(reword([unknown], settings))
        if nothing.outcome is not None:
            print_lines([_describe_outcome(nothing.outcome)])
        elif nothing.unknown is not None:
            print_lines([_UNKNOWN[nothing.unknown]])
    else:
        for words, files in places:
            print_lines(reword((line for file in files for line in _describe(file)), words))
    raise typer.Exit(0 if found else UNKNOWN_EXIT)


def _find(
    settings: Settings, config: Path | None, text: str
) -> Iterator[tuple[Settings, list[FileStatus]]]:
    """Yield what is known of files at each destination that has some, with words for it."""
    copies = list(list_addresses(config))
    if (settings.data.directory or not copies) and (found := find_files(settings, config, text)):
        yield settings, found
    for copied, address in copies:
        if found := find_files(copied, config, text):
            yield name_destination(parse_destination(address), address), found


def _describe(file: FileStatus) -> Iterator[str]:
    yield format_path(file.key)
    yield f"  {_describe_safety(file)}"
    entry, modified = file.entry, file.modified
    checksum = ""
    if entry and entry.checksum:
        checksum = f", {Algorithm.of(entry.checksum).label} {entry.checksum}"
    since = f", modified {modified:%Y-%m-%d %H:%M:%SZ}" if modified else ""
    yield f"  {format_size(entry.size if entry else file.size)}{since}{checksum}"
    if entry is not None:
        if file.web:
            yield f"  dataset: {file.web}"
        if entry.archive:
            yield f"  archive: {entry.archive}"
        yield f"  path on the server: {entry.remote}"
    if file.restored:
        yield f"  brought back to this computer: {file.restored:%Y-%m-%d %H:%M:%SZ}"
    yield from (f"  {line}" for line in file.describe_kept())
    told = file.outcome is not None and file.outcome.kind in ("waiting", "skipped")
    if file.safety in _REMARKS and not (told and file.safety is FileSafety.CHANGED):
        yield f"  {_REMARKS[file.safety]}"
    if file.outcome is not None and file.safety is not FileSafety.VERIFIED:
        yield f"  {_describe_outcome(file.outcome)}"


def _describe_safety(file: FileStatus) -> str:
    if file.safety is FileSafety.PENDING and file.entry is not None:
        return _PENDING.get(file.entry.state, file.entry.state.value)
    if file.safety is FileSafety.UNSENT and file.outcome is None:
        return "failed"
    if file.compared is None:
        return _SAFETY[file.safety]
    return _SAFETY[file.safety] + format_comparison(file.compared, SystemClock().now())


def _describe_outcome(outcome: KnownOutcome) -> str:
    return f"{outcome.kind}: {describe_problem(outcome.problem)}"
