"""The package for Debian, unpacked into a folder, and the program in it: `make test-package`."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like import __version__
from tests.gui.xvfb import needs_screen, open_screen

DIST = Path(__file__).parents[2] / "dist"
PICTURE = DIST / "window.png"  # to be inspected by hand
SSHD = Path("/usr/sbin/sshd")
PATIENCE = 300

pytestmark = [
    pytest.mark.timeout(PATIENCE),
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("dpkg"), reason="needs dpkg"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The files that the package installs."""
    folder = tmp_path_factory.mktemp("root")
    (package,) = DIST.glob(f"mydata-like_{__version__}_*.deb")
    subprocess.run(["dpkg", "-x", package, folder], check=True)
    return folder


@pytest.fixture
def ask(root, tmp_path):
    """Run the program of the package as a user does, with a minimal environment."""

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

    assert {line.split()[0] for line in ended.stdout.splitlines()} == {"ok"}, ended.stdout
    assert ended.returncode == 0


def test_the_documentation_is_in_the_package(ask):
    page = Path(ask("help").stdout.strip())

    assert "search.html" in page.read_text()
    assert (page.parent / "images").is_dir()


@pytest.mark.skipif(not SSHD.exists(), reason="no sshd here")
def test_what_it_starts_finds_the_libraries_of_the_system(ask, tmp_path):
    sshd = tmp_path / "sshd"
    sshd.write_text(f'#!/bin/sh\necho "$LD_LIBRARY_PATH" > {tmp_path}/told\nexec {SSHD} "$@"\n')
    sshd.chmod(0o755)

    ended = ask("demo", "--json", LD_LIBRARY_PATH="/given", PATH=f"{tmp_path}:/usr/bin:/bin")

    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "told").read_text() == "/given\n"


@pytest.mark.skipif(not SSHD.exists(), reason="no sshd here")
def test_the_speed_test_names_the_slowest_part_for_each_kind_of_files(root, ask, tmp_path):
    config = tmp_path / "settings.toml"
    words = (root / "usr/bin/mydata-like", "demo", "--serve", "--write-config", config)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        next(line for line in server.stdout if line.startswith("Stop with"))
        register = ask("register", "--config", config)
        ended = ask("doctor", "--quick", "--json", "--config", config)
        server.terminate()

    assert register.returncode == 0, register.stderr
    assert ended.returncode == 0, ended.stderr
    kinds = json.loads(ended.stdout)["verdict"]["workloads"]
    assert len(kinds) > 1
    assert all(kind["limit"] for kind in kinds)


@needs_screen
def test_the_window_opens_on_a_screen_and_has_an_icon_in_the_tray(root, tmp_path):
    with open_screen() as screen:
        words = (root / "usr/bin/mydata-like", "demo", "--window")
        places = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
        with subprocess.Popen(words, env=places | screen.environment) as program:
            screen.until(lambda: screen.windows("^mydata-like"))
            screen.until(lambda: screen.tray_icons() == 1)
            screen.shoot(PICTURE)
            program.terminate()

    assert program.returncode in (0, -signal.SIGTERM)
    assert PICTURE.stat().st_size > 20_000  # bytes; a picture of an empty screen is far smaller


@pytest.mark.skipif(not SSHD.exists(), reason="no sshd here")
def test_every_process_takes_its_libraries_from_the_package(ask, tmp_path):
    # The loader's notes are of our processes: sshd forbids its own to open files.
    sshd = tmp_path / "sshd"
    sshd.write_text(f'#!/bin/sh\nunset LD_DEBUG LD_DEBUG_OUTPUT\nexec {SSHD} "$@"\n')
    sshd.chmod(0o755)
    notes = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "loaded")}

    ended = ask("--self-test", PATH=f"{tmp_path}:/usr/bin:/bin", **notes)

    assert ended.returncode == 0, ended.stdout
    loaded = "".join(file.read_text() for file in tmp_path.glob("loaded.*"))
    homes = re.findall(r"calling init: (\S+)/lib(?:sqlite3|ssl|Qt6Core)\.so", loaded)
    assert len(homes) > 10
    assert [home for home in homes if "/_internal" not in home] == []


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
