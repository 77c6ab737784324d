"""A staging host: facts about it, and the speed of the line to it and of its disk.

All test files are in one folder, whose name only this uploader uses, in the location to which runs
send. The folder is removed at the end, and at the start in case an earlier test was killed.
"""

import io
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from statistics import median
from threading import Event
from typing import Final

from mydata_like.core.errors import RejectedError, UploaderError
from mydata_like.speedtest.local_machine import find_aes
from mydata_like.speedtest.real_files import OpenTransport
from mydata_like.speedtest.results import (
    LARGE_FILES,
    ROUND_TRIP,
    SET_UP,
    TINY,
    TINY_FILES,
    LocalMachine,
    Measurement,
    SpeedTestBudget,
    StageResult,
    Unit,
)
from mydata_like.ssh.capabilities import PREAMBLE, HostCapabilities, quote
from mydata_like.ssh.connect import connect
from mydata_like.ssh.session import SshSession, Stream
from mydata_like.transfer.pool import count_cpus, count_sessions
from mydata_like.transfer.ssh.staging_host import StagingHost

_PINGS: Final = 10
_FIRST: Final = 1_000_000  # bytes of a first write, which decides the size of the others
_FEW: Final = 40  # tiny files of a first extraction; enough against the time that tar takes
_WRITE: Final = (
    b"dd if=random of=written bs=1048576 conv=fsync 2>/dev/null"
    b" || { cat random > written && sync; }"
)
_LONGEST: Final = 64 * 1024  # bytes that a host may print before the awaited word
_MARK: Final = b"\nmydata\n"  # separates our output from that of login scripts
_FLAGS: Final = b"""printf "\\nmydata\\n"
grep -m1 -iE "^(flags|features)" /proc/cpuinfo 2>/dev/null
"""
_PIECE: Final = 64 * 1024  # bytes that are sent at once
_TICK: Final = 0.01  # seconds between two checks of what was sent
_SLOW: Final = 8  # round trips that are not counted, while TCP widens its window to that of SSH
_SILENCE: Final = 10.0  # seconds without progress, although a sample takes less than one


