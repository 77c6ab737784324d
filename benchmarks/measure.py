"""Run commands in parallel and measure them: seconds, CPU of both ends, memory."""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import IO, NamedTuple

import psutil

DEADLINE = 10_800.0  # seconds a contestant may take before it counts as failed
_BEAT = 0.1  # seconds between two checks of the memory
_SECTOR = 512  # bytes in which the system counts what is read
_SETTLING = 5.0  # seconds to wait for the server's processes of a contestant to end
_ORPHANED = 5.0  # seconds that processes left by a contestant may continue
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux's prctl(2): orphans become our children

Command = Sequence[str]


class ContestError(Exception):
    """A contestant failed; the text says why."""


class Sample(NamedTuple):
    """The figures of one contestant in one round.

    CPU is user and system time in seconds: `client` is that of all processes of the contestant,
    `server` that of the private sshd (or of the embedded server). `memory` is the peak of the
    client processes' resident memory together, `engine` the peak of the largest process that we
    started directly, both in bytes. `loopback` has all bytes over that device, `disk` the bytes
    that the client processes read from a disk. `facts` are further figures to show.
    """

    seconds: float
    client: float
    server: float
    memory: int
    engine: int = 0
    loopback: int = 0
    disk: int = 0
    facts: dict[str, float] = {}  # noqa: RUF012 - never changed

    def figure(self, name: str) -> float:
        """Return a field or a fact by name; 0 for a fact that this sample does not have."""
        value: float = getattr(self, name) if name in self._fields else self.facts.get(name, 0.0)
        return value


def measure(commands: Sequence[Command], servers: Sequence[int]) -> tuple[Sample, list[str]]:
    """Run commands in parallel; return the sample and the output of each.

    `servers` are the process ids whose trees are the other end. Raises `ContestError`.
    """
    before, carried, others = tree_cpu(servers), _loopback(), _children()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_orphans_adopted())
        outputs = [stack.enter_context(_Captured()) for _ in commands]
        began = time.perf_counter()
        processes = [_start(*pair) for pair in zip(commands, outputs, strict=True)]
        with _watched(processes) as watch:
            usages = [_end(process) for process in processes]
            seconds = time.perf_counter() - began
        usages += _reap(others, watch.seen)
        for process, captured, command in zip(processes, outputs, commands, strict=True):
            if process.returncode:
                raise ContestError(
                    f"{command[0]} ended with {process.returncode}: {captured.trouble()}"
                )
        printed = [captured.text() for captured in outputs]
    _settle(servers)
    sample = Sample(
        seconds,
        client=sum(usage.ru_utime + usage.ru_stime for usage in usages),
        server=tree_cpu(servers) - before,
        memory=watch.most,
        engine=watch.engine,
        loopback=_loopback() - carried,
        disk=sum(usage.ru_inblock for usage in usages) * _SECTOR,
    )
    return sample, printed


def tree_cpu(pids: Sequence[int]) -> float:
    """Return the CPU seconds of processes and all their descendants, ended ones included."""
    total = 0.0
    for process in _trees(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def find_children(*marks: str) -> list[int]:
    """Return our child processes whose command lines have all of these words."""
    children = psutil.Process().children()
    return [child.pid for child in children if set(marks) <= set(child.cmdline())]


class _Captured:
    """Standard output and error of one command, in files, so that no pipe blocks it."""

    def __enter__(self) -> "_Captured":
        self.output: IO[bytes] = tempfile.TemporaryFile()
        self.errors: IO[bytes] = tempfile.TemporaryFile()
        return self

    def __exit__(self, *_: object) -> None:
        self.output.close()
        self.errors.close()

    def text(self) -> str:
        self.output.seek(0)
        return self.output.read().decode("utf-8", "replace")

    def trouble(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        return " | ".join(lines[-3:]) or "no output"


def _start(command: Command, captured: _Captured) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=captured.output,
            stderr=captured.errors,
            start_new_session=True,
        )
    except OSError as error:
        raise ContestError(f"{command[0]} did not start: {error}") from error


def _end(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Wait for a process; return its usage, which includes the children that it waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


@contextlib.contextmanager
def _orphans_adopted() -> Iterator[None]:
    """Adopt the orphans of our descendants during the context, so that their CPU counts as well.

    lftp ends before the `ssh` that it uses, for which no process waits then.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SUBREAPER, 0, 0, 0, 0)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def _reap(others: Set[int], seen: Set[int]) -> Iterator[resource.struct_rusage]:
    """Wait for all orphans and kill those that continue; yield the usage of those in `seen`.

    The others are processes of the server, whose sessions may end before what they started.
    """
    deadline = time.monotonic() + _ORPHANED
    while orphans := _children() - others:
        for pid in orphans:
            while time.monotonic() < deadline and not _has_ended(pid):
                time.sleep(_BEAT)
            os.kill(pid, signal.SIGKILL)  # no effect if it has ended
            _, _, usage = os.wait4(pid, 0)
            if pid in seen:
                yield usage


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class _Watch(threading.Thread):
    """A thread that measures the memory of processes and kills them after a deadline."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        super().__init__(name="watch", daemon=True)
        self.most = self.engine = 0
        self.seen: set[int] = set()  # of all processes that the contestant started
        self.over = threading.Event()
        self._processes = processes
        self._deadline = time.monotonic() + DEADLINE

    def run(self) -> None:
        while not self.over.wait(_BEAT):
            pids = [process.pid for process in self._processes]
            trees = list(_trees(pids))
            self.seen.update(process.pid for process in trees)
            self.most = max(self.most, _memory(trees))
            self.engine = max(self.engine, *map(_peak, pids))
            if time.monotonic() > self._deadline:
                self.kill()

    def kill(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _watched(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[_Watch]:
    watch = _Watch(processes)
    watch.start()
    try:
        yield watch
    except BaseException:
        watch.kill()
        raise
    finally:
        watch.over.set()
        watch.join()


def _memory(processes: Sequence[psutil.Process]) -> int:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def _peak(pid: int) -> int:
    """Return the peak resident memory of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _loopback() -> int:
    """Return the bytes that the loopback device has carried since the machine started."""
    carried: int = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    return carried


def _trees(pids: Sequence[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            yield process
            yield from process.children(recursive=True)


def _settle(servers: Sequence[int]) -> None:
    """Wait until the sessions of the private sshd have ended and are accounted for."""
    deadline = time.monotonic() + _SETTLING
    last = -1.0
    while time.monotonic() < deadline:
        now = tree_cpu(servers)
        if now == last:
            return
        last = now
        time.sleep(0.1)
