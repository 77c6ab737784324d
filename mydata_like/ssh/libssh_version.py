"""The version of the loaded libssh, and the ciphers with which it may receive."""

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)").match
_GCM: Final = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")


def ask_libssh(name: str) -> str:
    """Return the version text of a function of libssh or of one of its dependencies.

    The package has neither. A name that is looked up in its extension module is found in all
    libraries that the module links to; Windows needs the library itself. Raises `ImportError`,
    `OSError` or `ValueError`.
    """
    # Work-around: Python 3.11 raises _DeadlockError if two threads begin with different modules of
    # some that import each other; `session_libssh` begins with ssh.channel.
    # https://github.com/python/cpython/issues/82276. Remove when that is fixed.
    import_module(".channel", "ssh")
    extension = Path(str(import_module("ssh.session").__file__))
    near = (extension.parent, extension.parent.parent / "ssh_python.libs")
    for file in (extension, *(found for folder in near for found in folder.glob("*.dll"))):
        ask = getattr(ctypes.CDLL(str(file)), name, None)
        if ask is not None:
            ask.restype, ask.argtypes = ctypes.c_char_p, (ctypes.c_int,)
            return str(ask(0).decode("ascii"))
    raise ValueError(f"there is no {name}")


# Work-around: libssh 0.11.3 and 0.12.0 accept a changed AES-GCM packet, since they do not check the
# tags of what they receive (CVE-2026-59847).
# https://gitlab.com/libssh/libssh-mirror/-/tags/libssh-0.11.5
# Remove when all platforms have an ssh-python with libssh 0.11.5, or 0.12.1, and it is required.
@cache
def checks_gcm() -> bool:
    """Return whether the loaded libssh checks AES-GCM packets; an unknown version does not."""
    try:
        return is_fixed(ask_libssh("ssh_version"))
    except (ImportError, OSError, ValueError):
        return False


def is_fixed(version: str) -> bool:
    """Return whether this version of libssh checks the tags of AES-GCM packets."""
    found = _VERSION(version)
    numbers = tuple(map(int, found.groups())) if found else ()
    return numbers >= (0, 11, 5) and numbers != (0, 12, 0)


def may_receive(ciphers: Sequence[str]) -> bool:
    """Return whether the loaded libssh may receive with any of these ciphers."""
    return not all(name in _GCM for name in ciphers) or checks_gcm()


def select_inward(ciphers: Sequence[str]) -> tuple[str, ...]:
    """Return those of the ciphers with which the loaded libssh may receive, in their order of use.

    With AES-CTR each packet has a MAC. ChaCha20-Poly1305 is last: without strict key exchange, an
    attacker can remove packets from its beginning (CVE-2023-48795).
    """
    if checks_gcm():
        return tuple(ciphers)
    checked = (name for name in ciphers if name not in _GCM)
    return tuple(sorted(checked, key=lambda name: name.startswith("chacha20")))
