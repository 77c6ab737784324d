"""`mydata-like where`: what became of a local file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mydata_like import bootstrap
from mydata_like.bootstrap.journeys import look_at
from mydata_like.cli.options import ConfigOption, JsonOption, SetOption
from mydata_like.cli.report import print_json, print_lines
from mydata_like.cli.running import Shape, tell_failure
from mydata_like.core.errors import UploaderError
from mydata_like.core.format import format_path, format_size
from mydata_like.core.journeys import Journey, Unknown

UNKNOWN_EXIT = 1
_HERE = {
    "same": "",
    "changed": "The local file has changed since; the next run takes it.",
    "gone": "The local file is no longer there.",
}

_UNKNOWN = {
    Unknown.OUTSIDE: "It does not lie below the data directory, and was never a source.",
    Unknown.UNSEEN: "No run has come across it: it may be new, or left out by the layout.",
    Unknown.ABSENT: "There is no such file below the data directory.",
}


def where(
    text: Annotated[
        str, typer.Argument(metavar="PATH_OR_NAME", help="A file, a folder, or a mere name.")
    ],
    config: ConfigOption = None,
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what became of a local file: how far it has come, and where it lies.

    A folder stands for all in it, the name of an archive for what it holds. Nobody is asked:
    this is what the ledger knows.
    """
    try:
        settings = bootstrap.load_settings(config, assignments or ()).settings
        found = bootstrap.find_whereabouts(settings, config, text)
    except UploaderError as error:
        tell_failure(error, Shape.JSON if as_json else Shape.TEXT)
        raise typer.Exit(error.exit_code) from None
    if as_json:
        print_json({"files": [file.as_record() for file in found]})
    elif found:
        print_lines([line for file in found for line in _describe(file)])
    else:
        print_lines(_explain(look_at(settings, config, Path(text)), text))
    raise typer.Exit(0 if found else UNKNOWN_EXIT)


def _explain(journey: Journey, text: str) -> Iterator[str]:
    """Yield why nothing is known of a file: what the last run said of it, if it did."""
    yield f"Nothing is known of {text}: no run has sent it or found it on the server."
    if journey.ill is not None:
        yield f"{journey.ill.kind}: {' '.join(filter(None, journey.ill.problem[1:]))}"
    elif journey.unknown is not None:
        yield _UNKNOWN[journey.unknown]


def _describe(file: bootstrap.Whereabouts) -> Iterator[str]:
    entry = file.entry
    yield format_path(entry.key)
    yield f"  {file.journey}"
    checksum = f", MD5 {entry.checksum}" if entry.checksum else ""
    yield f"  {format_size(entry.size)}, modified {file.modified:%Y-%m-%d %H:%M:%SZ}{checksum}"
    yield f"  dataset: {file.web}"
    if entry.archive:
        yield f"  archive: {entry.archive}"
    yield f"  path on the server: {entry.remote}"
    if _HERE[file.here]:
        yield f"  {_HERE[file.here]}"
