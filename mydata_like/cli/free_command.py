"""`mydata-like free`: deletes local files that the server has completely."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from mydata_like.app.cleanup_service import open_cleanup
from mydata_like.app.settings_service import load_settings
from mydata_like.cli.options import ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import describe_problem, print_json, print_lines, reword
from mydata_like.cli.stdin_commands import observing
from mydata_like.cli.terminal import stdin_is_terminal
from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.errors import Cancelled, Problem
from mydata_like.core.formatting import format_files, format_path, format_size

KEPT_EXIT = 1
NAMED = 5  # files of each reason that are named


@dataclass
class Sums:
    """The result for all files: requested = freed + kept."""

    freed: list[DeletedFile] = field(default_factory=list)
    kept: list[KeptFile] = field(default_factory=list)

    @classmethod
    def of(cls, fates: Iterable[DeletedFile | KeptFile]) -> "Sums":
        sums = cls()
        for fate in fates:
            if isinstance(fate, DeletedFile):
                sums.freed.append(fate)
            else:
                sums.kept.append(fate)
        return sums

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.freed)

    def as_record(self) -> dict[str, object]:
        """Return it as plain values for JSON."""
        return {
            "asked": len(self.freed) + len(self.kept),
            "freed": len(self.freed),
            "kept": len(self.kept),
            "bytes": self.bytes,
            "files": [
                *(_record(file, None) for file in self.freed),
                *(_record(file, file.problem) for file in self.kept),
            ],
        }


def free(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Files and folders; folders include everything in them."
        ),
    ],
    *,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only report what would be deleted; nothing is verified again."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete local files that are safe on the server. Empty folders are kept.

    A file goes only when the server, asked to verify its copy again, has done so and found the
    same size and checksum, and when the local file, read once more, still has that checksum. A
    destination without a server hashes its copy again instead.
    Every deletion is noted in freed.jsonl, in the folder of the program's state.
    """
    if as_json and not (dry_run or yes):
        raise typer.BadParameter("--json needs --dry-run or --yes.")
    settings = load_settings(config, assignments or ()).settings
    with observing(settings, config) as observer:
        cancel = observer.cancel

        def go(paths: Iterable[Path], *, delete: bool) -> Sums:
            with open_cleanup(settings, config, observer, delete=delete) as freeing:
                return Sums.of(freeing(paths))

        sums = go(paths, delete=yes and not dry_run)
        asks = bool(sums.freed) and not (dry_run or yes)
        if asks and not cancel.is_set():
            print_lines(reword(_describe(sums, deleted=False), settings))
            if not stdin_is_terminal():
                raise typer.BadParameter(
                    "Standard input is not a terminal: use --yes or --dry-run."
                )
            typer.confirm(f"Permanently delete {_amount(sums)}?", abort=True)
            root = settings.data.directory or Path()
            # Only the files that were shown are deleted, not those that were added since.
            freed = go((root / os.fsdecode(file.key) for file in sums.freed), delete=True)
            sums, asks = Sums(freed.freed, [*sums.kept, *freed.kept]), False
    if as_json:
        print_json({**sums.as_record(), "dry_run": dry_run})
    else:
        print_lines(reword(_describe(sums, deleted=not (dry_run or asks)), settings))
    if cancel.is_set():
        raise typer.Exit(Cancelled.exit_code)
    raise typer.Exit(KEPT_EXIT if sums.kept else 0)


def _describe(sums: Sums, *, deleted: bool) -> Iterator[str]:
    by_code = Counter(file.problem.code for file in sums.kept)
    for code, count in by_code.most_common():
        files = [file for file in sums.kept if file.problem.code == code]
        yield f"{count:,} kept: {describe_problem(files[0].problem)}"
        yield from (f"  {format_path(file.key)}" for file in files[:NAMED])
        if count > NAMED:
            yield f"  and {count - NAMED:,} more"
    if sums.freed and not deleted:
        yield "The server has not verified its copies again: it is asked before files are deleted."
    verb = "deleted" if deleted else "can be deleted"
    yield f"{_amount(sums)} {verb}; {len(sums.kept):,} kept."


def _amount(sums: Sums) -> str:
    return f"{format_files(len(sums.freed))}, {format_size(sums.bytes)}"


def _record(file: DeletedFile | KeptFile, problem: Problem | None) -> dict[str, Any]:
    return {
        "path": format_path(file.key),
        "size": file.size,
        "problem": problem and problem._asdict(),
    }
