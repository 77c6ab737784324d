"""The words that add sources on the command line."""

import pytest
from typer.testing import CliRunner

from mydata_like.cli.main import build_app

app = build_app()


def run(*words):
    return CliRunner().invoke(app, ["run", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--as", "Mice/Day 1"), "--as goes with every --source"),
        (("--source", "a", "--source", "b", "--as", "Mice/Day 1"), "--as goes with every"),
        (("--source", "a", "--as", "Mice"), "Write EXPERIMENT/DATASET"),
        (("--source", "a", "--as", "/Mice/ "), "name of the dataset: it is empty"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words, said):
    ended = run(*words)

    assert ended.exit_code == 2
    assert said in " ".join(ended.output.replace("│", " ").split())
