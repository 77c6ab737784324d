"""What every ledger promises, kept by the one in memory and the one on the disk."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mydata_like.core.archives import Archive
from mydata_like.core.model import (
    DatafileId,
    DatasetId,
    DatasetStats,
    Entry,
    EntryState,
    LocalFile,
    Replacement,
)
from mydata_like.core.ports import Ledger
from mydata_like.store.ledger import SqliteLedger
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger

HERE, THERE = DatasetId(1), DatasetId(2)
AWKWARD = [
    b"new\nline",
    b"\xff\xfe",
    b"caf\xc3\xa9",
    b"cafe\xcc\x81",
    b"'; DROP TABLE entries",
    b"a" * 4000,
]


def entry(key: bytes, state: EntryState = EntryState.VERIFIED, dataset: DatasetId = HERE) -> Entry:
    return Entry(key, 3, 1_700_000_000_123_456_789, state, dataset, "0" * 32, "d/x", DatafileId(7))


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    with SqliteLedger.open(tmp_path / "state" / "ledger.db", b"/data", FakeClock()) as opened:
        yield opened


@pytest.mark.parametrize("key", AWKWARD)
def test_what_is_recorded_is_found_as_it_was(ledger: Ledger, key: bytes) -> None:
    failed = Entry(key, 2**62, -1, EntryState.FAILED, HERE, problem="file.changed")

    ledger.record([failed])

    assert ledger.find_entries([key]) == {key: failed}


@pytest.mark.parametrize("state", EntryState)
def test_every_state_is_kept(ledger: Ledger, state: EntryState) -> None:
    ledger.record([entry(b"a", state)])

    assert ledger.find_entries([b"a"])[b"a"].state is state


def test_unknown_files_are_left_out(ledger: Ledger) -> None:
    ledger.record([entry(b"known")])

    assert list(ledger.find_entries([b"unknown", b"known"])) == [b"known"]
    assert ledger.find_entries([]) == {}


def test_later_rows_replace_earlier_ones(ledger: Ledger) -> None:
    ledger.record([entry(b"a", EntryState.STAGED), entry(b"a", EntryState.REGISTERED)])
    ledger.record([entry(b"a", EntryState.VERIFIED)])

    assert ledger.find_entries([b"a"]) == {b"a": entry(b"a")}
    assert ledger.count_entries(HERE) == DatasetStats(1, 1)


def test_thousands_of_keys_are_found_at_once(ledger: Ledger) -> None:
    keys = [b"%d" % number for number in range(5000)]

    ledger.record([entry(key) for key in keys])

    assert ledger.find_entries(keys) == {key: entry(key) for key in keys}


def local(key: bytes, size: int = 3, modified_ns: int = entry(b"").modified_ns) -> LocalFile:
    return LocalFile(b"/data/" + key, key, b"", key, size, modified_ns, 1, 1)


def test_files_that_are_verified_as_they_are_now_are_not_open(ledger: Ledger) -> None:
    keys = [*AWKWARD, *(b"%d" % number for number in range(1000))]
    ledger.record([entry(key) for key in keys])

    assert ledger.find_open(HERE, [local(key) for key in keys]) == set()
    assert ledger.find_open(HERE, []) == set()


@pytest.mark.parametrize(
    "state", [state for state in EntryState if state is not EntryState.VERIFIED]
)
def test_what_is_not_verified_is_open(ledger: Ledger, state: EntryState) -> None:
    ledger.record([entry(b"a", state), entry(b"b")])

    assert ledger.find_open(HERE, [local(b"a"), local(b"b")]) == {b"a"}


def test_what_changed_or_is_unknown_or_lies_elsewhere_is_open(ledger: Ledger) -> None:
    same, larger, later = local(b"same"), local(b"larger", size=4), local(b"later", modified_ns=1)
    elsewhere, unknown = local(b"elsewhere"), local(b"unknown")
    ledger.record([entry(file.key) for file in (same, larger, later)])
    ledger.record([entry(elsewhere.key, dataset=THERE)])

    found = ledger.find_open(HERE, [same, larger, later, elsewhere, unknown])

    assert found == {larger.key, later.key, elsewhere.key, unknown.key}


def test_datasets_are_counted_apart(ledger: Ledger) -> None:
    ledger.record([entry(b"a"), entry(b"b", EntryState.STAGED), entry(b"c", dataset=THERE)])

    assert ledger.count_entries(HERE) == DatasetStats(total=2, verified=1)
    assert ledger.count_entries(THERE) == DatasetStats(total=1, verified=1)
    assert ledger.count_entries(DatasetId(3)) == DatasetStats(total=0, verified=0)


def test_a_file_that_moves_to_another_dataset_is_counted_there_only(ledger: Ledger) -> None:
    ledger.record([entry(b"a")])
    ledger.record([entry(b"a", dataset=THERE)])

    assert ledger.count_entries(HERE) == DatasetStats(0, 0)
    assert ledger.count_entries(THERE) == DatasetStats(1, 1)


def test_all_threads_see_what_any_has_recorded(ledger: Ledger) -> None:
    def record_and_find(number: int) -> bool:
        keys = [b"%d-%d" % (number, index) for index in range(50)]
        ledger.record([entry(key) for key in keys])
        return set(ledger.find_entries(keys)) == set(keys)

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(record_and_find, range(20)))

    assert all(seen)
    assert ledger.count_entries(HERE).total == 20 * 50


def test_flushing_and_closing_may_be_repeated(ledger: Ledger) -> None:
    ledger.record([entry(b"a")])
    ledger.flush()
    ledger.flush()
    ledger.close()
    ledger.close()


def archive(state: EntryState = EntryState.STAGED, name: str = "a-0001.tar") -> Archive:
    return Archive(HERE, f"raw/{name}", 4096, -5, state, "1" * 32, f"d-1/raw/{name}")


def inside(key: bytes, held: Archive) -> Entry:
    return entry(key, held.state)._replace(archive=held.path, datafile=held.datafile)


def test_an_archive_is_found_with_its_members(ledger: Ledger) -> None:
    ledger.record_archive(archive(), [inside(b"a", archive()), inside(b"b", archive())])

    assert ledger.find_archives(HERE) == {"raw/a-0001.tar": archive()}
    assert ledger.find_archives(THERE) == {}
    assert ledger.find_entries([b"a", b"b"])[b"a"] == inside(b"a", archive())


def test_members_come_as_far_as_their_archive(ledger: Ledger) -> None:
    ledger.record([entry(b"other", EntryState.STAGED)])
    ledger.record_archive(archive(), [inside(b"a", archive())])
    verified = archive(EntryState.VERIFIED)._replace(datafile=DatafileId(9))

    ledger.record_archive(verified)

    assert ledger.find_entries([b"a"])[b"a"] == inside(b"a", verified)
    assert ledger.find_entries([b"other"])[b"other"].state is EntryState.STAGED


def test_an_archive_that_is_made_anew_forgets_its_former_members(ledger: Ledger) -> None:
    ledger.record_archive(archive(), [inside(b"a", archive()), inside(b"gone", archive())])

    ledger.record_archive(archive(), [inside(b"a", archive())])

    assert list(ledger.find_entries([b"a", b"gone"])) == [b"a"]


def test_a_member_that_went_into_a_further_archive_does_not_follow_the_first(
    ledger: Ledger,
) -> None:
    second = archive(name="a-0002.tar")
    ledger.record_archive(archive(), [inside(b"a", archive()), inside(b"b", archive())])
    ledger.record_archive(second, [inside(b"a", second)])

    ledger.record_archive(archive(EntryState.VERIFIED))

    states = {key: found.state for key, found in ledger.find_entries([b"a", b"b"]).items()}
    assert states == {b"a": EntryState.STAGED, b"b": EntryState.VERIFIED}


def test_an_archive_counts_once_and_its_members_do_not(ledger: Ledger) -> None:
    ledger.record([entry(b"plain"), entry(b"waits", EntryState.STAGED), entry(b"x", dataset=THERE)])
    verified = archive(EntryState.VERIFIED)
    ledger.record_archive(verified, [inside(b"a", verified), inside(b"b", verified)])
    ledger.record_archive(archive(EntryState.REGISTERED, "b-0002.tar"), [])

    assert ledger.count_entries(HERE) == DatasetStats(4, 2)


def test_an_archive_without_a_record_does_not_count(ledger: Ledger) -> None:
    ledger.record_archive(archive(EntryState.STAGED), [])

    assert ledger.count_entries(HERE) == DatasetStats(0, 0)


def test_a_forgotten_archive_leaves_no_member(ledger: Ledger) -> None:
    ledger.record_archive(archive(), [inside(b"a", archive())])

    ledger.forget_archive(archive())

    assert ledger.find_archives(HERE) == {}
    assert ledger.find_entries([b"a"]) == {}


def replacement(key: bytes, checksum: str = "1" * 32) -> Replacement:
    return Replacement(key, HERE, DatafileId(7), "d/x", "d/.new", 3, checksum, 1_700_000_000)


def test_replacements_are_kept_until_they_are_forgotten(ledger: Ledger) -> None:
    rows = [replacement(key) for key in sorted(AWKWARD)]
    ledger.record_replacements(rows)
    assert ledger.find_replacements() == rows

    ledger.forget_replacements(rows[1:])
    assert ledger.find_replacements() == rows[:1]


def test_newer_bytes_of_a_file_replace_the_note_and_keep_it(ledger: Ledger) -> None:
    ledger.record_replacements([replacement(b"a")])
    ledger.record_replacements([replacement(b"a", "2" * 32)])

    ledger.forget_replacements([replacement(b"a")])

    assert ledger.find_replacements() == [replacement(b"a", "2" * 32)]


def test_a_record_of_an_earlier_state_counts_as_verified(ledger: Ledger) -> None:
    ledger.record([entry(b"a"), entry(b"b", EntryState.CHANGED), entry(b"c", EntryState.REPAIRED)])

    assert ledger.count_entries(HERE) == DatasetStats(3, 2)
