"""What comes before the window: the words, and plain words where none can open."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like.gui.startup_errors import PACKAGES, describe_obstacle, find_missing

NO_PLATFORM = "no Qt platform plugin could be initialized"


def mydata_like(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "mydata_like", *words],
        env={name: text for name, text in (os.environ | environment).items() if text},
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.mark.parametrize("words", [(), ("gui", "--hidden")])
def test_without_a_display_the_program_says_so_and_ends(words):
    ended = mydata_like(*words, QT_QPA_PLATFORM="", DISPLAY="", WAYLAND_DISPLAY="")

    assert ended.returncode == 2
    assert "cannot open" in ended.stderr
    assert "mydata-like --help" in ended.stderr


def test_help_needs_no_display():
    for words in (("--help",), ("gui", "--help")):
        ended = mydata_like(*words, QT_QPA_PLATFORM="", DISPLAY="")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "Open the window" in ended.stdout


def test_opening_the_window_imports_nothing_that_only_commands_need():
    words = ("gui", "--help")
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mydata_like", *words],
        capture_output=True,
        text=True,
    )

    for heavy in ("mydata_like.app", "requests", "PySide6"):
        assert f" {heavy}\n" not in ended.stderr


def test_missing_libraries_are_named_with_their_packages():
    error = describe_obstacle("libEGL.so.1: cannot open", ("libEGL.so.1", "libGL.so.1"), {})

    assert "lacks libEGL.so.1, libGL.so.1." in error.message
    assert "sudo apt-get install libegl1 libgl1\n" in error.hint
    assert error.exit_code == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has displays that may be missing")
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "there is no display here"),
        ({"DISPLAY": ":7"}, "the display :7 cannot be reached"),
        ({"DISPLAY": ":7", "WAYLAND_DISPLAY": "wayland-0"}, "the display wayland-0 cannot"),
        ({"QT_QPA_PLATFORM": "nonsense"}, NO_PLATFORM),
    ],
)
def test_a_display_that_does_not_work_is_reported(environment, words):
    assert words in describe_obstacle(NO_PLATFORM, (), environment).message


def test_the_libraries_that_are_asked_for_are_those_of_this_system():
    assert set(find_missing()) <= set(PACKAGES)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no system tells of handlers")
def test_a_signal_that_comes_before_the_window_has_begun_ends_the_program(tmp_path):
    shown = {"MYDATA_LIKE_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    words = [sys.executable, "-m", "mydata_like", "gui"]
    with subprocess.Popen(words, env=os.environ | shown, stderr=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None and not handles(process.pid, signal.SIGTERM):
                pass  # the window's own loop begins within milliseconds
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()


def handles(pid, number):
    """Return whether a process has a handler for a signal, as Linux reports."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)
