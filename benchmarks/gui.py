"""Measure the response times of the window's table and the stalls of its event loop under load.

The command: python -m benchmarks.gui [--rows 1000000] [--burners 3]. The window is offscreen and
shows a ledger of so many rows. One process writes to the ledger as an engine does, and others keep
the processors busy, all at the low priority of the engine and its workers (limits.low_priority).
"""

import argparse
import hashlib
import multiprocessing
import os
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from time import perf_counter, thread_time

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.model import DatasetId, Entry, EntryState
from mydata_like.gui.application import SWITCH_INTERVAL
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.pages.transfers_page import TransfersPage
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.window_state import WindowState
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.process import lower_priority
from mydata_like.ledger.sqlite_ledger import SqliteLedger

PROBE = 5  # milliseconds between two ticks of the probe
JUMPS = 100
ENTRY = "root key size modified_ns state dataset checksum remote datafile problem archive"
LONGEST = 30.0  # seconds to wait for one action
# The targets of G4 and G5 in milliseconds.
BARS = {"open": 200, "jump p95": 100, "filter": 300, "sort": 300, "stall p99": 30, "stall max": 100}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure once, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gui", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--burners", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MYDATA_LIKE_HOME"] = str(Path(folder) / "home")
        config = Path(folder) / "settings.toml"
        config.write_text(f"[data]\ndirectory = {folder + '/data'!r}\n")
        settings = load_settings(config).settings
        root = os.fsencode(str(settings.data.directory))
        file = ledger_file(settings, find_places(config), root)
        fill(file, root, options.rows)
        with load(file, root, options.burners):
            found = measure(config, options.rows)
    print_table(f"{options.rows:,} rows, {options.burners + 1} other processes, ms", found, BARS)
    return 0


def print_table(title: str, found: Mapping[str, float], bars: Mapping[str, float]) -> None:
    """Print a table of results and their targets."""
    print(f"| {title} | found | target |")
    print("|---|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:.3g} | {bars.get(name, '')} |")


def fill(file: Path, root: bytes, rows: int) -> None:
    """Create a ledger with so many files, some of them not verified."""
    SqliteLedger.open(file, root, SystemClock()).close()
    names = [*ENTRY.split(), "staged_at", "registered_at", "verified_at", "changed_at"]
    marks = ", ".join("?" * len(names))
    with closing(sqlite3.connect(file)) as connection, connection:
        insert = f"INSERT INTO files ({', '.join(names)}) VALUES ({marks})"
        connection.executemany(insert, map(_row, range(rows)))


