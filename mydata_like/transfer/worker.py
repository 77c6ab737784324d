"""A channel worker: the process that owns one SSH session and moves payloads over it.

It is spawned with a pipe and a plan, says `Opened`, then answers each task with a few `Moved`
and one `Done` or `Failed`. It ends at once when the pipe does, so it never outlives the engine.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Final

from mydata_like.core.bandwidth import Bucket
from mydata_like.core.errors import (
    Problem,
    RejectedError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.format import format_path
from mydata_like.ssh.remote import Rung, probe
from mydata_like.ssh.session import Session
from mydata_like.transfer.bandwidth import LimitedSession
from mydata_like.transfer.batch import BatchSender
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.protocol import (
    Allowance,
    Answer,
    Done,
    Fate,
    Member,
    Moved,
    Moving,
    Opened,
    Plan,
    Sender,
    Task,
    pack_error,
)
from mydata_like.transfer.scp import ScpSender
from mydata_like.transfer.sftp import SftpSender
from mydata_like.transfer.shell import Shells
from mydata_like.transfer.single import SingleSender
from mydata_like.transfer.tar import is_plain

_SWITCH: Final = 0.0002  # seconds a thread may keep the interpreter from the others
_BEAT: Final = 0.1  # seconds between two reports of progress


Connect = Callable[[Plan], tuple[Session, Rung]]


def work(
    pipe: "Connection[Answer, Task | Allowance]", plan: Plan, connect: Connect | None = None
) -> None:
    """Do the tasks that come through the pipe until the session or the engine ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine decides what an interrupt means
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sys.setswitchinterval(_SWITCH)
    tasks: SimpleQueue[Task] = SimpleQueue()
    reporter = Reporter(pipe.send)
    bucket = Bucket(reporter.say_alive)
    Thread(target=_listen, args=(pipe, tasks, bucket), name="listen", daemon=True).start()
    try:
        _serve(reporter, tasks, _open(plan, connect or connect_by_ssh, bucket))
    except RejectedError as error:  # what refuses us as a whole is no matter of one file
        code, message, hint = error.problem
        pipe.send(pack_error(StagingError(message, hint=hint, code=code)))
    except UploaderError as error:
        pipe.send(pack_error(error))


def _listen(
    pipe: "Connection[Answer, Task | Allowance]", tasks: "SimpleQueue[Task]", bucket: Bucket
) -> None:
    """Pass on what comes; end the process when the engine is gone, whatever it is doing."""
    try:
        while True:
            order = pipe.recv()
            if isinstance(order, Allowance):
                bucket.limit(order.rate)
            else:
                tasks.put(order)
    except (EOFError, OSError):
        os._exit(0)


def _serve(
    reporter: "Reporter",
    tasks: "SimpleQueue[Task]",
    opened: tuple[Session, Sender, Rung],
) -> None:
    session, sender, rung = opened
    reporter.answer(Opened(rung, session.stack, session.cipher))
    try:
        broken = False
        while not broken:
            task = tasks.get()
            reporter.begin()
            done = _carry(sender, task, reporter)
            reporter.answer(done)
            broken = done.broken
    finally:
        sender.close()
        session.close()


class Reporter:
    """Tells the engine how much of a payload has gone, ten times a second."""

    def __init__(self, answer: Callable[[Answer], None]) -> None:
        self.answer = answer
        self.begin()

    def begin(self) -> None:
        """Count anew, for the next payload."""
        self._moved = 0
        self._next = time.monotonic() + _BEAT

    def say_alive(self) -> None:
        """Say that it goes on, though nothing may go just now."""
        self(0)

    def __call__(self, count: int) -> None:
        self._moved += count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _BEAT
            self.answer(Moved(self._moved))


def _carry(sender: Sender, task: Task, moving: Moving) -> Done:
    """Carry what can have a place below the location; the rest fails alone."""
    bad = {
        index: Fate(index, "", _misplaced(member))
        for index, member in enumerate(task.members)
        if not is_plain(member.remote)
    }
    if not bad:
        return sender.send(task, moving)
    good = [index for index in range(len(task.members)) if index not in bad]
    members = tuple(task.members[index] for index in good)
    done = sender.send(Task(members, task.batched), moving) if members else Done(())
    for fate in done.fates:
        bad[good[fate.place]] = fate._replace(place=good[fate.place])
    return Done(tuple(bad[index] for index in sorted(bad)), done.broken)


def _misplaced(member: Member) -> Problem:
    return Problem(
        "staging.name", f"{format_path(member.remote)} has no place in the staging area."
    )


class ShellSender:
    """Carries payloads where there is a shell: batches by tar, the rest one by one."""

    def __init__(self, session: Session, plan: Plan, rung: Rung) -> None:
        self._shells = Shells(session, Compression(available=plan.compress and rung.zstd))
        self._single = SingleSender(self._shells, plan.location, rung)
        self._batch = BatchSender(self._shells, plan.location, rung) if rung.tar else None

    def send(self, task: Task, moving: Moving) -> Done:
        """Carry a payload; raises `TransientError` when the line broke and none is proven."""
        if task.batched and self._batch and not any(b"\n" in m.remote for m in task.members):
            return self._batch.send(task.members, moving)
        fates: list[Fate] = []
        for index, member in enumerate(task.members):
            try:
                fates.append(self._single.send(index, member, moving))
            except TransientError as error:
                return _salvage(fates, len(task.members), error)
        return Done(tuple(fates))

    def close(self) -> None:
        self._shells.close()


def _salvage(fates: list[Fate], count: int, error: TransientError) -> Done:
    """Return what is known when the line breaks between files, or raise where nothing is."""
    if not fates:
        raise error
    rest = (Fate(index, "", error.problem, again=True) for index in range(len(fates), count))
    return Done((*fates, *rest), broken=True)


def _open(plan: Plan, connect: Connect, bucket: Bucket) -> tuple[Session, Sender, Rung]:
    """Connect, find out what the host allows where that is not known, and build the sender."""
    session, rung = connect(plan)
    session = LimitedSession(session, bucket)
    try:
        return session, _build_sender(session, plan, rung), rung
    except UploaderError:
        session.close()
        raise


def connect_by_ssh(plan: Plan) -> tuple[Session, Rung]:
    """Return a session, and what its host allows."""
    # The engine imports this module only to name `work`; it needs no SSH library for that.
    from mydata_like.ssh.connect import connect

    session = connect(plan.endpoint)
    try:
        rung = plan.rung or probe(session, plan.location)
    except UploaderError:
        session.close()
        raise
    return session, rung


def _build_sender(session: Session, plan: Plan, rung: Rung) -> Sender:
    match rung.rung:
        case "shell":
            return ShellSender(session, plan, rung)
        case "scp":
            return ScpSender(session, plan.location)
        case _:
            return SftpSender(session.open_sftp(), plan.location)
