"""Stopping the other processes of an installation, and starting them again."""

import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from mydata_like.hostos.instances import (
    StartedCommand,
    describe_commands,
    list_others,
    start_again,
    stop_processes,
)

pytestmark = pytest.mark.process

POLITE = """
import sys
from mydata_like.hostos.instances import stopped_by_request
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.engine.pipeline import CancelFlag
cancel = CancelFlag()
with stopped_by_signals(cancel):
    print("ready", flush=True)
    stopped = cancel.wait(60)
print(stopped, flush=True)
"""
DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
input()
"""


@contextmanager
def started(*words):
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_process_that_is_asked_ends_as_it_wants():
    with started(sys.executable, "-c", POLITE) as process:
        left = stop_processes([psutil.Process(process.pid)])

        assert left == []
        assert process.stdout.read() == "True\n"


def test_a_process_that_cannot_be_asked_is_killed():
    with started(sys.executable, "-c", DEAF) as process:
        assert stop_processes([psutil.Process(process.pid)], patience=0.1) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a copied python.exe lacks its libraries")
def test_only_programs_of_the_installation_are_found(tmp_path):
    program, other = tmp_path / "mydata-like", tmp_path / "sleeper"
    for copy in (program, other):
        shutil.copy(shutil.which("cat"), copy)
    with watched(program) as ours, watched(other):
        found = list_others(tmp_path)

        assert [process.pid for process in found] == [ours.pid]
        assert describe_commands(found) == [StartedCommand((str(program), "-"))]
        assert list_others(tmp_path / "elsewhere") == []


def test_a_command_begins_with_the_path_of_its_program():
    with started(sys.executable, "-c", DEAF) as process:
        (command,) = describe_commands([psutil.Process(process.pid)])

        assert Path(command.words[0]).samefile(sys.executable)
        assert command == StartedCommand((command.words[0], "-c", DEAF))


@contextmanager
def watched(program):
    process = subprocess.Popen([program, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdin.write(b"ready\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"  # its executable is in place
        yield process
    finally:
        process.kill()
        process.communicate()


WINDOW = r"C:\x\mydata-like-gui.exe" if sys.platform == "win32" else "/x/mydata-like-gui"
CONSOLE = r"C:\x\mydata-like.exe" if sys.platform == "win32" else "/x/mydata-like"


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ((WINDOW,), (WINDOW, "--hidden")),
        ((WINDOW, "/data/a"), (WINDOW, "--hidden")),
        ((WINDOW, "--config", "c", "b"), (WINDOW, "--config", "c", "--hidden")),
        ((CONSOLE, "gui", "a", "--config", "c"), (CONSOLE, "gui", "--config", "c", "--hidden")),
        ((CONSOLE,), (CONSOLE, "gui", "--hidden")),
        ((WINDOW, "watch", "--set", "a=b"), (WINDOW, "watch", "--set", "a=b")),
        ((CONSOLE, "watch", "--set", "a=b"), (CONSOLE, "watch", "--set", "a=b")),
    ],
)
def test_a_command_is_repeated_in_the_background(words, again):
    assert StartedCommand(words).in_background().words == again


def test_runs_and_engines_of_a_window_are_not_started_again(tmp_path):
    program = str(tmp_path / "missing")  # would fail if it was started
    commands = [
        StartedCommand((program, "run")),
        StartedCommand((program, "watch", "--attended", "--events")),
        StartedCommand((program, "--channel-worker")),
        StartedCommand((program, "watch"), own=False),
    ]

    assert list(start_again(commands)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_a_watch_is_started_again(tmp_path):
    program = tmp_path / "mydata-like"
    program.write_text('#!/bin/sh\nprintf "%s " "$@" > "$0.out"\n')
    program.chmod(0o700)

    (process,) = start_again([StartedCommand((str(program), "watch", "--set", "a=b"))])

    assert process.wait(60) == 0
    assert program.with_suffix(".out").read_text() == "watch --set a=b "
