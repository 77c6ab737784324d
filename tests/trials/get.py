"""The trial of `get`: kill it at random moments, tamper with its destination, and check all files.

`python -m tests.trials.get --rounds 30 [--files 200] [--seed N] [--flips 10]`

In each round, files are copied to a host (over libssh, over paramiko, or over SFTP only) or to a
folder, and some are changed, truncated or removed there. Some sources are so large, by holes, that
processes receive them. The real `get` is killed several times after a random number of files, with
or without its processes, or only one of these is, and then ends by itself. After each kill, every
file that has a name must have the bytes that were copied. At the end all files must be here but
those that were tampered with, and no temporary names must be left.

With `--flips`, so many packets between it and the host have a bit changed instead of the kills.
Whatever it makes of that, no wrong bytes may get a name, and a `get` without changes must complete
the rest. A packet counts as accepted if wrong bytes have a name.
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
from functools import partial
from pathlib import Path

import psutil

from mydata_like.selftest.tampering import TamperingProxy
from tests.copy_site import CopySite, look
from tests.site import close_streams, finish, kill_group
from tests.sshd_fixture import sftp_only, sshd_with

PATIENCE = 120.0  # seconds
KILLS = 3  # of a round
ENDINGS = (b".tif", b"\xff.raw", b" '.txt", b"\n", b"\\n", b"-\r", b"*", b".")
FOLDERS = (b"", b"run 1", b"run 1/deep/er", b"-rf", b"caf\xe9", b"new\nline")
PART = b".mydata-get-"
HOLES = 300_000_000  # bytes
WAYS = ("libssh", "paramiko", "SFTP", "folder")  # to the destination


@dataclass
class Report:
    """The results of rounds."""

    rounds: int = 0
    kills: int = 0
    inside: int = 0  # kills after some files were here, and before all were
    files: int = 0
    tampered: int = 0
    flips: int = 0
    accepted: int = 0  # of these, and of the files that were tampered with
    wrongs: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills} kills ({self.inside} inside), {self.files} files "
            f"at the ends, {self.tampered} tampered, {self.flips} packets changed, "
            f"{self.accepted} accepted, {len(self.wrongs)} wrongs"
        )


class Round:
    """One source, one destination and one local folder that gets the files back."""

    def __init__(
        self, site: CopySite, way: str, chance: random.Random, files: int, report: Report
    ) -> None:
        self._site = site
        self._way = way
        self._chance = chance
        self._files = files
        self._report = report
        self._source = os.fsencode(site.data / "src")
        self._here = os.fsencode(site.folder / "here")

    def run(self, flips: int) -> None:
        """Copy, tamper, and get the files back."""
        self._make()
        # Only the settings choose the library.
        library = "paramiko" if self._way == "paramiko" else "auto"
        self._site.write_settings(transfer__ssh=library)
        copied = self._site.call("run", "--json")
        if copied.code:
            self._wrong(f"run has failed: {copied.output} {copied.complaints}")
            return
        ours = {path: it for path, it in look(self._source).items() if it.kind == "file"}
        tampered = self._tamper(sorted(ours))
        if flips:
            self._flip(flips, ours, tampered)
        for _ in range(0 if flips else KILLS):
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
        if self._way in ("libssh", "paramiko") and chance.random() < 0.7:
            with open(os.path.join(self._source, b"holes"), "wb") as file:
                file.truncate(HOLES)

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
        source = f"{self._site.data}/src/"
        return self._site.start_command("get", source, self._here, "--replace", *words)

    def _flip(self, flips: int, ours: dict[bytes, object], tampered: set[bytes]) -> None:
        """Change packets of some commands, each at other places."""
        ssh, port = self._site.home / ".ssh", str(self._site.sshd.port)
        before = {path: path.read_text() for path in (ssh / "config", ssh / "known_hosts")}
        size = sum(os.path.getsize(os.path.join(self._source, path)) for path in ours)
        left = flips
        with TamperingProxy(self._site.sshd.port) as proxy:
            for path, text in before.items():
                path.write_text(text.replace(port, str(proxy.port)))
            while left > 0:
                # Replies have the bytes of files; what comes earlier is part of a login.
                inward = self._chance.random() < 0.8
                after = self._chance.randrange(size // 2 if inward else 6000)
                proxy.flip(inward=inward, after=after, bit=self._chance.randrange(8))
                process = self._start()
                while process.poll() is None:
                    if proxy.changed.wait(0.05) and left > 0:
                        left -= 1
                        self._report.flips += 1
                        after = self._chance.randrange(size // 4)
                        proxy.flip(inward=True, after=after, bit=self._chance.randrange(8))
                close_streams(process)
                wrongs = len(self._report.wrongs)
                here = self._check(ours, tampered)
                self._report.accepted += len(self._report.wrongs) - wrongs
                for path in sorted(here)[::2]:  # half of them are to be fetched again
                    os.unlink(os.path.join(self._here, path))
        for path, text in before.items():
            path.write_text(text)

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
        children, way = self._list_children(process), self._chance.randrange(3)
        if way:
            kill_group(process)
        else:
            process.kill()  # its processes end by themselves
        close_streams(process)
        psutil.wait_procs(children, PATIENCE)

    def _list_children(self, process: "subprocess.Popen[str]") -> list[psutil.Process]:
        """Return the processes of a command, after one of them was perhaps killed."""
        try:
            children = psutil.Process(process.pid).children()
            if children and self._chance.random() < 0.3:
                self._chance.choice(children).kill()
        except psutil.NoSuchProcess:
            return []
        return children

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
        self._report.wrongs.append(f"round {self._report.rounds} ({self._way}): {what}")


def run_trial(
    rounds: int, files: int, seed: int, flips: int, say: Callable[[str], object]
) -> Report:
    """Execute rounds, each with a source of its own; stop at the first that goes wrong."""
    report = Report()
    ways = WAYS[:3] if flips else WAYS
    with (
        tempfile.TemporaryDirectory() as top,
        sshd_with(Path(top)) as shell,
        sshd_with(Path(top, "SFTP"), *sftp_only()) as restricted,
    ):
        for number in range(rounds):
            chance, way = random.Random(seed * 1000 + number), ways[number % len(ways)]
            kind = "folder" if way == "folder" else "host"
            sshd = restricted if way == "SFTP" else shell
            site = CopySite(Path(top, f"{number}"), kind, sshd)
            try:
                Round(site, way, chance, files, report).run(flips)
            finally:
                site.close()
            say(f"{way}: {report}")
            if report.wrongs:
                break
    return report


def main() -> int:
    """Run the trial; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flips", type=int, default=0, help="changed packets of each round")
    chosen = parser.parse_args()
    say = partial(print, flush=True)
    report = run_trial(chosen.rounds, chosen.files, chosen.seed, chosen.flips, say)
    print(*report.wrongs, f"{report} (seed {chosen.seed})", sep="\n")
    return bool(report.wrongs)


if __name__ == "__main__":
    sys.exit(main())
