"""Runs commands side by side and says what they took: seconds, CPU of both ends, memory."""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import psutil

DEADLINE = 900.0  # seconds a contestant may take before it counts as failed
_BEAT = 0.1  # seconds between two looks at the memory
_SETTLING = 5.0  # seconds to wait for the server's processes of a contestant to end

Command = Sequence[str]


class ContestError(Exception):
    """A contestant did not do its work; the text says why."""


class Sample(NamedTuple):
    """What one contestant took in one round.

    CPU is seconds of user and system time; `client` is all processes it started, `server`
    those of the private sshd (or of the embedded server). `memory` is the most that the
    client's processes had resident together, in bytes. `facts` are further figures to show.
    """

    seconds: float
    client: float
    server: float
    memory: int
    facts: dict[str, float] = {}  # noqa: RUF012 - never changed


def measure(commands: Sequence[Command], servers: Sequence[int]) -> tuple[Sample, list[str]]:
    """Run commands at the same time to their ends; also return what each of them printed.

    `servers` are the process ids whose trees do the other end's work.
    """
    before = tree_cpu(servers)
    with contextlib.ExitStack() as stack:
        outputs = [stack.enter_context(_Captured()) for _ in commands]
        began = time.perf_counter()
        processes = [_start(*pair) for pair in zip(commands, outputs, strict=True)]
        with _watched(processes) as watch:
            usages = [_end(process) for process in processes]
            seconds = time.perf_counter() - began
        for process, captured, command in zip(processes, outputs, commands, strict=True):
            if process.returncode:
                raise ContestError(
                    f"{command[0]} ended with {process.returncode}: {captured.trouble()}"
                )
        printed = [captured.text() for captured in outputs]
    _settle(servers)
    client = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return Sample(seconds, client, tree_cpu(servers) - before, watch.most), printed


def tree_cpu(pids: Sequence[int]) -> float:
    """Return the CPU seconds of processes and all their descendants, ended ones included."""
    total = 0.0
    for process in _trees(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def find_children(*marks: str) -> list[int]:
    """Return our child processes on whose command lines all of these words stand."""
    children = psutil.Process().children()
    return [child.pid for child in children if set(marks) <= set(child.cmdline())]


class _Captured:
    """Standard output and error of one command, in files, so that nothing ever waits."""

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
        return " | ".join(lines[-3:]) or "it said nothing"


def _start(command: Command, captured: _Captured) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=captured.output,
        stderr=captured.errors,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Wait for a process by hand: its usage holds the CPU of all that it waited for itself."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


class _Watch(threading.Thread):
    """Looks at the memory of some processes, and ends them when they take too long."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        super().__init__(name="watch", daemon=True)
        self.most = 0
        self.over = threading.Event()
        self._processes = processes
        self._deadline = time.monotonic() + DEADLINE

    def run(self) -> None:
        while not self.over.wait(_BEAT):
            self.most = max(self.most, _memory([process.pid for process in self._processes]))
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


def _memory(pids: Sequence[int]) -> int:
    total = 0
    for process in _trees(pids):
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


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
