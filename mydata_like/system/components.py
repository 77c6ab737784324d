"""What the program is built on, as it is installed: names, versions, licences.

All of it is read from the metadata that packages bring along, in bundles as well.
"""

import platform
import re
import sqlite3
import ssl
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Final, NamedTuple

PROGRAM: Final = "mydata-like"
EXTRAS: Final = frozenset({"demo"})  # of the program itself; nobody else's are followed
_NAME: Final = re.compile(r"[\w.-]+")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_LONGEST: Final = 80  # characters; some packages put the whole text where its name belongs
_CLASSIFIER: Final = "License :: OSI Approved :: "


class Component(NamedTuple):
    """One of them; `needs` are the names of those that it is built on itself."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...] = ()


def list_components() -> list[Component]:
    """Return all that is installed for the program, without itself, by name."""
    found: dict[str, Component] = {}
    wanted = [PROGRAM]
    while wanted:
        name = wanted.pop()
        installed = _find(name)
        if installed is None or _plain(name) in found:
            continue
        extras = EXTRAS if name == PROGRAM else frozenset[str]()
        needs = tuple(sorted({need for need in _needs(installed, extras) if _find(need)}))
        found[_plain(name)] = Component(
            installed.name, installed.version, _name_licence(installed), needs
        )
        wanted += needs
    del found[PROGRAM]
    return sorted([*found.values(), *_below()], key=lambda component: component.name.lower())


def _below() -> Iterator[Component]:
    """Yield what the packages do not tell of: what Python itself stands on."""
    yield Component("Python", platform.python_version(), "PSF-2.0")
    yield Component("OpenSSL", ssl.OPENSSL_VERSION.split()[1], "Apache-2.0")
    yield Component("SQLite", sqlite3.sqlite_version, "blessing")


def _find(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _needs(installed: Distribution, extras: frozenset[str]) -> Iterator[str]:
    for text in installed.requires or ():
        extra = _EXTRA.search(text)
        named = _NAME.match(text)
        if named and (extra is None or extra[1] in extras):
            yield _plain(named[0])


def _plain(name: str) -> str:
    """Return a name as it is compared: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _name_licence(installed: Distribution) -> str:
    told = installed.metadata
    for key in ("License-Expression", "License"):
        first = told[key].strip().partition("\n")[0] if key in told else ""
        if 0 < len(first) <= _LONGEST:
            return first
    kinds = (kind for kind in told.get_all("Classifier") or () if kind.startswith(_CLASSIFIER))
    return next((kind.removeprefix(_CLASSIFIER) for kind in kinds), "")
