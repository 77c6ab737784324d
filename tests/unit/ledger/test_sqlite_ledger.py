"""The ledger's file: damage, other versions, other processes, sudden death."""

import os
import random
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from mydata_like.core.errors import Problem, RunError, SettingsError
from mydata_like.core.model import (
    DatafileId,
    DatasetId,
    Entry,
    EntryState,
    KeptCopy,
    Replacement,
)
from mydata_like.hostos.lock import find_lock_holders
from mydata_like.ledger import ledger_file
from mydata_like.ledger.ledger_file import LockWaiting
from mydata_like.ledger.sql import PastRunRow
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.fakes.clock import FakeClock
from tests.umasks import has_mode

DATA = b"/data"
HERE = DatasetId(1)


def entry(number: int) -> Entry:
    return Entry(b"sub/%06d" % number, number, number, EntryState.VERIFIED, HERE, "0" * 32, "d/x")


def open_ledger(file: Path, data_directory: bytes = DATA) -> SqliteLedger:
    return SqliteLedger.open(file, data_directory, FakeClock())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


@pytest.fixture
def filled(file: Path) -> Path:
    with open_ledger(file) as ledger:
        ledger.record([entry(number) for number in range(400)])
        ledger.record_meta("uuid", "1234")
    return file


def aside(file: Path) -> list[Path]:
    return sorted(file.parent.glob("*.corrupt-*.db"))


def test_a_ledger_is_its_owners_alone(filled: Path) -> None:
    with open_ledger(filled) as ledger:
        ledger.record([entry(1)])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in filled.parent.iterdir()}

    assert set(modes) >= {"ledger.db", "ledger.db-wal"}
    assert os.name == "nt" or set(modes.values()) == {0o600}
    assert has_mode(filled.parent, 0o700)


def test_rows_outlive_the_process(filled: Path) -> None:
    with open_ledger(filled) as ledger:
        assert ledger.problem is None
        assert ledger.find_entries([entry(7).key]) == {entry(7).key: entry(7)}
        assert ledger.find_meta("uuid") == "1234"
        assert ledger.find_meta("other") is None


def test_data_directories_do_not_mix(filled: Path) -> None:
    with open_ledger(filled, b"/other\xff") as ledger:
        assert ledger.find_entries([entry(7).key]) == {}
        assert len(list(ledger.iter_verified(HERE))) == 0


def test_entries_are_listed_by_prefix_in_order(file: Path) -> None:
    keys = [b"a", b"ab", b"ab/c", b"ab\xff\xff", b"ac", *(b"x/%04d" % n for n in range(2500))]
    with open_ledger(file) as ledger:
        ledger.record([entry(0)._replace(key=key) for key in reversed(keys)])

        assert [row.key for row in ledger.iter_entries(b"ab")] == keys[1:4]
        assert [row.key for row in ledger.iter_entries()] == keys


def test_runs_are_listed_newest_first(file: Path) -> None:
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=UTC)
    later = PastRunRow("b", end, None, {})
    with open_ledger(file) as ledger:
        ledger.record_run(PastRunRow("a", start, None, {}))
        ledger.record_run(later)
        ledger.record_run(PastRunRow("a", start, end, {"found": 3}))

        assert ledger.find_runs() == [later, PastRunRow("a", start, end, {"found": 3})]
        assert ledger.find_runs(1) == [later]


def test_another_process_may_read_concurrently(filled: Path) -> None:
    with open_ledger(filled) as writer:
        reader = SqliteLedger.open_to_read(filled, DATA, FakeClock())
        assert reader is not None
        with reader:
            writer.record([entry(500)])
            assert reader.find_entries([entry(500).key])
            with pytest.raises(RunError):
                reader.record([entry(1)])


def test_there_is_nothing_to_read_before_the_first_run(file: Path) -> None:
    assert SqliteLedger.open_to_read(file, DATA, FakeClock()) is None
    file.parent.mkdir()
    file.touch()  # as in the moment before another process makes the tables
    assert SqliteLedger.open_to_read(file, DATA, FakeClock()) is None


