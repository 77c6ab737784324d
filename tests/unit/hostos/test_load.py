"""What else is at work on this computer."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from mydata_like.hostos.load import HostLoad, LoadSample, compare, measure_idle
from tests.privileges import needs_process_names, needs_shell

Start = Callable[[str], Path]
BEFORE = LoadSample(100.0, {"": 5.0}, 1.0, 1_000, 100)
STALLS = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 total=7\n"
# Starts a program and ends, so that it has no parent here.
STARTER = """
import subprocess, sys
print(subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL).pid)
"""


def copy_program(folder: Path, name: str) -> list[str]:
    """Make a program of this name; return the command by which it runs for a minute."""
    program = folder / name
    if os.name == "nt":
        program = program if program.suffix.lower() == ".exe" else program.with_name(f"{name}.exe")
        shutil.copy(Path(sys.base_prefix, "python.exe"), program)
        return [str(program), "-c", "import time; time.sleep(60)"]
    shutil.copy(shutil.which("sleep") or "", program)
    return [str(program), "60"]


@pytest.fixture(autouse=True)
def find_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a copy of Windows' Python find its libraries."""
    if os.name == "nt":
        monkeypatch.setenv("PYTHONHOME", sys.base_prefix)
        monkeypatch.setenv("PATH", f"{sys.base_prefix}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program under a name of its own, which has no parent here."""
    started: list[int] = []

    def run(name: str) -> Path:
        if name.endswith(".sh"):
            os.mkfifo(tmp_path / "never")
            (tmp_path / name).write_text(f"#!/bin/sh\nread line < {tmp_path / 'never'}\n")
            (tmp_path / name).chmod(0o755)
            command = [str(tmp_path / name)]
        else:
            command = copy_program(tmp_path, name)
        said = subprocess.run(
            [sys.executable, "-c", STARTER, *command], stdout=subprocess.PIPE, check=True
        )
        started.append(int(said.stdout))
        return Path(command[0])

    yield run
    for pid in started:
        psutil.Process(pid).kill()


@needs_process_names
@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("acquire-demo", "acquire-demo"),
        ("acquire-demo", "Acquire-Demo.exe"),
        ("Acquire-Demo.EXE", "acquire-demo"),
        ("a-name-longer-than-linux-keeps", "a-name-longer-than-linux-keeps"),
        ("a-name-longer-than-linux-keeps.exe", "a-name-longer-than-linux-keeps"),
        pytest.param(
            *("a-script-longer-than-linux-keeps.sh", "a-script-longer-than-linux-keeps.sh"),
            marks=needs_shell,
        ),
    ],
)
def test_a_program_is_found_by_its_name(start: Start, name: str, named: str) -> None:
    start(name)

    assert HostLoad().find_program(["no-such-program", named]) == named


@needs_process_names
@pytest.mark.process
def test_a_program_is_not_taken_for_another(start: Start) -> None:
    start("acquire-demo")

    assert HostLoad().find_program(["acquire", "demo", "acquire-demo-2"]) is None


@needs_process_names
@pytest.mark.process
@pytest.mark.parametrize(
    "name", ["acquire-demo", pytest.param("acquire-demo.sh", marks=needs_shell)]
)
def test_a_program_is_found_by_its_path(start: Start, tmp_path: Path, name: str) -> None:
    program = start(name)

    assert HostLoad().find_program([str(program)]) == str(program)
    assert HostLoad().find_program([str(tmp_path / "other" / name)]) is None


@needs_process_names
@pytest.mark.process
def test_what_we_started_ourselves_is_left_out(tmp_path: Path) -> None:
    with subprocess.Popen(copy_program(tmp_path, "acquire-demo")) as child:
        found = HostLoad().find_program(["acquire-demo"])
        child.kill()

    assert found is None


def test_waiting_is_reported_as_a_share_of_the_time() -> None:
    after = BEFORE._replace(at=110.0, disks={"": 8.0})

    assert compare(BEFORE, after) == pytest.approx(30)


def test_waiting_for_the_disk_is_put_down_to_us_by_our_part_of_the_bytes() -> None:
    after = BEFORE._replace(at=110.0, disks={"": 13.0}, moved=5_000, ours=3_100)

    assert compare(BEFORE, after) == pytest.approx(80 * 1_000 / 4_000)


def test_if_all_reads_were_ours_nothing_else_waited() -> None:
    after = BEFORE._replace(at=110.0, disks={"": 15.0}, moved=5_000, ours=9_000)

    assert compare(BEFORE, after) == 0


def test_waiting_for_memory_is_never_put_down_to_us() -> None:
    after = BEFORE._replace(at=110.0, disks={"": 15.0}, memory=5.0, moved=5_000, ours=9_000)

    assert compare(BEFORE, after) == pytest.approx(40)


def test_the_busiest_disk_counts() -> None:
    before = BEFORE._replace(disks={"sda": 0.0, "sdb": 50.0})
    after = BEFORE._replace(at=110.0, disks={"sda": 1.0, "sdb": 52.0, "sdc": 500.0})

    assert compare(before, after) == pytest.approx(20)


def test_a_share_is_never_more_than_all_and_never_less_than_none() -> None:
    most = BEFORE._replace(at=110.0, disks={"": 80.0})
    restarted = BEFORE._replace(at=110.0, disks={"": 0.0}, memory=0.0, moved=0, ours=0)

    assert (compare(BEFORE, most), compare(BEFORE, restarted)) == (100, 0)


def test_the_stalls_that_linux_counts_are_read(tmp_path: Path) -> None:
    (tmp_path / "io").write_text(STALLS.format(2_500_000))
    (tmp_path / "memory").write_text(STALLS.format(500_000))

    sample = HostLoad(tmp_path).take_sample()

    assert sample is not None
    assert (sample.disks, sample.memory) == ({"": 2.5}, 0.5)


def test_pressure_begins_at_none(tmp_path: Path) -> None:
    (tmp_path / "io").write_text(STALLS.format(2_500_000))

    load = HostLoad(tmp_path)

    assert [load.measure_pressure(), load.measure_pressure()] == [0, 0]


def test_the_time_of_idle_processors_only_grows() -> None:
    before, after = measure_idle(), measure_idle()

    assert before is not None
    assert after is not None
    assert 0 < before <= after


def test_this_computer_is_measured_without_an_error() -> None:
    pressure = HostLoad().measure_pressure()

    assert pressure is None or pressure == 0
