"""The system clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall-clock time for display, monotonic time for deadlines."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
