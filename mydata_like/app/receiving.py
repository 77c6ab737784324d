"""What receives the files of `get`: a session in this process, or in a process of its own.

Threads that decrypt and hash wait for the one interpreter of a process. Of a host, many bytes are
therefore received as they are sent, by processes with a session each.
"""

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    nullcontext,
    suppress,
)
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple, Protocol, cast

from mydata_like.core import hashing
from mydata_like.core.destination_files import HOLE, DestinationFiles, StoredFile
from mydata_like.core.errors import (
    Cancelled,
    ItemError,
    Problem,
    TransientError,
    UploaderError,
)
from mydata_like.core.formatting import format_path
from mydata_like.core.model import LOST
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.lock import lock_helper
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.transfer.folder.received_files import (
    DIFFERS,
    HashedPiece,
    ReceivedFiles,
    Reception,
    WantedFile,
    hash_alone,
)
from mydata_like.transfer.worker_messages import (
    ChannelReply,
    Pipe,
    Reply,
    ServiceAnswer,
    ServiceCall,
    pack_error,
)
from mydata_like.transfer.worker_process import WorkerProcess, build_command, start_process

SMALL: Final = 256 * 1024  # bytes; files up to this size are received together
_CHANNEL: Final = 1
_TOLD: Final = 0.1  # seconds between two reports of a process
_ENDING: Final = 2.0  # seconds for a process to name what is complete
_CHECK_SERVER: Final = "If this persists, ask the facility's administrator to check the storage."

Steps = Generator[HashedPiece, None, Problem | None]


class Arrivals(Protocol):
    """Learns what comes, while files are received; each method may raise to end that."""

    def move(self, size: int, *, waits: bool) -> None:
        """Count bytes, and wait as the bandwidth demands, unless they were not fetched."""

    def settle(self, file: WantedFile, problem: Problem | None) -> None:
        """Count a file that is here now, or cannot be received."""


class SessionReceiver(NamedTuple):
    """Receives over a session of this process, until `cancel` is set.

    What comes from the staging host of a server is to `forget` by its path once it was wrong;
    whether it was asked for there is returned.
    """

    files: DestinationFiles
    target: ReceivedFiles
    cancel: CancelFlag
    replace: bool
    sparse: bool
    records: bool = False
    forget: Callable[[bytes], bool] = lambda _: False

    def receive(self, wanted: Sequence[WantedFile], arrivals: Arrivals, *, again: bool) -> None:
        """Receive files, small ones together, and settle each; raises what lasts, with some left.

        It is `again` if an earlier attempt of this command may have left some of their bytes.
        """
        left = {it.path: it for it in wanted}
        small = [it.path for it in wanted if it.size <= SMALL or it.archive]
        if len(small) > 1:
            self._receive_together(small, left, arrivals)
        waiting, works = list(left.values()), dict[bytes, Steps]()
        with ExitStack() as stack:
            while waiting or works:
                for file in waiting[: max(0, self.files.concurrent - len(works))]:
                    waiting.remove(file)
                    works[file.path] = self._receive_alone(file, arrivals, again=again)
                    stack.callback(works[file.path].close)
                pieces = []
                for path, steps in list(works.items()):
                    try:
                        pieces.append(next(steps))
                    except StopIteration as end:
                        arrivals.settle(left.pop(path), end.value)
                        del works[path]
                    except TransientError as error:
                        if error.problem_code != NO_CHANNEL or len(works) == 1:
                            raise
                        waiting.append(left[path])  # until one of the others is complete
                        del works[path]
                hashing.update_all(pieces)

    def _receive_together(
        self, paths: Sequence[bytes], left: dict[bytes, WantedFile], arrivals: Arrivals
    ) -> None:
        """Receive small files; those that are omitted or wrong stay `left`."""
        moved = partial(_pass, arrivals)
        with self._receiving() as reception:
            unpack = reception.unpack(
                [left[it] for it in paths], partial(arrivals.move, waits=True)
            )
            try:
                for content in self.files.open_contents(paths, unpack):
                    file = left[content.path]
                    try:
                        with reception.open(file) as incoming:
                            hash_alone(reception.write(incoming, content, moved))
                    except OSError as error:
                        arrivals.settle(file, self.target.judge(file.place, error))
                        del left[file.path]
            finally:
                for file, problem in reception.name_all():
                    arrivals.settle(file, problem)
                    del left[file.path]

    def _receive_alone(self, file: WantedFile, arrivals: Arrivals, *, again: bool) -> Steps:
        """Receive a file, in the steps of `Reception.write`; return what prevented that.

        If it continues what an earlier attempt has left, and that was wrong, it begins again.
        """
        resumed, moved = True, partial(_pass, arrivals)
        while resumed:
            try:
                with self._receiving() as reception:
                    with reception.open(file) as incoming:
                        resumed = incoming.offset > 0
                        # What earlier attempts of this command have left was counted as it came.
                        arrivals.move(0 if again else incoming.offset, waits=False)
                        with self.files.open_content(file.path, incoming.offset) as content:
                            if content is None:
                                incoming.remove()
                                return describe_lost(file.path, records=self.records)
                            right = yield from reception.write(incoming, content, moved)
                    if right:
                        return reception.name_all()[0][1]
                    resumed = resumed or self.forget(file.path)
            except OSError as error:
                return self.target.judge(file.place, error)
            except TransientError:
                raise
            except ItemError as error:
                if not self.forget(file.path):
                    return error.problem
                resumed = True
        return _describe_different(file.path, records=self.records)

    def _receiving(self) -> AbstractContextManager[Reception]:
        return self.target.receiving(replace=self.replace, sparse=self.sparse)


