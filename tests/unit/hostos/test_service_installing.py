"""Definitions put into their place, with real files and real commands."""

import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.hostos.service import (
    MARK,
    ServiceDefinition,
    make_folders_as,
    remove_definition,
    run_commands,
    write_definition,
)
from tests.privileges import IS_ROOT
from tests.umasks import modes_below, umask


@pytest.fixture
def definition(tmp_path):
    file = tmp_path / "a" / "b" / "mydata-like.service"
    return ServiceDefinition(file=file, content=f"# {MARK}\n".encode(), install=(), uninstall=())


def test_a_definition_is_written_replaced_and_removed(definition):
    write_definition(definition)
    write_definition(replace(definition, content=f"# {MARK}, again\n".encode()))

    assert definition.file.read_text() == f"# {MARK}, again\n"
    remove_definition(definition)
    remove_definition(definition)
    assert not list(definition.file.parent.iterdir())


@pytest.mark.parametrize("act", [write_definition, remove_definition])
def test_a_file_of_another_owner_is_left_alone(definition, act):
    definition.file.parent.mkdir(parents=True)
    definition.file.write_text("[Unit]\n")

    with pytest.raises(SettingsError, match="was not created by this program"):
        act(definition)
    assert definition.file.read_text() == "[Unit]\n"


def test_a_file_in_utf_16_is_known_again(definition):
    write_definition(replace(definition, content=f"<!-- {MARK} -->".encode("utf-16")))

    remove_definition(definition)


def test_a_place_that_cannot_be_written_is_reported(definition):
    definition.file.parent.parent.write_text("no folder")

    with pytest.raises(SettingsError, match="cannot be written"):
        write_definition(definition)


@pytest.mark.process
def test_commands_end_at_the_first_that_does_not_work():
    good = (sys.executable, "-c", "")
    bad = (sys.executable, "-c", "import sys; sys.exit('no bus here')")
    never = ("mydata-like-knows-no-such-command",)

    outcomes = list(run_commands([good, bad, good]))
    assert [outcome.problem for outcome in outcomes] == ["", "no bus here"]
    assert "was not found" in next(run_commands([never])).problem


@pytest.mark.process
@pytest.mark.skipif(not IS_ROOT, reason="needs root")
class TestFoldersOfAnotherAccount:
    @pytest.fixture
    def home(self, tmp_path_factory):
        import pwd

        account = pwd.getpwnam("daemon")
        home = Path(tempfile.mkdtemp(prefix="mydata-like-home-"))  # where others may look
        os.chown(home, account.pw_uid, account.pw_gid)
        yield home
        shutil.rmtree(home)

    def test_they_are_its_own_and_private(self, home):
        with umask(0o000):
            make_folders_as("daemon", [home / "a" / "b", home / "c"])

        made = [home / "a", home / "a" / "b", home / "c"]
        assert {path.owner() for path in made} == {"daemon"}
        assert set(modes_below(home).values()) == {"drwx------"}

    def test_the_rights_of_root_are_not_used(self, home, tmp_path):
        tmp_path.chmod(0o700)
        (home / ".local").symlink_to(tmp_path)

        with pytest.raises(SettingsError, match="The account daemon cannot create"):
            make_folders_as("daemon", [home / ".local" / "state"])

        assert list(tmp_path.iterdir()) == []
