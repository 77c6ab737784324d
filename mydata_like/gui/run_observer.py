"""Who follows what the window itself asks the server for, outside of the engine's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mydata_like import bootstrap
    from mydata_like.core.events import Event
    from mydata_like.engine.workers import CancelFlag


def observe(
    cancel: CancelFlag, report: Callable[[Event], None] | None = None
) -> bootstrap.Audience:
    """Return an observer that passes events to `report`, if there is one."""
    from mydata_like import bootstrap
    from mydata_like.engine.tally import Tally

    tally = Tally(bootstrap.SystemClock())
    return bootstrap.Audience(report or tally.add, tally, cancel, hide_nothing)


def hide_nothing(secret: str) -> None:
    """Ignore a secret: the window's log holds only the paths of requests, and hides API keys."""
    del secret
