"""A channel worker: the process that owns one session and chooses how to send payloads.

It is started with a pipe, and connects when it receives its configuration. Each channel that joins
gets a thread, which sends `ChannelOpened` and replies to each task with some `BytesSent` and then
one `TaskResult` or `TaskFailed`. While one thread waits for the host, the others continue. The
first failure ends the process, which never outlives the engine.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final, NamedTuple, NoReturn

from mydata_like.core.errors import Problem, TransientError, UploaderError
from mydata_like.core.formatting import format_path
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.capabilities import HostCapabilities, confirm, probe
from mydata_like.ssh.connect import connect, import_ahead
from mydata_like.ssh.session import OpenSession, SessionWriter, SshSession
from mydata_like.transfer.arrived_files import find_arrived
from mydata_like.transfer.batch_sender import BatchSender
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.file_replacement import (
    InPlaceSender,
    renumber,
    replace_by_shell,
)
from mydata_like.transfer.interleaved_sender import InterleavedSender
from mydata_like.transfer.multi_stream import StreamLimit
from mydata_like.transfer.remote_shell import Shells, SpareShells
from mydata_like.transfer.scp_sender import ScpSender
from mydata_like.transfer.sftp_sender import SftpSender
from mydata_like.transfer.shared_reader import SharedReader
from mydata_like.transfer.single_file import SingleSender
from mydata_like.transfer.staging_folder import StagingFolder
from mydata_like.transfer.tar import is_plain
from mydata_like.transfer.throttled_session import ChannelTimer, ThrottledSession
from mydata_like.transfer.worker_messages import (
    ALL,
    LOST,
    STREAMS,
    BytesSent,
    CancelTask,
    ChannelCommand,
    ChannelOpened,
    ChannelReply,
    FolderCall,
    JoinChannel,
    LeaveChannel,
    Member,
    MemberResult,
    Moving,
    Pipe,
    RateLimit,
    RenameTask,
    RenameTasks,
    Reply,
    Sender,
    SendTask,
    TaskCommand,
    TaskResult,
    WorkerConfig,
    pack_error,
    take_standard_streams,
)


class SessionState(NamedTuple):
    """The state that the channels of one session share."""

    location: bytes
    capabilities: HostCapabilities
    compression: Compression
    limit: StreamLimit
    spares: SpareShells
    named: bool  # whether the host prints the members of batches from the first batch on
    find_zeros: bool
    interleaved: InterleavedSender
    reader: SharedReader


def build_state(
    session: SessionWriter, config: WorkerConfig, capabilities: HostCapabilities
) -> SessionState:
    """Return the shared state for a new session."""
    compression = Compression(available=config.compress and capabilities.zstd)
    return SessionState(
        config.location,
        capabilities,
        compression,
        StreamLimit(STREAMS),
        SpareShells(),
        config.named,
        find_zeros=config.find_zeros,
        interleaved=InterleavedSender(session, compression.note_plain),
        reader=SharedReader(),
    )


def build_sender(session: ThrottledSession, shared: SessionState) -> Sender:
    """Return the sender for a channel; raises if the host grants no channel."""
    sender: Sender
    match shared.capabilities.access:
        case "shell":
            return ShellSender(session, shared)
        case "scp":
            sender = ScpSender(session, shared.location)
        case _:
            sender = SftpSender(
                session,
                shared.location,
                shared.limit,
                find_zeros=shared.find_zeros,
                renames=shared.capabilities.renames,
                compares=shared.capabilities.access == "folder",
            )
    return InPlaceSender(sender) if shared.capabilities.in_place else sender


class ShellSender:
    """Sends payloads to a host with a shell: batches with tar, other files one by one."""

    def __init__(self, session: SshSession, shared: SessionState) -> None:
        self._limit = shared.limit
        self._shells = Shells(session, shared.compression, shared.spares)
        self._shells.open()
        location, capabilities = shared.location, shared.capabilities
        self._location = location
        self._checksum = capabilities.checksum
        self._single = SingleSender(
            self._shells, location, capabilities, shared.limit, find_zeros=shared.find_zeros
        )
        named = shared.named
        batch = (
            BatchSender(self._shells, location, capabilities, named=named)
            if capabilities.tar
            else None
        )
        self._batch = batch

    @property
    def round_trip(self) -> float:
        return self._shells.round_trip

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Send a payload; raises `TransientError` if the connection broke and none is proven."""
        with self._limit.used():
            return self._send(task, moving)

    def _send(self, task: SendTask, moving: Moving) -> TaskResult:
        if task.batched and self._batch and not any(b"\n" in m.remote for m in task.members):
            return self._send_batch(self._batch, task.members, moving)
        results: dict[int, MemberResult] = {}
        for index, member in enumerate(task.members):
            try:
                results[index] = self._single.send(index, member, moving)
            except TransientError as error:
                return _salvage(results, len(task.members), error)
        return TaskResult(tuple(results.values()))

    def _send_batch(
        self, batch: BatchSender, members: Sequence[Member], moving: Moving
    ) -> TaskResult:
        """Send the members of a batch, except those that an interrupted one has left whole."""
        results = find_arrived(self._shells, self._location, self._checksum, members, moving)
        rest = [index for index in range(len(members)) if index not in results]
        broken = False
        if rest:
            try:
                sent = batch.send([members[index] for index in rest], moving)
            except TransientError as error:
                return _salvage(results, len(members), error)
            results |= renumber(sent, rest)
            broken = sent.broken
        return TaskResult(tuple(results[index] for index in sorted(results)), broken)

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Move replacements into place; raises `TransientError` if the connection broke."""
        moving(0)
        return replace_by_shell(self._shells, self._location, moves)

    def close(self) -> None:
        self._shells.close()


def _salvage(results: Mapping[int, MemberResult], count: int, error: TransientError) -> TaskResult:
    """Return the known results after the connection broke, or raise if there are none."""
    if not results:
        raise error
    all_results = (
        results.get(index) or MemberResult(index, "", error.problem, again=True)
        for index in range(count)
    )
    return TaskResult(tuple(all_results), broken=True)


_SWITCH: Final = 0.0002  # seconds after which a thread yields the interpreter
_REPORT_INTERVAL: Final = 0.1  # seconds between two progress reports


Connect = Callable[[WorkerConfig], tuple[OpenSession, HostCapabilities]]
SendReply = Callable[[int, Reply], None]  # sends a message for a channel


def main() -> None:
    """Run a channel worker, as `WorkerProcess` starts it."""
    work(connect_to_staging)


def work(connect: Connect) -> NoReturn:
    """Process messages until the session or the engine ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine handles interrupts
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sys.setswitchinterval(_SWITCH)
    pipe = take_standard_streams()
    Thread(target=_import_ahead, name="import", daemon=True).start()
    _process(pipe, connect)
    os._exit(0)  # other threads may use a library that would be unloaded


