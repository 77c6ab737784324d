"""The versions of what security depends on, as they are at work here, not as they were wished for.

Some libraries bring others along: two packages here hold an OpenSSL of their own, which no update
of the system replaces.
"""

import ctypes
import platform
import sqlite3
import ssl
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like import __version__

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
    """One library; `within` is the package that brings it along, or empty, `use` what it is for."""

    name: str
    version: str
    within: str = ""
    use: str = ""


def list_libraries() -> list[Library]:
    """Return the libraries on which safety depends; what cannot be asked is `UNKNOWN`."""
    return list(_find_libraries())


def describe_versions() -> str:
    """Return a line for the program and each package with what it brings, for a report."""
    found = list_libraries()
    lines = [f"mydata-like {__version__}"]
    for package in (one for one in found if not one.within):
        inner = [f"{one.name} {one.version}" for one in found if one.within == package.name]
        added = f" with {', '.join(inner)}" if inner else ""
        lines.append(f"{package.name} {package.version}{added}")
    return "\n".join(lines) + "\n"


def _find_libraries() -> Iterator[Library]:
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    yield Library("Python", python)
    yield Library("OpenSSL", _number(ssl.OPENSSL_VERSION), "Python", "HTTPS")
    yield Library("SQLite", sqlite3.sqlite_version, "Python", "ledger")
    qt = _version("PySide6-Essentials")
    yield Library("PySide6-Essentials", qt)
    yield Library("Qt", qt, "PySide6-Essentials", "window")  # the two are numbered alike
    yield Library(_LIBSSH, _version(_LIBSSH))
    yield Library("libssh", _ask(_libssh), _LIBSSH, "SSH")
    yield Library("OpenSSL", _ask(_openssl_of_libssh), _LIBSSH, "SSH")
    yield Library("cryptography", _version("cryptography"))
    yield Library(
        "OpenSSL", _ask(_openssl_of_cryptography), "cryptography", "keys; SSH by paramiko"
    )
    yield Library("zstandard", _version("zstandard"))
    yield Library("zstd", _ask(_zstd), "zstandard", "compression")
    for name in _PACKAGES:
        yield Library(name, _version(name))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return MISSING


def _ask(question: Callable[[], str]) -> str:
    """Return an answer of a library; another build of it may lack what is asked for."""
    try:
        return question()
    except ModuleNotFoundError:
        return MISSING
    except (ImportError, AttributeError, OSError, ValueError):
        return UNKNOWN


def _number(told: str) -> str:
    """Return number and date of what OpenSSL calls itself: `OpenSSL 3.4.0 22 Oct 2024`."""
    return told.removeprefix("OpenSSL ").strip()


def _libssh() -> str:
    return _call_libssh("ssh_version").partition("/")[0]


def _openssl_of_libssh() -> str:
    return _number(_call_libssh("OpenSSL_version"))


def _call_libssh(name: str) -> str:
    """Return what a function of libssh, or of what it stands on, says of its version.

    The package tells neither. Looked up in its extension module, a name is found in all
    libraries that this needs; Windows wants the library itself.
    """
    extension = Path(str(import_module("ssh.session").__file__))
    near = (extension.parent, extension.parent.parent / "ssh_python.libs")
    for file in (extension, *(found for folder in near for found in folder.glob("*.dll"))):
        ask = getattr(ctypes.CDLL(str(file)), name, None)
        if ask is not None:
            ask.restype, ask.argtypes = ctypes.c_char_p, (ctypes.c_int,)
            return str(ask(0).decode("ascii"))
    raise ValueError(f"there is no {name}")


def _openssl_of_cryptography() -> str:
    from cryptography.hazmat.backends.openssl import backend

    return _number(backend.openssl_version_text())


def _zstd() -> str:
    import zstandard

    return ".".join(map(str, zstandard.ZSTD_VERSION))
