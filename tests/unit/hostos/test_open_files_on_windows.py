"""On Windows, the Restart Manager names the programs that have files open and disturbs none."""

import ctypes
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from mydata_like.core import file_access
from mydata_like.core.local_files import LocalFile
from mydata_like.hostos.open_files import UNNAMED, FileWriters
from tests.builders import a_file
from tests.privileges import IS_WINE

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "win32", reason="only Windows has the Restart Manager"),
]
NAME = UNNAMED if IS_WINE else "python"  # psutil finds no names in Wine
MANY = 600  # more than the system is asked about together
ROUNDS = 5
# Prints which files of a folder other programs have open; those that we start do not count.
PROGRAM = """
import json, os, sys
from mydata_like.core.local_files import LocalFile
from mydata_like.hostos.open_files import UNNAMED, FileWriters

folder = os.fsencode(sys.argv[1])
names = os.listdir(folder) + [b"gone.tif"]
files = [LocalFile(os.path.join(folder, it), it, b"", it, 1, 1, 1, 1) for it in names]
for _ in range(int(sys.argv[2])):
    found = FileWriters()(files)
print(json.dumps({os.fsdecode(key): name for key, name in found.items()}))
"""


def start(folder, rounds=1, **variables):
    command = [sys.executable, "-c", PROGRAM, folder, str(rounds)]
    environment = os.environ | variables
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def find_open(folder, **variables):
    with start(folder, **variables) as process:
        output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output)


@contextmanager
def opened_alone(path):
    """Open a file so that no other program can open it, as some instruments do."""
    handle = file_access.open_handle(os.fsencode(path), file_access.GENERIC_READ, 0, 0)
    try:
        yield
    finally:
        ctypes.windll.kernel32.CloseHandle(ctypes.c_void_p(handle))


def opened_to_write(path):
    return path.open("ab")


@pytest.mark.parametrize("opened", [opened_to_write, opened_alone])
def test_the_program_is_named_until_it_closes_the_file(tmp_path, opened):
    file, _ = a_file(tmp_path / "scan μ.tif"), a_file(tmp_path / "other.tif")

    with opened(file):
        assert find_open(tmp_path) == {file.name: NAME}
    assert find_open(tmp_path) == {}


def test_open_files_are_found_among_hundreds_and_among_what_is_no_file_any_more(tmp_path):
    files = [a_file(tmp_path / f"{number:03}.tif") for number in range(MANY)]
    (tmp_path / "a folder now").mkdir()

    with files[3].open("ab"), opened_alone(files[MANY - 1]):
        assert find_open(tmp_path) == {"003.tif": NAME, f"{MANY - 1}.tif": NAME}
    assert find_open(tmp_path) == {}


def test_a_program_can_open_its_files_alone_while_the_system_is_asked(tmp_path):
    files = [a_file(tmp_path / f"{number}.tif") for number in range(10)]
    tried = 0

    with start(tmp_path, ROUNDS) as process:
        while process.poll() is None:
            with opened_alone(files[tried % len(files)]):
                tried += 1

    assert process.returncode == 0
    assert tried > len(files)


def test_a_file_that_we_have_open_is_not_in_use(tmp_path):
    path = os.fsencode(a_file(tmp_path / "scan.tif"))

    with open(path, "ab"):  # noqa: PTH123 - bytes
        assert FileWriters()([LocalFile(path, b"scan.tif", b"", b"", 1, 1, 1, 1)]) == {}


def test_a_path_that_is_too_long_for_the_system_is_not_asked_about(tmp_path):
    folder = tmp_path / ("x" * 120) / ("y" * 120)
    os.makedirs(file_access.verbatim(os.fsencode(folder)))  # noqa: PTH103 - bytes

    assert find_open(folder) == {}


class Broken:
    """A Restart Manager whose functions end with these errors."""

    def __init__(self, *, start=0, register=0, find=0):
        self.RmStartSession = lambda *_: start
        self.RmRegisterResources = lambda *_: register
        self.RmGetList = lambda *_: find
        self.RmEndSession = lambda *_: 0


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param({}, id="knows of nothing, as that of Wine"),
        pytest.param({"start": 353}, id="too many sessions"),
        pytest.param({"register": 29}, id="cannot write"),
        pytest.param({"find": 6}, id="has lost the session"),
        pytest.param({"find": 5}, id="refuses each file"),
        pytest.param({"find": 234}, id="has always more"),
    ],
)
def test_a_restart_manager_that_does_not_work_does_no_harm(tmp_path, errors):
    paths = [os.fsencode(tmp_path / f"{number}.tif") for number in range(3)]

    files = [LocalFile(path, path, b"", b"", 1, 1, 1, 1) for path in paths]

    assert FileWriters(Broken(**errors))(files) == {}
