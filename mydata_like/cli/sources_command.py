"""`mydata-like sources`: lists and removes sources from outside the data directory."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mydata_like.app.settings_service import load_settings
from mydata_like.app.source_service import find_unfinished_sources, remove_source
from mydata_like.cli.options import ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import print_json, print_lines, reword
from mydata_like.core.extra_sources import KnownSource, source_key
from mydata_like.core.formatting import format_path, format_size


def sources(
    config: ConfigOption = None,
    assignments: SetOption = None,
    remove: Annotated[
        Path | None,
        typer.Option(
            "--remove",
            metavar="PATH",
            help="Remove this source. Files that were sent stay on the server.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List added folders and files that are not safe yet. The next run continues with them."""
    settings = load_settings(config, assignments or ()).settings
    if remove is not None:
        remove_source(settings, config, source_key(remove))
    found = find_unfinished_sources(settings, config)
    if as_json:
        print_json({"sources": [_as_record(source) for source in found]})
    else:
        print_lines(reword((line for source in found for line in _describe(source)), settings))


def _describe(source: KnownSource) -> Iterator[str]:
    becomes = "/".join(filter(None, source.destination))
    yield f"{format_path(source.path)}  becomes {becomes}"
    if not _is_there(source):
        yield "  It cannot be found now: connect its drive, or remove it with --remove."
    if source.open_files:
        noun = "file" if source.open_files == 1 else "files"
        yield f"  Only there: {source.open_files} {noun}, {format_size(source.open_bytes or 0)}"
    else:
        yield "  What is in it is looked at by the next run."


def _as_record(source: KnownSource) -> dict[str, object]:
    """Return a source as plain values for JSON; what no run has looked at has no numbers."""
    return {
        "path": format_path(source.path),
        "destination": source.destination._asdict(),
        "added": source.added.isoformat(),
        "there": _is_there(source),
        "at_risk": {"files": source.open_files, "bytes": source.open_bytes},
    }


def _is_there(source: KnownSource) -> bool:
    return os.path.lexists(source.path)
