"""Limits the impact on the instrument: low priority, pauses during acquisition, and sleep."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from mydata_like.core.ports import Emit
from mydata_like.engine import load_guard
from mydata_like.engine.gate import Gate
from mydata_like.engine.load_guard import LoadGuard, SleepGuard
from mydata_like.engine.pipeline import repeated
from mydata_like.engine.progress import RunProgress
from mydata_like.hostos.load import HostLoad
from mydata_like.hostos.process import lower_priority
from mydata_like.hostos.sleep_inhibitor import SystemWakefulness
from mydata_like.settings.schema import Limits, Settings


def lower_own_priority(settings: Settings) -> None:
    """Lower the priority of this process for good, if `limits.low_priority` is set."""
    if settings.limits.low_priority:
        lower_priority()


@contextmanager
def limited_impact(limits: Limits, gate: Gate, emit: Emit, progress: RunProgress) -> Iterator[None]:
    """Limit the impact on the instrument while a run is in progress."""
    with ExitStack() as stack:
        if limits.quiet_hours or limits.pause_while_running or limits.pause_under_pressure:
            check_load = LoadGuard(limits, HostLoad(), gate, emit)
            stack.enter_context(repeated(check_load, load_guard.LOOK))
        if limits.keep_awake:
            inhibitor = SystemWakefulness()
            stack.callback(inhibitor.end)
            guard = SleepGuard(inhibitor, progress, gate.clock)
            stack.enter_context(repeated(guard, load_guard.RENEW_INTERVAL))
        yield
