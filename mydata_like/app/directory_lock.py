"""The lock files of a data directory while a run works on it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.ports import Clock
from mydata_like.engine.pipeline import repeated
from mydata_like.hostos.lock import RENEWAL, Lease, lock_data_directory

logger = logging.getLogger(__name__)


@contextmanager
def directory_locked(
    state: Path,
    root: bytes,
    clock: Clock,
    stop: Callable[[str], None],
    shard: Shard = WHOLE,
) -> Iterator[Lease]:
    """Hold the locks and yield the lease; call `stop` if another computer has taken it over.

    Raises like `lock_data_directory`.
    """
    with lock_data_directory(state, root, clock, shard) as lease:

        def renew() -> None:
            if not lease.renew():
                logger.warning("Another run has taken over the data directory")
                stop("another run has taken over the data directory")

        with repeated(renew, RENEWAL):
            yield lease
