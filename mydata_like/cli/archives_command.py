"""`mydata-like archive`: lists, verifies and extracts archives from the server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from mydata_like.cli.lazy_group import Command
from mydata_like.cli.options import JsonOption
from mydata_like.cli.output import Shape, print_failure, print_json, print_lines
from mydata_like.core.archives import Indexed
from mydata_like.core.errors import ArchiveError, Problem
from mydata_like.core.formatting import format_files, format_path, format_size
from mydata_like.core.parsing import moment_of_ns
from mydata_like.transfer.archive_reader import ArchiveFile, extract_member, verify_member

SOME_FAILED_EXIT = 1

app = typer.Typer(
    name="archive", help="List, verify and extract archives of small files.", no_args_is_help=True
)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The archive.")]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Only these files, and files below these folders."),
]
Failures = list[tuple[Indexed, Problem]]


@app.command("list", cls=Command)
def list_members(file: FileArgument, as_json: JsonOption = False) -> None:
    """List the files of an archive with sizes, times and checksums."""
    with _opened(file, as_json=as_json) as archive:
        if as_json:
            print_json({"archive": str(file), "members": list(map(_record, archive.index))})
        else:
            print_lines([_describe(member) for member in archive.index])


@app.command(cls=Command)
def verify(file: FileArgument, as_json: JsonOption = False) -> None:
    """Verify every byte of an archive against the checksums in its index."""
    with _opened(file, as_json=as_json) as archive:
        failures = _attempt(archive.index, lambda member: verify_member(archive, member))
        _conclude(archive.index, failures, "intact", as_json=as_json)


@app.command(cls=Command)
def extract(
    file: FileArgument,
    names: NamesArgument = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="FOLDER", help="The folder to write to.")
    ] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Extract files from an archive and verify their checksums. Nothing is overwritten."""
    with _opened(file, as_json=as_json) as archive:

        def is_chosen(member: Indexed) -> bool:
            shown = format_path(member.name)
            below = (shown.startswith(name.rstrip("/") + "/") for name in names or ())
            return not names or shown in names or any(below)

        chosen = list(filter(is_chosen, archive.index))
        if not chosen:
            message = f"{file} does not contain this file."
            raise ArchiveError(
                message, hint="`mydata-like archive list` names them all.", code="archive.no-member"
            )
        failures = _attempt(chosen, lambda member: extract_member(archive, member, to))
        _conclude(chosen, failures, "extracted", as_json=as_json)


@contextmanager
def _opened(file: Path, *, as_json: bool) -> Iterator[ArchiveFile]:
    """Open an archive; report why it cannot be opened and end the command."""
    try:
        with ArchiveFile(file) as archive:
            yield archive
    except ArchiveError as error:
        if as_json:
            print_json({"problem": error.problem._asdict()})
        else:
            print_failure(error, Shape.TEXT)
        raise typer.Exit(SOME_FAILED_EXIT) from None


def _attempt(members: list[Indexed], action: Callable[[Indexed], None]) -> Failures:
    failures = []
    for member in members:
        try:
            action(member)
        except ArchiveError as error:
            failures.append((member, error.problem))
    return failures


def _conclude(members: list[Indexed], failures: Failures, done: str, *, as_json: bool) -> None:
    """Report the result and end the command."""
    good = len(members) - len(failures)
    if as_json:
        told = [{"name": format_path(m.name), "problem": p._asdict()} for m, p in failures]
        print_json({done: good, "failed": told})
    else:
        failed = f", {len(failures):,} failed" if failures else ""
        said = [f"{problem.message} {problem.hint}" for _, problem in failures]
        print_lines([*said, f"{format_files(good)} {done}{failed}."])
    raise typer.Exit(SOME_FAILED_EXIT if failures else 0)


def _record(member: Indexed) -> dict[str, object]:
    return {
        "name": format_path(member.name),
        "size": member.size,
        "modified": _modified(member).isoformat(),
        "md5": member.checksum or None,
        "offset": member.offset,
    }


def _describe(member: Indexed) -> str:
    modified = f"{_modified(member):%Y-%m-%d %H:%M:%SZ}"
    checksum = member.checksum or "changed while it was read"
    return f"{checksum:<32}  {format_size(member.size):>10}  {modified}  {format_path(member.name)}"


def _modified(member: Indexed) -> datetime:
    return moment_of_ns(member.modified_ns)
