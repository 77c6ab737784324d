"""What every ledger promises, kept by the one in memory and the one on the disk."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mydata_like.core.archives import ArchiveRecord
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    ChangeChoice,
    ChangedFile,
    DatafileId,
    DatasetId,
    EarlierWrite,
    Entry,
    EntryState,
    HoldReason,
    NewestDatafile,
    Replacement,
    hash_keys,
)
from mydata_like.core.ports import Ledger
from mydata_like.ledger.sqlite_ledger import SqliteLedger
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


def test_stored_files_are_found_by_their_inodes(ledger: Ledger) -> None:
    stored = [entry(b"a")._replace(inode=1), entry(b"b", EntryState.REGISTERED)._replace(inode=1)]
    others = [
        entry(b"c")._replace(inode=3),
        entry(b"d", EntryState.CHANGED)._replace(inode=1),
        entry(b"e")._replace(inode=1, archive="batch.tar"),
        entry(b"f"),
    ]
    ledger.record([row._replace(ctime_ns=row.inode and 5) for row in [*stored, *others]])

    found = ledger.find_of_inodes([1, 2, *range(10, 2000)])

    assert sorted(found) == [row._replace(ctime_ns=5) for row in stored]


def test_a_forgotten_row_is_gone(ledger: Ledger) -> None:
    rows = [entry(b"a"), entry(b"b")]
    ledger.record(rows)
    ledger.record_late([entry(b"c", EntryState.REGISTERED)])

    ledger.forget([entry(b"a"), entry(b"c")])

    assert ledger.find_entries([b"a", b"b", b"c"]) == {b"b": rows[1]}


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


def test_steps_that_are_written_late_are_found_at_once(ledger: Ledger) -> None:
    ledger.record_late([entry(b"a", EntryState.STAGED), entry(b"b", EntryState.STAGED)])
    ledger.record_late([entry(b"b", EntryState.REGISTERED)])
    assert ledger.find_entries([b"a", b"b"]) == {
        b"a": entry(b"a", EntryState.STAGED),
        b"b": entry(b"b", EntryState.REGISTERED),
    }

    ledger.record([entry(b"b", EntryState.VERIFIED)])
    assert ledger.find_entries([b"b"]) == {b"b": entry(b"b")}


def test_thousands_of_keys_are_found_at_once(ledger: Ledger) -> None:
    keys = [b"%d" % number for number in range(5000)]

    ledger.record([entry(key) for key in keys])

    assert ledger.find_entries(keys) == {key: entry(key) for key in keys}


def local(key: bytes, size: int = 3, modified_ns: int = entry(b"").modified_ns) -> LocalFile:
    return LocalFile(b"/data/" + key, key, b"", key, size, modified_ns, 1, 1, 8)


def seen(key: bytes, number: int = 1, **changes: Any) -> Entry:
    """A row of `local(key)`, with the number of a record."""
    row = entry(key)._replace(datafile=DatafileId(number), ctime_ns=8, inode=1)
    return row._replace(**changes)


def test_files_that_are_verified_as_they_are_now_are_not_open(ledger: Ledger) -> None:
    keys = [*AWKWARD, *(b"%d" % number for number in range(1000))]
    ledger.record([seen(key) for key in keys])

    assert ledger.find_open([local(key) for key in keys]) == (frozenset(), {HERE})
    assert ledger.find_open([]) == (frozenset(), frozenset())


@pytest.mark.parametrize(
    "change",
    [
        {"datafile": None},
        {"ctime_ns": None},
        {"inode": None},
        {"ctime_ns": 9},
        {"inode": 2},
        {"size": 4},
        {"modified_ns": 1},
    ],
)
def test_what_is_not_known_exactly_as_it_is_is_open(
    ledger: Ledger, change: dict[str, int | None]
) -> None:
    ledger.record([seen(b"a", **change), seen(b"b", 2)])

    assert ledger.find_open([local(b"a"), local(b"b")]) == ({b"a"}, {HERE})


def test_inodes_may_be_longer_than_those_of_the_ledger(ledger: Ledger) -> None:
    file = local(b"a")._replace(inode=2**64 - 5)
    ledger.record([seen(b"a").adopt(file)])

    assert ledger.find_open([file, local(b"b")]) == ({b"b"}, {HERE})
    assert ledger.find_entries([b"a"])[b"a"].is_of(file)


@pytest.mark.parametrize(
    "state", [state for state in EntryState if state is not EntryState.VERIFIED]
)
def test_what_is_not_verified_is_open(ledger: Ledger, state: EntryState) -> None:
    ledger.record([seen(b"a", state=state), seen(b"b", 2)])

    assert ledger.find_open([local(b"a"), local(b"b")]).keys == {b"a"}


def test_the_datasets_of_files_that_are_not_open_are_reported(ledger: Ledger) -> None:
    ledger.record([seen(b"a"), seen(b"b", 2, dataset=THERE)])

    assert ledger.find_open([local(b"a"), local(b"b")]) == (frozenset(), {HERE, THERE})
    assert ledger.find_open([local(b"b"), local(b"c")]) == ({b"c"}, {THERE})


A_AND_B, C = b"digest of a and b", b"digest of c"
PARTS = {A_AND_B: hash_keys([b"a", b"b"]), C: hash_keys([b"c"])}


def list_parts(ledger: Ledger, same: Mapping[bytes, bytes]) -> None:
    ledger.record_listing(HERE, ledger.begin_listing(HERE), same)


def test_only_verified_files_of_the_dataset_have_records(ledger: Ledger) -> None:
    ledger.record([seen(b"a", 1), seen(b"b", 2, dataset=THERE), seen(b"c", datafile=None)])
    ledger.record([seen(b"d", 4, state=EntryState.CHANGED)])

    assert ledger.find_verified(HERE, [b"a", b"b", b"c", b"d", b"e"]) == {b"a": 1}


def test_parts_of_a_listing_are_known_until_the_next_one(ledger: Ledger) -> None:
    assert ledger.begin_listing(HERE).digests == frozenset()
    list_parts(ledger, PARTS)

    assert ledger.begin_listing(HERE).digests == PARTS.keys()
    assert ledger.begin_listing(THERE).digests == frozenset()
    list_parts(ledger, {A_AND_B: b""})
    assert ledger.begin_listing(HERE).digests == {A_AND_B}
    list_parts(ledger, {})
    assert ledger.begin_listing(HERE).digests == frozenset()


@pytest.mark.parametrize(
    "changed",
    [
        {"state": EntryState.CHANGED},
        {"state": EntryState.FAILED, "datafile": None},
        {"datafile": DatafileId(8)},
        {"dataset": THERE},
        {"size": 4},
        {"modified_ns": 1},
        {"ctime_ns": 1},
        {"inode": 99},
    ],
    ids=str,
)
def test_what_has_a_verified_row_that_changed_is_not_known_as_a_whole(
    ledger: Ledger, changed: dict[str, Any]
) -> None:
    ledger.record([seen(b"a"), seen(b"b", 7), seen(b"c", 9)])
    list_parts(ledger, PARTS)
    ledger.find_open_parts([(A_AND_B, [local(b"a"), local(b"b")]), (C, [local(b"c")])])

    assert ledger.find_known([A_AND_B, C]) == {A_AND_B: HERE, C: HERE}
    ledger.record([seen(b"b", 7)._replace(**changed)])

    assert ledger.begin_listing(HERE).digests == {C}
    assert ledger.find_known([A_AND_B, C]) == {C: HERE}


def test_what_is_compared_after_a_verified_row_has_changed_is_known(ledger: Ledger) -> None:
    ledger.record([seen(b"a"), seen(b"b", 7)])
    ledger.record([seen(b"b", 7, state=EntryState.CHANGED)])
    ledger.record([seen(b"b", 8)])

    list_parts(ledger, PARTS)
    ledger.find_open_parts([(A_AND_B, [local(b"a"), local(b"b")])])

    assert ledger.begin_listing(HERE).digests == PARTS.keys()
    assert ledger.find_known([A_AND_B]) == {A_AND_B: HERE}


def test_files_are_known_as_a_whole_if_all_of_them_are(ledger: Ledger) -> None:
    ledger.record([seen(b"a"), seen(b"b", 2), seen(b"c", 3, dataset=THERE)])

    groups = [(keys, [local(b"%c" % key) for key in keys]) for keys in (b"ab", b"ac", b"ax")]
    found = ledger.find_open_parts([*groups, (b"", [local(b"a")])])
    assert [it.keys for it in found] == [set(), set(), {b"x"}, set()]

    assert ledger.find_known([b"ab", b"ac", b"ax", b""]) == {b"ab": HERE}
    assert ledger.find_known([]) == {}


def test_rows_that_become_verified_leave_parts_known(ledger: Ledger) -> None:
    ledger.record([entry(b"a"), entry(b"b", EntryState.STAGED)])
    list_parts(ledger, PARTS)

    ledger.record([entry(b"b"), entry(b"c"), entry(b"a")])

    assert ledger.begin_listing(HERE).digests == PARTS.keys()


def test_a_part_with_a_row_that_changed_during_the_listing_is_not_known(ledger: Ledger) -> None:
    ledger.record([entry(b"a")])
    list_parts(ledger, PARTS)
    known = ledger.begin_listing(HERE)

    ledger.record([entry(b"a", EntryState.CHANGED)])
    ledger.begin_listing(HERE)  # of another process
    ledger.record_listing(HERE, known, PARTS)

    assert ledger.begin_listing(HERE).digests == {C}


def test_records_are_counted_by_dataset_and_above_an_id(ledger: Ledger) -> None:
    ledger.record([seen(b"%d" % number, number) for number in range(1, 8)])
    ledger.record([seen(b"8", 8, state=EntryState.REGISTERED), seen(b"x", 9, dataset=THERE)])
    ledger.record([seen(b"without a number", datafile=None)])

    assert ledger.count_records(HERE) == (8, 8)
    assert ledger.count_records(HERE, 5) == (3, 8)
    assert ledger.count_records(HERE, 5, 7) == (2, 7)
    assert ledger.count_records(HERE, 8) == (0, 0)
    assert ledger.count_records(THERE) == (1, 9)
    assert ledger.count_records(DatasetId(3)) == (0, 0)


def test_a_file_that_moves_to_another_dataset_is_counted_there_only(ledger: Ledger) -> None:
    ledger.record([seen(b"a")])
    ledger.record([seen(b"a", 2, dataset=THERE)])

    assert ledger.count_records(HERE) == (0, 0)
    assert ledger.count_records(THERE) == (1, 2)


def test_the_rows_of_a_dataset_that_are_verified_come_one_by_one(ledger: Ledger) -> None:
    rows = [seen(b"%d" % number, number) for number in range(1, 2500)]
    unnumbered = [seen(b"u%d" % number, datafile=None) for number in range(1500)]
    held = archive(EntryState.VERIFIED)
    ledger.record([*rows, *unnumbered, seen(b"there", dataset=THERE)])
    ledger.record([seen(b"staged", state=EntryState.STAGED)])
    ledger.record_archive(held, [inside(b"in an archive", held)])

    found = []
    for row in ledger.iter_verified(HERE):
        found.append(row)
        if row.datafile is None:  # what is changed on the way comes once all the same
            ledger.record([row._replace(datafile=DatafileId(9000 + len(found)))])

    assert sorted(found) == sorted([*rows, *unnumbered])


def test_what_a_listing_showed_is_kept(ledger: Ledger) -> None:
    ledger.record_listed(HERE, NewestDatafile(3, 30), 3)
    ledger.record_listed(HERE, NewestDatafile(4, 40), None)

    found = ledger.find_listed(HERE)
    assert found is not None
    assert found.newest == (4, 40)
    assert found.verified is None
    assert found.at.tzinfo is not None
    assert ledger.find_listed(THERE) is None
    ledger.record_proven(HERE, NewestDatafile(5, 50), 6)
    assert ledger.find_listed(HERE) == (NewestDatafile(5, 50), found.at, 6)


def test_all_threads_see_what_any_has_recorded(ledger: Ledger) -> None:
    def record_and_find(number: int) -> bool:
        keys = [b"%d-%d" % (number, index) for index in range(50)]
        ledger.record([entry(key) for key in keys])
        return set(ledger.find_entries(keys)) == set(keys)

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(record_and_find, range(20)))

    assert all(seen)
    assert len(list(ledger.iter_verified(HERE))) == 20 * 50


def test_flushing_and_closing_may_be_repeated(ledger: Ledger) -> None:
    ledger.record([entry(b"a")])
    ledger.flush()
    ledger.flush()
    ledger.close()
    ledger.close()


def archive(state: EntryState = EntryState.STAGED, name: str = "a-0001.tar") -> ArchiveRecord:
    return ArchiveRecord(HERE, f"raw/{name}", 4096, -5, state, "1" * 32, f"d-1/raw/{name}")


def inside(key: bytes, held: ArchiveRecord) -> Entry:
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


def test_an_archive_that_is_made_again_forgets_its_former_members(ledger: Ledger) -> None:
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
    ledger.record([seen(b"plain")])
    verified = archive(EntryState.VERIFIED)._replace(datafile=DatafileId(7))
    ledger.record_archive(verified, [inside(b"a", verified), inside(b"b", verified)])
    ledger.record_archive(archive(EntryState.STAGED, "b-0002.tar"), [])

    assert ledger.count_records(HERE) == (2, 7)


def test_files_that_were_never_compared_with_their_archive_do_not_follow_it(
    ledger: Ledger,
) -> None:
    held = archive(EntryState.REGISTERED)
    never = inside(b"never", held)._replace(ctime_ns=0, inode=0)
    ledger.record_archive(held, [inside(b"a", held), never])

    ledger.record_archive(archive(EntryState.VERIFIED))

    assert ledger.find_entries([b"a"])[b"a"].state is EntryState.VERIFIED
    assert ledger.find_entries([b"never"])[b"never"] == never


def test_a_forgotten_archive_leaves_no_member(ledger: Ledger) -> None:
    ledger.record_archive(archive(), [inside(b"a", archive())])

    ledger.forget_archive(archive())

    assert ledger.find_archives(HERE) == {}
    assert ledger.find_entries([b"a"]) == {}


BEGAN = FakeClock().now()


def count_risk(ledger: MemoryLedger | SqliteLedger) -> tuple[int, int]:
    risk = ledger.measure_risk()
    return risk.files, risk.bytes


def test_what_was_found_is_at_risk_until_it_is_verified(
    ledger: MemoryLedger | SqliteLedger,
) -> None:
    files = [local(key) for key in (*AWKWARD, b"sent", b"safe")]
    ledger.record([entry(b"safe")])
    ledger.record_found(files, BEGAN)
    assert count_risk(ledger) == (7, 21)
    assert ledger.measure_risk().oldest is not None

    for state in (EntryState.STAGED, EntryState.REGISTERED, EntryState.REPAIRED):
        ledger.record([entry(b"sent", state)])
        assert count_risk(ledger) == (7, 21)
    ledger.record([entry(b"sent")])
    ledger.record([entry(key) for key in AWKWARD])

    assert count_risk(ledger) == (0, 0)


def test_thousands_are_found_at_once(ledger: MemoryLedger | SqliteLedger) -> None:
    keys = [b"%d" % number for number in range(5000)]
    ledger.record([entry(key) for key in keys[:4000]])

    assert ledger.record_found([local(key) for key in keys], BEGAN) == 1000
    assert ledger.record_found([local(key) for key in keys], BEGAN) == 0

    assert count_risk(ledger) == (1000, 3000)


def test_a_file_that_is_not_just_as_it_was_verified_is_at_risk(
    ledger: MemoryLedger | SqliteLedger,
) -> None:
    seen = entry(b"")._replace(ctime_ns=5, inode=1)
    keys = (b"same", b"larger", b"later", b"touched", b"replaced")
    ledger.record([seen._replace(key=key) for key in keys])
    same = local(b"same")._replace(ctime_ns=5)

    ledger.record_found(
        [
            same,
            same._replace(key=b"larger", size=4),
            same._replace(key=b"later", modified_ns=1),
            same._replace(key=b"touched", ctime_ns=6),
            same._replace(key=b"replaced", inode=2),
        ],
        BEGAN,
    )

    assert count_risk(ledger) == (4, 13)


def test_what_is_verified_of_earlier_bytes_leaves_the_file_at_risk(
    ledger: MemoryLedger | SqliteLedger,
) -> None:
    ledger.record_found([local(b"a", size=4), local(b"b", modified_ns=1)], BEGAN)

    ledger.record([entry(b"a"), entry(b"b")])

    assert count_risk(ledger) == (2, 7)


def test_what_the_server_lacks_is_at_risk_whatever_is_known(
    ledger: MemoryLedger | SqliteLedger,
) -> None:
    ledger.record([entry(b"a")])

    ledger.record_found([local(b"a")], BEGAN, unsent=True)
    assert count_risk(ledger) == (1, 3)

    ledger.record([entry(b"a")])
    assert count_risk(ledger) == (0, 0)


def test_files_of_an_archive_are_at_risk_until_it_is_verified(
    ledger: MemoryLedger | SqliteLedger,
) -> None:
    ledger.record_found([local(b"a"), local(b"b"), local(b"c")], BEGAN)

    ledger.record_archive(archive(), [inside(b"a", archive()), inside(b"b", archive())])
    ledger.record_archive(archive(EntryState.REGISTERED))
    assert count_risk(ledger) == (3, 9)
    ledger.record_archive(archive(EntryState.VERIFIED))
    assert count_risk(ledger) == (1, 3)


def test_files_that_a_verified_archive_was_read_to_hold_are_safe(
    ledger: MemoryLedger | SqliteLedger,
) -> None:
    ledger.record_found([local(b"a"), local(b"b", size=4)], BEGAN)
    held = archive(EntryState.VERIFIED)

    ledger.record_archive(held, [inside(b"a", held), inside(b"b", held)])

    assert count_risk(ledger) == (1, 4)


def test_what_is_being_written_is_noted_with_what_had_been_sent(ledger):
    until = datetime(2026, 1, 5, 9, 5, tzinfo=UTC)
    ledger.record([entry(b"sent", EntryState.STAGED), entry(b"done", EntryState.REGISTERED)])
    ledger.record([entry(b"elsewhere", EntryState.STAGED, THERE)])
    ledger.record_archive(
        ArchiveRecord(HERE, "a.tar", 9, 1, EntryState.STAGED, "1" * 32, "d/a.tar"), []
    )

    ledger.note_write(HERE, until.replace(minute=1))
    ledger.note_write(HERE, until)
    ledger.note_write(DatasetId(-5), until)

    staged = frozenset({("d/x", "0" * 32), ("d/a.tar", "1" * 32)})
    assert ledger.find_writes() == {
        HERE: EarlierWrite(until, staged),
        DatasetId(-5): EarlierWrite(until, frozenset()),
    }


def test_what_is_over_is_forgotten(ledger):
    ledger.note_write(HERE, datetime(2026, 1, 5, 9, 5, tzinfo=UTC))

    ledger.forget_write(HERE)
    ledger.forget_write(THERE)

    assert ledger.find_writes() == {}


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


def changed(key: bytes, hold: HoldReason = HoldReason.NONE, **values: Any) -> ChangedFile:
    row = ChangedFile(key, 1, 2, 3, 4, HERE, 9, "c" * 32, "2020", hold)
    return row._replace(**values)


def record_all(ledger: Ledger, rows: Sequence[ChangedFile]) -> None:
    """Record changed files as a run does, which has found them before."""
    ledger.record_found([local(row.key, size=9) for row in rows], datetime.fromtimestamp(1, UTC))
    for row in rows:
        ledger.record_changed(row)


def test_changed_files_are_found_counted_and_listed_while_they_are_held(ledger: Ledger) -> None:
    rows = [
        changed(b"a", counted_at=5000),
        changed(b"d/held", HoldReason.SHRUNK, counted_at=6000),
        changed(b"e", HoldReason.BRAKE, dataset=THERE),
    ]
    record_all(ledger, rows)

    assert [ledger.find_changed(row.key) for row in rows] == rows
    assert ledger.find_changed(b"b") is None
    assert ledger.list_held() == rows[1:]
    assert ledger.count_held() == 2
    assert ledger.count_changed(datetime.fromtimestamp(5000, UTC)) == {HERE: 1}
    assert ledger.count_changed(datetime.fromtimestamp(0, UTC)) == {HERE: 2}


def test_a_choice_is_taken_for_the_same_state_only(ledger: Ledger) -> None:
    held = changed(b"a", HoldReason.SHRUNK)
    record_all(ledger, [held])

    ledger.choose([held._replace(size=7, choice=ChangeChoice.KEEP)])
    assert ledger.find_changed(b"a") == held
    ledger.choose([held._replace(choice=ChangeChoice.KEEP)])

    assert ledger.find_changed(b"a") == held._replace(choice=ChangeChoice.KEEP)
    assert (len(ledger.list_held()), ledger.count_held()) == (1, 0)


def test_replacing_what_the_brake_holds_restarts_the_count_of_its_dataset(ledger: Ledger) -> None:
    held = changed(b"b", HoldReason.BRAKE)
    others = changed(b"a", counted_at=9), changed(b"c", counted_at=9, dataset=THERE)
    record_all(ledger, [held, *others])

    ledger.choose([held._replace(choice=ChangeChoice.REPLACE)])

    assert ledger.count_changed(datetime.fromtimestamp(0, UTC)) == {THERE: 1}


def test_held_files_that_are_verified_and_old_counts_are_forgotten(ledger: Ledger) -> None:
    well, held, other, gone = (
        changed(key, HoldReason.BRAKE) for key in (b"well", b"held", b"other", b"gone")
    )
    old, new = changed(b"old", counted_at=10), changed(b"new", counted_at=20)
    record_all(ledger, [well, held, other, old, new])
    ledger.record_changed(gone)  # which no run has found
    ledger.record([entry(b"well"), entry(b"other", dataset=THERE)])
    assert ledger.list_held() == [held, other]

    ledger.forget_changed(datetime.fromtimestamp(10, UTC))

    every = (well, held, other, gone, old, new)
    assert [row for row in every if ledger.find_changed(row.key)] == [held, other, new]


def test_all_files_of_a_dataset_are_counted(ledger: Ledger) -> None:
    ledger.record([entry(b"a"), entry(b"b", EntryState.CHANGED), entry(b"c", dataset=THERE)])

    assert (ledger.count_files(HERE), ledger.count_files(THERE)) == (2, 1)
