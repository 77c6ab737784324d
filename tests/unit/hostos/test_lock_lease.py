"""The lock file in the data directory: what other computers and accounts see of a run."""

import os
import re
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import AlreadyRunningError
from mydata_like.hostos.lock import EXPIRY, Lease, LockHolder, is_local, lock_data_directory
from mydata_like.hostos.machine_info import read_system_id
from tests.fakes.clock import FakeClock
from tests.mounts import MOUNTS, needs_mounts
from tests.privileges import IS_ROOT
from tests.site import Picture
from tests.umasks import posix_modes, umask

LOCK = ".mydata-like.lock"
NOBODY_LOCKS = """
import fcntl, os, sys
os.setuid(65534)
fcntl.flock(int(sys.argv[2]), fcntl.LOCK_EX)
print(1, flush=True)
sys.stdin.read()
"""
TWICE = """
import os, sys
from pathlib import Path
from mydata_like.core.errors import AlreadyRunningError
from mydata_like.hostos.lock import is_local, lock_data_directory
from tests.fakes.clock import FakeClock

data, folder = os.fsencode(sys.argv[1]), Path(sys.argv[2])
with lock_data_directory(folder / "one", data, FakeClock()) as lease:
    print("missing:", lease.missing)
    print("lock file" if list(Path(sys.argv[1]).glob(".*")) else "no lock file")
    try:
        with lock_data_directory(folder / "other", data, FakeClock()):
            print("two runs at once")
    except AlreadyRunningError as error:
        print(error)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "alice" / "Scan").mkdir(parents=True)
    (folder / "alice" / "Scan" / "a.dat").write_bytes(b"a")
    os.utime(folder, ns=(10**18, 10**18))
    return folder


needs_system_id = pytest.mark.skipif(
    not read_system_id(), reason="a minimal system without systemd is not known by an id"
)


def here(**changes: object) -> LockHolder:
    return LockHolder.here(FakeClock())._replace(**changes)


def elsewhere(account: str = "ann", host: str = "SCOPE-PC") -> LockHolder:
    return here(account=account, host=host, pid=77)


def lease_of(data: Path, holder: LockHolder, shard: Shard = WHOLE) -> Lease:
    return Lease(os.fsencode(data), shard, holder)


def age(data: Path, seconds: float, name: str = LOCK) -> None:
    then = time.time() - seconds
    os.utime(data / name, (then, then))


def occupy(state: Path, data: Path, shard: Shard = WHOLE, *, local: bool = False):
    return lock_data_directory(state, os.fsencode(data), FakeClock(), shard, lambda _: local)


def test_a_folder_of_this_computer_alone_is_locked_without_any_file(data, tmp_path):
    with (
        occupy(tmp_path / "one", data, local=True) as lease,
        pytest.raises(AlreadyRunningError) as caught,
        occupy(tmp_path / "other", data, local=True),
    ):
        pytest.fail("two runs at once")

    assert not lease.missing
    assert re.search(
        rf"since .* \(account .*, process {os.getpid()} on {socket.gethostname()}\)",
        caught.value.message,
    )


def test_a_lease_is_valid_where_none_is_needed(data, tmp_path):
    lease_of(data, elsewhere()).take()

    with (
        pytest.raises(AlreadyRunningError, match="SCOPE-PC"),
        occupy(tmp_path / "one", data, local=True),
    ):
        pytest.fail("two runs at once")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no /proc")
def test_file_systems_of_this_computer_are_distinguished_from_those_of_others(tmp_path):
    assert is_local(os.fsencode(tmp_path))
    assert not is_local(b"/proc/self")


def test_two_states_on_one_data_directory_exclude_each_other(data, tmp_path):
    with (
        occupy(tmp_path / "one", data),
        pytest.raises(AlreadyRunningError) as caught,
        occupy(tmp_path / "other", data),
    ):
        pytest.fail("two runs at once")

    assert f"process {os.getpid()} on " in caught.value.message
    assert "account " in caught.value.message
    assert "since 2026-01-05 09:00 UTC" in caught.value.message
    with occupy(tmp_path / "other", data):
        pass


def test_shards_of_one_split_work_side_by_side_from_two_states(data, tmp_path):
    with occupy(tmp_path / "one", data, Shard(1, 2)), occupy(tmp_path / "two", data, Shard(2, 2)):
        assert len(list(data.glob(".mydata-like-*-of-2.lock"))) == 2


@pytest.mark.parametrize("other", [WHOLE, Shard(1, 3), Shard(1, 2)], ids=str)
def test_a_shard_excludes_what_has_some_of_its_files(data, tmp_path, other):
    with (
        occupy(tmp_path / "one", data, Shard(1, 2)),
        pytest.raises(AlreadyRunningError),
        occupy(tmp_path / "two", data, other),
    ):
        pytest.fail("two runs over the same files")

    with occupy(tmp_path / "two", data, other):
        pass


@pytest.mark.process
@pytest.mark.skipif(not IS_ROOT, reason="only root starts programs of another account")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
@pytest.mark.parametrize("name", ["reader", "mydata-like"])
def test_a_lock_of_another_account_counts_only_if_it_is_of_a_run(data, tmp_path, name):
    folder = os.open(data, os.O_RDONLY)
    python = os.path.realpath(sys.executable)  # not in a folder of this program's name
    with subprocess.Popen(
        [python, "-c", NOBODY_LOCKS, name, str(folder)],
        pass_fds=[folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        os.close(folder)
        assert other.stdout.read(2) == b"1\n"
        if name == "mydata-like":
            with (
                pytest.raises(AlreadyRunningError, match=f"process {other.pid}"),
                occupy(tmp_path / "one", data, local=True),
            ):
                pass
        else:
            with occupy(tmp_path / "one", data, local=True):
                assert (data / LOCK).exists()  # so that other runs see this one nevertheless
                with pytest.raises(AlreadyRunningError), occupy(tmp_path / "two", data, local=True):
                    pass
        other.stdin.close()


def test_the_data_directory_is_as_it_was_with_all_its_times(data, tmp_path):
    before, folder = Picture.take(data), data.stat()

    with occupy(tmp_path / "state", data):
        assert (data / LOCK).exists()
        assert data.stat().st_mtime_ns == folder.st_mtime_ns

    assert before.differences() == []
    assert data.stat().st_mtime_ns == folder.st_mtime_ns


def test_a_run_on_another_computer_is_named(data):
    lease_of(data, elsewhere()).take()

    with pytest.raises(AlreadyRunningError, match=r"account ann, process 77 on SCOPE-PC"):
        lease_of(data, here()).take()


def test_what_is_not_renewed_counts_no_longer(data):
    lease_of(data, elsewhere()).take()
    age(data, EXPIRY + 1)
    folder = data.stat().st_mtime_ns
    lease = lease_of(data, here())

    lease.take()
    assert not lease.missing
    lease.release()

    assert [path.name for path in data.iterdir()] == ["alice"]
    assert data.stat().st_mtime_ns == folder


def test_what_is_renewed_counts(data):
    other = lease_of(data, elsewhere())
    other.take()
    age(data, EXPIRY + 1)

    assert other.renew()

    with pytest.raises(AlreadyRunningError):
        lease_of(data, here()).take()


def test_a_lock_from_the_future_does_not_block_for_ever(data):
    lease_of(data, elsewhere()).take()
    age(data, -10 * EXPIRY)

    lease_of(data, here()).take()


@needs_system_id
@pytest.mark.process
def test_one_of_a_process_that_has_ended_counts_no_longer(data):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        born = psutil.Process(ended.pid).create_time()
    lease_of(data, here(pid=ended.pid, born=born)).take()

    lease_of(data, here()).take()


@needs_system_id
def test_one_whose_process_number_another_process_has_counts_no_longer(data):
    lease_of(data, here(born=1.0)).take()

    lease_of(data, here()).take()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]"], ids=repr)
def test_one_that_makes_no_sense_counts_until_it_is_old(data, content):
    (data / LOCK).write_bytes(content)

    with pytest.raises(AlreadyRunningError, match="is in progress on"):
        lease_of(data, here()).take()
    age(data, EXPIRY + 1)
    lease_of(data, here()).take()


def test_after_a_long_sleep_a_takeover_by_another_process_is_noticed(data):
    sleeper, other = lease_of(data, elsewhere()), lease_of(data, here())
    sleeper.take()
    age(data, EXPIRY + 1)
    other.take()

    assert not sleeper.renew()
    sleeper.release()
    assert other.renew()
    assert (data / LOCK).exists()


@posix_modes
@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_other_accounts_read_it_and_cannot_write_it(data, mask):
    lease = Lease(os.fsencode(data), WHOLE, LockHolder.here(FakeClock()))

    with umask(mask):
        lease.take()

    assert stat.filemode((data / LOCK).stat().st_mode) == "-rw-r--r--"
    lease.release()


def test_a_lease_that_cannot_be_written_is_missing(tmp_path):
    lease = lease_of(tmp_path / "no such folder", here())

    lease.take()

    assert lease.missing
    assert lease.renew()


def test_one_that_was_deleted_is_made_again(data):
    lease = lease_of(data, here())
    lease.take()
    (data / LOCK).unlink()

    assert lease.renew()

    assert (data / LOCK).exists()


@pytest.mark.process
@needs_mounts
def test_a_folder_that_cannot_be_written_is_locked_for_this_computer(tmp_path, data):
    mounted = (
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$0" -c "$2" "$1" "$3"'
    )

    told = subprocess.run(
        [*MOUNTS, "sh", "-c", mounted, sys.executable, data, TWICE, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "Another run is in progress on" in told
    assert ", process " in told
    assert "no lock file" in told
    assert "missing: False" in told  # of what no other computer reaches


def test_a_lock_file_of_any_size_is_read_within_bounds(data):
    lock = data / LOCK
    lock.touch()
    os.truncate(lock, 2**40)  # a sparse file: no disk could hold it

    with pytest.raises(AlreadyRunningError):
        lease_of(data, here()).check()

    old = time.time() - 2 * EXPIRY
    os.utime(lock, (old, old))
    lease_of(data, here()).check()
    assert not lock.exists()


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_lock_that_is_a_pipe_is_not_waited_for(data):
    os.mkfifo(data / LOCK)
    look = (
        "import os, sys\n"
        "from mydata_like.core.errors import AlreadyRunningError\n"
        "from mydata_like.core.data_directory import WHOLE\n"
        "from mydata_like.hostos.lock import LockHolder\n"
        "from mydata_like.hostos.lock import Lease\n"
        "from tests.fakes.clock import FakeClock\n"
        "try: Lease(os.fsencode(sys.argv[1]), WHOLE, LockHolder.here(FakeClock())).check()\n"
        "except AlreadyRunningError: print('refused')\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", look, data], capture_output=True, text=True, timeout=20, check=True
    )

    assert said.stdout == "refused\n"
