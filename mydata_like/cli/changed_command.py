"""`mydata-like changed`: lists, replaces and keeps held changed files, and undoes replacements."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from typer import BadParameter

from mydata_like.app.held_service import HeldFile, choose, list_held, select_held
from mydata_like.app.run_request import RunObserver
from mydata_like.app.settings_service import load_settings
from mydata_like.app.undo_service import undo_replacement
from mydata_like.cli.lazy_group import Command
from mydata_like.cli.options import ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import print_json, print_lines, reword
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.cli.terminal import stdin_is_terminal
from mydata_like.core.formatting import format_path, format_size
from mydata_like.core.model import ChangeChoice, KeptCopy, Replacement
from mydata_like.core.parsing import moment_of_ns

NOT_CHOSEN_EXIT = 1
NOTHING_HELD = "No changed files are held."

app = typer.Typer(
    name="changed",
    help="Decide about files that changed after the server had verified them.",
    no_args_is_help=True,
)

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="A held file, or a folder with all held files in it."),
]
AllOption = Annotated[bool, typer.Option("--all", help="All held files.")]
_CHOSEN = {
    ChangeChoice.REPLACE: "The next run replaces the copy on the server.",
    ChangeChoice.KEEP: "The copy on the server is kept, as long as the local file stays as it is.",
}


@app.command("list", cls=Command)
def list_files(
    config: ConfigOption = None, assignments: SetOption = None, as_json: JsonOption = False
) -> None:
    """List changed files that are held because they would replace verified copies."""
    settings = load_settings(config, assignments or ()).settings
    held = list_held(settings, config)
    if as_json:
        print_json({"held": list(map(_as_record, held))})
    elif held:
        print_lines(reword((line for one in held for line in _describe(one)), settings))
    else:
        print_lines([NOTHING_HELD])


@app.command(cls=Command)
def replace(
    paths: PathsArgument = None,
    everything: AllOption = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the next run replace verified copies by these changed files."""
    _choose(ChangeChoice.REPLACE, paths, config, assignments, everything=everything, json=as_json)


@app.command(cls=Command)
def keep(
    paths: PathsArgument = None,
    everything: AllOption = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep the verified copies of these files, as long as the local files stay as they are now."""
    _choose(ChangeChoice.KEEP, paths, config, assignments, everything=everything, json=as_json)


@app.command(cls=Command)
def undo(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The local file.")],
    yes: Annotated[bool, typer.Option("--yes", help="Change the record without asking.")] = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
) -> None:
    """Bring the earlier content of a replaced file back to the server.

    The local file is not touched. Its newer content is kept on the server as the earlier one was,
    and is not sent again until the local file changes. If the newer content never arrived, the
    server's record is changed after a question: to the size and checksum of what is there.
    """
    observer = RunObserver()
    settings = load_settings(config, assignments or ()).settings
    with stopped_by_signals(observer.cancel):
        back = undo_replacement(settings, config, path, observer, _pass if yes else _ask)
    print_lines(
        [
            f"The server has the earlier content of {path} again ({format_size(back.size)}), and "
            "has verified it. No local file was changed."
        ]
    )


def _pass(lost: Replacement, there: KeptCopy) -> None:
    """Change the record without a question."""


def _ask(lost: Replacement, there: KeptCopy) -> None:
    """Let the user decide whether the record is to describe the bytes that are there."""
    print_lines(
        [
            f"{format_path(lost.key)}: the newer content is not in its place in the staging area.",
            f"  The server's record: {format_size(lost.size)}, MD5 {lost.checksum}",
            f"  In the staging area: {format_size(there.size)}, MD5 {there.checksum}",
        ]
    )
    if not stdin_is_terminal():
        raise BadParameter("Standard input is not a terminal: use --yes.")
    typer.confirm("Have the record describe what is in the staging area?", abort=True)


def _choose(
    choice: ChangeChoice,
    paths: list[str] | None,
    config: Path | None,
    assignments: list[str] | None,
    *,
    everything: bool,
    json: bool,
) -> None:
    if bool(paths) == everything:
        raise BadParameter("Give paths, or --all.")

    settings = load_settings(config, assignments or ()).settings
    held = list_held(settings, config)
    asked = held if paths is None else list(select_held(held, settings, paths))
    left = choose(asked, choice)
    number = len(asked) - len(left)
    if json:
        keys = [format_path(one.changed.key) for one in left]
        print_json({"choice": choice.value, "files": number, "left_out": keys})
    else:
        noun = "file" if number == 1 else "files"
        chosen = [f"{number:,} {noun}: {_CHOSEN[choice]}"] if number else []
        print_lines(chosen if chosen or left else [NOTHING_HELD])
        print_lines(map(_describe_left, left))
    if left:
        raise typer.Exit(NOT_CHOSEN_EXIT)


def _describe_left(held: HeldFile) -> str:
    path = format_path(held.changed.key)
    if held.changed_again:
        return f"{path} has changed again; run first, and then choose."
    return f"{path}: uploads over HTTP cannot replace its copy."


def _describe(held: HeldFile) -> Iterator[str]:
    yield format_path(held.changed.key)
    if held.changed_again:
        yield "  It has changed again; the next run looks at it."
    elif held.choice in _CHOSEN:
        yield f"  {_CHOSEN[held.choice]}"
    else:
        yield f"  {held.problem.message}"


def _as_record(held: HeldFile) -> dict[str, object]:
    changed = held.changed
    return {
        "path": format_path(changed.key),
        "size": changed.size,
        "modified": moment_of_ns(changed.modified_ns).isoformat(),
        "reason": changed.hold.value,
        "choice": held.choice.value or None,
        "changed_again": held.changed_again,
        "dataset": changed.dataset,
        "copy": {
            "size": changed.copy_size,
            "checksum": changed.copy_checksum,
            "verified_at": changed.copy_verified_at or None,
        },
    }
