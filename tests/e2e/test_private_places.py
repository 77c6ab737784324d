"""What the real command makes is its user's alone, whatever the umask and whatever was there."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like.ssh.keys import load_key
from mydata_like.state.paths import StatePaths
from tests.site import DEADLINE, QUICK, Site, make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

UMASKS = ("000", "077")


class Home:
    """A user's home, in which the command finds everything in its usual places."""

    def __init__(self, site: Site, umask: str) -> None:
        self.site = site
        self.folder = Path(os.environ["HOME"])
        self.places = StatePaths.standard()
        settings = site.place.settings()
        chosen = [
            f"{section}.{key}={value}"
            for section in ("server", "instrument", "data")
            for key, value in settings[section].items()
            if key != "uuid"  # the command makes one
        ]
        self.choices = [word for value in (*QUICK, *chosen) for word in ("--set", value)]
        self._shell = ("sh", "-c", f'umask {umask}; exec "$0" "$@"')

    def command(self, *words, stdin=""):
        """Carry out a command as its user would; return what it says."""
        ended = subprocess.run(
            [*self._shell, sys.executable, "-m", "mydata_like", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def modes(self):
        """The modes of all that the command has made, by path."""
        made = (path for path in self.folder.rglob("*") if path.name != "run")
        return {str(path.relative_to(self.folder)): path.lstat().st_mode for path in made}

    def open_to_others(self):
        """What is not 0700 (folders) or 0600 (all else)."""
        return {
            path: f"{stat.S_IMODE(mode):o}"
            for path, mode in self.modes().items()
            if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
        }


@pytest.fixture
def open_home(tmp_path):
    make_data(tmp_path / "site", tiny_files=4, large=100_000)
    with open_site(tmp_path / "site") as site:
        yield lambda umask: Home(site, umask)


def install(home):
    """Set everything up by the command, from the first setting to the key; then run."""
    key, trust = home.site.server.api_key, ("--accept-host-key", home.site.sshd.fingerprint)
    home.command("settings", "set", "data.layout", "Username / Dataset")
    home.command("settings", "set-key", "--store", "file", "--stdin", *home.choices, stdin=key)
    home.command("register", *home.choices, *trust)
    home.site.sshd.authorize(load_key(home.places.key_file).public)
    home.command("run", *home.choices, *trust)


@pytest.mark.parametrize("umask", UMASKS)
def test_all_that_is_made_is_private_whatever_the_umask(open_home, umask):
    home = open_home(umask)

    install(home)
    home.command("support-bundle", str(home.folder / "bundle.zip"))

    assert home.open_to_others() == {}
    names = {Path(path).name for path in home.modes()}
    assert {"settings.toml", "secrets.toml", "id_ed25519", "uploader-uuid"} <= names
    assert {"mydata-like.log", "bundle.zip"} <= names
    assert home.site.find_wrongs() == []


def test_what_others_could_use_is_corrected_and_reported_once(open_home):
    home = open_home("077")
    install(home)
    secrets = (home.places.key_file, home.places.secrets_file)
    for path in sorted(home.folder.rglob("*")):
        if path not in secrets and path.name != "run":
            path.chmod(0o777 if path.is_dir() else 0o666)
    chosen = home.folder.stat().st_mode

    first, second = (home.command("run", *home.choices) for _ in range(2))

    assert "could read or change" in first
    assert "could read or change" not in second
    ours = (home.places.state, home.places.logs, home.places.config_file.parent)
    open_ones = home.open_to_others()
    assert [
        path
        for path in open_ones
        if any(home.folder / path in (one, *one.rglob("*")) for one in ours)
    ] == []
    assert home.folder.stat().st_mode == chosen
