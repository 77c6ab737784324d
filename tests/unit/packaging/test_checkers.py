"""What the checkers of the system say of what packages hand to the system."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mydata_like.hostos.service import ServiceCommand, ServiceFolders, define_service

pytestmark = pytest.mark.process

LINUX = Path(__file__).parents[3] / "packaging" / "linux"
PLACES = ServiceFolders(*map(PurePosixPath, ("/home/ann", "/home/ann/.config", "/state")))
ERRAND = ServiceCommand(
    words=(sys.executable, "watch", "--config", '/etc/my "own" 100%.toml'),
    environment={"MYDATA_LIKE_HOME": "/srv/100% mine"},
    uid=1000,
)


def check(folder, *words):
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"XDG_RUNTIME_DIR": str(folder)},
    )


@pytest.mark.parametrize(
    "unit",
    [
        (LINUX / "mydata-like.service").read_text().replace("/usr/bin/mydata-like", sys.executable),
        define_service("linux", ERRAND, PLACES).content.decode(),
    ],
    ids=["packaged", "made"],
)
def test_systemd_takes_the_service(unit, tmp_path):
    file = tmp_path / "mydata-like.service"
    file.write_text(unit)

    checked = check(tmp_path, "systemd-analyze", "verify", "--user", "--man=no", str(file))

    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("as_root", [False, True], ids=["account", "root"])
def test_systemd_calls_a_service_of_the_whole_computer_confined(tmp_path, as_root):
    errand = replace(
        ERRAND, account="daemon", everyone=True, as_root=as_root, writable=('/srv/100% "mine"',)
    )
    file = tmp_path / "mydata-like.service"
    file.write_bytes(define_service("linux", errand, PLACES).content)

    verified = check(tmp_path, "systemd-analyze", "verify", "--man=no", str(file))
    judged = check(
        tmp_path, "systemd-analyze", "security", "--offline=true", "--threshold=25", str(file)
    )

    assert (verified.returncode, verified.stderr) == (0, "")
    assert judged.returncode == 0, judged.stdout[-200:]  # above 2.5 of 10 it fails


@pytest.mark.parametrize("entry", ["mydata-like", "mydata-like-autostart"])
def test_desktops_take_the_entry(entry, tmp_path):
    checked = check(tmp_path, "desktop-file-validate", str(LINUX / f"{entry}.desktop"))

    assert (checked.returncode, checked.stdout) == (0, "")


def test_software_centres_take_the_description(tmp_path):
    file = LINUX / "org.mydata_like.mydata_like.metainfo.xml"

    checked = check(tmp_path, "appstreamcli", "validate", "--no-net", str(file))

    assert checked.returncode == 0, checked.stdout


def test_man_takes_the_page(tmp_path):
    words = ("man", "--warnings", "--encoding=UTF-8", "--local-file", "--pager=cat")

    checked = check(tmp_path, *words, str(LINUX / "mydata-like.1"))

    assert (checked.returncode, checked.stderr) == (0, "")
    assert "EXIT STATUS" in checked.stdout
