"""What of one dataset is not verified yet, and what the server's records say of it."""

from collections.abc import Iterator, MutableMapping
from enum import Enum
from itertools import islice
from math import inf
from typing import NamedTuple

from mydata_like.core.id_set import IdSet
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    DatasetId,
    DatasetStats,
    Registered,
    Replica,
)
from mydata_like.core.ports import ServerAPI

MANY = 1000  # so many newly verified datafiles are worth a page of the listing
ASK_AFTER = 10.0  # seconds without progress after which verification is asked for
ASK_AT_ONCE = 50
# Caches before a server that ignore `no-cache` keep an answer for a second or two: what one look
# showed to be missing or wrong is believed only if a look so many seconds later shows it too.
LOOK_AGAIN_AFTER = 3.0

Key = tuple[str, str]


class Verdict(Enum):
    """What a record says about the bytes that we sent."""

    VERIFIED = "verified"
    REFUSED = "refused"
    PENDING = "pending"


def judge(record: Datafile, item: Registered, box: str = "") -> Verdict:
    """Return what the server found; a look it took before our bytes came says nothing.

    `box` is the storage box in which we put bytes. What lies there at our path decides: another
    replica may have other bytes. Where nothing is there, the server has moved or chosen the
    place, and any replica counts.
    """
    size = item.wanted.file.size
    if (record.checksum, record.size) != (item.checksum, size) or not record.replicas:
        return Verdict.REFUSED
    ours = _find_ours(record, item, box)
    for replica in ours or record.replicas:
        if replica.verified and _is_new_look(replica, item):
            return Verdict.VERIFIED
    looked = [it for it in record.replicas if it.verified_at and _is_new_look(it, item)]
    if looked and all(replica in looked for replica in ours):
        return Verdict.REFUSED
    return Verdict.PENDING


def _find_ours(record: Datafile, item: Registered, box: str) -> list[Replica]:
    """Return the replicas that are where we put the bytes."""
    if item.placed_by_server:
        return []
    remote = item.wanted.remote
    return [it for it in record.replicas if it.uri == remote and (not box or it.location == box)]


def _is_new_look(replica: Replica, item: Registered) -> bool:
    """Return whether the server may have looked at our bytes; it may not tell when it did.

    A record that had a replica before was verified with other bytes then.
    """
    if replica.verified_at is None:
        repaired = item.wanted.datafile is not None and bool(item.wanted.datafile.replicas)
        return replica.verified and not repaired
    return replica.verified_at not in item.before


Judged = tuple[Datafile, Verdict]


class Rooms(NamedTuple):
    """Where the datafiles of one dataset are kept, however many they are.

    `early` has records that were seen before we were told that they are ours.
    """

    new: MutableMapping[Key, Registered]
    early: MutableMapping[Key, Datafile]


