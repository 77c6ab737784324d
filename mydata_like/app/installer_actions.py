"""What the installer for Windows leaves to the program: `--installer ACTION`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mydata_like.core.errors import SettingsError
from mydata_like.core.parsing import parse_json
from mydata_like.hostos.instances import (
    StartedCommand,
    describe_commands,
    list_others,
    start_again,
    stop_processes,
)
from mydata_like.hostos.search_path import change_search_path

ACTIONS = ("stop", "start", "add-path", "remove-path")


def main(words: Sequence[str]) -> int:
    """Carry out an action; print what was done, and return 1 if it failed.

    - `stop` stops all other processes of this installation; `--list FILE` gets their commands.
    - `start` starts the windows and watches of such a list again; with `--everyone`, watches only,
      since an administrator's window would have too many rights.
    - `add-path` and `remove-path` change the search path, with `--everyone` that of all accounts.
    """
    parser = argparse.ArgumentParser(prog="mydata-like --installer")
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--list", type=Path)
    parser.add_argument("--everyone", action="store_true")
    options = parser.parse_args(words)
    folder = Path(sys.executable).parent
    try:
        match options.action:
            case "stop":
                return stop(folder, options.list)
            case "start":
                return start(options.list, everyone=options.everyone)
            case action:
                present = action == "add-path"
                changed = change_search_path(
                    str(folder), present=present, everyone=options.everyone
                )
                return _report("The search path is changed." if changed else "Nothing to change.")
    except (OSError, ValueError, SettingsError) as error:
        return _report(str(error), failed=True)


def stop(folder: Path, file: Path | None) -> int:
    """Stop the processes of the program in a folder; the file gets their commands."""
    processes = list_others(folder)
    commands = describe_commands(processes)
    if file:
        file.write_text(json.dumps([command._asdict() for command in commands]), "utf-8")
    left = stop_processes(processes)
    if left:
        numbers = ", ".join(str(process.pid) for process in left)
        return _report(f"These processes cannot be stopped: {numbers}.", failed=True)
    return _report(f"Processes that were stopped: {len(processes)}.")


def start(file: Path, *, everyone: bool) -> int:
    """Start the windows and watches of a list again."""
    commands = [
        StartedCommand(**(entry | {"words": tuple(entry["words"])}))
        for entry in parse_json(file.read_bytes())
    ]
    chosen = [command for command in commands if command.watches or not everyone]
    started = list(start_again(chosen))
    return _report(f"Processes that were started again: {len(started)}.")


def _report(text: str, *, failed: bool = False) -> int:
    sys.stdout.write(f"{text}\n")
    return int(failed)
