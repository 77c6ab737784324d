"""Groups of processes that Linux holds back together: all that they start belongs to them.

Needs root, and version 1 of control groups, which holds a single device or processor share
back without being asked to by whatever else manages groups.
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
        """Hold back processes, and all that they start from now on."""
        for pid in pids:
            (self.folder / "cgroup.procs").write_text(str(pid))

    @property
    def prefix(self) -> list[str]:
        """What stands before a command that is to be held back."""
        join = 'echo $$ > "$0" && exec "$@"'
        return ["sh", "-c", join, str(self.folder / "cgroup.procs")]


def may_hold_back() -> bool:
    """Return whether this machine lets us make groups."""
    rules = (
        _CONTROLLERS / "cpu/cpu.cfs_quota_us",
        _CONTROLLERS / "blkio/blkio.throttle.io_serviced",
    )
    return os.geteuid() == 0 and all(rule.exists() for rule in rules)


@contextmanager
def open_group(controller: str, name: str, rules: Mapping[str, str]) -> Iterator[Group]:
    """Make a group with rules, for as long as this lasts."""
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
                    (above / "cgroup.procs").write_text(pid)  # to where it came from


def _remove(folder: Path) -> bool:
    """Remove a group unless some process is in it, one that is just ending or starting maybe."""
    try:
        folder.rmdir()
    except OSError:
        time.sleep(0.1)
        return False
    return True
