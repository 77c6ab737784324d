"""One run at a time per data directory, from any account and computer.

Three locks, since none of them covers all: a file in the folder of our own state, for the runs of
this installation; the data directory itself, for all accounts of this computer, where its file
system has such locks; and a lease, a file in the data directory, where other computers may reach
it, or other shards. The first two are freed by the system when their holder dies.
"""

import hashlib
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil
from filelock import FileLock, Timeout

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import AlreadyRunningError, RunError, SettingsError
from mydata_like.core.formatting import format_path
from mydata_like.core.ports import Clock
from mydata_like.settings.atomic_write import (
    PRIVATE_FILE,
    ensure_folder,
    require_plain,
    write_private,
)
from mydata_like.system.holder import Holder
from mydata_like.system.lease import Lease

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

WATCH_NOTE = "watch.json"
# File systems of one computer, as its system names them: there other accounts see our locks.
LOCAL: Final = frozenset(
    (
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "bcachefs", "zfs", "f2fs", "jfs", "reiserfs"),
        *("tmpfs", "ramfs", "overlay", "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk"),
        *("apfs", "hfs", "ufs"),
    )
)
PROBE_PATIENCE = 1.0  # seconds; others may be looking at the same lock just now


def is_local(directory: bytes) -> bool:
    """Return whether a folder is known to be on a file system of this computer alone."""
    path = os.fsdecode(os.path.realpath(directory))
    mounts = [it for it in psutil.disk_partitions(all=True) if _is_below(path, it.mountpoint)]
    # Of those on one mount point the last one is seen.
    kinds = [it.fstype for it in sorted(mounts, key=lambda mount: len(mount.mountpoint))]
    return bool(kinds) and kinds[-1].lower() in LOCAL


def _is_below(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip(os.sep) + os.sep)


@contextmanager
def lock_data_directory(
    state: Path,
    data_directory: bytes,
    clock: Clock,
    shard: Shard = WHOLE,
    is_local: Callable[[bytes], bool] = is_local,
) -> Iterator[Lease]:
    """Hold the locks of the data directory or of a shard; yield the lease, to be renewed.

    Raises `AlreadyRunningError` when another run holds one or works on some of the same files,
    `RunError` where there can be no lock. What a killed run left behind never stands in the way
    of the next one on this computer, and minutes at most in that of others.
    """
    name = format_path(os.path.realpath(data_directory))
    note = _note_file(state, data_directory)
    with _hold(_of(note, shard), _tell(name, shard), clock):
        # Ours is held first: of two that look at each other's at once, none misses the other.
        for other in _find_overlapping(note, shard):
            with _hold(_of(note, other), _tell(name, other), clock, PROBE_PATIENCE):
                pass
        lease = Lease(data_directory, shard, Holder.here(clock))
        with _directory_locked(data_directory, shard, lease) as locked:
            try:
                if locked and shard == WHOLE and is_local(data_directory):
                    lease.look()
                else:
                    lease.take()
                yield lease
            finally:
                lease.release()


@contextmanager
def _directory_locked(directory: bytes, shard: Shard, lease: Lease) -> Iterator[bool]:
    """Lock the data directory itself, for which nothing is written; shards share that lock.

    Yields whether the file system has such locks.
    """
    descriptor = _open_folder(directory)
    try:
        yield descriptor is not None and _lock_folder(descriptor, directory, shard, lease)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open_folder(directory: bytes) -> int | None:
    """Open a folder to lock it; one that cannot be opened is told when it is read."""
    try:
        return None if sys.platform == "win32" else os.open(directory, os.O_RDONLY)
    except OSError:
        return None


def _lock_folder(descriptor: int, directory: bytes, shard: Shard, lease: Lease) -> bool:
    if sys.platform == "win32":
        return False
    kind = fcntl.LOCK_EX if shard == WHOLE else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = lease.find_holder() or _find_locker(os.fstat(descriptor).st_ino)
        who = holder.describe() if holder else ""
        raise _already_running(_tell(format_path(directory), WHOLE) + who) from None
    except OSError as error:  # some network file systems
        logger.info("%s cannot be locked: %s", format_path(directory), error)
        return False
    return True


