"""The papers of a bundle, and its icon."""

import json
import os
import struct
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from mydata_like.hostos.dependencies import list_components

pytestmark = pytest.mark.process

PACKAGING = Path(__file__).parents[3] / "packaging"
ZLIB = Path("/usr/share/doc/zlib1g/copyright")


def run(script, *words):
    subprocess.run(
        [sys.executable, PACKAGING / script, *words],
        check=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(PACKAGING.parent)},
    )


def test_the_papers_name_every_component_with_its_licence(tmp_path):
    run("papers.py", tmp_path)

    sbom = json.loads((tmp_path / "sbom.cdx.json").read_text())
    notices = (tmp_path / "THIRD-PARTY.txt").read_text()
    components = list_components()
    packages = sbom["components"][: len(components)]
    assert [one["name"] for one in packages] == [one.name for one in components]
    inner = {one["name"]: one for one in sbom["components"][len(components) :]}
    assert inner["Qt"]["version"] == version("PySide6-Essentials")
    assert inner["OpenSSL"]["licenses"] == [{"license": {"name": "Apache-2.0"}}]
    for one in components:
        assert f"{one.name} {one.version}: {one.licence}\n" in notices
    every = [one["bom-ref"] for one in sbom["components"]]
    assert len(every) == len(set(every))
    references = {one["bom-ref"] for one in packages}
    assert {name for one in sbom["dependencies"] for name in one["dependsOn"]} == references


def test_the_licence_of_qt_is_there_in_full(tmp_path):
    run("papers.py", tmp_path)

    notices = (tmp_path / "THIRD-PARTY.txt").read_text()
    for title in ("GNU LESSER GENERAL PUBLIC LICENSE", "GNU GENERAL PUBLIC LICENSE"):
        assert f"{title}\n                       Version 3, 29 June 2007" in notices


@pytest.mark.skipif(
    os.name == "nt" or not ZLIB.is_file(), reason="only packages of Debian have such files"
)
def test_libraries_of_the_system_are_named_with_their_terms(tmp_path):
    libraries = tmp_path / "_internal"
    libraries.mkdir()
    (libraries / "libz.so.1").touch()
    (libraries / "libbz2.so.1.0").touch()
    (libraries / "libnobodys.so.1").touch()

    run("papers.py", tmp_path)

    bzip2, last = json.loads((tmp_path / "sbom.cdx.json").read_text())["components"][-2:]
    # Its own terms, not those of what builds Debian's package.
    assert bzip2["licenses"] == [{"license": {"name": "BSD-variant"}}]
    assert last["name"] == "zlib1g"
    assert last["purl"].startswith("pkg:deb/debian/zlib1g@1")
    assert ZLIB.read_text().strip() in (tmp_path / "THIRD-PARTY.txt").read_text()


def test_the_icon_comes_in_every_size_and_format(tmp_path):
    run("icons.py", tmp_path)

    for size in (16, 48, 256, 1024):
        head = (tmp_path / f"{size}.png").read_bytes()[:24]
        assert struct.unpack(">II", head[16:]) == (size, size)
    ico, icns = ((tmp_path / f"mydata-like.{kind}").read_bytes() for kind in ("ico", "icns"))
    _, _, count = struct.unpack_from("<HHH", ico)
    for number in range(count):
        length, start = struct.unpack_from("<II", ico, 6 + 16 * number + 8)
        assert ico[start : start + 8] == b"\x89PNG\r\n\x1a\n"
    assert start + length == len(ico)
    assert icns[:4] == b"icns"
    assert struct.unpack_from(">I", icns, 4) == (len(icns),)


def test_windows_gets_a_version_of_four_numbers(tmp_path):
    run("windows/version.py", tmp_path / "version.txt")

    assert "filevers=(0, " in (tmp_path / "version.txt").read_text()
