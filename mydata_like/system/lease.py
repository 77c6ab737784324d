"""A lock file in the data directory, renewed while a run lasts: seen from other computers.

It is the lock for network shares and other accounts: everybody who reaches the data sees it. The
system frees nothing when its holder dies, so it counts only as long as it is renewed, by the
clock of the file server. The folder's own times stay as they were.
"""

import logging
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mydata_like.core.data_directory import Shard, lock_name, read_lock_name
from mydata_like.core.errors import AlreadyRunningError
from mydata_like.core.formatting import format_path
from mydata_like.system.holder import Holder

logger = logging.getLogger(__name__)

RENEWAL: Final = 30.0  # seconds
EXPIRY: Final = 180.0  # seconds after which one that was not renewed counts no longer
_LONGEST: Final = 64 * 1024  # bytes that are read of a lock file; ours have less than 1 kB


class Lease:
    """The lock file of one run, or of none where no file can be written."""

    def __init__(self, directory: bytes, shard: Shard, holder: Holder) -> None:
        self._directory = Path(os.fsdecode(directory))
        self._shard = shard
        self._file = self._directory / lock_name(shard)
        self._content = holder.format().encode()
        self._held = False
        self.missing = False  # it could not be written where it would be needed

    def look(self) -> None:
        """Raise `AlreadyRunningError` where another one is at work on some of the same files."""
        self._refuse_others()

    def take(self) -> None:
        """Hold it, where it can be written: else it is `missing`.

        Raises `AlreadyRunningError` where another one holds it, or works on some of the same
        files.
        """
        self._refuse_others()
        try:
            with self._times_kept():
                self._write("xb")
        except FileExistsError:
            self._refuse_others()
            logger.warning("The lock file %s was left behind and cannot be deleted", self._file)
            self.missing = True
            return
        except OSError as error:
            logger.info("No lock file can be made in %s: %s", self._directory, error)
            self.missing = True
            return
        self._held = True
        try:
            # Ours is there first: of two that look at each other's at once, none misses the other.
            self._refuse_others()
        except AlreadyRunningError:
            self.release()
            raise

    def renew(self) -> bool:
        """Say that we are still at work; return false where another one has taken it over.

        That happens where this computer slept or the share was away for longer than `EXPIRY`.
        """
        if not self._held:
            return True
        try:
            if _load(self._file) != self._content:
                self._held = False
                return False
            self._write("r+b")
        except FileNotFoundError:
            self._make_again()
        except OSError as error:
            logger.warning("The lock file %s could not be renewed: %s", self._file, error)
        return self._held

    def release(self) -> None:
        """Give it up, unless another one has it by now."""
        if not self._held:
            return
        self._held = False
        try:
            if _load(self._file) == self._content:
                with self._times_kept():
                    self._file.unlink()
        except OSError as error:
            logger.warning("The lock file %s could not be deleted: %s", self._file, error)

    def find_holder(self) -> Holder | None:
        """Return who says to be at work on some of the same files."""
        found = (_read(file) for file in self._find_others())
        return next((Holder.parse(content) for content in found if content), None)

    def _write(self, mode: str) -> None:
        # Text of the same length in place: a reader never sees half of it.
        with self._file.open(mode) as file:
            if mode == "xb":
                _show_to_all(file.fileno())
            file.write(self._content)

    def _make_again(self) -> None:
        """Make a file that somebody has deleted, unless another run was there first."""
        try:
            with self._times_kept():
                self._write("xb")
        except FileExistsError:
            self._held = False
        except OSError as error:
            logger.warning("The lock file %s could not be renewed: %s", self._file, error)

    def _find_others(self) -> list[Path]:
        """Return the lock files of others with some of the same files."""
        ours, files = self._file.name if self._held else "", []
        for file in sorted(self._directory.glob(".mydata-like*.lock")):
            shard = read_lock_name(file.name)
            overlaps = shard and (shard == self._shard or shard.total != self._shard.total)
            if overlaps and file.name != ours:
                files.append(file)
        return files

    def _refuse_others(self) -> None:
        for file in self._find_others():
            content = _read(file)
            if content is None:
                continue
            holder = Holder.parse(content)
            if not self._is_stale(file, holder):
                raise AlreadyRunningError(
                    f"Another run is at work on {format_path(os.fsencode(self._directory))}"
                    f"{holder.describe() if holder else ''}.",
                    hint="Wait until it has ended, or stop it there. The lock of one that was "
                    f"killed ends after {EXPIRY / 60:.0f} minutes.",
                )
            self._remove_stale(file, content)

    def _is_stale(self, file: Path, holder: Holder | None) -> bool:
        if holder and holder.is_gone():
            return True
        try:
            return abs(self._ask_time() - file.stat().st_mtime) > EXPIRY
        except OSError:  # it has just been deleted
            return True

    def _ask_time(self) -> float:
        """Return the time by the clock of the file server, else by our own."""
        probe = self._directory / f".mydata-like-{secrets.token_hex(8)}.lock"
        with suppress(OSError), self._times_kept():
            with probe.open("xb") as file:
                file.write(b"?")
            try:
                return probe.stat().st_mtime
            finally:
                probe.unlink()
        return time.time()

    def _remove_stale(self, file: Path, seen: bytes) -> None:
        """Remove what a killed run has left; another one may be about to do the same."""
        aside = self._directory / f".mydata-like-{secrets.token_hex(8)}.lock"
        with suppress(OSError), self._times_kept():
            file.rename(aside)
            if _load(aside) == seen:
                aside.unlink()
            else:  # it has been taken over since we looked
                aside.rename(file)

    @contextmanager
    def _times_kept(self) -> Iterator[None]:
        """Leave the folder's times as they are; raises OSError before where that is impossible."""
        before = self._directory.stat()
        times = before.st_atime_ns, before.st_mtime_ns
        os.utime(self._directory, ns=times)
        try:
            yield
        finally:
            with suppress(OSError):
                os.utime(self._directory, ns=times)


def _show_to_all(descriptor: int) -> None:
    """Let other accounts read who is at work, and none of them write it, whatever the umask is."""
    if sys.platform != "win32":
        with suppress(OSError):  # of a share whose server decides on the modes
            os.fchmod(descriptor, 0o644)


def _read(file: Path) -> bytes | None:
    """Return what a lock file says, None where it has just been deleted."""
    try:
        return _load(file)
    except FileNotFoundError:
        return None
    except OSError:
        return b""


def _load(file: Path) -> bytes:
    """Return the beginning of a file that anybody may have put there, or raise OSError.

    A pipe is not waited for: it says nothing, or raises BlockingIOError.
    """
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        return stream.read(_LONGEST) or b""
