"""Every test: no window, no network, a home of its own, and nothing left running."""

import gc
import ipaddress
import os
import socket
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import settings

from tests.fakes.place import Place

os.environ["QT_QPA_PLATFORM"] = "offscreen"

settings.register_profile("house", deadline=None)
settings.load_profile("house")

GRACE = 5.0  # seconds for threads and processes that are just ending
HOME = {
    "HOME": "",
    "USERPROFILE": "",
    "APPDATA": "roaming",
    "LOCALAPPDATA": "local",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": "run",
}

_connect = socket.socket.connect


def _connect_nearby(self: socket.socket, address: Any) -> None:
    """Connect to this computer only; a datagram socket sends nothing by connecting."""
    if self.family in (socket.AF_INET, socket.AF_INET6) and self.type != socket.SOCK_DGRAM:
        host = str(address[0])
        if host != "localhost" and not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
            pytest.fail(f"A test wanted to connect to {host}.")
    _connect(self, address)


# The one patch of the house, at the border of the operating system.
socket.socket.connect = _connect_nearby  # type: ignore[method-assign]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Local files that have settled, and the folder that plays the staging area."""
    return Place(tmp_path)


@pytest.fixture(autouse=True)
def _a_home_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    for name, folder in HOME.items():
        monkeypatch.setenv(name, str(home / folder))
    (home / "run").mkdir(mode=0o700)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={home / 'run' / 'no-bus'}")
    for name in [name for name in os.environ if name.startswith("MYDATA_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    """Fail a test after which a thread or a process is left that was not there before."""
    threads, processes = set(threading.enumerate()), _children()
    yield
    if _new_threads(threads):
        gc.collect()  # connections in the frames of errors end with those
    for thread in _new_threads(threads):
        thread.join(GRACE)
    left = [thread.name for thread in _new_threads(threads) if thread.is_alive()]
    assert not left, f"threads are left behind: {left}"
    strays = [psutil.Process(pid) for pid in _children() - processes if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(strays, GRACE)
    assert not alive, f"processes are left behind: {alive}"


def _new_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    # Threads that were not started by Python, such as Qt's, cannot be joined.
    dummies = threading._DummyThread  # type: ignore[attr-defined]
    return [one for one in threading.enumerate() if one not in before and type(one) is not dummies]


def _children() -> set[int]:
    """Return the processes we have started, but for the tracker that multiprocessing keeps."""
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)  # type: ignore[attr-defined]
    tasks = Path("/proc/self/task")
    if tasks.is_dir():
        texts = (_read(task / "children") for task in tasks.iterdir())
        found = {int(pid) for text in texts for pid in text.split()}
    else:
        found = {child.pid for child in psutil.Process().children()}
    return found - {tracker}


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # the thread has ended meanwhile
