"""What of one dataset is not verified yet, and what the server's records say of it."""

from collections.abc import Iterator, MutableMapping
from enum import Enum
from itertools import islice

from mydata_like.core.model import Datafile, DatafileId, Dataset, DatasetStats, Registered
from mydata_like.core.ports import ServerAPI

MANY = 1000  # so many newly verified datafiles are worth a page of the listing
ASK_AFTER = 10.0  # seconds without progress after which verification is asked for
ASK_AT_ONCE = 50

Key = tuple[str, str]


class Verdict(Enum):
    """What a record says about the bytes that we sent."""

    VERIFIED = "verified"
    REFUSED = "refused"
    PENDING = "pending"


def judge(record: Datafile, item: Registered) -> Verdict:
    """Return what the server found; a look it took before our bytes came says nothing.

    Bytes are refused where they were put: another replica may lack them for as long as it likes.
    """
    if record.checksum != item.checksum:
        return Verdict.REFUSED
    news = set(record.looks) - set(item.before)
    if any(replica.verified for replica in record.replicas if replica.verified_at in news):
        return Verdict.VERIFIED
    written = record.copies_at(item.wanted.remote)
    if news and all(replica.verified_at in news for replica in written):
        return Verdict.REFUSED
    return Verdict.PENDING


class Unverified:
    """What is open in one dataset: datafiles new in this run, and older ones by their ids."""

    def __init__(self, dataset: Dataset, now: float, room: MutableMapping[Key, Registered]) -> None:
        self.dataset = dataset.id
        self.progressed = now
        self._offset = dataset.files  # records come in the order of their making
        self._listed = 0
        self._new = room
        self._old: dict[DatafileId, Registered] = {}
        self._asked: set[DatafileId] = set()

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, item: Registered) -> None:
        if item.datafile is None:
            file = item.wanted.file
            self._new[file.directory.decode(), file.name.decode()] = item
        else:
            self._old[item.datafile] = item

    def deserves_listing(self, stats: DatasetStats | None, quiet: float) -> bool:
        """Return whether the records are worth a look: many verified, old ones, or silence."""
        if stats is None or self._old or quiet >= ASK_AFTER:
            return True
        worth = stats.verified - self._listed >= MANY
        self._listed = stats.verified if worth else self._listed
        return worth

    def fetch(self, server: ServerAPI, *, thorough: bool) -> list[Datafile]:
        """Return the records of what is open and the server has looked at; of new ones only those.

        It looks in the order of their making, more or less: after many that it has not looked at
        the rest is left for later. `thorough` looks at all, as records that vanish move later ones
        forward, and returns a few of the pending ones.
        """
        if thorough:
            self._offset = 0
        records = server.fetch_datafiles(list(self._old)) if self._old else []
        if self._new:
            records += self._list_new(server, thorough=thorough)
        return records

    def _list_new(self, server: ServerAPI, *, thorough: bool) -> list[Datafile]:
        told: list[Datafile] = []
        pending: list[Datafile] = []
        done, leading, in_a_row = 0, True, 0
        for record in server.list_datafiles(self.dataset, self._offset):
            leading = leading and record.verified
            done += leading
            in_a_row = 0 if record.verified else in_a_row + 1
            if in_a_row > MANY and not thorough:
                break
            item = self.find(record)
            if item and judge(record, item) is not Verdict.PENDING:
                told.append(record)
            elif item and thorough and len(pending) < ASK_AT_ONCE:
                pending.append(record)
        self._offset += done
        return told + pending

    def find(self, record: Datafile) -> Registered | None:
        return self._old.get(record.id) or self._new.get(_key(record))

    def take(self, record: Datafile) -> Registered:
        if record.id in self._old:
            return self._old.pop(record.id)
        return self._new.pop(_key(record))

    def was_asked(self, record: Datafile) -> bool:
        return record.id in self._asked

    def note_question(self, record: Datafile) -> None:
        """From now on only an answer later than the record's last one counts."""
        item = self.take(record)
        self._asked.add(record.id)
        self.add(item._replace(datafile=record.id, before=record.looks))

    def take_new(self) -> Iterator[list[Registered]]:
        """Yield what is new in this run, a part at a time, and let it go."""
        items = iter(self._new.values())
        while part := list(islice(items, MANY)):
            yield part
        self._new.clear()

    def take_all(self) -> Iterator[list[Registered]]:
        yield from self.take_new()
        yield list(self._old.values())
        self._old.clear()


def _key(record: Datafile) -> Key:
    return record.directory or "", record.name
