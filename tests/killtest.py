"""Kills runs at random moments and looks whether anything got lost: the kill test.

`python -m tests.killtest --rounds 40 [--files 2000] [--seed N]`

A cycle has five rounds on one server. Each round adds a fifth of the cycle's files, rewrites
a few of those that are there (so that records have to be repaired), starts the real command
and kills it by SIGKILL: the whole process group, or only the engine, whose channels then have
to end by themselves. The moment is drawn between the command's start and the time that an
undisturbed run over such a fifth took. In two rounds of four it is counted from the first request
that the server hears, since what happens before hurts nobody, and in one of four it comes a few
milliseconds after a request that changes something there. After each kill nothing may be
there twice or with false bytes, and neither window, tray nor `status` may say more than what the
server has. At a cycle's end one undisturbed run has to make everything complete, every view has to
say so, and a further run has nothing to do. The cycles use the SSH stacks, HTTP and archives in
turn.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import Popen, TimeoutExpired

from tests.claims import CUT_OFF, Claim, Views, find_disagreements, find_false_claims
from tests.invariants import check_complete, check_idle, check_untouched, find_falsehoods
from tests.site import Picture, Site, finish, kill_group, left_behind, open_site
from tests.truth import Inventory, Truth

ROUNDS_OF_A_CYCLE = 5
ARCHIVED = 'archive.rules=["* below 100 kB from 5 files", "* below 4 kB by dataset"]'
WAYS = {
    "libssh": ("transfer.ssh=libssh",),
    "paramiko": ("transfer.ssh=paramiko",),
    "system": ("transfer.ssh=system",),
    "http": ("transfer.method=http",),
    "archives": ("transfer.ssh=libssh", ARCHIVED),
}
REPLACES_NOTHING = "http"  # what came over HTTP has left the staging area, and stays as it is
FOLDERS = (
    "alice/Scan 1",
    "alice/Scan 1/deep/er/still",
    "alice/M\N{LATIN SMALL LETTER U WITH DIAERESIS}nster $(x) 'q'",
    "bob/Run & run",
    "bob/Run & run/-rf",
    "bob/plain/100%/a b",
)
ENDINGS = (".tif", " copy.tif", "'s.txt", " \N{MICROSCOPE}.csv", ";ls.dat", "$HOME", ".e\u0301")
CHANGES_OF_A_RUN = 20  # requests that change something, in about one run
LARGE_ONES = 60  # one file of so many has megabytes
REWRITTEN = 0.05  # the share of what is there that each round rewrites
HOUR = 3600
SAID = 5  # wrongs of a round, the rest is only counted


class Tree:
    """Local files that grow and change from round to round."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.rewritten: set[str] = set()  # names
        self._chance = chance
        self._files: list[Path] = []
        self._time = time.time() - 48 * HOUR

    def grow(self, count: int) -> None:
        """Add so many files."""
        for _ in range(count):
            number = len(self._files)
            folder = self.folder / self._chance.choice(FOLDERS)
            path = folder / f"f{number:05d}{self._chance.choice(ENDINGS)}"
            path.parent.mkdir(parents=True, exist_ok=True)
            large = number % LARGE_ONES == LARGE_ONES - 1
            self._write(path, self._chance.randrange(1_000_000, 3_000_000) if large else None)
            self._files.append(path)

    def rewrite(self) -> None:
        """Give some of the files other bytes, a few of them as many as before."""
        for path in self._chance.sample(self._files, int(len(self._files) * REWRITTEN)):
            same = self._chance.random() < 0.5
            self._write(path, path.stat().st_size if same else None)
            self.rewritten.add(path.name)

    def _write(self, path: Path, size: int | None) -> None:
        path.write_bytes(
            self._chance.randbytes(self._chance.randrange(6000) if size is None else size)
        )
        self._time += 1.0 + self._chance.random()
        os.utime(path, (self._time, self._time))


@dataclass
class Report:
    """What the rounds brought."""

    kills: int = 0
    early: int = 0  # runs that had ended before they were to be killed
    inside: int = 0  # kills that left something done and something to do
    wrongs: list[str] = field(default_factory=list)


