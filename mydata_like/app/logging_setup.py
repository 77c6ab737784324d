"""What surrounds every command: the log, with all secrets hidden in it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mydata_like.app.settings_service import find_places
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import UploaderError
from mydata_like.hostos.logs import LogFollower, LogStyle, Redaction, logging_to
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import API_KEY, environment, list_ignored

logger = logging.getLogger(__name__)


@contextmanager
def open_log(settings: Settings, config: Path | None, shard: Shard = WHOLE) -> Iterator[Redaction]:
    """Log to this installation's file; what is added to the redaction never appears there.

    Shards have files of their own. What ends the command early is logged as well.
    """
    redaction = Redaction()
    redaction.add(environment().get(API_KEY, ""))
    style = LogStyle(level=settings.advanced.log_level)
    if shard != WHOLE:
        style = replace(style, name=f"{style.name}-{shard.place}")
    with logging_to(find_places(config).logs, redaction, style):
        warn_of_ignored()
        try:
            yield redaction
        except UploaderError as error:
            logger.warning("The command ended early: %s", error.problem)
            raise


def warn_of_ignored() -> None:
    """Log which environment variables were set, but count for nothing."""
    for name in list_ignored():
        logger.warning(
            "The environment variable %s is ignored: it would have written keys with which all "
            "that is sent can be read.",
            name,
        )


__all__ = ["LogFollower", "find_logs", "follow_log"]


def find_logs(config: Path | None) -> Path:
    """Return the folder of the logs."""
    return find_places(config).logs


def follow_log(config: Path | None, name: str, most: int) -> LogFollower:
    """Return what reads a log as it grows: the engine's, or the window's."""
    return LogFollower(find_logs(config), name, most)
