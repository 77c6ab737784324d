"""What else is at work on this computer: programs by their names, pressure on disk and memory."""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

_LINUX_NAME: Final = 15  # bytes that Linux keeps of a program's name (TASK_COMM_LEN)
_WINDOW: Final = 10.0  # seconds over which pressure is measured
_FIRST_WINDOW: Final = 1.0  # at the beginning: a short run must not miss it
_TOTAL: Final = re.compile(r"^some .*total=(\d+)$", re.MULTILINE)
_PRESSURE: Final = Path("/proc/pressure")


class LoadSample(NamedTuple):
    """Counters that only grow, as they stood at one moment.

    Seconds for which somebody waited, for each disk or for all of them together and for
    memory, and the bytes that all disks moved and that we read.
    """

    at: float
    disks: Mapping[str, float]
    memory: float
    moved: int
    ours: int


def measure_idle() -> float | None:
    """Return for how many seconds the processors have had nothing to do, each by itself.

    Where a disk is waited for they have nothing to do, either. None where nobody tells.
    """
    try:
        times = psutil.cpu_times()
    except (OSError, RuntimeError, psutil.Error):
        return None
    return float(times.idle + getattr(times, "iowait", 0.0))


class HostLoad:
    """The load of this computer, our own left out as far as the system tells them apart.

    `pressure` is the folder in which Linux tells of stalls. To be used by one thread.
    """

    def __init__(self, pressure: Path = _PRESSURE) -> None:
        self._folder = pressure
        self._before: LoadSample | None = None
        self._window = _FIRST_WINDOW
        self._pressure = 0.0

    def find_program(self, names: Sequence[str]) -> str | None:
        """Return the first of these programs, each a name or a full path, that runs.

        Capitals and `.exe` make no difference; a path that nobody lets us see counts as the
        one that was named.
        """
        running = _list_running()
        for name in names:
            candidates = (running.get(form, ()) for form in _forms(name))
            if any(_is_meant(process, name) for found in candidates for process in found):
                return name
        return None

    def measure_pressure(self) -> float | None:
        """Return the share of the last seconds, in %, in which others waited for disk or memory.

        None where the system counts no such thing.
        """
        before = self._before
        if before is not None and time.monotonic() - before.at < self._window:
            return self._pressure
        self._before = self.take_sample()
        if self._before is None:
            return None
        if before is not None:
            self._pressure = compare(before, self._before)
            self._window = _WINDOW
        return self._pressure

    def take_sample(self) -> LoadSample | None:
        """Return the counters as they stand; None where the disks have none."""
        disks = _find_disks()
        waited = self._read_stalls("io")
        if waited is None and not disks:
            return None
        return LoadSample(
            time.monotonic(),
            {name: _busy_seconds(disk) for name, disk in disks.items()}
            if waited is None
            else {"": waited},
            self._read_stalls("memory") or 0.0,
            sum(disk.read_bytes + disk.write_bytes for disk in disks.values()),
            _count_own_bytes(),
        )

    def _read_stalls(self, resource: str) -> float | None:
        """Return the seconds in which some program waited, where Linux counts them.

        The format is that of Documentation/accounting/psi.rst; `total` is microseconds.
        """
        try:
            text = (self._folder / resource).read_text(encoding="ascii")
        except OSError:  # no Linux, an older one, or one that was told not to count
            return None
        found = _TOTAL.search(text)
        return int(found[1]) / 1e6 if found else None


def compare(before: LoadSample, after: LoadSample) -> float:
    """Return the share of the time between two samples, in %, in which others waited.

    Waiting for the disks is put down to us by our part of the bytes that they moved.
    """
    seconds = after.at - before.at
    waits = (total - before.disks.get(name, total) for name, total in after.disks.items())
    disks = max(waits, default=0.0)
    ours = max(0, after.ours - before.ours)
    moved = max(ours, after.moved - before.moved)
    foreign = 1 - ours / moved if moved else 1.0
    share = max(disks * foreign, after.memory - before.memory) / seconds
    return 100 * min(1.0, max(0.0, share))


def _list_running() -> dict[str, list[psutil.Process]]:
    """Return the processes by their names in small letters."""
    running: dict[str, list[psutil.Process]] = {}
    for process in psutil.process_iter(["name"]):
        running.setdefault(_plain(process.info["name"]), []).append(process)
    return running


def _forms(program: str) -> Iterator[str]:
    """Yield the names under which a program may be seen."""
    stem = _plain(re.split(r"[\\/]" if sys.platform == "win32" else "/", program)[-1])
    stem = stem.removesuffix(".exe")
    for name in (stem, f"{stem}.exe"):
        yield name
        yield os.fsdecode(os.fsencode(name)[:_LINUX_NAME])


def _plain(name: str | None) -> str:
    return (name or "").lower()


def _is_meant(process: psutil.Process, program: str) -> bool:
    """Return whether a process of this name is the program, still runs and is none of ours."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE or _is_ours(process):
            return False
        return not Path(program).is_absolute() or _runs_from(process, program)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _is_ours(process: psutil.Process) -> bool:
    return os.getpid() in (process.pid, *(parent.pid for parent in process.parents()))


def _runs_from(process: psutil.Process, path: str) -> bool:
    """Return whether a process was started from this path, be it a program or a script."""
    words = process.cmdline()[:2]
    try:
        words.append(process.exe())
    except psutil.AccessDenied:
        if not words:
            raise
    return any(_plain(word) == _plain(path) for word in words)


def _find_disks() -> dict[str, Any]:
    """Return psutil's counters of the disks; parts and combinations of them would count twice."""
    try:
        counters = psutil.disk_io_counters(perdisk=True, nowrap=True)
    except (OSError, RuntimeError):  # some containers show no disks
        return {}
    return {name: disk for name, disk in (counters or {}).items() if _is_whole(name)}


def _is_whole(disk: str) -> bool:
    return not sys.platform.startswith("linux") or Path("/sys/block", disk, "device").exists()


def _busy_seconds(disk: Any) -> float:
    """Return for how long a disk was at work; requests side by side count twice on Windows."""
    milliseconds: int = getattr(disk, "busy_time", disk.read_time + disk.write_time)
    return milliseconds / 1000


def _count_own_bytes() -> int:
    """Return how many bytes we have read from disks; channel workers are our children."""
    if sys.platform == "darwin":
        return 0  # it does not tell
    total = 0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            total += process.io_counters().read_bytes
        except psutil.Error:  # it has just ended
            continue
    return total
