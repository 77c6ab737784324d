"""Keeping the computer from going to sleep by a program of its system."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from mydata_like.hostos.sleep_inhibitor import SleepInhibitor, SystemWakefulness

pytestmark = pytest.mark.process
by_program = pytest.mark.skipif(os.name == "nt", reason="Windows needs no program for it")

NAME = "caffeinate" if sys.platform == "darwin" else "systemd-inhibit"
# Runs the command that follows its options, as the real ones do, and reports how it fares.
KEEPER = """#!/bin/sh
echo "$0 $*" >> {told}
while [ "$1" != cat ]; do shift; done
"$@"
echo end >> {told}
"""
HOLDER = """
import sys
from mydata_like.hostos.sleep_inhibitor import SleepInhibitor
SleepInhibitor().keep()
print("kept", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the system's program was asked for; it stands on a search path of its own."""
    told = tmp_path / "told"
    install(tmp_path, KEEPER.format(told=told))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return told


def install(folder: Path, script: str) -> None:
    program = folder / NAME
    program.write_text(script)
    program.chmod(0o755)


@by_program
def test_the_computer_is_kept_awake_until_the_end(told: Path) -> None:
    wakefulness = SleepInhibitor()
    assert not wakefulness.keep()  # it may still be refused
    assert wakefulness.keep()
    wakefulness.end()
    wakefulness.end()

    begun, end = told.read_text().splitlines()
    assert "sleep" in begun or "-i" in begun
    assert end == "end"


@by_program
def test_it_can_be_kept_awake_again(told: Path) -> None:
    wakefulness = SleepInhibitor()
    for _ in range(2):
        wakefulness.keep()
        wakefulness.end()

    assert told.read_text().count("end\n") == 2


@by_program
def test_a_killed_process_does_not_keep_the_computer_awake(told: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"kept\n"
        keepers = psutil.Process(holder.pid).children(recursive=True)
        holder.kill()

    _, alive = psutil.wait_procs(keepers, timeout=60)
    assert keepers
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []


@by_program
def test_a_system_that_refuses_is_not_asked_again(told: Path, tmp_path: Path) -> None:
    install(tmp_path, f"#!/bin/sh\necho refused >> {told}\nexit 1\n")
    wakefulness = SleepInhibitor()
    wakefulness.keep()
    psutil.wait_procs(psutil.Process().children(), timeout=60)

    assert not wakefulness.keep()
    assert not wakefulness.keep()
    wakefulness.end()

    assert told.read_text() == "refused\n"


@by_program
def test_a_system_without_such_a_program_is_let_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    wakefulness = SleepInhibitor()

    wakefulness.keep()
    wakefulness.keep()
    wakefulness.end()


@pytest.mark.skipif(os.name != "nt", reason="a function of Windows")
def test_windows_is_kept_awake_until_the_end() -> None:
    ask = ctypes.windll.kernel32.SetThreadExecutionState  # type: ignore[attr-defined]
    continuous, system_required = 0x80000000, 0x00000001
    wakefulness = SystemWakefulness()

    wakefulness.keep()
    kept = ask(continuous | system_required)
    wakefulness.end()
    ended = ask(continuous)

    assert kept & 0xFFFFFFFF == continuous | system_required
    assert ended & 0xFFFFFFFF == continuous