def _row(number: int) -> tuple[object, ...]:
    key = b"user%02d/run %04d/scan_%07d_ch%d.tif" % (
        number % 7,
        number // 500,
        number,
        number % 4,
    )
    at = 1_700_000_000 + number // 10
    state = "verified" if number % 50 else "staged"
    checksum = hashlib.md5(key).hexdigest()
    size = number * 7919 % 4_000_003
    return (1, key, size, at, state, number // 500, checksum, "d/x", number, "", "", at, at, at, at)


@contextmanager
def load(file: Path, root: bytes, burners: int) -> Iterator[None]:
    """Keep the ledger and the processors busy during the context."""
    context = multiprocessing.get_context("spawn")
    over, begun = context.Event(), context.Event()
    jobs = [context.Process(target=write, args=(file, root, begun, over))]
    jobs += [context.Process(target=burn, args=(over,)) for _ in range(burners)]
    for job in jobs:
        job.start()
    begun.wait()
    try:
        yield
    finally:
        over.set()
        for job in jobs:
            job.join()


def write(file: Path, root: bytes, begun: Event, over: Event) -> None:
    """Write to the ledger as an engine does that sends tiny files at full speed."""
    lower_priority()
    number = 0
    with SqliteLedger.open(file, root, SystemClock()) as ledger:
        while not over.wait(0.05):
            keys = (b"new/file %08d" % at for at in range(number, number + 250))
            ledger.record(
                [Entry(key, 9, 0, EntryState.VERIFIED, DatasetId(1), "0" * 32, "d") for key in keys]
            )
            number += 250
            begun.set()


def burn(over: Event) -> None:
    """Compute checksums, as a channel worker does."""
    lower_priority()
    block = bytes(2**20)
    while not over.is_set():
        hashlib.md5(block).hexdigest()


class Probe(QObject):
    """A timer of the event loop that measures how late each of its ticks is.

    `works` has the processor time of the GUI thread between two ticks. If other programs use the
    processors, only this part of a delay is caused by the window.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stalls: list[float] = []
        self.works: list[float] = []
        self._last, self._worked = perf_counter(), thread_time()
        self._timer = QTimer(self, interval=PROBE)
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _tick(self) -> None:
        now, worked = perf_counter(), thread_time()
        self.works.append((worked - self._worked) * 1000)
        self.stalls.append(max(0.0, (now - self._last) * 1000 - PROBE))
        self._last, self._worked = now, worked


def measure(config: Path, rows: int) -> dict[str, float]:
    """Return the times that a user would have waited, in milliseconds."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = QApplication.instance() or QApplication([])
    tasks = Tasks()
    controller = WindowController(config, tasks)
    controller.open()
    wait(lambda: controller.loaded is not None and not tasks.busy)
    page = TransfersPage(AppContext(controller, tasks, WindowState(controller)))
    page.resize(1100, 720)
    app.processEvents()
    renew = QTimer(page, interval=1000)
    renew.timeout.connect(controller.ledger_changed)
    renew.start()
    probe = Probe()
    try:
        return _measure(page, rows) | judge(probe)
    finally:
        page._files.model.close()
        controller.close()
        tasks.close()


def _measure(page: TransfersPage, rows: int) -> dict[str, float]:
    panel = page._files
    model, table = panel.model, panel.table
    found = {"open": timed(page.show, lambda: model.row(0) is not None)}
    found["all in order"] = timed(lambda: None, lambda: model.complete)
    jumps, chance = [], random.Random(1)
    for _ in range(JUMPS):
        place = chance.randrange(rows)
        jumps.append(
            timed(
                partial(table.verticalScrollBar().setValue, place),
                lambda: model.row(table.rowAt(1)) is not None,
            )
        )
    found |= {"jump p50": quantile(jumps, 0.5), "jump p95": quantile(jumps, 0.95)}

    def look_for(text: str) -> None:
        panel.field.setText(text)
        panel._apply()

    def shows(text: str, order: str) -> bool:
        row = model.row(0)
        return (model.view.text, model.view.order) == (text, order) and row is not None

    wanted = f"{rows // 3:07d}_"
    found["filter"] = timed(
        partial(look_for, wanted),
        lambda: shows(wanted, "at") and wanted in str(model.row(0)),
    )
    timed(partial(look_for, ""), lambda: model.complete and not model.busy)
    before = model.row(0)
    found["sort"] = timed(
        lambda: model.sort(2), lambda: shows("", "size") and model.row(0) != before
    )
    return found


def judge(probe: Probe) -> dict[str, float]:
    shares = {"stall p50": 0.5, "stall p99": 0.99}
    found = {name: quantile(probe.stalls, share) for name, share in shares.items()}
    return found | {"stall max": max(probe.stalls), "own work max": max(probe.works)}


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def timed(act: Callable[[], object], done: Callable[[], bool]) -> float:
    """Call `act`; return the milliseconds until `done` is true."""
    begun = perf_counter()
    act()
    wait(done)
    return (perf_counter() - begun) * 1000


def wait(done: Callable[[], bool], longest: float = LONGEST) -> None:
    """Run the event loop until `done` is true, for so many seconds at most."""
    deadline = perf_counter() + longest
    app = QApplication.instance() or QApplication([])
    app.processEvents()
    while not done():
        if perf_counter() > deadline:
            raise TimeoutError("the window does not respond")
        app.processEvents()


if __name__ == "__main__":
    raise SystemExit(main())
