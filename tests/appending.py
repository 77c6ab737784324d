"""Another program that appends to files while they are being deleted.

`python -m tests.appending FOLDER COUNT SECONDS` waits for its turn with each of the files
`0.dat`, `1.dat` and so on, and appends to it within so many seconds: it opens, writes, closes.
It prints the numbers of those with which all three succeeded.
"""

import mmap
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter

TURN = "turn"  # a file in which each byte says that the turn of one file has come
LATE = 2  # a turn that has passed


def frame(number: int) -> bytes:
    """Return what is appended to a file."""
    return b"frame %08d" % number


class Appender:
    """The other program, as the test sees it."""

    def __init__(self, folder: Path, turns: mmap.mmap) -> None:
        self._folder = folder
        self._turns = turns
        self.written: Sequence[int] = ()

    def begin(self, number: int) -> None:
        """Let it append to a file from now on."""
        self._turns[number] = 1

    def find_lost(self) -> list[int]:
        """Return the files whose frame was written and is nowhere."""
        return [number for number in self.written if not self._has_frame(number)]

    def _has_frame(self, number: int) -> bool:
        with suppress(FileNotFoundError):
            return (self._folder / f"{number}.dat").read_bytes().endswith(frame(number))
        return False


@contextmanager
def appending(folder: Path, count: int, seconds: float) -> Iterator[Appender]:
    """Start the program and wait until it is ready; at the end it is known what it wrote."""
    path = folder.with_name(TURN)
    path.write_bytes(bytes(count))
    words = [sys.executable, "-m", "tests.appending", str(folder), str(count), str(seconds)]
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), count) as turns,
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        appender = Appender(folder, turns)
        try:
            yield appender
        finally:
            turns[:] = bytes([LATE]) * count
            appender.written = [int(line) for line in process.stdout]


def append_to_all(folder: Path, count: int, seconds: float) -> None:
    """Append to each file when its turn has come."""
    written = []
    with (
        folder.with_name(TURN).open("rb") as file,
        mmap.mmap(file.fileno(), count, prot=mmap.PROT_READ) as turns,
    ):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for number in range(count):
            while not turns[number]:
                pass
            if turns[number] != LATE and _append(folder, number, random.random() * seconds):
                written.append(number)
    sys.stdout.writelines(f"{number}\n" for number in written)


def _append(folder: Path, number: int, delay: float) -> bool:
    path, content = os.fsencode(folder / f"{number}.dat"), frame(number)
    end = perf_counter() + delay
    while perf_counter() < end:
        pass
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return False
    try:
        return os.write(descriptor, content) == len(content)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    append_to_all(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
