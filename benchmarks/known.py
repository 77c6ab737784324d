"""Second runs after all files were verified, with no or few changes, compared with rsync."""

import shlex
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.arena import Arena
from benchmarks.contest import OURS, Entrant
from benchmarks.corpus import modify_some
from benchmarks.growth import ENGINE
from benchmarks.measure import ContestError, Sample, measure
from benchmarks.whole import Installation, both, entrants_of_run

UNCHANGED = f"{OURS}, nothing changed"
REQUESTS = "requests per dataset"


@dataclass
class KnownRun:
    """A second `mydata-like run`; the first run, which uploads all files, is not timed.

    With `modify`, some files are changed first, and a further run without changes has more rows.
    """

    modify: bool = False
    _installation: Installation | None = field(default=None, init=False)

    @property
    def entrants(self) -> Sequence[Entrant]:
        again = entrants_of_run(UNCHANGED, ", nothing changed") if self.modify else ()
        return [*entrants_of_run(OURS), *again]

    def prepare(self, arena: Arena) -> None:
        directory = arena.directory / "known"
        self._installation = Installation.create(arena, directory, arena.stack)
        self._installation.run()

    def run(self, arena: Arena) -> Sequence[Sample]:
        if not self.modify:
            return self._run(arena, modified=0)
        return [*self._run(arena, modify_some(arena.corpus)), *self._run(arena, modified=0)]

    def _run(self, arena: Arena, modified: int) -> Sequence[Sample]:
        assert self._installation is not None
        before = len(self._installation.requests())
        sample, summary = self._installation.run()
        asked = self._installation.requests(since=before)
        if summary["sent"] != modified:
            raise ContestError(f"{summary['sent']} files were sent instead of {modified}")
        if summary["bytes"] and not modified:
            raise ContestError(f"{summary['bytes']} bytes were sent although nothing had changed")
        about_files = sum("dataset_" in request for request in asked)
        facts = {
            ENGINE: sample.engine / 1e6,
            "bytes sent": summary["bytes"],
            "datasets": len(arena.corpus.folders),
            REQUESTS: about_files / len(arena.corpus.folders),
            "requests": len(asked),
            **Counter(asked),
        }
        return both(sample._replace(facts=facts), summary)


@dataclass(frozen=True)
class KnownRsync:
    """`rsync -a` over the same ssh to a copy; a dry run if nothing is modified.

    One file in `modify` is modified before each run. If it is `proven`, it compares checksums.
    """

    modify: int = 0
    proven: bool = False

    @property
    def entrants(self) -> Sequence[Entrant]:
        name, family = ("rsync -a", "rsync") if self.modify else ("rsync -an", "rsync -n")
        checks = "sizes and times"
        if self.proven:
            name, family, checks = f"{name}c", "rsync, proven", "checksums"
        return [Entrant(name, family, checks, ("rsync", "ssh", "cp"))]

    def prepare(self, arena: Arena) -> None:
        _copy(arena).mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", f"{arena.corpus.root}/.", str(_copy(arena))], check=True)

    def run(self, arena: Arena) -> Sequence[Sample]:
        modified = modify_some(arena.corpus, self.modify) if self.modify else 0
        link = arena.link
        command = [
            *(*self.entrants[0].name.split(), "--itemize-changes"),
            *("-e", shlex.join(link.ssh())),
            *(f"{arena.corpus.root}/", f"{link.destination}:{_copy(arena)}/"),
        ]
        sample, printed = measure([command], arena.servers)
        found = printed[0].splitlines()
        if len(found) != modified:
            raise ContestError(f"it found {len(found)} changes instead of {modified}")
        return [sample]


def _copy(arena: Arena) -> Path:
    return arena.directory / "copy"
