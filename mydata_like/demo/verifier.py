"""Verification: compare size and checksum of stored bytes with the registered ones."""

import hashlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from io import FileIO
from math import inf
from pathlib import Path
from threading import Condition, Thread
from time import monotonic

from mydata_like.core import hashing
from mydata_like.core.file_access import system_path
from mydata_like.demo.database import Database, Row
from mydata_like.demo.server_clock import ServerClock

_BATCH = 500
_PIECE = 1 << 20
_TOGETHER = 1 << 18  # bytes that are read at once of each of several files
_ODD = frozenset({"", ".", ".."})  # names that change where a path leads
_LARGE = 1 << 16  # bytes; smaller files are hashed one by one

_WANTED = """
    SELECT replica.id, replica.box, uri, location, size, md5sum, datafile FROM replica
    JOIN datafile ON datafile.id = replica.datafile JOIN box ON box.id = replica.box
    WHERE replica.id IN (%s) AND uri IS NOT NULL
"""
# A record that changed while its bytes were read keeps its state.
_RESULT = """
    UPDATE replica SET verified = ?, last_verified = ? WHERE id = ? AND EXISTS (
        SELECT 1 FROM datafile WHERE id = replica.datafile AND size = ? AND md5sum = ?)
"""


class Verifier:
    """The thread that verifies replicas, many in one transaction."""

    def __init__(
        self,
        store: Database,
        times: ServerClock,
        delay: float,
        fetch: Callable[[Iterable[Row]], object] = list,
    ) -> None:
        self._store = store
        self._times = times
        self._delay = delay
        self._fetch = fetch  # called with replicas before their bytes are read
        self._due: dict[int, float] = {}
        self._queue: deque[tuple[float, int]] = deque()  # by time; stale entries differ from `_due`
        self._busy = False
        self._held = False
        self._stopped = False
        self._changed = Condition()
        self._thread = Thread(target=self._work, name="verifier")

    def start(self) -> None:
        """Start, and schedule all replicas that an earlier server left unverified."""
        self._thread.start()
        left = self._store.rows("SELECT id FROM replica WHERE NOT verified")
        self.schedule(row["id"] for row in left)

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join()

    def schedule(self, replicas: Iterable[int], *, at_once: bool = False) -> None:
        """Verify these replicas after the usual delay, or now."""
        with self._changed:
            due = monotonic() + (0.0 if at_once else self._delay)
            put = self._queue.appendleft if at_once else self._queue.append
            for replica in replicas:
                if due < self._due.get(replica, inf):
                    self._due[replica] = due
                    put((due, replica))
            self._changed.notify_all()

    def hold(self) -> None:
        """Verify nothing until `release`."""
        with self._changed:
            self._held = True

    def release(self) -> None:
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def wait_idle(self, timeout: float) -> bool:
        """Wait until no verification is pending; return whether that took at most `timeout`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._due and not self._busy, timeout)

    def _work(self) -> None:
        """Verify due replicas until the verifier is stopped."""
        while batch := self._take():
            found = self._store.rows(_WANTED % ",".join("?" * len(batch)), *batch)
            self._fetch(found)
            results, missing = [], []
            now = self._times.now()
            for row, checksum in zip(found, find_checksums(found), strict=True):
                # A record without a checksum is verified by its size, and gets one.
                good = checksum is not None and checksum == (row["md5sum"] or checksum)
                results.append((int(good), now, row["id"], row["size"], row["md5sum"]))
                if checksum and not row["md5sum"]:
                    missing.append((checksum, row["datafile"]))
            with self._store.transaction():
                self._store.change_many(_RESULT, results)
                self._store.change_many("UPDATE datafile SET md5sum = ? WHERE id = ?", missing)
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _take(self) -> list[int]:
        """Wait for due replicas and return a batch; empty when the verifier is stopped."""
        with self._changed:
            while not self._stopped:
                now = monotonic()
                batch: list[int] = []
                while not self._held and self._queue and self._queue[0][0] <= now:
                    due, replica = self._queue.popleft()
                    if self._due.get(replica) == due:
                        del self._due[replica]
                        batch.append(replica)
                    if len(batch) == _BATCH:
                        break
                if batch:
                    self._busy = True
                    return batch
                held = self._held or not self._queue
                self._changed.wait(None if held else max(0.0, self._queue[0][0] - monotonic()))
        return []


def find_checksums(rows: Sequence[Row]) -> list[str | None]:
    """Return the MD5 of replicas' bytes, or None if they are missing or of another size.

    Large files are hashed together, which takes a fraction of the time.
    """
    found = {row["id"]: find_checksum(row) for row in rows if row["size"] <= _LARGE}
    # Those of similar size end together, so that all lanes are in use.
    large = sorted((row for row in rows if row["size"] > _LARGE), key=lambda row: row["size"])
    for start in range(0, len(large), hashing.LANES):
        found |= _hash_together(large[start : start + hashing.LANES])
    return [found[row["id"]] for row in rows]


def find_checksum(row: Row) -> str | None:
    """Return the MD5 of a replica's bytes, or None if they are missing or of another size."""
    try:
        with _open(row) as file:
            checksum = hashlib.md5(usedforsecurity=False)
            while piece := file.read(min(_PIECE, row["size"] + 1)):
                checksum.update(piece)
    except (OSError, ValueError):
        return None
    return checksum.hexdigest()


def _hash_together(rows: Sequence[Row]) -> dict[int, str | None]:
    """Return the checksums by replica; a piece of each file is read in turn."""
    found: dict[int, str | None] = dict.fromkeys(row["id"] for row in rows)
    with ExitStack() as opened:
        reading: dict[int, tuple[FileIO, hashing.Checksum]] = {}
        for row in rows:
            with suppress(OSError, ValueError):
                reading[row["id"]] = opened.enter_context(_open(row)), hashing.new()
        while reading:
            pieces = []
            for replica, (file, checksum) in list(reading.items()):
                try:
                    piece = file.read(_TOGETHER)
                except OSError:
                    del reading[replica]
                    continue
                if not piece:
                    found[replica] = checksum.hexdigest()
                    del reading[replica]
                pieces.append((checksum, piece))
            hashing.update_all(pieces)
    return found


def _open(row: Row) -> FileIO:
    """Open a replica's bytes; raises `ValueError` if they are no file of the right size."""
    file = FileIO(system_path(os.fsencode(join_inside(row["location"], row["uri"]))))
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size != row["size"]:
        file.close()
        raise ValueError(f"{row['uri']} has another size")
    return file


def replica_path(location: str, uri: str) -> Path:
    """Return the path of a replica's bytes. Raises `ValueError` if it is outside the box."""
    return disk_path(join_inside(location, uri))


def disk_path(path: str) -> Path:
    """Return a path under which Windows, too, finds a file of any name, however long it is."""
    return Path(os.fsdecode(system_path(os.fsencode(path))))


def join_inside(location: str, uri: str) -> str:
    """Return the same path as a string, which is faster; it is needed often for each datafile."""
    if _is_plain(location) and _ODD.isdisjoint(uri.split("/")):
        return f"{location}/{uri}"
    path = os.path.normpath(os.path.join(location, uri))  # noqa: PTH118 - as the server does
    if not f"{path}{os.sep}".startswith(location.rstrip(os.sep) + os.sep):
        raise ValueError(f"{uri} is outside {location}")
    return path


@lru_cache(maxsize=64)
def _is_plain(location: str) -> bool:
    """Return whether paths below a location need no change."""
    return os.sep == "/" and location != "/" and location == os.path.normpath(location)
