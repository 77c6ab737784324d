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
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final, NoReturn

from mydata_like.core.errors import Problem, TransientError, UploaderError
from mydata_like.core.formatting import format_path
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.connect import import_ahead
from mydata_like.ssh.session import OpenSession, SshSession
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.interleaved_sender import InterleavedSender
from mydata_like.transfer.member_results import collect, send_others
from mydata_like.transfer.shared_reader import SharedReader
from mydata_like.transfer.ssh.arrived_files import find_arrived
from mydata_like.transfer.ssh.batch_sender import BatchSender
from mydata_like.transfer.ssh.file_replacement import (
    InPlaceSender,
    replace_by_shell,
)
from mydata_like.transfer.ssh.multi_stream import StreamLimit
from mydata_like.transfer.ssh.remote_shell import SessionState, Shells, SpareShells
from mydata_like.transfer.ssh.scp_sender import ScpSender
from mydata_like.transfer.ssh.sftp_sender import SftpSender
from mydata_like.transfer.ssh.single_file import SingleSender
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
    ServiceCall,
    TaskCommand,
    TaskResult,
    WorkerConfig,
    WorkerService,
    pack_error,
    take_standard_streams,
)


def build_sender(session: ThrottledSession, state: SessionState) -> Sender:
    """Return the sender for a channel; raises if the host grants no channel."""
    match state.capabilities.access:
        case "shell":
            return ShellSender(session, state)
        case "scp":
            sender: Sender = ScpSender(session, state.location)
        case _:
            sender = SftpSender(session, state)
    return InPlaceSender(sender) if state.capabilities.in_place else sender


class ShellSender:
    """Sends payloads to a host with a shell: batches with tar, other files one by one."""

    def __init__(self, session: SshSession, state: SessionState) -> None:
        self._state = state
        self._shells = Shells(session, state.compression, state.spares)
        self._shells.open()
        self._single = SingleSender(self._shells, state)
        self._batch = BatchSender(self._shells, state) if state.capabilities.tar else None

    @property
    def round_trip(self) -> float:
        return self._shells.round_trip

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Send a payload; raises `TransientError` if the connection broke and none is proven."""
        batch, members = self._batch, task.members
        with self._state.limit.used():
            if task.batched and batch:
                alone = {  # names that tar prints on two lines
                    index: self._single.send(index, member, moving)
                    for index, member in enumerate(members)
                    if b"\n" in member.remote
                }
                return send_others(alone, task, lambda rest: self._send_batch(batch, rest, moving))
            results: dict[int, MemberResult] = {}
            try:
                for index, member in enumerate(members):
                    results[index] = self._single.send(index, member, moving)
            except TransientError as error:
                return collect(results, len(members), error)
            return collect(results, len(members))

    def _send_batch(self, batch: BatchSender, task: SendTask, moving: Moving) -> TaskResult:
        # An interrupted batch may have left some of them whole.
        arrived = find_arrived(self._shells, self._state, task.members, moving)
        return send_others(arrived, task, lambda rest: batch.send(rest.members, moving))

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Move replacements into place; raises `TransientError` if the connection broke."""
        moving(0)
        return replace_by_shell(self._shells, self._state.location, moves)

    def close(self) -> None:
        self._shells.close()


_SWITCH: Final = 0.0002  # seconds after which a thread yields the interpreter
_REPORT_INTERVAL: Final = 0.1  # seconds between two progress reports


Connect = Callable[[WorkerConfig], tuple[OpenSession, HostCapabilities]]


def main() -> None:
    """Run a channel worker, as `WorkerProcess` starts it."""
    work(_connect)


def _connect(config: WorkerConfig) -> tuple[OpenSession, HostCapabilities]:
    return config.destination.connect(config.capabilities, confirms=config.confirm)


