"""OpenSSH's server for tests, and the files of its computer.

Windows has no such server that a test could start. Under Wine, the tests ask a process on the Linux
side, `python -m tests.openssh`, which prints what the environment variable `TEST_OPENSSH` must be.
Both share the loopback network and the files on drive `Z:`.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from multiprocessing.managers import BaseManager, BaseProxy
from pathlib import Path, PurePath, PurePosixPath
from threading import Thread
from typing import Any

import psutil

from mydata_like.demo.ssh_servers import PrivateSshd

SERVICE = os.environ.get("TEST_OPENSSH", "")  # port and password of the process
DRIVE = "Z:"  # Wine's name of the whole file system of Linux
LINK = Path("/", DRIVE)  # makes paths right that the embedded server reports
METHODS = (
    *("start", "stop", "restart", "authorize", "forbid_all"),
    *("kill_sessions", "kill_commands", "pause_sessions", "resume_sessions"),
    *("limit_sessions", "await_sessions"),
)


class OpenSsh(PrivateSshd):
    """A private sshd whose sessions a test can disturb."""

    def kill_commands(self) -> None:
        """Kill the commands of all sessions; the sessions continue."""
        sessions = list(self._sessions())
        for session in sessions:
            for process in session.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if process not in sessions and not process.children():
                        process.kill()

    def pause_sessions(self) -> list[int]:
        """Let all sessions do nothing until `resume_sessions`; return their processes."""
        paused = self.session_pids
        for pid in paused:
            os.kill(pid, signal.SIGSTOP)
        return paused

    def resume_sessions(self, paused: list[int]) -> None:
        """Let these sessions continue, if they still exist."""
        for pid in paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def limit_sessions(self) -> None:
        """Limit the descriptors of all current sessions, so that they cannot start commands.

        A command that is ending frees some; call it again then.
        """
        for session in self._sessions():
            with suppress(FileNotFoundError):
                folder = Path(f"/proc/{session.pid}/fd")
                taken = {int(entry.name) for entry in folder.iterdir()}
                free = [number for number in range(len(taken) + 4) if number not in taken]
                _, most = session.rlimit(psutil.RLIMIT_NOFILE)
                session.rlimit(psutil.RLIMIT_NOFILE, (free[3], most))

    def await_sessions(self) -> None:
        """Wait until all current sessions have ended, and their commands, which outlive them.

        Commands write what they have received.
        """
        for session in self._sessions():
            session.wait(20)
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                connection = process.environ().get("SSH_CONNECTION", "")
                if connection.endswith(f" {self.port}"):
                    process.wait(20)

    def _sessions(self) -> Iterator[psutil.Process]:
        for pid in self.session_pids:
            with suppress(psutil.NoSuchProcess):  # a session of an earlier test that is ending
                yield psutil.Process(pid)


class _Proxy(BaseProxy):
    """An `OpenSsh` in the other process."""

    _exposed_ = ("__getattribute__", *METHODS)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return partial(self._callmethod, name)
        return self._callmethod("__getattribute__", (name,))

    def _callmethod(self, name: str, *values: Any, **named: Any) -> Any:
        if name in METHODS:
            return super()._callmethod(name, values, named)
        return super()._callmethod(name, *values)

    def __enter__(self) -> "_Proxy":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Manager(BaseManager):
    """The connection to the other process."""


_started: list[OpenSsh] = []


def _make_sshd(directory: str, options: tuple[str, ...], host: str, port: int) -> OpenSsh:
    _started.append(OpenSsh(Path(directory), options=options, host=host, port=port))
    return _started[-1]


class _Computer:
    """The files and programs of the other process."""

    def call(self, path: str, name: str, values: Any, named: Any) -> Any:
        """Call a method of `pathlib.Path`; paths in its result are text."""
        found = getattr(Path(path), name)(*values, **named)
        if isinstance(found, Iterator):
            return [str(one) for one in found]
        return str(found) if isinstance(found, PurePath) else found

    def which(self, program: str) -> str | None:
        return shutil.which(program)

    def python(self) -> str:
        return sys.executable

    def run(self, words: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(words, capture_output=True, check=False)


_Manager.register("sshd", _make_sshd, _Proxy)
_Manager.register("computer", _Computer)


@cache
def _service() -> Any:
    port, password = SERVICE.split(":")
    manager = _Manager(("127.0.0.1", int(port)), password.encode())
    manager.connect()
    return manager


@cache
def _computer() -> Any:
    return _service().computer() if os.name == "nt" else _Computer()


class _FarPath(PurePosixPath):
    """A path in the other process, with the operations of `pathlib.Path`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Path, name):
            raise AttributeError(name)
        return partial(self._call, name)

    def __bytes__(self) -> bytes:
        return str(self).encode("utf-8", "surrogateescape")

    def iterdir(self) -> list["_FarPath"]:
        return [self / name for name in self._call("iterdir")]

    def rglob(self, pattern: str) -> list["_FarPath"]:
        return [self / name for name in self._call("rglob", pattern)]

    def _call(self, name: str, *values: Any, **named: Any) -> Any:
        return _computer().call(str(self), name, values, named)


def open_ssh(
    directory: Path, *, options: tuple[str, ...] = (), host: str = "127.0.0.1", port: int = 0
) -> Any:
    """Return a private sshd, which is not started yet."""
    if os.name != "nt":
        return OpenSsh(directory, options=options, host=host, port=port)
    return _service().sshd(str(on_host(directory)), tuple(options), host, port)


def on_host(path: Path) -> Any:
    """Return a local path as it is on the computer of the sshd, usable like a local one."""
    if os.name != "nt":
        return path
    assert path.drive in ("", DRIVE), f"{path} is not on the drive of Linux"
    return _FarPath("/", *path.parts[1:])


def from_host(path: PurePath) -> Path:
    """Return a path of the sshd's computer as it is here."""
    return Path(path) if os.name != "nt" else Path(DRIVE, path)


def which(program: str) -> str | None:
    """Return the path of a program on the computer of the sshd."""
    found: str | None = _computer().which(program)
    return found


def python_on_host() -> str:
    """Return the path of Python on the computer of the sshd."""
    return str(_computer().python())


def run_on_host(*words: str | PurePath) -> "subprocess.CompletedProcess[bytes]":
    """Run a command on the computer of the sshd; its exit code may be any."""
    done: subprocess.CompletedProcess[bytes] = _computer().run([str(word) for word in words])
    return done


def main() -> None:
    """Serve until standard input ends."""
    password = secrets.token_hex()
    with suppress(FileExistsError):  # other runs use it as well, so it stays
        LINK.symlink_to("/")
    server = _Manager(("127.0.0.1", 0), password.encode()).get_server()
    Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.address[1]}:{password}\n")
    sys.stdout.flush()
    try:
        sys.stdin.read()
    finally:
        for sshd in _started:
            sshd.stop()


if __name__ == "__main__":
    main()
