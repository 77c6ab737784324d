"""Linux control groups, which limit processes and all processes that they start.

Needs root, and version 1 of control groups, whose controllers for devices and processors can be
used independently of the other groups of the system.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_CONTROLLERS = Path("/sys/fs/cgroup")


class Group(NamedTuple):
    """A group of processes, by its folder."""

    folder: Path

    def take(self, pids: Sequence[int]) -> None:
        """Limit processes, and all that they start from now on."""
        for pid in pids:
            (self.folder / "cgroup.procs").write_text(str(pid))

    @property
    def prefix(self) -> list[str]:
        """The words before a command that run it in this group."""
        join = 'echo $$ > "$0" && exec "$@"'
        return ["sh", "-c", join, str(self.folder / "cgroup.procs")]


def may_hold_back() -> bool:
    """Return whether groups can be created on this machine."""
    rules = (
        _CONTROLLERS / "cpu/cpu.cfs_quota_us",
        _CONTROLLERS / "blkio/blkio.throttle.io_serviced",
    )
    return os.geteuid() == 0 and all(rule.exists() for rule in rules)


@contextmanager
def open_group(controller: str, name: str, rules: Mapping[str, str]) -> Iterator[Group]:
    """Create a group with these rules, and remove it at the end of the context."""
    above = _CONTROLLERS / controller
    folder = above / f"mydata-like-{os.getpid()}-{name}"
    folder.mkdir(exist_ok=True)
    try:
        for rule, text in rules.items():
            (folder / rule).write_text(text)
        yield Group(folder)
    finally:
        while not _remove(folder):
            for pid in (folder / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    (above / "cgroup.procs").write_text(pid)  # move it back


def _remove(folder: Path) -> bool:
    """Remove a group; return False if it has a process, which may be starting or ending."""
    try:
        folder.rmdir()
    except OSError:
        time.sleep(0.1)
        return False
    return True