class RemoteHost:
    """A staging host to which test files are written; `open` it first."""

    name = "The connection to the server"
    is_encrypted = True

    def __init__(
        self, host: StagingHost, folder: str, open_transport: OpenTransport, budget: SpeedTestBudget
    ) -> None:
        self.folder = folder
        self.capabilities = HostCapabilities("")
        self.open_transport = open_transport
        self._host = host
        self._budget = budget
        self._enter = PREAMBLE + b"cd -- %b && " % quote(host.area)
        self._endpoint = host.endpoint._replace(
            stall_timeout=min(host.endpoint.stall_timeout, _SILENCE)
        )

    def open(self) -> HostCapabilities:
        """Log in; return what the host can do, after the files of a killed test were removed."""
        self._session, self.capabilities = self._host.connect(None, confirms=False)
        if not self.capabilities.in_place:
            self._clean(self._session)
        return self.capabilities

    @property
    def cipher(self) -> str:
        """The negotiated cipher."""
        return self._session.cipher

    def close(self) -> None:
        self._session.close()

    def noting_silence(self) -> AbstractContextManager[None]:
        """Return a context without effect: a silent host, unlike a folder, can be given up."""
        return nullcontext()

    def describe(self) -> LocalMachine:
        """Return the facts about the host."""
        output = self._run(_FLAGS).partition(_MARK)[2].decode("utf-8", "replace")
        return LocalMachine(self.capabilities.cpus, find_aes(output))

    @property
    def parts(self) -> Mapping[str, Callable[[], Iterator[Measurement]]]:
        """The parts that can be measured alone, by name; each yields its measurements."""
        if self.capabilities.access != "shell":
            return {}
        return {
            "The connection to the server": self._measure_connection,
            "The disk of the server": self._measure_disk,
        }

    def remove(self) -> str:
        """Remove the test files, over a new session if the old one broke.

        Return what remains on the host, as the subject of a sentence; empty if nothing does.
        """
        with suppress(UploaderError):
            self._clean(self._session)
            return ""
        with suppress(UploaderError), closing(connect(self._host.endpoint)) as another:
            self._clean(another)
            return ""
        return f"{self.folder} on the staging host"

    def _clean(self, session: SshSession) -> None:
        """Remove the files of this test, or of one that was killed.

        A command that was interrupted may still write files, so a failed removal is repeated once.
        Raises `RejectedError` if the host does not print that it is done: a host that allows only
        SFTP accepts the command, does nothing and reports success.
        """
        if self.capabilities.access == "sftp":
            path = self._host.area.rstrip(b"/") + b"/" + self.folder.encode()
            with closing(session.open_sftp()) as sftp:
                if sftp.find_size(path) is not None:
                    for entry in sftp.list_files(path):
                        sftp.remove(path + b"/" + entry.name)
                    sftp.remove_directory(path)
            return
        remove = b"rm -rf -- " + quote(self.folder.encode())
        script = b"{ %b || { sleep 1; %b; }; } && echo && echo mydata" % (remove, remove)
        if _MARK not in self._run(self._enter + script, session):
            raise RejectedError("The staging host did not remove the test files.")

    def _measure_connection(self) -> Iterator[Measurement]:
        """Yield the round trip of one byte, and the speed of the line over one and more sessions.

        A run opens a session for each core, and more to a distant host.
        """
        with closing(self._session.start(b"exec cat")) as stream:

            def ping() -> None:
                stream.write(b".")
                stream.read(1)

            seconds = self._budget.time(ping, _PINGS)
        yield Measurement(StageResult.NETWORK, ROUND_TRIP, Unit.SECONDS, seconds)
        round_trip, set_up = median(seconds), list[float]()
        here = count_cpus()
        most = count_sessions([here, self.capabilities.cpus or here], round_trip)
        for sessions in sorted({1, most}):
            rates = self._send_random(sessions, round_trip, set_up)
            what = f"{sessions} session{'s' * (sessions != 1)}"
            yield Measurement(StageResult.NETWORK, what, Unit.BYTES, rates)
        yield Measurement(StageResult.NETWORK, SET_UP, Unit.SECONDS, tuple(set_up))

    def _send_random(
        self, sessions: int, round_trip: float, set_up: list[float]
    ) -> tuple[float, ...]:
        """Return the rates at which the host takes random bytes from memory and discards them.

        Each session has a thread; the seconds to connect it are added to `set_up`. A first sample
        is not counted, because windows and buffers fill.
        """
        piece, over, sent = os.urandom(_PIECE), Event(), [0] * sessions

        def fill(number: int, stream: Stream) -> None:
            while not over.is_set():
                stream.write(piece)
                sent[number] += _PIECE

        def sample(seconds: float) -> float:
            size = self._budget.effort.line
            self._budget.take(size)
            before, began, passed = sum(sent), time.perf_counter(), 0.0
            while sum(sent) == before or (passed < seconds and sum(sent) - before < size):
                self._budget.wait(_TICK)
                for filling in fillings:
                    if filling.done():
                        filling.result()  # raises its error
                passed = time.perf_counter() - began
            return (sum(sent) - before) / passed

        with ExitStack() as stack:
            streams = []
            for _ in range(sessions):
                began = time.perf_counter()
                session = stack.enter_context(closing(connect(self._endpoint)))
                set_up.append(time.perf_counter() - began)
                streams.append(session.start(b"exec cat >/dev/null"))
            threads = stack.enter_context(ThreadPoolExecutor(sessions))
            stack.callback(over.set)
            fillings = [threads.submit(fill, *one) for one in enumerate(streams)]
            seconds = self._budget.effort.seconds
            sample(max(seconds, _SLOW * round_trip))
            return tuple(sample(seconds) for _ in range(self._budget.effort.samples))

    def _measure_disk(self) -> Iterator[Measurement]:
        """Yield the speed at which the host writes a large file and creates tiny files."""
        budget, effort = self._budget, self._budget.effort
        folder = quote(self.folder.encode())
        self._run(self._enter + b"mkdir -p -m 700 -- " + folder)
        where = self._enter + b"cd -- %b && " % folder

        def write(size: int, samples: int) -> tuple[float, ...]:
            self._run(where + b"head -c %d /dev/urandom > random" % size)
            return self._time(where, _WRITE, b"rm -f written", samples)

        def unpack(files: int, samples: int) -> tuple[float, ...]:
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
                for number in range(files):
                    member = tarfile.TarInfo(f"{number // 100}-{number % 100}")
                    member.size = TINY
                    tar.addfile(member, io.BytesIO(os.urandom(TINY)))
            budget.take(files * TINY)
            self._run(where + b"cat > tiny.tar", stdin=archive.getvalue())
            before = b"rm -rf unpacked; mkdir unpacked"
            return self._time(where, b"tar -x -o -f tiny.tar -C unpacked", before, samples)

        size = budget.fit(_FIRST, write(_FIRST, 1)[0], effort.disk)
        rates = tuple(size / seconds for seconds in write(size, effort.samples))
        yield Measurement(StageResult.SERVER_DISK, LARGE_FILES, Unit.BYTES, rates)
        if self.capabilities.tar:
            self._run(where + b"rm -f random written")
            files = budget.fit(_FEW, unpack(_FEW, 1)[0], effort.files)
            rates = tuple(files / seconds for seconds in unpack(files, effort.samples))
            yield Measurement(StageResult.SERVER_DISK, TINY_FILES, Unit.FILES, rates)

    def _time(self, where: bytes, act: bytes, before: bytes, samples: int) -> tuple[float, ...]:
        """Return how long a command takes on the host, by our clock between two words it prints.

        If the time of the test has run out, take one sample.
        """
        seconds: list[float] = []
        while len(seconds) < samples and not (seconds and self._budget.spent()):
            self._budget.check()
            script = where + b"%b; echo a; { %b; } && echo z" % (before, act)
            with closing(self._session.start(b"exec sh -c " + quote(script))) as stream:
                _await(stream, b"a\n")
                began = time.perf_counter()
                _await(stream, b"z\n")
                seconds.append(time.perf_counter() - began)
        return tuple(seconds)

    def _run(self, script: bytes, session: SshSession | None = None, stdin: bytes = b"") -> bytes:
        return (session or self._session).run(b"exec sh -c " + quote(script), stdin).output


def _await(stream: Stream, word: bytes) -> None:
    """Read the host's output up to `word`, and nothing after it."""
    output = b""
    while not output.endswith(word):
        more = stream.read(1)
        if not more or len(output) >= _LONGEST:
            raise RejectedError("The staging host did not execute a command.")
        output += more