class KillTest:
    """Rounds and cycles over data of one size."""

    def __init__(self, files: int, seed: int, say: Callable[[str], object]) -> None:
        self._share = max(1, files // ROUNDS_OF_A_CYCLE)
        self._chance = random.Random(seed)
        self._say = say
        self._durations: dict[str, tuple[float, float]] = {}
        self._heard = 0  # requests before the round
        self.report = Report()

    def run(self, rounds: int, ways: tuple[str, ...] = tuple(WAYS)) -> Report:
        """Do so many rounds, the last cycle shorter where they do not fill it."""
        done = 0
        while done < rounds:
            way = ways[done // ROUNDS_OF_A_CYCLE % len(ways)]
            count = min(ROUNDS_OF_A_CYCLE, rounds - done)
            self._in_a_folder(lambda folder: self._cycle(folder, way, range(done, done + count)))  # noqa: B023
            done += count
        return self.report

    def _in_a_folder(self, work: Callable[[Path], None]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="killtest-"))
        try:
            work(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _cycle(self, folder: Path, way: str, rounds: range) -> None:
        if way not in self._durations:
            self._in_a_folder(lambda other: self._measure(other, way))
        tree = Tree(folder / "data", self._chance)
        with open_site(folder) as site:
            for number in rounds:
                if way != REPLACES_NOTHING:
                    tree.rewrite()
                tree.grow(self._share)
                self._round(site, tree, number, way)
            self._finish(site, way, tree)

    def _measure(self, folder: Path, way: str) -> None:
        """Learn how long an undisturbed run takes, and how long after its first request."""
        Tree(folder / "data", self._chance).grow(self._share)
        with open_site(folder) as site:
            began = time.monotonic()
            process = site.start("run", "--json", settings=WAYS[way])
            _await(process, lambda: bool(site.server.requests))
            heard = time.monotonic()
            check_complete(site, finish(process))
            ended = time.monotonic()
        self._durations[way] = ended - began, ended - heard
        self._say(f"{way}: an undisturbed run over {self._share} files takes {ended - began:.1f} s")

    def _round(self, site: Site, tree: Tree, number: int, way: str) -> None:
        before = Picture.take(tree.folder)
        whole = number % 2 == 0  # the process group, else the engine alone
        self._heard = len(site.server.requests)
        process = site.start("run", "--json", settings=WAYS[way])
        moment = self._wait_for_the_moment(site, process, number, way)
        ended = process.poll() is not None
        if whole:
            kill_group(process)
        else:
            process.kill()
        process.wait()
        wrongs = [f"left behind: {one}" for one in left_behind(process.pid)]
        kill_group(process)
        process.communicate()
        if ended and process.returncode != 0:
            wrongs.append(f"the run ended by itself with exit code {process.returncode}")
        wrongs += find_falsehoods(site)
        wrongs += _find_false_claims(site, tree)
        wrongs += [f"the local file {name} changed" for name in before.differences()]
        self._tell(site, f"round {number + 1} {way}: {moment}", wrongs, ended=ended, tree=tree)

    def _wait_for_the_moment(self, site: Site, process: "Popen[str]", number: int, way: str) -> str:
        whole, work = self._durations[way]
        match number % 4:
            case 0:
                delay, since = self._chance.uniform(0, whole), "the start"
            case 2:
                change = self._chance.randrange(1, CHANGES_OF_A_RUN)
                _await(process, lambda: len(site.changes(self._heard)) >= change)
                delay, since = self._chance.uniform(0, 0.05), f"change {change}"
            case _:
                _await(process, lambda: len(site.server.requests) > self._heard)
                delay, since = self._chance.uniform(0, work), "the first request"
        try:
            process.wait(delay)
        except TimeoutExpired:
            return f"killed {delay:.2f} s after {since}"
        # The machine is faster than when the duration was measured.
        self._durations[way] = whole * 0.7, work * 0.7
        return f"ended before {delay:.2f} s after {since}"

    def _tell(self, site: Site, text: str, wrongs: list[str], *, ended: bool, tree: Tree) -> None:
        files = site.server.datafiles()
        here = len(site.place.expected_files())
        self.report.kills += not ended
        self.report.early += ended
        self.report.inside += not ended and 0 < len(files) < here
        self.report.wrongs += wrongs
        verified = sum(file.verified for file in files)
        self._say(f"{text}; {here} local files, {len(files)} records, {verified} verified")
        for wrong in wrongs[:SAID]:
            self._say(f"  WRONG: {wrong}")
        if len(wrongs) > SAID:
            self._say(f"  and {len(wrongs) - SAID} more")

    def _finish(self, site: Site, way: str, tree: Tree) -> None:
        before = Picture.take(site.data)
        try:
            check_complete(site, site.run(*WAYS[way]))
            truth = Truth.take(site, Inventory(tree.folder))
            disagreements = find_disagreements(Views(site).collect(truth), truth)
            assert not disagreements, disagreements[:SAID]
            check_idle(site, *WAYS[way])
            check_untouched(before)
        except AssertionError as error:
            self.report.wrongs.append(str(error))
            self._say(f"  WRONG: {error}")
        else:
            self._say(f"  complete: {len(before.entries)} names, each byte is there once")


def _find_false_claims(site: Site, tree: Tree) -> list[str]:
    """Return what window and `status` say that is more than the truth.

    A run that was killed before the ledger had heard of it leaves what was known before: of that
    only what is said of single files can be judged, as far as they have not changed since.
    """
    truth = Truth.take(site, Inventory(tree.folder))
    claims = Views(site).glance(truth)
    heard = Claim("status --json", CUT_OFF) in claims
    at_risk = {file.key for file in truth.at_risk}
    changed = {key for key in at_risk if key.rpartition("/")[2] in tree.rewritten}
    excused = frozenset(changed if heard else at_risk)
    return find_false_claims(claims, replace(truth, excused=excused), unseen=True)


def _await(process: "Popen[str]", happened: Callable[[], bool]) -> None:
    """Wait until something has happened, or the command has ended."""
    while not happened():
        try:
            process.wait(0.005)
        except TimeoutExpired:
            continue
        return


def main() -> int:
    """Do what the command line says; the exit code is 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--way", choices=tuple(WAYS), action="append")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    _say(f"seed {seed}")
    test = KillTest(options.files, seed, _say)
    report = test.run(options.rounds, tuple(options.way or WAYS))
    _say(
        f"{options.rounds} rounds: {report.kills} kills, {report.inside} of them in the middle of "
        f"the records, {report.early} runs ended before; {len(report.wrongs)} wrongs"
    )
    return 1 if report.wrongs else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
