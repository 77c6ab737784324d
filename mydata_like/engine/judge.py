"""Names what keeps a run from going faster, from how its time was shared out. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from mydata_like.core.channel_time import TimeByCause

AT_WORK: Final = 0.5  # of a channel or a worker, from which on it is at work
HALF: Final = 0.5  # of the time; what takes more of it than that is the limit
FULL: Final = 0.85  # of what processors can do
REACHED: Final = 0.9  # of the bandwidth that is set
TOLD: Final = 0.2  # of their time is what channels must have told of to be judged by it

# What a stage waits for that is at work, by the names of their threads; `send` has its own reasons.
_REASONS: Final = {
    "source": "source",
    "discover": "source",
    "check": "API",
    "compare": "source",
    "bundle": "processor",
    "pack": "processor",
    "register": "API",
}


class Evidence(NamedTuple):
    """How things went for so many seconds; numbers of workers are averages over them.

    `busy` are workers at work by stage, `blocked` those whose results the next stage did not
    take. `spent` is what the channels spent their time on, `engine` is what the engine took of
    a processor. `pending` says that registered files are not verified yet.
    """

    seconds: float
    busy: Mapping[str, float]
    blocked: Mapping[str, float]
    channels: float
    spent: TimeByCause
    engine: float = 0.0
    cores: int = 1
    rate: float = 0.0  # bytes a second
    bandwidth: float = 0.0  # that is set; 0 for none
    pending: bool = False


class Limit(NamedTuple):
    """What holds up the others: a stage, and what it is that this waits for.

    Both are empty where the shares do not decide. Names are those of docs/events.md.
    """

    stage: str = ""
    name: str = ""


def name_limit(evidence: Evidence) -> Limit:
    """Return what keeps a run from going faster."""
    if evidence.channels >= AT_WORK:
        if evidence.blocked.get("send", 0.0) >= HALF * evidence.channels:
            return Limit("register", "API")
        return Limit("send", _name_in_send(evidence))
    busiest = max(_REASONS, key=lambda stage: evidence.busy.get(stage, 0.0))
    if evidence.busy.get(busiest, 0.0) >= AT_WORK:
        reason = "processor" if evidence.engine >= FULL else _REASONS[busiest]
        return Limit(_shown(busiest), reason)
    return Limit("verify", "verification") if evidence.pending else Limit()


def _name_in_send(evidence: Evidence) -> str:
    """Return what channels that are at work wait for."""
    spent = evidence.spent
    if evidence.bandwidth and evidence.rate >= REACHED * evidence.bandwidth:
        return "bandwidth"
    if spent.in_all < TOLD * evidence.channels * evidence.seconds:
        return ""
    at_work = spent.processor / evidence.seconds + evidence.engine
    if at_work >= FULL * evidence.cores:
        return "processor"
    parts = spent._replace(hash=0.0, cipher=0.0)._asdict() | {"processor": spent.processor}
    name = max(parts, key=lambda part: parts[part])
    if parts[name] >= HALF * spent.in_all:
        return name
    return "line" if spent.line + spent.server >= HALF * spent.in_all else ""


def _shown(stage: str) -> str:
    """Return the stage that a person knows."""
    shown = {"source": "scan", "discover": "scan", "compare": "check"}
    return (shown | {"bundle": "send", "pack": "send"}).get(stage, stage)
