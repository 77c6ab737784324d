"""Another program that writes to files at the moment of their deletion.

`python -m tests.trials.racing LOG FOLDER SECONDS` follows a deletion log (`state.state_files`).
When a line names one of the files given on standard input (`{"path": "deed"}` in JSON), it waits
for up to so many seconds and then writes to the file, as programs do: it opens, writes and closes
it, or replaces it by a new file. An empty line on standard input ends it. It prints the paths of
the files to which it has written.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

FRAME = b"a frame that must not be lost"


def append(path: Path) -> None:
    """Open an existing file, append to it, and close it."""
    _write(path, os.O_WRONLY | os.O_APPEND)


def overwrite(path: Path) -> None:
    """Overwrite the beginning of a file, and restore its time."""
    before = path.stat()
    _write(path, os.O_WRONLY)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    """Replace a file, which may be missing, by a new one."""
    made = path.with_name(f"{path.name}.new")
    made.write_bytes(FRAME)
    made.replace(path)


DEEDS: Mapping[str, Callable[[Path], None]] = {
    "append": append,
    "overwrite": overwrite,
    "replace": replace,
}


def _write(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    try:
        os.write(descriptor, FRAME)
    finally:
        os.close(descriptor)


class Racer:
    """The result of the other program: `written` has the files to which it has written."""

    def __init__(self) -> None:
        self.written: Sequence[str] = ()


@contextmanager
def racing(log: Path, folder: Path, deeds: Mapping[str, str], seconds: float) -> Iterator[Racer]:
    """Run the program with a deed for each path; yield when it is ready."""
    words = [sys.executable, "-m", "tests.trials.racing", str(log), str(folder), str(seconds)]
    racer = Racer()
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(dict(deeds)) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        try:
            yield racer
        finally:
            process.stdin.write("\n")
            process.stdin.close()
            racer.written = json.loads(process.stdout.read())


def race(log: Path, folder: Path, seconds: float) -> None:
    """Follow the log from its end until a line arrives on standard input."""
    deeds, written = json.loads(sys.stdin.readline()), []
    ended = Event()
    Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
    for path in _follow(log, ended):
        if path in deeds and _carry_out(deeds[path], folder / path, random.random() * seconds):
            written.append(path)
    sys.stdout.write(json.dumps(written))


def _follow(log: Path, ended: Event) -> Iterator[str]:
    """Yield the paths in the log, each soon after it was written."""
    log.touch()
    with log.open("rb", buffering=0) as file:
        file.seek(0, os.SEEK_END)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        left = b""
        while not ended.is_set():
            file.seek(0, os.SEEK_CUR)  # in Wine, the end of a file is for ever without this
            *lines, left = (left + file.read(65536)).split(b"\n")
            for record in map(json.loads, lines):
                if record["deleted"]:
                    yield record["path"]


def _carry_out(deed: str, path: Path, delay: float) -> bool:
    end = perf_counter() + delay
    while perf_counter() < end:
        pass
    # Windows refuses to open a file while it is deleted.
    with suppress(FileNotFoundError, PermissionError):
        DEEDS[deed](path)
        return True
    return False


if __name__ == "__main__":
    race(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
