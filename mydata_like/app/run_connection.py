"""The connection to the server that is opened for a run, a registration or a test."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from mydata_like.app.connection import (
    Connection,
    open_connection,
    refresh_settings,
    report_change,
    require_server,
)
from mydata_like.app.identity import find_uuid
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import find_api_key, find_places, open_secrets
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.http import AnswerTimer
from mydata_like.core.errors import (
    ServerUnavailableError,
    TransientError,
    WaitRequestedError,
)
from mydata_like.core.events import ServerSilent
from mydata_like.core.ports import Emit
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import repeated

SILENT_AFTER = 10.0  # seconds without an answer after which a server counts as silent


SILENCE_INTERVAL = 1.0  # seconds


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
