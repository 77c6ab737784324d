"""Keeping the computer awake while bytes move."""

from mydata_like.core.events import (
    FilesSeen,
    FileVerified,
    FileWanted,
    TransferFinished,
    TransferProgressed,
    TransferStarted,
)
from mydata_like.engine.gate import RENEW_INTERVAL, SleepGuard
from mydata_like.engine.progress import RunProgress
from tests.fakes.clock import FakeClock


class FakeWakefulness:
    def __init__(self) -> None:
        self.awake = False
        self.refused = False

    def keep(self) -> bool:
        self.awake = not self.refused
        return self.awake

    def end(self) -> None:
        self.awake = False


class Night:
    """A run over one file of 1000 bytes, and what became of the computer in the meantime."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.progress = RunProgress(self.clock)
        self.computer = FakeWakefulness()
        self.vigil = SleepGuard(self.computer, self.progress, self.clock)
        self.progress.add(
            TransferStarted(transfer=1, channel=1, name=b"a", files=1, bytes=1000, attempt=1)
        )

    def pass_by(self, seconds: float) -> bool:
        """Look as long as that; return whether the computer is kept awake at the end."""
        for _ in range(int(seconds / RENEW_INTERVAL)):
            self.clock.move(RENEW_INTERVAL)
            self.vigil()
        return self.computer.awake

    def move(self, done: int) -> None:
        self.progress.add(TransferProgressed(transfer=1, channel=1, bytes=done))


def test_a_run_that_only_looks_lets_the_computer_sleep() -> None:
    assert not Night().pass_by(600)


def test_it_stays_awake_while_bytes_move_and_a_little_longer() -> None:
    night = Night()

    night.move(100)
    assert night.pass_by(30)
    night.move(200)
    assert night.pass_by(30)
    night.progress.add(TransferFinished(transfer=1, channel=1, files=1, bytes=1000, seconds=60))
    assert night.pass_by(30)
    assert not night.pass_by(30)


def test_a_transfer_that_has_stopped_does_not_keep_the_computer_awake() -> None:
    night = Night()
    night.move(100)
    assert night.pass_by(10)

    assert not night.pass_by(60)
    night.move(200)
    assert night.pass_by(10)


def test_it_stays_awake_while_the_server_verifies_what_was_sent() -> None:
    night = Night()
    night.progress.add(FilesSeen(folder=b"", files=9, bytes=9))
    night.progress.add(FileWanted(path=b"a", size=1))
    night.move(100)
    night.progress.add(TransferFinished(transfer=1, channel=1, files=1, bytes=1000, seconds=60))
    assert night.pass_by(30)

    for _ in range(4):
        night.progress.add(FileVerified(path=b"a", size=1, checksum=""))
        assert night.pass_by(20)
    assert not night.pass_by(60)


def test_the_progress_says_whether_the_computer_is_kept_awake() -> None:
    night = Night()
    night.move(100)
    night.computer.refused = True
    night.pass_by(1)
    assert not night.progress.progress().awake

    night.computer.refused = False
    night.pass_by(1)
    assert night.progress.progress().awake
    night.pass_by(60)
    assert not night.progress.progress().awake
