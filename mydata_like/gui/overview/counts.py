"""What the Overview counts: pure values from a run's sums, without a widget."""

from typing import NamedTuple

from mydata_like.core.events import RunProgressed
from mydata_like.gui.state import PastRun


class Parts(NamedTuple):
    """The conservation law: found = verified + open + waiting + skipped + failed."""

    found: int
    verified: int
    open: int
    waiting: int
    skipped: int
    failed: int


class Stage(NamedTuple):
    """One stage of the pipeline: files that are through, and files that wait before it."""

    name: str
    done: int
    queue: int


def parts_of_progress(sums: RunProgressed) -> Parts:
    """Return the parts of a run at work."""
    settled = sums.verified + sums.waiting + sums.skipped + sums.failed
    return Parts(
        sums.found,
        sums.verified,
        max(0, sums.found - settled),
        sums.waiting,
        sums.skipped,
        sums.failed,
    )


def parts_of_past(past: PastRun, at_risk: int = 0) -> Parts:
    """Return the parts of a run that has ended or was cut off: nothing is under way, it waits.

    One that was cut off may have counted fewer files than the ledger knows to be `at_risk`.
    """
    waiting = max(past.waiting, past.unsafe - past.failed)
    if past.finished is None:
        waiting = max(waiting, at_risk - past.failed)
    return Parts(past.found, past.verified, 0, waiting, past.skipped, past.failed)


def stages_of(sums: RunProgressed) -> list[Stage]:
    """Return the stages in their order."""
    known = max(0, sums.checked - sums.wanted - sums.waiting - sums.skipped)
    proven = max(0, sums.verified - known)
    registered = max(sums.registered, proven)  # the HTTP fallback registers as it sends
    sent = max(sums.sent, registered)
    return [
        Stage("scan", sums.found, 0),
        Stage("check", sums.checked, max(0, sums.found - sums.checked)),
        Stage("send", sent, max(0, sums.wanted - sent)),
        Stage("register", registered, sent - registered),
        Stage("verify", proven, registered - proven),
    ]
