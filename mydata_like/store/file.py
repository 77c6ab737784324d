"""The ledger's file while it is open: one caller at a time, errors in our words."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from mydata_like.core.ports import Clock
from mydata_like.store import schema

logger = logging.getLogger(__name__)


class LedgerFile:
    """One connection, which any thread may use; a damaged file is put aside on closing."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, clock: Clock, *, reads_only: bool
    ) -> None:
        self._connection = connection
        self._path = path
        self._clock = clock
        self._lock = Lock()
        self._damaged = False
        self._reads_only = reads_only

    @property
    def version(self) -> int:
        """The version of the tables; 0 where they are not made yet."""
        with self.used() as cursor:
            (version,) = cursor.execute("PRAGMA user_version").fetchone()
        return int(version)

    @contextmanager
    def used(self) -> Iterator[sqlite3.Cursor]:
        """Have the connection to oneself, and tell of its errors in our words."""
        with self._lock:
            try:
                yield self._connection.cursor()
            except schema.FAILURES as error:
                if self._reads_only or not schema.means_damage(error):
                    raise schema.failure(self._path, error) from error
                self._damaged = True
                raise schema.damage(self._path, error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Make what is done inside happen wholly or, if it raises, not at all."""
        with self.used() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file; again and again if need be."""
        with self._lock:
            try:
                self._connection.close()
            except sqlite3.Error as error:
                logger.warning("The ledger could not be closed properly: %s", error)
            if self._damaged and not self._reads_only:
                self._damaged = False
                self._put_aside()

    def _put_aside(self) -> None:
        try:
            aside = schema.put_aside(self._path, self._clock.now())
            logger.warning("The ledger was damaged; it is now %s", aside)
        except OSError as error:
            logger.warning("The damaged ledger could not be put aside: %s", error)
