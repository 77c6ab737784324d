"""Patterns for paths: what they mean, and that no pattern makes them slow."""

import re
import shutil
import subprocess
import time
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from mydata_like.core.patterns import LONGEST, PathPatterns


class Reference(GitIgnoreSpecPattern):
    """What pathspec takes a pattern for, but with brackets that match no `/`, as git has it."""

    @classmethod
    def pattern_to_regex(cls, pattern):
        regex, include = super().pattern_to_regex(pattern)
        return regex and re.sub(r"\\.|\[\^?\]?[^]]*\]", _restrict, regex), include


def _restrict(found):
    """Return brackets that match no `/`; a `[^` in brackets is content, as in `[A-[^b]`."""
    text = found[0]
    return f"(?!/){text}" if text.startswith("[^") and text != "[^/]" else text


def build_reference(lines):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return GitIgnoreSpec.from_lines(lines, Reference)


ATOMS = ("a", "b", "A", ".", "*", "**", "?", "/", "[ab]", "[!a]", "[^b]", "[a-b]", "[]a]", "[!]a]")
ODD = ("[", "]", "[!", "\\", "\\*", "\\[", "!", "#", "-", " ", "[[]", "[b-a]", "é")
PATTERN = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=8).map("".join)
ODD_PATTERN = st.lists(st.sampled_from(ATOMS + ODD), max_size=8).map("".join)
NAME = st.text(st.sampled_from("abA.]é*"), min_size=1, max_size=5)
NAME = NAME.filter(lambda name: name != ".")  # no path has such a component
PATH = st.lists(NAME, min_size=1, max_size=5).map("/".join)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), PATTERN | ODD_PATTERN), max_size=4),
    st.lists(PATH, min_size=1, max_size=8),
)
@example([(False, "a/**/b/**/a"), (True, "a/")], ["a/b/a", "a/b/b/a/a", "a/a/b/b/a/b"])
@example([(False, "[A-[^b]")], ["A", "Z", "^", "b", "a", "c"])
@example([(False, "**"), (True, "**/"), (False, "*/")], ["a", "a/a", "b/a/a"])
def test_patterns_mean_what_they_mean_to_git(given_lines, paths):
    lines = ["!" * negated + pattern for negated, pattern in given_lines]
    try:
        reference = build_reference(lines)
    except (ValueError, re.error):
        with pytest.raises(ValueError, match=r".+"):
            PathPatterns(lines)
        return

    patterns = PathPatterns(lines)

    assert {path: patterns.match(path) for path in paths} == {
        path: reference.match_file(path) for path in paths
    }
    assert patterns.takes_some == any(part.include for part in reference.patterns)


@pytest.mark.process
@pytest.mark.parametrize(
    ("pattern", "path", "taken"),
    [
        ("a[!b]c", "a/c", False),
        ("a[+-9]c", "a/c", False),
        ("*.tmp", "x.tmp\n", False),
        ("*.tmp", "a\nb/x.tmp", True),
        ("a*b", "a\nb", True),
        ("a/**/b", "a/x\ny/b", True),
        ("**", "\n", True),
    ],
)
def test_slashes_and_line_breaks_in_names_are_seen_as_git_sees_them(tmp_path, pattern, path, taken):
    assert PathPatterns([pattern]).match(path) is taken

    if shutil.which("git") is None:
        return
    (tmp_path / "patterns").write_text(pattern + "\n")
    git = ["git", "-c", f"core.excludesFile={tmp_path / 'patterns'}", "check-ignore"]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    said = subprocess.run(
        [*git, "--no-index", "-z", "--stdin"],
        cwd=tmp_path,
        input=path.encode() + b"\0",
        capture_output=True,
        check=False,
    )
    assert (said.returncode == 0) is taken, said.stderr


HOSTILE = (
    "*a*a*a*a*a*ab",
    "*a" * 120 + "b",
    "**/" * 60 + "b",
    "**/a" * 60 + "/b",
    "a/**/" * 60 + "b",
    "/" + "*/" * 60 + "b",
    "*" * 500 + "b",
    "*[!b]" * 100 + "b",
    "*?" * 100 + "b",
    "*" + "a" * 120 + "*b",
)


@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize("path", ["a" * 250, "a/" * 125 + "a", ("a" * 250 + "/") * 16])
def test_no_pattern_takes_long(pattern, path):
    patterns = PathPatterns([pattern, "!" + pattern, pattern])
    before = time.process_time()

    assert not patterns.match(path)

    assert time.process_time() - before < 0.5


def test_a_pattern_without_an_end_is_refused():
    with pytest.raises(ValueError, match=f"more than {LONGEST} characters"):
        PathPatterns(["a" * (LONGEST + 1)])
