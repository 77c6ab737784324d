"""The locks of data directories, shards and watches, including a lock file for other computers.

The lock file in the data directory is for network shares and other accounts. The system does not
release it when its holder dies, so it is valid only while it is renewed, by the clock of the file
server. The times of the folder are preserved.
"""

import hashlib
import json
import logging
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Self

import psutil
from filelock import FileLock, Timeout

from mydata_like.core.data_directory import WHOLE, Shard, lock_name, read_lock_name
from mydata_like.core.errors import AlreadyRunningError, RunError, SettingsError
from mydata_like.core.formatting import format_path, format_text
from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.core.ports import Clock
from mydata_like.hostos.machine_info import read_system_id
from mydata_like.hostos.process import read_account
from mydata_like.settings.atomic_write import (
    PRIVATE_FILE,
    ensure_folder,
    require_plain,
    write_private,
)

_NAME = 64  # characters of a name that are shown


class LockHolder(NamedTuple):
    """The process that holds a lock, its account and computer, and the time of locking.

    `system` is a digest of the id of the operating system, `born` the start time of the process
    by the computer's clock. `nonce` distinguishes two locks of one process.
    """

    pid: int
    host: str
    started: datetime
    account: str = ""
    system: str = ""
    born: float = 0.0
    nonce: str = ""

    @classmethod
    def here(cls, clock: Clock) -> Self:
        """Return this process."""
        return cls(
            os.getpid(),
            socket.gethostname(),
            clock.now(),
            read_account(),
            _digest_system(),
            psutil.Process().create_time(),
            secrets.token_hex(8),
        )

    @classmethod
    def parse(cls, text: str | bytes) -> Self | None:
        """Return the holder in a text; None if it cannot be parsed."""
        try:
            facts = parse_json(text)
            return cls(
                int(facts["pid"]),
                _shown(facts["host"]),
                parse_moment(facts["started"]),
                _shown(facts.get("account", "")),
                str(facts.get("system", "")),
                float(facts.get("born", 0.0)),
                str(facts.get("nonce", "")),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def format(self) -> str:
        """Return the text that `parse` reads."""
        return json.dumps(self._asdict() | {"started": self.started.isoformat()})

    def describe(self) -> str:
        """Return the start time, account, process and computer for a message."""
        account = f"account {self.account}, " if self.account else ""
        since = f"{self.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return f" since {since} ({account}process {self.pid} on {self.host})"

    def is_gone(self) -> bool:
        """Return whether this process is known to have ended, which needs one of this computer."""
        digest = _digest_system()
        if not digest or (self.host, self.system) != (socket.gethostname(), digest):
            return False
        try:
            return abs(psutil.Process(self.pid).create_time() - self.born) > 1.0
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False


def _digest_system() -> str:
    system = read_system_id()
    return hashlib.sha256(system.encode()).hexdigest()[:16] if system else ""


def _shown(text: str) -> str:
    return format_text(text[:_NAME])


logger = logging.getLogger(__name__)

RENEWAL: Final = 30.0  # seconds
EXPIRY: Final = 180.0  # seconds after which a lock file that was not renewed is invalid
_LONGEST: Final = 64 * 1024  # bytes that are read from a lock file; ours have less than 1 kB


class Lease:
    """The lock file of one run; it may be missing if it cannot be written."""

    def __init__(self, directory: bytes, shard: Shard, holder: LockHolder) -> None:
        self._directory = Path(os.fsdecode(directory))
        self._shard = shard
        self._file = self._directory / lock_name(shard)
        self._content = holder.format().encode()
        self._held = False
        self.missing = False  # a lock file is needed, but could not be written
        self.descriptor: int | None = None  # whose lock lasts until all have closed it

    def take(self) -> None:
        """Create the lock file; if it cannot be written, it is `missing`.

        Raises `AlreadyRunningError` if another run holds it, or works on some of the same
        files.
        """
        self.check()
        try:
            with self._times_kept():
                self._write("xb")
        except FileExistsError:
            self.check()
            logger.warning("The stale lock file %s cannot be deleted", self._file)
            self.missing = True
            return
        except OSError as error:
            logger.info("No lock file can be created in %s: %s", self._directory, error)
            self.missing = True
            return
        self._held = True
        try:
            # Ours exists before we check: of two concurrent runs, at least one sees the other.
            self.check()
        except AlreadyRunningError:
            self.release()
            raise

    def renew(self) -> bool:
        """Renew the lock file; return false if another run has taken it over.

        That happens if this computer slept, or the share was offline, for longer than `EXPIRY`.
        """
        if not self._held:
            return True
        try:
            if _load(self._file) != self._content:
                self._held = False
                return False
            self._write("r+b")
        except FileNotFoundError:
            self._recreate()
        except OSError as error:
            logger.warning("The lock file %s could not be renewed: %s", self._file, error)
        return self._held

    def release(self) -> None:
        """Delete the lock file, unless another run has taken it over."""
        if not self._held:
            return
        self._held = False
        try:
            if _load(self._file) == self._content:
                with self._times_kept():
                    self._file.unlink()
        except OSError as error:
            logger.warning("The lock file %s could not be deleted: %s", self._file, error)

    def find_holder(self) -> LockHolder | None:
        """Return the holder of a lock file for some of the same files."""
        found = (_read(file) for file in self._find_others())
        return next((LockHolder.parse(content) for content in found if content), None)

    def _write(self, mode: str) -> None:
        # Text of the same length in place: a reader never sees half of it.
        with self._file.open(mode) as file:
            if mode == "xb" and sys.platform != "win32":
                # Other accounts may read but not write it, independent of the umask.
                with suppress(OSError):  # on a share whose server controls the modes
                    os.fchmod(file.fileno(), 0o644)
            file.write(self._content)

    def _recreate(self) -> None:
        """Create the file again after it was deleted, unless another run did so first."""
        try:
            with self._times_kept():
                self._write("xb")
        except FileExistsError:
            self._held = False
        except OSError as error:
            logger.warning("The lock file %s could not be renewed: %s", self._file, error)

    def _find_others(self) -> list[Path]:
        """Return the lock files of other runs that share some files with ours."""
        ours, files = self._file.name if self._held else "", []
        for file in sorted(self._directory.glob(".mydata-like*.lock")):
            shard = read_lock_name(file.name)
            overlaps = shard and (shard == self._shard or shard.total != self._shard.total)
            if overlaps and file.name != ours:
                files.append(file)
        return files

    def check(self) -> None:
        """Raise `AlreadyRunningError` if another run works on some of the same files."""
        for file in self._find_others():
            content = _read(file)
            if content is None:
                continue
            holder = LockHolder.parse(content)
            if not self._is_stale(file, holder):
                raise AlreadyRunningError(
                    f"Another run is in progress on {format_path(os.fsencode(self._directory))}"
                    f"{holder.describe() if holder else ''}.",
                    hint="Wait until it has ended, or stop it there. The lock of a killed run "
                    f"expires after {EXPIRY / 60:.0f} minutes.",
                )
            self._remove_stale(file, content)

    def _is_stale(self, file: Path, holder: LockHolder | None) -> bool:
        if holder and holder.is_gone():
            return True
        try:
            return abs(self._read_server_time() - file.stat().st_mtime) > EXPIRY
        except OSError:  # it has just been deleted
            return True

    def _read_server_time(self) -> float:
        """Return the time of the file server's clock, or of our own if that is impossible."""
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
        """Remove the lock file of a killed run; another run may do the same at the same time."""
        aside = self._directory / f".mydata-like-{secrets.token_hex(8)}.lock"
        with suppress(OSError), self._times_kept():
            file.rename(aside)
            if _load(aside) == seen:
                aside.unlink()
            else:  # it has been taken over since we checked
                aside.rename(file)

    @contextmanager
    def _times_kept(self) -> Iterator[None]:
        """Preserve the folder's times; raises OSError before the block if that is impossible."""
        before = self._directory.stat()
        times = before.st_atime_ns, before.st_mtime_ns
        os.utime(self._directory, ns=times)
        try:
            yield
        finally:
            with suppress(OSError):
                os.utime(self._directory, ns=times)


def _read(file: Path) -> bytes | None:
    """Return the content of a lock file, None if it has just been deleted."""
    try:
        return _load(file)
    except FileNotFoundError:
        return None
    except OSError:
        return b""


def _load(file: Path) -> bytes:
    """Return the beginning of an untrusted file, or raise OSError.

    A pipe does not block: it is empty, or raises BlockingIOError.
    """
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        return stream.read(_LONGEST) or b""


WATCH_NOTE = "watch.json"
# Local file systems, by their names in the system; other accounts see our locks there.
LOCAL: Final = frozenset(
    (
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "bcachefs", "zfs", "f2fs", "jfs", "reiserfs"),
        *("tmpfs", "ramfs", "overlay", "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk"),
        *("apfs", "hfs", "ufs"),
    )
)
_COMMAND: Final = 4  # words of a command line that may name the program
_PROGRAM: Final = re.compile("mydata[-_]like")
TEST_TIMEOUT = 0.5  # seconds; another process may be testing the same lock
ENDING: Final = 5.0  # seconds for a process whose holder has ended


