"""Facts about the staging host and the speed of its disk, measured over a shell.

All that is written lies in one folder with a name that only this uploader uses, in the place to
which runs send. It is removed before anything else, in case a test was killed, and at the end.
"""

import io
import os
import re
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError
from mydata_like.speedtest.local_machine import find_aes
from mydata_like.speedtest.prediction import TINY
from mydata_like.speedtest.results import (
    CEILING,
    LARGE_FILES,
    ROUND_TRIP,
    TINY_FILES,
    CpuCost,
    LocalMachine,
    Measurement,
    SpeedTestBudget,
    StageResult,
    Unit,
)
from mydata_like.ssh.capabilities import quote
from mydata_like.ssh.session import SshSession, Stream

_WINDOW: Final = 2 * 1024 * 1024  # bytes that OpenSSH's server takes ahead; its channels.h
_PINGS: Final = 10
_FIRST: Final = 1_000_000  # bytes that are written to see how many may follow
_FEW: Final = 40  # tiny files that are made for the same; starting tar takes a while, too
_WRITE: Final = (
    b"dd if=random of=written bs=1048576 conv=fsync 2>/dev/null"
    b" || { cat random > written && sync; }"
)
_LONGEST: Final = 64 * 1024  # bytes that a host prints before the word that is awaited
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_TIMES: Final = re.compile(rb"(\d{1,9})m(\d{1,2}\.\d{1,9})s")  # as POSIX has the words of `times`
_MARK: Final = b"\nmydata\n"  # after which our own words come, not those of login scripts
_ABOUT: Final = b"""printf "\\nmydata\\n"
echo "boot $(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
echo "load $(cat /proc/loadavg 2>/dev/null)"
echo "cpu $(grep -m1 -iE "^(flags|features)" /proc/cpuinfo 2>/dev/null)"
"""


class HostInfo(NamedTuple):
    """What a host says of itself."""

    machine: LocalMachine
    one_machine: bool  # it is the computer that asks


class RemoteHost:
    """A staging host with a shell; `folder` is what may be written below the location."""

    def __init__(self, session: SshSession, location: bytes, folder: bytes) -> None:
        self._session = session
        self._enter = b"LC_ALL=C; cd -- %b && " % quote(location)
        self._folder = quote(folder)

    def describe(self, cpus: int | None) -> HostInfo:
        """Ask what the host is; `cpus` is how many it has said to have."""
        said = self._run(_ABOUT).partition(_MARK)[2].decode("utf-8", "replace")
        facts = dict(line.partition(" ")[::2] for line in said.splitlines())
        busy = _find_busy(facts.get("load", ""), cpus)
        boot = facts.get("boot", "")
        return HostInfo(
            LocalMachine(cpus, find_aes(facts.get("cpu", "")), busy), bool(boot) and boot == _boot()
        )

    def clean(self) -> None:
        """Remove whatever a test has left, this one or one that was killed.

        A command that was cut off may still be writing: then it is removed once more. Raises
        `RejectedError` where the host does not say itself that it is done: one that allows SFTP
        only takes the command, does nothing, and ends well.
        """
        remove = b"rm -rf -- " + self._folder
        script = self._enter + b"{ %b || { sleep 1; %b; }; } && echo && echo mydata" % (
            remove,
            remove,
        )
        if _MARK not in self._run(script):
            raise RejectedError("The staging host did not remove the test files.")

    def measure_round_trip(self, budget: SpeedTestBudget) -> Iterator[Measurement]:
        """Yield how long one byte takes there and back, and what a channel can do then at most."""
        with closing(self._session.start(b"exec cat")) as stream:

            def ping() -> None:
                stream.write(b".")
                stream.read(1)

            seconds = budget.time(ping, _PINGS)
        yield Measurement(StageResult.NETWORK, ROUND_TRIP, Unit.SECONDS, seconds)
        ceilings = tuple(_WINDOW / each for each in seconds)
        yield Measurement(StageResult.NETWORK, CEILING, Unit.BYTES, ceilings)

    def measure_disk(self, budget: SpeedTestBudget, tar: str) -> Iterator[Measurement]:
        """Yield how fast it writes a large file to the disk, and makes tiny ones."""
        self._run(self._enter + b"mkdir -p -m 700 -- " + self._folder)
        where = self._enter + b"cd -- %b && " % self._folder
        looks = budget.effort.looks
        (first,) = self._write(where, _FIRST, budget, 1)
        size = _fit(_FIRST, first, budget.effort.disk, budget)
        yield _rate(LARGE_FILES, Unit.BYTES, size, self._write(where, size, budget, looks))
        if not tar:
            return
        self._run(where + b"rm -f random")
        (first,) = self._unpack(where, _FEW, budget, 1)
        files = _fit(_FEW, first, budget.effort.files, budget)
        yield _rate(TINY_FILES, Unit.FILES, files, self._unpack(where, files, budget, looks))

    def _write(
        self, where: bytes, size: int, budget: SpeedTestBudget, looks: int
    ) -> tuple["_DiskTest", ...]:
        """Let the host write so many bytes repeatedly."""
        self._run(where + b"head -c %d /dev/urandom > random" % size)
        return tuple(self._time(where, _WRITE, b"rm -f written", budget, looks))

    def _unpack(
        self, where: bytes, files: int, budget: SpeedTestBudget, looks: int
    ) -> tuple["_DiskTest", ...]:
        """Let the host create so many tiny files repeatedly."""
        self._run(where + b"cat > tiny.tar", _make_tar(files))
        act, before = b"tar -x -o -f tiny.tar -C unpacked", b"rm -rf unpacked; mkdir unpacked"
        return tuple(self._time(where, act, before, budget, looks))

    def _time(
        self, where: bytes, act: bytes, before: bytes, budget: SpeedTestBudget, looks: int
    ) -> Iterator["_DiskTest"]:
        """Yield how long an act takes there, by our clock between two words of the host.

        Where the time of the test has run out, one look has to do.
        """
        for look in range(looks):
            budget.check()
            if look and budget.spent():
                return
            script = where + b"%b; times; echo a; { %b; } && echo z && times" % (before, act)
            with closing(self._session.start(b"exec sh -c " + quote(script))) as stream:
                said = _await(stream, b"a\n")
                began = time.perf_counter()
                _await(stream, b"z\n")
                seconds = time.perf_counter() - began
                yield _DiskTest(seconds, _find_work(_await(stream)) - _find_work(said))

    def _run(self, script: bytes, stdin: bytes = b"") -> bytes:
        return self._session.run(b"exec sh -c " + quote(script), stdin).output


