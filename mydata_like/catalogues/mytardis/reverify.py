"""The requests to the server to verify its replicas again, and the wait for the results.

A record states that a replica was verified once. Whether the replica still exists and is unchanged
is known only when the server reads it again: `dataset_file/ID/verify/` requests that, and the
replica's `last_verified_time` is the time of the last verification.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from mydata_like.catalogues.mytardis.server_api import ServerAPI
from mydata_like.core.errors import Cancelled, ItemError, Problem
from mydata_like.core.model import Datafile, DatafileId, Replica
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.engine.gate import Gate
from mydata_like.engine.local_cleanup import NOT_AGAIN
from mydata_like.engine.pipeline import map_concurrently

logger = logging.getLogger(__name__)

LASTS: Final = 600.0  # seconds for which a result is valid; after that a new one is requested
AT_ONCE: Final = 4  # concurrent requests
AFTER_NEWS: Final = 0.1  # seconds until the first check after a registration
AT_THE_END: Final = 0.02  # the same when nothing more will be registered and no other work is left
SOON: Final = 0.05  # seconds until the first check of the records
SLOWEST: Final = 10_000_000  # bytes a second at which even a busy server reads its replicas
LESS: Final = 0.25  # factor for the allowed wait each time it was exceeded
LEAST: Final = 0.03  # its minimum for a server that still verifies other replicas

NO_REPLICA = Problem(
    "free.no-replica",
    "The server has no verified copy of this file at present.",
    "Keep the file; the next run requests verification.",
)


def ask_all(server: ServerAPI, gate: Gate, numbers: Sequence[DatafileId]) -> None:
    """Request verification of datafiles, several at once, since each takes a request of its own.

    A server that refuses a request verifies periodically anyway.
    """

    def ask(number: DatafileId) -> None:
        try:
            gate.call(lambda: server.request_verification(number))
        except ItemError as error:
            logger.info("Verification of datafile %d could not be requested: %s", number, error)

    map_concurrently(ask, numbers, AT_ONCE)


class PollInterval:
    """The polling interval: short after news, then increasingly long."""

    def __init__(self, clock: Clock, longest: float) -> None:
        self._clock = clock
        self._longest = longest
        self._interval = AFTER_NEWS
        self._due = clock.monotonic()
        self._ended = False

    @property
    def rest(self) -> float:
        """The number of seconds until the next check."""
        return max(0.0, self._due - self._clock.monotonic())

    def note_registered(self, *, first: bool) -> None:
        """Schedule an early check of registered files; `first` if there were none before."""
        soon = self._clock.monotonic() + AFTER_NEWS
        self._due = soon if first else min(soon, self._due)

    def note_end(self) -> None:
        """Schedule an early check, on the first call only: nothing more will be registered."""
        if not self._ended:
            self._interval, self._ended = AT_THE_END, True
            self._due = min(self._due, self._clock.monotonic() + AT_THE_END)

    def step(self, *, news: bool) -> None:
        """Schedule the next check after one."""
        longer = min(self._interval * 1.5, self._longest)
        self._interval = AFTER_NEWS if news and not self._ended else longer
        self._due = self._clock.monotonic() + self._interval


class Reverification(NamedTuple):
    """The settings for requests to the server."""

    box: str = ""  # the storage box of our replicas; empty for any
    patience: float = 900.0  # seconds to wait while it verifies nothing
    interval: float = 2.0  # seconds between two checks of the records, at most
    requests: int = AT_ONCE


class FileToVerify(NamedTuple):
    """A record whose replicas are to be verified again, and the path to which we uploaded."""

    record: Datafile
    remote: str


class _Request(NamedTuple):
    """The verification time of each replica before a request, or the request's error.

    `at` is when the request was sent, or later, when the wait for its result ended.
    """

    at: float
    before: Mapping[tuple[str, str], str | None]
    problem: Problem | None = None

    def is_answered_by(self, replica: Replica) -> bool:
        """Return whether the server has verified a replica since; a new replica proves nothing."""
        place = _place_of(replica)
        return place in self.before and _is_later(replica.verified_at, self.before[place])


class Reverify:
    """Requests for verification, the wait for the results, and the verdict on each record."""

    def __init__(
        self, server: ServerAPI, clock: Clock, cancel: CancelSignal, how: Reverification
    ) -> None:
        self._server = server
        self._clock = clock
        self._cancel = cancel
        self._settings = how
        self._requests: dict[DatafileId, _Request] = {}
        self._share = 1.0  # of the allowed wait that is left

    def __call__(self, wanted: Iterable[FileToVerify]) -> bool:
        """Request verification of records without a recent one, and wait for a limited time.

        Return whether there were any. Raises the errors of `ServerAPI` if the server is unavailable
        or refuses access.
        """
        due = self.ask(wanted)
        self._await({number: it for number, it in due.items() if not self._problem_of(number)})
        return bool(due)

    def ask(self, wanted: Iterable[FileToVerify]) -> Mapping[DatafileId, FileToVerify]:
        """Request verification of records without a recent one, and return these."""
        self._forget_old()
        due = {it.record.id: it for it in wanted if it.record.id not in self._requests}
        for number, request in zip(due, self._ask_all(list(due.values())), strict=True):
            self._requests[number] = request
        return due

    def was_asked(self, record: DatafileId) -> bool:
        """Return whether a recent request for a record exists."""
        request = self._requests.get(record)
        return request is not None and not self._is_old(request)

    def judge(self, record: Datafile, remote: str) -> Problem | None:
        """Return why a record proves nothing; None if the server has verified it again."""
        problem = judge_copies(record, remote, self._settings.box)
        request = self._requests.get(record.id)
        if problem or request is None:
            return problem or NOT_AGAIN
        answered = map(request.is_answered_by, _find_verified(record, remote, self._settings.box))
        own = find_own(record, remote, self._settings.box)
        proven = all(answered) if own else any(answered)
        return None if proven else request.problem or NOT_AGAIN

    def _forget_old(self) -> None:
        old = [number for number, it in self._requests.items() if self._is_old(it)]
        for number in old:
            del self._requests[number]

    def _is_old(self, request: _Request) -> bool:
        return self._clock.monotonic() - request.at > LASTS

    def _problem_of(self, number: DatafileId) -> Problem | None:
        return self._requests[number].problem

    def _ask_all(self, wanted: Sequence[FileToVerify]) -> list[_Request]:
        """Request verification of each record; an error that affects all is raised."""
        records = [it.record for it in wanted]
        return map_concurrently(self._ask, records, self._settings.requests)

    def _ask(self, record: Datafile) -> _Request:
        if self._cancel.is_set():
            raise Cancelled
        at = self._clock.monotonic()
        before = {_place_of(replica): replica.verified_at for replica in record.replicas}
        try:
            self._server.request_verification(record.id)
        except ItemError as error:
            logger.info("Verification of datafile %d could not be requested: %s", record.id, error)
            return _Request(at, before, error.problem)
        return _Request(at, before)

    def _await(self, pending: dict[DatafileId, FileToVerify]) -> None:
        """Poll the records until all are verified, or nothing has changed for too long."""
        progressed, interval, answered = self._clock.monotonic(), SOON, False
        while pending and not self._is_timed_out(progressed, pending):
            if self._cancel.wait(interval):
                raise Cancelled
            found = {it.id: it for it in self._server.fetch_datafiles(sorted(pending))}
            done = [number for number, it in pending.items() if self._is_done(it, found)]
            for number in done:
                self._close(number)
                del pending[number]
            if done:
                progressed, interval, answered = self._clock.monotonic(), SOON, True
            else:
                interval = min(interval * 1.5, max(self._settings.interval, SOON))
        for number in pending:
            self._close(number)
        if pending:
            self._share *= LESS
        if answered:
            self._share = max(self._share, LEAST)

    def _close(self, number: DatafileId) -> None:
        request = self._requests[number]
        self._requests[number] = request._replace(at=self._clock.monotonic())

    def _is_timed_out(self, since: float, pending: Mapping[DatafileId, FileToVerify]) -> bool:
        largest = max(it.record.size for it in pending.values())
        patience = self._share * (self._settings.patience + largest / SLOWEST)
        return self._clock.monotonic() - since >= patience

    def _is_done(self, wanted: FileToVerify, found: Mapping[DatafileId, Datafile]) -> bool:
        """Return whether no further result is expected for a record; a missing one is done."""
        record = found.get(wanted.record.id)
        if record is None or not record.replicas:
            return True
        request, box = self._requests[record.id], self._settings.box
        own = find_own(record, wanted.remote, box)
        if not own and self.judge(record, wanted.remote) is None:
            return True
        return all(request.is_answered_by(replica) for replica in own or record.replicas)


def judge_copies(record: Datafile, remote: str, box: str) -> Problem | None:
    """Return why no replica of a record counts, according to the record.

    Replicas at our path in our box must be verified. If none is left there, any verified replica
    counts whose path stays inside its box.
    """
    own = find_own(record, remote, box)
    verified = _find_verified(record, remote, box)
    return None if verified and len(verified) >= len(own) else NO_REPLICA


def find_own(record: Datafile, remote: str, box: str) -> list[Replica]:
    """Return the replicas at the path to which we uploaded, in our box if one is set."""
    return [it for it in record.copies_at(remote) if not box or it.location == box]


def _find_verified(record: Datafile, remote: str, box: str) -> list[Replica]:
    counting = find_own(record, remote, box) or record.replicas
    return [it for it in counting if it.verified and _is_inside(it.uri)]


def _is_inside(uri: str) -> bool:
    """Return whether a path stays below its box."""
    return not {"", ".", ".."} & set(uri.split("/"))


def _place_of(replica: Replica) -> tuple[str, str]:
    return replica.location, replica.uri


def _is_later(moment: str | None, before: str | None) -> bool:
    """Return whether one of the server's times is later than another; None means never.

    In the hour that is repeated in autumn when daylight saving time ends, later times may look
    earlier. They prove nothing then.
    """
    if moment is None:
        return False
    try:
        now = datetime.fromisoformat(moment)
        return before is None or now > datetime.fromisoformat(before)
    except (ValueError, TypeError):  # not a time, or only one of both has a zone
        return False
