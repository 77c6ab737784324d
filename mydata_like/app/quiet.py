"""Whether a speed test may be made now, or something is to be spared."""

from mydata_like.core.errors import Problem, RunError
from mydata_like.core.formatting import format_size
from mydata_like.core.ports import Clock
from mydata_like.engine.load_guard import judge_hours, judge_program
from mydata_like.engine.run_limits import Planned, find_planned
from mydata_like.hostos.load import HostLoad
from mydata_like.settings.schedule_section import parse_period
from mydata_like.settings.transfer_sections import Limits


def require_quiet(limits: Limits, clock: Clock) -> None:
    """Raise `RunError` where a run would hold, or send slowly, so as not to disturb others."""
    hours, local = tuple(map(parse_period, limits.quiet_hours)), clock.now().astimezone()
    found = judge_hours(hours, local)
    if not found and limits.pause_while_running:
        found = judge_program(HostLoad().find_program(limits.pause_while_running))
    if found := found or _judge_bandwidth(find_planned(limits, local)):
        raise _unwelcome(found)


def _judge_bandwidth(planned: Planned) -> Problem | None:
    """Return that less may be sent now than the line carries, which is what a test finds out."""
    if not planned.rate:
        return None
    allowed = f"{format_size(planned.rate)}/s ({planned.reason})"
    return Problem(
        "limits.bandwidth",
        f"All that is sent may take {allowed} now, and a test sends as fast as it can.",
    )


def _unwelcome(problem: Problem) -> RunError:
    return RunError(
        f"A speed test would disturb the instrument or its network now. {problem.message}",
        hint="Try again later; --anyway makes the test all the same.",
        code=problem.code,
    )
