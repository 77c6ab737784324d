"""The last stage: records in the ledger what the server has verified, and reports it."""

from collections.abc import Iterator, Sequence

from mydata_like.core.events import FileVerified
from mydata_like.core.model import EntryState, FileToSend, Registered, Staged
from mydata_like.core.ports import Emit, Ledger
from mydata_like.engine.outcome_recorder import LedgerStep, Verified, record_steps
from mydata_like.engine.pipeline import StageInput


class Record:
    """The stage that records and reports verified files while the next records are being checked.

    It passes on what must be sent or registered again.
    """

    def __init__(self, ledger: Ledger, emit: Emit) -> None:
        self._ledger = ledger
        self._emit = emit

    def __call__(
        self, source: StageInput[FileToSend | Staged | Verified]
    ) -> Iterator[FileToSend | Staged]:
        for found in source:
            if isinstance(found, Verified):
                self._record(found.items)
            else:
                yield found

    def _record(self, items: Sequence[Registered]) -> None:
        steps = [
            LedgerStep(it.wanted, EntryState.VERIFIED, it.checksum, it.datafile) for it in items
        ]
        record_steps(self._ledger, steps)
        for item in items:
            for file, checksum in item.wanted.checked_files(item.checksum):
                self._emit(FileVerified(path=file.key, size=file.size, checksum=checksum))
