"""Frees space where everything may be wrong, and looks whether anything got lost.

`python -m tests.freetrials [--trials 10000] [--seed 1] [--at-once 200]`

A trial is one local file that was verified by the server. Then things are done to it at random: to
the local file, the ledger's row, the server's record, its replica, the bytes on the server's disk,
the archive that it is in, the server's answers, and by another program in the very moment of the
deletion. Many such files at once are freed by the real code, which asks an embedded server over
real sockets. A deletion is unsafe where the server's disk and database do not have the file's last
bytes, whatever the program believes; and so is a change of a file that stays.
"""

import argparse
import fcntl
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mydata_like.core.freeing import Freed, Spared
from mydata_like.core.model import DatafileId, DatasetId, Entry, EntryState, LocalFile
from mydata_like.demo.archived import list_archived
from mydata_like.demo.faults import EMPTY_LIST, Cached, Fault, Reply, Reset
from mydata_like.demo.verifier import find_checksum
from mydata_like.transfer.archive import ArchiveMember
from tests.archives import write
from tests.freesite import (
    LONG_AGO_NS,
    OWNER,
    FreeSite,
    Kept,
    an_entry,
    open_free_site,
    wait_until_settled,
)
from tests.racing import FRAME, racing

AT_ONCE = 200
RACE = 0.002  # seconds after the log's line within which another program writes
SHARE = 0.15  # of the files, for each thing that may be wrong
ARCHIVED = 0.2  # the share of the files that are in archives
NOTHING = "nothing is wrong"


@dataclass
class Trial:
    """One file, and all that can be done to it."""

    site: FreeSite
    chance: random.Random
    stack: ExitStack
    path: Path
    content: bytes  # that must not get lost
    kept: Kept
    entry: Entry | None
    kinds: list[str] = field(default_factory=list)
    at_last: list[Callable[[], object]] = field(default_factory=list)  # after the deletions
    deed: str = ""  # of another program, in the moment of the deletion
    faults: list[Fault] = field(default_factory=list)
    archive: "Archive | None" = None

    @property
    def key(self) -> str:
        return self.path.relative_to(self.site.data).as_posix()

    def put(self, content: bytes, path: Path | None = None) -> None:
        """Give the local file other bytes, and its old time."""
        (path or self.path).write_bytes(content)
        self.content = content
        self.age()

    def age(self) -> None:
        os.utime(self.path, ns=(LONG_AGO_NS, LONG_AGO_NS))

    def remember(self, **values: object) -> None:
        """Change the ledger's row."""
        if self.entry is not None:
            self.entry = self.entry._replace(**values)

    def change(self, table: str, **values: str | int | None) -> None:
        """Change the record or the replica."""
        number = self.kept.datafile if table == "datafile" else self.kept.replica
        self.site.change(table, number, **values)

    def is_safe_on_the_server(self) -> bool:
        if self.archive is not None:
            return self.archive.has(self)
        kept = self.kept
        return self.site.has(kept.dataset, kept.directory, kept.name, self.content)


# The local file


def grow(trial: Trial) -> None:
    trial.put(trial.content + b"more")


def change_bytes(trial: Trial) -> None:
    trial.put(_spoil(trial.content))


def shrink(trial: Trial) -> None:
    trial.put(trial.content[:-1])


def touch(trial: Trial) -> None:
    os.utime(trial.path)


def put_a_link(trial: Trial) -> None:
    aside = trial.site.folder / f"aside-{trial.chance.getrandbits(64)}"
    trial.path.rename(aside)
    trial.path.symlink_to(aside)


def put_a_new_file(trial: Trial) -> None:
    new = trial.path.with_name(f"{trial.path.name}.new")
    new.write_bytes(_spoil(trial.content))
    os.utime(new, ns=(LONG_AGO_NS, LONG_AGO_NS))
    new.replace(trial.path)
    trial.content = _spoil(trial.content)


def keep_open(mode: str, trial: Trial) -> None:
    opened = trial.stack.enter_context(trial.path.open(mode))

    def write_more() -> None:
        opened.seek(0, os.SEEK_END)
        opened.write(FRAME)
        opened.close()
        trial.content += FRAME

    trial.at_last.append(write_more)


