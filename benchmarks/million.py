"""Measure the cost of a run for growing data directories: CPU per file, and the engine's memory.

The command: python -m benchmarks.million [--files 1000,10000,100000,1000000] [--folder-size 1000].
The files of a folder are links to one small file, there as here. The first file of each folder is
really uploaded; the server's records and the ledger's rows of the others are copied from those of
the first.

| run | |
|---|---|
| known | all files are verified, and the ledger has them |
| lost | all files are verified, and the ledger was lost: the server's listings are used |
| fresh | one file in ten is new, and is sent |
"""

import argparse
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.arena import Arena
from benchmarks.corpus import Corpus
from benchmarks.ground import open_sshd
from benchmarks.measure import ContestError
from benchmarks.reserve import Reserve
from benchmarks.whole import Installation

SIZE = 100  # bytes a file
AGE = 86_400  # seconds
FIRST = "file-0000000"
SERIES = "WITH RECURSIVE series(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < ?)"
NAME = "printf('file-%07d', i)"
RECORDS = (
    f"{SERIES} INSERT INTO datafile (dataset, directory, filename, version, size, md5sum,"
    f" sha512sum, mimetype, created, modified) SELECT dataset, directory, {NAME}, version, size,"
    " md5sum, sha512sum, mimetype, created, modified FROM datafile, series WHERE filename = ?"
)
REPLICAS = (
    "INSERT INTO replica (datafile, dataset, box, uri, verified, created, last_verified)"
    " SELECT it.id, it.dataset, box, replace(uri, first.filename, it.filename), verified,"
    " replica.created, last_verified FROM datafile first JOIN replica ON datafile = first.id"
    " JOIN datafile it ON it.dataset = first.dataset AND it.id != first.id"
    " WHERE first.filename = ?"
)
ROWS = (
    f"{SERIES} INSERT INTO files (root, key, size, modified_ns, state, dataset, checksum, remote,"
    " datafile, problem, archive, staged_at, registered_at, verified_at, changed_at)"
    f" SELECT root, CAST(substr(key, 1, length(key) - {len(FIRST)}) || {NAME} AS BLOB), size,"
    f" modified_ns, state, dataset, checksum, replace(remote, '{FIRST}', {NAME}), NULL, problem,"
    " archive, staged_at, registered_at, verified_at, changed_at FROM files, series"
)
IDENTITY = "UPDATE files SET ctime_ns = ?, inode = ? WHERE root = 1 AND key = ?"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each number of files once, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--files", default="1000,10000,100000,1000000")
    parser.add_argument("--folder-size", type=int, default=1000)
    parser.add_argument("--runs", default="known,lost,fresh")
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args(arguments)
    print("| files | folders | run | s | engine's CPU s | us a file | MB | sent |")
    print("|---|---|---|---|---|---|---|---|")
    for files in map(int, options.files.split(",")):
        folders = max(1, files // options.folder_size)
        with open_site(options.directory, folders, files // folders) as site:
            for run in options.runs.split(","):
                print(f"| {files:,} | {folders:,} | {run} | {site.measure(run)} |", flush=True)
    return 0


class Growing:
    """A data directory of links whose files the server already has."""

    def __init__(self, installation: Installation, folder_size: int) -> None:
        self._installation = installation
        self._root = installation.arena.corpus.root
        self._places = [self._root / name for name in installation.arena.corpus.folders]
        self._size = folder_size

    def fill(self) -> None:
        """Upload one file per folder, and copy its records for the others; list them once."""
        self._run()
        numbers = self._size - 1
        stored = (self._installation.directory / "server" / "staging").iterdir()
        for place in (*self._places, *stored):
            _link(place, range(1, self._size))
        with _database(self._installation.directory / "server", "*.sqlite") as server:
            server.execute(RECORDS, (numbers, FIRST))
            server.execute(REPLICAS, (FIRST,))
        with _database(self._installation.directory / "state", "ledger-*.db") as ledger:
            ledger.execute(ROWS, (numbers,))
            ledger.executemany(IDENTITY, self._identify())
        self._run()

    def _identify(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield ctime, inode and key of all files."""
        for place in self._places:
            for entry in os.scandir(place):
                status = entry.stat()
                yield status.st_ctime_ns, status.st_ino, f"{place.name}/{entry.name}".encode()

    def measure(self, run: str) -> str:
        """Prepare and execute a run; return its cells of the table."""
        {"known": _nothing, "lost": self._lose, "fresh": self._add}[run]()
        begun = time.perf_counter()
        summary, usage = self._run()
        seconds = time.perf_counter() - begun
        cpu = usage.ru_utime + usage.ru_stime
        cells = [
            f"{seconds:.1f}",
            f"{cpu:.1f}",
            f"{cpu / summary['found'] * 1e6:.0f}",
            f"{usage.ru_maxrss * 1024 / 1e6:.0f}",
            f"{summary['sent']:,}",
        ]
        return " | ".join(cells)

    def _lose(self) -> None:
        for file in (self._installation.directory / "state").glob("ledger-*"):
            file.unlink()

    def _add(self) -> None:
        fresh = max(1, self._size // 10)
        for place in self._places:
            _link(place, range(self._size, self._size + fresh))
        with _database(self._installation.directory / "state", "ledger-*.db") as ledger:
            ledger.executemany(IDENTITY, self._identify())  # links have changed the ctime
        self._size += fresh

    def _run(self) -> tuple[dict[str, Any], resource.struct_rusage]:
        """Run; return summary and usage: the memory of the largest process, the CPU of all."""
        command = self._installation.command("--json")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stderr
            printed, errors = process.stdout.read(), process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise ContestError(f"{printed.decode()} {errors.decode()}")
        summary = json.loads(printed.splitlines()[-1])
        if summary["verified"] != summary["found"]:
            raise ContestError(f"not all files were verified: {summary}")
        return summary, usage


def _link(folder: Path, numbers: range) -> None:
    """Add links to the first file of a folder."""
    source = folder / FIRST
    links = source.stat().st_nlink
    for number in numbers:
        target = folder / f"file-{number:07}"
        if links % 60_000 == 0:  # ext4 allows 65,000 links to a file
            shutil.copy2(source, target)
            source = target
        else:
            os.link(source, target)
        links += 1


def _nothing() -> None:
    """Change nothing before the run."""


@contextmanager
def _database(folder: Path, pattern: str) -> Iterator[sqlite3.Connection]:
    (file,) = folder.rglob(pattern)
    with closing(sqlite3.connect(file)) as connection, connection:
        yield connection


@contextmanager
def open_site(directory: Path | None, folders: int, folder_size: int) -> Iterator[Growing]:
    """Create the folders, and a server that has all of them, in a temporary directory."""
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=directory)))
        names = tuple(f"dataset-{number:05}" for number in range(folders))
        then = time.time() - AGE
        for name in names:
            (top / "data" / name).mkdir(parents=True)
            (top / "data" / name / FIRST).write_bytes(name.encode().ljust(SIZE))
            os.utime(top / "data" / name / FIRST, (then, then))
        corpus = Corpus(root=top / "data", files=(), bytes=0, folders=names, held=0)
        (top / "sshd").mkdir()
        ground = stack.enter_context(open_sshd(top / "sshd"))
        reserve = stack.enter_context(Reserve(top))
        arena = Arena(
            **ground._asdict(), corpus=corpus, directory=top, stack=stack, reserve=reserve
        )
        site = Growing(Installation.create(arena, top / "site", stack), folder_size)
        site.fill()
        yield site


if __name__ == "__main__":
    sys.exit(main())
