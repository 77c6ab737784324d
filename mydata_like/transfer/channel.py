"""A channel to the staging area; a worker process does the work."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import FULL, RunError, TransientError, UploaderError
from mydata_like.core.events import ChannelChanged
from mydata_like.core.model import FileRecord, Payload, Replacement
from mydata_like.core.ports import Progress, SentFile, UnsentFile
from mydata_like.core.staging_path import aside_path
from mydata_like.transfer.worker_messages import (
    BytesSent,
    CancelTask,
    Member,
    RateLimit,
    RenameTask,
    RenameTasks,
    SendTask,
    TaskResult,
)
from mydata_like.transfer.worker_process import WorkerProcess

if TYPE_CHECKING:
    from mydata_like.transfer.pool import StagingTransport

CUT: Final = "file.cancelled"
LARGE: Final = 8 * 1024 * 1024  # bytes of a file that is sent together with others of its kind
_DOUBTFUL: Final = "Some files were not sent; the staging host may have changed."


class StagingChannel:
    """One channel of a session; implements `core.ports.Channel`.

    Large files may be sent over another session, which the channel joins in addition (see
    `StagingTransport.open_shared`). A failure ends a session and all of its channels. The next send
    opens a new one.
    """

    def __init__(self, pool: "StagingTransport", number: int) -> None:
        self.number = number
        self._pool = pool
        self._worker: WorkerProcess | None = None
        self._shared: WorkerProcess | None = None  # the one for large files, if it is another
        self._rate = 0.0
        self._rate_lock = Lock()  # keeps the order in which rates are sent to the worker
        self._cancelled = False
        # The part of each worker's report that was counted already.
        self._spent: dict[WorkerProcess, TimeByCause] = {}

    def open(self) -> None:
        """Join a worker whose session grants the channel."""
        self._join()

    def send(self, payload: Payload, progress: Progress) -> list[SentFile | UnsentFile]:
        """Send a payload; see `core.ports.Channel`."""
        self._pool.announce(payload)
        worker = self._join()
        first = payload.members[0]
        # An archive takes more of the interpreter's time, which one process has once.
        if not payload.batched and not first.members and first.file.size >= LARGE:
            worker = self._join_shared(worker)
        mark, algorithm = self._pool.mark, self._pool.algorithm
        members = tuple(describe_member(wanted, mark, algorithm) for wanted in payload.members)
        return self._run(worker, SendTask(members, payload.batched), progress)

    def replace(
        self, replacements: Sequence[Replacement], files: Mapping[bytes, FileRecord]
    ) -> list[SentFile | UnsentFile]:
        """Move replacements to their final paths; see `core.ports.Channel`."""
        mark, algorithm = self._pool.mark, self._pool.algorithm
        moves = (_make_move(it, files.get(it.key), mark, algorithm) for it in replacements)
        return self._run(self._join(), RenameTasks(tuple(moves)))

    def discard(self, paths: Sequence[str]) -> None:
        """Remove what is stored under these paths and no longer wanted."""
        moves = (RenameTask(_encode(path), b"", 0) for path in paths)
        self._run(self._join(), RenameTasks(tuple(moves)))

    def limit(self, rate: float) -> None:
        """Limit the rate to `rate` bytes per second from now on."""
        self._rate = rate
        self._send_rate()

    def cut(self) -> None:
        """Cancel the current payload; its bytes may be sent again later."""
        self._cancelled = True
        for worker in self._joined():
            with suppress(TransientError):  # a worker that has ended sends nothing
                worker.send(self.number, CancelTask())

    def close(self) -> None:
        """Close the channel while it is idle."""
        if self._worker is not None:
            host = self._worker.host
            self._leave_all()
            self._pool.note_closed()
            self._pool.emit(ChannelChanged(channel=self.number, state="closed", host=host))

    def _run(
        self, worker: WorkerProcess, task: SendTask | RenameTasks, progress: Progress | None = None
    ) -> list[SentFile | UnsentFile]:
        """Send a task to a worker and return the results of its members."""
        try:
            done = self._exchange(worker, task, progress)
        except UploaderError as error:
            self._give_up(worker, _cancelled_error() if self._cancelled else error)
            raise
        finally:
            cut, self._cancelled = self._cancelled, False
        problems = (result.problem for result in done.results if result.problem)
        doubtful = worker.recalled and any(problem.code != FULL for problem in problems)
        if done.broken:
            self._give_up(worker, TransientError("The connection broke.", code="channel.lost"))
        elif doubtful:
            self._give_up(worker, TransientError(_DOUBTFUL, code="channel.lost"))
        if cut:
            raise _cancelled_error()
        return [
            SentFile(it.place, it.checksum, inside=it.inside)
            if it.problem is None
            else UnsentFile(it.place, it.problem, it.again or doubtful)
            for it in done.results
        ]

    def _exchange(
        self, worker: WorkerProcess, task: SendTask | RenameTasks, progress: Progress | None
    ) -> TaskResult:
        parts = task.members if isinstance(task, SendTask) else task.moves
        size = sum(part.size for part in parts)
        worker.send(self.number, task)
        if self._cancelled:
            worker.send(self.number, CancelTask())  # again: the first may precede the task
        while True:
            reply = worker.receive(self.number, self._pool.timeout)
            assert isinstance(reply, TaskResult | BytesSent)
            self._pool.count_spent(reply.spent.minus(self._spent.get(worker, NOTHING_SPENT)))
            self._spent[worker] = reply.spent
            if isinstance(reply, TaskResult):
                return reply
            if progress is not None:
                done = min(reply.bytes, size)
                progress(done, min(reply.omitted, done))

    def _joined(self) -> list[WorkerProcess]:
        return [worker for worker in (self._worker, self._shared) if worker is not None]

    def _join(self) -> WorkerProcess:
        if self._worker is None:
            self._worker = self._pool.open_worker(self.number)
            self._send_rate()
        return self._worker

    def _join_shared(self, own: WorkerProcess) -> WorkerProcess:
        """Return the worker for large files: our own one, unless another one is shared for them."""
        shared = self._shared
        if shared is not None and (shared.is_closed or not self._pool.may_share):
            self._forget_shared()
            self._pool.leave(shared, self.number)
        if self._shared is None:
            self._shared = self._pool.open_shared(self.number, own)
            self._send_rate()
        return self._shared or own

    def _forget_shared(self) -> None:
        if self._shared is not None:
            self._spent.pop(self._shared, None)
        self._shared = None

    def _leave_all(self) -> None:
        for worker in self._joined():
            self._pool.leave(worker, self.number)
        self._worker = self._shared = None
        self._spent.clear()

    def _send_rate(self) -> None:
        with self._rate_lock:
            for worker in self._joined():
                with suppress(TransientError):  # a worker that has ended needs no limit
                    worker.send(self.number, RateLimit(self._rate))

    def _give_up(self, worker: WorkerProcess, error: UploaderError) -> None:
        self._pool.give_up(worker, failed=not (self._cancelled or isinstance(error, RunError)))
        if worker is self._shared:  # the channel still has its own session
            self._forget_shared()
            return
        self._leave_all()
        self._pool.emit(
            ChannelChanged(
                channel=self.number, state="lost", host=worker.host, detail=error.message
            )
        )


def _make_move(
    replacement: Replacement, wanted: FileRecord | None, mark: bytes, algorithm: Algorithm
) -> RenameTask:
    target = _encode(replacement.remote)
    member = None
    if wanted is not None:
        member = describe_member(wanted, mark, algorithm)._replace(remote=target, aside=False)
    return RenameTask(
        _encode(replacement.staged),
        target,
        replacement.size,
        _encode(replacement.kept),
        replacement.kept_size,
        member,
    )


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def describe_member(
    wanted: FileRecord, mark: bytes = b"", algorithm: Algorithm = Algorithm.MD5
) -> Member:
    """Return a file in the form that a channel worker receives."""
    file, replaces = wanted.file, wanted.replaces
    member = Member(
        file.path,
        file.size,
        file.modified_ns,
        file.device,
        file.inode,
        _encode(wanted.remote),
        wanted.round > 0,
        wanted.members,
        replaces,
        mark,
        file.top,
        wanted.interrupted,
        wanted.release,
        algorithm,
    )
    if not replaces:
        return member
    aside = _encode(aside_path(wanted.remote, file.size, file.modified_ns, mark))
    if wanted.appended and wanted.earlier and wanted.earlier.size:
        member = member._replace(stored=member.remote, stored_size=wanted.earlier.size)
    return member._replace(remote=aside)


def _cancelled_error() -> TransientError:
    return TransientError("A user cancelled the transfer.", code=CUT)
