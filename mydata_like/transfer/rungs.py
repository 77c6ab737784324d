"""What carries the payloads of a channel, on each rung."""

from collections.abc import Sequence
from typing import NamedTuple

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import SshSession
from mydata_like.transfer.batch import BatchSender
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.crew import Room
from mydata_like.transfer.protocol import (
    STREAMS,
    Done,
    Fate,
    Move,
    Moving,
    Plan,
    Sender,
    Task,
)
from mydata_like.transfer.replacing import replace_by_shell
from mydata_like.transfer.scp import ScpSender
from mydata_like.transfer.sftp import SftpSender
from mydata_like.transfer.shell import Shells, SpareShells
from mydata_like.transfer.single import SingleSender


class Shared(NamedTuple):
    """What the channels of one session have in common."""

    location: bytes
    rung: HostCapabilities
    compression: Compression
    room: Room
    spares: SpareShells
    named: bool  # whether batches have their members named from the first on
    find_zeros: bool


def share(plan: Plan, rung: HostCapabilities) -> Shared:
    """Return what the channels of a session that begins now will have in common."""
    compression = Compression(available=plan.compress and rung.zstd)
    return Shared(
        plan.location,
        rung,
        compression,
        Room(STREAMS),
        SpareShells(),
        plan.named,
        find_zeros=plan.find_zeros,
    )


def build_sender(session: SshSession, shared: Shared) -> Sender:
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

    def __init__(self, session: SshSession, shared: Shared) -> None:
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

    def send(self, task: Task, moving: Moving) -> Done:
        """Carry a payload; raises `TransientError` when the line broke and none is proven."""
        with self._room.used():
            return self._send(task, moving)

    def _send(self, task: Task, moving: Moving) -> Done:
        if task.batched and self._batch and not any(b"\n" in m.remote for m in task.members):
            return self._batch.send(task.members, moving)
        fates: list[Fate] = []
        for index, member in enumerate(task.members):
            try:
                fates.append(self._single.send(index, member, moving, spare=task.spare))
            except TransientError as error:
                return _salvage(fates, len(task.members), error)
        return Done(tuple(fates))

    def replace(self, moves: Sequence[Move], moving: Moving) -> Done:
        """Put what was laid aside into its place; raises `TransientError` when the line broke."""
        moving(0)
        return replace_by_shell(self._shells, self._location, moves)

    def close(self) -> None:
        self._shells.close()


def _salvage(fates: list[Fate], count: int, error: TransientError) -> Done:
    """Return what is known when the line breaks between files, or raise where nothing is."""
    if not fates:
        raise error
    rest = (Fate(index, "", error.problem, again=True) for index in range(len(fates), count))
    return Done((*fates, *rest), broken=True)
