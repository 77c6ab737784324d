import stat
import sys
from pathlib import Path

import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import make_private_folder
from mydata_like.state.paths import StatePaths, is_protected
from tests.umasks import posix_modes


@pytest.mark.parametrize(
    ("system", "config", "state"),
    [
        (Unix, ".config/mydata-like", ".local/state/mydata-like"),
        (
            MacOS,
            "Library/Application Support/mydata-like",
            "Library/Application Support/mydata-like",
        ),
    ],
    ids=["Linux", "macOS"],
)
def test_each_system_has_its_own_places(system, config, state, monkeypatch):
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    places = StatePaths.on(system("mydata-like", appauthor=False))

    assert places.config_file == Path.home() / config / "settings.toml"
    assert places.secrets_file == Path.home() / config / "secrets.toml"
    assert places.state == Path.home() / state
    assert places.managed_file.name == "managed.toml"


VARIABLES = (
    "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
    "WIN_PD_OVERRIDE_COMMON_APPDATA",
    "PROGRAMDATA",
    "ALLUSERSPROFILE",
)


def test_no_variable_moves_the_managed_file(monkeypatch, tmp_path):
    place = StatePaths.standard().managed_file
    for name in VARIABLES:
        monkeypatch.setenv(name, str(tmp_path))

    assert StatePaths.standard().managed_file == place
    assert sys.platform != "linux" or place == Path("/etc/xdg/mydata-like/managed.toml")


def test_all_files_but_the_managed_one_go_below_a_folder(tmp_path):
    places = StatePaths.below(tmp_path)

    own = (places.config_file, places.secrets_file, places.key_file, places.known_hosts)
    assert all(path.is_relative_to(tmp_path) for path in (*own, places.state, places.logs))
    assert places.managed_file == StatePaths.standard().managed_file


@posix_modes
def test_folders_are_made_for_the_owner_only(tmp_path):
    places = StatePaths.below(tmp_path / "a" / "b")

    places.make_private(places.state)
    places.make_private(places.state)

    folders = [entry for entry in tmp_path.rglob("*") if entry.is_dir()]
    assert {entry.name for entry in folders} == {"a", "b", "ssh", "state", "logs"}
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in folders} == {0o700}


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(SettingsError, match="cannot be created"):
        make_private_folder(tmp_path / "file" / "state")
    with pytest.raises(SettingsError, match="cannot be created"):
        make_private_folder(tmp_path / "file")


@posix_modes
def test_a_file_that_others_can_change_is_not_protected(tmp_path):
    managed = tmp_path / "managed.toml"
    managed.touch(mode=0o666)
    managed.chmod(0o666)

    assert not is_protected(managed)
