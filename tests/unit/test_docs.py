"""What the documentation points at is there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from mydata_like.core.events import Event, event_name
from mydata_like.core.problems import PROBLEMS
from mydata_like.settings.mydata_cfg import WITHOUT_SETTING
from mydata_like.settings.schema import iter_settings

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(set((ROOT / "packaging").rglob("*.md")) - set((ROOT / "packaging/build").rglob("*"))),
]
# The commands of `make pages` that print a page, and the page.
PRINTED = re.findall(r"python -m (.+) > (docs/\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
WORDS = 45_000  # of the pages below; what the program can print need not be repeated in them
CODE = ("mydata_like", "tests", "benchmarks", "packaging")
# Folders below which a page may name a path, in this order.
BELOW = [ROOT / name for name in ("", "mydata_like", "tests", "docs")]
MADE = {"build", "dist"}  # folders that are made
# Names of other programs, and examples.
FOREIGN = {
    "--partial",
    "AbortIncompleteMultipartUpload",
    "CurrentUser",
    "FORMER_ADDRESS",
    "ListBucket",
    "ListBucketMultipartUploads",
    "LongPathsEnabled",
    "ProgramFiles",
    "QSortFilterProxyModel",
    "RWF_DONTCACHE",
    "SYSTEM_LIBSSH",
    "TCP_USER_TIMEOUT",
    "UploaderRegistrationRequest",
    "export_approved_keys",
    "max_user_watches",
    "ssh_config",
    "ssh_get_hexa",
    "ssh_host_ed25519_key",
    "stale_uploads_expiry",
}


@pytest.mark.parametrize(("page", "least"), [("faults", 25), ("architecture", 5)])
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


def test_the_pages_can_be_read_and_kept_true():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    words = [word for page in pages for word in page.read_text("utf-8").split()]

    assert len([word for word in words if re.search(r"\w", word)]) <= WORDS


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


@pytest.mark.structure
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_in_backticks_exist(page):
    """Paths, modules, settings, codes, identifiers, and the targets and modules of commands."""
    unknown = {name for name in _find_names(page) for fault in [_find_fault(name)] if fault}

    assert unknown == set()


@pytest.mark.structure
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gui/overview/no_chart.py",
        "engine/no_stage",
        "docs/no-page.md",
        "transfer.no_setting",
        "server.no-such-code",
        "core.no_module",
        "no_function",
        "NoSuchClass",
        "--no-such-option",
        'transfer.no_setting = "folder"',
        "make no-target",
        "python -m tests.no_module",
        "python -m tests.hosts --no-option",
    ],
)
def test_an_invented_name_is_found(name):
    assert _find_fault(name)


def _find_names(page: Path) -> Iterator[str]:
    """Yield the texts in backticks of a page, without those of its blocks of code."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    for name in re.findall(r"`([^`]+)`", text):
        yield " ".join(name.split())


def _find_fault(name: str) -> bool:
    """Return whether a text in backticks names something of this program that does not exist."""
    if command := re.match(r"(?:\.venv/bin/)?python -m (\S+)(.*)", name):
        return not _has_program(command[1], re.findall(r"(--[\w-]+)", command[2]))
    if command := re.fullmatch(r"make ([\w-]+)( \w+=.*)?", name):
        return not re.search(rf"^[\w -]*\b{command[1]}\b.*:", (ROOT / "Makefile").read_text(), re.M)
    if (
        re.fullmatch(r"[a-z_]+(/[\w.-]+)+/?", name)
        and _names_our_folder(name)
        and "NAME" not in name
    ):
        return not _has_path(name)
    dotted = re.fullmatch(r"(([a-z_0-9]+)\.[a-z_0-9-]+)( = .+)?", name)
    if dotted and dotted[2] in _families():
        return not _has_dotted(dotted[1])
    if option := re.fullmatch(r"(--[a-z][\w-]+)(=.*)?", name):
        return f'"{option[1]}' not in _sources() and option[1] not in FOREIGN
    return any(_is_unknown(word) for word in re.findall(r"[A-Za-z_]\w*", name))


def _names_our_folder(name: str) -> bool:
    first = name.partition("/")[0]
    return first not in MADE and any((below / first).is_dir() for below in BELOW)


def _has_path(name: str) -> bool:
    return any((below / path).exists() for below in BELOW for path in (name, f"{name}.py"))


def _has_dotted(name: str) -> bool:
    """Return whether there is a setting, a code of a problem, a module or a file of this name."""
    known = PROBLEMS.keys() | {setting.key for setting in iter_settings()}
    begins = name.endswith("_") and any(key.startswith(name) for key in known)
    return begins or name in known or _has_path(name.replace(".", "/")) or name in _sources()


def _has_program(module: str, options: list[str]) -> bool:
    path = ROOT / module.replace(".", "/")
    files = [path.with_suffix(".py"), *path.glob("*.py")]
    text = "".join(file.read_text("utf-8") for file in files if file.is_file())
    return bool(text) and all(f'"{option}"' in text for option in options)


def _is_unknown(word: str) -> bool:
    """Return whether a word looks like an identifier, and is not in the source."""
    identifier = "_" in word.strip("_") or re.search(r"[a-z][A-Z]", word)
    known = word in _words() or word in FOREIGN
    return bool(identifier) and not known and "NAME" not in word


@cache
def _families() -> set[str]:
    settings = {setting.key.partition(".")[0] for setting in iter_settings()}
    codes = {code.partition(".")[0] for code in PROBLEMS}
    return settings | codes | {path.name for path in (ROOT / "mydata_like").iterdir()}


@cache
def _sources() -> str:
    """Return the text of the sources, without that of this module."""
    kinds = (".py", ".c", ".sh", ".toml", ".json", ".spec")
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    files += [ROOT / "Makefile", ROOT / "pyproject.toml"]
    return "\n".join(path.read_text("utf-8") for path in files if path != Path(__file__))


@cache
def _words() -> frozenset[str]:
    """Return the words of the sources, the names of their files, and those of events."""
    names = {path.stem for folder in CODE for path in (ROOT / folder).rglob("*.py")}
    events = {event_name(event) for event in get_args(Event)}
    return frozenset(re.findall(r"\w+", _sources())) | names | events