def _process(pipe: Pipe, connect: Connect) -> None:
    try:
        config: WorkerConfig | StagingFolder = pipe.receive()
    except EOFError:
        return  # the worker was not needed
    if isinstance(config, StagingFolder):
        # Only this kind of work needs it.
        from mydata_like.transfer.folder_process import serve

        serve(pipe, config)
        return
    worker = _Worker(pipe, config)
    Thread(target=worker.listen, name="listen", daemon=True).start()
    try:
        session, capabilities = connect(config)
    except UploaderError as error:
        worker.send_reply(ALL, pack_error(error))
        return
    worker.serve(session, capabilities)
    session.close()


def _import_ahead() -> None:
    """Import modules in advance, while waiting for the configuration or the host.

    Garbage collection is off during the imports, and never scans their objects.
    """
    import_ahead()
    import_module("mydata_like.transfer.worker")
    gc.freeze()
    gc.enable()


class _Worker:
    """The part of a worker that its channels share."""

    def __init__(self, pipe: Pipe, config: WorkerConfig) -> None:
        self._pipe = pipe
        self._config = config
        self._send_lock = Lock()
        self._joining: SimpleQueue[_Channel | None] = SimpleQueue()  # None: end the process

    def listen(self) -> None:
        """Dispatch messages; exit the process when the engine has ended."""
        channels: dict[int, _Channel] = {}
        try:
            while True:
                message: ChannelCommand = self._pipe.receive()
                if isinstance(message.command, JoinChannel):
                    channels[message.channel] = _Channel(partial(self.send_reply, message.channel))
                    self._joining.put(channels[message.channel])
                elif not isinstance(message.command, FolderCall):
                    channels[message.channel].handle(message.command)
        except (EOFError, OSError):
            os._exit(0)

    def send_reply(self, channel: int, reply: Reply) -> None:
        """Send a message of a channel to the engine."""
        with self._send_lock:
            self._pipe.send(ChannelReply(channel, reply))

    def serve(self, session: OpenSession, capabilities: HostCapabilities) -> None:
        """Let channels join until one of them fails."""
        shared = build_state(session, self._config, capabilities)
        while channel := self._joining.get():
            arguments = channel, session, shared
            Thread(target=self._work, args=arguments, name="channel", daemon=True).start()

    def _work(self, channel: "_Channel", session: OpenSession, shared: "SessionState") -> None:
        """Run one channel; an error that ends it is sent to the engine."""
        try:
            self._run_channel(channel, session, shared)
        except BaseException as error:  # noqa: BLE001 - the engine waits for a reply
            if not isinstance(error, UploaderError):
                sys.excepthook(type(error), error, error.__traceback__)  # before the process ends
                error = _unexpected(error)
            try:
                channel.reply(pack_error(error))
            finally:
                self._joining.put(None)

    def _run_channel(
        self, channel: "_Channel", session: OpenSession, shared: "SessionState"
    ) -> None:
        """Open a channel and send its payloads; if it is refused, other channels continue."""
        throttled = ThrottledSession(
            session, channel.bucket, channel.timer, shared.interleaved, shared.reader
        )
        build = partial(build_sender, throttled, shared)
        try:
            sender = build()
        except UploaderError as error:
            channel.reply(pack_error(error))
            return
        channel.reply(
            ChannelOpened(shared.capabilities, session.stack, session.cipher, sender.round_trip)
        )
        channel.serve(sender, build)


