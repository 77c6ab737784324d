"""The program as it is installed: a wheel in an environment of its own."""

import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from mydata_like import __version__

PATIENCE = 120

pytestmark = pytest.mark.e2e


def ask(*words, home="/nowhere"):
    environment = os.environ | {"MYDATA_LIKE_HOME": str(home)}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE, env=environment, cwd="/"
    )


def test_the_wheel_has_icons_and_translations_and_no_tests(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {
        "mydata_like/resources/icons/app.svg",
        "mydata_like/resources/icons/LICENSE",
    } <= names
    assert "mydata_like/resources/translations/mydata_like_de.qm" in names
    assert "mydata_like/py.typed" in names
    assert {name.partition("/")[0] for name in names} == {
        "mydata_like",
        f"mydata_like-{__version__}.dist-info",
    }


def test_the_sources_have_what_a_packager_wants(built):
    (sources,) = built.glob("*.tar.gz")
    with tarfile.open(sources) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}

    assert {
        "LICENSE",
        "packaging/mydata-like.spec",
        "resources/icons/app.svg",
        "tests/e2e/test_installing.py",
    } <= names
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]


def test_both_programs_start_from_the_wheel(installed):
    version = ask(installed / "mydata-like", "--version")
    where = ask(installed / "python", "-c", "import mydata_like; print(mydata_like.__file__)")
    window = ask(installed / "mydata-like-gui", "--help")

    assert version.stdout == f"mydata-like {__version__}\n"
    assert Path(where.stdout).is_relative_to(installed.parent)
    assert "Open the window" in window.stdout


def test_an_installed_program_reports_that_all_its_parts_work(installed, tmp_path):
    ended = ask(installed / "mydata-like", "--self-test", home=tmp_path)

    told = [line.split()[:2] for line in ended.stdout.splitlines()]
    parts = [
        "program",
        "resources",
        "window",
        "tls",
        "keyring",
        "ssh",
        "tampering",
        "open",
        "s3",
        "upload",
    ]
    assert told == [["ok", part] for part in parts], ended.stdout
    assert ended.returncode == 0


def test_a_part_is_checked_alone_and_leaves_nothing(installed, tmp_path):
    ended = ask(installed / "mydata-like", "--self-test", "tampering", home=tmp_path)

    assert ended.stdout.startswith("ok        tampering  40 changed packets were refused")
    assert (ended.returncode, ended.stderr, list(tmp_path.iterdir())) == (0, "", [])


def test_a_part_that_is_broken_is_reported_with_the_reason(installed, tmp_path):
    icons = next(installed.parent.rglob("mydata_like/resources/icons"))
    away = icons.rename(icons.with_name("away"))

    try:
        ended = ask(installed / "mydata-like", "--self-test", "resources", home=tmp_path)
    finally:
        away.rename(icons)

    assert ended.returncode == 1
    assert "FAILED    resources  FileNotFoundError: 0 icons" in ended.stdout
