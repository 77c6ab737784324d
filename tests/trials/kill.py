"""The kill test: kill runs at random moments and check that no data is lost.

`python -m tests.trials.kill --rounds 40 [--files 2000] [--seed N] [--rung NAME] [--stack NAME]`

A cycle has an undisturbed run and then five rounds on one server. Each of them adds a fifth of
`--files`. A round also rewrites a few existing files (so that records have to be repaired), starts
the real command and kills it with SIGKILL: either the whole process group, or only the engine,
whose channels then have to end automatically. The moment is random, up to the duration of an
undisturbed run over such a fifth. In two rounds of four it counts from the first request to the
server, because nothing can go wrong before, and in one of four it is a few milliseconds after a
request that changes something there.

After each kill, no file may be stored twice or with wrong bytes, and neither window, tray nor
`status` may claim more than what the server has. A second installation without any ledger then
looks at the same files, and may not find one safe of which the server has other bytes. At the end
of a cycle, one undisturbed run must complete everything, every view must show that, and a further
run must have nothing to do.

Replaced content must be kept, and the table counts the completed replacements. Nothing is rewritten
where the host cannot keep earlier content (scp, HTTP).

Changed files are replaced without a question. With `--defaults` they may be held; they are released
at the end of a cycle.

Each cycle has a staging host of one kind, or one service of object storage if `make s3-hosts` has
built it. Each round draws a rung that works there and an SSH library from a shuffled deck of all
combinations, so that a long test covers each. At the end, a table shows the results of each rung.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import md5
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from threading import Timer
from typing import Generic, TypeVar

from mydata_like.app.settings_service import save_settings
from mydata_like.demo.uploaders import ScpAddress
from tests.faults.tcpproxy import TcpProxy
from tests.invariants import (
    check_complete,
    check_idle,
    check_untouched,
    find_falsehoods,
    list_known,
    opened_ledger,
)
from tests.object_site import use_storage
from tests.s3_service import PROGRAMS, S3Service, find_program
from tests.site import (
    Picture,
    Site,
    close_streams,
    finish,
    kill_group,
    left_behind,
    open_site,
)
from tests.sshd_fixture import scp_only, sftp_only
from tests.staging import use_folder
from tests.trials.claims import CUT_OFF, Claim, Views, find_disagreements, find_false_claims
from tests.trials.truth import Inventory, Truth

Card = TypeVar("Card")
ROUNDS_OF_A_CYCLE = 5
ARCHIVED = 'archive.rules=["* below 100 kB from 5 files", "* below 4 kB by dataset"]'
STACKS = ("libssh", "paramiko")
AWAY = 0.004  # seconds each way to a host that is far enough for several streams
STRIPED = 34 * 1024 * 1024  # bytes of a file that is sent in several streams
FOLDER = "folder"  # the location of the storage box, in the place of a staging host
OVER_HTTP = "http"  # files sent over HTTP are not in the staging area, and cannot be replaced
SERVICES = {f"s3-{name}": name for name in PROGRAMS}  # the programs of the rungs
WITHOUT_SSH = (OVER_HTTP, *SERVICES)
KEEPS_NOTHING = (OVER_HTTP, "scp")  # hosts where changed files wait for the user
PATIENCE = 120.0  # seconds for a second installation to look at all files
LOOKED_AT = ("file_verified", "file_wanted", "file_waiting", "file_failed")  # events of one file


@dataclass(frozen=True)
class Rung:
    """A transfer method: the kind of host on which it works, and the settings that select it.

    `shown` is its name in the program's messages about channels.
    """

    host: str
    shown: str = "shell"
    settings: tuple[str, ...] = ()
    latency: float = 0.0  # seconds each way
    large: int = 0  # bytes of one more file in each round


RUNGS = {
    "tar": Rung("shell"),
    "whole": Rung("shell", settings=("transfer.batch_below=0",)),
    "striped": Rung("shell", latency=AWAY, large=STRIPED),
    "sftp": Rung("sftp", shown="sftp"),
    "sftp-striped": Rung("sftp", shown="sftp", latency=AWAY, large=STRIPED),
    "scp": Rung("scp", shown="scp"),
    "archives": Rung("archives", settings=(ARCHIVED,)),
    FOLDER: Rung(FOLDER, shown=FOLDER, large=STRIPED),
    OVER_HTTP: Rung(OVER_HTTP, settings=("transfer.method=http",)),
    **{rung: Rung(rung, shown="s3", large=STRIPED) for rung in SERVICES},
}
# On Windows the staging host is asyncssh, which offers scp and SFTP; the program prefers SFTP.
MISSING = {rung for rung, program in SERVICES.items() if not find_program(program)}
HERE = (
    ("sftp", OVER_HTTP) if os.name == "nt" else tuple(name for name in RUNGS if name not in MISSING)
)
LOOKS = 4 if os.name == "nt" else 1  # rounds of which one reads the window, which is slow in Wine
Way = tuple[str, str]  # a rung's name, and an SSH stack's


def settings_of(way: Way) -> tuple[str, ...]:
    """Return the settings that select a transfer method and an SSH library."""
    rung, stack = way
    return (*RUNGS[rung].settings, f"transfer.ssh={stack}")


def options_of(host: str, folder: Path) -> tuple[str, ...]:
    """Return the sshd options of a kind of staging host; none for asyncssh (see `HERE`)."""
    match host:
        case _ if os.name == "nt":
            return ()
        case "sftp":
            return sftp_only()
        case "scp":
            return (*scp_only(folder), "Subsystem sftp /bin/false")
        case _:
            return ()


FOLDERS = (
    "alice/Scan 1",
    "alice/Scan 1/deep/er/still",
    "alice/M\N{LATIN SMALL LETTER U WITH DIAERESIS}nster $(x) 'q'",
    "bob/Run & run",
    "bob/Run & run/-rf",
    "bob/plain/100%/a b",
)
ENDINGS = (".tif", " copy.tif", "'s.txt", " \N{MICROSCOPE}.csv", ";ls.dat", "$HOME", ".e\u0301")
CHANGES_OF_A_RUN = 20  # the approximate number of changing requests in a run
LARGE_ONES = 60  # one in this number of files has megabytes
REWRITTEN = 0.15  # the share of existing files that each round rewrites
CHANNEL = re.compile(r"^Channel \d+ to \S+ \((\w+)", re.M)
HOUR = 3600
SAID = 5  # errors of a round that are printed; the others are counted


class Tree:
    """Local files that grow and change from round to round."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.rewritten: set[str] = set()  # names
        self._chance = chance
        self._files: list[Path] = []
        self._time = time.time() - 48 * HOUR

    def grow(self, count: int) -> None:
        """Add `count` files."""
        for _ in range(count):
            number = len(self._files)
            folder = self.folder / self._chance.choice(FOLDERS)
            path = folder / f"f{number:05d}{self._chance.choice(ENDINGS)}"
            path.parent.mkdir(parents=True, exist_ok=True)
            large = number % LARGE_ONES == LARGE_ONES - 1
            self._write(path, self._chance.randrange(1_000_000, 3_000_000) if large else None)
            self._files.append(path)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def files(self) -> Sequence[Path]:
        return self._files

    def add_large(self, size: int) -> None:
        """Add one file of `size` bytes."""
        path = self.folder / FOLDERS[0] / f"large{len(self._files):05d}.raw"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write(path, size)
        self._files.append(path)

    def rewrite(self) -> None:
        """Write other bytes to some of the files, to about half of them of the same size."""
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
    """The results of rounds."""

    kills: int = 0
    early: int = 0  # runs that ended before the moment of the kill
    inside: int = 0  # kills after some files were registered, and before all were
    wrongs: list[str] = field(default_factory=list)
    replaced: int = 0  # files whose earlier bytes are kept
    asked: int = 0  # files that a second installation found safe

    def add(self, other: "Report") -> None:
        """Add the results of other rounds."""
        self.kills += other.kills
        self.early += other.early
        self.inside += other.inside
        self.replaced += other.replaced
        self.asked += other.asked
        self.wrongs += other.wrongs


