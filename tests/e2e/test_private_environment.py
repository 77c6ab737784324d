"""Secrets from the environment, which no child process inherits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from mydata_like.hostos.process import find_program
from tests.invariants import check_complete
from tests.site import Site, finish, finish_reading, make_data, open_site, wait_for
from tests.sshd_fixture import needs_sshd

KEY, KEY_LOG = "MYDATA_LIKE_API_KEY", "SSLKEYLOGFILE"
pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc"),
]

# The window's own class for its engine, in a process that took its environment as the window does.
WINDOW = """
import json, os, sys
from mydata_like.state.paths import take_private
take_private()
from PySide6.QtCore import QCoreApplication
from mydata_like.gui.engine_process import Engine
app = QCoreApplication([])
engine = Engine(sys.argv[1:], parse=dict)
engine.events_received.connect(lambda records: print(json.dumps(
    [engine.number, records, sorted(os.environ)]), flush=True))
engine.ended.connect(lambda code: (print(json.dumps(engine.error_output), flush=True), app.quit()))
engine.start()
app.exec()
"""


@pytest.fixture
def site(tmp_path):
    """A site whose API key only the environment of its commands has."""
    make_data(tmp_path / "data", tiny_files=5, large=3_000_000)
    with open_site(tmp_path) as site:
        site.config.with_name("secrets.toml").unlink()
        yield site


def environment(site: Site, **more: str) -> dict[str, str]:
    return site.environment | {KEY: site.server.api_key} | more


def start(site: Site, words: list[str], **more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment(site, **more),
    )


def run_words(site: Site, *settings: str) -> list[str]:
    words = [sys.executable, "-m", "mydata_like", "run", "--events", "--config", str(site.config)]
    return words + [word for text in settings for word in ("--set", text)]


def environ_of(number: int) -> bytes:
    return Path(f"/proc/{number}/environ").read_bytes()


def test_no_child_of_a_run_inherits_the_key(site):
    key = site.server.api_key.encode()
    slowly = ("limits.bandwidth=1", "filters.settle_seconds=0")
    process = start(site, run_words(site, *slowly))
    wait_for(process, "transfer_started")
    children = psutil.Process(process.pid).children(recursive=True)
    found = [child.pid for child in children if key in environ_of(child.pid)]
    process.terminate()
    finish_reading(process)

    assert children
    assert found == []


def test_the_engine_gets_the_key_of_the_window_without_its_environment(site):
    words = [sys.executable, "-c", WINDOW, *find_program(), *run_words(site)[3:]]
    window = start(site, [*words, "--set", "filters.settle_seconds=0"])
    number, _, names = json.loads(window.stdout.readline())
    inherited = environ_of(number)
    ended = finish(window)

    assert inherited
    assert site.server.api_key.encode() not in inherited
    assert KEY not in names
    assert json.loads(ended.output.splitlines()[-1]) == ""
    assert site.find_wrongs() == []


def test_keys_of_tls_are_written_nowhere_and_the_log_says_so(site, tmp_path):
    key_log = tmp_path / "keys of tls"
    words = run_words(site, "filters.settle_seconds=0")
    words[words.index("--events")] = "--json"
    check_complete(site, finish(start(site, words, **{KEY_LOG: str(key_log)})))

    logged = "".join(log.read_text() for log in tmp_path.rglob("*.log"))
    assert not key_log.exists()
    assert logged.count(f"The environment variable {KEY_LOG} is ignored") == 1


def test_the_environment_of_a_process_keeps_only_what_its_children_may_know(tmp_path):
    program = (
        "import os, ssl\nfrom mydata_like.state.paths import environment, take_private\n"
        "take_private()\n"
        f"print({KEY!r} in os.environ, {KEY_LOG!r} in os.environ, environment()[{KEY!r}])\n"
        "print(ssl.create_default_context().keylog_filename)\n"
    )
    given = os.environ | {KEY: "secret", KEY_LOG: str(tmp_path / "log")}
    said = subprocess.check_output([sys.executable, "-c", program], env=given, text=True)

    assert said.split() == ["False", "False", "secret", "None"]
