"""The stage that sends payloads over the transport's channels, with retries."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from math import inf
from typing import Final

from mydata_like.core.errors import FULL, HELD, Problem, StagingError, TransientError, describe_full
from mydata_like.core.events import (
    FileFailed,
    FileStaged,
    FileWaiting,
    TransferFinished,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
)
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Batch, FileRecord, Payload, count_members
from mydata_like.core.ports import Channel, SentFile, UnsentFile
from mydata_like.core.problems import LEFT_FOR_LATER
from mydata_like.engine.gate import PAUSING, Gate
from mydata_like.engine.outcome_recorder import record_sent
from mydata_like.engine.pipeline import Lock, StageInput
from mydata_like.engine.run_context import RunContext
from mydata_like.engine.user_overrides import CANCELLED, STOPPING, CutOffError

# The problem codes of a channel whose session was closed because of another channel, and of one
# that the host refuses, while others are open.
BLAMELESS_CODES: Final = frozenset({"channel.dropped", "channel.refused"})
GAIN: Final = 1 << 20  # minimum bytes by which an attempt must get further
STEPS: Final = 256  # most attempts that a payload needs at that rate
BLAMELESS: Final = 20  # factor for the allowed number of failures that are not the payload's own


class Attempts:
    """The attempts of one payload; only those that fail through its own fault count.

    An attempt that got further than all before has not failed: the next one continues from there.
    Neither has one that was interrupted because of another channel. Both are bounded all the same.
    """

    def __init__(self, allowed: int, size: int) -> None:
        self.made = 0
        self.reported = False  # whether a start was reported without an end
        self.failed = 0
        self._allowed = allowed
        self._vain = 0
        self._gain = max(GAIN, size // STEPS)
        self._furthest = 0
        self._reached = 0

    @property
    def used_up(self) -> bool:
        return self.failed >= self._allowed or self._vain >= self._allowed * BLAMELESS

    def begin(self) -> None:
        self.made += 1

    def reach(self, size: int) -> None:
        """Record that so many bytes were sent in this attempt, including those that were there."""
        self._reached = max(self._reached, size)

    def end(self, problems: Iterable[Problem]) -> None:
        """Judge an attempt that left something unsent, for these reasons."""
        if self._reached - self._furthest >= self._gain:
            self._furthest = self._reached
            return
        self._vain += 1
        self.failed += any(problem.code not in BLAMELESS_CODES for problem in problems)


SMALL: Final = 1 << 20  # bytes; if a file of this size does not fit, the staging area is full
FULL_FOR: Final = 300.0  # seconds for which nothing as large as what did not fit is sent
TURN_WAIT: Final = 30.0  # seconds to wait until other payloads are sent, if space is short
TURN_CHECK: Final = 0.25


def describe_no_space() -> StagingError:
    """Return the error of a staging area without space for a small file."""
    return StagingError(
        "The staging area is full.",
        hint="The server's administrator can free space or raise the quota.",
        code=FULL,
    )


def describe_short_space() -> StagingError:
    """Return the error of a run in which some files did not fit into the staging area."""
    return StagingError(
        "The staging area has no space for some files, which wait.",
        hint="The next run sends them. The server's administrator can free space or raise the "
        "quota.",
        code=FULL,
    )


class Space:
    """What is known of the space in the staging area, and turns to use it when it is short.

    Files that are being sent use space that they give back if they fail. So only what did not fit
    while nothing else was sent is known not to fit.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._lock = Lock()
        self._active = 0  # payloads that are being sent
        self._too_large = inf  # bytes of the smallest file that did not fit, lately
        self._until = -inf
        self.short = False

    def excludes(self, size: int) -> bool:
        """Return whether a file of this size need not be tried now."""
        return size >= self._too_large and self._gate.clock.monotonic() < self._until

    def note_too_large(self, size: int) -> None:
        """Record that a file of this size did not fit."""
        now = self._gate.clock.monotonic()
        with self._lock:
            self._too_large = min(size, self._too_large if now < self._until else inf)
            self._until = now + FULL_FOR

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Send in this context; yield whether nothing else is sent, which is waited for if short.

        A long transfer is not waited for.
        """
        waited = 0.0
        while (alone := self._enter(force=waited >= TURN_WAIT)) is None:
            self._gate.rest(TURN_CHECK)
            waited += TURN_CHECK
        try:
            yield alone
        finally:
            with self._lock:
                self._active -= 1

    def _enter(self, *, force: bool) -> bool | None:
        """Count one more payload if it may be sent now; return whether it is the only one."""
        with self._lock:
            if self.short and self._active and not force:
                return None
            self._active += 1
            return self.short and self._active == 1


WAITING = LEFT_FOR_LATER | {CANCELLED.code, STOPPING.code}
# A line that was lost too often says nothing about a file, which waits for a better one.
LOST: Final = frozenset({"link.lost", "link.stalled"})
CHECK_INTERVAL = 1.0  # seconds between checks of an idle worker for more work
TOGETHER = 2  # attempts of a batch, after which the rest of it is sent one by one


class Send:
    """The stage that sends; each of its workers uses one channel at a time.

    A member that is not proven to have arrived is sent again, separately after the second attempt.
    What does not fit into the staging area is kept until nothing else is to be sent; then, with
    `waits_for_space`, the run is paused until it fits. Otherwise it waits for the next run.

    Conditions that prevent all sending pause it at the gate, and so does a small file that does not
    fit. If one lasts too long, nothing more is sent, and the run ends as soon as what has arrived
    is registered and verified.
    """

    def __init__(
        self,
        context: RunContext,
        attempts: int,
        note: Callable[[Batch], object] = len,
        hold: Callable[[FileRecord], object] = id,
        *,
        waits_for_space: bool = False,
    ) -> None:
        self._gate = context.gate
        self._channels = context.channels
        self._choices = context.choices
        self._ledger = context.ledger
        self._emit = context.emit
        self._emit_all = context.emit_all
        self._attempts = attempts
        self._space = Space(context.gate)
        self._waits_for_space = waits_for_space
        self._lock = Lock()
        self._working = 0  # workers
        self._taken: deque[Payload] = deque()  # whose workers wait for a channel
        self._unfit: list[tuple[Payload, Problem]] = []  # until nothing else is sent
        self._last: set[str] = set()  # places of files that did not fit and are tried again
        self._note = note  # called first with what has arrived in the staging area
        self._hold = hold  # called with a file whose earlier content the host cannot keep
        self._earlier = context.ledger.find_batches()  # that earlier runs began
        self._begun = frozenset(chain.from_iterable(self._earlier.values()))

    def __call__(self, payloads: StageInput[Payload | Batch]) -> Iterator[Batch]:
        with self._lock:
            self._working += 1
        while not payloads.finished:
            with self._channels.turn():
                item = payloads.poll(CHECK_INTERVAL)
                if isinstance(item, Payload):
                    self._gate.wait_released()
                    yield from self._send_wanted(self._drop_unfit(self._drop_unwanted(item)))
                elif item is not None:
                    yield item
        with self._lock:
            self._working -= 1
            last = not self._working
        if last:
            yield from self._send_unfit()

    def end(self) -> None:
        """Forget the batches of earlier runs: all files have been found and sent, or are gone."""
        self._ledger.forget_batches(list(self._earlier))

    def _send_unfit(self) -> Iterator[Batch]:
        """Send what did not fit, as soon as it fits; nothing else is being sent."""
        with self._lock:
            unfit, self._unfit = self._unfit, []
        for payload, problem in unfit:
            if self._choices.finishing:
                for wanted in payload.members:
                    self._give_up(wanted, problem)
                continue
            self._last.update(it.remote for it in payload.members)
            self._space.short = True
            with self._channels.turn():
                self._gate.wait_released()
                yield from self._send_wanted(self._drop_unwanted(payload))

    def _send_wanted(self, payload: Payload) -> Iterator[Batch]:
        if not payload.members:
            return
        if payload.batched and self._begun:
            for it in payload.members:
                it.interrupted = it.interrupted or it.file.key in self._begun
        # To a far host, a channel that is open sends what waits for one that is being opened.
        waiting = self._taken if self._channels.are_far else deque[Payload]()
        waiting.append(payload)
        taken: Payload | None = None
        try:
            with self._channels.borrowed_while(lambda: waiting) as channel:
                while channel and (taken := _take(waiting)):
                    with self._choices.carrying(taken):
                        yield from self._carry(channel, taken)
        except PAUSING as error:  # for longer than its patience
            self._choices.finish(error)
            for left in filter(None, (taken, *iter(lambda: _take(waiting), None))):
                self._drop_unwanted(left)

    def _note_batch(self, payload: Payload) -> list[int]:
        """Record the members of a batch until all have arrived: the next run may continue it."""
        if not payload.batched:
            return []
        return [self._ledger.note_batch([wanted.file.key for wanted in payload.members])]

    def _carry(self, channel: Channel, payload: Payload) -> Iterator[Batch]:
        left, unsent = [payload], len(payload.members)
        noted = self._note_batch(payload)
        attempts = Attempts(self._attempts, payload.size)
        while True:
            attempts.begin()
            refused: list[tuple[FileRecord, Problem]] = []
            for part in left:
                staged, unproven = self._attempt(channel, part, attempts)
                unsent -= len(staged)
                if staged:
                    yield list(staged)
                refused += unproven
            if not unsent:
                self._ledger.forget_batches(noted)
            if not refused:
                return
            attempts.end(problem for _, problem in refused)
            if attempts.used_up:
                for wanted, problem in refused:
                    self._postpone(wanted, problem, payload)
                return
            self._rest(channel, payload, refused[0][1], attempts.failed)
            left = self._divide(payload, [wanted for wanted, _ in refused], attempts.failed)

    def _attempt(
        self, channel: Channel, payload: Payload, attempts: Attempts
    ) -> tuple[Batch, list[tuple[FileRecord, Problem]]]:
        """Send once; return what is in the staging area now, and what may be sent again.

        If the user cancels a member in the meantime, the others are sent again without it, and with
        it if the user has changed that decision.
        """
        payload = self._drop_unwanted(payload)
        if not payload.members:
            return [], []
        if self._space.short:  # what fits comes first
            members = sorted(payload.members, key=lambda wanted: wanted.file.size)
            payload = payload.keep(members)
        begun = self._gate.clock.monotonic()
        try:
            self._gate.wait_released()
            channel = self._channels.ensure_open(channel)
            results = self._gate.call(lambda: self._send(channel, payload, attempts), staging=True)
        except (CutOffError, *PAUSING) as error:
            if attempts.reported:
                self._report_end(channel, payload, [], begun)
                attempts.reported = False
            if not isinstance(error, CutOffError):
                self._choices.finish(error)
            for it in payload.members:
                it.interrupted = True
            return self._attempt(channel, payload, attempts)
        except TransientError as error:
            results = [
                UnsentFile(i, error.problem, again=True) for i in range(len(payload.members))
            ]
        staged, refused = self._sort(payload, results)
        self._keep(staged)
        self._report_end(channel, payload, staged, begun)
        attempts.reported = False
        return staged, refused

    def _drop_unwanted(self, payload: Payload) -> Payload:
        """Return a payload without the members that the user has cancelled."""
        if not self._choices.made:
            return payload
        kept = []
        for wanted in payload.members:
            objection = self._choices.find_objection(wanted, payload.id)
            if objection == STOPPING and wanted.remote in self._last:
                objection = describe_full(os.fsencode(wanted.remote))  # which is why the run ends
            if objection is None:
                kept.append(wanted)
            else:
                self._give_up(wanted, objection, payload.id)
        return payload.keep(kept)

    def _drop_unfit(self, payload: Payload) -> Payload:
        """Return a payload without the members that are too large for the staging area."""
        unfit = [it for it in payload.members if self._space.excludes(it.file.size)]
        for wanted in unfit:
            self._postpone(wanted, describe_full(os.fsencode(wanted.remote)), payload)
        return payload.keep(it for it in payload.members if it not in unfit) if unfit else payload

    def _sort(
        self, payload: Payload, results: list[SentFile | UnsentFile]
    ) -> tuple[Batch, list[tuple[FileRecord, Problem]]]:
        """Return what is in the staging area, and what may be sent again; give up the rest."""
        staged, refused = [], []
        for result in results:
            wanted = payload.members[result.index]
            if isinstance(result, SentFile):
                self._admit(wanted, result)
                staged.append(wanted)
            elif result.again and not self._is_unfit(wanted, result.problem):
                refused.append((wanted, result.problem))
            else:
                self._postpone(wanted, result.problem, payload)
        return staged, refused

    def _report_end(self, channel: Channel, payload: Payload, staged: Batch, begun: float) -> None:
        seconds = self._gate.clock.monotonic() - begun
        size = sum(item.file.size for item in staged)
        self._emit(
            TransferFinished(
                transfer=payload.id,
                channel=channel.number,
                files=count_members(staged),
                bytes=size,
                seconds=seconds,
            )
        )

    def _send(
        self, channel: Channel, payload: Payload, attempts: Attempts
    ) -> list[SentFile | UnsentFile]:
        left_out = 0

        def follow(size: int, omitted: int = 0, /) -> None:
            nonlocal left_out
            left_out = omitted
            attempts.reach(size)
            reach(size, omitted)
            self._emit(
                TransferProgressed(
                    transfer=payload.id, channel=channel.number, bytes=size, omitted=omitted
                )
            )

        self._gate.wait_released()
        with (
            self._choices.sending(payload, channel),
            self._channels.carrying(channel, payload) as reach,
        ):
            self._report_start(channel, payload, attempts.made)
            attempts.reported = True
            with self._space.turn() as alone:
                results = channel.send(payload, follow)
                self._judge_space(payload, results, attempts.made, alone=alone)
            reach(payload.size, left_out)
            return results

    def _judge_space(
        self,
        payload: Payload,
        results: list[SentFile | UnsentFile],
        attempt: int,
        *,
        alone: bool,
    ) -> None:
        """Learn from the results whether space is short; raise `StagingError` if there is none."""
        full = [
            payload.members[result.index].file.size
            for result in results
            if isinstance(result, UnsentFile) and result.problem.code == FULL
        ]
        if not full:
            self._space.short = self._space.short and not alone
            return
        if alone:
            for size in full:
                if size > SMALL:
                    self._space.note_too_large(size)
        lasting = min(full) <= SMALL or self._is_last(payload)
        self._space.short = not alone or lasting
        sent = any(isinstance(result, SentFile) for result in results)
        separate = len(payload.members) == 1 or attempt > TOGETHER
        if alone and separate and lasting and not sent:
            raise describe_no_space()

    def _is_unfit(self, wanted: FileRecord, problem: Problem) -> bool:
        """Return whether a file is known not to fit into the staging area."""
        last = wanted.remote in self._last
        return problem.code == FULL and not last and self._space.excludes(wanted.file.size)

    def _is_last(self, payload: Payload) -> bool:
        """Return whether a payload is sent after everything else, since it did not fit before."""
        return all(wanted.remote in self._last for wanted in payload.members)

    def _report_start(self, channel: Channel, payload: Payload, attempt: int) -> None:
        self._emit(
            TransferStarted(
                transfer=payload.id,
                channel=channel.number,
                name=payload.members[0].file.key,
                files=payload.files,
                bytes=payload.size,
                attempt=attempt,
            )
        )

    def _admit(self, wanted: FileRecord, sent: SentFile) -> None:
        """Note that a file has arrived, an archive without files that changed meanwhile."""
        wanted.placed_by_server = sent.registered
        members = []
        for member, reading in zip(wanted.members, sent.inside, strict=bool(wanted.members)):
            if reading.problem:
                self._leave(member.file, reading.problem)
            else:
                members.append(member._replace(checksum=reading.checksum))
        wanted.members = tuple(members)
        wanted.arrive(sent.checksum)

    def _keep(self, staged: Batch) -> None:
        record_sent(self._ledger, staged)
        self._note(staged)
        self._emit_all(
            [
                FileStaged(path=file.key, size=file.size, checksum=checksum)
                for item in staged
                for file, checksum in item.checked_files
            ]
        )

    def _rest(self, channel: Channel, payload: Payload, problem: Problem, failed: int) -> None:
        delay = self._gate.backoff(failed)
        self._emit(
            TransferRetried(
                transfer=payload.id, channel=channel.number, problem=problem, delay=delay
            )
        )
        self._gate.rest(delay)

    def _divide(self, payload: Payload, members: list[FileRecord], failed: int) -> list[Payload]:
        if failed < TOGETHER:
            for it in members:
                it.interrupted = it.interrupted or payload.batched
            return [payload.keep(members)]
        return [Payload(payload.id, (member,), batched=False) for member in members]

    def _postpone(self, wanted: FileRecord, problem: Problem, payload: Payload) -> None:
        """Keep a file that does not fit until nothing else is sent, or give it up."""
        first = self._waits_for_space and wanted.remote not in self._last
        if problem.code == FULL and first:
            self._unfit.append((Payload(payload.id, (wanted,), batched=False), problem))
        else:
            self._give_up(wanted, problem)

    def _give_up(self, wanted: FileRecord, problem: Problem, transfer: int = 0) -> None:
        if problem.code == FULL:
            self._choices.note(describe_short_space())
        if problem.code == HELD:
            self._hold(wanted)
        for file in wanted.files:
            self._leave(file, problem)
        if problem == CANCELLED or problem.code not in WAITING:
            waits = problem == CANCELLED or problem.code in LOST
            outcome = "waiting" if waits else "failed"
            self._choices.keep(wanted, outcome, transfer)

    def _leave(self, file: LocalFile, problem: Problem) -> None:
        kind = FileWaiting if problem.code in WAITING | LOST else FileFailed
        self._emit(kind(path=file.key, size=file.size, problem=problem))


def _take(waiting: deque[Payload]) -> Payload | None:
    """Return the payload that waits longest for a channel, if any."""
    with suppress(IndexError):
        return waiting.popleft()
    return None