def is_local(directory: bytes) -> bool:
    """Return whether a folder is known to be on a file system of this computer alone."""
    path = os.fsdecode(os.path.realpath(directory))
    mounts = [
        it
        for it in psutil.disk_partitions(all=True)
        if path == it.mountpoint or path.startswith(it.mountpoint.rstrip(os.sep) + os.sep)
    ]
    # Of several mounts on one mount point, the last one is visible.
    kinds = [it.fstype for it in sorted(mounts, key=lambda mount: len(mount.mountpoint))]
    return bool(kinds) and kinds[-1].lower() in LOCAL


@contextmanager
def lock_data_directory(
    state: Path,
    data_directory: bytes,
    clock: Clock,
    shard: Shard = WHOLE,
    is_local: Callable[[bytes], bool] = is_local,
) -> Iterator[Lease]:
    """Hold the locks of the data directory or of a shard; yield the lease, to be renewed.

    Raises `AlreadyRunningError` if another run holds one or works on some of the same files,
    `RunError` if locking is impossible. Locks of a killed run never block the next run on this
    computer, and block runs on other computers for minutes at most.
    """
    name = format_path(os.path.realpath(data_directory))
    with _hold(find_note(state, data_directory, shard), _describe_run(name, shard), clock):
        # Ours is held before we check: of two concurrent runs, at least one sees the other.
        for other in (WHOLE, *find_shards(state)):
            note = find_note(state, data_directory, other)  # of a running or killed run
            if other.total != shard.total and note.exists():
                with _hold(note, _describe_run(name, other), clock):
                    pass
        lease = Lease(data_directory, shard, LockHolder.here(clock))
        with _directory_locked(data_directory, shard, lease) as locked:
            try:
                if locked and shard == WHOLE and is_local(data_directory):
                    lease.check()
                else:
                    lease.take()
                yield lease
            finally:
                lease.release()


