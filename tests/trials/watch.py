"""Try a watch in fast motion: `python -m tests.trials.watch [--rounds 8]`.

`mydata-like watch` runs in a process of its own while this one is the instrument: it writes new
files, rotates a log, and holds a file open so that no other program may read it. Server and
staging host go away and come back. At the end, Ctrl+C ends the watch, the server must have every
file, and the watch must use no more memory and handles than after its first runs. It is made for
Windows, and runs on other systems as well.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import psutil

from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import Fault, Reset
from tests.site import Site, left_behind, make_data, open_site

DEADLINE = 300.0  # seconds after which something counts as hanging
STOP_DEADLINE = 10.0  # seconds; two on a computer that does nothing else
INTERVAL = 0.1  # seconds between two looks at the events
SETTINGS = ("schedule.kind=watch", "schedule.minutes=1", "advanced.pause_patience=60")
FULL_LOG = 4_999_000  # bytes; at 5,000,000 the program's log is rotated
HELD = "alice/Night/held by the camera.raw"
HELPER = (sys.executable, "-m", "tests.console_keys") if os.name == "nt" else ()
GROWTH = 30_000_000  # bytes of memory, and handles, that are not a leak
MORE_HANDLES = 30


class Watch:
    """A watch and its events."""

    def __init__(self, site: Site) -> None:
        self.events: list[dict[str, Any]] = []
        site.wrap = HELPER
        stdin = subprocess.PIPE if HELPER else subprocess.DEVNULL
        words = ("watch", "--events")
        self.process = site.start(*words, settings=SETTINGS, stdin=stdin, **_console())
        site.wrap = ()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def wait_for(self, name: str, since: int, **values: object) -> dict[str, Any]:
        """Return the first event with these values after the first `since` ones."""

        def found() -> dict[str, Any] | None:
            later = (it for it in self.events[since:] if it["event"] == name)
            return next((it for it in later if values.items() <= _flat(it).items()), None)

        return until(found, lambda: f"{name} {values}; the last: {self.events[-5:]}")

    def wait_until_safe(self, since: int, files: int) -> None:
        """Wait for a run that has verified all files."""
        self.wait_for("run_finished", since, found=files, verified=files)

    def measure(self) -> tuple[int, int]:
        """Return the memory in bytes and the number of open handles or descriptors."""
        watch = psutil.Process(self.process.pid)
        if HELPER:
            watch = max(watch.children(), key=lambda it: it.memory_info().rss)
        memory = watch.memory_info().rss
        return memory, count_handles()[watch.pid] if HELPER else watch.num_fds()

    def stop(self) -> float:
        """End the watch as a user does; return how long it took in seconds."""
        began = time.monotonic()
        if HELPER:
            assert self.process.stdin is not None
            self.process.stdin.write("interrupt\n")
            self.process.stdin.flush()
        else:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(DEADLINE)
        took = time.monotonic() - began
        self._reader.join(DEADLINE)
        return took


def _flat(event: dict[str, Any]) -> dict[str, Any]:
    problem = event.get("problem")
    return event | ({"code": problem["code"]} if problem else {})


def until(question: Callable[[], Any], describe: Callable[[], str]) -> Any:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + DEADLINE
    while not (answer := question()):
        assert time.monotonic() < deadline, f"it did not happen: {describe()}"
        time.sleep(INTERVAL)
    return answer


class Trial:
    """The parts of the trial; each returns what it found."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._number = 0
        self._watch = Watch(site)

    def run(self, rounds: int) -> None:
        watch = self._watch
        watch.wait_until_safe(0, self._count())
        self._add_files(2)
        before = watch.measure()
        for part in (self._lose_the_server, self._lose_the_host, self._rotate, self._hold_a_file):
            began = time.monotonic()
            said = part()
            _say(f"{part.__name__.strip('_').replace('_', ' ')}: {said}; {_since(began)}")
        began = time.monotonic()
        self._add_files(rounds)
        _say(f"{rounds} rounds of new files: {_since(began)}")
        self._compare(before, watch.measure())
        self._end()

    def _add_files(self, rounds: int) -> None:
        for _ in range(rounds):
            since = len(self._watch.events)
            self._write("new", 10)
            self._watch.wait_until_safe(since, self._count())

    def _lose_the_server(self) -> str:
        """Stop the server during a run; it pauses, and goes on when the server is back."""
        since, server = len(self._watch.events), self._site.server
        server.faults.add(Fault(action=Reset(handled=False), path="dataset_file"))
        self._write("away", 5)
        self._watch.wait_for("run_started", since)
        server.stop()
        paused = self._watch.wait_for("run_paused", since)
        record = self._read_status()
        port = server.port
        self._site.server = EmbeddedServer(server.directory, auto_approve=True, port=port)
        self._site.server.start()
        self._watch.wait_until_safe(since, self._count())
        assert record["watched"], record
        return f"paused by {paused['problem']['code']}, {record['at_risk']['files']} at risk"

    def _lose_the_host(self) -> str:
        """Stop the staging host while files wait for it."""
        since = len(self._watch.events)
        self._site.sshd.stop()
        self._write("no host", 5)
        paused = self._watch.wait_for("run_paused", since)
        self._site.sshd.start()
        self._watch.wait_until_safe(since, self._count())
        return f"paused by {paused['problem']['code']}"

    def _rotate(self) -> str:
        """Rename the instrument's log and begin a new one, while the watch looks at it."""
        since = len(self._watch.events)
        log = self._site.data / "alice" / "Night" / "camera.log"
        log.write_text("exposure 1\n" * 1000)
        self._watch.wait_until_safe(since, self._count())
        since = len(self._watch.events)
        log.rename(log.with_suffix(".1.log"))
        log.write_text("exposure 2\n" * 500)
        self._watch.wait_until_safe(since, self._count())
        files = sorted(path.name for path in _find_logs(self._site).parent.iterdir())
        assert f"{_find_logs(self._site).name}.1" in files, files
        return f"both are safe; the program's own logs: {', '.join(files)}"

    def _hold_a_file(self) -> str:
        """Keep a file open so that no other program may read it; it waits until it is closed."""
        if sys.platform != "win32":
            return "only Windows has such locks"
        since, path = len(self._watch.events), self._site.data / HELD
        path.write_bytes(os.urandom(50_000))
        with held(path):
            waiting = self._watch.wait_for("file_waiting", since, code="waiting.open")
            ended = self._watch.wait_for("run_finished", since, waiting=1)
            place = self._site.command("where", str(path), "--json").lines[-1]
        since = len(self._watch.events)
        self._watch.wait_until_safe(since, self._count())
        assert ended["verified"] == ended["found"] - 1, ended
        return f"{waiting['problem']['message']} Then: {place['files'][0].get('state')}"

    def _read_status(self) -> dict[str, Any]:
        """Return what `status` says in a process of its own."""
        ended = self._site.command("status", "--json")
        assert ended.code == 0, ended
        return dict(ended.lines[-1])

    def _write(self, name: str, count: int) -> None:
        """Write files elsewhere and move them in together, so that no run finds half of them."""
        self._number += 1
        folder = self._site.place.folder / "instrument" / f"{name} {self._number} \u6f22\u5b57"
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"M\u00fcnster {number}.tif").write_bytes(os.urandom(20_000))
        folder.rename(self._site.data / "alice" / "Night" / folder.name)

    def _count(self) -> int:
        return len(self._site.place.expected_files())

    def _compare(self, before: tuple[int, int], after: tuple[int, int]) -> None:
        memory, handles = (now - then for now, then in zip(after, before, strict=True))
        _say(f"memory {before[0]:,} to {after[0]:,} bytes, handles {before[1]} to {after[1]}")
        assert memory < GROWTH, memory
        assert handles < MORE_HANDLES, handles

    def _end(self) -> None:
        took, process = self._watch.stop(), self._watch.process
        assert process.stderr is not None
        errors = process.stderr.read()
        assert (process.returncode, errors) == (0, ""), (process.returncode, errors)
        assert took < STOP_DEADLINE, took
        assert not left_behind(process.pid)
        wrongs = self._site.find_wrongs()
        assert not wrongs, wrongs[:5]
        events = self._watch.events
        codes = Counter(it["problem"]["code"] for it in events if it.get("problem"))
        runs = [it for it in events if it["event"] == "run_finished"]
        _say(f"{len(runs)} runs, {self._count()} files on the server; problems: {dict(codes)}")
        _say(f"the watch ended in {took:.1f} s")


