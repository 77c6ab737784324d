"""The catalogue of a scripted server."""

from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.catalogues.mytardis.datasets import Identity
from mydata_like.catalogues.mytardis.mytardis import MyTardis
from mydata_like.core.model import InstrumentRecord
from mydata_like.settings.schema import Settings
from mydata_like.transfer.archive_reader import TarArchives
from tests.fakes.server import ACCOUNT, FACILITY

IDENTITY = Identity(
    account=ACCOUNT,
    facility=FACILITY,
    instrument=InstrumentRecord(1, "Scope"),
    uploader="0b6",
    origin="pc:/data",
)


def make_catalogue(server, ledger, gate, emit, settings=None, *, dry_run=False) -> MyTardis:
    """Return a catalogue whose replicas are in the storage box `staging`."""
    return MyTardis(
        server,
        IDENTITY,
        settings or Settings(),
        ledger,
        gate,
        emit,
        WriteTracker(ledger, gate.clock, 60.0),
        TarArchives(),
        box="staging",
        dry_run=dry_run,
    )
