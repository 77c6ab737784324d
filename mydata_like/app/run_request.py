"""The request for a run, its observer, and the connection that is opened for it.

Registration, the connection test and the speed test use the same request and observer.
"""

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from random import SystemRandom

from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    NotApprovedError,
    RunError,
    ServerUnavailableError,
)
from mydata_like.core.extra_sources import SourceRequest
from mydata_like.core.frozen import frozen
from mydata_like.core.model import Undo
from mydata_like.core.ports import Clock, Emit
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.gate import Gate
from mydata_like.engine.layout_walk import ALL, ScanScope
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.progress import RunProgress
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings
from mydata_like.state.secrets import Secret

# Conditions of the staging area that may end without user action while a run waits.
PASSING = frozenset({"staging.full", "ssh.no-channel"})


def choose_patience(settings: Settings, unattended: float | None) -> Callable[[RunError], float]:
    """Return a function from an error to the seconds that a run waits for it to pass.

    A run that the user started (`unattended` is None) ends on errors that only the user can fix.
    An unattended run waits for these as well. It waits less for a key or host that is not
    accepted: the user may have replaced it in the settings, which only the next run reads.
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


@frozen(kw_only=True)
class RunRequest:
    """The parameters of a run."""

    settings: Settings
    config: Path | None = None  # the settings file; None for the default one
    reload: Callable[[], Loaded] | None = None  # reads all settings again, including the server's
    dry_run: bool = False
    patience: float | None = None  # seconds that an unattended run waits, possibly infinite
    reason: str = "person"  # why it starts, as in `RunStarted`; "source" scans extra sources only
    sources: tuple[SourceRequest, ...] = ()  # outside the data directory
    api_key: Secret | None = None  # used instead of the stored one
    s3_secret: Secret | None = None  # used instead of the stored one
    part: ScanScope = ALL  # the part of the data directory to scan
    accept_empty: bool = False  # missing files were deleted on purpose
    accept_missing: bool = False  # so were those at a destination without a server
    undo: Undo | None = None


def ignore(_: object) -> None:
    """Do nothing."""


@frozen(kw_only=True)
class RunObserver:
    """The front end's connection to a run: its events, the signal to stop it, and commands.

    The run updates `progress`. Without `details`, the events that come for every file that is well
    are not emitted: FileWanted, unless it is changed, FileStaged and FileVerified.
    """

    emit: Emit = ignore
    details: bool = True
    cancel: CancelFlag = field(default_factory=CancelFlag)
    hide: Callable[[str], None] = ignore  # receives every secret, so that no log shows it
    progress: RunProgress = field(default_factory=lambda: RunProgress(SystemClock()))
    controller: CommandHandler | None = None  # receives commands


def build_gate(request: RunRequest, observer: RunObserver, clock: Clock) -> Gate:
    """Return the gate at which a run waits for conditions that stop all of it."""
    patience = choose_patience(request.settings, request.patience)
    return Gate(clock, observer.cancel, observer.emit, SystemRandom(), patience=patience)