class _Channel:
    """One channel of the session: its commands and its replies."""

    def __init__(self, reply: Callable[[Reply], None]) -> None:
        self.reply = reply
        self.timer = ChannelTimer()
        self._reporter = Reporter(reply, self.timer)
        self.bucket = TokenBucket(self._reporter.report_alive, sleep=self.timer.throttle)
        self._tasks: SimpleQueue[SendTask | RenameTasks | None] = SimpleQueue()

    def handle(self, command: TaskCommand) -> None:
        """Handle a command, possibly while a payload is being sent."""
        match command:
            case RateLimit(rate):
                self.bucket.limit(rate)
            case CancelTask():
                self._reporter.cancelled = True
            case SendTask() | RenameTasks():
                self._reporter.cancelled = False
                self._tasks.put(command)
            case LeaveChannel():
                self._tasks.put(None)

    def serve(self, sender: Sender, build: Callable[[], Sender]) -> None:
        """Send payloads until the channel ends; raises `TransientError` if the connection broke."""
        while task := self._tasks.get():
            self.timer.begin()
            self._reporter.begin()
            done = self._attempt(sender, task)
            if self._reporter.cancelled:
                # The remote command of the cancelled payload ends with its sender.
                sender.close()
                sender = build()
            self.timer.end()
            self._reporter.end()
            self.reply(replace(done, spent=self.timer.spent))
            if done.broken:
                raise TransientError("The connection broke.", code=LOST)
        sender.close()

    def _attempt(self, sender: Sender, task: SendTask | RenameTasks) -> TaskResult:
        try:
            if isinstance(task, RenameTasks):
                done = sender.replace(task.moves, self._reporter)
            else:
                done = _send_valid(sender, task, self._reporter)
        except TransientError as error:
            if not self._reporter.cancelled:
                raise
            parts = task.moves if isinstance(task, RenameTasks) else task.members
            lost = (
                MemberResult(place, "", error.problem, again=True) for place in range(len(parts))
            )
            return TaskResult(tuple(lost))
        return replace(done, broken=done.broken and not self._reporter.cancelled)


