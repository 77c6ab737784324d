"""The locks of a data directory, held and renewed for as long as something works on it."""

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
def occupied(
    state: Path,
    root: bytes,
    clock: Clock,
    stop: Callable[[str], None],
    shard: Shard = WHOLE,
) -> Iterator[Lease]:
    """Hold the locks, yield the lease; `stop` is called where another computer took it over.

    Raises as `lock_data_directory` does.
    """
    with lock_data_directory(state, root, clock, shard) as lease:

        def renew() -> None:
            if not lease.renew():
                logger.warning("Another run has taken over the data directory")
                stop("another run has taken over the data directory")

        with repeated(renew, RENEWAL):
            yield lease