def work(connect: Connect) -> NoReturn:
    """Process messages until the session or the engine ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine handles interrupts
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sys.setswitchinterval(_SWITCH)
    pipe = take_standard_streams()
    Thread(target=_import_ahead, name="import", daemon=True).start()
    process(pipe, connect)
    os._exit(0)  # other threads may use a library that would be unloaded


def process(pipe: Pipe, connect: Connect = _connect, *, exits: bool = True) -> None:
    """Process messages; with `exits`, the end of the engine ends this process at once."""
    try:
        config: WorkerConfig | WorkerService = pipe.receive()
    except EOFError:
        return  # the worker was not needed
    if not isinstance(config, WorkerConfig):
        config.serve(pipe)
        return
    worker = _Worker(pipe, config, exits=exits)
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

    def __init__(self, pipe: Pipe, config: WorkerConfig, *, exits: bool) -> None:
        self._pipe = pipe
        self._exits = exits
        self._config = config
        self._send_lock = Lock()
        self._joining: SimpleQueue[_Channel | None] = SimpleQueue()  # None: end the process

    def listen(self) -> None:
        """Dispatch messages until the other end of the pipe is closed."""
        channels: dict[int, _Channel] = {}
        try:
            while True:
                message: ChannelCommand = self._pipe.receive()
                if isinstance(message.command, JoinChannel):
                    channels[message.channel] = _Channel(partial(self.send_reply, message.channel))
                    self._joining.put(channels[message.channel])
                elif not isinstance(message.command, ServiceCall):
                    channels[message.channel].handle(message.command)
        except (EOFError, OSError):
            if self._exits:
                os._exit(0)
            for channel in channels.values():
                channel.handle(LeaveChannel())
            self._joining.put(None)

    def send_reply(self, channel: int, reply: Reply) -> None:
        """Send a message of a channel to the engine."""
        with self._send_lock:
            self._pipe.send(ChannelReply(channel, reply))

    def serve(self, session: OpenSession, capabilities: HostCapabilities) -> None:
        """Let channels join until one of them fails."""
        config = self._config
        state = SessionState(
            config.destination.area,
            capabilities,
            Compression(available=config.compress and capabilities.zstd),
            StreamLimit(STREAMS),
            SpareShells(),
            config.named,
            config.find_zeros,
        )
        interleaved = InterleavedSender(session, state.compression.note_plain)
        reader = SharedReader()
        while channel := self._joining.get():
            throttled = ThrottledSession(
                session, channel.bucket, channel.timer, interleaved, reader
            )
            run = partial(self._run_channel, channel, throttled, state)
            Thread(target=run, name="channel", daemon=True).start()

    def _run_channel(
        self, channel: "_Channel", session: ThrottledSession, state: SessionState
    ) -> None:
        """Open a channel and send its payloads; an error that ends it is sent to the engine.

        If it is refused, other channels continue.
        """
        build = partial(build_sender, session, state)
        try:
            try:
                sender = build()
            except UploaderError as error:
                channel.reply(pack_error(error))
                return
            channel.reply(
                ChannelOpened(state.capabilities, session.stack, session.cipher, sender.round_trip)
            )
            channel.serve(sender, build)
        except BaseException as error:  # noqa: BLE001 - the engine waits for a reply
            if not isinstance(error, UploaderError):
                sys.excepthook(type(error), error, error.__traceback__)  # before the process ends
                shown = f"A channel ended with {type(error).__name__}: {error}"
                error = TransientError(shown, code=LOST)
            try:
                channel.reply(pack_error(error))
            finally:
                self._joining.put(None)


class _Channel:
    """One channel of the session: its commands, its progress and its replies.

    Ten times a second it reports how much of a payload was sent, and on what time was spent.
    """

    def __init__(self, reply: Callable[[Reply], None]) -> None:
        self.reply = reply
        self.timer = ChannelTimer()
        self.bucket = TokenBucket(lambda: self._moved(0), sleep=self.timer.throttle)
        self._tasks: SimpleQueue[SendTask | RenameTasks | None] = SimpleQueue()
        self._cancelled = False  # the current payload
        self._counting = Lock()
        self._done = self._omitted = 0  # bytes of the current payload
        self._reported = 0  # of the omitted bytes
        self._next = 0.0  # when to report again

    def handle(self, command: TaskCommand) -> None:
        """Handle a command, possibly while a payload is being sent."""
        match command:
            case RateLimit(rate):
                self.bucket.limit(rate)
            case CancelTask():
                self._cancelled = True
            case SendTask() | RenameTasks():
                self._cancelled = False
                self._tasks.put(command)
            case LeaveChannel():
                self._tasks.put(None)

    def serve(self, sender: Sender, build: Callable[[], Sender]) -> None:
        """Send payloads until the channel ends; raises `TransientError` if the connection broke."""
        while task := self._tasks.get():
            self.timer.begin()
            self._done = self._omitted = self._reported = 0
            self._next = time.monotonic() + _REPORT_INTERVAL
            done = self._attempt(sender, task)
            if self._cancelled:
                # The remote command of the cancelled payload ends with its sender.
                sender.close()
                sender = build()
            self.timer.end()
            if self._omitted != self._reported:  # so that they never count as sent
                self._report()
            self.reply(replace(done, spent=self.timer.spent))
            if done.broken:
                raise TransientError("The connection broke.", code=LOST)
        sender.close()

    def _attempt(self, sender: Sender, task: SendTask | RenameTasks) -> TaskResult:
        try:
            if isinstance(task, RenameTasks):
                done = sender.replace(task.moves, self._moved)
            else:
                invalid: dict[int, MemberResult] = {}
                if not is_plain(b"/".join([member.remote for member in task.members])):
                    invalid = {
                        index: MemberResult(index, "", _describe_invalid(member))
                        for index, member in enumerate(task.members)
                        if not is_plain(member.remote)
                    }
                done = send_others(invalid, task, lambda it: sender.send(it, self._moved))
        except TransientError as error:
            if not self._cancelled:
                raise
            parts = task.moves if isinstance(task, RenameTasks) else task.members
            places = range(len(parts))
            return TaskResult(
                tuple(MemberResult(it, "", error.problem, again=True) for it in places)
            )
        return replace(done, broken=done.broken and not self._cancelled)

    def _moved(self, count: int, omitted: int = 0, /) -> None:
        """Count bytes that were sent; raise `TransientError` if the payload was cancelled."""
        with self._counting:  # several streams may send one file
            self._done += count + omitted
            self._omitted += omitted
            if not count:  # count the time of threads that send nothing themselves
                self.timer.count_now()
            now = time.monotonic()
            if now >= self._next:
                self._next = now + _REPORT_INTERVAL
                self._report()
        if self._cancelled:
            raise TransientError("The payload was cancelled.", code=LOST)

    def _report(self) -> None:
        self._reported = self._omitted
        self.reply(BytesSent(self._done, self.timer.spent, self._omitted))


def _describe_invalid(member: Member) -> Problem:
    shown = format_path(member.remote)
    return Problem("staging.name", f"{shown} is not a valid path in the staging area.")
