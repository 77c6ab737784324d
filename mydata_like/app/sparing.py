"""What spares the instrument: a low priority, holds while it is at work, sleep when it may."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from mydata_like.core.ports import Emit
from mydata_like.engine import restraint, wakefulness
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.restraint import Restraint
from mydata_like.engine.retry import Gate
from mydata_like.engine.ticker import repeated
from mydata_like.engine.wakefulness import Vigil
from mydata_like.hostos.load import HostLoad
from mydata_like.hostos.process import lower_priority
from mydata_like.hostos.sleep_inhibitor import SystemWakefulness
from mydata_like.settings.schema import Limits, Settings


def go_second(settings: Settings) -> None:
    """Let other programs go first, from the start of this process to its end, if so set."""
    if settings.limits.low_priority:
        lower_priority()


@contextmanager
def spared(limits: Limits, gate: Gate, emit: Emit, progress: RunProgress) -> Iterator[None]:
    """Spare the instrument while a run carries."""
    with ExitStack() as stack:
        if limits.quiet_hours or limits.pause_while_running or limits.pause_under_pressure:
            look = Restraint(limits, HostLoad(), gate, emit)
            stack.enter_context(repeated(look, restraint.LOOK))
        if limits.keep_awake:
            keeper = SystemWakefulness()
            stack.callback(keeper.end)
            vigil = Vigil(keeper, progress, gate.clock)
            stack.enter_context(repeated(vigil, wakefulness.LOOK))
        yield
