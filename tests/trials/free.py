"""Free files with random faults, and check that no data is lost.

`python -m tests.trials.free [--trials 10000] [--seed 1] [--at-once 200]`

A trial is one local file that the server has verified. Random faults are applied to the local file,
the ledger's row, the server's record, its replica, the bytes on the server's disk, the archive that
contains it, the server's answers, and by another program at the moment of the deletion. The real
code then frees many such files, with an embedded server over real sockets. A deletion is unsafe if
the server's disk and database do not have the last bytes of the file. A change of a file that is
kept is unsafe as well.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import DatafileId, DatasetId
from mydata_like.demo.middleware import EMPTY_LIST, Cached, Fault
from mydata_like.transfer.archive_writer import ArchiveMember
from tests.archives import write
from tests.trials.free_faults import KINDS, OF_ARCHIVED, Archive, Trial
from tests.trials.free_site import (
    LONG_AGO_NS,
    OWNER,
    FreeSite,
    Kept,
    an_entry,
    open_free_site,
    wait_until_settled,
)
from tests.trials.racing import FRAME, racing

AT_ONCE = 200
RACE = 0.002  # seconds after the line in the deletion log within which another program writes
SHARE = 0.15  # of the files that get a fault of each area
ARCHIVED = 0.2  # the share of the files that are in archives
NOTHING = "no fault"


@dataclass
class Table:
    """The number of trials of each kind, and their results."""

    trials: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    unsafe: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # why files were kept
    wrongs: list[str] = field(default_factory=list)
    written: int = 0  # files that another program wrote to at the moment of the deletion

    def lines(self) -> list[str]:
        """Return the table as text."""
        width = max(map(len, self.trials), default=0)
        head = f"{'kind':{width}}  trials  deleted  unsafe"
        rows = [
            f"{kind:{width}}  {count:6}  {self.deleted[kind]:7}  {self.unsafe[kind]:6}"
            for kind, count in sorted(self.trials.items())
        ]
        return [head, *rows]


class FreeTrials:
    """Batches of trials on one server."""

    def __init__(self, site: FreeSite, seed: int) -> None:
        self._site = site
        self._chance = random.Random(seed)
        self._batches = 0
        self.table = Table()

    def run(self, count: int) -> None:
        """Execute a batch of trials."""
        self._batches += 1
        name = f"Batch {self._batches}"
        dataset = self._site.add_dataset(name)
        with ExitStack() as stack:
            trials = [self._begin(name, dataset, number, stack) for number in range(count)]
            self._archive(name, dataset, [it for it in trials if it.archive is None])
            self._spoil_all(trials)
            self._site.remember([trial.entry for trial in trials if trial.entry is not None])
            stack.callback(self._site.server.faults.clear)
            self._site.server.faults.add(*(it for trial in trials for it in trial.faults))
            self._interfere(stack, trials)
            wait_until_settled()
            fates = self._free(self._site.data / OWNER / name, trials)
            for act in [act for trial in trials for act in trial.at_last]:
                act()
        for trial in trials:
            self._judge(trial, fates.get(trial.key))
        shutil.rmtree(self._site.data / OWNER / name)

    def _begin(self, name: str, dataset: DatasetId, number: int, stack: ExitStack) -> Trial:
        """Create a file without faults that the server has verified."""
        directory = self._chance.choice(("", "raw", "raw/deep"))
        path = self._site.data / OWNER / name / directory / f"{number:04}.dat"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = self._chance.randbytes(self._chance.randrange(10, 3000))
        path.write_bytes(content)
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
        if self._chance.random() < ARCHIVED:
            kept = Kept(dataset, directory, path.name, DatafileId(0), 0, "", path)
            return Trial(self._site, self._chance, stack, path, content, kept, None)
        kept = self._site.keep(dataset, directory, path.name, content)
        trial = Trial(self._site, self._chance, stack, path, content, kept, None)
        trial.entry = an_entry(trial.key, content, kept)
        return trial

    def _archive(self, name: str, dataset: DatasetId, trials: Sequence[Trial]) -> None:
        """Store the files that have no record of their own in archives on the server."""
        left = [trial for trial in trials if not trial.kept.datafile]
        wait_until_settled()
        for number, start in enumerate(range(0, len(left), 10)):
            part = left[start : start + 10]
            members = [_member(trial, f"{name}/{_below(trial, name)}") for trial in part]
            content, _, _ = write(
                members, name=(title := f"{name}-0123abcd-{number:04}.tar").encode()
            )
            kept = self._site.keep(dataset, "", title, content)
            archive = Archive(kept, self._site, self._chance)
            spoilt = archive.spoil()
            for trial in part:
                entry = an_entry(trial.key, trial.content, kept)
                trial.archive, trial.entry = archive, entry._replace(archive=title)
                trial.kinds += [spoilt] if spoilt else ["archive: sound"]

    def _spoil_all(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            for area, kinds in KINDS.items():
                if trial.archive is not None and area not in OF_ARCHIVED:
                    continue
                if self._chance.random() < SHARE and _may_follow(trial, area):
                    kind = self._chance.choice(list(kinds))
                    kinds[kind](trial)
                    trial.kinds.append(f"{area}: {kind}")

    def _interfere(self, stack: ExitStack, trials: Sequence[Trial]) -> None:
        """Apply a random fault of the server to all files, in some batches."""
        server, chance = self._site.server, self._chance.random()
        kind = ""
        if chance < 0.05:
            kind = "all: the server verifies nothing"
            server.hold_verification()
            stack.callback(server.release_verification)
        elif chance < 0.15:
            kind = "all: a cache shows earlier records"
            cache = Cached(seconds=0.3, honours_no_cache=False)
            server.faults.add(Fault(action=cache, path="dataset_file/set/", count=None))
        elif chance < 0.2:
            kind = "all: empty lists"
            server.faults.add(Fault(action=EMPTY_LIST, path="mydata_dataset_file/", count=None))
        for trial in trials:
            trial.kinds += [kind] if kind else []

    def _free(self, folder: Path, trials: Sequence[Trial]) -> dict[str, DeletedFile | KeptFile]:
        deeds = {trial.key: trial.deed for trial in trials if trial.deed}
        log = self._site.state / "freed.jsonl"
        with racing(log, self._site.data, deeds, RACE) as racer:
            fates = self._site.free(folder)
        by_key = {trial.key: trial for trial in trials}
        for key in racer.written:
            trial = by_key[key]
            trial.content = _find_written(trial)
            self.table.written += 1
        return {os.fsdecode(fate.key): fate for fate in fates}

    def _judge(self, trial: Trial, fate: DeletedFile | KeptFile | None) -> None:
        kinds = trial.kinds or [NOTHING]
        gone = not os.path.lexists(trial.path)
        wrong = _find_wrong(trial, fate, gone=gone)
        for kind in (*kinds, "ALL"):
            self.table.trials[kind] += 1
            self.table.deleted[kind] += gone
            self.table.unsafe[kind] += bool(wrong)
        if isinstance(fate, KeptFile):
            self.table.reasons[fate.problem.code] += 1
        if wrong:
            self.table.wrongs.append(f"{trial.key} ({', '.join(kinds)}): {wrong}")


def _find_wrong(trial: Trial, fate: DeletedFile | KeptFile | None, *, gone: bool) -> str:
    """Return what is wrong with the result of a trial; empty if nothing is."""
    if gone:
        if not trial.is_safe_on_the_server():
            return "its bytes are lost"
        return "" if isinstance(fate, DeletedFile) else "it was deleted without a report"
    if trial.path.read_bytes() != trial.content:
        return "it has other bytes than were written"
    if isinstance(fate, DeletedFile) and trial.deed != "replace":
        return "it was reported as deleted, but exists"
    return ""


def _may_follow(trial: Trial, area: str) -> bool:
    """Return whether a further fault of this area is compatible with the earlier ones."""
    before = {kind.partition(":")[0] for kind in trial.kinds}
    if area == "race":
        return "local" not in before
    if area == "replica":
        return "record: gone" not in trial.kinds
    return area != "disk" or "replica" not in before


def _find_written(trial: Trial) -> bytes:
    """Return the expected bytes of a file after another program wrote to it."""
    if trial.deed == "append":
        return trial.content + FRAME
    if trial.deed == "overwrite":
        return FRAME + trial.content[len(FRAME) :]
    return FRAME


def _below(trial: Trial, name: str) -> str:
    return trial.path.relative_to(trial.site.data / OWNER / name).as_posix()


def _member(trial: Trial, name: str) -> ArchiveMember:
    seen = trial.path.stat()
    path = os.fsencode(trial.path)
    file = LocalFile(path, b"", b"", b"", seen.st_size, seen.st_mtime_ns, seen.st_dev, seen.st_ino)
    return ArchiveMember(file, name.encode())


def carry_out(folder: Path, trials: int, seed: int, at_once: int = AT_ONCE) -> Table:
    """Execute trials in a folder, and return their results."""
    with open_free_site(folder) as site:
        test = FreeTrials(site, seed)
        for start in range(0, trials, at_once):
            test.run(min(at_once, trials - start))
    return test.table


def main() -> int:
    """Execute the trials of the command line; return 1 if a deletion was unsafe."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="files per command")
    options = parser.parse_args()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="free-trials-"))
    try:
        table = carry_out(folder / "site", options.trials, options.seed, options.at_once)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _say(f"seed {options.seed}, {time.monotonic() - began:.0f} s")
    for line in (*table.lines(), "", *table.wrongs[:20]):
        _say(line)
    _say(f"{table.written} files were written to by another program during their deletion")
    _say(f"kept: {dict(table.reasons.most_common())}")
    _say(
        f"{table.trials.total()} trials (seed {options.seed}): {table.deleted.total()} files "
        f"deleted, {table.unsafe.total()} of them unsafe"
    )
    return int(bool(table.wrongs))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
