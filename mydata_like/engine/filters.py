"""Decides which folders and files a run leaves out, and says why."""

import fnmatch
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from mydata_like.core.data_directory import is_lock_name
from mydata_like.core.errors import Problem, SettingsError
from mydata_like.core.formatting import format_path
from mydata_like.core.patterns import PathPatterns
from mydata_like.engine.layout import Level
from mydata_like.settings.schema import Filters
from mydata_like.settings.values import parse_age

NAME_LIMIT = 400  # characters; the server's own limits
DIRECTORY_LIMIT = 255
TITLE_LIMIT = 400

_IGNORED_FILE = re.compile(
    rb"(?i:thumbs\.db|ehthumbs\.db|desktop\.ini)|\.DS_Store|~\$.*|\.~lock\..*#"
    rb"|\.nfs[0-9a-f]{16,24}|\.fuse_hidden[0-9a-f]{16}|\.mydata-like-[0-9a-f]{16}"
    rb"|\.mydata-like(?:-[0-9a-z-]+)?\.lock",
    re.DOTALL,
)
_IGNORED_FOLDER = re.compile(rb"(?i:\$recycle\.bin|system volume information|lost\+found)")

_IGNORED = Problem(
    "skipped.ignored",
    "Systems and programs leave such files behind; they are no research data.",
    "Set filters.default_ignores to false to upload them.",
)
_EXCLUDED = Problem(
    "skipped.pattern",
    "The include and exclude patterns leave this file out.",
    "Change the patterns under filters to upload it.",
)
_UNSPEAKABLE = Problem(
    "skipped.name",
    "The name is no valid text, so the server cannot hold it.",
    "Rename it with characters that the computer shows properly.",
)
_TOO_LONG = Problem(
    "skipped.name",
    f"The file's name has more than {NAME_LIMIT} characters, more than the server can hold.",
    "Give it a shorter name.",
)
_TOO_DEEP = Problem(
    "skipped.name",
    f"The path below the dataset folder has more than {DIRECTORY_LIMIT} characters, "
    "more than the server can hold.",
    "Use fewer or shorter folder names.",
)
_UNTITLED = Problem(
    "skipped.name",
    f"A folder's name must have text, and an experiment's title at most {TITLE_LIMIT} characters.",
    "Rename the folder.",
)
_HIDDEN = Problem(
    "skipped.hidden",
    "Folders whose name begins with a dot hold no datasets.",
    "Rename the folder to upload it.",
)
_OLD = Problem(
    "skipped.old",
    "The dataset folder has not changed for longer than filters.ignore_older_than.",
    "Raise that age to upload it.",
)
_YOUNG = Problem(
    "skipped.young",
    "The dataset folder changed more recently than filters.ignore_newer_than ago.",
    "It is taken once it is old enough.",
)

Matcher = Callable[[str, str], bool]  # of a path below the data directory and its base name


class FileFilter:
    """Finds the reason to leave a file out, from its name and its path alone.

    Pattern files are read once, when it is made; raises `SettingsError` where one cannot be
    read or a pattern means nothing.
    """

    def __init__(self, settings: Filters) -> None:
        self._ignored = _IGNORED_FILE.fullmatch if settings.default_ignores else is_lock_name
        self._matchers = tuple(_matchers(settings))

    def refuse(self, key: bytes, name: bytes, above: int = 0) -> Problem | None:
        """Return why a file is left out; patterns do not see the first bytes of its key."""
        if self._ignored(name):
            return _IGNORED
        if not name.isascii() or len(name) > NAME_LIMIT:
            problem = name_problem(name)
            if problem:
                return problem
        if not self._matchers:
            return None
        path, base = key[above:].decode("utf-8", "surrogateescape"), name.decode()
        taken = all(matcher(path, base) for matcher in self._matchers)
        return None if taken else _EXCLUDED


