"""Which host keys are trusted: pinned fingerprints, or our own file of known hosts.

A key is never accepted silently: an unknown or a changed one raises `HostKeyError`. The file
has OpenSSH's form, one `[host]:port type base64` a line, and is ours alone.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mydata_like.core.errors import HostKeyError
from mydata_like.settings.atomic_write import (
    PRIVATE_FILE,
    make_private_folder,
    read_plain,
    require_plain,
    write_private,
)
from mydata_like.ssh.keys import PublicKey
from mydata_like.ssh.session import Endpoint

if TYPE_CHECKING:
    from filelock import FileLock

UNKNOWN: Final = "host-key.unknown"
CHANGED: Final = "host-key.changed"
_LARGEST: Final = 1024 * 1024  # characters that are looked at: some 5,000 keys
_PATIENCE: Final = 10.0  # seconds to wait for another process that writes the file


def check_host_key(endpoint: Endpoint, key: PublicKey) -> None:
    """Return if this is the host's key; raises `HostKeyError` if that is not certain."""
    if endpoint.host_keys:
        trusted = pinned_fingerprints(endpoint)
    else:
        trusted = tuple(known.fingerprint for known in known_keys(endpoint))
    if key.fingerprint in (*trusted, *endpoint.also_trusted):
        return
    raise _changed(endpoint, key, trusted) if trusted else _unknown(endpoint, key)


def pinned_fingerprints(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the fingerprints that are pinned; a whole public key stands for its own."""
    return tuple(_fingerprint(text) for text in endpoint.host_keys)


def preferred_types(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the types of keys that are known of this host, to be asked for first."""
    if endpoint.host_keys:
        return ()
    return tuple(dict.fromkeys(key.type for key in known_keys(endpoint)))


def known_keys(endpoint: Endpoint) -> list[PublicKey]:
    """Return the keys that the file of known hosts has for this host and port."""
    try:
        require_plain(endpoint.known_hosts)
        file = endpoint.known_hosts.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    names = {_name(endpoint.host, endpoint.port)}
    if endpoint.port == 22:
        names.add(endpoint.host.lower())
    with file:
        return list(_matching(file.read(_LARGEST).splitlines(), names))


def accept_host_key(known_hosts: Path, host: str, port: int, key: PublicKey) -> None:
    """Trust this key for this host and port from now on; others already trusted stay."""
    make_private_folder(known_hosts.parent)
    line = f"{_name(host, port)} {key.line()}\n"
    with _locked(known_hosts):
        before = _read(known_hosts)
        if line not in before.splitlines(keepends=True):
            _write(known_hosts, before + line)


def forget_host_keys(known_hosts: Path, host: str, port: int) -> None:
    """Trust no key of this host and port any more."""
    with _locked(known_hosts):
        before = _read(known_hosts).splitlines(keepends=True)
        name = _name(host, port)
        _write(known_hosts, "".join(line for line in before if line.split(None, 1)[:1] != [name]))


def _name(host: str, port: int) -> str:
    return f"[{host.lower()}]:{port}"


def _matching(lines: Iterable[str], names: set[str]) -> Iterable[PublicKey]:
    for line in lines:
        hosts, _, rest = line.partition(" ")
        if line.startswith(("#", "@")) or not names.intersection(hosts.lower().split(",")):
            continue
        with suppress(ValueError):  # a torn line trusts nobody
            yield PublicKey.parse(rest)


def _fingerprint(text: str) -> str:
    if text.startswith("SHA256:"):
        return text.rstrip("=")
    try:
        return PublicKey.parse(text).fingerprint
    except ValueError:
        return text  # matches no key, so nothing is trusted for it


def _read(path: Path) -> str:
    try:
        text = read_plain(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
    return text if text.endswith("\n") or not text else text + "\n"


def _locked(known_hosts: Path) -> "FileLock":
    # Channel workers only read the file, and start a good tenth faster without this.
    from filelock import FileLock

    file = known_hosts.with_name(known_hosts.name + ".lock")
    require_plain(file)
    return FileLock(file, timeout=_PATIENCE, mode=PRIVATE_FILE)


def _write(path: Path, text: str) -> None:
    write_private(path, text.encode("utf-8", "surrogateescape"))


def _unknown(endpoint: Endpoint, key: PublicKey) -> HostKeyError:
    return HostKeyError(
        f"The key of {endpoint.host}, port {endpoint.port}, is not known yet. "
        f"Its fingerprint is {key.fingerprint} ({key.type}).",
        hint="Ask your facility whether it is theirs; if so, trust it with "
        f"--accept-host-key {key.fingerprint}",
        code=UNKNOWN,
    )


def _changed(endpoint: Endpoint, key: PublicKey, trusted: tuple[str, ...]) -> HostKeyError:
    pinned = " Keys in transfer.host_keys count alone, without those that the server names."
    return HostKeyError(
        f"{endpoint.host}, port {endpoint.port}, showed another key than the one known: "
        f"{key.fingerprint} ({key.type}) instead of {' or '.join(trusted)}.",
        hint="Somebody may be posing as the staging host. Nothing was sent. Ask your facility "
        f"before the old key is forgotten.{pinned if endpoint.host_keys else ''}",
        code=CHANGED,
    )
