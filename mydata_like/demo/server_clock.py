"""The server's clock and its time format: ISO texts without an offset, in the server's zone."""

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo


class ServerClock:
    """Times in one zone, as ISO texts without an offset, with microseconds unless these are 0."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self.localize = lru_cache(1000)(self._localize)  # the time of each file comes twice

    def now(self) -> str:
        return datetime.now(self._zone).replace(tzinfo=None).isoformat()

    def _localize(self, text: str) -> str:
        """Return a client's time as the server stores it. Raises `ValueError` if it is no time."""
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            # A time that daylight saving skips is moved back, as on the real server.
            time = time.replace(tzinfo=self._zone, fold=1).astimezone(UTC)
        return time.astimezone(self._zone).replace(tzinfo=None).isoformat()

    def to_utc(self, text: str) -> str:
        """Return a stored time in UTC with milliseconds, the format of the statistics."""
        time = datetime.fromisoformat(text).replace(tzinfo=self._zone).astimezone(UTC)
        return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