class Unverified:
    """What is open in one dataset: datafiles new in this run, and older ones by their ids."""

    def __init__(self, dataset: DatasetId, offset: int, rooms: Rooms, box: str) -> None:
        self.dataset = dataset
        self.progressed = 0.0
        self.offset = offset  # of the first record that is to be looked at
        self._box = box
        self._known_before = offset  # records come in the order of their making
        self._counted = 0  # verified ones, as the server's numbers said when they were listed last
        self._stats: DatasetStats | None = None  # these numbers
        self._listed_at = -inf
        self._new, self._early = rooms
        self._seen = 0  # how many of the new ones have an id, as a listing has shown their record
        self._settled = IdSet()  # records that need no further look, behind the offset
        self._old: dict[DatafileId, Registered] = {}
        self._asked: dict[DatafileId, float] = {}  # when verification was asked for
        self._ready: list[Registered] = []  # verified, with their ids
        self._missed: dict[Key, float] = {}  # when a whole listing lacked it first
        self._listed_all = False

    def __len__(self) -> int:
        return len(self._new) + len(self._old) + len(self._ready)

    def add(self, item: Registered) -> None:
        if item.datafile is not None:
            self._old[item.datafile] = item
            return
        key = key_of(item)
        record = self._early.pop(key, None) if self._early else None
        if record is not None and self.judge(record, item) is Verdict.VERIFIED:
            self._ready.append(item._replace(datafile=record.id))
            return
        if record is not None:
            self.offset = 0
        self._new[key] = item

    @property
    def knows_more(self) -> bool:
        """Whether records were seen of which we may still be told that they are ours."""
        return bool(self._early)

    def judge(self, record: Datafile, item: Registered) -> Verdict:
        """Return what a record says of one of ours."""
        return judge(record, item, self._box)

    def deserves_listing(self, stats: DatasetStats | None, now: float) -> bool:
        """Return whether the records are worth a look.

        That is where the server's numbers suggest that much, or all, has been verified. As they
        prove nothing and may be wrong, silence is a reason, too.
        """
        if stats is None or self._old or self.is_quiet(now) or self.doubts(now):
            return True
        enough = stats.verified - self._counted >= min(MANY, len(self._new))
        worth = enough or stats.total == stats.verified
        if not worth or (stats == self._stats and now - self._listed_at < LOOK_AGAIN_AFTER):
            return False
        self._stats, self._counted, self._listed_at = stats, stats.verified, now
        return True

    def is_quiet(self, now: float) -> bool:
        """Return whether nothing has been verified for so long that it is to be asked for."""
        return now - self.progressed >= ASK_AFTER

    def doubts(self, now: float) -> bool:
        """Return whether it is time to look again for what seems to be missing."""
        first = min(self._missed.values(), default=now)
        return now - first >= LOOK_AGAIN_AFTER

    def fetch(self, server: ServerAPI, *, thorough: bool) -> list[Judged]:
        """Look at the records of what is open, and return those that are not verified.

        What is verified is let go by `take_ready`, also after a look that failed halfway. Of the
        new ones only those are returned that the server has refused. It looks in the order of their
        making, more or less: after many that it has not looked at the rest is left for later.
        `thorough` looks at all, as records that vanish move later ones forward, and returns a few
        of the pending ones.
        """
        if thorough:
            self.offset = 0
        judged: list[Judged] = []
        for record in server.fetch_datafiles(list(self._old)) if self._old else ():
            item = self._old.get(record.id)
            verdict = self._see(record, item)
            if item and verdict is not Verdict.VERIFIED:
                judged.append((record, verdict))
        if self._new:
            judged += self._list_new(server, thorough=thorough)
        return judged

    def _list_new(self, server: ServerAPI, *, thorough: bool) -> list[Judged]:
        refused: list[Judged] = []
        pending: list[Judged] = []
        done, leading, in_a_row = 0, True, 0
        self._listed_all = False
        listing = server.list_datafiles(self.dataset, self.offset)
        for position, record in enumerate(listing, self.offset):
            in_a_row = 0 if record.verified else in_a_row + 1
            if in_a_row > MANY and not thorough:
                break
            item = self.find(record)
            verdict = self._see(record, item)
            settled = verdict is Verdict.VERIFIED if item else self._pass_by(record, position)
            leading = leading and settled
            done += leading
            if item and verdict is Verdict.REFUSED:
                refused.append((record, verdict))
            elif item and not settled and thorough and len(pending) < ASK_AT_ONCE:
                pending.append((record, verdict))
        else:
            self._listed_all = True
        self.offset += done
        return refused + pending

    def _see(self, record: Datafile, item: Registered | None) -> Verdict:
        """Judge a record, and note that ours is there."""
        if item is None:
            return Verdict.PENDING
        verdict = self.judge(record, item)
        if verdict is Verdict.VERIFIED:
            self._settled.add(record.id)
            self._ready.append(self.take(record))
        elif item.datafile is None:
            self._new[key_of(item)] = item._replace(datafile=record.id)
            self._seen += 1
        return verdict

    def _pass_by(self, record: Datafile, position: int) -> bool:
        """Return whether a record that is none of what is open needs no further look.

        We may be told in a moment that one that was made in this run is ours.
        """
        if record.id in self._settled:
            return True
        if record.verified and position >= self._known_before:
            self._early[_key(record)] = record
            self._settled.add(record.id)
        return record.verified

    def find_missing(self, now: float, *, thorough: bool) -> list[Registered]:
        """Let go what two listings lacked, of which the second was `thorough`, and return it."""
        if not self._listed_all or len(self._new) == self._seen:
            self._missed.clear()
            return []
        keys = [key for key, item in self._new.items() if item.datafile is None]
        self._missed = {key: self._missed.get(key, now) for key in keys}
        if not thorough:
            return []
        due = [key for key in keys if now - self._missed[key] >= LOOK_AGAIN_AFTER]
        for key in due:
            del self._missed[key]
        return [self._new.pop(key) for key in due]

    def find(self, record: Datafile) -> Registered | None:
        found = self._old.get(record.id) if self._old else None
        return found or self._new.get(_key(record))

    def take(self, record: Datafile) -> Registered:
        """Let go what a record is of, and return it with its id."""
        if self._old and record.id in self._old:
            return self._old.pop(record.id)
        item = self._new.pop(_key(record))
        self._seen -= item.datafile is not None
        # `_replace` takes three times as long.
        return Registered(item.wanted, item.checksum, record.id, item.before, item.placed_by_server)

    def take_ready(self) -> list[Registered]:
        """Let go what was seen to be verified, and return it."""
        ready, self._ready = self._ready, []
        return ready

    def was_asked(self, record: Datafile, now: float) -> bool | None:
        """Return whether verification was asked for; None where that was a moment ago."""
        asked = self._asked.get(record.id)
        if asked is None:
            return False
        return True if now - asked >= LOOK_AGAIN_AFTER else None

    def note_question(self, record: Datafile, now: float) -> None:
        """From now on only an answer later than the record's last one counts."""
        item = self.take(record)
        self._asked[record.id] = now
        self.add(item._replace(datafile=record.id, before=record.looks))

    def take_all(self) -> Iterator[list[Registered]]:
        """Let all go, a part at a time."""
        items = iter(self._new.values())
        while part := list(islice(items, MANY)):
            yield part
        self._new.clear()
        yield list(self._old.values())
        self._old.clear()


def key_of(item: Registered) -> Key:
    """Return the directory and name under which the server has a file."""
    file = item.wanted.file
    return file.directory.decode(), file.name.decode()


def _key(record: Datafile) -> Key:
    return record.directory or "", record.name