def lock(trial: Trial) -> None:
    fcntl.flock(trial.stack.enter_context(trial.path.open("rb")), fcntl.LOCK_EX)


def give_a_second_name(trial: Trial) -> None:
    os.link(trial.path, trial.site.folder / f"aside-{trial.chance.getrandbits(64)}")


def race(deed: str, trial: Trial) -> None:
    trial.deed = deed


# The ledger


def forget(trial: Trial) -> None:
    trial.entry = None


def not_number(trial: Trial) -> None:
    trial.remember(datafile=None)


def point_to_another(trial: Trial) -> None:
    trial.remember(datafile=DatafileId(max(1, trial.kept.datafile - 1)))


def remember_state(state: EntryState, trial: Trial) -> None:
    trial.remember(state=state)


def remember_other_bytes(trial: Trial) -> None:
    trial.remember(checksum="0" * 32)


def remember_no_bytes(trial: Trial) -> None:
    trial.remember(checksum="")


def remember_another_place(trial: Trial) -> None:
    trial.remember(remote="elsewhere/x")


# The server's record


def lose_record(trial: Trial) -> None:
    trial.site.server.lose(trial.kept.datafile)


def record_other_bytes(trial: Trial) -> None:
    trial.change("datafile", md5sum="0" * 32)


def record_another_size(trial: Trial) -> None:
    trial.change("datafile", size=len(trial.content) + 1)


def record_another_name(trial: Trial) -> None:
    trial.change("datafile", filename=f"renamed {trial.kept.name}")


def record_another_folder(trial: Trial) -> None:
    trial.change("datafile", directory="elsewhere")


# The server's replicas


def lose_replica(trial: Trial) -> None:
    trial.site.server.lose_copy(trial.kept.datafile)


def unverify(trial: Trial) -> None:
    trial.site.server.unverify(trial.kept.datafile)


def never_verified(trial: Trial) -> None:
    trial.change("replica", last_verified=None)


def verified_in_the_future(trial: Trial) -> None:
    trial.change("replica", last_verified="2999-01-01T00:00:00")


def move(trial: Trial) -> None:
    """Move the replica to another box, with its bytes."""
    number, folder = trial.site.other_box
    place = folder / trial.kept.remote
    place.parent.mkdir(parents=True, exist_ok=True)
    trial.kept.stored.rename(place)
    trial.change("replica", box=number)
    trial.kept = trial.kept._replace(stored=place)


def move_without_bytes(trial: Trial) -> None:
    """Let the replica's flag claim bytes that another box does not have."""
    trial.kept.stored.unlink()
    trial.change("replica", box=trial.site.other_box[0])


def move_with_other_bytes(trial: Trial) -> None:
    move(trial)
    trial.kept.stored.write_bytes(_spoil(trial.content))


def move_outside(trial: Trial) -> None:
    """Let the replica's path lead out of its box, to a file that somebody may remove."""
    outside = trial.site.server.directory / "outside"
    outside.mkdir(exist_ok=True)
    trial.kept.stored.rename(outside / str(trial.kept.datafile))
    trial.change("replica", uri=f"../outside/{trial.kept.datafile}")


def add_copy(trial: Trial) -> None:
    trial.site.server.add_copy(trial.kept.datafile)


def leave_only_a_stale_copy(trial: Trial) -> None:
    """Let our replica's bytes be gone, and a copy elsewhere still count as verified."""
    add_copy(trial)
    trial.kept.stored.unlink()
    trial.site.server.site.store.change("DELETE FROM replica WHERE id = ?", trial.kept.replica)
    (trial.site.other_box[1] / trial.kept.remote).unlink()


def spoil_ours_beside_a_copy(trial: Trial) -> None:
    add_copy(trial)
    trial.kept.stored.write_bytes(_spoil(trial.content))


# The bytes on the server's disk


def rot(trial: Trial) -> None:
    trial.kept.stored.write_bytes(_spoil(trial.kept.stored.read_bytes()))


def truncate(trial: Trial) -> None:
    trial.kept.stored.write_bytes(trial.kept.stored.read_bytes()[:-1])


def vanish(trial: Trial) -> None:
    trial.kept.stored.unlink()


def be_a_folder(trial: Trial) -> None:
    trial.kept.stored.unlink()
    trial.kept.stored.mkdir()