def _find_logs(site: Site) -> Path:
    return site.place.folder / "home" / "logs" / "mydata-like.log"


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _GENERIC_READ_WRITE = 0xC0000000
    _SHARE_NOTHING = 0
    _OPEN_EXISTING = 3
    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.CreateFileW.restype = wintypes.HANDLE
    _kernel.CloseHandle.argtypes = (wintypes.HANDLE,)

    @contextmanager
    def held(path: Path) -> Iterator[None]:
        """Hold a file open so that no other program can open it."""
        how = _GENERIC_READ_WRITE, _SHARE_NOTHING, None, _OPEN_EXISTING, 0, None
        handle = _kernel.CreateFileW(str(path), *how)
        assert handle != wintypes.HANDLE(-1).value, ctypes.get_last_error()
        try:
            yield
        finally:
            _kernel.CloseHandle(handle)

    _LOCK_ACCESS = 0x1F0003  # SEMAPHORE_ALL_ACCESS and EVENT_ALL_ACCESS
    _HANDLES_OF_ALL = 64  # SystemExtendedHandleInformation

    class _Handle(ctypes.Structure):
        _fields_ = (
            ("object", ctypes.c_void_p),
            ("process", ctypes.c_size_t),
            ("value", ctypes.c_size_t),
            ("access", ctypes.c_uint32),
            ("others", ctypes.c_uint32 * 3),
        )

    def count_handles() -> Counter[int]:
        """Return the number of open handles by process, without those of semaphores and events.

        CPython may use one for each lock, and locks of an ended run stay until the garbage
        collector runs, which is seldom. Wine 8 does not tell the number for one process.
        """
        size = 1 << 20
        query = ctypes.WinDLL("ntdll").NtQuerySystemInformation
        while query(_HANDLES_OF_ALL, data := ctypes.create_string_buffer(size), size, None):
            size *= 2
        count = ctypes.c_size_t.from_buffer(data).value
        handles = (_Handle * count).from_buffer(data, 2 * ctypes.sizeof(ctypes.c_size_t))
        return Counter(handle.process for handle in handles if handle.access != _LOCK_ACCESS)

    def _console() -> dict[str, Any]:
        """Return how to start a program with a console of its own, where Ctrl+C can be pressed."""
        hidden = subprocess.STARTUPINFO()
        hidden.dwFlags, hidden.wShowWindow = subprocess.STARTF_USESHOWWINDOW, subprocess.SW_HIDE
        return {"creationflags": subprocess.CREATE_NEW_CONSOLE, "startupinfo": hidden}

else:

    def count_handles() -> Counter[int]:
        return Counter()

    def _console() -> dict[str, Any]:
        return {}


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Carry out the trial; it raises what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "night"
        make_data(home, tiny_files=20, large=500_000)
        (home / "data" / "alice" / "Night").mkdir()
        with open_site(home) as site:
            log = _find_logs(site)
            log.parent.mkdir(parents=True, mode=0o700)
            log.touch(mode=0o600)
            log.write_text("x" * (FULL_LOG - 1) + "\n")
            try:
                Trial(site).run(options.rounds)
            finally:
                site.server.stop()


if __name__ == "__main__":
    main()
