"""Logging for every command, with all secrets hidden."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import UploaderError
from mydata_like.hostos.logs import LogFollower, LogStyle, Redaction, logging_to
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import API_KEY, S3_KEY, StatePaths, environment, list_ignored

logger = logging.getLogger(__name__)


@contextmanager
def open_log(settings: Settings, config: Path | None, shard: Shard = WHOLE) -> Iterator[Redaction]:
    """Log to this installation's file; secrets added to the redaction never appear there.

    Each shard has its own file. An error that ends the command is logged as well.
    """
    redaction = Redaction()
    for name in (API_KEY, S3_KEY):
        redaction.add(environment().get(name, ""))
    style = LogStyle(level=settings.advanced.log_level)
    if shard != WHOLE:
        style = replace(style, name=f"{style.name}-{shard.place}")
    with logging_to(StatePaths.chosen(os.environ, config).logs, redaction, style):
        warn_of_ignored()
        try:
            yield redaction
        except UploaderError as error:
            logger.warning("The command ended early: %s", error.problem)
            raise


def warn_of_ignored() -> None:
    """Log which environment variables are set but ignored."""
    for name in list_ignored():
        logger.warning(
            "The environment variable %s is ignored, because it would write keys to a file with "
            "which all traffic can be decrypted.",
            name,
        )


__all__ = ["LogFollower", "find_logs", "follow_log"]


def find_logs(config: Path | None) -> Path:
    """Return the folder of the logs."""
    return StatePaths.chosen(os.environ, config).logs


def follow_log(config: Path | None, name: str, most: int) -> LogFollower:
    """Return a reader of a growing log, the engine's or the window's."""
    return LogFollower(find_logs(config), name, most)
