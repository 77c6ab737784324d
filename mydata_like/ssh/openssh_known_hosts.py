"""Host keys in the known_hosts files of OpenSSH (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""

import base64
import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import load_limited
from mydata_like.ssh.keys import STANDARD_PORT, PublicKey
from mydata_like.ssh.openssh_config import INVALID, matches_pattern

_LARGEST: Final = 64 * 1024 * 1024  # bytes of one file
_HASHED: Final = "|1|"  # HMAC-SHA1 of the name, with a salt as its key


class HostKeys(NamedTuple):
    """The keys of a host and port.

    `portless` are those of the host without this port, which OpenSSH trusts if there are no
    others. No `revoked` key is among the others.
    """

    name: str  # as the files have it
    keys: tuple[PublicKey, ...] = ()
    portless: tuple[PublicKey, ...] = ()
    revoked: tuple[PublicKey, ...] = ()


def load_host_keys(files: Iterable[Path], host: str, port: int, alias: str = "") -> HostKeys:
    """Return the keys of a host in all files, of which some may be missing.

    An `alias` (HostKeyAlias) is looked up instead of host and port. Certificate authorities are not
    trusted, since certificates of hosts are not checked. Raises `SettingsError` if a file cannot be
    read.
    """
    plain = (alias or host).lower()
    name = plain if alias or port == STANDARD_PORT else f"[{plain}]:{port}"
    found: dict[str, list[PublicKey]] = {"": [], "portless": [], "@revoked": []}
    for file in files:
        for marker, patterns, key in _read_keys(file):
            ours, bare = (_names(patterns, each) for each in (name, plain))
            if marker == "@revoked":
                if ours or bare:
                    found[marker].append(key)
            elif not marker and (ours or bare):
                found["" if ours else "portless"].append(key)
    revoked = dict.fromkeys(found["@revoked"])
    keys, portless = (
        tuple(key for key in dict.fromkeys(found[kind]) if key not in revoked)
        for kind in ("", "portless")
    )
    return HostKeys(name, keys, portless, tuple(revoked))


def _read_keys(file: Path) -> Iterator[tuple[str, list[str], PublicKey]]:
    """Yield marker, names and key of each valid line."""
    if str(file) == os.devnull:
        return
    try:
        content = load_limited(file, _LARGEST)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"The known hosts file {file} cannot be read: {reason}.",
            hint="It may name keys that must not be trusted. Fix its permissions.",
            code=INVALID,
        ) from error
    for line in content.decode("utf-8", "replace").split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        marker, rest = "", line.strip()
        if rest.startswith("@"):
            marker, _, rest = rest.partition(" ")
        names, *fields = rest.split(None, 1)
        try:
            yield marker.lower(), names.split(","), PublicKey.parse("".join(fields))
        except ValueError:  # an invalid line, which trusts and revokes nothing
            continue


def _names(patterns: list[str], name: str) -> bool:
    """Return whether the names of a line, which may be hashed or patterns, are of this host."""
    negated = [it[1:] for it in patterns if it.startswith("!")]
    if any(matches_pattern(name, it.lower()) for it in negated):
        return False
    return any(
        _is_hash_of(it, name) if it.startswith(_HASHED) else matches_pattern(name, it.lower())
        for it in patterns
        if not it.startswith("!")
    )


def _is_hash_of(text: str, name: str) -> bool:
    salt, _, digest = text.removeprefix(_HASHED).partition("|")
    try:
        computed = hmac.digest(base64.b64decode(salt), name.encode(), hashlib.sha1)
        return hmac.compare_digest(computed, base64.b64decode(digest))
    except ValueError:
        return False
