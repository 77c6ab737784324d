"""The last stage: records in the ledger what the server has verified, and reports it."""

from collections.abc import Iterator

from mydata_like.core.events import FileVerified
from mydata_like.core.model import Batch, EntryState
from mydata_like.core.ports import EmitAll, Ledger
from mydata_like.engine.outcome_recorder import record_states
from mydata_like.engine.pipeline import StageInput


class Record:
    """The stage that records and reports verified files while the next records are being checked.

    It passes on what must be sent or registered again.
    """

    def __init__(self, ledger: Ledger, emit_all: EmitAll) -> None:
        self._ledger = ledger
        self._emit_all = emit_all

    def __call__(self, source: StageInput[Batch]) -> Iterator[Batch]:
        for batch in source:
            if batch[0].state is not EntryState.VERIFIED:
                yield batch
                continue
            record_states(self._ledger, batch)
            self._emit_all(
                [
                    FileVerified(path=file.key, size=file.size, checksum=checksum)
                    for record in batch
                    for file, checksum in record.checked_files
                ]
            )
