"""What packages for Linux, winget and Chocolatey consist of besides the program."""

import hashlib
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mydata_like import __version__

PACKAGING = Path(__file__).parents[3] / "packaging"

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform == "win32", reason="scripts of Linux"),
]


def run(script, *words, home):
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    command = ["sh", script, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment)


@pytest.fixture
def unpacked(tmp_path):
    """A tarball's folder with a name that a desktop file must quote."""
    folder = tmp_path / 'my $pro`gram" 100%'
    (folder / "share/icons/hicolor/16x16/apps").mkdir(parents=True)
    (folder / "share/icons/hicolor/16x16/apps/mydata-like.png").touch()
    (folder / "share/applications").mkdir()
    for source, target in (
        ("install.sh", "install.sh"),
        ("mydata-like.desktop", "share/applications/mydata-like.desktop"),
    ):
        (folder / target).write_bytes((PACKAGING / "linux" / source).read_bytes())
    program = folder / "mydata-like"
    program.write_text("#!/bin/sh\necho started\n")
    program.chmod(0o755)
    return folder


def test_a_tarball_puts_the_program_on_the_path_and_into_the_menu(unpacked, tmp_path):
    run(unpacked / "install.sh", home=tmp_path)

    link = tmp_path / ".local/bin/mydata-like"
    assert subprocess.run([link], capture_output=True).stdout == b"started\n"
    entry = (tmp_path / ".local/share/applications/mydata-like.desktop").read_text()
    (line,) = [line for line in entry.splitlines() if line.startswith("Exec=")]
    quoted = str(unpacked).replace("$", r"\\$").replace("`", r"\\`").replace('"', r'\\"')
    assert line == f'Exec="{quoted.replace("%", "%%")}/mydata-like" gui %F'


def test_a_program_that_does_not_start_is_not_installed(unpacked, tmp_path):
    (unpacked / "mydata-like").write_text("#!/bin/sh\necho libexpat.so.1: missing >&2\nexit 255\n")

    with pytest.raises(subprocess.CalledProcessError) as ended:
        run(unpacked / "install.sh", home=tmp_path)

    assert "glibc 2.34 or newer and libexpat" in ended.value.stderr
    assert not (tmp_path / ".local").exists()


def test_what_a_tarball_has_installed_can_be_removed(unpacked, tmp_path):
    run(unpacked / "install.sh", home=tmp_path)
    run(unpacked / "install.sh", "--remove", home=tmp_path)

    left = [path for path in (tmp_path / ".local").rglob("*") if not path.is_dir()]
    assert left == []
    assert (unpacked / "mydata-like").exists()


@pytest.mark.parametrize(("word", "found"), [("remove", True), ("0", True), ("upgrade", False)])
def test_removal_names_the_services_that_stay(tmp_path, word, found):
    folder = tmp_path / "ann" / ".config/systemd/user"
    folder.mkdir(parents=True)
    (folder / "mydata-like.service").touch()
    accounts = tmp_path / "bin"
    accounts.mkdir()
    (accounts / "getent").write_text(f"#!/bin/sh\necho ann:x:1000:1000::{tmp_path}/ann:/bin/sh\n")
    (accounts / "getent").chmod(0o755)

    ended = subprocess.run(
        ["sh", PACKAGING / "linux" / "before_removal.sh", word],
        capture_output=True,
        text=True,
        env={"PATH": f"{accounts}:/usr/bin:/bin"},
    )

    assert ended.returncode == 0
    assert (str(folder) in ended.stderr) is found


def test_the_hash_of_a_version_is_that_of_the_loader():
    """The values are those that `readelf -x .gnu.version_r` shows in libraries of Debian."""
    tools = runpy.run_path(str(PACKAGING / "linux" / "glibc.py"))

    assert tools["hash_name"]("GLIBC_2.2.5") == (0x09691A75).to_bytes(4, "little")
    assert tools["hash_name"]("GLIBC_2.34") == (0x069691B4).to_bytes(4, "little")


def test_winget_and_chocolatey_get_the_checksum_of_the_installer(tmp_path):
    installer = tmp_path / f"mydata-like-{__version__}-setup.exe"
    installer.write_bytes(b"MZ")

    runpy.run_path(str(PACKAGING / "windows" / "manifests.py"))["write_manifests"](tmp_path)

    checksum = hashlib.sha256(b"MZ").hexdigest().upper()
    manifests = [yaml.safe_load(file.read_text()) for file in (tmp_path / "winget").iterdir()]
    assert {one["PackageVersion"] for one in manifests} == {__version__}
    (installers,) = [one["Installers"] for one in manifests if "Installers" in one]
    assert [one["Scope"] for one in installers] == ["user", "machine"]
    for one in installers:
        assert one["InstallerSha256"] == checksum
        assert one["InstallerUrl"].endswith(f"/v{__version__}/{installer.name}")
    script = (tmp_path / "chocolatey/tools/chocolateyinstall.ps1").read_text()
    assert checksum in script
    assert "{{" not in script
