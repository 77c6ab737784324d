"""What is asked, and when: nothing goes because of what the server said a while ago."""

from contextlib import contextmanager

import pytest

from mydata_like.catalogues.mytardis.reverify import LASTS, Reverification, Reverify
from mydata_like.catalogues.mytardis.server_check import FRESH, LARGE, ServerCheck
from mydata_like.core.archives import Indexed
from mydata_like.core.deletion import CleanupCandidate, DeletedFile, KeptFile
from mydata_like.core.errors import ArchiveError, RejectedError, ServerUnavailableError
from mydata_like.core.model import Datafile, DatafileId, DatasetId, Entry, EntryState, Replica
from mydata_like.engine.local_cleanup import AT_ONCE, LocalCleanup
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer

DATASET = DatasetId(7)
CHECKSUM = "1" * 32
PATIENCE = 100.0
COPY = (Replica("S-7/x", "box", verified=True, verified_at="2026-01-05T10:00:00"),)


class SlowDisk:
    """Local files that all have the checksum they should, and take their time to be read."""

    aside = ""

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

    def check_unused(self):
        pass

    def delete(self, confirm):
        confirm()
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


def add(server, ledger, name, *, numbered=False, size=5):
    """Let the server and the ledger have a verified file."""
    record = server.add(
        DATASET, Datafile(DatafileId(0), DATASET, "raw", name, size, CHECKSUM, "", COPY)
    )
    key = f"alice/S/raw/{name}".encode()
    number = record.id if numbered else None
    ledger.record([Entry(key, size, 0, EntryState.VERIFIED, DATASET, CHECKSUM, "S-7/x", number)])
    return CleanupCandidate(key, size)


def free(server, ledger, disk, clock, found, *, form=None):
    cancel, deeds, noted = clock.cancel(), Deeds(), []
    reverify = Reverify(server, clock, cancel, Reverification("box", patience=PATIENCE))
    proof = ServerCheck(server, form, clock, cancel, 60.0, box="box", reverify=reverify)
    fates = list(LocalCleanup(proof, ledger, disk, deeds, noted.extend, cancel)(found))
    assert (
        deeds.noted == disk.deleted == [fate.key for fate in fates if isinstance(fate, DeletedFile)]
    )
    return [fate.problem.code if isinstance(fate, KeptFile) else "freed" for fate in fates]


def test_many_files_are_found_by_one_listing_and_few_by_their_names(server, ledger, clock):
    many = [add(server, ledger, f"{number}.dat") for number in range(2 * AT_ONCE)]
    assert free(server, ledger, SlowDisk(clock), clock, many) == ["freed"] * len(many)
    assert server.calls["list_datafiles"] == 1
    assert server.calls["fetch_datafiles"] == 6  # before the question, for its answer, and after

    assert free(server, ledger, SlowDisk(clock), clock, many[:3]) == ["freed"] * 3
    assert server.calls["list_datafiles"] == 1
    assert server.calls["find_datafiles"] == 6


@pytest.mark.parametrize("numbered", [True, False])
def test_what_took_long_to_read_is_asked_for_once_more(server, ledger, clock, numbered):
    found = add(server, ledger, "large.dat", numbered=numbered)
    disk = SlowDisk(clock, FRESH + 1, server.records.clear)

    assert free(server, ledger, disk, clock, [found]) == ["free.no-record"]


def test_what_was_read_in_time_is_not(server, ledger, clock):
    found = add(server, ledger, "small.dat", numbered=True)
    assert free(server, ledger, SlowDisk(clock, FRESH - 1), clock, [found]) == ["freed"]
    assert server.calls["fetch_datafiles"] == 3