class Deck(Generic[Card]):
    """A shuffled deck: all cards are drawn in random order before any is drawn again."""

    def __init__(self, cards: Sequence[Card], chance: random.Random) -> None:
        self._cards = cards
        self._chance = chance
        self._left: list[Card] = []

    def draw(self) -> Card:
        if not self._left:
            self._left = self._chance.sample(self._cards, len(self._cards))
        return self._left.pop()


class KillTest:
    """Rounds and cycles with data of one size, for these rungs and SSH libraries."""

    def __init__(
        self,
        files: int,
        seed: int,
        say: Callable[[str], object],
        rungs: Sequence[str] = HERE,
        stacks: Sequence[str] = STACKS,
        *,
        defaults: bool = False,
    ) -> None:
        self._defaults = defaults
        self._share = max(1, files // ROUNDS_OF_A_CYCLE)
        self._chance = random.Random(seed)
        self._say = say
        self._durations: dict[str, tuple[float, float]] = {}
        self._requests = 0  # before the round
        self._ways: dict[str, Deck[Way]] = {}
        hosts = Counter(RUNGS[rung].host for rung in rungs)
        for host in hosts:
            ways = [
                (rung, stack)
                for rung in rungs
                if RUNGS[rung].host == host
                for stack in (stacks[:1] if host in WITHOUT_SSH else stacks)
            ]
            self._ways[host] = Deck(ways, self._chance)
        # A host with more rungs is drawn more often.
        often = [host for host, count in hosts.items() for _ in range((count + 1) // 2)]
        self._hosts = Deck(often, self._chance)
        self.reports: dict[Way, Report] = {}

    @property
    def report(self) -> Report:
        """The results of all rounds."""
        whole = Report()
        for report in self.reports.values():
            whole.add(report)
        return whole

    def run(self, rounds: int) -> Report:
        """Execute `rounds` rounds; the last cycle may be shorter."""
        done = 0
        while done < rounds:
            host = self._hosts.draw()
            count = min(ROUNDS_OF_A_CYCLE, rounds - done)
            self._in_a_folder(lambda folder: self._cycle(folder, host, range(done, done + count)))  # noqa: B023
            done += count
        return self.report

    def table(self) -> list[str]:
        """Return a table with a line for each rung and SSH library."""
        lines = [
            f"{'rung':<14}{'stack':<10}{'kills':>6}{'inside':>8}{'before':>8}{'asked':>8}"
            f"{'replaced':>10}{'wrongs':>8}"
        ]
        for (rung, stack), it in sorted(self.reports.items()):
            ssh = "" if rung in WITHOUT_SSH else stack
            counts = f"{it.kills:>6}{it.inside:>8}{it.early:>8}{it.asked:>8}"
            counts += f"{it.replaced:>10}{len(it.wrongs):>8}"
            lines.append(f"{rung:<14}{ssh:<10}{counts}")
        return lines

    def _in_a_folder(self, work: Callable[[Path], None]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="kill-trials-"))
        try:
            work(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _cycle(self, folder: Path, host: str, rounds: range) -> None:
        tree, way = Tree(folder / "data", self._chance), self._ways[host].draw()
        tree.grow(self._share)
        with self._site(folder, host) as (site, proxy):
            check_complete(site, site.run(*settings_of(way)))  # rounds then replace verified files
            for number in rounds:
                way = self._ways[host].draw()
                rung = RUNGS[way[0]]
                if way[0] not in self._durations:
                    self._in_a_folder(partial(self._measure, way))
                if host not in KEEPS_NOTHING:
                    tree.rewrite()
                tree.grow(self._share)
                if rung.large:
                    tree.add_large(rung.large)
                proxy.latency = rung.latency
                self._round(site, tree, number, way)
            self._finish(site, way, tree)

    @contextmanager
    def _site(self, folder: Path, host: str) -> Iterator[tuple[Site, TcpProxy]]:
        """Open a site, and a proxy in front of its staging host that can add latency."""
        folder.mkdir(exist_ok=True)
        with ExitStack() as stack:
            site = stack.enter_context(open_site(folder, options=options_of(host, folder)))
            sshd = site.sshd
            proxy = stack.enter_context(TcpProxy(sshd.port))
            address = (sshd.username, sshd.host, proxy.port, (sshd.fingerprint,))
            site.server.set_address(ScpAddress(*address))
            if not self._defaults:
                save_settings(site.config, {"data.changed": "replace", "data.brake": 0})
            if host == FOLDER:
                use_folder(site)
            if host in SERVICES:
                service = stack.enter_context(S3Service(SERVICES[host], folder / "s3"))
                use_storage(site, service.url)
            yield site, proxy

    def _measure(self, way: Way, folder: Path) -> None:
        """Measure the duration of an undisturbed run, in all and since its first request."""
        rung = RUNGS[way[0]]
        tree = Tree(folder / "data", self._chance)
        tree.grow(self._share)
        if rung.large:
            tree.add_large(rung.large)
        with self._site(folder, rung.host) as (site, proxy):
            proxy.latency = rung.latency
            began = time.monotonic()
            process = site.start("run", "--json", settings=settings_of(way))
            _await(process, lambda: bool(site.server.requests))
            first = time.monotonic()
            done = finish(process)
            ended = time.monotonic()
            check_complete(site, done)
        assert not _find_other_rungs(way, done.complaints), done.complaints
        self._durations[way[0]] = ended - began, ended - first
        took = f"over {len(tree)} files takes {ended - began:.1f} s"
        self._say(f"{way[0]}: an undisturbed run {took}")

    def _round(self, site: Site, tree: Tree, number: int, way: Way) -> None:
        before = Picture.take(tree.folder)
        whole = number % 2 == 0  # kill the process group, otherwise the engine alone
        self._requests = len(site.server.requests)
        process = site.start("run", "--json", settings=settings_of(way))
        moment = self._wait_for_the_moment(site, process, number, way[0])
        ended = process.poll() is not None
        if whole:
            kill_group(process)
        else:
            process.kill()
        process.wait()
        wrongs = [f"left behind: {one}" for one in left_behind(process.pid)]
        kill_group(process)
        _, complaints = process.communicate()
        wrongs += _find_other_rungs(way, complaints)
        if ended and process.returncode != 0:
            wrongs.append(f"the run ended before the kill with exit code {process.returncode}")
        wrongs += find_falsehoods(site)
        asked, lies = _ask_second(site, tree, way)
        wrongs += lies
        wrongs += _find_false_claims(site, tree, window=number % LOOKS == 0)
        wrongs += [f"the local file {name} changed" for name in before.differences()]
        self._count(site, way, wrongs, ended=ended)
        self.reports[way].asked += asked
        self._tell(site, f"round {number + 1} {' over '.join(way)}: {moment}", wrongs)

    def _wait_for_the_moment(
        self, site: Site, process: "Popen[str]", number: int, rung: str
    ) -> str:
        whole, work = self._durations[rung]
        match number % 4:
            case 0:
                delay, since = self._chance.uniform(0, whole), "the start"
            case 2:
                change = self._chance.randrange(1, CHANGES_OF_A_RUN)
                _await(process, lambda: len(site.changes(self._requests)) >= change)
                delay, since = self._chance.uniform(0, 0.05), f"change {change}"
            case _:
                _await(process, lambda: len(site.server.requests) > self._requests)
                delay, since = self._chance.uniform(0, work), "the first request"
        try:
            process.wait(delay)
        except TimeoutExpired:
            return f"killed {delay:.2f} s after {since}"
        # The machine is faster than during the measurement.
        self._durations[rung] = whole * 0.7, work * 0.7
        return f"ended before {delay:.2f} s after {since}"

    def _count(self, site: Site, way: Way, wrongs: list[str], *, ended: bool) -> None:
        records, here = len(site.server.datafiles()), len(site.place.expected_files())
        inside = not ended and 0 < records < here
        report = Report(not ended, ended, inside, wrongs)
        self.reports.setdefault(way, Report()).add(report)

    def _tell(self, site: Site, text: str, wrongs: list[str]) -> None:
        files = site.server.datafiles()
        here = len(site.place.expected_files())
        verified = sum(file.verified for file in files)
        self._say(f"{text}; {here} local files, {len(files)} records, {verified} verified")
        for wrong in wrongs[:SAID]:
            self._say(f"  WRONG: {wrong}")
        if len(wrongs) > SAID:
            self._say(f"  and {len(wrongs) - SAID} more")

    def _finish(self, site: Site, way: Way, tree: Tree) -> None:
        before = Picture.take(site.data)
        try:
            if self._defaults:
                _confirm_held(site, way)
            check_complete(site, site.run(*settings_of(way)))
            truth = Truth.take(site, Inventory(tree.folder))
            disagreements = find_disagreements(Views(site).collect(truth), truth)
            assert not disagreements, disagreements[:SAID]
            check_idle(site, *settings_of(way))
            check_untouched(before)
            self.reports[way].replaced += check_kept(site)
        except AssertionError as error:
            self.reports[way].wrongs.append(str(error))
            self._say(f"  WRONG: {error}")
        else:
            self._say(f"  complete: {len(before.entries)} names, each stored once")


def _confirm_held(site: Site, way: Way) -> None:
    """Let the user choose to replace what is held, if anything is."""
    site.run(*settings_of(way))
    chosen = site.command("changed", "replace", "--all")
    assert chosen.code == 0, chosen.output[-1000:]


def _find_other_rungs(way: Way, complaints: str) -> list[str]:
    """Return the unexpected transfer methods of opened channels."""
    if way[0] == OVER_HTTP:
        return []
    expected = RUNGS[way[0]].shown
    return [f"a channel by {shown}" for shown in CHANNEL.findall(complaints) if shown != expected]


def _ask_second(site: Site, tree: Tree, way: Way) -> tuple[int, list[str]]:
    """Ask an installation without a ledger what is safe; return how many are, and falsehoods.

    It is ended before it can send anything.
    """
    with tempfile.TemporaryDirectory(prefix="second-") as state:
        state_directory = f"advanced.state_directory={state}"
        settings = (*settings_of(way), state_directory, "limits.bandwidth=0.0001")
        process = site.start("run", "--events", settings=settings)
        safe, left = list[str](), len(tree)
        assert process.stdout
        guard = Timer(PATIENCE, kill_group, (process,))
        guard.start()
        for line in process.stdout:
            event = json.loads(line)
            left -= event["event"] in LOOKED_AT
            if event["event"] == "file_verified":
                safe.append(event["path"].rpartition("/")[2])
            if left <= 0 or event["event"] == "run_finished":
                break
        guard.cancel()
        kill_group(process)
        close_streams(process)
    if left > 0 and not safe:
        return 0, ["a second installation looked at nothing"]
    here = {path.name: path for path in tree.files}
    stored = {file.filename: file for file in site.server.datafiles()}
    lies = []
    for name in set(safe) & set(stored):  # files in archives have no record of their own
        file, local = stored[name], md5(here[name].read_bytes()).hexdigest()
        there = md5(file.path.read_bytes()).hexdigest() if file.path.exists() else ""
        if not (file.verified and file.md5sum == local == there):
            lies.append(f"a second installation finds {name} safe")
    return len(safe), lies


def check_kept(site: Site) -> int:
    """Check that replaced content is kept; return how often that is so."""
    with opened_ledger(site) as ledger:
        copies = [it for it in ledger.find_kept() if it.until] if ledger else []
    top = Path(site.server.box_location)
    for copy in copies:
        places = top / copy.path, top / ".mydata-old" / copy.path
        found = next((place for place in places if place.exists()), None)
        assert found, f"{copy.path} is not kept"
        assert md5(found.read_bytes()).hexdigest() == copy.checksum, f"{copy.path} is damaged"
    return len(copies)


def _find_false_claims(site: Site, tree: Tree, *, window: bool) -> list[str]:
    """Return the claims of window and `status` that exceed the truth.

    If a run was killed before it was recorded in the ledger, the claims are those from before the
    run. Of these, only claims about single unchanged files are checked. If it was killed before it
    found a file, no view can know that file.
    """
    truth = Truth.take(site, Inventory(tree.folder))
    claims = Views(site).glance(truth) if window else Views(site).ask_status()
    recorded = Claim("status --json", CUT_OFF) in claims
    at_risk = {file.key for file in truth.at_risk}
    changed = {key for key in at_risk if key.rpartition("/")[2] in tree.rewritten}
    excused = frozenset(changed | (at_risk - list_known(site)) if recorded else at_risk)
    return find_false_claims(claims, replace(truth, excused=excused), unseen=True)


def _await(process: "Popen[str]", happened: Callable[[], bool]) -> None:
    """Wait until `happened` is true or the command has ended."""
    while not happened():
        try:
            process.wait(0.005)
        except TimeoutExpired:
            continue
        return


def main() -> int:
    """Execute the rounds of the command line; the exit code is 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rung", choices=HERE, action="append")
    parser.add_argument("--stack", choices=STACKS, action="append")
    parser.add_argument("--defaults", action="store_true", help="hold changed files")
    options = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    _say(f"seed {seed}")
    rungs, stacks = options.rung or HERE, options.stack or STACKS
    test = KillTest(options.files, seed, _say, rungs, stacks, defaults=options.defaults)
    began = time.monotonic()
    report = test.run(options.rounds)
    for line in test.table():
        _say(line)
    _say(
        f"{options.rounds} rounds: {report.kills} kills, {report.inside} of them in the middle of "
        f"the records, {report.early} runs ended before; {report.replaced} files were replaced, "
        f"{report.asked} found safe by a second installation; {len(report.wrongs)} errors; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if report.wrongs else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
