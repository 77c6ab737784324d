"""The trial of `copy`: kill it at random moments, disturb its destination, and check all claims.

`python -m tests.trials.copy --rounds 40 [--files 120] [--seed N]`

A cycle has five rounds with one source, on a host or in a folder. In each round local files are
added, appended to, rewritten and removed. Somebody else truncates, overwrites, removes and touches
files at the destination, puts links in their place, and makes files where local ones are to arrive.
`verify` must then name the files that are not as listed, and no others. In some rounds the ledger
is lost, and in some cycles segments of the manifest are damaged or removed. The real command is
killed after a random event, and the same command continues.

After each kill, and each continuation, an own walk and the real md5sum check that no file is listed
with other bytes, but those that somebody else has changed since then. At the end of a round all
local files must be there and be listed once, unless something else has their name; that must be
unchanged. Content of others, and earlier content of rewritten files, must still be there.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired

from mydata_like.core.formatting import format_path
from mydata_like.demo.ssh_servers import PrivateSshd
from tests.copy_site import (
    KINDS,
    CopySite,
    check_with_md5sum,
    hash_file,
    look,
    read_checksums,
)
from tests.openssh import open_ssh
from tests.site import Ended, close_streams, finish, kill_group

ROUNDS_OF_A_CYCLE = 5
PATIENCE = 120.0  # seconds
LATEST = 1.3  # of the events of an undisturbed run, up to which a run is killed
ENDINGS = (b".tif", b"\xff.raw", b" '.txt", b"\n", b"\\n", b"-\r", b"*", b".")
FOLDERS = (b"", b"run 1", b"run 1/deep/er", b"-rf", b"caf\xe9", b"new\nline")
SOMETIMES = 0.3
OCCUPIED = "destination.occupied"
KEPT = b".mydata-old-"
CHANGING = ("file_staged", "file_replaced", "file_verified", "transfer_finished")


@dataclass
class Report:
    """The results of rounds."""

    rounds: int = 0
    kills: int = 0
    inside: int = 0  # kills after some files were sent
    files: int = 0
    replaced: int = 0
    disturbed: int = 0
    faults: int = 0  # that `verify` has found
    occupied: int = 0
    wrongs: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills} kills ({self.inside} inside), {self.files} files "
            f"at the ends, {self.replaced} replaced, {self.disturbed} disturbed there "
            f"({self.faults} noticed by verify), "
            f"{self.occupied} occupied, {len(self.wrongs)} wrongs"
        )


class Cycle:
    """Rounds with one source and one destination."""

    def __init__(self, site: CopySite, chance: random.Random, files: int, report: Report) -> None:
        self._site = site
        self._chance = chance
        self._files = files
        self._report = report
        self._source = os.fsencode(site.data / "src")
        self._there = os.fsencode(site.there / "src")
        self._number = 0
        self._events = 150
        self._damages = chance.random() < SOMETIMES  # whether the manifest is damaged
        self._damaged = False
        self._others: dict[bytes, object] = {}  # what somebody else has made, by path
        self._doubtful: set[bytes] = set()  # proven files that somebody else has changed
        self._surviving: dict[bytes, set[str]] = {}  # by folder
        os.makedirs(self._source)

    def run(self, rounds: int) -> None:
        """Execute rounds."""
        self._grow(self._files)
        for number in range(rounds):
            if number:
                self._disturb()
                self._verify()
                self._change()
            self._interrupt()
            ended = self._site.copy(
                self._site.data / "src", "--accept-missing", "--replace-changed"
            )
            self._events = max(50, len(ended.lines))
            self._check_end(ended)
            self._report.rounds += 1

    def _locals(self) -> list[bytes]:
        return sorted(path for path, seen in look(self._source).items() if seen.kind == "file")

    def _grow(self, files: int) -> None:
        for _ in range(files):
            self._number += 1
            name = b"%05d%b" % (self._number, self._chance.choice(ENDINGS))
            path = os.path.join(self._chance.choice(FOLDERS), name)
            self._write(os.path.join(self._source, path))
            if self._number > self._files and self._chance.random() < SOMETIMES:
                self._occupy(path)

    def _write(self, full: bytes, size: int | None = None) -> None:
        chance = self._chance
        if size is None:
            size = chance.choice((0, 10, chance.randrange(5000), chance.randrange(100_000)))
            size = chance.randrange(3_000_000) if chance.random() < 0.02 else size
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(chance.randbytes(size))

    def _occupy(self, path: bytes) -> None:
        """Make something where a local file is to arrive."""
        full, there = os.path.join(self._source, path), os.path.join(self._there, path)
        if os.path.lexists(there):
            return
        os.makedirs(os.path.dirname(there), exist_ok=True)
        match self._chance.randrange(5):
            case 0:
                shutil.copyfile(full, there)
                return  # it is as if it had been copied
            case 1:
                self._write(there, os.path.getsize(full))
            case 2:
                self._write(there)
            case 3:
                os.symlink(full, there)
            case _:
                os.mkdir(there)
        if os.path.islink(there) or os.path.isdir(there) or hash_file(there) != hash_file(full):
            self._others[path] = _describe(there)

    def _change(self) -> None:
        """Add, append to, rewrite and remove local files."""
        paths = self._locals()
        chosen = self._chance.sample(paths, len(paths) // 6)
        for number, path in enumerate(chosen):
            full = os.path.join(self._source, path)
            if number % 3 == 0:
                with open(full, "ab") as file:
                    file.write(self._chance.randbytes(100))
            elif number % 3 == 1:
                self._keep(path)
                self._write(full)
            else:
                os.unlink(full)
        self._grow(self._files // 5)

    def _keep(self, path: bytes) -> None:
        """Remember that the content at the destination must not be lost."""
        there = os.path.join(self._there, path)
        if os.path.isfile(there) and not os.path.islink(there) and os.path.getsize(there):
            self._surviving.setdefault(os.path.dirname(path), set()).add(hash_file(there))

    def _disturb(self) -> None:
        """Be somebody else who works at the destination, and lose files of the program."""
        theirs = [path for path, seen in look(self._there).items() if seen.kind == "file"]
        theirs = [path for path in theirs if KEPT not in path and path not in self._others]
        for number, path in enumerate(self._chance.sample(theirs, len(theirs) // 8)):
            there = os.path.join(self._there, path)
            self._report.disturbed += 1
            self._doubtful.add(path)
            self._surviving.get(os.path.dirname(path), set()).discard(hash_file(there))
            match number % 6:
                case 0:
                    os.truncate(there, os.path.getsize(there) // 2)
                case 1:
                    self._write(there, os.path.getsize(there))
                    self._keep(path)
                case 2:
                    self._write(there)
                    self._keep(path)
                case 3:
                    os.unlink(there)
                case 4:
                    os.utime(there)
                case _:
                    os.unlink(there)
                    os.symlink("elsewhere", there)
                    self._others[path] = _describe(there)
        if self._chance.random() < SOMETIMES:
            shutil.rmtree(self._site.state)
        if self._damages and self._site.segments:
            self._damage(self._chance.choice(self._site.segments))

    def _verify(self) -> None:
        """Check that `verify` finds what is not as listed, and nothing else."""
        if self._damaged:
            return  # what is listed in one file of a segment may be missing in another
        process = self._site.start_command("verify", self._site.target, "--json")
        said = finish(process, PATIENCE).sums
        faults = sorted(it["path"] for it in said["files"])
        false = sorted(
            format_path(name)
            for name, checksum in read_checksums(self._site.there)
            if not self._is_listed_truly(name, checksum)
        )
        if faults != false:
            self._wrong(f"verify has found {faults}, and not {false}")
        self._report.faults += len(faults)

    def _is_listed_truly(self, name: bytes, checksum: str) -> bool:
        full = os.path.join(os.fsencode(self._site.there), name)
        return os.path.isfile(full) and not os.path.islink(full) and hash_file(full) == checksum

    def _damage(self, segment: Path) -> None:
        self._damaged = True
        match self._chance.randrange(3):
            case 0:
                for path in segment.parent.glob(f"{segment.stem}*"):
                    path.unlink()
            case 1:
                os.truncate(segment, segment.stat().st_size // 2)
            case _:
                segment.unlink()

    def _interrupt(self) -> None:
        """Start the command and kill it after a random event."""
        words = [self._site.data / "src", self._site.target, "--events", "--accept-missing"]
        process = self._site.start(*words)
        assert process.stdout
        chance, sent = self._chance, False
        # Half of the kills count from the first steps that change something there.
        wanted = CHANGING if chance.random() < 0.5 else ("event",)
        left = chance.randrange(40 if wanted == CHANGING else int(self._events * LATEST))
        for line in process.stdout:
            sent = sent or "file_staged" in line
            left -= any(name in line for name in wanted)
            if left < 0:
                break
        try:
            process.wait(self._chance.random() * 0.05)
        except TimeoutExpired:
            self._report.kills += 1
            self._report.inside += sent
        kill_group(process)
        close_streams(process)
        self._check_claims("after a kill")

    def _check_claims(self, when: str) -> set[bytes]:
        """Check that what is listed has these bytes; return the listed paths of the source."""
        false: set[bytes] = set()
        listed: set[bytes] = set()
        for (name, checksum), number in read_checksums(self._site.there).items():
            path = name[4:]
            listed.add(path)
            if not self._is_listed_truly(name, checksum):
                false.add(path)
                if path not in self._doubtful:
                    self._wrong(f"{when}: {name!r} is listed with other bytes")
            if number > 1:
                self._wrong(f"{when}: {name!r} is listed {number} times")
        if not false and (complaints := check_with_md5sum(self._site.there)):
            self._wrong(f"{when}: {complaints}")
        return listed

    def _check_end(self, ended: Ended) -> None:
        """Check that everything is there that can be, and that nothing of others is lost."""
        if ended.sums["event"] != "run_finished":
            self._wrong(f"it crashed: {ended.sums} {ended.complaints[-1500:]}")
            return
        paths = self._locals()
        problems = {it["path"]: it["problem"]["code"] for it in ended.events("file_failed")}
        failed = {it for it in paths if format_path(os.path.join(self._source, it)) in problems}
        self._doubtful -= {*paths} - failed
        listed = self._check_claims("at the end")
        for path in paths:
            full, there = (os.path.join(top, path) for top in (self._source, self._there))
            if problem := problems.get(format_path(full)):
                if problem != OCCUPIED or not (path in self._others or self._damaged):
                    self._wrong(f"{path!r} failed: {problem}")
                self._report.occupied += 1
            elif not os.path.isfile(there) or hash_file(full) != hash_file(there):
                self._wrong(f"{path!r} has other bytes at the destination")
            elif path not in listed:
                self._wrong(f"{path!r} is not listed")
        for path, before in self._others.items():
            if _describe(os.path.join(self._there, path)) != before:
                self._wrong(f"{path!r} of somebody else was changed")
        for folder, checksums in self._surviving.items():
            there = os.path.join(self._there, folder)
            left = checksums - {
                hash_file(it.path) for it in os.scandir(there) if it.is_file(follow_symlinks=False)
            }
            if left:
                self._wrong(f"{len(left)} contents are lost in {folder!r}: {left}")
                checksums -= left
        if ended.sums["verified"] != len(paths) - len(failed):
            self._wrong(f"{ended.sums['verified']} files are verified, {len(failed)} failed")
        if ended.code != bool(problems):
            self._wrong(f"exit code {ended.code}: {ended.complaints[-500:]} {ended.output[-800:]}")
        self._report.files += len(paths)
        self._report.replaced += ended.sums["replaced"]

    def _wrong(self, what: str) -> None:
        self._report.wrongs.append(f"round {self._report.rounds} ({self._site.kind}): {what}")


def _describe(path: bytes) -> object:
    status = os.lstat(path)
    link = os.readlink(path) if os.path.islink(path) else b""
    content = hash_file(path) if os.path.isfile(path) and not link else ""
    return status.st_ino, status.st_mode, status.st_mtime_ns if content else 0, link, content


def run_trial(
    rounds: int, files: int, seed: int, kinds: Sequence[str], say: Callable[[str], object]
) -> Report:
    """Execute `rounds` rounds; the last cycle may be shorter."""
    chance, report = random.Random(seed), Report()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="copy-trials-")))
        sshd: PrivateSshd = stack.enter_context(open_ssh(folder / "sshd"))
        for number in range(-(-rounds // ROUNDS_OF_A_CYCLE)):
            site = CopySite(folder / str(number), kinds[number % len(kinds)], sshd)
            seen = len(report.wrongs)
            try:
                left = min(ROUNDS_OF_A_CYCLE, rounds - report.rounds)
                Cycle(site, chance, files, report).run(left)
            finally:
                site.close()
            for wrong in report.wrongs[seen:]:
                say(wrong)
            if report.wrongs[seen:]:
                say(f"cycle {number}: {Counter(it.split(':')[0] for it in report.wrongs)}")
            shutil.rmtree(site.folder)
    return report


def main() -> int:
    """Run the trial; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description="Kill and disturb copies at random.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--files", type=int, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    chosen = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(f"{line[:2000]}\n")
        sys.stdout.flush()

    report = run_trial(chosen.rounds, chosen.files, chosen.seed, KINDS, say)
    say(f"{report} (seed {chosen.seed})")
    return bool(report.wrongs)


if __name__ == "__main__":
    sys.exit(main())