class Reporter:
    """Reports ten times a second how much of a payload was sent, and on what time was spent.

    After a payload was `cancelled`, it raises `TransientError` instead.
    """

    def __init__(self, reply: Callable[[Reply], None], timer: ChannelTimer) -> None:
        self._answer = reply
        self._timer = timer
        self._counting = Lock()
        self.cancelled = False
        self.begin()

    def begin(self) -> None:
        """Reset the counters for the next payload."""
        self._done = 0
        self._omitted = 0
        self._reported = 0  # of the omitted bytes
        self._next = time.monotonic() + _REPORT_INTERVAL

    def end(self) -> None:
        """Report omitted bytes that were not reported yet, so that they never count as sent."""
        if self._omitted != self._reported:
            self._report()

    def report_alive(self) -> None:
        """Report progress while nothing may be sent."""
        self(0)

    def __call__(self, count: int, omitted: int = 0, /) -> None:
        with self._counting:  # several streams may send one file
            self._done += count + omitted
            self._omitted += omitted
            if not count:  # count the time of threads that send nothing themselves
                self._timer.count_now()
            now = time.monotonic()
            if now >= self._next:
                self._next = now + _REPORT_INTERVAL
                self._report()
        if self.cancelled:
            raise TransientError("The payload was cancelled.", code=LOST)

    def _report(self) -> None:
        self._reported = self._omitted
        self._answer(BytesSent(self._done, self._timer.spent, self._omitted))


def _send_valid(sender: Sender, task: SendTask, moving: Moving) -> TaskResult:
    """Send members with a valid path; the others fail individually."""
    bad = {
        index: MemberResult(index, "", _misplaced(member))
        for index, member in enumerate(task.members)
        if not is_plain(member.remote)
    }
    if not bad:
        return sender.send(task, moving)
    good = [index for index in range(len(task.members)) if index not in bad]
    members = tuple(task.members[index] for index in good)
    done = sender.send(replace(task, members=members), moving) if members else TaskResult(())
    for result in done.results:
        bad[good[result.place]] = result._replace(place=good[result.place])
    return TaskResult(tuple(bad[index] for index in sorted(bad)), done.broken)


def _misplaced(member: Member) -> Problem:
    return Problem(
        "staging.name", f"{format_path(member.remote)} is not a valid path in the staging area."
    )


def _unexpected(error: BaseException) -> TransientError:
    return TransientError(f"A channel ended with {type(error).__name__}: {error}", code=LOST)


def connect_to_staging(config: WorkerConfig) -> tuple[OpenSession, HostCapabilities]:
    """Return a session and the capabilities of its host, or of a folder in its place."""
    if isinstance(config.endpoint, StagingFolder):
        # Few workers use a folder, and all others start faster without it.
        from mydata_like.transfer.folder_session import open_folder

        return open_folder(config.endpoint, config.capabilities)
    if config.capabilities is None:
        return probe(partial(connect, config.endpoint), config.location)
    session = connect(config.endpoint)
    if config.confirm:
        confirm(session, config.location, config.capabilities.access)
    return session, config.capabilities
