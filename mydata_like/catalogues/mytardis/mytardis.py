"""`MyTardis`: the catalogue of a MyTardis server with its MyData app."""

from collections.abc import Sequence

from mydata_like.catalogues.mytardis.dataset_index import (
    ArchiveRecovery,
    Audit,
    AuditPolicy,
    DatasetIndex,
    DatasetView,
)
from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.catalogues.mytardis.datasets import Datasets, Identity, UnusedObjects
from mydata_like.catalogues.mytardis.register import Register, RegisterOptions, RequestPace
from mydata_like.catalogues.mytardis.reverify import Reverification, ask_all
from mydata_like.catalogues.mytardis.server_api import ServerAPI
from mydata_like.catalogues.mytardis.spot_checks import SpotChecks
from mydata_like.catalogues.mytardis.verify import Verification, Verify
from mydata_like.core.archives import ArchiveFormat
from mydata_like.core.errors import ItemError
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    DatasetFolder,
    DatasetId,
    Entry,
    KeptCopy,
    Registration,
)
from mydata_like.core.ports import Emit, Ledger
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import SingleFlight
from mydata_like.settings.schema import Settings


class MyTardis:
    """The catalogue whose folders are datasets, and whose records are datafiles.

    The bytes are attested by the server, which reads them and compares their checksum. Replicas
    count that are in the storage box `box`, if it is known.
    """

    verifiers = 1

    def __init__(
        self,
        server: ServerAPI,
        identity: Identity,
        settings: Settings,
        ledger: Ledger,
        gate: Gate,
        emit: Emit,
        writes: WriteTracker,
        form: ArchiveFormat,
        *,
        box: str,
        unused: UnusedObjects | None = None,
        dry_run: bool = False,
    ) -> None:
        self._server = server
        self._gate = gate
        self._claims: SingleFlight[DatasetId, bytes] = SingleFlight()  # the folder of a dataset
        advanced = settings.advanced
        self._datasets = Datasets(
            server, identity, settings.data, emit, dry_run=dry_run, unused=unused
        )
        policy = AuditPolicy(box=box, full_check_days=advanced.full_check_days)
        self._index = DatasetIndex(
            server,
            ledger,
            gate,
            ArchiveRecovery(server, ledger, gate, emit, form),
            Audit(ledger, emit, gate.clock, policy),
        )
        pace = RequestPace(advanced.register_batch, advanced.register_requests, gate.clock)
        self.register = Register(server, ledger, emit, gate, RegisterOptions(box, pace, writes))
        self.verify = Verify(server, ledger, emit, gate, Verification(advanced, box))
        how = Reverification(
            box, advanced.verify_patience, advanced.verify_interval, settings.server.requests
        )
        self._spot_checks = SpotChecks(server, ledger, emit, gate, how)

    @property
    def contradicted(self) -> int:
        return self._spot_checks.contradicted

    def look_up(self, folder: DatasetFolder) -> DatasetView:
        dataset = self._gate.call(lambda: self._datasets.find_dataset(folder))
        if dataset.id and self._claims(dataset.id, lambda: folder.path) != folder.path:
            raise ItemError(
                f"Another folder of this run maps to the same dataset, {dataset.name}.",
                hint="Rename one of the two folders, so that their files stay apart.",
                code="folder.same-dataset",
            )
        return self._index.look_up(dataset, folder.path, folder.above)

    def fetch_records(self, ids: Sequence[DatafileId], *, sure: bool = False) -> list[Datafile]:
        if sure:  # an account without permissions gets an empty answer, not an error
            self._gate.call(self._server.fetch_account)
        return self._gate.call(lambda: self._server.fetch_datafiles(ids))

    def withdraw(self, remotes: Sequence[str]) -> None:
        """Do nothing: a record that describes other bytes counts as changed."""

    def bring_back(self, copy: KeptCopy) -> None:
        """Do nothing: a channel moves the bytes, and the record changes after that."""

    def change_records(self, changes: Sequence[Registration]) -> None:
        self._gate.call(lambda: self._server.register(changes))

    def request_verification(self, ids: Sequence[DatafileId]) -> None:
        ask_all(self._server, self._gate, ids)

    def note_new(self, entries: Sequence[Entry]) -> None:
        self._spot_checks.add(entries)

    def audit(self) -> None:
        self._spot_checks()

    def finish_audit(self) -> None:
        self._spot_checks.finish()
