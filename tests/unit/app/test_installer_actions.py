"""What the installer for Windows leaves to the program."""

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from mydata_like.app.installer_actions import main, start, stop

pytestmark = pytest.mark.process


@contextmanager
def installed(folder):
    """Run a program of this installation that does nothing."""
    program = folder / "mydata-like"
    shutil.copy(shutil.which("cat"), program)
    with subprocess.Popen([program, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"ready\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        yield process


@pytest.mark.skipif(sys.platform == "win32", reason="a copied program lacks its libraries")
def test_the_list_has_what_was_stopped(tmp_path, capsys):
    file = tmp_path / "list"
    with installed(tmp_path) as process:
        assert stop(tmp_path, file) == 0

        assert process.stdout.read() == b""  # it has ended
    (entry,) = json.loads(file.read_text("utf-8"))
    assert entry == {"words": [str(tmp_path / "mydata-like"), "-"], "own": True, "scheduled": False}
    assert capsys.readouterr().out == "Processes that were stopped: 1.\n"


def test_other_processes_of_the_list_are_not_started_again(tmp_path, capsys):
    file = tmp_path / "list"
    file.write_text(json.dumps([{"words": ["missing", "run"], "own": True, "scheduled": False}]))

    assert start(file, everyone=False) == 0
    assert capsys.readouterr().out == "Processes that were started again: 0.\n"


def test_with_everyone_no_window_is_started_again(tmp_path, capsys):
    file = tmp_path / "list"
    file.write_text(json.dumps([{"words": ["missing", "gui"], "own": True, "scheduled": False}]))

    assert start(file, everyone=True) == 0
    assert capsys.readouterr().out == "Processes that were started again: 0.\n"


def test_a_list_that_is_missing_is_reported(tmp_path, capsys):
    assert main(["start", "--list", str(tmp_path / "missing")]) == 1
    assert "missing" in capsys.readouterr().out
