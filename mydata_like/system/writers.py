"""Whether other programs may write to a file: leases, locks and open descriptors.

Linux gives a read lease (`F_SETLEASE`, fcntl(2)) only while no program has the file open to
write. A program that opens it to write afterwards waits until the lease is given back, and
`F_GETLEASE` shows that there is one.
"""

import os
import sys
from enum import Enum
from types import TracebackType
from typing import Self


class Use(Enum):
    """What the system says of other programs that may write to a file."""

    NONE = "none"  # no program is known to
    OPEN = "open"
    LOCKED = "locked"
    UNKNOWN = "unknown"  # the system does not say that to this account


if sys.platform == "linux":
    import errno
    import fcntl
    import signal
    from collections.abc import Iterator
    from contextlib import suppress
    from pathlib import Path
    from typing import Final

    # What file systems that know no leases answer: EINVAL for most, ENOLCK for some on a network.
    _NO_LEASES: Final = (errno.EINVAL, errno.ENOLCK)
    _PROCESSES: Final = Path("/proc")
    _LOCKS: Final = _PROCESSES / "locks"

    class WriteGuard:
        """Keeps other programs from writing to an open file, and notices those that want to.

        The file must be open only to be read. Where there are no leases, it only looks.
        """

        def __init__(self, descriptor: int) -> None:
            self._descriptor = descriptor
            self._inode = os.fstat(descriptor).st_ino
            self._leased = False
            self._refusal = self._take_lease()

        def look(self) -> Use:
            """Return whether a program has the file open to write, waits for that, or locks it."""
            if self._refusal is not Use.NONE:
                return self._refusal
            if self._leased and fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
                return Use.OPEN
            if not self._leased and _is_open_to_write(self._descriptor):
                return Use.OPEN
            return Use.LOCKED if _is_locked(self._inode) else Use.NONE

        def __enter__(self) -> Self:
            return self

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            if self._leased:
                with suppress(OSError):
                    fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)

        def _take_lease(self) -> Use:
            try:
                # A program that opens the file makes the system send us a signal: one that is
                # ignored unless it is asked for.
                fcntl.fcntl(self._descriptor, fcntl.F_SETSIG, signal.SIGURG)
                fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    return Use.OPEN
                # EACCES: the file is another account's. It says nothing of who writes to it.
                return Use.NONE if error.errno in _NO_LEASES else Use.UNKNOWN
            self._leased = True
            return Use.NONE

    def _is_locked(inode: int) -> bool:
        """Return whether a program holds a lock to write (flock, POSIX) on a file.

        The device is not compared: some file systems (btrfs, overlay) show another one there.
        """
        try:
            lines = _LOCKS.read_text("ascii").splitlines()
        except OSError:
            return False
        # "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF", see proc_locks(5)
        fields = (line.replace("->", "").split() for line in lines)
        return any(
            field[1] != "LEASE" and field[3] == "WRITE" and field[5].endswith(f":{inode}")
            for field in fields
            if len(field) > 5
        )

    def _is_open_to_write(descriptor: int) -> bool:
        """Return whether a process whose descriptors we may read has a file open to write."""
        file = os.fstat(descriptor)
        return any(_may_write(number, file) for number in _list_descriptors())

    def _list_descriptors() -> Iterator[Path]:
        for process in _PROCESSES.iterdir():
            if process.name.isdecimal():
                with suppress(OSError):  # it has ended, or is another account's
                    yield from (process / "fd").iterdir()

    def _may_write(number: Path, file: os.stat_result) -> bool:
        """Return whether a descriptor of a process leads to a file, and is open to write."""
        try:
            if not os.path.samestat(number.stat(), file):
                return False
            lines = (number.parent.with_name("fdinfo") / number.name).read_text("ascii")
        except OSError:  # closed meanwhile
            return False
        flags = next(line for line in lines.splitlines() if line.startswith("flags:"))
        return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY

else:

    class WriteGuard:
        """Knows nothing of other programs: the system does not say."""

        def __init__(self, descriptor: int) -> None:
            del descriptor

        def look(self) -> Use:
            """Return that no program is known to write to the file."""
            return Use.NONE

        def __enter__(self) -> Self:
            return self

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            del kind, error, trace