def _pass(arrivals: Arrivals, piece: bytes) -> None:
    arrivals.move(len(piece), waits=piece is not HOLE)


def find_right(
    target: ReceivedFiles, wanted: Sequence[WantedFile]
) -> tuple[list[StoredFile | None], set[bytes]]:
    """Return what has the names of wanted files, and the paths of those that have their bytes."""
    found = target.look([it.place for it in wanted])
    pairs = zip(wanted, found, strict=True)
    same = [file for file, there in pairs if there and there.size == file.size]
    proven = zip(same, target.prove([it.place for it in same]), strict=True)
    return found, {file.path for file, it in proven if it and it.checksum == file.checksum}


def describe_lost(path: bytes, *, records: bool) -> Problem:
    """Return the problem of a file that is listed, or of which the server has a record."""
    if records:
        message = f"The server has a record of {format_path(path)}, but not its bytes."
        return Problem(LOST, message, _CHECK_SERVER)
    return Problem(
        LOST,
        f"{format_path(path)} is listed, but no file of this name can be read at the destination.",
        "Copy it there again from the original.",
    )


def _describe_different(path: bytes, *, records: bool) -> Problem:
    if records:
        shown = format_path(path)
        message = f"The server returned other bytes for {shown} than it has verified."
        return Problem(DIFFERS, message, _CHECK_SERVER)
    return Problem(
        DIFFERS,
        f"{format_path(path)} has other bytes at the destination than the manifest lists. They "
        "were not kept.",
        "The administrator of the destination has to check its storage. If copies go there "
        "now, run the same command again.",
    )


class ReceivingService(NamedTuple):
    """The work of a process that receives files, as a `SessionReceiver` does; it gets this.

    With `lock`, it holds the lock of that note, where it cannot keep the lock of the folder.
    """

    open_files: Callable[[], DestinationFiles]
    target: ReceivedFiles
    replace: bool
    sparse: bool
    lock: Path | None = None

    def serve(self, pipe: Pipe) -> None:
        """Receive what is asked for until an error, which is sent, or the other process ends."""
        os.umask(self.target.umask)  # a bundle starts its processes with another one
        calls, cancel = SimpleQueue[ServiceCall](), CancelFlag()
        threading.Thread(target=_listen, args=(pipe, calls, cancel), daemon=True).start()
        arrivals = _SentArrivals(pipe, cancel)
        locked = lock_helper(self.lock) if self.lock else nullcontext()
        with locked, closing(self.open_files()) as files:
            receiver = SessionReceiver(files, self.target, cancel, self.replace, self.sparse)
            try:
                while arguments := calls.get().arguments:
                    wanted, again = cast(tuple[Sequence[WantedFile], bool], arguments)
                    receiver.receive(wanted, arrivals, again=again)
                    arrivals.report(is_end=True)
            except Cancelled:
                arrivals.report()
            except UploaderError as error:
                arrivals.report()
                arrivals.send(pack_error(error))


