"""A complete site for tests: data, an embedded server, a staging host, and the real command."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.run_service import open_run
from mydata_like.app.settings_service import load_settings
from mydata_like.core.data_directory import is_lock_name
from mydata_like.core.events import Event, RunFinished
from mydata_like.core.extra_sources import SourceRequest
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.demo_site import DemoSite, start_site
from mydata_like.demo.fixtures import make_samples
from mydata_like.demo.ssh_servers import AsyncSshd, PrivateSshd
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.scheduler import SOURCE
from tests.openssh import open_ssh
from tests.privileges import HAS_SSHD

# Seconds after which a command counts as hanging; several systems in Wine share two cores.
DEADLINE = 240.0 if os.name == "nt" else 60.0
# Settings that avoid waiting.
QUICK = (
    "filters.settle_seconds=0",
    "advanced.verify_interval=0.1",
    "advanced.pause_patience=30",
    "server.write_timeout=5",
    "transfer.stall_timeout=10",
    "transfer.batch_age=0.2",
)
CHANGES = ("POST", "PATCH", "PUT", "DELETE")
# Windows sends Ctrl+Break to a group of processes.
NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    output: str
    complaints: str

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of standard output, each an object in JSON."""
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def sums(self) -> dict[str, Any]:
        """The sums of the run: the last line."""
        assert self.lines, f"exit code {self.code}, no output but: {self.complaints}"
        return self.lines[-1]

    @property
    def problem(self) -> str | None:
        """The code of the problem that ended the run early, if any."""
        problem = self.sums["problem"]
        return problem and problem["code"]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == name]


Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Carried:
    """A run in this process that has ended."""

    code: int
    sums: RunFinished
    events: list[Event]

    def of_kind(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


class Site:
    """A demonstration site with its settings file, and the real commands in it."""

    def __init__(self, place: DemoSite) -> None:
        self.place = place
        self.server: EmbeddedServer = place.server
        self.sshd = place.sshd
        self.data = place.data
        self.config = place.folder / "config" / "settings.toml"
        self._started: list[subprocess.Popen[str]] = []
        self.wrap: tuple[str, ...] = ()  # the words before the command, such as a sandbox
        self.config.parent.mkdir()
        place.write_settings(self.config)

    def start(
        self,
        *words: str,
        settings: Sequence[str] = (),
        stdin: int = subprocess.DEVNULL,
        **options: Any,
    ) -> "subprocess.Popen[str]":
        """Start a command in a new process group; `words` begin with its name.

        `options` are those of `Popen`.
        """
        every = ["-m", "mydata_like", *words, *self._choices(settings)]
        return self._start(every, stdin, **options)

    def _choices(self, settings: Sequence[str]) -> list[str]:
        values = [word for value in (*QUICK, *settings) for word in ("--set", value)]
        return ["--config", str(self.config), *values]

    def _start(self, words: Sequence[str], stdin: int, **options: Any) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*self.wrap, sys.executable, *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            env=self.environment,
            **{"creationflags": NEW_GROUP, **options},
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """Kill processes that a failed test has left running."""
        for process in self._started:
            if process.poll() is None:
                kill_group(process)
                process.communicate()

    def command(self, *words: str, settings: Sequence[str] = ()) -> Ended:
        """Run a command and wait for its end."""
        return finish(self.start(*words, settings=settings))

    def commands(self, each: Sequence[Sequence[str]], settings: Sequence[str] = ()) -> list[Ended]:
        """Run the commands `status`, `where` or `free` one after another, in a single start.

        Where processes cannot fork, each has a start of its own.
        """
        if not hasattr(os, "fork"):
            return [self.command(*words, settings=settings) for words in each]
        process = self._start(["-m", "tests.forked_commands"], stdin=subprocess.PIPE)
        assert process.stdin is not None
        choices = self._choices(settings)
        process.stdin.write(json.dumps([[*words, *choices] for words in each]))
        ended = finish(process)
        assert ended.code == 0, ended.complaints
        return [Ended(*results) for results in json.loads(ended.output)]

    def run(self, *settings: str) -> Ended:
        """Run, and return the totals."""
        return self.command("run", "--json", settings=settings)

    def run_events(self, *settings: str) -> Ended:
        """Run, and return all events."""
        return self.command("run", "--events", settings=settings)

    def carry(
        self,
        *settings: str,
        watch: Callable[[Event], object] = id,
        patience: float | None = None,
        sources: Sequence[SourceRequest] = (),
        controller: CommandHandler | None = None,
    ) -> "Carried":
        """Run in this process; `watch` is called with each event, for example to inject faults.

        With `patience` it is an unattended run, with `sources` a run of these alone. Raises the
        errors of `open_run`.
        """
        loaded = load_settings(self.config, (*QUICK, *settings)).settings
        events = list[Event]()

        def emit(event: Event) -> None:
            events.append(event)
            watch(event)

        request = RunRequest(
            settings=loaded,
            config=self.config,
            patience=patience,
            reason=SOURCE if sources else "person",
            sources=tuple(sources),
        )
        with open_run(request, RunObserver(emit=emit, controller=controller)) as run:
            end = run.execute()
        return Carried(end.exit_code, end.finished, events)

    @property
    def uuid(self) -> str:
        """The identity of this installation."""
        return str(tomllib.loads(self.config.read_text())["instrument"]["uuid"])

    @property
    def state(self) -> Path:
        return self.place.folder / "state"

    @property
    def ledgers(self) -> list[Path]:
        """All files of the ledgers, including SQLite's additional ones."""
        return sorted(self.state.glob("ledger*"))

    def changes(self, since: int = 0) -> list[str]:
        """Return the requests that change something on the server, from the given number on."""
        return [
            f"{request.method} {request.path}"
            for request in self.server.requests[since:]
            if request.method in CHANGES
        ]

    def find_wrongs(self, *, left_out: Sequence[Path] = ()) -> list[str]:
        """Compare all bytes with the server's; return what is wrong, except for `left_out`."""
        gone = set(left_out)
        expected = {
            key: path for key, path in self.place.expected_files().items() if path not in gone
        }
        return self.server.check_invariants(expected)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands."""
        kept = {name: value for name, value in os.environ.items() if "MYDATA_" not in name}
        return kept | {"MYDATA_LIKE_HOME": str(self.place.folder / "home")}


@contextmanager
def open_site(
    folder: Path,
    *,
    auto_approve: bool = True,
    options: Sequence[str] = (),
    sshd: PrivateSshd | AsyncSshd | None = None,
) -> Iterator[Site]:
    """Start server and staging host for the data in `folder / "data"`.

    Without `sshd`, it is OpenSSH's with these options.
    """
    folder.mkdir(exist_ok=True)
    if sshd is None and HAS_SSHD:
        sshd = open_ssh(folder / "sshd", options=options)
    with start_site(folder, auto_approve=auto_approve, sshd=sshd) as place:
        site = Site(place)
        try:
            yield site
        finally:
            site.close()


def make_data(folder: Path, *, tiny_files: int = 40, large: int = 3_000_000) -> Path:
    """Make sample data for a site: two owners, four datasets, about 65 files."""
    make_samples(folder / "data", tiny_files=tiny_files, large=large)
    return folder / "data"


def a_site(**sizes: int) -> Any:
    """Return a fixture that opens a site of its own for each test; `sizes` are of `make_data`."""

    @pytest.fixture
    def site(tmp_path: Path) -> Iterator[Site]:
        make_data(tmp_path / "site", **sizes)
        with open_site(tmp_path / "site") as opened:
            yield opened

    return site


def once(kind: type[Event], act: Callable[[], object]) -> Callable[[Event], None]:
    """Return a watcher that acts at the first event of a kind."""
    seen: list[Event] = []

    def watch(event: Event) -> None:
        if isinstance(event, kind) and not seen:
            seen.append(event)
            act()

    return watch


def finish(process: "subprocess.Popen[str]", patience: float = DEADLINE) -> Ended:
    """Wait for the end of a command; if it hangs, kill it and fail."""
    try:
        output, complaints = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        kill_group(process)
        output, complaints = process.communicate()
        raise AssertionError(f"hangs after {output[-2000:]} {complaints[-2000:]}") from None
    assert not (left := left_behind(process.pid)), f"processes outlive the command: {left}"
    return Ended(process.returncode, output, complaints)


def wait_for(process: "subprocess.Popen[str]", event: str) -> list[dict[str, Any]]:
    """Return a command's events up to the first one with this name."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(json.loads(line))
        if seen[-1]["event"] == event:
            return seen
    raise AssertionError(f"ended without {event}: {seen[-3:]}")


def finish_reading(process: "subprocess.Popen[str]") -> Ended:
    """Wait for the end of a command whose first events were already read."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        output, complaints = process.stdout.read(), process.stderr.read()
    assert not (left := left_behind(process.pid)), f"processes outlive the command: {left}"
    return Ended(process.returncode, output, complaints)


def kill_group(process: "subprocess.Popen[str]") -> None:
    """Kill a command and all that it started, as a power cut does."""
    if sys.platform == "win32":
        for member in _list_members(process.pid):
            with suppress(psutil.NoSuchProcess):
                member.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def close_streams(process: "subprocess.Popen[str]") -> None:
    """Wait for a killed command and read no more; in Wine, a console may keep its pipes open."""
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


# Seconds; a worker notices the end of the engine after its imports, which take long in Wine.
ENDING = 30.0 if os.name == "nt" else 5.0


def left_behind(group: int, patience: float = ENDING) -> list[str]:
    """Return the command lines of a process group's members that do not end in time.

    On Windows, these are the process `group` and all that it has started, directly or not.
    """
    _, alive = psutil.wait_procs(_list_members(group), patience)
    return [" ".join(process.cmdline()) for process in alive]


if sys.platform == "win32":

    def _list_members(group: int) -> list[psutil.Process]:
        """Return a process and its descendants, also if it has ended."""
        running = list(psutil.process_iter(["ppid"]))
        members = [process for process in running if process.pid == group]
        parents = {group}
        while parents:
            found = [process for process in running if process.info["ppid"] in parents]
            parents = {process.pid for process in found} - {process.pid for process in members}
            members += [process for process in found if process.pid in parents]
        return members

else:

    def _list_members(group: int) -> list[psutil.Process]:
        members = []
        for process in psutil.process_iter():
            try:
                if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                    members.append(process)
            except (ProcessLookupError, psutil.NoSuchProcess):
                continue
        return members


def yield_processor() -> None:
    """Let other threads and processes run."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)


@dataclass
class Picture:
    """A snapshot of a folder: content, mode, times and inode of everything in it.

    On Windows, runs lock the folder by a file in it, which a killed run leaves there.
    """

    folder: Path
    entries: dict[str, tuple[object, ...]] = field(default_factory=dict)

    @classmethod
    def take(cls, folder: Path) -> "Picture":
        names = (path for path in sorted(folder.rglob("*")) if not _is_lock(path))
        return cls(folder, {path.relative_to(folder).as_posix(): _look(path) for path in names})

    def differences(self) -> list[str]:
        """Return the names of everything that has changed since."""
        now = Picture.take(self.folder).entries
        return sorted(
            name for name in self.entries.keys() | now if self.entries.get(name) != now.get(name)
        )


def _is_lock(path: Path) -> bool:
    return sys.platform == "win32" and is_lock_name(os.fsencode(path.name))


def _look(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    content = ""
    if path.is_file() and not path.is_symlink():
        content = hashlib.md5(path.read_bytes()).hexdigest()
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, content
