"""Settings of archives: which tiny files stay together on the server, as one datafile."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from mydata_like.core.patterns import PathPatterns
from mydata_like.settings.about import About
from mydata_like.settings.reading import Between
from mydata_like.settings.section import Section
from mydata_like.settings.values import Line, once_each

LARGEST_MEMBER = 64_000_000
_LARGEST_ARCHIVE = 1_000_000_000_000
_LONGEST_RULE = 1200  # characters; the pattern of one has at most 1000
_UNITS = {"bytes": 1, "byte": 1, "kb": 1_000, "mb": 1_000_000}
_RULE = re.compile(
    r"(?P<pattern>\S.*?)\s+below\s+(?P<size>\d{1,9}(?:\.\d{1,3})?)\s*(?P<unit>bytes?|[kK]B|MB)"
    r"(?:\s+from\s+(?P<files>\d{1,7})\s+files?)?(?:\s+by\s+(?P<scope>folder|dataset))?",
    re.ASCII,
)


class Scope(StrEnum):
    """Whose files share an archive: those of one folder, or of a whole dataset folder."""

    FOLDER = "folder"
    DATASET = "dataset"


@dataclass(frozen=True, slots=True, eq=False)
class ArchiveRule:
    """Files that match `pattern` and are smaller than `below` bytes are kept in archives.

    The pattern is one of a .gitignore file, for the path below the data directory. The rule
    holds where at least `files` such files lie in one scope.
    """

    pattern: PathPatterns
    below: int
    files: int
    scope: Scope


def parse_archive_rule(text: str) -> ArchiveRule:
    """Return the rule of a text; raises ValueError that says how to write one."""
    text = text.strip()
    if len(text) > _LONGEST_RULE:
        raise ValueError(f"must have at most {_LONGEST_RULE} characters")
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(
            'must be like "* below 100 kB", "*.dcm below 1 MB from 500 files by dataset"'
        )
    below = round(float(match["size"]) * _UNITS[match["unit"].lower()])
    if not 1 <= below <= LARGEST_MEMBER:
        raise ValueError("must name a size from 1 byte to 64 MB: archives are for tiny files")
    files = int(match["files"] or 100)
    if not files:
        raise ValueError("must name at least 1 file")
    scope = Scope(match["scope"] or Scope.FOLDER)
    return ArchiveRule(_compile(match["pattern"]), below, files, scope)


def _compile(pattern: str) -> PathPatterns:
    try:
        patterns = PathPatterns([pattern])
    except ValueError:
        patterns = PathPatterns([])
    if not patterns.takes_some:
        raise ValueError(f"has a pattern that matches nothing: {pattern[:60]}")
    return patterns


def _check_rule(text: str) -> str:
    parse_archive_rule(text)
    return text.strip()


class Archive(Section):
    """Which tiny files are kept together on the server; see docs/archives.md."""

    rules: Annotated[
        tuple[Annotated[Line, _check_rule], ...],
        once_each("rule"),
        About(
            "Archive rules",
            "Which files stay in tar archives on the server instead of having a record each, as "
            'in "*.dcm below 1 MB from 500 files by dataset"; the first rule that fits counts.',
        ),
    ] = ()
    size_limit: Annotated[
        int,
        Between(1_000_000, _LARGEST_ARCHIVE),
        About(
            "Archive size",
            "How large one archive may become; further files go into a further archive.",
            unit="bytes",
        ),
    ] = 250_000_000
