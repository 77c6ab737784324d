"""Facts about the staging host and the speed of its disk, measured over a shell.

All test files are in one folder, whose name only this uploader uses, in the location to which runs
send. The folder is removed at the end, and at the start in case an earlier test was killed.
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
from mydata_like.ssh.capabilities import PREAMBLE, quote
from mydata_like.ssh.session import SshSession, Stream

_WINDOW: Final = 2 * 1024 * 1024  # bytes of the SSH window of OpenSSH's server, see its channels.h
_PINGS: Final = 10
_FIRST: Final = 1_000_000  # bytes of a first write, which decides the size of the others
_FEW: Final = (
    40  # tiny files of a first extraction; enough against the time that tar takes to start
)
_WRITE: Final = (
    b"dd if=random of=written bs=1048576 conv=fsync 2>/dev/null"
    b" || { cat random > written && sync; }"
)
_LONGEST: Final = 64 * 1024  # bytes that a host may print before the awaited word
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_TIMES: Final = re.compile(rb"(\d{1,9})m(\d{1,2}\.\d{1,9})s")  # POSIX output format of `times`
_MARK: Final = b"\nmydata\n"  # separates our output from that of login scripts
_ABOUT: Final = b"""printf "\\nmydata\\n"
echo "boot $(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
echo "load $(cat /proc/loadavg 2>/dev/null)"
echo "cpu $(grep -m1 -iE "^(flags|features)" /proc/cpuinfo 2>/dev/null)"
"""


class HostInfo(NamedTuple):
    """The facts that a host reports about itself."""

    machine: LocalMachine
    one_machine: bool  # whether the host is this computer


class RemoteHost:
    """A staging host with a shell; test files are written to `folder` below `location`."""

    def __init__(self, session: SshSession, location: bytes, folder: bytes) -> None:
        self._session = session
        self._enter = PREAMBLE + b"cd -- %b && " % quote(location)
        self._folder = quote(folder)

    def describe(self, cpus: int | None) -> HostInfo:
        """Return the facts about the host; `cpus` is the number that it has reported."""
        output = self._run(_ABOUT).partition(_MARK)[2].decode("utf-8", "replace")
        facts = dict(line.partition(" ")[::2] for line in output.splitlines())
        busy = _find_busy(facts.get("load", ""), cpus)
        boot = facts.get("boot", "")
        return HostInfo(
            LocalMachine(cpus, find_aes(facts.get("cpu", "")), busy), bool(boot) and boot == _boot()
        )

    def clean(self) -> None:
        """Remove the files of this test, or of one that was killed.

        A command that was interrupted may still write files, so a failed removal is repeated once.
        Raises `RejectedError` if the host does not print that it is done: a host that allows only
        SFTP accepts the command, does nothing and reports success.
        """
        remove = b"rm -rf -- " + self._folder
        script = self._enter + b"{ %b || { sleep 1; %b; }; } && echo && echo mydata" % (
            remove,
            remove,
        )
        if _MARK not in self._run(script):
            raise RejectedError("The staging host did not remove the test files.")

    def measure_round_trip(self, budget: SpeedTestBudget) -> Iterator[Measurement]:
        """Yield the round trip of one byte, and the highest speed of a channel that follows."""
        with closing(self._session.start(b"exec cat")) as stream:

            def ping() -> None:
                stream.write(b".")
                stream.read(1)

            seconds = budget.time(ping, _PINGS)
        yield Measurement(StageResult.NETWORK, ROUND_TRIP, Unit.SECONDS, seconds)
        ceilings = tuple(_WINDOW / each for each in seconds)
        yield Measurement(StageResult.NETWORK, CEILING, Unit.BYTES, ceilings)

    def measure_disk(self, budget: SpeedTestBudget, tar: str) -> Iterator[Measurement]:
        """Yield the speed at which the host writes a large file and creates tiny files."""
        self._run(self._enter + b"mkdir -p -m 700 -- " + self._folder)
        where = self._enter + b"cd -- %b && " % self._folder
        samples = budget.effort.samples
        (first,) = self._write(where, _FIRST, budget, 1)
        size = budget.fit(_FIRST, first.seconds, budget.effort.disk)
        yield _rate(LARGE_FILES, Unit.BYTES, size, self._write(where, size, budget, samples))
        if not tar:
            return
        self._run(where + b"rm -f random")
        (first,) = self._unpack(where, _FEW, budget, 1)
        files = budget.fit(_FEW, first.seconds, budget.effort.files)
        yield _rate(TINY_FILES, Unit.FILES, files, self._unpack(where, files, budget, samples))

    def _write(
        self, where: bytes, size: int, budget: SpeedTestBudget, samples: int
    ) -> tuple["_DiskTest", ...]:
        """Write `size` bytes on the host, once for each sample."""
        self._run(where + b"head -c %d /dev/urandom > random" % size)
        return tuple(self._time(where, _WRITE, b"rm -f written", budget, samples))

    def _unpack(
        self, where: bytes, files: int, budget: SpeedTestBudget, samples: int
    ) -> tuple["_DiskTest", ...]:
        """Create tiny files on the host, once for each sample."""
        self._run(where + b"cat > tiny.tar", _make_tar(files))
        act, before = b"tar -x -o -f tiny.tar -C unpacked", b"rm -rf unpacked; mkdir unpacked"
        return tuple(self._time(where, act, before, budget, samples))

    def _time(
        self, where: bytes, act: bytes, before: bytes, budget: SpeedTestBudget, samples: int
    ) -> Iterator["_DiskTest"]:
        """Yield how long a command takes on the host, by our clock between two words it prints.

        If the time of the test has run out, take one sample.
        """
        for sample in range(samples):
            budget.check()
            if sample and budget.spent():
                return
            script = where + b"%b; times; echo a; { %b; } && echo z && times" % (before, act)
            with closing(self._session.start(b"exec sh -c " + quote(script))) as stream:
                start = _await(stream, b"a\n")
                began = time.perf_counter()
                _await(stream, b"z\n")
                seconds = time.perf_counter() - began
                yield _DiskTest(seconds, _find_work(_await(stream)) - _find_work(start))

    def _run(self, script: bytes, stdin: bytes = b"") -> bytes:
        return self._session.run(b"exec sh -c " + quote(script), stdin).output


def _find_busy(load: str, cpus: int | None) -> float | None:
    """Return the host's load as a share of its processors; None if either is unknown."""
    with suppress(ValueError, IndexError):
        return min(1.0, float(load.split()[0]) / cpus) if cpus else None
    return None


class _DiskTest(NamedTuple):
    """The seconds that a command took on the host, and its processor time in seconds."""

    seconds: float
    work: float


def _await(stream: Stream, word: bytes = b"") -> bytes:
    """Return the host's output up to `word`, and read nothing after it; without a word, all."""
    output = b""
    while not word or not output.endswith(word):
        if (more := stream.read(1)) and len(output) < _LONGEST:
            output += more
        elif word:
            raise RejectedError("The staging host did not execute a command.")
        else:
            break
    return output


def _find_work(output: bytes) -> float:
    """Return the processor seconds of a shell and its children from the output of `times`."""
    return sum(60 * int(minutes) + float(rest) for minutes, rest in _TIMES.findall(output))


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
    """Return Linux's identifier of this boot of this computer; empty on other systems."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
