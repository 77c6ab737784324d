"""Another program that writes to files in the very moment in which they are deleted.

`python -m tests.racing LOG FOLDER SECONDS` follows a deletion log (`store.state_files`).
As soon as a line names one of the files that it was given on standard input (`{"path": "deed"}`, in
JSON), it waits for up to so many seconds and then writes to it, as programs do: it opens, writes,
closes; or it puts a new file in its place. An empty line on standard input ends it. It prints the
paths of those files with which everything succeeded.
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
    """Open a file that is there, append to it, close it."""
    _write(path, os.O_WRONLY | os.O_APPEND)


def overwrite(path: Path) -> None:
    """Write over the beginning of a file, and leave its time as it was."""
    before = path.stat()
    _write(path, os.O_WRONLY)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    """Put a new file in the place of one, whether that is there or not."""
    made = path.with_name(f"{path.name}.new")
    made.write_bytes(FRAME)
    made.replace(path)


DEEDS: Mapping[str, Callable[[Path], None]] = {
    "append": append,
    "overwrite": overwrite,
    "replace": replace,
}


def _write(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.write(descriptor, FRAME)
    finally:
        os.close(descriptor)


class Racer:
    """The other program, as a test sees it; `written` are the files it wrote to, at its end."""

    def __init__(self) -> None:
        self.written: Sequence[str] = ()


@contextmanager
def racing(log: Path, folder: Path, deeds: Mapping[str, str], seconds: float) -> Iterator[Racer]:
    """Start the program, which knows by path what to do to each file; it is ready then."""
    words = [sys.executable, "-m", "tests.racing", str(log), str(folder), str(seconds)]
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
    """Follow the log from its end on, until there is a line on standard input."""
    deeds, written = json.loads(sys.stdin.readline()), []
    ended = Event()
    Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
    for path in _follow(log, ended):
        if path in deeds and _carry_out(deeds[path], folder / path, random.random() * seconds):
            written.append(path)
    sys.stdout.write(json.dumps(written))


def _follow(log: Path, ended: Event) -> Iterator[str]:
    """Yield the paths that the log tells of, each a moment after it was written."""
    log.touch()
    with log.open("rb", buffering=0) as file:
        file.seek(0, os.SEEK_END)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        left = b""
        while not ended.is_set():
            *lines, left = (left + file.read(65536)).split(b"\n")
            for record in map(json.loads, lines):
                if record["deleted"]:
                    yield record["path"]


def _carry_out(deed: str, path: Path, delay: float) -> bool:
    end = perf_counter() + delay
    while perf_counter() < end:
        pass
    with suppress(FileNotFoundError):
        DEEDS[deed](path)
        return True
    return False


if __name__ == "__main__":
    race(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
