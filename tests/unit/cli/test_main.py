"""The commands are imported when they are wanted, and look as if all were there."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mydata_like.cli.main import Commands, build_app
from mydata_like.cli.settings_command import SettingsCommands


def invoke(*words):
    return CliRunner().invoke(build_app(), words, env={"COLUMNS": "200", "NO_COLOR": "1"})


@pytest.mark.parametrize(
    ("words", "names"),
    [([], [*Commands.lazy_commands]), (["settings"], [*SettingsCommands.lazy_commands])],
    ids=["all", "settings"],
)
def test_help_names_the_commands_that_are_imported_late(words, names):
    result = invoke(*words, "--help")
    shown = re.findall(r"^│ ([a-z-]+)  ", result.output, re.M)

    assert result.exit_code == 0
    assert [name for name in shown if name in names] == names


@pytest.mark.parametrize(
    ("words", "meant"), [(["statsu"], "status"), (["settings", "fetc"], "fetch")]
)
def test_a_wrong_name_suggests_a_command_that_was_not_imported(words, meant):
    result = invoke(*words)

    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.output


@pytest.mark.process
def test_a_reader_that_has_gone_ends_the_command_quietly(tmp_path):
    words = ("run", "--json", "--config", str(tmp_path / "none.toml"))
    process = subprocess.Popen(
        [sys.executable, "-m", "mydata_like", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()

    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(60) == 1
