"""One run at a time per data directory."""

import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import AlreadyRunningError, Cancelled, RunError
from mydata_like.hostos.lock import find_shards, is_locked, lock_data_directory
from mydata_like.transfer.worker_process import start_process
from tests.fakes.clock import FakeClock
from tests.privileges import needs_links
from tests.umasks import posix_modes

HOLDER = """
import sys
from pathlib import Path
from mydata_like.hostos.lock import lock_data_directory
from tests.fakes.clock import FakeClock

with lock_data_directory(Path(sys.argv[1]), sys.argv[2].encode(), FakeClock()):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    folder = tmp_path / "data"
    folder.mkdir()
    return os.fsencode(folder)


def hold(state: Path, data: bytes) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its input ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(state), os.fsdecode(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_run_starts_while_others_test_its_lock(state: Path, data: bytes) -> None:
    with lock_data_directory(state, data, FakeClock()):
        (note,) = state.glob("run-*.json")
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            is_locked(state, data)

    with ThreadPoolExecutor() as pool:
        watching = pool.submit(look)
        try:
            for _ in range(60):
                note.write_text("{}")  # as after a run that was killed
                with lock_data_directory(state, data, FakeClock()):
                    pass
        finally:
            done.set()
        watching.result()


def test_a_run_that_fails_leaves_no_sign_of_a_lock(state: Path, data: bytes) -> None:
    with pytest.raises(Cancelled), lock_data_directory(state, data, FakeClock()):
        raise Cancelled("stop requested")

    assert [path.name for path in state.glob("run-*.json")] == []


@pytest.mark.process
def test_a_second_run_names_the_first(state: Path, data: bytes) -> None:
    with (
        hold(state, data) as holder,
        pytest.raises(AlreadyRunningError) as caught,
        lock_data_directory(state, data, FakeClock()),
    ):
        pytest.fail("two runs at once")

    holder.wait()
    assert f"process {holder.pid} on " in caught.value.message
    assert "since 2026-01-05 09:00 UTC" in caught.value.message
    assert f"{os.sep}data" in caught.value.message


def test_two_runs_of_one_process_exclude_each_other_too(state: Path, data: bytes) -> None:
    with (
        lock_data_directory(state, data, FakeClock()),
        pytest.raises(AlreadyRunningError),
        lock_data_directory(state, data, FakeClock()),
    ):
        pytest.fail("two runs at once")

    with lock_data_directory(state, data, FakeClock()):
        pass


@pytest.mark.process
def test_a_killed_run_frees_the_lock_at_once(state: Path, data: bytes) -> None:
    with hold(state, data) as holder:
        holder.kill()
    assert list(state.glob("*.json"))

    with lock_data_directory(state, data, FakeClock()):
        note = next(state.glob("*.json")).read_text()

    assert f'"pid": {os.getpid()}' in note
    assert not list(state.glob("*.json"))


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="folders are locked on POSIX")
def test_a_lock_lasts_as_long_as_a_process_that_keeps_it(state: Path, data: bytes) -> None:
    with lock_data_directory(state, data, FakeClock()) as lease:
        assert lease.descriptor is not None
        process, pipe = start_process([sys.executable, "-c", "input()"], [lease.descriptor])
    try:
        with pytest.raises(AlreadyRunningError), lock_data_directory(state, data, FakeClock()):
            pytest.fail("the folder was free")
    finally:
        process.kill()
        process.wait()
        pipe.close()

    with lock_data_directory(state, data, FakeClock()):
        pass


def test_a_failed_run_frees_the_lock(state: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match="failed"), lock_data_directory(state, data, FakeClock()):
        raise ValueError("failed")

    with lock_data_directory(state, data, FakeClock()):
        pass


def test_other_data_directories_are_free(state: Path, data: bytes) -> None:
    with (
        lock_data_directory(state, data, FakeClock()),
        lock_data_directory(state, data + os.fsencode("/\udcff"), FakeClock()),
    ):
        assert len(list(state.glob("*.lock"))) == 2


def test_shards_of_one_split_work_side_by_side(state: Path, data: bytes) -> None:
    with (
        lock_data_directory(state, data, FakeClock(), Shard(1, 2)),
        lock_data_directory(state, data, FakeClock(), Shard(2, 2)),
    ):
        (state / "shard-of-glass").mkdir()
        assert find_shards(state) == [Shard(1, 2), Shard(2, 2)]
        assert is_locked(state, data, Shard(2, 2))
        assert not is_locked(state, data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Shard(2, 4), WHOLE),
        (WHOLE, Shard(2, 4)),
        (Shard(2, 4), Shard(1, 3)),
        (Shard(2, 4), Shard(2, 4)),
    ],
)
def test_runs_over_some_of_the_same_files_exclude_each_other(
    state: Path, data: bytes, first: Shard, second: Shard
) -> None:
    with (
        lock_data_directory(state, data, FakeClock(), first),
        pytest.raises(AlreadyRunningError, match=rf"{first}.*[/\\]data since"),
        lock_data_directory(state, data, FakeClock(), second),
    ):
        pytest.fail("two runs over the same files")

    with lock_data_directory(state, data, FakeClock(), second):
        pass


@pytest.mark.process
def test_a_killed_run_is_in_the_way_of_no_shard(state: Path, data: bytes) -> None:
    with hold(state, data) as holder:
        holder.kill()

    with (
        lock_data_directory(state, data, FakeClock(), Shard(1, 2)),
        lock_data_directory(state, data, FakeClock(), Shard(2, 2)),
    ):
        assert not is_locked(state, data)


@needs_links
def test_a_link_leads_to_the_same_lock(state: Path, data: bytes, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(os.fsdecode(data))

    with (
        lock_data_directory(state, data, FakeClock()),
        pytest.raises(AlreadyRunningError),
        lock_data_directory(state, os.fsencode(link), FakeClock()),
    ):
        pytest.fail("two runs at once")


@pytest.mark.slow
@pytest.mark.parametrize("note", ["", "{}", "[]", '{"started": 5}', "\xff"])
def test_a_note_that_makes_no_sense_is_left_unsaid(state: Path, data: bytes, note: str) -> None:
    with lock_data_directory(state, data, FakeClock()):
        next(state.glob("*.json")).write_text(note, encoding="latin-1")

        with (
            pytest.raises(AlreadyRunningError, match="is in progress on"),
            lock_data_directory(state, data, FakeClock()),
        ):
            pytest.fail("two runs at once")


@posix_modes
def test_the_locks_files_are_their_owners(state: Path, data: bytes) -> None:
    with lock_data_directory(state, data, FakeClock()):
        modes = {stat.S_IMODE(file.stat().st_mode) for file in state.iterdir()}

    assert modes == {0o600}


def test_a_folder_that_takes_no_lock_is_reported(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state").write_bytes(b"")

    with (
        pytest.raises(RunError, match="No lock can be created"),
        lock_data_directory(tmp_path / "state", data, FakeClock()),
    ):
        pytest.fail("no lock, no run")
