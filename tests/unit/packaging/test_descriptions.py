"""The files that describe the program to desktops, service managers and other computers."""

import configparser
import json
import plistlib
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import pytest

from mydata_like import __version__
from mydata_like.app.installer_actions import ACTIONS
from mydata_like.hostos.service import ServiceCommand, ServiceFolders, define_service

ROOT = Path(__file__).parents[3]
LINUX = ROOT / "packaging" / "linux"
RELEASE = re.compile(r"\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\)")
# Names that are reserved, or nobody's: an address of this program's, and a team.
PLACEHOLDER = re.compile(r"[a-z:/@]*mydata-like\.example\.org|@mydata-like/\w+|mydata-like@\w+")


def read_ini(text):
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(text)
    return parser


def test_the_desktop_file_opens_the_window_with_what_is_given():
    entry = read_ini((LINUX / "mydata-like.desktop").read_text())["Desktop Entry"]

    assert entry["Exec"] == "mydata-like gui %F"
    assert entry["Categories"].startswith("Network;")


def test_the_metadata_lead_to_the_desktop_file():
    root = ElementTree.parse(LINUX / "org.mydata_like.mydata_like.metainfo.xml").getroot()

    assert (LINUX / root.findtext("launchable")).is_file()
    assert root.findtext("id") == "org.mydata_like.mydata_like"


def test_the_service_of_the_package_behaves_as_the_one_that_the_program_makes():
    places = ServiceFolders(*map(PurePosixPath, ("/home/ann", "/home/ann/.config", "/state")))
    errand = ServiceCommand(words=("/usr/bin/mydata-like", "watch"), uid=1000)
    made = read_ini(define_service("linux", errand, places).content.decode())["Service"]
    packaged = read_ini((LINUX / "mydata-like.service").read_text())["Service"]

    assert made.pop("ExecStart").replace('"', "") == packaged.pop("ExecStart")
    assert dict(made) == dict(packaged)


def test_the_entitlements_for_macos_are_a_list_of_properties():
    rights = plistlib.loads((ROOT / "packaging" / "macos" / "entitlements.plist").read_bytes())

    assert set(rights.values()) == {True}


def read_installer():
    return (ROOT / "packaging" / "windows" / "mydata-like.nsi").read_text("utf-8")


def test_the_installer_for_windows_takes_files_that_the_build_makes():
    spec = (ROOT / "packaging" / "mydata-like.spec").read_text()

    assert set(re.findall(r"mydata-like[-\w]*(?=\.exe)", read_installer())) == {
        "mydata-like",
        "mydata-like-gui",
    }
    assert 'program(f"{NAME}-gui", console=False)' in spec


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ([], ["gui"]),
        (["C:/data/scan.tif"], ["gui", "C:/data/scan.tif"]),
        (["watch", "--home", "C:/home"], ["watch", "--home", "C:/home"]),
    ],
    ids=["nothing", "a file", "watch"],
)
def test_the_program_without_a_console_opens_the_window_or_is_a_service(words, taken):
    code = (
        "import json, runpy, sys; sys.executable = '/opt/mydata-like-gui.exe'\n"
        f"runpy.run_path({str(ROOT / 'packaging' / 'environment.py')!r})\n"
        "print(json.dumps(sys.argv[1:]))"
    )

    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=True)

    assert json.loads(ended.stdout) == taken


def test_the_uninstaller_removes_all_that_a_bundle_has_beside_the_folder_of_the_libraries():
    text = read_installer()
    build = "".join(
        (ROOT / "packaging" / name).read_text("utf-8") for name in ("build.py", "papers.py")
    )
    files = set(re.findall(r'^  Delete "\$INSTDIR\\([\w.-]+)"$', text, re.MULTILINE))

    papers = {name for name in files if not name.endswith((".exe", ".old"))}
    assert papers == {"LICENSE", "THIRD-PARTY.txt", "sbom.cdx.json"}
    assert all(name in build for name in papers)


def test_the_installer_calls_actions_that_the_program_has():
    assert set(re.findall(r"--installer ([\w-]+)", read_installer())) == set(ACTIONS)


def test_the_installer_has_every_text_in_english_and_in_german():
    text = read_installer()
    defined = re.findall(
        r'!insertmacro Text (\w+) (?:\\\n\s*)?"[^"]+" (?:\\\n\s*)?"[^"]+"$', text, re.M
    )

    assert set(re.findall(r"\$\((\w+)\)", text)) == set(defined)


def test_the_readme_and_the_addresses_of_a_package_are_absolute():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = {"urls": dict(project["urls"]), "version": __version__}

    runpy.run_path(str(ROOT / "packaging" / "metadata.py"))["Hook"](str(ROOT), {}).update(metadata)

    text = metadata["readme"]["text"]
    links = re.findall(r"""\]\(([^)]+)\)|(?:src|srcset|href)="([^"]+)""", text)
    assert len(links) > 10
    assert metadata["urls"].keys() == {"Repository", "Documentation", "Changelog", "Issues"}
    links += [(address, "") for address in metadata["urls"].values()]
    assert [link for link in map("".join, links) if not link.startswith("https://")] == []


@pytest.mark.structure
def test_the_checklist_lists_every_placeholder_that_is_there():
    checklist = ROOT / "docs" / "release.md"
    pattern = r"^- \[ \] `([^`]+)`: `([^`]+)`"
    listed = re.findall(pattern, checklist.read_text("utf-8"), re.MULTILINE)
    folders = ("", ".github", "docs", "mydata_like", "packaging", "resources")
    files = {file for name in folders for file in (ROOT / name).glob("**/*" if name else "*")}
    made = (ROOT / "packaging" / "build", ROOT / "resources" / "site")

    found = [
        (file.relative_to(ROOT).as_posix(), name)
        for file in sorted(files - {checklist})
        if file.is_file() and not any(file.is_relative_to(folder) for folder in made)
        for name in PLACEHOLDER.findall(file.read_text("utf-8", "ignore"))
    ]

    assert sorted(found) == sorted(listed)


def test_the_version_is_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert "version" in project["dynamic"]
    assert version("mydata-like") == __version__


def test_every_release_of_the_changelog_has_a_version_and_a_date():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)

    assert [each for each in headings if not RELEASE.fullmatch(each)] == []
    assert headings[0].startswith(f"{__version__} ")


def test_every_change_is_in_a_section_of_the_changelog():
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    sections = "|".join(kind["directory"] for kind in configured["type"])
    files = {file.name for file in (ROOT / configured["directory"]).iterdir()} - {".gitignore"}

    named = re.compile(rf"\+[\w-]+\.({sections})\.md")
    assert [name for name in files if not named.fullmatch(name)] == []
