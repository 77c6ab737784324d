"""The load of other programs on this computer: running programs, disk and memory pressure."""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

_LINUX_NAME: Final = 15  # bytes of a program's name that Linux keeps (TASK_COMM_LEN)
_WINDOW: Final = 10.0  # seconds over which pressure is measured
_FIRST_WINDOW: Final = 1.0  # at the start, so that short runs measure it as well
_TOTAL: Final = re.compile(r"^some .*total=(\d+)$", re.MULTILINE)
_PRESSURE: Final = Path("/proc/pressure")


class LoadSample(NamedTuple):
    """Monotonic counters at one time.

    They are the seconds of waiting for each disk (or for all disks together) and for memory, the
    bytes that all disks transferred, and the bytes that we read.
    """

    at: float
    disks: Mapping[str, float]
    memory: float
    moved: int
    ours: int


def measure_idle() -> float | None:
    """Return the total idle time of all processors in seconds; None if unknown.

    Waiting for a disk counts as idle.
    """
    try:
        times = psutil.cpu_times()
    except (OSError, RuntimeError, psutil.Error):
        return None
    return float(times.idle + getattr(times, "iowait", 0.0))


class HostLoad:
    """The load of this computer, without our own share as far as the system separates it.

    `pressure` is the folder in which Linux reports stalls. Not thread-safe.
    """

    def __init__(self, pressure: Path = _PRESSURE) -> None:
        self._folder = pressure
        self._before: LoadSample | None = None
        self._window = _FIRST_WINDOW
        self._pressure = 0.0

    def find_program(self, names: Sequence[str]) -> str | None:
        """Return the first of these programs, each a name or a full path, that is running.

        Case and `.exe` are ignored. A process whose path we may not read counts as a match.
        """
        running: dict[str, list[psutil.Process]] = {}
        for process in psutil.process_iter(["name"]):
            running.setdefault(_plain(process.info["name"]), []).append(process)
        for name in names:
            candidates = (running.get(form, ()) for form in _forms(name))
            if any(_matches(process, name) for found in candidates for process in found):
                return name
        return None

    def measure_pressure(self) -> float | None:
        """Return the share of the last seconds, in %, in which others waited for disk or memory.

        None if the system has no such counters.
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
        """Return the current counters; None if the disks have none."""
        disks = _find_disks()
        waited = self._read_stalls("io")
        if waited is None and not disks:
            return None
        return LoadSample(
            time.monotonic(),
            # Concurrent requests count twice on Windows, which has no time in which a disk is busy.
            {
                name: getattr(disk, "busy_time", disk.read_time + disk.write_time) / 1000
                for name, disk in disks.items()
            }
            if waited is None
            else {"": waited},
            self._read_stalls("memory") or 0.0,
            sum(disk.read_bytes + disk.write_bytes for disk in disks.values()),
            _count_own_bytes(),
        )

    def _read_stalls(self, resource: str) -> float | None:
        """Return the seconds in which some program waited, if Linux counts them.

        The format is that of Documentation/accounting/psi.rst; `total` is microseconds.
        """
        try:
            text = (self._folder / resource).read_text(encoding="ascii")
        except OSError:  # not Linux, an older one, or one with the counters disabled
            return None
        found = _TOTAL.search(text)
        return int(found[1]) / 1e6 if found else None


def compare(before: LoadSample, after: LoadSample) -> float:
    """Return the share of the time between two samples, in %, in which others waited.

    Our share of the waiting for disks is estimated from our share of the bytes transferred.
    """
    seconds = after.at - before.at
    waits = (total - before.disks.get(name, total) for name, total in after.disks.items())
    disks = max(waits, default=0.0)
    ours = max(0, after.ours - before.ours)
    moved = max(ours, after.moved - before.moved)
    foreign = 1 - ours / moved if moved else 1.0
    share = max(disks * foreign, after.memory - before.memory) / seconds
    return 100 * min(1.0, max(0.0, share))


def _forms(program: str) -> Iterator[str]:
    """Yield the names under which a program may be listed."""
    stem = _plain(re.split(r"[\\/]" if sys.platform == "win32" else "/", program)[-1])
    stem = stem.removesuffix(".exe")
    for name in (stem, f"{stem}.exe"):
        yield name
        yield os.fsdecode(os.fsencode(name)[:_LINUX_NAME])


def _plain(name: str | None) -> str:
    return (name or "").lower()


def _matches(process: psutil.Process, program: str) -> bool:
    """Return whether a process of this name is the program, still running and not ours."""
    try:
        family = (process.pid, *(parent.pid for parent in process.parents()))
        if process.status() == psutil.STATUS_ZOMBIE or os.getpid() in family:
            return False
        return not Path(program).is_absolute() or _runs_from(process, program)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _runs_from(process: psutil.Process, path: str) -> bool:
    """Return whether a process was started from this path, as a program or a script."""
    words = process.cmdline()[:2]
    try:
        words.append(process.exe())
    except psutil.AccessDenied:
        if not words:
            raise
    return any(_plain(word) == _plain(path) for word in words)


def _find_disks() -> dict[str, Any]:
    """Return psutil's counters of whole disks; partitions and RAIDs would count twice."""
    try:
        counters = psutil.disk_io_counters(perdisk=True, nowrap=True)
    except (OSError, RuntimeError):  # some containers have no disks
        return {}
    return {
        name: disk
        for name, disk in (counters or {}).items()
        if sys.platform != "linux" or Path("/sys/block", name, "device").exists()
    }


def _count_own_bytes() -> int:
    """Return how many bytes we have read from disks; channel workers are our children."""
    if sys.platform == "darwin":
        return 0  # the system has no such counter
    total = 0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            total += process.io_counters().read_bytes
        except psutil.Error:  # it has just ended
            continue
    return total
