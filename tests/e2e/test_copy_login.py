"""`copy` on a terminal, to hosts that want a passphrase, a password or a one-time code."""

import os
import subprocess
import sys

import pytest

from tests.asking_sshd import asking_sshd, needs_pam, run_on_terminal
from tests.copy_site import CopySite, check_with_md5sum, find_differences
from tests.openssh import open_ssh
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="terminals and programs of POSIX"),
]
AFTER_A_KEY = (
    "KbdInteractiveAuthentication yes",
    "AuthenticationMethods publickey,keyboard-interactive",
)


def make_site(folder, sshd):
    """Return a user with two hundred files, some of them large enough for their own channel."""
    site = CopySite(folder, "host", sshd)
    for number in range(200):
        path = site.data / "src" / f"{number}.raw"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(6_000_000 if number < 4 else 500))
    return site


def copy_on_terminal(site, *answers):
    words = [sys.executable, "-m", "mydata_like", "copy", str(site.data / "src"), site.target]
    return run_on_terminal(words, site.environment, answers)


def require_copied(site, code, shown):
    assert code == 0, shown
    assert "200 files: 200 compared on the host now" in shown
    assert not find_differences(site.data, site.there)
    assert not check_with_md5sum(site.there)


def test_a_passphrase_is_asked_for_once_and_shown_nowhere(tmp_path):
    with open_ssh(tmp_path / "sshd") as sshd:
        site = make_site(tmp_path / "user", sshd)
        encrypt = [
            "ssh-keygen",
            "-q",
            "-p",
            "-N",
            "secret",
            "-f",
            site.home / ".ssh" / "id_ed25519",
        ]
        subprocess.run(encrypt, check=True, stdout=subprocess.DEVNULL)

        code, shown = copy_on_terminal(site, ("Passphrase of", "secret"))

        require_copied(site, code, shown)
        assert shown.count("Passphrase of") == 1
        assert "secret" not in shown
        files = [it for it in site.state.rglob("*") if it.is_file()]
        assert not [it for it in files if b"secret" in it.read_bytes()]


@needs_pam
def test_a_password_is_asked_for_once(tmp_path):
    with asking_sshd(tmp_path, "secret", *AFTER_A_KEY) as sshd:
        site = make_site(tmp_path / "user", sshd)

        code, shown = copy_on_terminal(site, ("Password:", "secret"))

        require_copied(site, code, shown)
        assert shown.count("Password:") == 1
        assert sshd.log.count("Accepted keyboard-interactive") > 2


@needs_pam
def test_one_session_is_enough_where_each_one_needs_a_code(tmp_path):
    with asking_sshd(tmp_path, "111 222 333", *AFTER_A_KEY) as sshd:
        site = make_site(tmp_path / "user", sshd)

        code, shown = copy_on_terminal(site, ("Password:", "111"))

        require_copied(site, code, shown)
        assert "wants a new code for each session" in shown
        assert sshd.log.count("Accepted keyboard-interactive") == 1


@needs_pam
def test_without_a_terminal_nothing_is_asked(tmp_path):
    with asking_sshd(tmp_path, "secret", *AFTER_A_KEY) as sshd:
        site = make_site(tmp_path / "user", sshd)

        ended = site.copy(site.data / "src", "--text")

    assert ended.code != 0
    assert "Run the command on a terminal" in ended.complaints + ended.output
