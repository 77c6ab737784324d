"""The trial of `get`: kill it at random moments, tamper with its destination, and check all files.

`python -m tests.trials.get --rounds 30 [--files 200] [--seed N]`

In each round, files are copied to a host or to a folder, and some are changed, truncated or removed
there. The real `get` is killed several times after a random number of files, and then ends by
itself. After each kill, every file that has a name must have the bytes that were copied. At the end
all files must be here but those that were tampered with, and no temporary names must be left.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.copy_site import KINDS, CopySite, look
from tests.openssh import open_ssh
from tests.site import close_streams, finish, kill_group

PATIENCE = 120.0  # seconds
KILLS = 3  # of a round
ENDINGS = (b".tif", b"\xff.raw", b" '.txt", b"\n", b"\\n", b"-\r", b"*", b".")
FOLDERS = (b"", b"run 1", b"run 1/deep/er", b"-rf", b"caf\xe9", b"new\nline")
PART = b".mydata-get-"


@dataclass
class Report:
    """The results of rounds."""

    rounds: int = 0
    kills: int = 0
    inside: int = 0  # kills after some files were here, and before all were
    files: int = 0
    tampered: int = 0
    wrongs: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills} kills ({self.inside} inside), {self.files} files "
            f"at the ends, {self.tampered} tampered, {len(self.wrongs)} wrongs"
        )


class Round:
    """One source, one destination and one local folder that gets the files back."""

    def __init__(self, site: CopySite, chance: random.Random, files: int, report: Report) -> None:
        self._site = site
        self._chance = chance
        self._files = files
        self._report = report
        self._source = os.fsencode(site.data / "src")
        self._here = os.fsencode(site.folder / "here")

    def run(self) -> None:
        """Copy, tamper, and get the files back."""
        self._make()
        copied = self._site.copy(self._site.data / "src")
        if copied.code:
            self._wrong(f"copy has failed: {copied.complaints}")
            return
        ours = {path: it for path, it in look(self._source).items() if it.kind == "file"}
        tampered = self._tamper(sorted(ours))
        for _ in range(KILLS):
            self._kill(len(ours))
            self._check(ours, tampered)
        ended = finish(self._start(), PATIENCE)
        here = self._check(ours, tampered)
        if missing := ours.keys() - tampered - here:
            self._wrong(f"{sorted(missing)} are not here: {ended.output} {ended.complaints}")
        if left := [path for path in look(self._here) if PART in path]:
            self._wrong(f"{left} are left")
        if ended.code != bool(tampered):
            self._wrong(f"exit code {ended.code}: {ended.output} {ended.complaints}")
        self._report.rounds += 1
        self._report.files += len(here)
        self._report.tampered += len(tampered)

    def _make(self) -> None:
        chance = self._chance
        for number in range(self._files):
            size = chance.choice((0, 10, chance.randrange(5000), chance.randrange(400_000)))
            size = chance.randrange(9_000_000) if chance.random() < 0.02 else size
            folder = os.path.join(self._source, chance.choice(FOLDERS))
            os.makedirs(folder, exist_ok=True)
            name = b"%05d%b" % (number, chance.choice(ENDINGS))
            with open(os.path.join(folder, name), "wb") as file:
                file.write(chance.randbytes(size))

    def _tamper(self, paths: list[bytes]) -> set[bytes]:
        """Change some files at the destination; return their paths."""
        chance, changed = self._chance, set[bytes]()
        for path in chance.sample(paths, chance.choice((0, 1, len(paths) // 10))):
            there = os.path.join(os.fsencode(self._site.there / "src"), path)
            size = os.path.getsize(there)
            kind = chance.randrange(3) if size else 2
            if kind == 0:
                with open(there, "r+b") as file:
                    file.seek(chance.randrange(size))
                    before = file.read(1)
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([before[0] ^ 1 << chance.randrange(8)]))
            elif kind == 1:
                os.truncate(there, chance.randrange(size))
            else:
                os.unlink(there)
            changed.add(path)
        return changed

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        source = f"{self._site.target}/src/"
        return self._site.start_command("get", source, self._here, "--replace", *words)

    def _kill(self, files: int) -> None:
        """Start the command, and kill it once a random number of files is here."""
        wanted = self._chance.randrange(files)
        process = self._start("--bandwidth", str(self._chance.choice((0, 5, 30))))
        deadline = time.monotonic() + PATIENCE
        seen = 0
        while process.poll() is None and seen <= wanted and time.monotonic() < deadline:
            seen = sum(len(names) for _, _, names in os.walk(self._here))
        try:
            process.wait(self._chance.random() * 0.1)
        except subprocess.TimeoutExpired:
            self._report.kills += 1
            self._report.inside += bool(seen)
        kill_group(process)
        close_streams(process)

    def _check(self, ours: dict[bytes, object], tampered: set[bytes]) -> set[bytes]:
        """Check that each file that has a name has its bytes; return them."""
        if not os.path.isdir(self._here):
            return set()
        found = {
            path: it
            for path, it in look(self._here).items()
            if it.kind == "file" and PART not in path
        }
        for path, it in found.items():
            if path not in ours or it.content != ours[path].content:
                self._wrong(f"{path!r} has other bytes")
            if path in tampered:
                self._wrong(f"{path!r} is here, and was tampered with")
        return set(found)

    def _wrong(self, what: str) -> None:
        self._report.wrongs.append(f"round {self._report.rounds} ({self._site.kind}): {what}")


def run_trial(rounds: int, files: int, seed: int, say: Callable[[str], object]) -> Report:
    """Execute rounds, each with a source of its own; stop at the first that goes wrong."""
    report = Report()
    with tempfile.TemporaryDirectory() as top, open_ssh(Path(top, "sshd")) as sshd:
        for number in range(rounds):
            chance = random.Random(seed * 1000 + number)
            site = CopySite(Path(top, f"{number}"), KINDS[number % len(KINDS)], sshd)
            try:
                Round(site, chance, files, report).run()
            finally:
                site.close()
            say(str(report))
            if report.wrongs:
                break
    return report


def main() -> int:
    """Run the trial; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    report = run_trial(chosen.rounds, chosen.files, chosen.seed, print)
    print(*report.wrongs, sep="\n")
    return bool(report.wrongs)


if __name__ == "__main__":
    sys.exit(main())
