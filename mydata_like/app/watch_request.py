"""What a watch is asked to do; the service that starts it is made from this as well."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What a watch is asked to do, beside what the settings say."""

    config: Path | None = None
    assignments: tuple[str, ...] = ()
    host_keys: tuple[str, ...] = ()
    attended: bool = False  # by a program that shows what it does