def _find_locker(inode: int) -> Holder | None:
    """Return who has locked a folder, where the system (Linux) tells that."""
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        words = [line.split() for line in lines]
        found = (it for it in words if it[1] == "FLOCK" and it[5].endswith(f":{inode}"))
        process = psutil.Process(int(next(found)[4]))
        began = datetime.fromtimestamp(process.create_time(), UTC)
        return Holder(process.pid, socket.gethostname(), began, process.username())
    except (OSError, ValueError, LookupError, StopIteration, psutil.Error):
        return None


def _already_running(what: str) -> AlreadyRunningError:
    return AlreadyRunningError(
        f"{what}.",
        hint="Wait until it has ended, or stop it there.",
    )


def _tell(name: str, shard: Shard) -> str:
    part = f"shard {shard} of " if shard != WHOLE else ""
    return f"Another run is at work on {part}{name}"


def _of(note: Path, shard: Shard) -> Path:
    """Return the note of a shard, given that of the whole."""
    return note.parent / shard.place / note.name


def _find_overlapping(note: Path, shard: Shard) -> list[Shard]:
    """Return the shards in which some of the same files lie and a run is, or was killed."""
    found = find_shards(note.parent)
    return [it for it in (WHOLE, *found) if it.total != shard.total and _of(note, it).exists()]


def find_shards(state: Path) -> list[Shard]:
    """Return the shards that have ever been at work with this state, in their order."""
    found = (re.fullmatch(r"shard-(\d+)-of-(\d+)", path.name) for path in state.glob("shard-*"))
    shards = (Shard(int(name[1]), int(name[2])) for name in found if name)
    return sorted(shards, key=lambda shard: (shard.total, shard.number))


def is_locked(state: Path, data_directory: bytes, clock: Clock, shard: Shard = WHOLE) -> bool:
    """Return whether a run is at work on the data directory or a shard; never in its way."""
    note = _of(_note_file(state, data_directory), shard)
    return note.exists() and _is_held(_hold(note, "", clock))


def is_watched(state: Path, clock: Clock) -> bool:
    """Return whether a watch is at work; never in the way of one."""
    return (state / WATCH_NOTE).exists() and _is_held(lock_watch(state, clock))


def _is_held(lock: AbstractContextManager[None]) -> bool:
    """Return whether a lock with a note is held: a killed holder has left its note, too."""
    try:
        with lock:
            return False
    except AlreadyRunningError:
        return True


@contextmanager
def lock_watch(state: Path, clock: Clock) -> Iterator[None]:
    """Be the one `watch` of this installation; raises as `lock_data_directory` does."""
    with _hold(state / WATCH_NOTE, "Another watch is at work here", clock):
        yield


def _note_file(state: Path, data_directory: bytes) -> Path:
    """Return where it is noted who works on the data directory; the lock lies beside."""
    name = hashlib.sha256(os.path.realpath(data_directory)).hexdigest()[:16]
    return state / f"run-{name}.json"


@contextmanager
def _hold(note: Path, what: str, clock: Clock, patience: float = 0.0) -> Iterator[None]:
    state = note.parent
    file = note.with_suffix(".lock")
    lock = FileLock(file, timeout=patience, mode=PRIVATE_FILE)
    for one in (file, note):
        require_plain(one)
    try:
        ensure_folder(state)
        lock.acquire()
    except Timeout:
        raise _already_running(f"{what}{_describe_holder(note)}") from None
    except (OSError, NotImplementedError) as error:
        raise RunError(
            f"No lock can be made in {state}: {error}.",
            hint="Choose a folder on a local disk in advanced.state_directory.",
            code="lock.failed",
        ) from error
    try:
        _write_note(note, clock)
        yield
        note.unlink(missing_ok=True)
    finally:
        lock.release()


def _write_note(note: Path, clock: Clock) -> None:
    """Say who holds the lock, for those who come in vain."""
    try:
        write_private(note, Holder.here(clock).format().encode())
    except SettingsError as error:
        logger.warning("The lock's note could not be written: %s", error)


def _describe_holder(note: Path) -> str:
    """Return since when, where and as which process the other run works, if it has said so."""
    try:
        holder = Holder.parse(note.read_bytes())
    except OSError:
        return ""
    return holder.describe() if holder else ""
