"""The server's clock and its time format: naive texts in its own zone."""

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo


class ServerClock:
    """Times of one zone, as naive ISO texts with microseconds where there are any."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self.localize = lru_cache(1000)(self._localize)  # of each file the same time comes twice

    def now(self) -> str:
        return datetime.now(self._zone).replace(tzinfo=None).isoformat()

    def _localize(self, text: str) -> str:
        """Return a client's time as the server keeps it; raises `ValueError` where it is none."""
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            # Hours that daylight saving skips move back, as they do on the real server.
            time = time.replace(tzinfo=self._zone, fold=1).astimezone(UTC)
        return time.astimezone(self._zone).replace(tzinfo=None).isoformat()

    def to_utc(self, text: str) -> str:
        """Return one of our texts in UTC with milliseconds, as the statistics show times."""
        time = datetime.fromisoformat(text).replace(tzinfo=self._zone).astimezone(UTC)
        return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
