"""The wheel and the sources, installed in fresh environments: `make test-wheel`.

Each of pip, pipx and `uv tool` installs the wheel for each version of Python that is found here.
The oldest versions of all libraries that the program names are tried too, and the sources without
a compiler.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like import __version__

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
TOOLS = Path(sys.executable).parent
VERSIONS = ("3.11", "3.12", "3.13")
PATIENCE = 900  # seconds, most of them for downloads

pytestmark = pytest.mark.timeout(PATIENCE)


def find_python(version):
    """Return a Python of a version, or skip the test."""
    homes = [*Path.home().glob(f".pyenv/versions/{version}.*/bin"), *map(Path, os.get_exec_path())]
    for home in homes:
        python = home / f"python{version}"
        works = [python, "-c", "import venv, ensurepip"]
        if python.exists() and not subprocess.run(works, capture_output=True).returncode:
            return python
    return pytest.skip(f"no Python {version} here")


def find_wheel():
    (wheel,) = DIST.glob(f"mydata_like-{__version__}-py3-none-manylinux*.whl")
    return f"{wheel}[s3]"


def make_environment(python, place):
    subprocess.run([python, "-m", "venv", place], check=True)
    return place / "bin" / "python"


def install_by_pip(python, place):
    pip = [make_environment(python, place), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, find_wheel()], check=True)
    return place / "bin"


def install_by_pipx(python, place):
    homes = {"PIPX_HOME": str(place / "home"), "PIPX_BIN_DIR": str(place / "bin")}
    command = [TOOLS / "pipx", "install", "--quiet", "--python", python, find_wheel()]
    subprocess.run(command, check=True, env=os.environ | homes)
    return place / "bin"


def install_by_uv(python, place):
    homes = {"UV_TOOL_DIR": str(place / "tools"), "UV_TOOL_BIN_DIR": str(place / "bin")}
    command = [TOOLS / "uv", "tool", "install", "--quiet", "--python", python, find_wheel()]
    subprocess.run(command, check=True, env=os.environ | homes)
    return place / "bin"


def install_lowest(python, place):
    environment = make_environment(python, place)
    asked = place / "lowest.txt"
    compiling = ("--extra", "s3", "--resolution", "lowest-direct", "--python", environment)
    uv = (TOOLS / "uv", "pip")
    subprocess.run([*uv, "compile", "-q", "pyproject.toml", *compiling, "-o", asked], cwd=ROOT)
    install = [*uv, "install", "--quiet", "--python", environment]
    subprocess.run([*install, "-r", asked], check=True)
    subprocess.run([*install, "--no-deps", find_wheel().partition("[")[0]], check=True)
    return place / "bin"


def install_sources(python, place):
    (sources,) = DIST.glob(f"mydata_like-{__version__}.tar.gz")
    pip = [make_environment(python, place), "-m", "pip", "install", "--quiet"]
    without = os.environ | {"CC": shutil.which("false")}
    subprocess.run([*pip, f"{sources}[s3]"], check=True, env=without)
    return place / "bin"


WAYS = [
    (version, way)
    for version in VERSIONS
    for way in (install_by_pip, install_by_pipx, install_by_uv)
]
WAYS += [
    (VERSIONS[0], install_lowest),
    (VERSIONS[-1], install_lowest),
    (VERSIONS[0], install_sources),
]


@pytest.mark.parametrize(
    ("version", "install"), WAYS, ids=[f"{way.__name__}-{version}" for version, way in WAYS]
)
def test_a_fresh_environment_needs_nothing_else(version, install, tmp_path):
    programs = install(find_python(version), tmp_path / "place")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "scan.tif").write_bytes(b"scan")
    home = os.environ | {"MYDATA_LIKE_HOME": str(tmp_path / "home"), "BROWSER": "true"}

    def run(*words):
        command = [programs / "mydata-like", *words]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=home)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    assert run("--version") == f"mydata-like {__version__}\n"
    run("run", "--help")
    assert "search.html" in Path(run("help").strip()).read_text()
    run("demo", "--no-window")
    run("copy", "data", "there")
    assert [file.read_bytes() for file in tmp_path.glob("there/**/scan.tif")] == [b"scan"]
    tried = run("--self-test").splitlines()
    assert {line.split()[0] for line in tried} == {"ok"}, tried
    by = "hashlib" if install is install_sources else "C library"
    assert by in tried[0]
