"""The sender of a channel, chosen by the capabilities of the host."""

from collections.abc import Sequence
from typing import NamedTuple

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import SshSession
from mydata_like.transfer.batch_sender import BatchSender
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.file_replacement import replace_by_shell
from mydata_like.transfer.multi_stream import StreamLimit
from mydata_like.transfer.remote_shell import Shells, SpareShells
from mydata_like.transfer.scp_sender import ScpSender
from mydata_like.transfer.sftp_sender import SftpSender
from mydata_like.transfer.single_file import SingleSender
from mydata_like.transfer.worker_messages import (
    STREAMS,
    MemberResult,
    Moving,
    RenameTask,
    Sender,
    SendTask,
    TaskResult,
    WorkerConfig,
)


class SessionState(NamedTuple):
    """What the channels of one session have in common."""

    location: bytes
    rung: HostCapabilities
    compression: Compression
    room: StreamLimit
    spares: SpareShells
    named: bool  # whether batches have their members named from the first on
    find_zeros: bool


def share(plan: WorkerConfig, rung: HostCapabilities) -> SessionState:
    """Return what the channels of a session that begins now will have in common."""
    compression = Compression(available=plan.compress and rung.zstd)
    return SessionState(
        plan.location,
        rung,
        compression,
        StreamLimit(STREAMS),
        SpareShells(),
        plan.named,
        find_zeros=plan.find_zeros,
    )


def build_sender(session: SshSession, shared: SessionState) -> Sender:
    """Return what carries a channel's payloads; raises where the host grants it nothing."""
    match shared.rung.rung:
        case "shell":
            return ShellSender(session, shared)
        case "scp":
            return ScpSender(session, shared.location)
        case _:
            return SftpSender(session, shared.location, shared.room, find_zeros=shared.find_zeros)


class ShellSender:
    """Carries payloads where there is a shell: batches by tar, the rest one by one."""

    def __init__(self, session: SshSession, shared: SessionState) -> None:
        self._room = shared.room
        self._shells = Shells(session, shared.compression, shared.spares)
        self._shells.open()
        location, rung = shared.location, shared.rung
        self._location = location
        self._single = SingleSender(
            self._shells, location, rung, shared.room, find_zeros=shared.find_zeros
        )
        named = shared.named
        batch = BatchSender(self._shells, location, rung, named=named) if rung.tar else None
        self._batch = batch

    @property
    def round_trip(self) -> float:
        return self._shells.round_trip

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Carry a payload; raises `TransientError` when the line broke and none is proven."""
        with self._room.used():
            return self._send(task, moving)

    def _send(self, task: SendTask, moving: Moving) -> TaskResult:
        if task.batched and self._batch and not any(b"\n" in m.remote for m in task.members):
            return self._batch.send(task.members, moving)
        fates: list[MemberResult] = []
        for index, member in enumerate(task.members):
            try:
                fates.append(self._single.send(index, member, moving, spare=task.spare))
            except TransientError as error:
                return _salvage(fates, len(task.members), error)
        return TaskResult(tuple(fates))

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Put what was laid aside into its place; raises `TransientError` when the line broke."""
        moving(0)
        return replace_by_shell(self._shells, self._location, moves)

    def close(self) -> None:
        self._shells.close()


def _salvage(fates: list[MemberResult], count: int, error: TransientError) -> TaskResult:
    """Return what is known when the line breaks between files, or raise where nothing is."""
    if not fates:
        raise error
    rest = (
        MemberResult(index, "", error.problem, again=True) for index in range(len(fates), count)
    )
    return TaskResult((*fates, *rest), broken=True)
