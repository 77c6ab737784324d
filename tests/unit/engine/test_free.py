"""What is asked, and when: nothing goes because of what the server said a while ago."""

from contextlib import contextmanager

import pytest

from mydata_like.core.errors import ServerUnavailableError
from mydata_like.core.freeing import Found, Freed, Spared
from mydata_like.core.model import Datafile, DatafileId, DatasetId, Entry, EntryState, Replica
from mydata_like.engine.free import AT_ONCE, Free
from mydata_like.engine.proving import FRESH, Proof
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer

DATASET = DatasetId(7)
CHECKSUM = "1" * 32
COPY = (Replica("S-7/x", "box", verified=True, verified_at="then"),)


class SlowDisk:
    """Local files that all have the checksum they should, and take their time to be read."""

    def __init__(self, clock, seconds=0.0, meanwhile=lambda: None):
        self.deleted = []
        self._clock, self._seconds, self._meanwhile = clock, seconds, meanwhile

    @contextmanager
    def hold(self, entry):
        self._entry = entry
        yield self

    def measure(self, cancel):
        self._clock.move(self._seconds)
        self._meanwhile()
        return CHECKSUM

    def delete(self):
        self.deleted.append(self._entry.key)


class Deeds:
    def __init__(self):
        self.noted = []

    def note(self, freed):
        self.noted.append(freed.key)

    def take_back(self, freed, problem):
        raise AssertionError("nothing fails here")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def server():
    return ScriptedServer()


@pytest.fixture
def ledger():
    return MemoryLedger()


def add(server, ledger, name, *, numbered=False):
    """Let the server and the ledger have a verified file."""
    record = server.add(
        DATASET, Datafile(DatafileId(0), DATASET, "raw", name, 5, CHECKSUM, "", COPY)
    )
    key = f"alice/S/raw/{name}".encode()
    number = record.id if numbered else None
    ledger.record([Entry(key, 5, 0, EntryState.VERIFIED, DATASET, CHECKSUM, "S-7/x", number)])
    return Found(key, 5)


def free(server, ledger, disk, clock, found):
    cancel, deeds = clock.cancel(), Deeds()
    proof = Proof(server, None, clock, cancel, settle=60.0)
    fates = list(Free(proof, ledger, disk, deeds)(found))
    assert deeds.noted == disk.deleted == [fate.key for fate in fates if isinstance(fate, Freed)]
    return [fate.problem.code if isinstance(fate, Spared) else "freed" for fate in fates]


def test_many_files_are_found_by_one_listing_and_few_by_their_names(server, ledger, clock):
    many = [add(server, ledger, f"{number}.dat") for number in range(2 * AT_ONCE)]
    assert free(server, ledger, SlowDisk(clock), clock, many) == ["freed"] * len(many)
    assert server.calls["list_datafiles"] == 1
    assert server.calls["fetch_datafiles"] == 2

    assert free(server, ledger, SlowDisk(clock), clock, many[:3]) == ["freed"] * 3
    assert server.calls["list_datafiles"] == 1
    assert server.calls["find_datafiles"] == 3


@pytest.mark.parametrize("numbered", [True, False])
def test_what_took_long_to_read_is_asked_for_once_more(server, ledger, clock, numbered):
    found = add(server, ledger, "large.dat", numbered=numbered)
    disk = SlowDisk(clock, FRESH + 1, server.records.clear)

    assert free(server, ledger, disk, clock, [found]) == ["free.no-record"]


def test_what_was_read_in_time_is_not(server, ledger, clock):
    found = add(server, ledger, "small.dat", numbered=True)
    assert free(server, ledger, SlowDisk(clock, FRESH - 1), clock, [found]) == ["freed"]
    assert server.calls["fetch_datafiles"] == 1


def test_for_many_that_take_long_together_it_is_asked_now_and_then(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat", numbered=True) for number in range(40)]
    assert free(server, ledger, SlowDisk(clock, FRESH / 10), clock, found) == ["freed"] * 40
    assert server.calls["fetch_datafiles"] < 10


def test_where_the_server_is_away_nobody_asks_again_and_all_stay(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat", numbered=True) for number in range(AT_ONCE + 5)]
    server.faults["fetch_account"] = [ServerUnavailableError("It is away.")]

    fates = free(server, ledger, SlowDisk(clock), clock, found)

    assert fates == ["server.unavailable"] * len(found)
    assert server.calls["fetch_account"] == 1


@pytest.mark.parametrize("uri", ["cached/x", "S-7/x"], ids=["other path", "same path"])
def test_a_verified_copy_is_not_enough_where_our_own_is_not(server, ledger, clock, uri):
    found = add(server, ledger, "a.dat")
    (record,) = server.records.values()
    copies = (Replica(uri, "cache", True, "before"), COPY[0]._replace(verified=False))
    server.records[record.id] = record._replace(replicas=copies)

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["free.no-replica"]


def test_any_verified_copy_will_do_where_our_own_has_left(server, ledger, clock):
    found = add(server, ledger, "a.dat")
    (record,) = server.records.values()
    moved = Replica("kept/x", "vault", verified=True, verified_at="later")
    server.records[record.id] = record._replace(replicas=(moved,))

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["freed"]


def test_a_record_of_the_same_name_in_another_folder_proves_nothing(server, ledger, clock):
    found = add(server, ledger, "a.dat")
    (number,) = server.records
    server.records[number] = server.records[number]._replace(directory="other")

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["free.no-record"]