@contextmanager
def _directory_locked(directory: bytes, shard: Shard, lease: Lease) -> Iterator[bool]:
    """Lock the data directory itself, without writing to it; shards share that lock.

    Yields whether the file system supports such locks.
    """
    descriptor = None
    if sys.platform != "win32":
        with suppress(OSError):  # reading the folder reports the error
            lease.descriptor = descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield descriptor is not None and _lock_folder(descriptor, directory, shard, lease)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock_folder(descriptor: int, directory: bytes, shard: Shard, lease: Lease) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl  # Windows lacks it

    kind = fcntl.LOCK_EX if shard == WHOLE else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        inode = os.fstat(descriptor).st_ino
        found = [
            pid for kind, _, pid, locked in _list_locks() if (kind, locked) == ("FLOCK", inode)
        ]
        holder = lease.find_holder() or next(filter(None, map(_describe_locker, found)), None)
        if found and holder is None:
            logger.warning("%s is locked by another program: %s", format_path(directory), found)
            return False
        who = holder.describe() if holder else ""
        raise _already_running(_describe_run(format_path(directory), WHOLE) + who) from None
    except OSError as error:  # some network file systems
        logger.info("%s cannot be locked: %s", format_path(directory), error)
        return False
    return True


def _list_locks() -> Iterator[tuple[str, str, int, int]]:
    """Yield kind, access, process and inode of each lock, if the system (Linux) reports them."""
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            with suppress(ValueError):  # a line for a process that waits has other words
                _, kind, _, access, process, file, *_ = line.split()
                yield kind, access, int(process), int(file.rpartition(":")[2])


def _describe_locker(number: int) -> LockHolder | None:
    """Return the holder of a folder's lock, None if it is no run.

    Any account that may read a folder may lock it, so of other accounts only processes of this
    program count. A lock outlives the process that took it if another one has inherited it.
    """
    try:
        process = psutil.Process(number)
        account, began = process.username(), datetime.fromtimestamp(process.create_time(), UTC)
        words = " ".join(process.cmdline()[:_COMMAND])
    except psutil.NoSuchProcess:
        return None
    except (OSError, psutil.Error):
        return LockHolder(number, socket.gethostname(), datetime.now(UTC))
    if account != psutil.Process().username() and not _PROGRAM.search(words):
        return None
    return LockHolder(number, socket.gethostname(), began, account)


def find_lock_holders(files: Sequence[Path]) -> list[str]:
    """Return which programs have locked one of these files for writing, if the system reports it.

    Only Linux does.
    """
    inodes = {file.stat().st_ino for file in files if file.exists()}
    found: dict[str, None] = {}
    for kind, access, number, inode in _list_locks():
        if (kind, access) == ("POSIX", "WRITE") and inode in inodes:
            with suppress(ValueError, psutil.Error):
                found[f"{psutil.Process(number).name()} (process {number})"] = None
    return list(found)


