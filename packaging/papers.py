"""The list of components of a bundle, and their licences.

python packaging/papers.py BUNDLE writes sbom.cdx.json (CycloneDX 1.5) and THIRD-PARTY.txt. They
list the packages of this Python environment, the libraries within them, and the system packages
that libraries of the bundle come from, so run it on the build machine.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import quote

from linux.libraries import Library, list_libraries

from mydata_like import __version__
from mydata_like.hostos.dependencies import (
    MISSING,
    PROGRAM,
    UNKNOWN,
    Component,
    list_components,
)
from mydata_like.hostos.dependencies import (
    list_libraries as list_inner,
)

LICENCE = re.compile(r"(licen[cs]e|copying|notice)[^/]*$|/licenses/", re.IGNORECASE)
LICENCES = Path(__file__).parent / "licences"
ICONS_LICENCE = Path(__file__).parents[1] / "resources" / "icons" / "LICENSE"
# Of libraries within packages, which have no metadata of their own.
INNER_LICENCES = {
    "OpenSSL": "Apache-2.0",
    "Qt": "LGPL-3.0-only",
    "ICU": "Unicode-3.0",
    "libssh": "LGPL-2.1-or-later",
    "krb5": "MIT",
    "com_err": "MIT",
    "zstd": "BSD-3-Clause",
}
NEEDED = {"bom-ref", "version", "purl"}
PARTS = ("type", "bom-ref", "name", "version", "licenses", "purl")  # of an entry that is taken over
# A name of a library that a wheel brings along: libkrb5-53b19694.so.3.3
VENDORED = re.compile(r"lib(?P<name>[\w+]+)-[0-9a-f]{8}\.so\.(?P<version>[\d.]+)$")
QT = """\
PySide6, Shiboken and Qt are used under the GNU Lesser General Public License 3. Qt's libraries are
separate files in this bundle: to use a modified library, replace its file with your build. The
sources of the version named here are at https://code.qt.io. The third-party code in Qt is listed at
https://doc.qt.io/qt-6/licenses-used-in-qt.html; on Linux this includes ICU.
"""


def build_sbom(components: list[Component], libraries: list[Library]) -> dict[str, object]:
    """Return all components in the format of CycloneDX; the result is reproducible."""
    packages = [describe(component) for component in components]
    references = {plain(component.name): reference(component) for component in components}
    inner = list({str(one["bom-ref"]): one for one in describe_inner(components)}.values())
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": PROGRAM,
                "name": PROGRAM,
                "version": __version__,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [*packages, *inner, *map(describe_library, libraries)],
        "dependencies": [
            {"ref": PROGRAM, "dependsOn": sorted(references.values())},
            *(
                {
                    "ref": reference(component),
                    "dependsOn": [references[plain(name)] for name in component.needs],
                }
                for component in components
            ),
        ],
    }


def describe(component: Component) -> dict[str, object]:
    """Return a component in the format of CycloneDX."""
    record: dict[str, object] = {
        "type": "library",
        "bom-ref": reference(component),
        "name": component.name,
        "version": component.version,
        "licenses": [{"license": {"name": component.licence}}] if component.licence else [],
    }
    if is_package(component.name):
        record["purl"] = reference(component)
    return record


def describe_library(library: Library) -> dict[str, object]:
    """Return a system package in the format of CycloneDX; its terms are in THIRD-PARTY.txt."""
    reference = f"pkg:deb/debian/{library.name}@{quote(library.version)}"
    parts = re.split(r"\n\s*\n", library.terms)
    # What Debian adds to build the package is not in the library.
    shipped = (part for part in parts if re.search(r"^Files:(?!\s*debian/)", part, re.MULTILINE))
    found = (re.search(r"^License:[ \t]*(\S.*)$", part, re.MULTILINE) for part in shipped)
    named = sorted({licence[1] for licence in found if licence})
    return {
        "type": "library",
        "bom-ref": reference,
        "name": library.name,
        "version": library.version,
        "licenses": [{"license": {"name": name}} for name in named or ["see THIRD-PARTY.txt"]],
        "purl": reference,
    }


def describe_inner(components: list[Component]) -> Iterator[dict[str, object]]:
    """Yield the libraries within packages, by what they say themselves and by their files.

    Packages with parts in Rust bring a list of these in CycloneDX's format.
    """
    for library in list_inner():
        known = library.version not in (MISSING, UNKNOWN)
        if known and library.name in INNER_LICENCES and library.within != "Python":
            version = library.version.split()[0]
            yield describe_part(library.within, library.name, version)
    for component in components:
        files = distribution(component.name).files if is_package(component.name) else None
        for file in files or ():
            vendored = VENDORED.match(file.name)
            if vendored and vendored["name"] not in ("ssh", "crypto"):  # they tell their versions
                part = describe_part(component.name, vendored["name"], vendored["version"])
                yield part | {"description": "The version is that of its interface."}
            elif icu := re.match(r"libicuuc\.so\.(\d+)", file.name):
                yield describe_part(component.name, "ICU", icu[1])
            elif "/sboms/" in file.as_posix():
                text = Path(str(file.locate())).read_text("utf-8")
                yield from (
                    {key: one[key] for key in PARTS if key in one}
                    for one in json.loads(text).get("components", [])
                    if one.keys() >= {"purl", "version", "bom-ref"}
                    and "file:" not in one["bom-ref"]
                )


def describe_part(package: str, name: str, version: str) -> dict[str, object]:
    """Return a library within a package in the format of CycloneDX."""
    licence = INNER_LICENCES.get(name, INNER_LICENCES["krb5"])
    return {
        "type": "library",
        "bom-ref": f"pkg:generic/{name}@{version}?within={plain(package)}",
        "group": package,
        "name": name,
        "version": version,
        "licenses": [{"license": {"name": licence}}],
    }


def reference(component: Component) -> str:
    """Return the package URL of a component."""
    kind = "pypi" if is_package(component.name) else "generic"
    return f"pkg:{kind}/{plain(component.name)}@{component.version}"


def plain(name: str) -> str:
    """Return a package name normalized as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_package(name: str) -> bool:
    """Return whether this is an installed Python package, unlike Python or OpenSSL."""
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def write_notices(components: list[Component], libraries: list[Library]) -> Iterator[str]:
    """Yield the notices: a list of components, then the licence texts of all packages."""
    yield f"{PROGRAM} {__version__} uses this third-party software:\n"
    for component in components:
        yield f"  {component.name} {component.version}: {component.licence}"
    yield f"\n{QT}"
    if libraries:
        yield "It contains libraries of these Debian packages; their terms follow below:\n"
    for library in libraries:
        yield f"  {library.name} {library.version}"
    for component in components:
        for name, text in find_licences(component.name):
            yield from write_text(f"{component.name} {component.version}: {name}", text)
    yield from write_text("Lucide: LICENSE", ICONS_LICENCE.read_text("utf-8"))
    for file in sorted(LICENCES.glob("*.txt")):
        yield from write_text(f"Qt: {file.name}", file.read_text("utf-8"))
    for terms in dict.fromkeys(library.terms for library in libraries):
        names = ", ".join(library.name for library in libraries if library.terms == terms)
        yield from write_text(names, terms)


def write_text(title: str, text: str) -> Iterator[str]:
    """Yield a text below its title."""
    yield f"\n{'=' * 79}\n{title}\n{'=' * 79}\n"
    yield text.strip()


def find_licences(name: str) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each licence in a package."""
    if not is_package(name):
        return
    for file in distribution(name).files or ():
        if ".dist-info/" in file.as_posix() and LICENCE.search(file.as_posix()):
            yield file.name, Path(str(file.locate())).read_text("utf-8", "replace")


def main(bundle: Path) -> None:
    """Write both files into the bundle."""
    bundle.mkdir(parents=True, exist_ok=True)
    components, libraries = list_components(), list(list_libraries(bundle))
    sbom = json.dumps(build_sbom(components, libraries), indent=1)
    (bundle / "sbom.cdx.json").write_text(sbom + "\n", encoding="utf-8")
    notices = "\n".join(write_notices(components, libraries))
    (bundle / "THIRD-PARTY.txt").write_text(notices + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
