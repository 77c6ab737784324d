"""A MyTardis server as the destination of a run."""

from contextlib import ExitStack, suppress
from dataclasses import replace

from mydata_like.app.connection import (
    describe_identity,
    require_complete,
    with_server_filters_marked,
)
from mydata_like.app.identity import ensure_uuid
from mydata_like.app.run_connection import connect
from mydata_like.app.run_destination import OpenedDestination, RunBasis, RunDestination
from mydata_like.app.run_report import report_run
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.server_marks import check_shards, marked, without_copy_notices
from mydata_like.app.settings_service import find_places
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.app.transports.transport_kinds import find_kind, open_transport
from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.catalogues.mytardis.datasets import UnusedObjects
from mydata_like.catalogues.mytardis.mytardis import MyTardis
from mydata_like.core.data_directory import WHOLE
from mydata_like.core.errors import ItemError
from mydata_like.core.events import RunFinished
from mydata_like.core.ports import Emit
from mydata_like.engine.gate import Gate
from mydata_like.transfer.archive_reader import TarArchives


class MyTardisDestination(RunDestination):
    """A MyTardis server, and the transport of the settings to its storage box."""

    def __init__(self, archives: TarArchives) -> None:
        self._archives = archives

    def check(self, request: RunRequest) -> None:
        require_complete(request.settings, request.config)
        if request.part.shard != WHOLE:
            check_shards(request.settings, find_places(request.config))

    def connect(
        self, request: RunRequest, observer: RunObserver, gate: Gate, stack: ExitStack
    ) -> RunRequest:
        self._request, self._connection = connect(request, observer, gate, stack)
        self._places = find_places(request.config)
        return self._request

    def mark_filters(self, emit: Emit) -> Emit:
        return with_server_filters_marked(emit, self._request.reload)

    def open(self, basis: RunBasis) -> OpenedDestination:
        self._basis, request, connection = basis, self._request, self._connection
        settings, shard, gate = request.settings, request.part.shard, basis.gate
        writes = WriteTracker(basis.ledger, basis.clock, settings.server.write_timeout)
        connection.client.writes = writes
        emit = basis.observer.emit
        observer = replace(basis.observer, emit=without_copy_notices(emit, shard))
        access = TransportAccess(request, observer, connection, basis.workers)
        transport, box = gate.call(lambda: open_transport(access))
        basis.stack.callback(transport.close)
        basis.stack.enter_context(marked(basis.lease, connection, settings, self._places, shard))
        unused = UnusedObjects(basis.ledger)
        with suppress(ItemError):  # asked again by the next run
            gate.call(lambda: unused.forget(connection.server.is_gone))
        catalogue = MyTardis(
            connection.server,
            describe_identity(connection, settings, ensure_uuid(settings, self._places)),
            settings,
            basis.ledger,
            gate,
            emit,
            writes,
            self._archives,
            box=box,
            unused=unused,
            dry_run=request.dry_run,
        )
        can_replace = transport.can_replace
        if request.dry_run:
            can_replace = bool(box) and find_kind(settings).can_replace
        return OpenedDestination(catalogue, transport, box, can_replace)

    def report(self, finished: RunFinished) -> None:
        basis, request = self._basis, self._request
        report_run(
            self._connection,
            request.settings,
            self._places,
            basis.clock,
            basis.ledger,
            request.part.shard,
            finished,
        )