def _find_busy(load: str, cpus: int | None) -> float | None:
    """Return the share of its processors that a host's load takes, where it tells of both."""
    with suppress(ValueError, IndexError):
        return min(1.0, float(load.split()[0]) / cpus) if cpus else None
    return None


class _DiskTest(NamedTuple):
    """How long something took at the host, and how much of its processors' time."""

    seconds: float
    work: float


def _fit(count: int, first: _DiskTest, most: int, budget: SpeedTestBudget) -> int:
    """Return how many fit into a look where `count` took so long, between these and the `most`.

    A slow disk must not be kept busy for long, and cancelling waits for one measurement at most.
    """
    return max(count, min(most, int(count * budget.effort.seconds / first.seconds)))


def _await(stream: Stream, word: bytes = b"") -> bytes:
    """Return what the host prints up to a word, and read nothing after it; all without one."""
    said = b""
    while not word or not said.endswith(word):
        if (more := stream.read(1)) and len(said) < _LONGEST:
            said += more
        elif word:
            raise RejectedError("The staging host did not execute a command.")
        else:
            break
    return said


def _find_work(said: bytes) -> float:
    """Return the processor seconds of a shell and its children, by what `times` prints."""
    return sum(60 * int(minutes) + float(rest) for minutes, rest in _TIMES.findall(said))


def _rate(what: str, unit: Unit, count: float, acts: tuple[_DiskTest, ...]) -> Measurement:
    each = median(act.work for act in acts) / count
    rates = tuple(count / act.seconds for act in acts)
    return Measurement(StageResult.SERVER_DISK, what, unit, rates, CpuCost(there=each or None))


def _make_tar(files: int) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(files):
            member = tarfile.TarInfo(f"{number // 100}-{number % 100}")
            member.size = TINY
            tar.addfile(member, io.BytesIO(os.urandom(TINY)))
    return archive.getvalue()


def _boot() -> str:
    """Return what tells this start of this computer from all others; empty where nothing does."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
