"""What is locked for installations and bundles, and how old no library may be."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
LOCKS = ("requirements.txt", "requirements-bundle.txt")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Versions in which libraries fixed a vulnerability that concerns us; from their advisories.
MENDED = {
    "paramiko": (5, 0, "SHA-1 in RSA signatures is refused: CVE-2026-44405"),
    "requests": (2, 33, "CVE-2026-25645; netrc is not leaked: CVE-2024-47081"),
    "urllib3": (2, 7, "headers stay with their host, bombs are defused: CVE-2026-44431, -44432"),
    "cryptography": (44, 0, "OpenSSL's advisories of the wheels"),
}
# Versions before these end the program; `make test-package` tries the least of all.
WORKING = {
    "PySide6-Essentials": (6, 10, "QStyleHints.accessibility"),
    "typer": (0, 16, "0.15 shows no help with click 8.2 and newer"),
}


def name_of(requirement):
    return re.sub(r"[_.]+", "-", re.match(r"[\w.-]+", requirement)[0].lower())


def numbers_of(text):
    """Return the first two numbers of a version, 0 for one that is left out."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return (*numbers, 0)[:2]


def locked(lock):
    """Return the versions that a file locks, by name; one for each kind of computer."""
    text = (ROOT / "packaging" / lock).read_text()
    found = {}
    for name, wanted in re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M):
        found.setdefault(name, []).append(wanted)
    return found


def asked_for(name):
    """Return the versions of a package that the program accepts, one for each kind of computer."""
    texts = (text for text in PROJECT["dependencies"] if name_of(text) == name_of(name))
    return [text[len(name) :] for text in texts]


def imported_packages():
    """Return the names of the packages whose modules the program imports anywhere."""
    modules = set()
    for file in (ROOT / "mydata_like").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {one.name.partition(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules.add(str(node.module).partition(".")[0])
    packages = packages_distributions()
    foreign = modules - sys.stdlib_module_names - {"mydata_like", "shiboken6"}  # of PySide6
    return {name_of(packages[one][0]) for one in foreign & packages.keys()}


def needed_by(requirements):
    """Return the names of what is needed here, with what that needs, and so on."""
    found = set()
    asked = [Requirement(text) for text in requirements]
    while asked:
        one = asked.pop()
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            name = name_of(one.name)
            if name not in found:
                found.add(name)
                asked += map(Requirement, requires(name) or ())
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_whatever_is_needed_is_locked_and_what_that_needs(lock):
    assert needed_by(PROJECT["dependencies"]) - locked(lock).keys() == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_whatever_is_locked_has_a_hash_and_no_address(lock):
    text = (ROOT / "packaging" / lock).read_text()
    entries = re.split(r"\n(?=[\w.-]+==)", text)

    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text


@pytest.mark.parametrize("name", ["ssh-python", "cryptography", "pyside6-essentials", "zstandard"])
def test_the_known_vulnerabilities_are_those_of_the_locked_versions(name):
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    tables = text.partition("### Known vulnerabilities")[2].partition("\n## ")[0]

    assert [one for one in locked("requirements-bundle.txt")[name] if one not in tables] == []


@pytest.mark.parametrize("name", MENDED)
def test_no_library_is_older_than_its_last_advisory(name):
    least = MENDED[name][:2]

    assert numbers_of(version(name)) >= least
    assert [numbers_of(one) for one in locked("requirements.txt")[name]] >= [least]
    assert [one for one in asked_for(name) if numbers_of(one) < least] == [], MENDED[name][2]


@pytest.mark.parametrize("name", WORKING)
def test_no_version_is_accepted_with_which_the_program_fails(name):
    least = WORKING[name][:2]

    assert [one for one in asked_for(name) if numbers_of(one) < least] == [], WORKING[name][2]


def test_whatever_the_program_imports_is_installed_with_it():
    asked = {name_of(text) for text in PROJECT["dependencies"]}
    for_s3 = {name_of(text) for text in PROJECT["optional-dependencies"]["s3"]}

    assert imported_packages() - asked == for_s3
