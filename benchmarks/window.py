"""Measure the response times of the whole window during a run, and its resource use at rest.

The command: python -m benchmarks.window [--rows 1000000] [--files 150000] [--rest 120]. The real
program runs offscreen with a ledger of so many rows, while its engine sends so many tiny files over
a real sshd to the embedded server, all on this machine. Then it is idle.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

os.environ["QT_QPA_PLATFORM"] = "offscreen"

import psutil
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from benchmarks.arena import Arena
from benchmarks.corpus import Corpus, Scale, make_tiny
from benchmarks.ground import open_sshd
from benchmarks.gui import Probe, fill, judge, print_table, timed, wait
from benchmarks.reserve import Reserve
from benchmarks.whole import Installation
from mydata_like.app.settings_service import find_places, ledger_file, load_settings, save_settings
from mydata_like.gui.application import SWITCH_INTERVAL, Program
from mydata_like.gui.base import NavigationRequest
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.run_state import Phase
from mydata_like.gui.theme import style
from mydata_like.gui.tray.crash_handler import UiHangDetector

_SENT = 2000  # files after which the run has its full speed
_WATCHED = 6.0  # seconds of the run that are measured
_SETTLING = 30.0  # seconds after which a hidden window is idle
_WOKEN = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)$", re.MULTILINE)
_MIB = 2**20
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
    parser.add_argument("--config", type=Path, help="settings of the measured window (internal)")
    options = parser.parse_args(arguments)
    if options.config:
        print(json.dumps(_measure(options.config, options.rest)))
        return 0
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
    """Return the result of `_measure`, run in a separate process for the window."""
    options = ["--config", str(config), "--rest", str(rest)]
    command = [sys.executable, "-m", "benchmarks.window", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(config: Path, rest: float) -> dict[str, float]:
    """Return the times that a user would have waited, and the resource use of the program."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = QApplication([])
    home = Path(os.environ["MYDATA_LIKE_HOME"])
    program = Program(LaunchOptions(config, config, state=home / "state", logs=home / "logs"))
    watchdog = UiHangDetector(home / "logs", parent=app)
    program.open()
    wait(lambda: program.controller.state.phase is Phase.IDLE)
    program.window.show()
    program.window.show_page(NavigationRequest("transfers"))
    program.controller.start()
    wait(lambda: program.controller.state.sums.sent > _SENT)
    found = _look_at_run(program, app)
    program.window.hide()
    pass_time(_SETTLING)
    found |= _look_at_rest(program, rest)
    watchdog.stop()
    found["Quit"] = timed(program.close, lambda: program.controller.engine is None)
    return found


def _look_at_run(program: Program, app: QApplication) -> dict[str, float]:
    """Return the response times during a run, which is stopped at the end."""
    probe = Probe()
    pass_time(_WATCHED)
    probe.stop()
    if program.controller.state.phase is not Phase.RUNNING:
        raise SystemExit("The run ended too early: use more --files.")
    found = judge(probe)
    for name, process in _list_processes(program).items():
        found[f"memory of the {name}, MiB"] = process.memory_info().rss / _MIB
    found["settings, opened"] = timed(
        lambda: program.drawer.open(""), lambda: program.drawer.dialog is not None
    )
    assert program.drawer.dialog
    program.drawer.dialog.close()
    found["another palette"] = timed(lambda: style.apply(app, "dark"), lambda: True)
    found["Stop, acknowledged"] = timed(
        program.controller.stop, lambda: program.controller.state.phase is not Phase.RUNNING
    )
    found["Stop, all stopped"] = timed(
        lambda: None, lambda: program.controller.state.phase is Phase.IDLE
    )
    return found


def _look_at_rest(program: Program, seconds: float) -> dict[str, float]:
    """Return the resource use of the window and its engine while they are idle."""
    processes = _list_processes(program)
    before = {name: _sum_up(process) for name, process in processes.items()}
    pass_time(seconds)
    found: dict[str, float] = {}
    for name, process in processes.items():
        was, now = before[name], _sum_up(process)
        woken = sum(count - was.woken.get(task, 0) for task, count in now.woken.items())
        found |= {
            f"memory of the {name} at rest, MiB": process.memory_info().rss / _MIB,
            f"processor of the {name} at rest, %": 100 * (now.worked - was.worked) / seconds,
            f"wake-ups of the {name} at rest, each second": woken / seconds,
            f"writes of the {name} at rest, KiB each minute": (
                60 * (now.written - was.written) / 1024 / seconds
            ),
        }
    return found


def _list_processes(program: Program) -> dict[str, psutil.Process]:
    engine = program.controller.engine
    found = {"window": psutil.Process()}
    return found | ({"engine": psutil.Process(engine.number)} if engine else {})


class Sums(NamedTuple):
    """The resource use of a process: processor seconds, wake-ups by thread, bytes written."""

    worked: float
    woken: dict[str, int]
    written: int


def _sum_up(process: psutil.Process) -> Sums:
    woken = {}
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        found = _WOKEN.search((task / "status").read_text())
        woken[task.name] = int(found[1]) if found else 0
    return Sums(sum(process.cpu_times()[:2]), woken, process.io_counters().write_bytes)


def pass_time(seconds: float) -> None:
    """Run the event loop for some seconds."""
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


if __name__ == "__main__":
    raise SystemExit(main())