def test_readers_of_an_unknown_data_directory_find_nothing(filled: Path) -> None:
    reader = SqliteLedger.open_to_read(filled, b"/unknown", FakeClock())

    assert reader is not None
    with reader:
        assert list(reader.iter_entries()) == []


def test_a_newer_ledger_is_refused_and_left_alone(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as other:
        other.execute("PRAGMA user_version = 999")
    before = filled.read_bytes()

    with pytest.raises(SettingsError, match="newer version"):
        open_ledger(filled)

    assert filled.read_bytes() == before
    assert aside(filled) == []


FOREIGN = "CREATE TABLE entries (a); PRAGMA user_version = 1"
OURS = (
    f"PRAGMA application_id = {ledger_file.OURS}; PRAGMA user_version = 1; CREATE TABLE entries (a)"
)


@pytest.mark.parametrize("script", [FOREIGN, OURS], ids=["another program's", "columns missing"])
def test_a_database_with_other_tables_is_put_aside(file: Path, script: str) -> None:
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as other:
        other.executescript(script)

    with open_ledger(file) as ledger:
        assert ledger.problem is not None
        assert ledger.problem.code == "ledger.damaged"
        ledger.record([entry(1)])

    assert len(aside(file)) == 1


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"\0" * 8192, b"SQLite format 3\0" * 64])
def test_garbage_is_put_aside(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)

    with open_ledger(file) as ledger:
        assert ledger.problem is not None
        assert len(list(ledger.iter_verified(HERE))) == 0

    assert aside(file)[0].read_bytes() == content


def test_a_file_cut_to_nothing_is_a_new_ledger(filled: Path) -> None:
    filled.write_bytes(b"")

    with open_ledger(filled) as ledger:
        assert len(list(ledger.iter_verified(HERE))) == 0


def test_a_damaged_file_that_another_program_reads_is_not_lost(file: Path) -> None:
    """Windows does not rename it then."""
    file.parent.mkdir()
    file.write_bytes(b"garbage" * 1000)
    with file.open("rb"):
        try:
            open_ledger(file).close()
        except RunError:
            assert file.read_bytes() == b"garbage" * 1000

    open_ledger(file).close()

    assert [path.read_bytes() for path in aside(file)] == [b"garbage" * 1000]


def test_only_a_few_damaged_files_are_kept(file: Path) -> None:
    clock = FakeClock()
    file.parent.mkdir()
    for _ in range(6):
        file.write_bytes(b"garbage" * 1000)
        clock.move(1)
        SqliteLedger.open(file, DATA, clock).close()

    assert len(aside(file)) == ledger_file.KEPT


def use(file: Path) -> None:
    """Use a ledger that may be damaged: nothing but the documented errors may come of it."""
    try:
        with open_ledger(file) as ledger:
            ledger.find_entries([entry(number).key for number in range(500)])
            ledger.count_records(HERE)
            ledger.record([entry(number) for number in range(0, 500, 7)])
            list(ledger.iter_entries())
            ledger.find_runs()
            ledger.flush()
    except (RunError, SettingsError):
        pass


