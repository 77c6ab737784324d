"""What docs/troubleshooting.md, which comes with the program, advises to do about a code."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import mydata_like

_PAGE: Final = "troubleshooting.md"
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def find_advice(code: str) -> tuple[str, ...]:
    """Return what to do: the paragraphs that name the code, or else all about its family.

    No paragraph contains line breaks.
    """
    paragraphs = _read_page().get(code.partition(".")[0], ())
    return tuple(text for text in paragraphs if f"`{code}`" in text) or paragraphs


@cache
def _read_page() -> dict[str, tuple[str, ...]]:
    return dict(_read_sections(_find_page().read_text(encoding="utf-8")))


def _read_sections(page: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for heading, text in re.findall(r"^## (.+)\n\n((?:(?!## ).*\n?)+)", page, re.MULTILINE):
        parts = re.split(r"\n\n|\n(?=- )", text.strip())
        for family in heading.split(", "):
            yield family, tuple(" ".join(_plain(part).split()) for part in parts)


def _plain(text: str) -> str:
    """Return the text without links: the pages that they lead to are elsewhere."""
    return _LINK.sub(r"\1", text)


def _find_page() -> Path:
    """Return where the page is: with the program, or in the sources that it runs from."""
    package = Path(mydata_like.__file__).parent
    inside = package / "resources" / "docs" / _PAGE
    return inside if inside.is_file() else package.parent / "docs" / _PAGE
