"""Every code is explained, in the words of the documentation."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydata_like.app.explaining import explain_codes
from mydata_like.cli.main import build_app

app = build_app()

CODES = (Path(__file__).parents[3] / "docs/events.md").read_text().split("## Codes")[1]


def test_every_code_of_the_list_has_a_meaning_and_an_advice():
    known = explain_codes()

    assert known.keys() == set(re.findall(r"`([a-z-]+\.[a-z-]+)`", CODES))
    assert [code for code, found in known.items() if not (found.meaning and found.advice)] == []


def test_an_explanation_is_read_without_the_pages_that_it_points_to():
    assert [code for code, found in explain_codes().items() if "](" in f"{found}"] == []


def test_the_command_tells_what_happened_and_what_to_do():
    ended = CliRunner().invoke(app, ["explain", "lock.failed"])

    assert ended.exit_code == 0
    assert "No lock can be made" in ended.output
    assert "must be on a local disk" in ended.output


@pytest.mark.parametrize(("code", "said"), [("stagin.full", "staging.full"), ("x", "The log")])
def test_a_code_that_there_is_not_is_said_with_those_that_are_like_it(code, said):
    ended = CliRunner().invoke(app, ["explain", code])

    assert ended.exit_code == 2
    assert said in ended.output
