"""The version of the loaded libssh."""

import subprocess
import sys

import pytest

from mydata_like.ssh.libssh_version import is_fixed

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


@pytest.mark.parametrize(
    ("version", "fixed"),
    [
        ("0.9.8", False),
        ("0.11.4/openssl/zlib", False),
        ("0.11.5/openssl/zlib", True),
        ("0.12.0/openssl/zlib", False),
        ("0.12.1", True),
        ("1.0.0", True),
        ("development", False),
        ("", False),
    ],
)
def test_only_versions_that_are_known_to_check_aes_gcm_may_receive_with_it(version, fixed):
    assert is_fixed(version) is fixed
