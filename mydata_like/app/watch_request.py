"""The parameters of a watch, also used to define the service that starts it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """The parameters of a watch that are not in the settings."""

    config: Path | None = None
    assignments: tuple[str, ...] = ()
    host_keys: tuple[str, ...] = ()
    attended: bool = False  # a program shows its activity
