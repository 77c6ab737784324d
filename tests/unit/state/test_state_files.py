"""The small files of the state folder, on a real disk."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mydata_like.core.deletion import DeletedFile
from mydata_like.core.errors import Problem, SettingsError
from mydata_like.core.model import DatafileId, DatasetId, Entry, EntryState
from mydata_like.state.state_files import (
    SPEED_TESTS_KEPT,
    ApprovalState,
    DeletionLogFile,
    Heartbeat,
    HostRecord,
    PendingApproval,
    ServerSettings,
    TimestampStore,
    VisitedFolders,
    add_speed_test,
    find_file,
    first_seen,
    load_approval,
    load_deletions,
    load_record,
    read_speed_tests,
    save_record,
)
from tests.fakes.clock import FakeClock
from tests.umasks import has_mode

NOON = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)
WEEK = timedelta(days=7)
HOUR = timedelta(hours=1)
TEXTS = {"contact_name": "Ann Lee"}
REFUSED = Problem("uploader.not-approved", "Not yet.", "Ask.")
RECORDS = (
    ApprovalState("digest", NOON, PendingApproval("SHA256:abc", NOON, REFUSED)),
    ApprovalState("digest", NOON, let_in="key host"),
    Heartbeat(NOON, 7, "0.1", "waiting", NOON, None, {"code": "x"}, {"found": 3}),
    ServerSettings(TEXTS, "2026-06-03T22:00:00", NOON, NOON, 36_000.0),
    ServerSettings({}, "", None, NOON),
    HostRecord(NOON, "shell", "", "gnu", "md5sum", 4, zstd=True),
)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "file"


def test_a_file_of_a_server_has_its_host_in_the_name():
    name = find_file(Path("state"), "standing-*.json", "https://tardis.example.org:8000/api")

    assert name == Path("state/standing-tardis.example.org_8000.json")


# Records


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_read_as_it_was_written(file, record):
    save_record(file, record)

    assert load_record(file, type(record)) == record
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert has_mode(file, 0o600)


@pytest.mark.parametrize("kind", [ApprovalState, Heartbeat, ServerSettings])
def test_a_record_that_is_missing_is_none(file, kind):
    assert load_record(file, kind) is None


@pytest.mark.parametrize("kind", [ApprovalState, Heartbeat, ServerSettings])
@pytest.mark.parametrize(
    "content", ["", "{", "[]", "1", "\0", "[" * 100_000, '{"told": "' + "x" * 2**20 + '"}']
)
def test_a_file_without_a_record_is_none(file, kind, content):
    file.parent.mkdir()
    file.write_text(content)

    assert load_record(file, kind) is None


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (ApprovalState, '{"told": 1}'),
        (ApprovalState, '{"told_at": "noon"}'),
        (ApprovalState, '{"awaited": {"fingerprint": "x"}}'),
        (Heartbeat, '{"at": "2026-06-03T12:00:00+00:00"}'),
        (ServerSettings, '{"texts": {"a": 1}}'),
    ],
)
def test_a_record_of_wrong_or_missing_values_is_none(file, kind, content):
    file.parent.mkdir()
    file.write_text(content)

    assert load_record(file, kind) is None


def test_fields_that_another_version_lacks_or_adds_do_not_matter(file):
    file.parent.mkdir()
    file.write_text('{"told": "x", "told_at": null, "awaited": null, "later": [1]}')

    assert load_approval(file) == ApprovalState(told="x")


def test_a_wrong_type_inside_a_record_makes_it_damaged(file):
    save_record(file, RECORDS[2])
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"problem": ["code"]}))

    assert load_record(file, Heartbeat) is None


def test_a_folder_in_the_place_of_a_record_is_reported(file):
    file.mkdir(parents=True)

    with pytest.raises(SettingsError):
        load_record(file, Heartbeat)


def test_a_disk_that_accepts_no_record_does_not_stop_the_run(file):
    file.parent.write_text("no folder")
    save_record(file, ApprovalState(told="x"))

    assert load_approval(file) == ApprovalState()


# Times


def test_times_outlive_the_program(file):
    TimestampStore(file).keep("noticed", NOON)

    assert TimestampStore(file).find("noticed") == NOON
    assert TimestampStore(file).find("other") is None


def test_a_time_is_forgotten(file):
    TimestampStore(file).keep("trouble", NOON)
    TimestampStore(file).keep("trouble", None)

    assert TimestampStore(file).find("trouble") is None


def test_of_one_word_only_the_last_is_kept(file):
    times = TimestampStore(file)
    times.keep("noticed", NOON)
    times.keep_alone("served daily 02:00", NOON)
    times.keep_alone("served weekly", NOON)

    kept = TimestampStore(file)
    assert kept.find("served daily 02:00") is None
    assert kept.find("served weekly") == NOON
    assert kept.find("noticed") == NOON


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', '{"a": "noon"}', "\0"])
def test_a_damaged_file_of_times_holds_nothing_and_is_replaced(file, content):
    file.parent.mkdir()
    file.write_text(content)
    times = TimestampStore(file)

    assert times.find("a") is None
    times.keep("a", NOON)
    assert TimestampStore(file).find("a") == NOON


def test_a_full_disk_does_not_stop_the_run(file):
    file.parent.write_text("no folder")
    times = TimestampStore(file)
    times.keep("a", NOON)

    assert times.find("a") == NOON


# Settings of the server


def in_melbourne(moment, *, summer=False):
    """What a server in Melbourne writes for a moment."""
    return (moment + (11 if summer else 10) * HOUR).replace(tzinfo=None).isoformat()


def known(changed_at=NOON - 5 * HOUR, seen_at=NOON):
    """What is known of a server whose clock was learnt in winter."""
    first = first_seen(TEXTS, in_melbourne(changed_at), seen_at)
    return first.learn(in_melbourne(seen_at), seen_at)


def test_at_first_it_is_unknown_when_settings_were_changed():
    assert first_seen(TEXTS, in_melbourne(NOON), NOON).changed_at is None


def test_the_learnt_clock_shows_when_settings_were_changed():
    kept = known()

    assert kept.offset == 10 * 3600
    assert kept.changed_at == NOON - 5 * HOUR


def test_writes_of_the_server_on_our_request_are_not_changes():
    kept = known()
    later = kept.renew(TEXTS, in_melbourne(NOON), NOON + HOUR)

    assert later.changed_at == NOON - 5 * HOUR


def test_a_later_change_has_its_time():
    changed = NOON + HOUR
    kept = known().renew({}, in_melbourne(changed), NOON + 3 * HOUR)

    assert (kept.texts, kept.changed_at) == ({}, changed)


@pytest.mark.parametrize("summer", [True, False])
def test_a_change_was_never_before_we_asked_nor_after_we_ask(summer):
    changed = NOON + HOUR / 2
    text = in_melbourne(changed + (0 if summer else -9) * HOUR, summer=summer)
    kept = known().renew({}, text, NOON + HOUR)

    assert NOON <= kept.changed_at <= NOON + HOUR


def test_a_change_is_noticed_even_where_the_clock_is_unknown():
    kept = first_seen(TEXTS, "2026-06-03T10:00:00", NOON).renew({}, "garbage", NOON + HOUR)

    assert kept.changed_at == NOON + HOUR


@pytest.mark.parametrize("updated", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
@pytest.mark.parametrize("offset", [-86_400.0, 86_400.0, 1e300, float("nan")])
def test_a_time_beyond_every_calendar_is_not_known(updated, offset):
    kept = known()._replace(offset=offset)

    later = kept.renew(TEXTS, updated, NOON + HOUR)

    assert NOON <= later.changed_at <= NOON + HOUR
    assert (later.texts, later.updated) == (TEXTS, updated)


def test_never_changed_settings_have_no_time():
    assert ServerSettings({}, "", None, NOON).learn("", NOON).changed_at is None


# Logs


def test_the_last_time_counts(file, clock):
    began = clock.now()
    VisitedFolders(file, clock).note({"a", "b"})
    clock.move(WEEK.total_seconds())
    VisitedFolders(file, clock).note({"b", "odd \n name \udcff"})

    found = VisitedFolders(file, clock).find(clock.now() - WEEK)

    assert found == {"a": began}
    assert set(VisitedFolders(file, clock).find(clock.now())) == {"a", "b", "odd \n name \udcff"}


def test_what_is_forgotten_is_found_no_more(file, clock):
    visited = VisitedFolders(file, clock)
    visited.note({"a", "b"})

    visited.forget({"a"})

    assert set(visited.find(clock.now())) == {"b"}


def test_a_line_that_was_cut_off_is_left_out(file, clock):
    visited = VisitedFolders(file, clock)
    visited.note({"a"})
    file.write_bytes(file.read_bytes() + b'{"at": "2026-\nnone\n{}\n')

    assert set(visited.find(clock.now())) == {"a"}


def test_without_a_file_nothing_was_visited(file, clock):
    assert VisitedFolders(file, clock).find(clock.now()) == {}


def test_a_line_that_was_cut_off_does_not_spoil_the_next_visit(file, clock):
    VisitedFolders(file, clock).note({"a"})
    file.write_bytes(file.read_bytes() + b'{"at": "2026-')

    VisitedFolders(file, clock).note({"b"})

    assert set(VisitedFolders(file, clock).find(clock.now())) == {"a", "b"}


def freed(name):
    """A file that is deleted."""
    entry = Entry(name, 3, 0, EntryState.VERIFIED, DatasetId(1), "0" * 32)
    return DeletedFile(name, 3, entry, DatafileId(5))


def test_deletions_are_found_again_and_those_taken_back_are_not(file, clock):
    with DeletionLogFile(file, clock) as log:
        log.note(freed(b"a"))
        log.note(freed(b"b"))
        log.take_back(freed(b"a"), REFUSED)

    assert load_deletions(file) == {("b", "0" * 32)}
    assert has_mode(file, 0o600)


def test_a_line_that_was_cut_off_does_not_spoil_the_next_deletion(file, clock):
    with DeletionLogFile(file, clock) as log:
        log.note(freed(b"a"))
    file.write_bytes(file.read_bytes() + b'{"at": "2026-')

    with DeletionLogFile(file, clock) as log:
        log.note(freed(b"b"))

    assert load_deletions(file) == {("a", "0" * 32), ("b", "0" * 32)}


def test_lines_of_any_length_are_read_in_bounded_parts(file, clock):
    with DeletionLogFile(file, clock) as log:
        log.note(freed(b"a"))
    file.write_bytes(b"x" * 3 * 2**20 + b"\n" + file.read_bytes())

    assert load_deletions(file) == {("a", "0" * 32)}


def test_without_a_log_nothing_was_deleted(file):
    assert load_deletions(file) == frozenset()


def test_a_damaged_line_of_the_speed_tests_is_left_out(file):
    add_speed_test(file, {"at": 1})
    file.write_bytes(file.read_bytes() + b'{"at": 2\n[]\n')
    add_speed_test(file, {"at": 3})

    assert read_speed_tests(file) == [{"at": 1}, {"at": 3}]


def test_the_latest_speed_tests_are_kept(file):
    for number in range(SPEED_TESTS_KEPT + 5):
        add_speed_test(file, {"number": number})

    kept = [record["number"] for record in read_speed_tests(file)]
    assert kept == list(range(5, SPEED_TESTS_KEPT + 5))
