"""The locks of a data directory, held and renewed while a run works on it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mydata_like.app.connection import find_uuid
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import SettingsError
from mydata_like.core.events import Event, Notice
from mydata_like.core.model import Layout
from mydata_like.core.ports import Clock, Emit
from mydata_like.engine.pipeline import repeated
from mydata_like.hostos.lock import RENEWAL, Lease, lock_data_directory
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import StatePaths

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


def check_shards(settings: Settings, places: StatePaths) -> None:
    """Raise `SettingsError` if the data directory cannot be split into shards."""
    if settings.data.layout is Layout.DATASET:
        raise SettingsError(
            f'With the layout "{Layout.DATASET}" the whole data directory is one experiment, '
            "which cannot be split into shards.",
            hint="Use a layout with owners or experiments, or run without --shard.",
            code="shard.one-experiment",
        )
    if not find_uuid(settings, places):
        raise SettingsError(
            "The shards have no common identity yet.",
            hint="Before the first shard starts, run once: mydata-like register. Or set "
            "instrument.uuid to the same value on all computers.",
            code="shard.no-identity",
        )


def without_copy_notices(emit: Emit, shard: Shard) -> Emit:
    """Return an `emit` that drops notices of a copied identity, which all shards share."""
    if shard == WHOLE:
        return emit

    def forward(event: Event) -> None:
        if not (isinstance(event, Notice) and event.problem.code == "uploader.copied"):
            emit(event)

    return forward
