"""A file that another program has open for writing is not finished, and no view calls it safe."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from mydata_like.core.events import FileWaiting
from mydata_like.hostos.open_files import UNNAMED
from tests.builders import a_file
from tests.invariants import check_carried, check_law
from tests.privileges import HAS_PROCESS_NAMES
from tests.site import open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(sys.platform == "darwin", reason="macOS does not tell of writers"),
]

KEY = "alice/Time lapse/embryo.czi"
HOUR = 3600
# Says when the file is open, writes each line that it reads to it, and closes it at the end.
PROGRAM = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    print("open", flush=True)
    for line in sys.stdin:
        file.write(line.encode())
        print("written", flush=True)
"""
# On Windows, programs that we start do not count: a program that has ended started this one.
START = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdin=sys.stdin, stdout=sys.stdout)
"""


@pytest.fixture
def site(tmp_path):
    a_file(tmp_path / "data" / KEY, 1000)
    a_file(tmp_path / "data/alice/Time lapse/finished.czi", 1000)
    with open_site(tmp_path) as opened:
        yield opened


@contextmanager
def held_open(path):
    """Let another process hold a file open for writing; yield what makes it write more."""
    with subprocess.Popen(
        [sys.executable, "-c", START, PROGRAM, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:

        def write():
            program.stdin.write("one more frame\n")
            program.stdin.flush()
            assert program.stdout.readline() == "written\n"

        assert program.stdout.readline() == "open\n"
        program.wait()
        yield write
        program.stdin.close()
        assert program.stdout.read() == ""  # it has ended


def sent_bytes(site):
    return {file.filename: int(file.size) for file in site.server.datafiles()}


def check_waits(carried):
    (waiting,) = carried.of_kind(FileWaiting)
    assert (waiting.path.decode(), waiting.problem.code) == (KEY, "waiting.open")
    assert ("python" if HAS_PROCESS_NAMES else UNNAMED) in waiting.problem.message
    check_law(carried)
    assert (carried.code, carried.sums.verified, carried.sums.waiting) == (0, 1, 1)


def test_a_file_is_sent_once_the_program_has_closed_it(site):
    with held_open(site.data / KEY) as write:
        check_waits(site.carry())
        write()
        check_waits(site.carry())
        assert sent_bytes(site) == {"finished.czi": 1000}

    check_carried(site, site.carry())
    assert sent_bytes(site) == {"finished.czi": 1000, "embryo.czi": 1015}


def test_the_verified_copy_of_a_file_that_grows_is_not_replaced_and_not_called_safe(site):
    check_carried(site, site.carry())
    with held_open(site.data / KEY) as write:
        write()
        check_waits(site.carry())

        assert sent_bytes(site)["embryo.czi"] == 1000
        status, where, freed = site.commands(
            [("status",), ("where", KEY), ("free", "--dry-run", str(site.data / KEY))]
        )
        assert "All files" not in status.output
        assert "Only on this computer: 1 file," in status.output
        assert "safe on the server" not in where.output
        assert "the next run takes it" not in where.output
        assert "0 files, 0 bytes can be deleted" in freed.output
        dry = site.command("scan")
        assert "0 files, 0 bytes would be sent" in dry.output or "1 waiting" in dry.output
        assert "embryo.czi" in dry.output

    check_carried(site, site.carry())


def test_a_file_that_is_open_and_as_it_was_verified_stays_verified_and_is_not_freed(site):
    check_carried(site, site.carry())
    with held_open(site.data / KEY):
        assert site.carry().sums.verified == 2
        (preview,) = site.commands([("free", "--dry-run", str(site.data / KEY))])
        assert "embryo.czi is open in a program" in preview.output
        assert "0 files, 0 bytes can be deleted" in preview.output
