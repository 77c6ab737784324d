"""The wheel, installed with the newest and the oldest libraries: `make test-package`."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mydata_like import __version__

ROOT = Path(__file__).parents[2]
PATIENCE = 600  # seconds, most of them for downloads

pytestmark = pytest.mark.timeout(PATIENCE)


def list_oldest():
    """Yield the least version of each library that the program names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for text in (*project["dependencies"], *project["optional-dependencies"]["s3"]):
        least = re.match(r"([\w-]+)>=([\w.]+)", text)
        if least:
            yield f"{least[1]}=={least[2]}"


@pytest.fixture(params=["newest", "oldest"])
def ask(request, tmp_path):
    """Run the installed program in a folder with nothing in it."""
    (wheel,) = (ROOT / "dist").glob(f"mydata_like-{__version__}-*.whl")
    oldest = sorted({*list_oldest()}) if request.param == "oldest" else []
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    install = (place / "bin/python", "-m", "pip", "install", "--quiet")
    subprocess.run([*install, f"{wheel}[s3]", *oldest], check=True)
    folder = tmp_path / "elsewhere"
    folder.mkdir()

    def run(*words):
        command = [place / "bin/mydata-like", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=folder)

    return run


def test_the_wheel_is_all_that_pip_needs(ask):
    for words in (["--help"], ["run", "--help"], ["demo", "--no-window"]):
        ended = ask(*words)
        assert ended.returncode == 0, ended.stderr

    tried = ask("--self-test").stdout.splitlines()
    assert {line.split()[0] for line in tried} == {"ok"}, tried
