"""The program on computers with nothing else on them: `make test-package`, as root.

debootstrap makes such a computer in a folder, of the system that this one has; what is started in
there ends with the test. It takes packages from the places that this computer takes them from.
"""

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRUST = Path("/etc/ssl/certs/ca-certificates.crt")
TOOLS = ("debootstrap", "unshare", "chroot")
GIVEN = ("PIP_INDEX", "PIP_EXTRA", "http_proxy", "https_proxy")  # what leads to packages
LOGIN = (
    *("HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"),
    "PIP_CERT=/trust.pem",  # it trusts whom this computer trusts
)
# Its root is a file system of its own, and every user can write to its shared memory. Programs can
# open terminals.
START = """
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount -t devpts -o ptmxmode=666 devpts "$1/dev/pts"
ln -sf pts/ptmx "$1/dev/ptmx"
exec chroot "$@"
"""
CLONE = "/srv/mydata-like"
PATIENCE = 7200  # seconds, most of them for the gate

pytestmark = [
    pytest.mark.timeout(PATIENCE),
    pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() != 0 or not all(map(shutil.which, TOOLS)),
        reason=f"needs root and {', '.join(TOOLS)}",
    ),
]


class Computer:
    """A minimal system in a folder."""

    def __init__(self, root):
        self.root = root

    def run(self, *words, folder="/root"):
        """Run a command in a new login shell environment; return its output."""
        private = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        inside = ("sh", "-euc", START, "sh", self.root, "env", "-i", "-C", folder)
        given = [f"{name}={text}" for name, text in os.environ.items() if name.startswith(GIVEN)]
        ended = subprocess.run(
            [*private, *inside, *LOGIN, *given, *words],
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
        if ended.returncode != 0:
            print(ended.stdout)
            pytest.fail(f"{words} ended with {ended.returncode}")
        return ended.stdout

    def install(self, *packages):
        self.run("apt-get", "update", "-qq")
        words = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
        self.run("env", "DEBIAN_FRONTEND=noninteractive", *words)

    def list_packages(self):
        return set(self.run("dpkg-query", "-W", "-f", "${Package}\n").split())


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The least that debootstrap makes."""
    folder = tmp_path_factory.mktemp("bare") / "root"
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    subprocess.run(["debootstrap", "--variant=minbase", suite, folder], check=True)
    shutil.copy(TRUST, folder / "trust.pem")
    (folder / "etc/hosts").write_text("127.0.0.1 localhost\n")  # the installer of Debian makes it
    return folder


@pytest.fixture
def computer(bare, tmp_path):
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", bare, root], check=True)
    yield Computer(root)
    shutil.rmtree(root)


def test_the_package_is_all_that_an_upload_needs(computer):
    (package,) = (ROOT / "dist").glob("mydata-like_*.deb")
    shutil.copy(package, computer.root / "root")

    computer.install(f"./{package.name}")

    sums = json.loads(computer.run("mydata-like", "demo", "--json").splitlines()[-1])
    assert sums["verified"] == sums["found"] > 300
    tried = computer.run("mydata-like", "--self-test").splitlines()
    assert {line.split()[0] for line in tried} == {"ok"}, tried


def test_nothing_is_left_of_a_package_that_is_removed(computer):
    (package,) = (ROOT / "dist").glob("mydata-like_*.deb")
    shutil.copy(package, computer.root / "root")
    computer.install(f"./{package.name}")

    computer.run("dpkg", "--purge", "mydata-like")

    left = [*computer.root.rglob("*mydata-like*"), *computer.root.rglob("*mydata_like*")]
    assert {path.name for path in left} <= {package.name}


@pytest.fixture
def clone(computer):
    """A clone on a computer that has only what the README names."""
    folder = computer.root / CLONE.lstrip("/")
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, folder], check=True)
    computer.install("python3", "make")
    return folder


def test_the_demonstration_installs_what_makes_a_virtual_environment_alone(computer, clone):
    before = computer.list_packages()
    simulated = ("apt-get", "install", "-s", "--no-install-recommends", "python3-venv")
    lines = computer.run(*simulated).splitlines()
    needed = {line.split()[1] for line in lines if line.startswith("Inst ")}

    print(computer.run("make", "demo", folder=CLONE))

    assert computer.list_packages() - before == needed


def test_the_gate_passes_in_a_clone_and_leaves_no_server_that_starts_at_boot(computer, clone):
    print(computer.run("make", "test", folder=CLONE))

    assert "openssh-server" in computer.list_packages()
    assert [*(computer.root / "etc/systemd/system").rglob("ssh*")] == []
    assert [*(computer.root / "etc").glob("rc?.d/S??ssh")] == []
    assert not (computer.root / "usr/sbin/policy-rc.d").exists()


def test_the_gate_passes_for_a_user_once_what_it_names_is_installed(computer, clone):
    computer.install("python3-venv")
    computer.run("useradd", "--create-home", "--uid", "1000", "ann")
    computer.run("chown", "--recursive", "ann:ann", CLONE)
    ann = ("setpriv", "--reuid=ann", "--regid=ann", "--init-groups", "env", "HOME=/home/ann")

    told = computer.run(*ann, "sh", "-c", "make setup 2>&1 || true", folder=CLONE)
    (install,) = re.findall(r"^On Debian or Ubuntu: sudo (sh .+)$", told, re.MULTILINE)
    computer.run(*install.split(), folder=CLONE)
    print(computer.run(*ann, "make", "test", folder=CLONE))
