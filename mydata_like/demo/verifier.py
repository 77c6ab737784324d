"""Verification: compare size and checksum of stored bytes with the registered ones."""

import hashlib
import os
import stat
from collections import deque
from collections.abc import Iterable
from math import inf
from pathlib import Path
from threading import Condition, Thread
from time import monotonic

from mydata_like.demo.database import Database, Row
from mydata_like.demo.server_clock import ServerClock

_BATCH = 500
_PIECE = 1 << 20

_WANTED = """
    SELECT replica.id, uri, location, size, md5sum, datafile FROM replica
    JOIN datafile ON datafile.id = replica.datafile JOIN box ON box.id = replica.box
    WHERE replica.id IN (%s)
"""
# A record that changed while its bytes were read keeps its state.
_RESULT = """
    UPDATE replica SET verified = ?, last_verified = ? WHERE id = ? AND EXISTS (
        SELECT 1 FROM datafile WHERE id = replica.datafile AND size = ? AND md5sum = ?)
"""


class Verifier:
    """The thread that verifies replicas, many in one transaction."""

    def __init__(self, store: Database, times: ServerClock, delay: float) -> None:
        self._store = store
        self._times = times
        self._delay = delay
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
        while batch := self._take():
            self._verify(batch)
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _take(self) -> list[int]:
        """Wait for due replicas and return a batch; empty when the verifier is stopped."""
        with self._changed:
            while not self._stopped:
                if batch := self._pop_ready():
                    self._busy = True
                    return batch
                held = self._held or not self._queue
                self._changed.wait(None if held else max(0.0, self._queue[0][0] - monotonic()))
        return []

    def _pop_ready(self) -> list[int]:
        """Remove and return due replicas, at most a batch."""
        now = monotonic()
        batch: list[int] = []
        while not self._held and self._queue and self._queue[0][0] <= now and len(batch) < _BATCH:
            due, replica = self._queue.popleft()
            if self._due.get(replica) == due:
                del self._due[replica]
                batch.append(replica)
        return batch

    def _verify(self, replicas: list[int]) -> None:
        found = self._store.rows(_WANTED % ",".join("?" * len(replicas)), *replicas)
        judged = [(row, find_checksum(row)) for row in found]
        now = self._times.now()
        with self._store.transaction():
            self._store.change_many(_RESULT, [_judge(row, md5, now) for row, md5 in judged])
            for row, md5 in judged:
                if md5 and not row["md5sum"]:
                    self._store.change(
                        "UPDATE datafile SET md5sum = ? WHERE id = ?", md5, row["datafile"]
                    )


def _judge(row: Row, md5: str | None, now: str) -> tuple[int, str, int, int, str]:
    """Return the values of `_RESULT`; a record without a checksum is verified by its size."""
    good = md5 is not None and md5 == (row["md5sum"] or md5)
    return int(good), now, row["id"], row["size"], row["md5sum"]


def find_checksum(row: Row) -> str | None:
    """Return the MD5 of a replica's bytes, or None if they are missing or of another size."""
    try:
        path = join_inside(row["location"], row["uri"])
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - thousands a second
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size != row["size"]:
                return None
            checksum = hashlib.md5(usedforsecurity=False)
            while piece := file.read(min(_PIECE, status.st_size + 1)):
                checksum.update(piece)
    except (OSError, ValueError):
        return None
    return checksum.hexdigest()


def replica_path(location: str, uri: str) -> Path:
    """Return the path of a replica's bytes. Raises `ValueError` if it is outside the box."""
    return Path(join_inside(location, uri))


def join_inside(location: str, uri: str) -> str:
    """Return the same path as a string, which is faster; it is needed often for each datafile."""
    path = os.path.normpath(os.path.join(location, uri))  # noqa: PTH118 - as the server does
    if not f"{path}{os.sep}".startswith(location.rstrip(os.sep) + os.sep):
        raise ValueError(f"{uri} is outside {location}")
    return path