def test_for_many_that_take_long_together_it_is_asked_now_and_then(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat", numbered=True) for number in range(60)]
    assert free(server, ledger, SlowDisk(clock, FRESH / 10), clock, found) == ["freed"] * 60
    assert server.calls["fetch_datafiles"] < 20
    assert server.calls["request_verification"] == 60


def test_an_answer_that_is_too_old_counts_no_more(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat", numbered=True) for number in range(60)]
    assert free(server, ledger, SlowDisk(clock, LASTS / 40), clock, found) == ["freed"] * 60
    assert 60 < server.calls["request_verification"] < 90


def test_while_the_server_is_away_there_is_no_retry_and_all_stay(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat", numbered=True) for number in range(AT_ONCE + 5)]
    server.faults["fetch_account"] = [ServerUnavailableError("It is away.")]

    fates = free(server, ledger, SlowDisk(clock), clock, found)

    assert fates == ["server.unavailable"] * len(found)
    assert server.calls["fetch_account"] == 1


@pytest.mark.parametrize("uri", ["cached/x", "S-7/x"], ids=["other path", "same path"])
def test_a_verified_copy_is_not_enough_where_our_own_is_not(server, ledger, clock, uri):
    found = add(server, ledger, "a.dat")
    (record,) = server.records.values()
    copies = (Replica(uri, "cache", True, "2026-01-05T09:00:00"), COPY[0]._replace(verified=False))
    server.records[record.id] = record._replace(replicas=copies)

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["free.no-replica"]


def test_any_verified_copy_will_do_where_our_own_has_left(server, ledger, clock):
    found = add(server, ledger, "a.dat")
    (record,) = server.records.values()
    moved = Replica("kept/x", "vault", verified=True, verified_at="2026-01-05T11:00:00")
    server.records[record.id] = record._replace(replicas=(moved,))

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["freed"]


def test_a_record_of_the_same_name_in_another_folder_proves_nothing(server, ledger, clock):
    found = add(server, ledger, "a.dat")
    (number,) = server.records
    server.records[number] = server.records[number]._replace(directory="other")

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["free.no-record"]


def change(server, *replicas):
    """Let the only record have these replicas."""
    (record,) = server.records.values()
    server.records[record.id] = record._replace(replicas=replicas)


@pytest.mark.parametrize("numbered", [True, False])
def test_bytes_that_rotted_since_they_were_verified_keep_the_file(server, ledger, clock, numbered):
    found = [add(server, ledger, name, numbered=numbered) for name in ("good", "rotten")]
    server.bad.add("rotten")

    assert free(server, ledger, SlowDisk(clock), clock, found) == ["freed", "free.no-replica"]


def test_a_server_that_does_not_look_is_waited_for_ever_less(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat") for number in range(3 * AT_ONCE)]
    server.unread.add("box")

    fates = free(server, ledger, SlowDisk(clock), clock, found)

    assert set(fates) == {"free.not-verified-again"}
    assert PATIENCE <= clock.monotonic() < 1.5 * PATIENCE


def test_one_file_that_is_not_looked_at_holds_no_other_back(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat", size=LARGE) for number in range(3)]
    server.records[1] = server.records[1]._replace(replicas=(COPY[0]._replace(location="tape"),))
    server.unread.add("tape")

    fates = free(server, ledger, SlowDisk(clock), clock, found)

    assert fates == ["free.not-verified-again", "freed", "freed"]


def test_what_is_not_looked_at_holds_the_others_up_but_little(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat") for number in range(3 * AT_ONCE)]
    lost = [number for number in server.records if number % 100 == 0]
    for number in lost:
        copies = (COPY[0]._replace(location="tape"),)
        server.records[number] = server.records[number]._replace(replicas=copies)
    server.unread.add("tape")

    fates = free(server, ledger, SlowDisk(clock), clock, found)

    assert fates.count("free.not-verified-again") == len(lost)
    assert fates.count("freed") == len(found) - len(lost)
    assert clock.monotonic() < 2 * PATIENCE


def test_the_server_says_why_it_does_not_look(server, ledger, clock):
    found = add(server, ledger, "a.dat")
    server.faults["request_verification"] = [RejectedError("No.", code="server.forbidden")]

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["server.forbidden"]
    assert clock.monotonic() < 1


def test_a_server_that_goes_away_while_it_is_asked_keeps_all(server, ledger, clock):
    found = [add(server, ledger, f"{number}.dat") for number in range(20)]
    server.faults["request_verification"] = [ServerUnavailableError("It is away.")] * 4

    assert set(free(server, ledger, SlowDisk(clock), clock, found)) == {"server.unavailable"}


def test_a_stale_copy_elsewhere_proves_nothing_where_our_own_has_left(server, ledger, clock):
    found = add(server, ledger, "a.dat")
    change(server, Replica("kept/x", "vault", True, "2026-01-05T11:00:00"))
    server.unread.add("vault")

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["free.not-verified-again"]


@pytest.mark.parametrize("uri", ["../x", "/etc/x", "S-7/../../x", ""])
def test_a_copy_outside_of_its_box_proves_nothing(server, ledger, clock, uri):
    found = add(server, ledger, "a.dat")
    change(server, Replica(uri, "box", True, "2026-01-05T11:00:00"))

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["free.no-replica"]


@pytest.mark.parametrize("before", ["2026-01-05T23:00:00", "2026-01-05T10:00:00Z", "yesterday"])
def test_a_time_that_is_not_later_proves_nothing(server, ledger, clock, before):
    """A cache may show an earlier state of the record, and a clock may go back."""
    found = add(server, ledger, "a.dat")
    change(server, COPY[0]._replace(verified_at=before))

    assert free(server, ledger, SlowDisk(clock), clock, [found]) == ["free.not-verified-again"]


def test_about_a_large_file_the_server_is_asked_when_it_has_been_read(server, ledger, clock):
    found = add(server, ledger, "large.dat", size=LARGE)
    asked = []
    disk = SlowDisk(clock, 3600, lambda: asked.append(server.calls["request_verification"]))

    assert free(server, ledger, disk, clock, [found]) == ["freed"]
    assert asked == [0]
    assert server.calls["request_verification"] == 1


class Form:
    """Archives that hold all members, or are damaged."""

    def __init__(self, *members):
        self._members = members

    def read_index(self, chunks):
        if not self._members:
            raise ArchiveError("It is damaged.")
        return self._members


def add_archive(server, ledger, names):
    """Let the server have files in an archive."""
    record = Datafile(DatafileId(0), DATASET, "", "S.tar", 9000, "a" * 32, "", COPY)
    record = server.add(DATASET, record)
    server.contents["S.tar"] = b"bytes"
    for name in names:
        key = f"alice/S/{name}".encode()
        row = Entry(key, 5, 0, EntryState.VERIFIED, DATASET, CHECKSUM, "S-7/x", record.id)
        ledger.record([row._replace(archive="S.tar")])
    return [CleanupCandidate(f"alice/S/{name}".encode(), 5) for name in names]


def test_an_archive_is_read_and_asked_about_once_for_all_of_its_files(server, ledger, clock):
    names = [f"{number}.txt" for number in range(2 * AT_ONCE)]
    found = add_archive(server, ledger, names)
    members = [Indexed(b"S/" + name.encode(), 5, 0, 0, CHECKSUM) for name in names]

    fates = free(server, ledger, SlowDisk(clock), clock, found, form=Form(*members))

    assert fates == ["freed"] * len(names)
    assert server.calls["read_datafile"] == 1
    assert server.calls["request_verification"] == 1


def test_a_damaged_archive_is_read_once_and_keeps_its_files(server, ledger, clock):
    found = add_archive(server, ledger, [f"{number}.txt" for number in range(30)])

    fates = free(server, ledger, SlowDisk(clock), clock, found, form=Form())

    assert fates == ["free.damaged-archive"] * 30
    assert server.calls["read_datafile"] == 1


def test_to_look_asks_for_no_verification(server, ledger, clock):
    found = add(server, ledger, "a.dat")
    cancel = clock.cancel()
    proof = ServerCheck(server, None, clock, cancel, 60.0, box="box")

    (fate,) = LocalCleanup(proof, ledger, SlowDisk(clock), None, [].extend, cancel)([found])

    assert isinstance(fate, DeletedFile)
    assert server.calls["request_verification"] == 0
