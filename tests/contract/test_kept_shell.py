"""The shell on a host that runs short scripts one after the other."""

import hashlib
import os
import re
import shlex
import shutil
from contextlib import ExitStack, closing

import psutil
import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.connect import connect
from mydata_like.transfer.ssh.host_files import HostFiles
from mydata_like.transfer.ssh.kept_shell import LONGEST, KeptShell
from tests.sshd_fixture import endpoint_of, first_in_path, needs_sshd, script, sshd_with

OWN = b".mydata-like/own"
SHELLS = ["dash", "bash --posix", "busybox sh", "ksh", "mksh", "zsh --emulate sh"]

pytestmark = needs_sshd


@pytest.fixture
def open_files(tmp_path):
    """Return a function that opens the files of a location on a host with these options."""
    with ExitStack() as stack:

        def open_with(*options):
            (tmp_path / "keys").mkdir()
            sshd = stack.enter_context(sshd_with(tmp_path, *options))
            endpoint = endpoint_of(sshd, tmp_path / "keys")
            capabilities = HostCapabilities("shell", checksum=b"md5sum", sha256=b"sha256sum")
            files = HostFiles(
                lambda: (connect(endpoint), capabilities), os.fsencode(tmp_path / "there")
            )
            return stack.enter_context(closing(files))

        yield open_with


def use(files, path):
    """Call what needs a command each; return the names of our own files."""
    files.open(create=True)
    (path / "there" / "data").write_bytes(b"data")
    files.write(OWN, b"content", replace=True)
    assert files.read(OWN) == b"content"
    files.sync()
    (proven,) = files.prove([b"data"])
    assert proven.checksum == hashlib.md5(b"data").hexdigest()
    return files.list_own(b".mydata-like")


def test_the_start_files_of_an_account_are_read_once(tmp_path, open_files):
    log = tmp_path / "log"
    gate = script(
        tmp_path / "gate",
        f'echo >> {shlex.quote(str(log))}\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n',
    )

    files = open_files(f"ForceCommand {gate}")

    assert use(files, tmp_path) == [b"own"]
    assert len(log.read_text()) == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_input_and_output_are_the_same_with_each_shell(tmp_path, open_files, shell):
    if not shutil.which(shell.split()[0]):
        pytest.skip(f"{shell.split()[0]} is not installed")
    files = open_files(*first_in_path(tmp_path, sh=f'exec {shell} "$@"\n'))
    content = bytes(range(256)) * 20
    name = bytes(it for it in range(1, 256) if it != ord("/"))

    assert use(files, tmp_path) == [b"own"]
    assert files.write(b".mydata-like/all", content)
    assert files.read(b".mydata-like/all") == content
    names = [name[:120], name[120:]]
    for part in names:
        (tmp_path / "there" / os.fsdecode(part)).write_bytes(content)
    proven = files.prove(names)
    assert {it.checksum for it in proven} == {hashlib.md5(content).hexdigest()}


@pytest.mark.parametrize("most", [1, 2])
def test_a_host_that_grants_few_channels_is_used_without_a_shell(tmp_path, open_files, most):
    files = open_files(f"MaxSessions {most}")
    large = os.urandom(2 * LONGEST)

    use(files, tmp_path)
    with files.open_content(b"data") as content:
        assert content
        assert b"".join(content.pieces) == b"data"
    assert files.write(b".mydata-like/large", large)
    assert files.read(b".mydata-like/large") == large
    assert files.list_own(b".mydata-like") == [b"large", b"own"]


def test_a_shell_that_is_killed_fails_one_call(tmp_path, open_files):
    files = open_files()
    use(files, tmp_path)
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if "while IFS= read -r s" in words and str(tmp_path) in str(process.environ()):
            process.kill()

    with pytest.raises(TransientError):
        files.read(OWN)
    assert files.read(OWN) == b"content"


class Garbling:
    """A session with a stream of a host that answers, but with no exit status."""

    def start(self, command):
        self._said = re.search(rb"mydata-\w+", command)[0]
        return self

    def write(self, line):
        self._said = b"\n%b\n\n%b x\n" % (self._said, re.findall(rb"mydata-\w+", line)[-1])

    def read(self, size):
        said, self._said = self._said, b""
        return said


def test_an_answer_without_an_exit_status_is_not_believed():
    with pytest.raises(TransientError):
        KeptShell(Garbling()).run(b"true", None)
