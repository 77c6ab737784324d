"""Every code is explained, in the words of the documentation."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydata_like.app.support_bundle import find_advice
from mydata_like.cli.main import build_app
from mydata_like.core.problems import PROBLEMS

app = build_app()


def test_there_is_advice_for_every_code():
    assert [code for code in PROBLEMS if not find_advice(code)] == []


def test_advice_is_read_without_the_pages_that_it_points_to():
    assert [code for code in PROBLEMS if "](" in "".join(find_advice(code))] == []


def test_the_command_reports_what_happened_and_what_to_do():
    ended = CliRunner().invoke(app, ["explain", "lock.failed"])

    assert ended.exit_code == 0
    assert "The lock file cannot be created" in ended.output
    assert "must be on a local disk" in " ".join(ended.output.split())


@pytest.mark.parametrize(("code", "said"), [("stagin.full", "staging.full"), ("x", "The log")])
def test_a_code_that_there_is_not_is_said_with_those_that_are_like_it(code, said):
    ended = CliRunner().invoke(app, ["explain", code])

    assert ended.exit_code == 2
    assert said in ended.output


def test_the_advice_about_a_changed_host_key_is_that_of_the_page_about_ssh():
    page = (Path(__file__).parents[3] / "docs" / "ssh.md").read_text(encoding="utf-8")
    section = " ".join(
        page.partition("## When a host key changes")[2].partition("\n## ")[0].split()
    )

    (advice,) = find_advice("host-key.changed")

    assert "host-key.unknown" not in advice
    for named in (
        *("register --accept-host-key SHA256:...", "wizard, which shows both"),
        *("whoever pinned the old", "`transfer.host_keys`", "`host_keys`"),
        *("`mydata-like settings forget-host HOST`", "`HOST:PORT`"),
    ):
        assert [named in section, named in advice] == [True, True], named
