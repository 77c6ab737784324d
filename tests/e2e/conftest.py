"""The program as it is published and installed, and destinations of copies."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.copy_site import KINDS, open_copy_site
from tests.openssh import open_ssh

ROOT = Path(__file__).parents[2]
PATIENCE = 120


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder with the wheel and the sources, as they would be published."""
    folder = tmp_path_factory.mktemp("built")
    words = ("-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder))
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, timeout=PATIENCE)
    return folder


@pytest.fixture(scope="session")
def installed(built, tmp_path_factory):
    """The programs in an environment with the wheel; the libraries are those of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    site = next(folder.rglob("site-packages"))
    (site / "libraries.pth").write_text("\n".join(filter(is_libraries, sys.path)))
    pip = (sys.executable, "-m", "pip", "--python", str(programs / "python"), "install")
    options = ("--quiet", "--no-deps", "--no-index", "--no-compile")
    subprocess.run([*pip, *options, *built.glob("*.whl")], check=True, timeout=PATIENCE)
    return programs


def is_libraries(path):
    return Path(path).name == "site-packages"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with open_ssh(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture(params=KINDS)
def site(request, tmp_path, sshd):
    """A destination of copies of each kind."""
    with open_copy_site(tmp_path / request.param, request.param, sshd) as site:
        yield site
