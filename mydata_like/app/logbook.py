"""The log of this installation, for those who read it."""

from pathlib import Path

from mydata_like.app.settings import find_places
from mydata_like.hostos.logs import LogFollower

__all__ = ["LogFollower", "find_logs", "follow_log"]


def find_logs(config: Path | None) -> Path:
    """Return the folder of the logs."""
    return find_places(config).logs


def follow_log(config: Path | None, name: str, most: int) -> LogFollower:
    """Return what reads a log as it grows: the engine's, or the window's."""
    return LogFollower(find_logs(config), name, most)
