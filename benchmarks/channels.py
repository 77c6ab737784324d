"""Compare the automatic number of channels with fixed numbers.

    python -m benchmarks.channels [--round-trips 0,28] [--mixes tiny,large] [--seconds 40] [--quick]

Each measurement is a real run against the embedded server, with a network emulation in front of the
sshd. The speed counts from the first payload up to `--seconds`; then the run is interrupted.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from benchmarks.arena import Arena
from benchmarks.corpus import Corpus, Scale, make_large, make_mixed, make_tiny
from benchmarks.ground import open_sshd
from benchmarks.measure import ContestError
from benchmarks.reserve import Reserve
from benchmarks.whole import Installation
from benchmarks.wire import Wire

AUTOMATIC = 0  # the setting with which the run chooses the number


class Mix(NamedTuple):
    """Test files and the number of copies that are sent, enough for half a minute."""

    make: Callable[[Path, Scale], Corpus]
    scale: Scale
    copies: int


MIXES = {
    "tiny": Mix(make_tiny, Scale(tiny_count=10_000), 20),
    "mixed": Mix(make_mixed, Scale(mixed_count=1500), 40),
    "large": Mix(make_large, Scale(large_count=4, large_size=64 * 2**20), 24),
}


class Trace(NamedTuple):
    """The course of a run: bytes sent over time, and changes of the number of channels.

    Times are in seconds since the first payload.
    """

    sent: list[tuple[float, int]]
    changes: list[tuple[float, int]]

    @property
    def settled(self) -> float:
        """The time of the last change of the number of channels."""
        return self.changes[-1][0] if self.changes else 0.0

    def speed(self, since: float = 0.0) -> float:
        """Return the bytes a second from a time on."""
        before = max((size for at, size in self.sent if at <= since), default=0)
        at, size = self.sent[-1]
        return (size - before) / (at - since) if at > since else 0.0


class Found(NamedTuple):
    """The result for one mix at one distance: the traces of all rounds, by setting."""

    mix: str
    round_trip: float
    traces: dict[int, list[Trace]]

    def speed(self, number: int) -> float:
        return statistics.median(trace.speed() for trace in self.traces[number])

    @property
    def best(self) -> int:
        """The fastest fixed number."""
        return max((number for number in self.traces if number != AUTOMATIC), key=self.speed)

    @property
    def settled_share(self) -> float:
        """The speed after the last change, as a share of that of the best fixed number.

        The same seconds are compared, because every run slows down when the server verifies files.
        """
        return statistics.median(
            chosen.speed(chosen.settled) / best.speed(chosen.settled)
            for chosen, best in zip(self.traces[AUTOMATIC], self.traces[self.best], strict=True)
        )


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    # On SIGTERM, exit normally, so that the files in memory are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    numbers = [*map(int, options.numbers.split(",")), AUTOMATIC]
    print(_line("mix", "round trip", *map(_name, numbers), *_FIGURES))
    print(_line(*["---"] * (len(numbers) + len(_FIGURES) + 2)))
    found = []
    for mix in options.mixes.split(","):
        directory = Path(tempfile.mkdtemp(prefix="mydata-like-channels-", dir=options.directory))
        try:
            corpus = _make(MIXES[mix], directory / "source", quick=options.quick)
            for round_trip in map(float, options.round_trips.split(",")):
                distance = Wire(round_trip / 1e3) if round_trip else None
                traces = _measure(corpus, directory, distance, numbers, options)
                found.append(Found(mix, round_trip, traces))
                print(_row(found[-1]), flush=True)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if options.json:
            options.json.write_text(json.dumps([one._asdict() for one in found], indent=1) + "\n")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.channels", description=__doc__)
    add = parser.add_argument
    add("--round-trips", default="0,5,28,100", help="milliseconds to the staging host")
    add("--mixes", default=",".join(MIXES), help="what is sent")
    add("--numbers", default="1,2,4,8", help="fixed numbers to compare with")
    add("--rounds", type=int, default=1, help="number of runs of each; medians are shown")
    add("--seconds", type=float, default=40, help="longest time that each run sends")
    add("--quick", action="store_true", help="less data, for a first impression only")
    add("--json", type=Path, help="also write all traces to this file")
    add("--directory", type=Path, default=Path("/dev/shm"), help="folder of the test data")
    return parser.parse_args(arguments)


def _make(mix: Mix, root: Path, *, quick: bool) -> Corpus:
    """Create the files, and copies of them as hard links in further folders."""
    corpus = mix.make(root, mix.scale)
    folders, files = list(corpus.folders), list(corpus.files)
    copies = 1 if quick else mix.copies
    for copy in range(1, copies):
        for folder in corpus.folders:
            (root / f"{folder}-{copy}").mkdir()
            folders.append(f"{folder}-{copy}")
        for path in corpus.files:
            folder, _, name = path.partition("/")
            os.link(root / path, root / f"{folder}-{copy}" / name)
            files.append(f"{folder}-{copy}/{name}")
    return corpus._replace(files=tuple(files), folders=tuple(folders), bytes=corpus.bytes * copies)


def _measure(
    corpus: Corpus,
    directory: Path,
    wire: Wire | None,
    numbers: Sequence[int],
    options: argparse.Namespace,
) -> dict[int, list[Trace]]:
    """Run with each number in turns."""
    traces: dict[int, list[Trace]] = {number: [] for number in numbers}
    with ExitStack() as stack:
        ground = stack.enter_context(open_sshd(Path(tempfile.mkdtemp(dir=directory)), wire))
        reserve = stack.enter_context(Reserve(directory))
        arena = Arena(
            **ground._asdict(), corpus=corpus, directory=directory, stack=stack, reserve=reserve
        )
        for _ in range(options.rounds):
            for number in numbers:
                traces[number].append(_run(arena, number, options.seconds))
    return traces


def _run(arena: Arena, number: int, seconds: float) -> Trace:
    """Run with a number of channels on a new server; return its trace."""
    arena.clear()
    directory = arena.directory / "channels"
    with ExitStack() as stack:
        installation = Installation.create(arena, directory, stack)
        command = installation.command(
            "--events", "--brief", "--set", f"transfer.channels={number}"
        )
        return follow(command, seconds)


def follow(command: Sequence[str], seconds: float) -> Trace:
    """Run a command, interrupt it after some seconds of sending, and return its trace."""
    trace = Trace([], [])
    with tempfile.TemporaryFile() as errors, _started(command, errors) as process:
        assert process.stdout
        began = 0.0
        interrupted = False
        sent: dict[int, int] = {}
        for line in process.stdout:
            now = time.monotonic()
            event = json.loads(line)
            began = began or now * (event["event"] == "transfer_started")
            if began and not interrupted:
                note(trace, sent, now - began, event)
            if began and now - began > seconds and not interrupted:
                process.send_signal(signal.SIGINT)
                interrupted = True
        errors.seek(0)
        if process.wait() and not interrupted:
            raise ContestError(f"a run ended with {process.returncode}: {errors.read()!r}")
    return trace


def note(trace: Trace, sent: dict[int, int], at: float, event: dict[str, Any]) -> None:
    """Add an event to a trace; `sent` has the bytes of each transfer so far."""
    match event["event"]:
        case "transfer_progressed" | "transfer_finished":
            sent[event["transfer"]] = event["bytes"]
            trace.sent.append((at, sum(sent.values())))
        case "limits_changed":
            trace.changes.append((at, event["channels"]))
        case _:
            pass


def _started(command: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)


_FIGURES = ("of the best", "once settled", "settled after", "numbers")


def _row(found: Found) -> str:
    """Return a row of the table; the changes of the number are those of the last round."""
    automatic = found.traces[AUTOMATIC][-1]
    best = found.speed(found.best)
    return _line(
        found.mix,
        f"{found.round_trip:g} ms",
        *(f"{found.speed(number) / 1e6:.1f}" for number in found.traces),
        f"{found.speed(AUTOMATIC) / best:.0%}",
        f"{found.settled_share:.0%}",
        f"{automatic.settled:.1f} s",
        ", ".join(str(number) for _, number in automatic.changes) or "the first",
    )


def _name(number: int) -> str:
    return "automatic" if number == AUTOMATIC else f"{number} (MB/s)"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
