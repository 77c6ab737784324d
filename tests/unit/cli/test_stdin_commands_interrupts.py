"""Ctrl+C in a terminal: commands that never end by themselves, and long ones, end at once."""

import os
import time
from contextlib import contextmanager

import pytest
import tomlkit

from tests.consoles import InConsole
from tests.site import QUICK, make_data, open_site

pytestmark = pytest.mark.process

PROMPT = 20.0  # seconds on a very busy computer; on others it takes about one
COMPLETE = {
    "server": {"url": "http://127.0.0.1:9", "username": "facility"},
    "instrument": {
        "name": "Microscope 1",
        "facility": "Imaging",
        "contact_name": "Ada",
        "contact_email": "ada@example.org",
    },
}
WAITING = """
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.engine.pipeline import CancelFlag, begin

cancel = CancelFlag()
with stopped_by_signals(cancel):
    find_result = begin(lambda: cancel.wait(3600))
    print("waiting", flush=True)
    assert find_result()
"""


@pytest.fixture
def start(tmp_path):
    """Start a command whose home and temporary folders are those of the test."""
    own = {name: str(tmp_path) for name in ("MYDATA_LIKE_HOME", "TMPDIR", "TEMP", "TMP")}

    @contextmanager
    def start(*words):
        with InConsole("-m", "mydata_like", *words, environment=os.environ | own) as program:
            yield program

    return start


def interrupt(program):
    begun = time.monotonic()
    ended = program.press_ctrl_c()
    assert time.monotonic() - begun < PROMPT
    return ended


def test_waiting_for_work_in_the_background_ends():
    with InConsole("-c", WAITING, environment=dict(os.environ)) as program:
        program.wait_for("waiting")

        ended = interrupt(program)

    assert (ended.code, ended.complaints) == (0, "")


def test_a_demonstration_ends_and_leaves_nothing(tmp_path, start):
    with start("demo", "--serve") as program:
        program.wait_for("Stop with Ctrl+C")
        (folder,) = tmp_path.glob("mydata-like-demo-*")

        ended = interrupt(program)

    assert (ended.code, ended.complaints) == (0, "")
    assert not folder.exists()


@pytest.mark.parametrize("kind", ["manual", "watch"])
def test_a_watch_ends(tmp_path, start, kind):
    config, data = tmp_path / "settings.toml", tmp_path / "data"
    data.mkdir()
    settings = COMPLETE | {"data": {"directory": str(data)}, "schedule": {"kind": kind}}
    config.write_text(tomlkit.dumps(settings), encoding="utf-8")
    with start("watch", "--config", str(config)) as program:
        program.wait_for("run is due")

        ended = interrupt(program)

    assert (ended.code, ended.complaints) == (0, "")


@pytest.mark.server
# asyncssh 2.24.1, the staging host on Windows, does not close the file of a connection that breaks.
@pytest.mark.filterwarnings("ignore:.*FileIO.*part:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("moment", ["transfer_started", "file_registered"])
def test_a_run_ends_with_its_channels(tmp_path, start, moment):
    make_data(tmp_path / "site", tiny_files=10, large=2_000_000)
    with open_site(tmp_path / "site") as site:
        site.server.hold_verification()
        chosen = [word for value in QUICK for word in ("--set", value)]
        words = ("run", "--events", "--config", str(site.config), *chosen)
        with start(*words) as program:
            program.wait_for(f'"{moment}"')

            ended = interrupt(program)

    assert (ended.code, ended.problem, ended.complaints) == (130, "run.interrupted", "")