@pytest.mark.parametrize("seed", range(40))
def test_damage_never_crashes_and_heals_automatically(filled: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(filled.read_bytes())
    if seed % 4 == 0:
        del content[chance.randrange(len(content)) :]
    else:
        for _ in range(chance.choice([1, 10, 1000])):
            content[chance.randrange(len(content))] = chance.randrange(256)
    filled.write_bytes(content)

    use(filled)
    use(filled)

    try:
        with open_ledger(filled) as ledger:
            ledger.record([entry(1)])
            assert ledger.find_entries([entry(1).key]) == {entry(1).key: entry(1)}
    except SettingsError as error:
        assert error.problem_code == "ledger.newer"  # noqa: PT017 - a byte of the version fell


def test_a_header_that_forbids_writing_is_damage(filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    content[18] = 77
    filled.write_bytes(content)

    with open_ledger(filled) as ledger:
        assert ledger.problem is not None


def test_rows_that_make_no_sense_are_left_out(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as other, other:
        other.execute("UPDATE files SET state = 'other' WHERE size = 1")
        other.execute("UPDATE files SET dataset = 'x' WHERE size = 2")

    with open_ledger(filled) as ledger:
        found = ledger.find_entries([entry(number).key for number in range(4)])

    assert sorted(found) == [entry(0).key, entry(3).key]


def test_text_that_cannot_be_read_is_damage_healed_by_the_next_run(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as other, other:
        other.execute("UPDATE files SET remote = CAST(x'ff' AS TEXT) WHERE size = 1")

    with open_ledger(filled) as ledger, pytest.raises(RunError, match="is damaged"):
        ledger.find_entries([entry(1).key])

    assert len(aside(filled)) == 1
    with open_ledger(filled) as ledger:
        assert ledger.find_entries([entry(1).key]) == {}


def test_a_ledger_held_by_another_program_is_reported_and_kept(filled: Path) -> None:
    with closing(sqlite3.connect(filled, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")

        with pytest.raises(RunError, match="has locked the ledger") as caught:
            SqliteLedger.open(filled, DATA, FakeClock(), waiting=LockWaiting(0.05, 0.05))

    assert caught.value.problem_code == "ledger.locked"
    assert "disk is not full" not in caught.value.hint
    assert aside(filled) == []


def test_a_ledger_that_is_locked_during_a_run_is_awaited(filled: Path) -> None:
    reported = []

    def report(problem: Problem) -> None:
        reported.append(problem)
        assert ledger.find_entries([entry(7).key])
        other.execute("ROLLBACK")

    waiting = LockWaiting(60.0, 0.05, lambda files: [f"backup of {len(files)} files"], report)
    with (
        closing(sqlite3.connect(filled, isolation_level=None)) as other,
        SqliteLedger.open(filled, DATA, FakeClock(), waiting=waiting) as ledger,
    ):
        other.execute("BEGIN IMMEDIATE")

        ledger.record([entry(500)])

        assert ledger.find_entries([entry(500).key])
    (problem,) = reported
    assert problem.code == "ledger.locked"
    assert problem.message.startswith("backup of 3 files has locked the ledger")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report it")
def test_the_program_that_has_locked_a_ledger_is_named(filled: Path) -> None:
    with closing(sqlite3.connect(filled, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        parts = list(filled.parent.iterdir())

        (holder,) = find_lock_holders(parts)

    assert f"(process {os.getpid()})" in holder
    assert find_lock_holders(parts) == []


def test_something_that_is_not_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"")

    with pytest.raises(RunError, match="ledger") as caught:
        open_ledger(tmp_path / "state" / "ledger.db")

    assert caught.value.problem_code == "ledger.failed"


def test_migrations_keep_a_copy_of_what_was(filled: Path) -> None:
    later = [
        *ledger_file.MIGRATIONS,
        "ALTER TABLE files ADD COLUMN note TEXT NOT NULL DEFAULT ''",
    ]
    with closing(sqlite3.connect(filled, isolation_level=None)) as connection:
        ledger_file.migrate(connection, filled, later)

        assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
        assert connection.execute("SELECT count(note) FROM files").fetchone() == (400,)

    copy = filled.with_name(f"ledger.before-v{len(later)}.db")
    assert has_mode(copy, 0o600)
    with open_ledger(copy) as ledger:
        assert len(list(ledger.iter_verified(HERE))) == 400


def test_what_was_before_a_migration_is_kept_for_a_month(filled: Path) -> None:
    now = FakeClock().now().timestamp() + 86400
    for version, days in ((2, 31), (3, 29)):
        copy = filled.with_name(f"ledger.before-v{version}.db")
        copy.write_bytes(b"")
        os.utime(copy, (now - days * 86400,) * 2)

    tomorrow = FakeClock()
    tomorrow.move(86400)
    with SqliteLedger.open(filled, DATA, tomorrow):
        assert [it.name for it in filled.parent.glob("*.before-*")] == ["ledger.before-v3.db"]


def test_a_failed_migration_changes_nothing(filled: Path) -> None:
    broken = [*ledger_file.MIGRATIONS, "DELETE FROM files; SELECT * FROM nowhere"]
    with (
        closing(sqlite3.connect(filled, isolation_level=None)) as connection,
        pytest.raises(sqlite3.OperationalError),
    ):
        ledger_file.migrate(connection, filled, broken)

    with open_ledger(filled) as ledger:
        assert ledger.problem is None
        assert len(list(ledger.iter_verified(HERE))) == 400


def test_a_batch_is_kept_wholly_or_not_at_all(file: Path) -> None:
    unwritable = entry(2)._replace(checksum="\udcff")
    with open_ledger(file) as ledger:
        with pytest.raises(UnicodeEncodeError):
            ledger.record([entry(1), unwritable])

        assert len(list(ledger.iter_verified(HERE))) == 0
        ledger.record([entry(1)])


WRITER = """
import sys
from pathlib import Path
from tests.unit.ledger.test_sqlite_ledger import entry, open_ledger

ledger = open_ledger(Path(sys.argv[1]))
for number in range(10**9):
    ledger.record([entry(number)])
    print(number, flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("lines", [1, 50, 700])
def test_what_was_recorded_survives_a_kill(file: Path, lines: int) -> None:
    path = os.pathsep.join(folder for folder in sys.path if folder)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    ) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(lines)]
        writer.kill()
        told += [int(line) for line in writer.stdout if line.endswith("\n")]

    with open_ledger(file) as ledger:
        assert ledger.problem is None
        assert len(ledger.find_entries([entry(number).key for number in told])) == len(told)


WALKS = {
    "entries": lambda ledger: ledger.iter_entries(),
    "known": lambda ledger: ledger.iter_known(),
    "verified": lambda ledger: ledger.iter_verified(HERE),
}


@pytest.mark.parametrize("walk", WALKS)
def test_going_through_all_rows_ends_although_a_bit_of_them_has_flipped(
    file: Path, walk: str
) -> None:
    many, last = 1500, entry(999).key  # of the first rows that are read together
    rows = [entry(number)._replace(datafile=DatafileId(number)) for number in range(many)]
    with open_ledger(file) as ledger:
        ledger.record(rows)
    sound, refused = file.read_bytes(), 0
    for place in (found.start() for found in re.finditer(re.escape(last), sound)):
        for bit in range(0, 8 * len(last), 3):  # each bit of a byte, in some byte
            damaged = bytearray(sound)
            damaged[place + bit // 8] ^= 1 << bit % 8
            file.write_bytes(damaged)
            try:
                with SqliteLedger.open_to_read(file, DATA, FakeClock()) as ledger:
                    read = sum(1 for _ in islice(WALKS[walk](ledger), 3 * many))
            except RunError as error:
                assert "is damaged" in error.message  # noqa: PT017 - some bits have no effect
                refused += 1
            else:
                assert read < 2 * many
    assert refused or walk == "verified"  # its order is that of an index


def test_noted_batches_outlive_the_process_until_they_are_forgotten(file: Path) -> None:
    with open_ledger(file) as ledger:
        first = ledger.note_batch([b"a/1", b"a/\xff"])
        second = ledger.note_batch([b"b/1"])

    with open_ledger(file) as ledger:
        assert ledger.find_batches() == {first: [b"a/1", b"a/\xff"], second: [b"b/1"]}
        ledger.forget_batches([first])
        ledger.forget_batches([])
        assert ledger.find_batches() == {second: [b"b/1"]}


def test_paths_at_a_destination_may_be_no_text(file: Path) -> None:
    remote = b"tmp/\xff/a".decode("utf-8", "surrogateescape")
    replaced = Replacement(b"k", HERE, DatafileId(1), remote, remote + "1", 1, "m", 1, 1, remote, 1)
    kept = KeptCopy(b"k", HERE, DatafileId(1), remote, remote + "2", 1, "m", "", "")
    with open_ledger(file) as ledger:
        ledger.record([entry(1)._replace(remote=remote)])
        ledger.record_replacements([replaced])
        ledger.record_kept([kept])
    with open_ledger(file) as ledger:
        assert ledger.find_entries([entry(1).key])[entry(1).key].remote == remote
        assert ledger.find_replacements() == [replaced]
        assert ledger.find_kept() == [kept]
        ledger.forget_kept([kept])
        assert ledger.find_kept() == []
