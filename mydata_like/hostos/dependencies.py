"""The installed dependencies: names, versions and licences.

They are read from the metadata of the packages, in bundles as well.
"""

import platform
import re
import sqlite3
import ssl
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Final, NamedTuple

from mydata_like import __version__

PROGRAM: Final = "mydata-like"
EXTRAS: Final = frozenset({"s3"})  # of the program itself; those of its dependencies are ignored
ICONS_VERSION: Final = "1.62.0"  # of Lucide, see resources/icons/LICENSE
_NAME: Final = re.compile(r"[\w.-]+")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_LONGEST: Final = 80  # characters; some packages have the whole text in the field of the name
_CLASSIFIER: Final = "License :: OSI Approved :: "


class Component(NamedTuple):
    """An installed package; `needs` are the names of its own dependencies."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...] = ()


def list_components() -> list[Component]:
    """Return all dependencies of the program, sorted by name."""
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
    others = (  # that are not packages: those of Python itself, and the icons
        Component("Python", platform.python_version(), "PSF-2.0"),
        Component("OpenSSL", ssl.OPENSSL_VERSION.split()[1], "Apache-2.0"),
        Component("SQLite", sqlite3.sqlite_version, "blessing"),
        Component("Lucide", ICONS_VERSION, "ISC"),
    )
    return sorted([*found.values(), *others], key=lambda component: component.name.lower())


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
    """Return a name normalized for comparison: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _name_licence(installed: Distribution) -> str:
    metadata = installed.metadata
    for key in ("License-Expression", "License"):
        first = metadata[key].strip().partition("\n")[0] if key in metadata else ""
        if 0 < len(first) <= _LONGEST:
            return first
    kinds = (kind for kind in metadata.get_all("Classifier") or () if kind.startswith(_CLASSIFIER))
    return next((kind.removeprefix(_CLASSIFIER) for kind in kinds), "")


UNKNOWN: Final = "unknown"
MISSING: Final = "not installed"
_LIBSSH: Final = "ssh-python"
_PACKAGES: Final = (
    "requests",
    "urllib3",
    "truststore",
    "paramiko",
    "bcrypt",
    "PyNaCl",
    "keyring",
)


class Library(NamedTuple):
    """One library and its `use`; `within` is the package that contains it, or empty."""

    name: str
    version: str
    within: str = ""
    use: str = ""


def describe_versions() -> str:
    """Return a line for the program and each package with its libraries, for a report."""
    found = list(list_libraries())
    lines = [f"mydata-like {__version__}"]
    for package in (one for one in found if not one.within):
        inner = [f"{one.name} {one.version}" for one in found if one.within == package.name]
        added = f" with {', '.join(inner)}" if inner else ""
        lines.append(f"{package.name} {package.version}{added}")
    return "\n".join(lines) + "\n"


def list_libraries() -> Iterator[Library]:
    """Yield the libraries that security depends on; a version may be `UNKNOWN`."""
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    yield Library("Python", python)
    yield Library("OpenSSL", _number(ssl.OPENSSL_VERSION), "Python", "HTTPS")
    yield Library("SQLite", sqlite3.sqlite_version, "Python", "ledger")
    qt = _version("PySide6-Essentials")
    yield Library("PySide6-Essentials", qt)
    yield Library("Qt", qt, "PySide6-Essentials", "window")  # both have the same version number
    yield Library(_LIBSSH, _version(_LIBSSH))
    yield Library("libssh", _query(_libssh), _LIBSSH, "SSH")
    yield Library("OpenSSL", _query(_openssl_of_libssh), _LIBSSH, "SSH")
    yield Library("cryptography", _version("cryptography"))
    yield Library(
        "OpenSSL", _query(_openssl_of_cryptography), "cryptography", "keys; SSH by paramiko"
    )
    yield Library("zstandard", _version("zstandard"))
    yield Library("zstd", _query(_zstd), "zstandard", "compression")
    for name in _PACKAGES:
        yield Library(name, _version(name))


def _version(package: str) -> str:
    installed = _find(package)
    return installed.version if installed else MISSING


def _query(question: Callable[[], str]) -> str:
    """Return the result of a library function; some builds lack it."""
    try:
        return question()
    except ModuleNotFoundError:
        return MISSING
    except (ImportError, AttributeError, OSError, ValueError):
        return UNKNOWN


def _number(text: str) -> str:
    """Return number and date from OpenSSL's version text: `OpenSSL 3.4.0 22 Oct 2024`."""
    return text.removeprefix("OpenSSL ").strip()


def _libssh() -> str:
    # The window imports this module without SSH.
    from mydata_like.ssh.libssh_version import ask_libssh

    return ask_libssh("ssh_version").partition("/")[0]


def _openssl_of_libssh() -> str:
    from mydata_like.ssh.libssh_version import ask_libssh  # as above

    return _number(ask_libssh("OpenSSL_version"))


def _openssl_of_cryptography() -> str:
    # The window imports this module without this library.
    from cryptography.hazmat.backends.openssl import backend

    return _number(backend.openssl_version_text())


def _zstd() -> str:
    import zstandard  # imported here for the same reason

    return ".".join(map(str, zstandard.ZSTD_VERSION))
