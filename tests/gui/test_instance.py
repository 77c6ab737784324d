"""One instance per settings file: the second start rings at the first, in a real process."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like.gui.tray.single_instance import (
    InstanceServer,
    LaunchRequest,
    SingleInstance,
    UnresponsiveError,
)

FIRST = """
import sys
from pathlib import Path
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from mydata_like.gui.tray.single_instance import LaunchRequest, InstanceServer, SingleInstance
app = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]), Path(sys.argv[2]))
assert instance.claim(LaunchRequest())
door = InstanceServer(instance.address)
door.request_received.connect(lambda call: print(call, flush=True))
print("open", flush=True)
app.exec()
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "settings.toml"


@pytest.fixture
def first(file, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", FIRST, str(file), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "open\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_start_rings_at_the_first_and_is_not_the_first(first, file, tmp_path):
    call = LaunchRequest(paths=("/data/a b", "/data/\udcff"), token="right")

    assert not SingleInstance(file, tmp_path).claim(call)
    assert first.stdout.readline() == f"{call}\n"


def test_the_same_file_by_another_way_is_the_same_instance(first, file, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)

    assert not SingleInstance(tmp_path / "link" / file.name, tmp_path).claim(LaunchRequest())


def test_another_settings_file_has_an_instance_of_its_own(first, tmp_path):
    other = SingleInstance(tmp_path / "other.toml", tmp_path)

    assert other.claim(LaunchRequest())
    other.release()


def test_what_a_crash_left_behind_is_replaced(first, file, tmp_path, qtbot):
    first.send_signal(signal.SIGKILL)
    first.wait()
    instance = SingleInstance(file, tmp_path)

    assert Path(instance.address).exists()
    assert instance.claim(LaunchRequest())
    door = InstanceServer(instance.address)
    assert door.is_listening
    door.close()
    instance.release()


def test_a_first_instance_that_hangs_is_reported_within_the_deadline(first, file, tmp_path):
    first.send_signal(signal.SIGSTOP)

    with pytest.raises(UnresponsiveError, match="does not respond"):
        SingleInstance(file, tmp_path).claim(LaunchRequest())


def test_only_the_owner_may_ring(first, file, tmp_path):
    assert Path(SingleInstance(file, tmp_path).address).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("line", [b"\xff\n", b"{}\n", b"[1]\n", b'{"show":1,"paths":3}\n'])
def test_an_invalid_call_is_ignored(first, file, tmp_path, line):
    address = SingleInstance(file, tmp_path).address
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(address)
        stranger.sendall(line)
        assert stranger.recv(10) == b""

    assert not SingleInstance(file, tmp_path).claim(LaunchRequest())
