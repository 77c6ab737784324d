"""The measured process of `benchmarks.window`: the program and what measures it, nothing else.

The server of the benchmark and the peers take 48 MiB of a Python process (Flask, AsyncSSH), which
the program does not use.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NamedTuple

os.environ["QT_QPA_PLATFORM"] = "offscreen"

import psutil
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from benchmarks.gui import Probe, judge, timed, wait
from mydata_like.gui.application import SWITCH_INTERVAL, Program, collected_here
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.run_state import Phase
from mydata_like.gui.theme import style
from mydata_like.gui.tray.crash_handler import UiHangDetector

_SENT = 2000  # files after which the run has its full speed
_WATCHED = 6.0  # seconds of the run that are measured
_SETTLING = 30.0  # seconds after which a hidden window is idle
_WOKEN = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)$", re.MULTILINE)
_MIB = 2**20


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure once, and print the results as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.window_process")
    parser.add_argument("config", type=Path, help="settings of an approved uploader")
    parser.add_argument("rest", type=float, help="seconds in the tray")
    options = parser.parse_args(arguments)
    print(json.dumps(_measure(options.config, options.rest)))


def _measure(config: Path, rest: float) -> dict[str, float]:
    """Return the times that a user would have waited, and the resource use of the program."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = QApplication([])
    home = Path(os.environ["MYDATA_LIKE_HOME"])
    program = Program(LaunchOptions(config, config, state=home / "state", logs=home / "logs"))
    watchdog = UiHangDetector(home / "logs", parent=app)
    with collected_here(app):
        found = _use(program, app, rest)
    watchdog.stop()
    found["Quit"] = timed(program.close, lambda: program.controller.engine is None)
    return found


def _use(program: Program, app: QApplication, rest: float) -> dict[str, float]:
    program.open()
    wait(lambda: program.controller.state.phase is Phase.IDLE)
    program.window.show()
    program.window.show_page("transfers")
    program.controller.start()
    # How long the engine takes for that says nothing about the window.
    wait(lambda: _has_sent(program) or _has_ended(program), inf)
    found = _look_at_run(program, app)
    program.window.hide()
    pass_time(_SETTLING)
    return found | _look_at_rest(program, rest)


def _has_sent(program: Program) -> bool:
    return program.controller.state.sums.sent > _SENT


def _has_ended(program: Program) -> bool:
    return program.controller.state.phase in (Phase.IDLE, Phase.BROKEN)


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
        with suppress(FileNotFoundError):  # the thread has ended
            found = _WOKEN.search((task / "status").read_text())
            woken[task.name] = int(found[1]) if found else 0
    return Sums(sum(process.cpu_times()[:2]), woken, process.io_counters().write_bytes)


def pass_time(seconds: float) -> None:
    """Run the event loop for some seconds."""
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # As the program does: the interpreter's shutdown would destroy Qt's objects in any order.
    os._exit(0)
