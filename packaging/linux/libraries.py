"""The Debian packages that the system libraries in a bundle come from."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCUMENTS = Path("/usr/share/doc")


class Library(NamedTuple):
    """A Debian package with libraries, and the licence terms of its source package."""

    name: str
    version: str
    terms: str


def list_libraries(bundle: Path) -> Iterator[Library]:
    """Yield the packages by name; none on systems without dpkg."""
    names = {
        file.name
        for file in (bundle / "_internal").glob("lib*.so*")
        if not file.is_symlink() and not file.name.startswith("libpython")
    }
    if not names or not shutil.which("dpkg-query"):
        return
    owners = ask("--search", *(f"/*/{name}" for name in names)).splitlines()
    packages = {owner.partition(":")[0] for owner in owners if " /opt/" not in owner}
    for package in sorted(packages):
        version = ask("--show", "--showformat=${Version}\\n", package).splitlines()[0]
        terms = (DOCUMENTS / package / "copyright").read_text("utf-8", "replace")
        yield Library(package, version, terms.strip())


def ask(*words: str) -> str:
    """Return the output of dpkg-query, which may be incomplete."""
    words = ("dpkg-query", *words)
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout
