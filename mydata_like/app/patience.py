"""How long a run waits at the gate for what keeps it from going on."""

from collections.abc import Callable

from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    NotApprovedError,
    RunError,
    ServerUnavailableError,
)
from mydata_like.settings.schema import Settings

# Conditions of the staging area that may pass by themselves while a run waits.
PASSING = frozenset({"staging.full"})


def choose_patience(settings: Settings, unattended: float | None) -> Callable[[RunError], float]:
    """Return the seconds for which each condition is waited out.

    Where a person started the run (`unattended` is None), what only a person can mend ends it.
    An unattended run waits for that as well; but a key or a host that is not accepted may have
    been replaced in the settings meanwhile, which only the next run reads.
    """
    usual = settings.advanced.pause_patience

    def attended(error: RunError) -> float:
        passes = isinstance(error, ServerUnavailableError | NotApprovedError)
        return usual if passes or error.problem_code in PASSING else 0.0

    def alone(error: RunError) -> float:
        assert unattended is not None
        if isinstance(error, AccessDeniedError | HostKeyError):
            return min(usual, unattended)
        return unattended

    return attended if unattended is None else alone
