"""The environment of every test: no screen, no network, a new home folder, nothing left running.

A test without a mark is *pure*: it runs in this process only, within a second. `make quick` runs
these. The marks are in pyproject.toml; `pytest_collection_modifyitems` sets some of them.
"""

import gc
import ipaddress
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import count
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import settings

from tests.fakes.place import Place
from tests.privileges import HAS_SSHD

if TYPE_CHECKING:
    from mydata_like.catalogues.mytardis.client import ApiClient
    from tests.fakes.web import Web

os.environ["QT_QPA_PLATFORM"] = "offscreen"
# Windows and macOS always have a keyring: the user's.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

settings.register_profile("house", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)
settings.load_profile("house")

KINDS = ("process", "sshd", "server", "slow", "gui")
FOLDERS = {"gui": "gui", "faults": "server", "flow": "server"}  # other tests start processes
# Names that start servers, and the mark for all tests of a module that imports one of them.
STARTERS = {
    "EmbeddedServer": "server",
    "open_free_site": "server",
    "open_site": "server",
    "PrivateSshd": "sshd",
    "Staging": "sshd",
    "open_ssh": "sshd",
    "sshd_with": "sshd",
}
CPU_SECONDS = 1.0  # of a pure test on an idle computer
SLOW_COMPUTER = 4  # factor for slow and busy computers, where CPU time is longer too
WALL_SECONDS = 60  # after which a pure test counts as hanging, on a very busy computer
PROCESS_EVENTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")
PROCESS = psutil.Process()
BRIEF = 0.2  # seconds in which most threads end without a garbage collection
GRACE = 30.0  # seconds to wait for threads and processes to end
HOME = {
    "HOME": "",
    "USERPROFILE": "",
    "PROGRAMDATA": "shared",
    "APPDATA": "roaming",
    "LOCALAPPDATA": "local",
    "WIN_PD_OVERRIDE_LOCAL_APPDATA": "local",  # for platformdirs, which asks Windows otherwise
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
            pytest.fail(f"A test tried to connect to {host}.")
    _connect(self, address)


# The only patch in the tests, at the border to the operating system.
socket.socket.connect = _connect_nearby  # type: ignore[method-assign]

_started: list[str] = []  # the programs started by the test


def _note_process(event: str, arguments: tuple[Any, ...]) -> None:
    if event in PROCESS_EVENTS:
        _started.append(str(arguments[0]) if arguments else event)


sys.addaudithook(_note_process)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-time-limit", action="store_true", help="for runs under a slow tracer")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark tests by their folder and by the names in their module; mark the others as pure."""
    for item in items:
        for kind in _find_kinds(item):
            item.add_marker(kind)
        if item.get_closest_marker("sshd") and not HAS_SSHD:
            item.add_marker(pytest.mark.skip(reason="needs OpenSSH's server"))
        if not any(item.get_closest_marker(kind) for kind in KINDS):
            item.add_marker("pure")
            item.add_marker(pytest.mark.timeout(WALL_SECONDS))


def pytest_collection_finish() -> None:
    """Exclude all modules and tests from garbage collections, of which there are many."""
    gc.collect()
    gc.freeze()


def _find_kinds(item: pytest.Item) -> Iterator[str]:
    folder = item.path.relative_to(item.config.rootpath).parts[1]
    if folder != "unit":
        yield FOLDERS.get(folder, "process")
    names = vars(item.module)  # type: ignore[attr-defined]
    yield from sorted({kind for name, kind in STARTERS.items() if name in names})
    if "sshd" in item.fixturenames:  # type: ignore[attr-defined]
        yield "sshd"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    _started.clear()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a pure test that starts a program or takes more than some seconds.

    The limit is CPU time of all threads, because elapsed time depends on the load of the computer.
    A test that waits is found by the limit of pytest-timeout, which is generous for the same
    reason.
    """
    begun = time.process_time()
    yield
    if not item.get_closest_marker("pure"):
        return
    if _started:
        pytest.fail(f"mark this test as `process`: it starts {', '.join(_started)}", pytrace=False)
    spent = time.process_time() - begun
    if spent > CPU_SECONDS * SLOW_COMPUTER and not item.config.getoption("--no-time-limit"):
        pytest.fail(f"{spent:.1f} seconds of CPU: less work, or mark it as `slow`", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Iterator[object]:
    """Escape what UTF-8 cannot encode in a report to another process, such as a file's name."""
    return _escape((yield))


def _escape(data: object) -> object:
    match data:
        case str():
            return data.encode(errors="backslashreplace").decode()
        case dict():
            return {key: _escape(value) for key, value in data.items()}
        case list() | tuple():
            return type(data)(map(_escape, data))
        case _:
            return data


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Settled local files, and a folder that serves as the staging area."""
    place = Place(tmp_path)
    if request.node.get_closest_marker("sshd"):
        from tests.openssh import on_host  # only here, since it loads the servers

        place.location = on_host(place.location)
    return place


@pytest.fixture
def web() -> Iterator["Web"]:
    """A web server with the answers that the test gives it."""
    from tests.fakes.web import web_server  # only here, as in `api_client`

    with web_server() as server:
        yield server


@pytest.fixture
def api_client(web: "Web") -> Iterator["ApiClient"]:
    """A client of that server, whose waits take no time."""
    from mydata_like.catalogues.mytardis.client import ApiClient
    from mydata_like.settings.schema import Server
    from tests.fakes.clock import FakeClock

    clock = FakeClock()
    client = ApiClient(Server(url=web.url, username="facility"), "key", clock, clock.cancel())
    yield client
    client.close()


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder for each test; pytest's own would list all existing ones each time."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def _new_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    home = next(_homes)
    home.mkdir()
    for name, folder in HOME.items():
        monkeypatch.setenv(name, str(home / folder))
    (home / "run").mkdir(mode=0o700)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={home / 'run' / 'no-bus'}")
    for name in [name for name in os.environ if name.startswith("MYDATA_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """Restore what a window sets for the whole process."""
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    """Fail a test that leaves a thread, a process, or a lower priority of this process.

    All later tests and the programs that they start would inherit that priority, and exceed their
    time limits on a busy computer.
    """
    threads, processes = set(threading.enumerate()), _children()
    priority = PROCESS.nice()
    yield
    assert PROCESS.nice() == priority, "set limits.low_priority=false: it cannot be undone"
    for thread in _new_threads(threads):
        thread.join(BRIEF)
    if _new_threads(threads):
        gc.collect()  # closes connections that frames of exceptions refer to
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
    """Return our child processes, without the resource tracker of multiprocessing."""
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
        return ""  # the thread has ended
