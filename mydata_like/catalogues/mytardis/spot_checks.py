"""Spot checks: the server verifies again some of the records that are new to the ledger.

After a lost ledger or a migration, a record is believed because the server reports it as verified.
The server may have verified other bytes long ago, as when another installation was killed while it
replaced a file.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from mydata_like.catalogues.mytardis.reverify import (
    NO_REPLICA,
    FileToVerify,
    Reverification,
    Reverify,
)
from mydata_like.catalogues.mytardis.server_api import ServerAPI
from mydata_like.core.errors import Problem, UploaderError
from mydata_like.core.events import Notice
from mydata_like.core.model import (
    LOST,
    Datafile,
    DatafileId,
    DatasetId,
    Entry,
    EntryState,
    Recheck,
)
from mydata_like.core.ports import Emit, Ledger
from mydata_like.engine.gate import Gate
from mydata_like.engine.local_cleanup import NOT_AGAIN
from mydata_like.engine.pipeline import Lock

logger = logging.getLogger(__name__)

FIRST: Final = 20  # records of each dataset that are all chosen,
ONE_IN: Final = 50  # and of further ones, one in so many
AT_ONCE: Final = 10  # records that the server is asked about together
AT_THE_END: Final = 10.0  # seconds for which the end of a run waits for results
BETWEEN: Final = 0.5  # seconds between two steps then


class SpotChecks:
    """The spot checks of a run; what it does not finish is continued by the next one."""

    def __init__(
        self, server: ServerAPI, ledger: Ledger, emit: Emit, gate: Gate, how: Reverification
    ) -> None:
        self._server = server
        self._ledger = ledger
        self._emit = emit
        self._gate = gate
        self._reverify = Reverify(server, gate.clock, gate.cancel, how)
        self._seen: Counter[DatasetId] = Counter()
        self._lock = Lock()
        self._refused: set[DatafileId] = set()  # those that the server does not verify in this run
        self._started = False
        self.contradicted = 0  # files that were verified, of datasets with a copy that is not

    def add(self, new: Sequence[Entry]) -> None:
        """Choose some of the rows whose records were new to the ledger."""
        chosen = []
        with self._lock:
            for entry in new:
                number = self._seen[entry.dataset]
                self._seen[entry.dataset] += 1
                if entry.datafile is not None and (number < FIRST or number % ONE_IN == 0):
                    chosen.append(entry)
        if chosen:
            self._ledger.add_spot_checks(chosen)

    def __call__(self) -> None:
        """Do one step, except for the first time: the run begins with other work."""
        if self._started:
            self.step()
        self._started = True

    def finish(self) -> None:
        """Wait for a limited time until the server has answered; the next run does the rest."""
        end = self._gate.clock.monotonic() + AT_THE_END
        while self.step() and self._gate.clock.monotonic() < end:
            self._gate.rest(BETWEEN)

    def step(self) -> bool:
        """Ask about some records, and check the answers; return whether there is more to do."""
        most = AT_ONCE + len(self._refused)
        chosen = self._ledger.find_spot_checks(most)
        keys = {number: key for number, key in chosen.items() if number not in self._refused}
        found = self._ledger.find_entries(list(keys.values()))
        entries = {
            number: entry
            for number, key in keys.items()
            if (entry := found.get(key)) and entry.datafile == number
            if entry.state is EntryState.VERIFIED
        }
        try:
            records = self._fetch(entries)
            self._reverify.ask(
                FileToVerify(records[number], entry.remote)
                for number, entry in entries.items()
                if number in records
            )
        except UploaderError as error:  # the stages report it, or wait until it is over
            logger.info("Records new to the ledger cannot be verified again now: %s", error)
            return False
        verdicts = {number: self._judge(it, records.get(number)) for number, it in entries.items()}
        self._refused |= {number for number, it in verdicts.items() if it not in _ANSWERS}
        wrong = {number for number, it in verdicts.items() if it == NO_REPLICA}
        self._report({entries[number].dataset for number in wrong}, len(wrong))
        pending = {number for number, it in verdicts.items() if it == NOT_AGAIN} | self._refused
        self._ledger.forget_spot_checks([number for number in keys if number not in pending])
        return len(chosen) == most or not pending <= self._refused

    def _fetch(self, entries: Mapping[DatafileId, Entry]) -> Mapping[DatafileId, Datafile]:
        """Return the records; an account without rights gets an empty answer, not an error."""
        if not entries:
            return {}
        records = {it.id: it for it in self._server.fetch_datafiles(sorted(entries))}
        if len(records) < len(entries):
            self._server.fetch_account()
        return records

    def _judge(self, entry: Entry, record: Datafile | None) -> Problem | None:
        """Return why a record proves nothing; `NO_REPLICA` if it contradicts the ledger."""
        same = record and (record.size, record.checksum) == (entry.size, entry.checksum)
        return self._reverify.judge(record, entry.remote) if record and same else NO_REPLICA

    def _report(self, datasets: set[DatasetId], files: int) -> None:
        if not datasets:
            return
        doubted = self._ledger.recheck([Recheck(dataset) for dataset in sorted(datasets)])
        self.contradicted += doubted
        self._emit(Notice(problem=_contradicted(files)))


_ANSWERS: Final = (None, NOT_AGAIN, NO_REPLICA)


def _contradicted(files: int) -> Problem:
    what = "1 file" if files == 1 else f"{files} files"
    return Problem(
        LOST,
        f"When it was asked to verify again, the server no longer had {what} as verified.",
        "The next run has it verify all files of these datasets again. Keep the local files, and "
        "notify the server's administrator.",
    )
