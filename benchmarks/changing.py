"""What copies cost after a change of the source: files that were renamed, or appended to, or grow.

python -m benchmarks.changing SOURCE FILE SECONDS     # writes a file as an instrument does
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.arena import Arena, have_same_bytes
from benchmarks.contest import OURS, Contestant, Entrant
from benchmarks.copying import Copying
from benchmarks.corpus import Corpus
from benchmarks.measure import ContestError, Sample, measure
from benchmarks.noted import WIRE

ALL_BYTES = "on the wire (KB)"
WATCH = f"{OURS}, watch"
SETTLE = 5.0  # seconds
REST = 5.0  # seconds between two copies
_TICK = 0.1

Change = Callable[[Path], None]  # of a source


def rename_folders(source: Path) -> None:
    """Rename all folders at the top."""
    for folder in sorted(source.iterdir()):
        folder.rename(folder.with_name(f"{folder.name} x"))


def append(source: Path) -> None:
    """Append a megabyte to each file."""
    for path in source.rglob("*"):
        if path.is_file():
            with path.open("ab") as file:
                file.write(os.urandom(2**20))


@dataclass(frozen=True)
class Changed(Copying):
    """`mydata-like copy` after each of several changes; the first copy is not timed.

    The peer is `rsync -a`, which has a source and a target of its own.
    """

    change: Change = rename_folders
    peer: bool = False

    @property
    def entrants(self) -> Sequence[Entrant]:
        if self.peer:
            return [Entrant("rsync -a", "rsync", "sizes and times", ("rsync", "ssh"))]
        return [Entrant("mydata-like copy", OURS, "MD5 of both sides")]

    def prepare(self, arena: Arena) -> None:
        here = self._find_place(arena)
        here.target.mkdir(parents=True)
        subprocess.run(["cp", "-a", arena.corpus.root, here.corpus.root], check=True)
        self._log_in(here)
        self._send(here)

    def run(self, arena: Arena) -> Sequence[Sample]:
        here = self._find_place(arena)
        self.change(here.corpus.root)
        sample, facts = self._send(here)
        for path in here.corpus.root.rglob("*"):
            if path.is_file():
                copied = here.target / path.relative_to(here.corpus.root)
                if not copied.exists() or not have_same_bytes(path, copied):
                    raise ContestError(f"{path} is missing in the target, or has other bytes")
        return [sample._replace(facts=facts | {ALL_BYTES: sample.loopback / 1e3})]

    def _find_place(self, arena: Arena) -> Arena:
        place = arena.directory / ("changed by rsync" if self.peer else "changed")
        corpus = arena.corpus._replace(root=place / "source")
        return replace(arena, directory=place, corpus=corpus)

    def _send(self, here: Arena) -> tuple[Sample, dict[str, float]]:
        if not self.peer:
            sample, summary = self._copy(here)
            sent = float(summary["bytes"] - summary["omitted"])
            return sample, {"sent (KB)": sent / 1e3, "renamed": summary["renamed"]}
        link = here.link
        paths = f"{here.corpus.root}/", f"{link.destination}:{here.target}/"
        sample, _ = measure([["rsync", "-a", "-e", shlex.join(link.ssh()), *paths]], here.servers)
        return sample, {}


@dataclass(frozen=True)
class Growing(Copying):
    """A file that an instrument writes; the seconds are those from its end to its proof.

    It is copied again and again, or by a `watch` with a settling time of some seconds.
    """

    seconds: float = 30.0
    watch: bool = False

    @property
    def entrants(self) -> Sequence[Entrant]:
        if self.watch:
            return [Entrant(f"mydata-like watch, {SETTLE:.0f} s", WATCH, "MD5 of both sides")]
        return [Entrant(f"mydata-like copy, every {REST:.0f} s", OURS, "MD5 of both sides")]

    def prepare(self, arena: Arena) -> None:
        if not self._home(arena).exists():
            self._log_in(arena)

    def run(self, arena: Arena) -> Sequence[Sample]:
        arena.clear()
        data = arena.directory / "written"
        subprocess.run(["rm", "-rf", data, arena.directory / "closed"], check=True)
        (data / "set").mkdir(parents=True)
        (name,) = arena.corpus.files
        film = data / "set" / "film.raw"
        write = [sys.executable, "-m", "benchmarks.changing", arena.corpus.root / name, film]
        script = self._watch(arena, data) if self.watch else self._copy_again(arena, data)
        environment = f"HOME={self._home(arena)}", f"MYDATA_LIKE_HOME={arena.whole}"
        commands = [
            [*map(str, write), str(self.seconds)],
            ["env", *environment, "sh", "-c", script],
        ]
        sample, _ = measure(commands, arena.servers)
        closed = film.stat().st_mtime
        if not have_same_bytes(film, arena.target / "set" / "film.raw"):
            raise ContestError("the copy has other bytes")
        began = float((arena.directory / "began").read_text())
        facts = {WIRE: sample.loopback / arena.corpus.bytes}
        return [sample._replace(seconds=began + sample.seconds - closed, facts=facts)]

    def _copy_again(self, arena: Arena, data: Path) -> str:
        program = shlex.join([sys.executable, "-m", "mydata_like"])
        words = shlex.join([str(data / "set"), f"{arena.link.destination}:{arena.target}"])
        done = shlex.quote(str(arena.directory / "closed"))
        return (
            f"until d=$(ls {done} 2>/dev/null); {program} copy --json {words} >/dev/null "
            f'&& [ -n "$d" ]; do sleep {REST}; done'
        )

    def _watch(self, arena: Arena, data: Path) -> str:
        """Return the script that watches until a file of the full size is verified."""
        values = {
            "destination.kind": "host",
            "destination.address": f"{arena.link.destination}:{arena.target}",
            "data.directory": str(data),
            "filters.settle_seconds": SETTLE,
            "schedule.kind": "watch",
        }
        arena.whole.mkdir(exist_ok=True)
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
        (arena.whole / "settings.toml").write_text("".join(lines))
        program = shlex.join([sys.executable, "-m", "mydata_like"])
        events = shlex.quote(str(arena.whole / "events"))
        return (
            f"{program} watch --events > {events} & "
            f"until grep -q 'file_verified.*film.*\"size\": {arena.corpus.bytes},' {events}; "
            "do sleep 0.2; done; kill $!; wait $!; true"
        )


def make_growing_file(corpus: Corpus) -> list[Contestant]:
    """Return the contestants for a file that grows for half a minute, at most."""
    seconds = min(30.0, corpus.bytes / 7e6)  # as 4 GiB in ten minutes
    return [Growing(seconds=seconds), Growing(seconds=seconds, watch=True)]


def main() -> None:
    """Write a file slowly; files beside its data directory note its beginning and its end."""
    source, target, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    content, steps = source.read_bytes(), max(1, round(seconds / _TICK))
    began = time.time()
    (target.parents[2] / "began").write_text(str(began))
    with target.open("ab", buffering=0) as file:
        for step in range(steps):
            file.write(content[len(content) * step // steps : len(content) * (step + 1) // steps])
            time.sleep(max(0.0, began + (step + 1) * _TICK - time.time()))
    (target.parents[2] / "closed").touch()


if __name__ == "__main__":
    main()