@dataclass(frozen=True, kw_only=True)
class Meanwhile(Fault):
    """Does something when a request comes, before it is carried out as usual."""

    act: Callable[[], object]

    def matches(self, method: str, path: str) -> bool:
        if super().matches(method, path):
            self.act()
        return False


def vanish_when_asked(trial: Trial) -> None:
    missing = partial(trial.kept.stored.unlink, missing_ok=True)
    trial.faults.append(Meanwhile(action=Reply(200), path=_question(trial), act=missing))


# The server's answers


def acknowledge_only(trial: Trial) -> None:
    """Let the server acknowledge the question, and verify nothing."""
    trial.faults.append(Fault(action=Reply(200), path=_question(trial), count=None))


def refuse_question(status: int, trial: Trial) -> None:
    trial.faults.append(Fault(action=Reply(status), path=_question(trial), count=None))


def lose_answer(trial: Trial) -> None:
    trial.faults.append(Fault(action=Reset(handled=True), path=_question(trial)))


def rot_and_acknowledge(trial: Trial) -> None:
    if trial.kept.stored.is_file():
        rot(trial)
    acknowledge_only(trial)


def _question(trial: Trial) -> str:
    return rf"dataset_file/{trial.kept.datafile}/verify/"


def _spoil(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


KINDS: Mapping[str, Mapping[str, Callable[[Trial], None]]] = {
    "local": {
        "grew": grow,
        "shrank": shrink,
        "other bytes, same size and time": change_bytes,
        "another time": touch,
        "a link in its place": put_a_link,
        "another file in its place": put_a_new_file,
        "open to append": partial(keep_open, "ab"),
        "open to change": partial(keep_open, "r+b"),
        "locked": lock,
        "a second name": give_a_second_name,
    },
    "race": {
        "appended to": partial(race, "append"),
        "written over, time restored": partial(race, "overwrite"),
        "replaced": partial(race, "replace"),
    },
    "ledger": {
        "unknown": forget,
        "without the record's number": not_number,
        "another record's number": point_to_another,
        "only registered": partial(remember_state, EntryState.REGISTERED),
        "changed": partial(remember_state, EntryState.CHANGED),
        "other bytes": remember_other_bytes,
        "no bytes": remember_no_bytes,
        "another place": remember_another_place,
    },
    "record": {
        "gone": lose_record,
        "other bytes": record_other_bytes,
        "another size": record_another_size,
        "another name": record_another_name,
        "another folder": record_another_folder,
    },
    "replica": {
        "gone": lose_replica,
        "not verified": unverify,
        "verified nobody knows when": never_verified,
        "verified in the future": verified_in_the_future,
        "moved": move,
        "moved, no bytes": move_without_bytes,
        "moved, other bytes": move_with_other_bytes,
        "moved out of its box": move_outside,
        "a second one": add_copy,
        "only a stale one elsewhere": leave_only_a_stale_copy,
        "rotten beside a good one": spoil_ours_beside_a_copy,
    },
    "disk": {
        "rotten": rot,
        "cut": truncate,
        "gone": vanish,
        "a folder": be_a_folder,
        "gone when asked for": vanish_when_asked,
    },
    "answer": {
        "acknowledged, not verified": acknowledge_only,
        "acknowledged, not verified, rotten": rot_and_acknowledge,
        "refused": partial(refuse_question, 403),
        "not found": partial(refuse_question, 404),
        "lost": lose_answer,
    },
}
OF_ARCHIVED = ("local", "race", "ledger")  # what may be wrong with a file in an archive


@dataclass
class Archive:
    """An archive on the server that holds some of the files."""

    kept: Kept
    site: FreeSite
    chance: random.Random

    def spoil(self) -> str:
        """Do something to the archive, and return what."""
        kind = self.chance.choice(("", "", "rotten", "cut", "gone", "another one", "not verified"))
        stored, content = self.kept.stored, self.kept.stored.read_bytes()
        if kind == "rotten":
            place = self.chance.randrange(len(content))
            stored.write_bytes(content[:place] + _spoil(content[place:]))
        elif kind == "cut":
            stored.write_bytes(content[:-512])
        elif kind == "gone":
            stored.unlink()
        elif kind == "another one":
            self._become_another()
        elif kind == "not verified":
            self.site.server.unverify(self.kept.datafile)
        return f"archive: {kind}" if kind else ""

    def _become_another(self) -> None:
        """Let record and bytes agree, and the files not be in it."""
        stored = self.kept.stored
        stored.write_bytes(b"none of ours")
        row = {"location": str(stored.parent), "uri": stored.name, "size": 12}
        self.site.change("datafile", self.kept.datafile, size=12, md5sum=find_checksum(row))

    def has(self, trial: Trial) -> bool:
        """Return whether the server has this file in it."""
        kept, stored = self.kept, self.kept.stored
        if not stored.is_file():
            return False
        archive = stored.read_bytes()
        if not self.site.has(kept.dataset, kept.directory, kept.name, archive):
            return False
        wanted = trial.kept.directory, trial.kept.name, trial.content
        return any(
            it.sound and (it.directory, it.filename, it.md5sum) == (*wanted[:2], _md5(wanted[2]))
            for it in list_archived(stored)
        )


def _md5(content: bytes) -> str:
    import hashlib

    return hashlib.md5(content).hexdigest()


@dataclass
class Table:
    """How many trials of each kind there were, and what became of them."""

    trials: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    unsafe: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # why files were kept
    wrongs: list[str] = field(default_factory=list)
    written: int = 0  # files that another program wrote to in the moment of the deletion

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
        """Carry out so many trials at once."""
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
        """Make a file that the server has verified, with which nothing is wrong."""
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
        """Let the server have those files in archives that it does not have as they are."""
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
        """Let the server be wrong about all files, now and then."""
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

    def _free(self, folder: Path, trials: Sequence[Trial]) -> dict[str, Freed | Spared]:
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

    def _judge(self, trial: Trial, fate: Freed | Spared | None) -> None:
        kinds = trial.kinds or [NOTHING]
        gone = not os.path.lexists(trial.path)
        wrong = _find_wrong(trial, fate, gone=gone)
        for kind in (*kinds, "ALL"):
            self.table.trials[kind] += 1
            self.table.deleted[kind] += gone
            self.table.unsafe[kind] += bool(wrong)
        if isinstance(fate, Spared):
            self.table.reasons[fate.problem.code] += 1
        if wrong:
            self.table.wrongs.append(f"{trial.key} ({', '.join(kinds)}): {wrong}")


def _find_wrong(trial: Trial, fate: Freed | Spared | None, *, gone: bool) -> str:
    """Return what is not as it has to be."""
    if gone:
        if not trial.is_safe_on_the_server():
            return "its bytes are nowhere"
        return "" if isinstance(fate, Freed) else "it is gone, and nobody said so"
    if trial.path.read_bytes() != trial.content:
        return "it has other bytes than were written"
    if isinstance(fate, Freed) and trial.deed != "replace":
        return "it is said to be deleted, and is there"
    return ""


def _may_follow(trial: Trial, area: str) -> bool:
    """Return whether two things that are wrong do not get in each other's way."""
    before = {kind.partition(":")[0] for kind in trial.kinds}
    if area == "race":
        return "local" not in before
    if area == "replica":
        return "record: gone" not in trial.kinds
    return area != "disk" or "replica" not in before


def _find_written(trial: Trial) -> bytes:
    """Return what a file must hold now that another program wrote to it."""
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
    """Carry out so many trials in a folder, and return what became of them."""
    with open_free_site(folder) as site:
        test = FreeTrials(site, seed)
        for start in range(0, trials, at_once):
            test.run(min(at_once, trials - start))
    return test.table


def main() -> int:
    """Carry out trials as the command line says; return 1 where a deletion was unsafe."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="files of one command")
    options = parser.parse_args()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="freetrials-"))
    try:
        table = carry_out(folder / "site", options.trials, options.seed, options.at_once)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _say(f"seed {options.seed}, {time.monotonic() - began:.0f} s")
    for line in (*table.lines(), "", *table.wrongs[:20]):
        _say(line)
    _say(f"{table.written} files were written to by another program as they were to be deleted")
    _say(f"kept: {dict(table.reasons.most_common())}")
    return int(bool(table.wrongs))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
