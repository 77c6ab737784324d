"""A complete site with one bottleneck: files, uploader, staging host and server."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.arena import Arena
from benchmarks.channels import follow
from benchmarks.corpus import Corpus
from benchmarks.ground import open_sshd
from benchmarks.groups import Group, open_group
from benchmarks.injection import Bottleneck, Injection
from benchmarks.measure import ContestError
from benchmarks.reserve import Reserve
from benchmarks.slowdisk import forget, open_disk
from benchmarks.whole import Installation
from mydata_like.settings.transfer_sections import Transfer

_COPIES = 20  # of each large file in memory: more than a run can send in its time
_BEGINNING = 1.0  # seconds at the start of a run that are not counted, while windows fill
_SWEPT = 5.0  # seconds of each run of a sweep
_TURNS = 3
_TURN = 15.0  # seconds of each run of a comparison
_SETTLING = 5.0  # seconds of these that are not counted, while the number of channels changes
_STAGED = 4 * 2**30  # bytes that a run may send in its time
_PERIOD = 5_000  # microseconds of the processor quota; short, so that processors seem slow
_NEVER = ("--verify-delay", "600")  # verification by the embedded server would use processors
_NUMBERS = (1, 2, 4, 8)
_CIPHERS = Transfer().ciphers


class Plan(NamedTuple):
    """The plan of all rounds: test files, duration, and whether to sweep."""

    directory: Path
    large: Corpus
    tiny: Corpus
    seconds: float
    sweep: bool


class Site:
    """Data, uploader, staging host and server with one bottleneck between them."""

    def __init__(
        self, plan: Plan, bottleneck: Bottleneck, injection: Injection, stack: ExitStack
    ) -> None:
        self._plan, self._injection, self._stack = plan, injection, stack
        self._tiny = bottleneck.tiny
        stack.callback(shutil.rmtree, plan.directory, ignore_errors=True)
        plan.directory.mkdir()
        self._prefix = self._hold_back("here", injection.here).prefix if injection.here else []
        self._corpus = self._lay_files()
        ground = stack.enter_context(open_sshd(plan.directory / "sshd", injection.wire))
        self._reserve = stack.enter_context(Reserve(plan.directory))
        self._arena = Arena(
            **ground._asdict(),
            corpus=self._corpus,
            directory=plan.directory,
            stack=stack,
            reserve=self._reserve,
        )
        if injection.there:
            self._hold_back("there", injection.there).take(ground.servers)
        self._installation = self._install()

    def ask(self, *, apply: bool = False) -> dict[str, Any]:
        """Return the result of the speed test, after earlier runs if it needs their records."""
        self._command("register")
        if self._tiny:
            self._run_to_its_end()  # the first run creates the experiments on the server
            self._lay("earlier")
            self._run_to_its_end()
        self._reserve.renew(_STAGED)
        printed = self._command("doctor", "--quick", "--json", *["--apply"] * apply)
        found: dict[str, Any] = json.loads(printed)
        return found

    def carry(self) -> float:
        """Return the bytes a second of a run."""
        if self._tiny:
            self._lay("now")
            return self._run_to_its_end()
        return self._follow((), self._plan.seconds, _BEGINNING)

    def _follow(self, options: Iterable[str], seconds: float, since: float) -> float:
        self._reserve.renew(_STAGED)
        command = self._installation.command("--events", "--brief", *options)
        return follow([*self._prefix, *command], seconds).speed(since)

    def sweep(self) -> Iterator[tuple[str, float]]:
        """Yield the speed of each cipher and number of channels."""
        for cipher, number in product(_CIPHERS, _NUMBERS):
            yield f"{cipher} {number}", self._carry_with(fix(f"{cipher} {number}"))

    def compare(
        self, advised: Mapping[str, object], best: Mapping[str, object]
    ) -> Iterator[tuple[float, float]]:
        """Yield pairs of speeds, with the recommendation and with the sweep's best, in turns.

        The sweep's best is measured again, because it may have been best by chance.
        """
        for _ in range(_TURNS):
            yield (
                self._carry_with(advised, _TURN, _SETTLING),
                self._carry_with(best, _TURN, _SETTLING),
            )

    def _carry_with(
        self, settings: Mapping[str, object], seconds: float = _SWEPT, since: float = _BEGINNING
    ) -> float:
        """Return the bytes a second of a run with other settings, on a new server."""
        self._installation.server.kill()
        shutil.rmtree(self._installation.directory, ignore_errors=True)
        self._installation = self._install()
        pairs = [("--set", f"{key}={json.dumps(value)}") for key, value in settings.items()]
        return self._follow(chain(*pairs), seconds, since)

    def _hold_back(self, side: str, share: float) -> Group:
        """Create a control group for one side, limited to a number of processors."""
        rules = {
            "cpu.cfs_period_us": str(_PERIOD),
            "cpu.cfs_quota_us": str(int(share * _PERIOD)),
        }
        return self._stack.enter_context(open_group("cpu", side, rules))

    def _install(self) -> Installation:
        """Start a server with an uploader, and add the bottleneck to them."""
        injection = self._injection
        made = Installation.create(
            self._arena,
            # A new folder each time: transfers in progress still create files in the last one.
            Path(tempfile.mkdtemp(prefix="installation-", dir=self._plan.directory)),
            self._stack,
            settings=injection.settings,
            serving=(*(() if self._tiny else _NEVER), "--latency", str(injection.latency)),
        )
        self._stack.callback(made.server.kill)
        if injection.staging:
            image = self._plan.directory / "staging.img"
            disk = open_disk(image, made.server.box_location, injection.staging)
            self._stack.enter_context(disk).group.take(self._arena.servers)
        return made

    def _lay_files(self) -> Corpus:
        """Create the files to send: as links in memory, or on a slow disk."""
        root = self._plan.directory / "data"
        root.mkdir()
        if self._tiny:
            (root / "first").mkdir()
            (root / "first" / "file").write_bytes(b"first")
            return self._plan.tiny._replace(root=root)
        if not self._injection.source:
            return lay(self._plan.large, root, tuple(map(str, range(_COPIES))), link=True)
        image = self._plan.directory / "source.img"
        disk = self._stack.enter_context(open_disk(image, root, self._injection.source))
        self._prefix += disk.group.prefix
        laid = lay(self._plan.large, root, ("once",), link=False)
        forget(disk)
        return laid

    def _lay(self, name: str) -> None:
        """Create links to all tiny files as new files."""
        lay(self._plan.tiny, self._corpus.root, (name,), link=True)

    def _run_to_its_end(self) -> float:
        sums = json.loads(self._command("run", "--json").strip().splitlines()[-1])
        speed: float = sums["bytes"] / sums["seconds"]
        return speed

    def _command(self, name: str, *options: str) -> str:
        command = [*self._prefix, *self._installation.command(*options, name=name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ContestError(f"{name} ended with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout


def fix(name: str) -> Mapping[str, object]:
    """Return the settings of a cipher and a number of channels, by their name in a sweep."""
    cipher, _, number = name.partition(" ")
    return {"transfer.ciphers": [cipher], "transfer.channels": int(number)}


def lay(corpus: Corpus, root: Path, copies: Sequence[str], *, link: bool) -> Corpus:
    """Create copies of a corpus below a root, in folders whose names end with the copy's name."""
    put = os.link if link else shutil.copy2
    for copy in copies:
        for folder in corpus.folders:
            (root / f"{folder}-{copy}").mkdir()
        for path in corpus.files:
            folder, _, name = path.partition("/")
            put(corpus.root / path, root / f"{folder}-{copy}" / name)
    folders = [f"{folder}-{copy}" for copy in copies for folder in corpus.folders]
    return corpus._replace(root=root, folders=tuple(folders))
