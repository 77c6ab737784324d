"""What is remembered of the hosts of a staging area or a destination."""

from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Final

from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Clock
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.state.state_files import HostRecord, load_record, save_record

_REMEMBERED: Final = timedelta(days=1)
_DOUBTED: Final = timedelta(minutes=15)
_COMMANDS: Final = ("checksum", "sha256")  # bytes of `HostCapabilities`


class RememberedHosts:
    """The capabilities of an area's hosts that were found within the last day; see `HostMemory`.

    Doubtful ones are soon out of date: a better kind of access may have failed by chance.
    """

    def __init__(self, file: Path, area: StagingArea, clock: Clock) -> None:
        self._file = file
        self._area = area
        self._clock = clock
        self._lock = Lock()

    def find(self, host: str) -> HostCapabilities | None:
        """Return the capabilities of a host, unless they are unknown or out of date."""
        record = self._load().get(self._name(host))
        if record is None:
            return None
        lifetime = _DOUBTED if record.doubtful else _REMEMBERED
        if not timedelta() <= self._clock.now() - record.at < lifetime:
            return None
        values = record._asdict() | {it: getattr(record, it).encode() for it in _COMMANDS}
        del values["at"]
        found = HostCapabilities(**values)
        return found if found.sound else None

    def keep(self, host: str, capabilities: HostCapabilities | None) -> None:
        """Store the capabilities of a host, or remove them."""
        with self._lock:
            records = self._load()
            records.pop(self._name(host), None)
            if capabilities is not None:
                values = capabilities._asdict()
                values |= {it: values[it].decode() for it in _COMMANDS}
                records[self._name(host)] = HostRecord(self._clock.now(), **values)
            save_record(self._file, records)

    def _load(self) -> dict[str, HostRecord]:
        return load_record(self._file, dict[str, HostRecord]) or {}

    def _name(self, host: str) -> str:
        area = self._area
        return f"{area.username}@{host}:{area.port} {area.location}"
