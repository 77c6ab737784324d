"""Reads the status of this installation in the background, and only if something has changed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mydata_like.core.errors import Problem, UploaderError
from mydata_like.settings.layers import LayerSources
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.ledger_status import KnownStatus, StatusReport


class Look(NamedTuple):
    """What a look at this installation has found; without a status, `problem` says why.

    `settings_changed` means that another program has written the settings files since the look
    before.
    """

    settings_changed: bool
    status: StatusReport | None = None
    problem: Problem | None = None


class StatusReader:
    """Reads the status of this installation; may be used by one thread at a time."""

    def __init__(self) -> None:
        self._known: KnownStatus | None = None
        self._stamp: tuple[tuple[int, int], ...] | None = None  # of the settings files

    def look(self, settings: Settings, config: Path | None, sources: LayerSources) -> Look:
        """Return the current status."""
        # Imported here, in the background, since the window appears without it.
        from mydata_like.app.ledger_status import renew_status

        stamp = tuple(_stamp(file) for file in (sources.user, sources.managed) if file)
        known, self._stamp = self._stamp, stamp
        changed = known is not None and known != stamp
        try:
            self._known = renew_status(settings, config, self._known)
        except UploaderError as error:
            return Look(changed, problem=error.problem)
        return Look(changed, self._known.report)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
