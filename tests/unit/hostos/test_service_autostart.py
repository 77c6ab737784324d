"""The start at a login: the entry's words, and what happens to other people's entries."""

import configparser
import plistlib
from pathlib import Path

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.hostos.service import ServiceFolders, find_autostart

WORDS = ("/opt/my data/100%/mydata-like", "gui")


@pytest.fixture
def folders(tmp_path):
    return ServiceFolders(tmp_path, tmp_path / ".config", tmp_path / "state")


def test_an_entry_is_made_and_removed(folders):
    entry = find_autostart("linux", WORDS, folders)

    entry.turn(on=True)
    assert Path(entry.place).exists()
    entry.turn(on=False)
    assert not list((folders.configuration / "autostart").iterdir())


def test_removing_what_is_not_there_does_nothing(folders):
    find_autostart("linux", WORDS, folders).turn(on=False)

    assert not folders.configuration.exists()


def test_a_desktop_file_starts_the_very_words(folders):
    find_autostart("linux", WORDS, folders).turn(on=True)
    file = configparser.RawConfigParser()
    file.read(folders.configuration / "autostart" / "mydata-like.desktop")

    assert file["Desktop Entry"]["Type"] == "Application"
    assert file["Desktop Entry"]["Exec"] == '"/opt/my data/100%%/mydata-like" "gui"'


def test_an_agent_starts_the_very_words(folders):
    find_autostart("darwin", WORDS, folders).turn(on=True)
    (file,) = (folders.home / "Library" / "LaunchAgents").iterdir()
    agent = plistlib.loads(file.read_bytes())

    assert agent["ProgramArguments"] == list(WORDS)
    assert agent["RunAtLoad"]


@pytest.mark.parametrize("on", [True, False])
def test_an_entry_of_another_owner_is_left_alone(folders, on):
    file = Path(folders.configuration / "autostart" / "mydata-like.desktop")
    file.parent.mkdir(parents=True)
    file.write_text("[Desktop Entry]\nExec=other\n")

    with pytest.raises(SettingsError, match="was not created by this program"):
        find_autostart("linux", WORDS, folders).turn(on=on)
    assert file.read_text() == "[Desktop Entry]\nExec=other\n"