class FolderFilter:
    """Finds the reason to leave a folder of the layout's levels out."""

    def __init__(self, settings: Filters) -> None:
        self._default_ignores = settings.default_ignores
        self._wanted = {
            Level.OWNER: settings.owner.casefold(),
            Level.GROUP: settings.owner.casefold(),
            Level.EXPERIMENT: settings.experiment.casefold(),
            Level.DATASET: settings.dataset.casefold(),
        }
        self._oldest = parse_age(settings.ignore_older_than)
        self._youngest = parse_age(settings.ignore_newer_than)

    @property
    def wants_age(self) -> bool:
        return self._oldest is not None or self._youngest is not None

    def refuse(self, level: Level, name: bytes) -> Problem | None:
        """Return why a folder is left out because of its name."""
        if name.startswith(b"."):
            return _HIDDEN
        if self._default_ignores and _IGNORED_FOLDER.fullmatch(name):
            return _IGNORED
        try:
            text = name.decode()
        except UnicodeDecodeError:
            return _UNSPEAKABLE
        if not text.strip() or len(text) > TITLE_LIMIT:
            return _UNTITLED
        wanted = self._wanted.get(level, "")
        return None if wanted in text.casefold() else _filtered(wanted)

    def refuse_title(self, title: str | None) -> Problem | None:
        """Return why a folder is left out because of its experiment's title."""
        return _UNTITLED if title is not None and len(title) > TITLE_LIMIT else None

    def refuse_age(self, status: os.stat_result, now: float) -> Problem | None:
        """Return why a dataset folder is left out because of its age.

        What counts is the later of the folder's own mtime and ctime. MyData takes ctime alone,
        which is the folder's creation on Windows, so that a folder in daily use for years is
        too old; the files' own times a streaming scan knows only when it is too late.
        """
        age = now - max(status.st_mtime, status.st_ctime)
        if self._oldest is not None and age > self._oldest:
            return _OLD
        if self._youngest is not None and age < self._youngest:
            return _YOUNG
        return None


def name_problem(name: bytes) -> Problem | None:
    """Return why the server cannot hold a file's name."""
    try:
        return _TOO_LONG if len(name.decode()) > NAME_LIMIT else None
    except UnicodeDecodeError:
        return _UNSPEAKABLE


def directory_problem(directory: bytes) -> Problem | None:
    """Return why the server cannot hold a path below a dataset folder."""
    try:
        return _TOO_DEEP if len(directory.decode()) > DIRECTORY_LIMIT else None
    except UnicodeDecodeError:
        return _UNSPEAKABLE


def _filtered(wanted: str) -> Problem:
    return Problem(
        "skipped.filtered",
        f"The folder's name does not contain {wanted}.",
        "Change or clear the filter to upload it.",
    )


def _matchers(settings: Filters) -> Iterable[Matcher]:
    if settings.includes:
        includes = _compile_paths("includes", settings.includes)
        yield lambda path, _name: includes.match(path)
    if settings.excludes:
        excludes = _compile_paths("excludes", settings.excludes)
        yield lambda path, _name: not excludes.match(path)
    if settings.includes_file or settings.excludes_file:
        yield _legacy_matcher(settings.includes_file, settings.excludes_file)


def _compile_paths(key: str, patterns: tuple[str, ...]) -> PathPatterns:
    try:
        return PathPatterns(patterns)
    except ValueError as error:
        raise SettingsError(
            f"A pattern of filters.{key} means nothing: {error}",
            hint="Patterns are written as in a .gitignore file, such as *.tmp or /raw/**.",
        ) from error


def _legacy_matcher(includes_file: Path | None, excludes_file: Path | None) -> Matcher:
    """Return MyData's rule for its pattern files, which looks at base names only."""
    includes = _load_patterns(includes_file) if includes_file else None
    excludes = _load_patterns(excludes_file) if excludes_file else None

    def is_taken(_path: str, name: str) -> bool:
        name = os.path.normcase(name)
        if includes and includes.match(name):
            return True
        if excludes is None:
            return False
        return not excludes.match(name)

    return is_taken


def _load_patterns(path: Path) -> re.Pattern[str]:
    """Return one expression for all patterns of a file; it matches nothing when there are none.

    `fnmatch` writes expressions that do not backtrack from one wildcard to those before it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The file of patterns {format_path(os.fsencode(path))} cannot be read: {error}",
            hint="Check filters.includes_file and filters.excludes_file.",
        ) from error
    lines = (line.strip() for line in text.splitlines())
    patterns = [line for line in lines if line and not line.startswith(("#", ";"))]
    expressions = [fnmatch.translate(os.path.normcase(pattern)) for pattern in patterns]
    return re.compile("|".join(expressions) or r"(?!)")
