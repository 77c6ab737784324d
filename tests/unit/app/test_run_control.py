"""A command to another process counts as executed only if the run shows its effect."""

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