def _listen(pipe: Pipe, calls: SimpleQueue[ServiceCall], cancel: CancelFlag) -> None:
    """Pass on what is asked for; end this process once the other one has ended."""
    try:
        while True:
            call: ServiceCall = pipe.receive().command
            if not call.arguments:
                cancel.set()
            calls.put(call)
    except (EOFError, OSError):
        os._exit(0)


class _Report(NamedTuple):
    """What came since the last one: bytes that were fetched, and not, and files."""

    fetched: int
    omitted: int
    settled: list[tuple[bytes, Problem | None]]
    is_end: bool  # all that was asked for is settled


class _SentArrivals:
    """Collects what comes, and sends it to the other process ten times a second."""

    def __init__(self, pipe: Pipe, cancel: CancelFlag) -> None:
        self._pipe = pipe
        self._cancel = cancel
        self._fetched = self._omitted = 0
        self._settled: list[tuple[bytes, Problem | None]] = []
        self._told = 0.0

    def move(self, size: int, *, waits: bool) -> None:
        if waits:
            self._fetched += size
        else:
            self._omitted += size
        if time.monotonic() - self._told >= _TOLD:
            self.report()
        if self._cancel.is_set():
            raise Cancelled

    def settle(self, file: WantedFile, problem: Problem | None) -> None:
        self._settled.append((file.path, problem))

    def report(self, *, is_end: bool = False) -> None:
        self.send(ServiceAnswer(_Report(self._fetched, self._omitted, self._settled, is_end)))
        self._fetched = self._omitted = 0
        self._settled, self._told = [], time.monotonic()

    def send(self, reply: Reply) -> None:
        self._pipe.send(ChannelReply(_CHANNEL, reply))


class ProcessReceiver:
    """Receives files in another process, which is started when it is needed.

    `keeps` are descriptors that the process keeps open, so that the locks of the folder last as
    long as it does.
    """

    def __init__(self, service: ReceivingService, keeps: Sequence[int]) -> None:
        self._service = service
        self._keeps = keeps
        self._process: WorkerProcess | None = None

    def receive(self, wanted: Sequence[WantedFile], arrivals: Arrivals, *, again: bool) -> None:
        """Receive files; after an error, the process has ended, and the next call starts one.

        A process that was killed could not tell of all files that it had named.
        """
        left = {it.path: it for it in wanted}
        for path in find_right(self._service.target, wanted)[1] if again else ():
            arrivals.settle(left.pop(path), None)
        try:
            if self._process is None:
                start = partial(start_process, build_command(), self._keeps)
                self._process = WorkerProcess(start, "get")
                self._process.begin(self._service)
            self._process.send(_CHANNEL, ServiceCall("receive", ([*left.values()], again)))
            while True:
                reply = self._process.receive(_CHANNEL, threading.TIMEOUT_MAX)
                assert isinstance(reply, ServiceAnswer)
                report: _Report = reply.value
                for path, problem in report.settled:
                    arrivals.settle(left.pop(path), problem)
                arrivals.move(report.omitted, waits=False)
                arrivals.move(report.fetched, waits=True)
                if report.is_end:
                    return
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """Ask the process to name what is complete, and to end."""
        if process := self._process:
            with suppress(TransientError):
                process.send(_CHANNEL, ServiceCall("stop", ()))

    def close(self) -> None:
        """Let the process end, or end it if that takes long."""
        process = self._process
        if process:
            self.stop()
            process.await_end(_ENDING)
            process.kill()
            process.reap()
            self._process = None


Receiver = SessionReceiver | ProcessReceiver
