"""The package for Debian, unpacked into a folder, and the program in it: `make test-package`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like import __version__

DIST = Path(__file__).parents[2] / "dist"
SSHD = Path("/usr/sbin/sshd")
PATIENCE = 300

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("dpkg"), reason="no system of this kind"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """What a computer gets."""
    folder = tmp_path_factory.mktemp("root")
    (package,) = DIST.glob(f"mydata-like_{__version__}_*.deb")
    subprocess.run(["dpkg", "-x", package, folder], check=True)
    return folder


@pytest.fixture
def ask(root, tmp_path):
    """Run the program of the package as a person does, with nothing of this environment."""

    def run(*words, **environment):
        given = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        return subprocess.run(
            [root / "usr/bin/mydata-like", *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=given | environment,
            cwd=tmp_path,
        )

    return run


def test_the_program_starts_by_the_name_that_is_on_the_path(ask):
    assert ask("--version").stdout == f"mydata-like {__version__}\n"


def test_every_part_works_from_the_package(ask):
    ended = ask("--self-test")

    assert [line.split()[0] for line in ended.stdout.splitlines()] == ["ok"] * 7, ended.stdout
    assert ended.returncode == 0


@pytest.mark.skipif(not SSHD.exists(), reason="no sshd here")
def test_what_it_starts_finds_the_libraries_of_the_system(ask, tmp_path):
    sshd = tmp_path / "sshd"
    sshd.write_text(f'#!/bin/sh\necho "$LD_LIBRARY_PATH" > {tmp_path}/told\nexec {SSHD} "$@"\n')
    sshd.chmod(0o755)

    ended = ask("demo", "--json", LD_LIBRARY_PATH="/given", PATH=f"{tmp_path}:/usr/bin:/bin")

    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "told").read_text() == "/given\n"


def test_desktops_find_the_program_with_its_icon(root):
    share = root / "usr/share"

    for size in (16, 48, 256):
        assert (share / f"icons/hicolor/{size}x{size}/apps/mydata-like.png").is_file()
    assert (share / "applications/mydata-like.desktop").is_file()
    assert (share / "metainfo/org.mydata_like.mydata_like.metainfo.xml").is_file()
    assert (share / "man/man1/mydata-like.1").is_file()


def test_the_papers_lie_beside_the_program(root):
    papers = {path.name for path in (root / "opt/mydata-like").iterdir()}

    assert {"sbom.cdx.json", "THIRD-PARTY.txt", "LICENSE"} <= papers


def test_nothing_of_the_package_can_be_changed_by_others(root):
    paths = [path for path in root.rglob("*") if not path.is_symlink()]

    assert [path for path in paths if path.stat().st_mode & 0o022] == []
