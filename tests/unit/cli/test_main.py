"""The commands are imported when they are wanted, and look as if all were there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mydata_like
from mydata_like.cli.main import Commands, build_app
from mydata_like.cli.settings_command import SettingsCommands

posix = pytest.mark.skipif(os.name == "nt", reason="the browsers are shell scripts")


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


@pytest.fixture
def ask_for_help(tmp_path):
    """Run the command of an installation whose browsers note what they open."""
    (tmp_path / "mydata_like").symlink_to(Path(mydata_like.__file__).parent)
    for name in ("www-browser", "xdg-open"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/opened\n')
        (tmp_path / name).chmod(0o755)

    def ask(**environment):
        kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        return subprocess.run(
            [sys.executable, "-m", "mydata_like", "help"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=kept | {"PATH": f"{tmp_path}:{os.defpath}"} | environment,
        )

    return ask


@pytest.fixture
def page(tmp_path):
    page = tmp_path / "resources" / "site" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("Welcome")
    return page


@posix
@pytest.mark.process
def test_the_documentation_opens_in_the_browser(ask_for_help, page, tmp_path):
    ended = ask_for_help(BROWSER=str(tmp_path / "www-browser"))

    assert (ended.stdout, ended.returncode) == (f"{page}\n", 0)
    assert (tmp_path / "opened").read_text() == f"{page.as_uri()}\n"


@posix
@pytest.mark.process
def test_without_a_desktop_only_the_place_of_the_documentation_is_printed(
    ask_for_help, page, tmp_path
):
    ended = ask_for_help(TERM="xterm")

    assert (ended.stdout, ended.returncode) == (f"{page}\n", 0)
    assert not (tmp_path / "opened").exists()


@posix
@pytest.mark.process
def test_an_installation_without_documentation_says_how_to_get_it(ask_for_help):
    ended = ask_for_help()

    assert (ended.stdout, ended.returncode) == ("", 1)
    assert "make docs" in ended.stderr


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
