"""What the documentation points at is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like.core.problems import PROBLEMS
from mydata_like.settings.mydata_cfg import WITHOUT_SETTING
from mydata_like.settings.schema import iter_settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The commands of `make pages` that print a page, and the page.
PRINTED = re.findall(r"python -m (.+) > (docs/\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))


@pytest.mark.parametrize(("page", "least"), [("faults", 25), ("architecture", 10)])
def test_every_test_that_a_page_names_exists(page, least):
    text = (ROOT / f"docs/{page}.md").read_text()
    named = set(re.findall(r"`((?:tests|unit|contract|flow|faults|e2e)/[\w/]+)`", text))

    missing = [name for name in named if not _is_there(name.removeprefix("tests/"))]

    assert len(named) > least
    assert missing == []


def test_the_migration_page_mentions_every_key_of_mydata():
    text = (ROOT / "docs/coming-from-mydata.md").read_text()
    told = {
        old: key
        for olds, key in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (?:`([\w.]+)`)? ?\|", text, re.M)
        for old in re.findall(r"`(\w+)`", olds)
    }

    settings = {old: entry.key for entry in iter_settings() for old in entry.about.legacy}
    assert told == settings | dict.fromkeys(WITHOUT_SETTING, "")


def test_the_page_of_troubles_has_a_place_for_every_family_of_codes():
    text = (ROOT / "docs/troubleshooting.md").read_text()
    headings = re.findall(r"^## (.+)$", text, re.M)

    assert {code.partition(".")[0] for code in PROBLEMS} == {
        family for heading in headings for family in heading.split(", ")
    }


def test_the_page_of_troubles_names_only_codes_that_there_are():
    text = (ROOT / "docs/troubleshooting.md").read_text()
    known = PROBLEMS.keys() | {setting.key for setting in iter_settings()}

    assert set(re.findall(r"`([a-z-]+\.[a-z-]+)`", text)) - known == set()


@pytest.mark.process
@pytest.mark.parametrize(("module", "page"), PRINTED)
def test_make_pages_prints_what_the_page_has(module, page):
    command = [sys.executable, "-m", *module.split()]
    printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)

    assert printed.stdout == (ROOT / page).read_text()


def _is_there(name: str) -> bool:
    path = ROOT / "tests" / name
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page):
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_each_decision_has_a_number_of_its_own():
    numbers = [re.match(r"(\d{4})-[a-z0-9-]+\.md$", path.name)[1] for path in DECISIONS]

    assert len(set(numbers)) == len(DECISIONS) > 30


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_every_decision_has_its_number_and_the_same_headings(page):
    text = page.read_text()

    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert re.findall(r"^## (.+)$", text, re.M) == [
        "Context",
        "Decision",
        "Alternatives",
        "Consequences",
    ]
