"""The usual words of `run` mean the same with and without the library that knows all words."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from mydata_like.cli.main import build_app
from mydata_like.cli.output import Shape
from mydata_like.cli.running import RunArguments
from mydata_like.cli.words import SHAPES, WITH_VALUE, read_words

app = build_app()

FILE = Path("settings.toml")


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ("", RunArguments(None, (), Shape.TEXT)),
        ("--json", RunArguments(None, (), Shape.JSON)),
        ("--events", RunArguments(None, (), Shape.EVENTS)),
        ("--brief --events", RunArguments(None, (), Shape.BRIEF)),
        ("--config settings.toml --json", RunArguments(FILE, (), Shape.JSON)),
        ("--config other.toml --config settings.toml", RunArguments(FILE, (), Shape.TEXT)),
        (
            "--set server.requests=2 --set data.layout=Dataset",
            RunArguments(None, ("server.requests=2", "data.layout=Dataset"), Shape.TEXT),
        ),
    ],
)
def test_the_usual_words_are_read(words, task):
    assert read_words(words.split()) == task


@pytest.mark.parametrize(
    "words",
    [
        *("--help", "-h", "folder", "--jsn", "--config", "--config --json", "--config=a.toml"),
        *("--brief", "--json --events", "--only a", "--source a", "--shard 1/2", "--", "-"),
        "--accept-host-key SHA256:a",
    ],
)
def test_all_other_words_are_left_to_who_knows_them_all(words):
    assert read_words(words.split()) is None


def test_an_empty_value_is_left_to_who_knows_all_words():
    assert read_words(["--config", ""]) is None


def test_every_usual_word_is_an_option_of_the_command():
    options = typer.main.get_command(app).commands["run"].params
    flags = {word for option in options if option.is_flag for word in option.opts}
    with_value = {word for option in options if not option.is_flag for word in option.opts}

    assert set().union(*SHAPES) <= flags
    assert set(WITH_VALUE) <= with_value


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
