"""A watch that cannot start, without anybody who sees its output."""

import os
import subprocess
import sys

import pytest

from mydata_like.cli.watch_command import UnseenFailures
from mydata_like.core.errors import AlreadyRunningError, Problem
from mydata_like.core.events import RunFinished, RunStarted
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.event_log import report_error

# As `pythonw.exe` or a windowed bundle start it on Windows.
WITHOUT_CONSOLE = (
    "import sys; sys.stdin = sys.stdout = sys.stderr = None;"
    "from mydata_like.__main__ import show; show()"
)
NO_KEY = Problem("settings.no-key", "There is no API key.", "Store it.")


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "logged"),
    [
        (["--set", "transfer.channels=99"], "transfer.channels"),
        ([], "These settings are not set yet: server.url"),
    ],
    ids=["invalid", "incomplete"],
)
def test_its_log_says_why_it_cannot_start(tmp_path, words, logged):
    home = tmp_path / "home"

    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_CONSOLE, "watch", "--home", str(home), *words],
        env={name: text for name, text in os.environ.items() if name != "MYDATA_LIKE_HOME"},
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (2, b"", b"")
    assert logged in (home / "logs" / "mydata-like.log").read_text("utf-8")


class Entries(UnseenFailures):
    """Collects what would be reported."""

    def __init__(self):
        self.texts = []
        super().__init__(seen=False, report=self.texts.append)


def finish(problem):
    return RunFinished.of_nothing(SystemClock().now(), problem)


def test_the_same_failure_of_a_watch_is_reported_once():
    entries = Entries()

    for _ in range(3):
        entries.show(finish(NO_KEY))

    assert entries.texts == ["There is no API key.\nStore it.\nCode: settings.no-key"]


def test_it_is_reported_again_after_a_run_has_started():
    entries = Entries()

    entries.show(finish(NO_KEY))
    entries.show(RunStarted(at=SystemClock().now(), run="1", data_directory=b"/data"))
    entries.show(finish(NO_KEY))

    assert len(entries.texts) == 2


def test_another_run_is_no_failure():
    entries = Entries()

    entries.show(finish(Problem(AlreadyRunningError.code, "Another run is active.")))

    assert entries.texts == []


def test_what_a_terminal_shows_is_not_reported():
    texts = []

    UnseenFailures(seen=True, report=texts.append).show(finish(NO_KEY))

    assert texts == []


def test_only_windows_has_an_event_log():
    assert report_error("A test of mydata-like.") == (os.name == "nt")
