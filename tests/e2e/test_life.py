"""The whole life of an installation, as the documentation shows it."""

from pathlib import Path

import pytest

from tests import life
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

PAGE = Path(__file__).parents[2] / "docs" / "life.md"


def commands(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("$ ")]


def test_the_life_that_the_documentation_shows_can_be_lived():
    lived = life.live()

    assert commands(lived) == commands(PAGE.read_text(encoding="utf-8"))
