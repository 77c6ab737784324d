r"""Patterns for paths as in a .gitignore file, matched in linear time.

The syntax is that of https://git-scm.com/docs/gitignore, for paths of files: `*`, `?`, `[a-z]`,
`[!a-z]`, `\` to escape a character, `**` for any number of folders, and a leading `!` to negate.
The time of a backtracking expression grows with the name's length to the power of the number of
wildcards. Here, the text between two wildcards is matched at its leftmost position, which is never
reconsidered. This loses no match, and the time is at most proportional to the length of the path
times the length of the pattern.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

LONGEST: Final = 1000  # characters of one pattern

_END: Final = r"(?=/|\Z)"  # of a path's component
_FOLDERS: Final = "(?:[^/]+/)*?"  # as few as possible


class PathPatterns:
    """A list of patterns; the last one that matches a path decides.

    A pattern that matches the whole path overrides one that matches a folder above. Comments, empty
    lines and an unclosed `[` match nothing. Raises ValueError for an invalid pattern.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        rules = [rule for rule in map(_parse, lines) if rule]
        self.takes_some = any(rule.taken for rule in rules)
        self._any: re.Pattern[str] | None = None
        self._last_first: tuple[_Compiled, ...] = ()
        if all(rule.taken for rule in rules):
            self._any = _compile("|".join(rule.below or rule.whole for rule in rules) or "(?!)")
        else:
            self._last_first = tuple(
                _Compiled(
                    rule.taken,
                    _compile(rule.whole) if rule.whole else None,
                    _compile(rule.below) if rule.below else None,
                )
                for rule in reversed(rules)
            )

    def match(self, path: str) -> bool:
        """Return whether the patterns select a file's path, with `/` as separator."""
        if self._any:
            return self._any.match(path) is not None
        above = None
        for rule in self._last_first:
            if rule.whole and rule.whole.match(path):
                return rule.taken
            if above is None and rule.below and rule.below.match(path):
                above = rule.taken
        return bool(above)


class _Rule(NamedTuple):
    """The expressions of one pattern; an empty one matches nothing.

    `whole` matches paths that the pattern describes completely; `below` also matches those in a
    folder that it describes.
    """

    taken: bool
    whole: str
    below: str


class _Compiled(NamedTuple):
    taken: bool
    whole: re.Pattern[str] | None
    below: re.Pattern[str] | None


def _parse(line: str) -> _Rule | None:
    """Return the expressions of a line, or None if it matches nothing."""
    text = line if line.endswith("\\ ") else line.rstrip()
    if not text or text == "/" or text.startswith("#"):
        return None
    if len(text) > LONGEST:
        raise ValueError(f"{text[:60]!r}... has more than {LONGEST} characters")
    taken = not text.startswith("!")
    segments = _split(text.removeprefix("!"))
    try:
        rule = _Rule(taken, *_translate(segments, folders_only=text.endswith("/")))
        _compile(rule.whole or rule.below)
    except _UnclosedError:
        return None
    except (ValueError, re.error) as error:
        raise ValueError(f"{text[:60]!r}: {error}") from error
    return rule


def _split(text: str) -> list[str]:
    """Return the pattern's segments, from the data directory on; `**` stands for any folders."""
    if not text:
        raise ValueError("'!' is not a pattern")
    segments = text.split("/")
    if not segments[0]:
        del segments[0]
    elif not any(segments[1:]) and len(segments) <= 2:
        segments.insert(0, "**")
    if not segments[-1]:
        segments[-1] = "**"
    return segments


def _translate(segments: list[str], *, folders_only: bool) -> tuple[str, str]:
    """Return the expressions `whole` and `below` of a rule."""
    groups = list(_group(segments))
    floating, inside = segments[0] == "**", segments[-1] == "**"
    if not groups:
        return ("", "[^/]*/") if folders_only else ("(?:)", "(?:)")
    parts = [_FOLDERS * floating + groups[0]]
    parts += [f"/{_FOLDERS}{group}" for group in groups[1:]]
    found = "".join(f"(?>{part})" for part in parts)
    if inside:
        return ("", found + "/") if folders_only else (found + "/", found + "/")
    return "".join(f"(?>{part})" for part in parts[:-1]) + parts[-1] + r"\Z", found


def _group(segments: list[str]) -> Iterator[str]:
    """Yield expressions for runs of segments with no `**` between them."""
    together: list[str] = []
    for segment in [*segments, "**"]:
        if segment != "**":
            together.append(_translate_segment(segment))
        elif together:
            yield "/".join(together)
            together = []


def _translate_segment(segment: str) -> str:
    """Return an expression for one component of a path, which matches in at most one way."""
    if segment == "*":
        return f"(?>[^/]+{_END})"
    first, *others = _between_wildcards(segment)
    if not others:
        return f"(?>{first}{_END})"
    middle = "".join(f"(?>[^/]*?{text})" for text in others[:-1] if text)
    return f"(?>{first}{middle}[^/]*{others[-1]}{_END})"


def _between_wildcards(segment: str) -> list[str]:
    """Return expressions for the text before, between and after a segment's `*`."""
    texts, at = [""], 0
    while at < len(segment):
        character = segment[at]
        at += 1
        if character == "*":
            texts.append("")
        elif character == "?":
            texts[-1] += "[^/]"
        elif character == "[":
            end = _find_bracket(segment, at)
            texts[-1] += _translate_brackets(segment[at:end])
            at = end + 1
        elif character == "\\":
            if at == len(segment):
                raise ValueError("nothing follows the last \\")
            texts[-1] += re.escape(segment[at])
            at += 1
        else:
            texts[-1] += re.escape(character)
    return texts


def _find_bracket(segment: str, at: int) -> int:
    """Return the end of brackets whose content begins at `at`; a `]` there is content."""
    start = at + (segment[at : at + 1] in ("!", "^"))
    end = segment.find("]", start + 1)
    if end < 0:
        raise _UnclosedError
    return end


def _translate_brackets(content: str) -> str:
    """Return an expression for one character, which is never the separator `/`."""
    negated = content[0] in "!^"
    escaped = content[negated:].replace("\\", "\\\\")
    return f"(?!/)[{'^' * negated}{escaped}]"


def _compile(expression: str) -> re.Pattern[str]:
    with warnings.catch_warnings():  # about `[[]`, whose meaning here will not change
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(expression)


class _UnclosedError(Exception):
    """Brackets are not closed; git ignores such a pattern."""
