"""Comments on work-arounds name a version, a report or a test, and when they can go."""

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("mydata_like", "packaging", "benchmarks", "tests")
ANY_SPELLING = re.compile(r"work[- ]?around", re.IGNORECASE)
BEGIN = re.compile(r"Work-around: [A-Za-z][\w.+-]* v?\d+(?:\.\d+)*\b \S")
LINK = re.compile(r"https://\S+")
TEST = re.compile(r"No report known; see (test_\w+)")
END = re.compile(r"\. Remove when [^.]*(?:\.\w[^.]*)*\.$")
GOOD = (
    "# Work-around: paramiko 5.1.0 waits without limit.\n"
    "# https://example.org/issues/1\n"
    "# Remove when that is fixed.\n"
)


def read_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments, adjacent lines as one: the number of the first line, and the text."""
    begin, column, block = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, place = token.start
        alone = not token.line[:place].strip()
        words = token.string.lstrip("#").strip()
        if block and alone and (line, place) == (begin + len(block), column):
            block.append(words)
            continue
        if block:
            yield begin, " ".join(block)
        begin, column, block = line, place if alone else -1, [words]
    if block:
        yield begin, " ".join(block)


@cache
def list_tests() -> frozenset[str]:
    files = (ROOT / "tests").rglob("test_*.py")
    return frozenset(
        name for file in files for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    )


def find_faults(comment: str) -> Iterator[str]:
    """Yield what a comment on a work-around lacks."""
    if not BEGIN.match(comment):
        yield "does not begin with `Work-around: PRODUCT VERSION ...`"
    test = TEST.search(comment)
    if not (LINK.search(comment) or test):
        yield "has neither a link nor `No report known; see test_...`"
    if test and test[1] not in list_tests():
        yield f"names the unknown test {test[1]}"
    # A link may end without a full stop, which would become a part of it.
    if not END.search(LINK.sub(".", comment)):
        yield "does not end with `Remove when ...`"


def find_wrong_comments(text: str) -> list[str]:
    return [
        f"{line}: {fault}"
        for line, comment in read_blocks(text)
        if ANY_SPELLING.search(comment)
        for fault in find_faults(comment)
    ]


@pytest.mark.parametrize("folder", SOURCES)
def test_work_arounds_can_be_checked_and_removed(folder):
    wrong = {
        str(file.relative_to(ROOT)): found
        for file in sorted((ROOT / folder).rglob("*.py"))
        if not file.is_relative_to(ROOT / "packaging" / "build")  # what builds leave
        if file.name != Path(__file__).name
        and ANY_SPELLING.search(text := file.read_text("utf-8"))
        and (found := find_wrong_comments(text))
    }

    assert wrong == {}, "docs/contributing.md describes the form"


def test_a_complete_comment_has_no_faults():
    assert find_wrong_comments(GOOD) == []


@pytest.mark.parametrize(
    ("complete", "lacking", "fault"),
    [
        ("Work-around: paramiko", "A workaround: paramiko", "1: does not begin"),
        (" 5.1.0", "", "1: does not begin"),
        ("https://example.org/issues/1", "Nobody knows.", "1: has neither"),
        ("https://example.org/issues/1", "No report known; see test_of_nothing.", "1: names"),
        ("# Remove when that is fixed.\n", "", "1: does not end"),
        ("# Remove when", "x = 1  # Remove when", "1: does not end"),
    ],
)
def test_an_incomplete_comment_is_found(complete, lacking, fault):
    (found,) = find_wrong_comments(GOOD.replace(complete, lacking))

    assert found.startswith(fault)
