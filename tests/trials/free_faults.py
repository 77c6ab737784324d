"""Faults of a file that is to be freed, on this computer and on the server."""

import hashlib
import os
import random
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mydata_like.core.model import DatafileId, Entry, EntryState
from mydata_like.demo.invariants import list_archived
from mydata_like.demo.middleware import Fault, Reply, Reset
from mydata_like.demo.verifier import find_checksum
from tests.privileges import HAS_LINKS
from tests.trials.free_site import LONG_AGO_NS, FreeSite, Kept
from tests.trials.racing import FRAME

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@dataclass
class Trial:
    """One file, and the operations for its faults."""

    site: FreeSite
    chance: random.Random
    stack: ExitStack
    path: Path
    content: bytes  # that must not be lost
    kept: Kept
    entry: Entry | None
    kinds: list[str] = field(default_factory=list)
    at_last: list[Callable[[], object]] = field(default_factory=list)  # after the deletions
    deed: str = ""  # of another program at the moment of the deletion
    faults: list[Fault] = field(default_factory=list)
    archive: "Archive | None" = None

    @property
    def key(self) -> str:
        return self.path.relative_to(self.site.data).as_posix()

    def put(self, content: bytes, path: Path | None = None) -> None:
        """Write other bytes to the local file, and restore its time."""
        (path or self.path).write_bytes(content)
        self.content = content
        self.age()

    def age(self) -> None:
        os.utime(self.path, ns=(LONG_AGO_NS, LONG_AGO_NS))

    def remember(self, **values: object) -> None:
        """Change the row of the ledger."""
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
    opened = trial.stack.enter_context(trial.path.open("rb"))
    if sys.platform == "win32":
        msvcrt.locking(opened.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(opened, fcntl.LOCK_EX)


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
    """Move the replica's record to another box that does not have its bytes."""
    trial.kept.stored.unlink()
    trial.change("replica", box=trial.site.other_box[0])


def move_with_other_bytes(trial: Trial) -> None:
    move(trial)
    trial.kept.stored.write_bytes(_spoil(trial.content))


def move_outside(trial: Trial) -> None:
    """Change the replica's path to a file outside its box."""
    outside = trial.site.server.directory / "outside"
    outside.mkdir(exist_ok=True)
    trial.kept.stored.rename(outside / str(trial.kept.datafile))
    trial.change("replica", uri=f"../outside/{trial.kept.datafile}")


def add_copy(trial: Trial) -> None:
    trial.site.server.add_copy(trial.kept.datafile)


def leave_only_a_stale_copy(trial: Trial) -> None:
    """Delete all bytes, and leave a replica in another box that counts as verified."""
    add_copy(trial)
    trial.kept.stored.unlink()
    trial.site.server.site.store.change("DELETE FROM replica WHERE id = ?", trial.kept.replica)
    (trial.site.other_box[1] / trial.kept.remote).unlink()


def spoil_ours_and_add_a_copy(trial: Trial) -> None:
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
    """A fault that executes an action before a request is handled normally."""

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
    """Make the server acknowledge the verification request, and verify nothing."""
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
        **({"a link in its place": put_a_link} if HAS_LINKS else {}),
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
        "verified at an unknown time": never_verified,
        "verified in the future": verified_in_the_future,
        "moved": move,
        "moved, no bytes": move_without_bytes,
        "moved, other bytes": move_with_other_bytes,
        "moved out of its box": move_outside,
        "a second one": add_copy,
        "only a stale one elsewhere": leave_only_a_stale_copy,
        "rotten, and a good one elsewhere": spoil_ours_and_add_a_copy,
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
OF_ARCHIVED = ("local", "race", "ledger")  # the faults of a file in an archive


@dataclass
class Archive:
    """An archive on the server that contains some of the files."""

    kept: Kept
    site: FreeSite
    chance: random.Random

    def spoil(self) -> str:
        """Apply a random fault to the archive, and return its name."""
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
        """Replace the archive by consistent bytes that do not contain the files."""
        stored = self.kept.stored
        stored.write_bytes(b"none of ours")
        row = {"location": str(stored.parent), "uri": stored.name, "size": 12}
        self.site.change("datafile", self.kept.datafile, size=12, md5sum=find_checksum(row))

    def has(self, trial: Trial) -> bool:
        """Return whether the server has this file in the archive."""
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
    return hashlib.md5(content).hexdigest()
