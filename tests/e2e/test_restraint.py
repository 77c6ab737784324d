"""A run while an instrument is in use: the real command, real programs."""

import json
import os
import shutil
import subprocess
import sys

import psutil
import pytest

from mydata_like.hostos.process import NICENESS
from tests.invariants import check_sums
from tests.site import a_site, close_streams, finish, finish_reading, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


site = a_site(tiny_files=5, large=100_000)


@pytest.fixture
def acquisition(tmp_path):
    """A program that takes its time."""
    program = tmp_path / "acquire-demo"
    shutil.copy(shutil.which("sleep"), program)
    with subprocess.Popen([program, "60"]) as process:
        yield process
        process.kill()


def test_nothing_is_sent_while_the_acquisition_runs(site, acquisition):
    settings = ('limits.pause_while_running=["Acquire-Demo.exe"]',)
    process = site.start("run", "--events", settings=settings)
    before = wait_for(process, "run_paused")
    acquisition.kill()
    acquisition.wait()
    between = wait_for(process, "run_resumed")
    ended = finish_reading(process)

    assert before[-1]["problem"]["code"] == "limits.acquisition"
    assert "Acquire-Demo.exe is running" in before[-1]["problem"]["message"]
    assert "transfer_started" not in [line["event"] for line in (*before, *between)]
    check_sums(ended)
    assert ended.sums["verified"] == ended.sums["found"] > 0


def test_quiet_hours_keep_all_back_until_the_run_is_stopped(site):
    settings = ('limits.quiet_hours=["00:00-24:00"]', "limits.low_priority=false")
    process = site.start("run", "--events", settings=settings)
    wait_for(process, "file_wanted")
    priority = psutil.Process(process.pid).nice()
    process.terminate()
    ended = finish_reading(process)

    assert ended.problem == "run.interrupted"
    assert ended.events("transfer_started") == []
    assert priority == psutil.Process().nice()


@pytest.mark.skipif(sys.platform != "linux", reason="looks as Linux tells it")
def test_while_bytes_move_the_computer_is_awake_and_others_go_first(site, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "told")
    keeper = tmp_path / "systemd-inhibit"
    keeper.write_text(f"#!/bin/sh\ncat > {tmp_path / 'told'}\n")
    keeper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    site.server.hold_verification()

    process = site.start("run", "--events")
    with (tmp_path / "told").open() as told:  # opened by the keeper, too, once it is started
        ours = psutil.Process(process.pid)
        priorities = {one.nice() for one in (ours, *ours.children(recursive=True))}
        site.server.release_verification()
        ended = finish(process)
        told.read()  # ends with the keeper

    assert ended.code == 0
    assert priorities == {max(NICENESS, psutil.Process().nice())}


@pytest.mark.skipif(sys.platform != "linux", reason="looks as Linux tells it")
@pytest.mark.parametrize("refused", [False, True])
def test_a_run_says_whether_the_computer_is_kept_awake(site, tmp_path, monkeypatch, refused):
    keeper = tmp_path / "systemd-inhibit"
    keeper.write_text("#!/bin/sh\nexit 1\n" if refused else "#!/bin/sh\ncat\n")
    keeper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    site.server.hold_verification()

    process = site.start("run", "--events")
    told = []
    for line in process.stdout:
        event = json.loads(line)
        told += [event["awake"]] if event["event"] == "run_progressed" else []
        if told and (told[-1] or event.get("seconds", 0) > 5):
            site.server.release_verification()
    process.wait()

    assert any(told) is not refused
    close_streams(process)
