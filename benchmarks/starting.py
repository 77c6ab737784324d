"""The start-up time of programs: until they print their version, or paint their window."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.arena import Arena
from benchmarks.contest import OURS, Entrant
from benchmarks.measure import Sample, measure

VERSION, WINDOW = f"{OURS}, version", f"{OURS}, window"


@dataclass(frozen=True)
class Version:
    """A command that prints its version and ends."""

    entrant: Entrant
    command: tuple[str, ...]

    @property
    def entrants(self) -> Sequence[Entrant]:
        return [self.entrant]

    def prepare(self, arena: Arena) -> None:
        """Do nothing."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        return [measure([self.command], [])[0]]


@dataclass(frozen=True)
class Painted:
    """Our window, from the start of the process to the first frame."""

    @property
    def entrants(self) -> Sequence[Entrant]:
        return [Entrant("mydata-like gui, painted", WINDOW)]

    def prepare(self, arena: Arena) -> None:
        """Do nothing: every start has a new home folder."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        home = arena.directory / "home"
        sample, printed = measure([[sys.executable, "-m", "benchmarks.painted", str(home)]], [])
        return [sample._replace(seconds=float(printed[0]))]
