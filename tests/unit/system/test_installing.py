"""Definitions put into their place, with real files and real commands."""

import sys
from dataclasses import replace

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.system.installing import carry_out, remove_definition, write_definition
from mydata_like.system.service import MARK, Definition


@pytest.fixture
def definition(tmp_path):
    file = tmp_path / "a" / "b" / "mydata-like.service"
    return Definition(file=file, content=f"# {MARK}\n".encode(), install=(), uninstall=())


def test_a_definition_is_written_replaced_and_removed(definition):
    write_definition(definition)
    write_definition(replace(definition, content=f"# {MARK}, again\n".encode()))

    assert definition.file.read_text() == f"# {MARK}, again\n"
    assert remove_definition(definition)
    assert not remove_definition(definition)
    assert not list(definition.file.parent.iterdir())


@pytest.mark.parametrize("act", [write_definition, remove_definition])
def test_a_file_of_somebody_else_is_left_alone(definition, act):
    definition.file.parent.mkdir(parents=True)
    definition.file.write_text("[Unit]\n")

    with pytest.raises(SettingsError, match="was not made by this program"):
        act(definition)
    assert definition.file.read_text() == "[Unit]\n"


def test_a_file_in_utf_16_is_known_again(definition):
    write_definition(replace(definition, content=f"<!-- {MARK} -->".encode("utf-16")))

    assert remove_definition(definition)


def test_a_place_that_cannot_be_written_is_told(definition):
    definition.file.parent.parent.write_text("no folder")

    with pytest.raises(SettingsError, match="cannot be written"):
        write_definition(definition)


def test_commands_end_at_the_first_that_does_not_work():
    good = (sys.executable, "-c", "")
    bad = (sys.executable, "-c", "import sys; sys.exit('no bus here')")
    never = ("mydata-like-knows-no-such-command",)

    outcomes = list(carry_out([good, bad, good]))
    assert [outcome.problem for outcome in outcomes] == ["", "no bus here"]
    assert "there is no" in next(carry_out([never])).problem
