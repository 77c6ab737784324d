"""The request for a run, its observer, and the connection that is opened for it.

Registration, the connection test and the speed test use the same request and observer.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import SystemRandom

from mydata_like.app.connection import (
    Connection,
    find_uuid,
    open_connection,
    refresh_settings,
    report_change,
    require_server,
)
from mydata_like.app.settings_service import find_api_key, find_places, open_secrets
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.http import AnswerTimer
from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    NotApprovedError,
    RunError,
    ServerUnavailableError,
    TransientError,
    WaitRequestedError,
)
from mydata_like.core.events import ServerSilent
from mydata_like.core.extra_sources import SourceRequest
from mydata_like.core.model import Undo
from mydata_like.core.ports import Clock, Emit
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.gate import Gate
from mydata_like.engine.layout_walk import ALL, ScanScope
from mydata_like.engine.pipeline import CancelFlag, repeated
from mydata_like.engine.progress import RunProgress
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings
from mydata_like.state.secrets import Secret

# Conditions of the staging area that may end without user action while a run waits.
PASSING = frozenset({"staging.full", "ssh.no-channel"})
SILENT_AFTER = 10.0  # seconds without an answer after which a server counts as silent
SILENCE_INTERVAL = 1.0  # seconds


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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@contextmanager
def connected(
    request: RunRequest, observer: RunObserver, gate: Gate, *, pauses: bool = False
) -> Iterator[Connection]:
    """Yield a connection to the server; an unattended run waits for the server at the gate.

    With `pauses`, the user waits there as well if the server asks for a pause.
    """
    settings = request.settings
    require_server(settings)
    key = request.api_key or find_api_key(settings, open_secrets(request.config))[0]
    observer.hide(key.reveal())

    uploader = find_uuid(settings, find_places(request.config))
    answers = AnswerTimer(gate.clock)

    def open_it() -> Connection:
        client = ApiClient(settings.server, key.reveal(), gate.clock, observer.cancel)
        client.wire.answers = answers
        try:
            return open_connection(client, settings.instrument, uploader, dry_run=request.dry_run)
        except TransientError as error:  # an outage, too
            raise ServerUnavailableError(
                error.message, hint=error.hint, code=error.problem_code
            ) from error

    def open_attended() -> Connection:
        try:
            return open_it()
        except WaitRequestedError:
            if pauses:
                return gate.call(open_it)
            raise

    with repeated(SilenceReport(answers, observer.emit), SILENCE_INTERVAL):
        connection = open_attended() if request.patience is None else gate.call(open_it)
        connection.client.emit = observer.emit
        if pauses:
            connection.client.pause_at = gate.pause
        try:
            yield connection
        finally:
            connection.close()


class SilenceReport:
    """Reports each time it is called if the server is silent, and once when it is no longer."""

    def __init__(self, answers: AnswerTimer, emit: Emit) -> None:
        self._answers = answers
        self._emit = emit
        self._reported = 0

    def __call__(self) -> None:
        seconds = self._answers.seconds
        silent = int(seconds) if seconds >= SILENT_AFTER else 0
        if silent != self._reported:
            self._reported = silent
            self._emit(ServerSilent(seconds=silent))


def connect(
    request: RunRequest, observer: RunObserver, gate: Gate, stack: ExitStack
) -> tuple[RunRequest, Connection]:
    """Return a connection, and the request updated with the server's current settings."""
    connection = stack.enter_context(connected(request, observer, gate, pauses=True))
    places = find_places(request.config)
    if not request.reload or not refresh_settings(connection, request.settings, places, gate.clock):
        return request, connection
    loaded = request.reload()
    report_change(loaded, observer.emit)
    if loaded.settings != request.settings:
        request = replace(request, settings=loaded.settings)
        connection = stack.enter_context(connected(request, observer, gate, pauses=True))
    return request, connection
