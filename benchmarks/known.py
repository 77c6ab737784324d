"""Nothing changed: a second run over files that are all verified, beside a dry run of rsync."""

import shlex
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arena import Arena
from benchmarks.contest import OURS, Entrant
from benchmarks.measure import ContestError, Sample, measure
from benchmarks.whole import Installation, both, entrants_of_run


class KnownRun:
    """`mydata-like run` a second time; its first run, which uploads all, is not timed."""

    def __init__(self) -> None:
        self._installation: Installation | None = None

    @property
    def entrants(self) -> Sequence[Entrant]:
        return entrants_of_run(OURS)

    def prepare(self, arena: Arena) -> None:
        directory = arena.directory / "known"
        self._installation = Installation.create(arena, directory, arena.stack)
        self._installation.run()

    def run(self, arena: Arena) -> Sequence[Sample]:
        assert self._installation is not None
        before = len(self._installation.requests())
        sample, summary = self._installation.run()
        asked = self._installation.requests(since=before)
        if summary["sent"] or summary["bytes"]:
            raise ContestError(f"{summary['sent']} files were sent again")
        about_files = sum("dataset_" in request for request in asked)
        facts = {
            "bytes sent": summary["bytes"],
            "datasets": len(arena.corpus.folders),
            "requests per dataset": about_files / len(arena.corpus.folders),
            "requests": len(asked),
            **Counter(asked),
        }
        return both(sample._replace(facts=facts), summary)


class KnownRsync:
    """`rsync -an` over the same ssh to a copy with the same sizes and times."""

    @property
    def entrants(self) -> Sequence[Entrant]:
        return [Entrant("rsync -an", "rsync -n", "sizes and times", ("rsync", "ssh", "cp"))]

    def prepare(self, arena: Arena) -> None:
        self._copy(arena).mkdir()
        source = f"{arena.corpus.root}/."
        subprocess.run(["cp", "-a", source, str(self._copy(arena))], check=True)

    def run(self, arena: Arena) -> Sequence[Sample]:
        link = arena.link
        command = [
            *("rsync", "-an", "--itemize-changes", "-e", shlex.join(link.ssh())),
            *(f"{arena.corpus.root}/", f"{link.destination}:{self._copy(arena)}/"),
        ]
        sample, printed = measure([command], arena.servers)
        if printed[0].strip():
            raise ContestError(f"it found changes: {printed[0].splitlines()[0]}")
        return [sample]

    def _copy(self, arena: Arena) -> Path:
        return arena.directory / "copy"
