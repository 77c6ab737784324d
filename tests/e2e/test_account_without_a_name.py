"""Accounts that have a number and no name, as in containers that are started with a user's id."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.privileges import IS_ROOT

pytestmark = pytest.mark.e2e
NUMBER = 54_321  # no account of a fresh system
NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


@pytest.fixture
def nameless():
    """Yield what runs a command as such an account, which sees the whole program."""
    if not IS_ROOT:
        pytest.skip("only root can start a command as another account")
    home = Path(tempfile.mkdtemp(prefix="nameless-"))  # those of pytest are for their owner only
    os.chown(home, NUMBER, NUMBER)
    environment = {name: text for name, text in os.environ.items() if name not in NAMES}
    environment |= {"HOME": str(home), "MYDATA_LIKE_HOME": str(home / "own")}

    def run(*words):
        return subprocess.run(
            (sys.executable, "-m", "mydata_like", *words),
            capture_output=True,
            text=True,
            cwd=home,
            env=environment,
            user=NUMBER,
            group=NUMBER,
            extra_groups=(),
        )

    if run("version").returncode:
        shutil.rmtree(home)
        pytest.skip("this clone can be read by its owner only")
    yield run
    shutil.rmtree(home)


def test_the_demonstration_needs_no_name(nameless):
    ended = nameless("demo", "--no-window")

    assert ended.returncode == 0, ended.stderr
    assert "equal to its local file, byte for byte" in ended.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("copy", ".", "storage.invalid:archive"), "USER@storage.invalid"),
        (("watch", "--install"), "--system --user"),
    ],
)
def test_what_needs_a_name_asks_for_one(nameless, words, hint):
    ended = nameless(*words)

    assert ended.returncode == 2
    assert "account has no name" in ended.stderr
    assert hint in ended.stderr
    assert "Traceback" not in ended.stderr