def _already_running(what: str) -> AlreadyRunningError:
    return AlreadyRunningError(
        f"{what}.",
        hint="Wait until it has ended, or stop it there.",
    )


def _describe_run(name: str, shard: Shard) -> str:
    part = f"shard {shard} of " if shard != WHOLE else ""
    return f"Another run is in progress on {part}{name}"


def find_note(state: Path, data_directory: bytes, shard: Shard = WHOLE) -> Path:
    """Return the note file for the holder of a data directory; the lock file is next to it."""
    name = hashlib.sha256(os.path.realpath(data_directory)).hexdigest()[:16]
    return state / shard.place / f"run-{name}.json"


def find_shards(state: Path) -> list[Shard]:
    """Return the shards that have ever run with this state folder, sorted."""
    found = (re.fullmatch(r"shard-(\d+)-of-(\d+)", path.name) for path in state.glob("shard-*"))
    shards = (Shard(int(name[1]), int(name[2])) for name in found if name)
    return sorted(shards, key=lambda shard: (shard.total, shard.number))


def is_locked(state: Path, data_directory: bytes, shard: Shard = WHOLE) -> bool:
    """Return whether a run is in progress on the data directory or a shard, without blocking it."""
    return _is_held(find_note(state, data_directory, shard))


def is_watched(state: Path) -> bool:
    """Return whether a watch is running, without blocking it."""
    return _is_held(state / WATCH_NOTE)


@contextmanager
def lock_watch(state: Path, clock: Clock) -> Iterator[None]:
    """Hold the lock of this installation's `watch`; raises like `lock_data_directory`."""
    with _hold(state / WATCH_NOTE, "Another watch is already running", clock):
        yield


def find_helper_note(state: Path, data_directory: bytes, number: int) -> Path:
    """Return what identifies the lock of a process that works for a holder."""
    return find_note(state, data_directory).with_suffix(f".{number}.json")


@contextmanager
def lock_helper(note: Path) -> Iterator[None]:
    """Hold the lock of this process, which works for the holder of a data directory.

    That one may be killed before. Raises `AlreadyRunningError` or `RunError`.
    """
    try:
        lock = _acquire(note, ENDING)
    except Timeout:
        raise _already_running("Another process does the same work") from None
    try:
        yield
    finally:
        lock.release()


def await_helpers(state: Path, data_directory: bytes, patience: float = ENDING) -> bool:
    """Return whether the processes of earlier holders have ended; call it as the holder.

    Each has `patience` seconds. Raises `RunError`.
    """
    note = find_note(state, data_directory)
    try:
        for file in note.parent.glob(f"{note.stem}.*.lock"):
            _acquire(file, patience).release()
    except Timeout:
        return False
    return True


@contextmanager
def _hold(note: Path, what: str, clock: Clock) -> Iterator[None]:
    """Hold a lock; the note exists while it is held, and after its holder was killed."""
    try:
        lock = _acquire(note, TEST_TIMEOUT)
    except Timeout:
        holder = None
        with suppress(OSError):
            holder = LockHolder.parse(note.read_bytes())
        raise _already_running(f"{what}{holder.describe() if holder else ''}") from None
    try:
        try:
            write_private(note, LockHolder.here(clock).format().encode())
        except SettingsError as error:  # the note is only for the message of other runs
            logger.warning("The lock's note could not be written: %s", error)
        yield
    finally:
        _release(lock, note)


def _is_held(note: Path) -> bool:
    """Return whether a lock is held; its note alone may be from a killed holder."""
    if not note.exists():
        return False
    try:
        lock = _acquire(note, timeout=0.0)
    except Timeout:
        return True
    _release(lock, note)
    return False


def _acquire(note: Path, timeout: float) -> FileLock:
    """Acquire the lock next to a note; raises `Timeout`, or `RunError` if it cannot exist."""
    file = note.with_suffix(".lock")
    for one in (file, note):
        require_plain(one)
    lock = FileLock(file, timeout=timeout, mode=PRIVATE_FILE)
    try:
        ensure_folder(note.parent)
        lock.acquire(poll_interval=0.01)
    except Timeout:
        raise
    except (OSError, NotImplementedError) as error:
        raise RunError(
            f"No lock can be created in {note.parent}: {error}.",
            hint="Choose a folder on a local disk in advanced.state_directory.",
            code="lock.failed",
        ) from error
    return lock


def _release(lock: FileLock, note: Path) -> None:
    """Release a lock; without a note, no one needs to test it."""
    with suppress(OSError):
        note.unlink()
    lock.release()
