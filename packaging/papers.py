"""The papers of a bundle: what is in it, under which licences.

python packaging/papers.py BUNDLE writes sbom.cdx.json (CycloneDX 1.5) and THIRD-PARTY.txt, of the
packages that are installed beside this Python, and of those of the system that libraries of the
bundle are from: run it where the bundle is built.
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
from mydata_like.hostos.dependencies import PROGRAM, Component, list_components

LICENCE = re.compile(r"(licen[cs]e|copying|notice)[^/]*$|/licenses/", re.IGNORECASE)
LICENCES = Path(__file__).parent / "licences"
QT = """\
PySide6, Shiboken and Qt are used under the GNU Lesser General Public License 3. Qt's libraries are
files of their own in this bundle: whoever wants to exchange one puts a changed build in its place.
The sources are at https://code.qt.io, of the version that is named here. What Qt is built on itself
stands at https://doc.qt.io/qt-6/licenses-used-in-qt.html; on Linux that is ICU, too.
"""


def build_sbom(components: list[Component], libraries: list[Library]) -> dict[str, object]:
    """Return the list of all as CycloneDX wants it; the same for the same components."""
    packages = [describe(component) for component in components]
    references = {plain(component.name): reference(component) for component in components}
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
        "components": [*packages, *map(describe_library, libraries)],
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
    """Return one component."""
    told: dict[str, object] = {
        "type": "library",
        "bom-ref": reference(component),
        "name": component.name,
        "version": component.version,
        "licenses": [{"license": {"name": component.licence}}] if component.licence else [],
    }
    if is_package(component.name):
        told["purl"] = reference(component)
    return told


def describe_library(library: Library) -> dict[str, object]:
    """Return one package of the system; its terms stand in THIRD-PARTY.txt."""
    reference = f"pkg:deb/debian/{library.name}@{quote(library.version)}"
    return {
        "type": "library",
        "bom-ref": reference,
        "name": library.name,
        "version": library.version,
        "purl": reference,
    }


def reference(component: Component) -> str:
    """Return what other documents call a component: its package URL, where it is a package."""
    kind = "pypi" if is_package(component.name) else "generic"
    return f"pkg:{kind}/{plain(component.name)}@{component.version}"


def plain(name: str) -> str:
    """Return a name as it is compared: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_package(name: str) -> bool:
    """Return whether this is a Python package, rather than what Python stands on."""
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def write_notices(components: list[Component], libraries: list[Library]) -> Iterator[str]:
    """Yield the notices: a table, then every licence that came with a package."""
    yield f"{PROGRAM} {__version__} is built on the software of others:\n"
    for component in components:
        yield f"  {component.name} {component.version}: {component.licence}"
    yield f"\n{QT}"
    if libraries:
        yield "Libraries of these packages of Debian are in it; their terms follow below:\n"
    for library in libraries:
        yield f"  {library.name} {library.version}"
    for component in components:
        for name, text in find_licences(component.name):
            yield from write_text(f"{component.name} {component.version}: {name}", text)
    for file in sorted(LICENCES.glob("*.txt")):
        yield from write_text(f"Qt: {file.name}", file.read_text("utf-8"))
    for terms in dict.fromkeys(library.terms for library in libraries):
        names = ", ".join(library.name for library in libraries if library.terms == terms)
        yield from write_text(names, terms)


def write_text(title: str, text: str) -> Iterator[str]:
    """Yield one text below its title."""
    yield f"\n{'=' * 79}\n{title}\n{'=' * 79}\n"
    yield text.strip()


def find_licences(name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts that a package brings along, each with its file's name."""
    if not is_package(name):
        return
    for file in distribution(name).files or ():
        if ".dist-info/" in file.as_posix() and LICENCE.search(file.as_posix()):
            yield file.name, Path(str(file.locate())).read_text("utf-8", "replace")


def main(bundle: Path) -> None:
    """Write both."""
    bundle.mkdir(parents=True, exist_ok=True)
    components, libraries = list_components(), list(list_libraries(bundle))
    sbom = json.dumps(build_sbom(components, libraries), indent=1)
    (bundle / "sbom.cdx.json").write_text(sbom + "\n", encoding="utf-8")
    notices = "\n".join(write_notices(components, libraries))
    (bundle / "THIRD-PARTY.txt").write_text(notices + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
