"""The version of the loaded libssh."""

import subprocess
import sys

import pytest

# Prints in which order modules are looked for.
RECORDED = """
import sys
from importlib.abc import MetaPathFinder

class Recorder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("ssh.channel", "ssh.session"):
            print(name)

sys.meta_path.insert(0, Recorder())
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "code",
    [
        "from mydata_like.ssh.libssh_version import ask_libssh; ask_libssh('ssh_version')",
        "import mydata_like.ssh.session_libssh",
    ],
)
def test_threads_begin_with_the_same_one_of_modules_that_import_each_other(code):
    command = [sys.executable, "-c", RECORDED + code]

    ended = subprocess.run(command, check=True, capture_output=True, text=True)

    assert ended.stdout.split() == ["ssh.channel", "ssh.session"]
