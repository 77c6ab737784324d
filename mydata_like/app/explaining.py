"""What the documentation says of a code: what happened, and what to do.

The words are those of docs/events.md and docs/troubleshooting.md, which come with the program.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import mydata_like

_CODE: Final = re.compile(r"`([a-z-]+\.[a-z-]+)`")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


class Explanation(NamedTuple):
    """What is known of a code: `meaning` is that of all codes of its row, in their order.

    `advice` is paragraphs, each without breaks of its lines.
    """

    codes: tuple[str, ...]
    meaning: str
    advice: tuple[str, ...]


@cache
def explain_codes() -> dict[str, Explanation]:
    """Return what is known of every code."""
    advice = dict(_read_advice(_find_page("troubleshooting.md").read_text(encoding="utf-8")))
    _, _, rows = _find_page("events.md").read_text(encoding="utf-8").partition("## Codes")
    known = {}
    for names, meaning in re.findall(r"^\| (`.+`) \| (.+) \|$", rows, re.MULTILINE):
        codes = tuple(_CODE.findall(names))
        for code in codes:
            paragraphs = advice.get(code.partition(".")[0], ())
            own = tuple(paragraph for paragraph in paragraphs if f"`{code}`" in paragraph)
            known[code] = Explanation(codes, _plain(meaning), own or paragraphs)
    return known


def _read_advice(page: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for heading, text in re.findall(r"^## (.+)\n\n((?:(?!## ).*\n?)+)", page, re.MULTILINE):
        parts = re.split(r"\n\n|\n(?=- )", text.strip())
        for family in heading.split(", "):
            yield family, tuple(" ".join(_plain(part).split()) for part in parts)


def _plain(text: str) -> str:
    """Return the text without links: the pages that they lead to are elsewhere."""
    return _LINK.sub(r"\1", text)


def _find_page(name: str) -> Path:
    """Return where a page is: with the program, or in the sources that it runs from."""
    package = Path(mydata_like.__file__).parent
    inside = package / "resources" / "docs" / name
    return inside if inside.is_file() else package.parent / "docs" / name
