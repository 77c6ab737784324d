"""Measure the response times of the whole window during a run, and its resource use at rest.

The command: python -m benchmarks.window [--rows 1000000] [--files 150000] [--rest 120]. The real
program runs offscreen with a ledger of so many rows, while its engine sends so many tiny files over
a real sshd to the embedded server, all on this machine. Then it is idle.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.arena import Arena
from benchmarks.corpus import Corpus, Scale, make_tiny
from benchmarks.ground import open_sshd
from benchmarks.gui import fill, print_table
from benchmarks.reserve import Reserve
from benchmarks.whole import Installation
from mydata_like.app.settings_service import find_places, ledger_file, load_settings, save_settings

# The targets, in milliseconds unless the name has another unit.
BARS: Mapping[str, float] = {
    "stall p99": 30,
    "stall max": 100,
    "settings, opened": 150,
    "another palette": 300,
    "Stop, acknowledged": 100,
    "Stop, all stopped": 3000,
    "Quit": 5000,
    "memory of the window, MiB": 300,
    "memory of the window at rest, MiB": 150,
    "processor of the window at rest, %": 0.1,
    "wake-ups of the window at rest, each second": 2,
    "writes of the window at rest, KiB each minute": 0,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure once, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.window", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the ledger")
    parser.add_argument("--files", type=int, default=150_000, help="tiny files to send")
    parser.add_argument("--rest", type=float, default=120.0, help="seconds in the tray")
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.directory) as folder, ExitStack() as stack:
        corpus = make_tiny(Path(folder) / "data", Scale(tiny_count=options.files))
        config = _install(Path(folder), corpus, stack)
        settings = load_settings(config).settings
        root = os.fsencode(str(settings.data.directory))
        fill(ledger_file(settings, find_places(config), root), root, options.rows)
        found = _measure_apart(config, options.rest)
    print_table(f"{options.rows:,} rows, {options.files:,} files to send", found, BARS)
    return 0


def _install(folder: Path, corpus: Corpus, stack: ExitStack) -> Path:
    """Start staging host and server; return the settings file of an approved uploader."""
    ground = stack.enter_context(open_sshd(folder / "sshd"))
    arena = Arena(
        **ground._asdict(), corpus=corpus, directory=folder, stack=stack, reserve=Reserve(folder)
    )
    installation = Installation.create(arena, folder / "site", stack)
    home = installation.directory / "home"
    os.environ |= {
        "MYDATA_LIKE_HOME": str(home),
        "MYDATA_LIKE_API_KEY": installation.server.api_key,
    }
    save_settings(installation.config, {"schedule.kind": "manual", "limits.low_priority": True})
    return installation.config


def _measure_apart(config: Path, rest: float) -> dict[str, float]:
    """Return what `benchmarks.window_process` measures, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.window_process", str(config), str(rest)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
