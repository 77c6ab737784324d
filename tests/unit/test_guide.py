"""The guide for researchers: its pictures exist, its links lead somewhere, no page is forgotten."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = sorted((ROOT / "docs" / "user").glob("*.md"))


@pytest.mark.parametrize("file", [ROOT / "README.md", *GUIDE], ids=lambda file: file.name)
def test_every_picture_and_page_that_is_named_exists(file):
    text = file.read_text()
    named = re.findall(r'(?:src|srcset)="([^"]+)"|\]\(([^)#]+)', text)
    local = [one or other for one, other in named if "://" not in (one or other)]

    assert [name for name in local if not (file.parent / name).exists()] == []


def test_every_image_has_an_accessible_text():
    for file in GUIDE:
        for image in re.findall(r"<img [^>]*>", file.read_text()):
            assert re.search(r'alt="[^"]{15,}"', image), (file.name, image)


@pytest.mark.parametrize(
    "title",
    ["Overview", "Folders", "Transfers", "Problems", "Where is my data?", "History", "Log"],
)
def test_the_guide_names_every_page_of_the_window(title):
    assert any(f"**{title}**" in file.read_text() for file in GUIDE)
