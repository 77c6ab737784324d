"""A command to another process counts as executed only if the run shows its effect."""

import json
import os
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from mydata_like.app.run_control import (
    ControlFiles,
    RunControl,
    find_active_run,
    give_command,
)
from mydata_like.core.errors import RunError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.state.state_files import RunCommand, save_record
from tests.privileges import IS_ROOT


def test_a_pause_that_the_ending_run_refuses_is_an_error(tmp_path):
    files = ControlFiles.of(tmp_path, b"/data")
    files.status.parent.mkdir(parents=True, exist_ok=True)
    refused, ended = [], Event()
    control = RunControl(files, "a run", SimpleNamespace(problem=None), refused.append)
    control.look()
    active = find_active_run(tmp_path, b"/data")

    def look():
        while not ended.wait(0.01):
            control.look()

    thread = Thread(target=look)
    thread.start()
    try:
        with pytest.raises(RunError) as caught:
            give_command(active, "pause", CancelFlag())
    finally:
        ended.set()
        thread.join()

    assert caught.value.problem_code == "command.too-late"
    assert b"pause" in refused[0]


def test_commands_that_are_given_at_once_are_all_executed(tmp_path):
    files = ControlFiles.of(tmp_path, b"/data")
    files.status.parent.mkdir(parents=True, exist_ok=True)
    executed = []
    control = RunControl(files, "a run", SimpleNamespace(problem=None), executed.append)
    control.look()
    active = find_active_run(tmp_path, b"/data")
    commands = ["stop_run", "resume"] * 4
    threads = [Thread(target=give_command, args=(active, it, CancelFlag())) for it in commands]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        control.look()
    for thread in threads:
        thread.join()

    given = sorted(json.loads(line)["command"] for line in executed)
    assert given == sorted(commands)
    assert not files.find_commands()


@pytest.mark.skipif(not IS_ROOT, reason="only root gives files to another account")
def test_a_command_of_another_account_is_not_executed(tmp_path):
    files = ControlFiles.of(tmp_path, b"/data")
    executed = []
    control = RunControl(files, "a run", SimpleNamespace(problem=None), executed.append)
    for number in range(2):
        file = files.new_command()
        save_record(file, RunCommand("a run", "stop_run", str(number)))
        if number:
            os.chown(file, 65534, 65534)

    control.look()

    assert [json.loads(line)["id"] for line in executed] == ["0"]
    assert files.find_commands() == []
