"""The key pair of the uploader, its fingerprints, and the known host keys."""

import base64
import hashlib
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mydata_like.core.errors import HostKeyError, SettingsError
from mydata_like.settings.atomic_write import (
    PRIVATE_FILE,
    load_limited,
    make_private_folder,
    read_plain,
    require_plain,
    sync_folder,
    write_private,
)
from mydata_like.ssh.session import Endpoint

if TYPE_CHECKING:
    from filelock import FileLock


_LARGEST = 1024 * 1024  # bytes of a key file
_MAGIC = b"openssh-key-v1\0"
# An Ed25519 key as `generate_key` writes it: unencrypted, consistent, without comment, padded.
_OURS = (
    rb"openssh-key-v1\0(?:\0\0\0\x04none){2}\0{4}\0\0\0\x01"
    rb"\0\0\0\x33(?P<public>\0\0\0\x0bssh-ed25519\0\0\0\x20(?P<point>.{32}))"
    rb"\0\0\0\x88(?P<check>.{4})(?P=check)(?P=public)\0\0\0\x40.{32}(?P=point)"
    rb"\0{4}\x01\x02\x03\x04\x05"
)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class PublicKey(NamedTuple):
    """A public key: its type (`ssh-ed25519`) and its blob in SSH's wire format."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """The fingerprint as current OpenSSH prints it: `SHA256:...`."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def md5_fingerprint(self) -> str:
        """The fingerprint of older tools: 16 pairs of hex digits with colons."""
        return hashlib.md5(self.blob, usedforsecurity=False).digest().hex(":")

    def line(self, comment: str = "") -> str:
        """Return the key as one line of an `authorized_keys` file, without newline."""
        return f"{self.type} {base64.b64encode(self.blob).decode()} {comment}".rstrip()

    @classmethod
    def parse(cls, line: str) -> "PublicKey":
        """Return the key in a line `type base64 [comment]`; raises ValueError."""
        fields = line.split(None, 2)
        if len(fields) < 2:
            raise ValueError("not a public key")
        blob = base64.b64decode(fields[1], validate=True)
        length = int.from_bytes(blob[:4], "big")
        if blob[4 : 4 + length] != fields[0].encode():
            raise ValueError("not a public key")
        return cls(fields[0], blob)


class KeyPair(NamedTuple):
    """A private key file and its public key; `text` is the file's content.

    It is not `whole` if the file only refers to a key on a device or in an agent.
    """

    path: Path
    text: bytes
    public: PublicKey
    whole: bool = True


def create_key(path: Path) -> KeyPair:
    """Create an Ed25519 key in a new, synced file that only its owner can read.

    Raises FileExistsError if the file exists.
    """
    # Imported here for the same reason as in `load_key`.
    from mydata_like.ssh.key_formats import generate_key

    text, line = generate_key()
    make_private_folder(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    sync_folder(path.parent)
    return KeyPair(path, text, PublicKey.parse(line))


def load_key(path: Path) -> KeyPair:
    """Return an existing key, in OpenSSH or PEM format, or a reference to a key stored elsewhere.

    A reference is the file of a key on a device (FIDO), or the public key of an agent's key. Raises
    `SettingsError` if the file is missing, readable by others, or not a usable key.
    """
    require_plain(path)
    try:
        with path.open("rb") as file:
            found, text = os.fstat(file.fileno()), file.read(_LARGEST)
    except OSError as error:
        raise SettingsError(
            f"The private key {path} cannot be read: {error.strerror}.",
            hint="Check the private key in the transfer settings.",
            code="key.unreadable",
        ) from error
    if b"PRIVATE KEY" not in text:
        with suppress(ValueError):  # of a key that an agent has
            return KeyPair(path, text, PublicKey.parse(text.decode("ascii")), whole=False)
    if os.name == "posix" and found.st_mode & _OTHERS:
        raise SettingsError(
            f"The private key {path} can be read by other users of this computer.",
            hint=f"Restrict its permissions: chmod 600 {path}",
            code="key.exposed",
        )
    return parse_key(path, text)


def parse_key(path: Path, text: bytes) -> KeyPair:
    """Return the private key in the content of its file; raises `SettingsError`."""
    content = _decode_openssh(text)
    public = _parse_public(content)
    if public and public.type.startswith("sk-"):
        return KeyPair(path, text, public, whole=False)
    if ours := re.fullmatch(_OURS, content, re.DOTALL):
        return KeyPair(path, text, PublicKey("ssh-ed25519", ours["public"]))
    # Imported late: this takes more than a tenth of the start of a channel worker.
    from mydata_like.ssh.key_formats import read_key

    return KeyPair(path, text, PublicKey.parse(read_key(path, text)))


def ensure_key(path: Path) -> KeyPair:
    """Return the key in this file, which is created if it does not exist."""
    if not path.exists():  # checked first: the import for creating a key is slow
        with suppress(FileExistsError):
            return create_key(path)
    return load_key(path)


def _decode_openssh(text: bytes) -> bytes:
    """Return the content of a file in OpenSSH's format (PROTOCOL.key); empty for others."""
    lines = text.strip().splitlines()
    if not lines or lines[0] != b"-----BEGIN OPENSSH PRIVATE KEY-----":
        return b""
    try:
        return base64.b64decode(b"".join(lines[1:-1]))
    except ValueError:
        return b""


def find_public_key(path: Path) -> PublicKey | None:
    """Return the public key of a private key file that cannot be used, if it is known.

    It is in a file beside it (`.pub`), or unencrypted in the file itself (PROTOCOL.key).
    """
    for file in (path.with_name(path.name + ".pub"), path):
        with suppress(OSError, ValueError, SettingsError):
            text = load_limited(file, _LARGEST)
            if public := _parse_public(_decode_openssh(text)):
                return public
            return PublicKey.parse(text.decode("ascii"))
    return None


def _parse_public(content: bytes) -> PublicKey | None:
    """Return the public key in the content of a private key file."""
    try:
        _cipher, rest = split_string(content.removeprefix(_MAGIC))
        _derivation, rest = split_string(rest)
        _options, rest = split_string(rest)
        blob, _ = split_string(rest[4:])  # after the number of keys
        kind = split_string(blob)[0].decode("ascii")
    except ValueError:
        return None
    return PublicKey(kind, blob) if kind else None


def split_string(data: bytes) -> tuple[bytes, bytes]:
    """Return the first string of data in SSH's wire format, and the rest; raises ValueError."""
    length = int.from_bytes(data[:4], "big")
    if 4 + length > len(data):
        raise ValueError("a truncated key")
    return data[4 : 4 + length], data[4 + length :]


STANDARD_PORT: Final = 22  # known hosts files may leave it out
UNKNOWN: Final = "host-key.unknown"
CHANGED: Final = "host-key.changed"
REVOKED: Final = "host-key.revoked"
_LARGEST_KNOWN_HOSTS: Final = 1024 * 1024  # characters that are read: about 5,000 keys
_LOCK_TIMEOUT: Final = 10.0  # seconds to wait for another process that writes the file


def check_host_key(endpoint: Endpoint, key: PublicKey) -> None:
    """Check that this is the host's key; raises `HostKeyError` if that is not certain."""
    if is_trusted(endpoint, key):
        return
    if key.fingerprint in endpoint.revoked:
        raise HostKeyError(
            f"The key of {endpoint.host}, port {endpoint.port}, was revoked: {key.fingerprint} "
            f"({key.type}).",
            hint="Your known_hosts file names it as @revoked: somebody else may have it. Nothing "
            "was sent to the host. Ask its administrator.",
            code=REVOKED,
        )
    accept = f"--accept-host-key {key.fingerprint}"
    trusted = trusted_fingerprints(endpoint)
    if not trusted:
        raise HostKeyError(
            f"The key of {endpoint.host}, port {endpoint.port}, is not known yet. "
            f"Its fingerprint is {key.fingerprint} ({key.type}).",
            hint=f"Ask your facility whether this is its key; if so, trust it with {accept}"
            if endpoint.user_known_hosts is None
            else "Ask the host's administrator whether this is its key; if so, run the same "
            f"command with {accept}",
            code=UNKNOWN,
        )
    raise HostKeyError(
        f"{endpoint.host}, port {endpoint.port}, has a different key than the known one: "
        f"{key.fingerprint} ({key.type}) instead of {' or '.join(trusted)}.",
        hint=_explain_change(endpoint, accept),
        code=CHANGED,
    )


def _explain_change(endpoint: Endpoint, accept: str) -> str:
    """Return the hint for a host with another key than the known one."""
    users = endpoint.user_known_hosts
    if users:
        fix = f"run the same command with {accept}"
        if endpoint.host_keys:
            fix = f'remove the old one with: ssh-keygen -R "{users.name}" -f "{users.file}"'
        return (
            "Another computer may be impersonating the host. Nothing was sent to it. Ask its "
            f"administrator. If the key was replaced, {fix}"
        )
    unpin = ""
    if endpoint.host_keys and endpoint.pinned_by_server:
        unpin = "ask the administrator of the server to correct host_keys of the storage box, or "
    elif endpoint.host_keys:
        unpin = "replace the old one in transfer.host_keys or --accept-host-key, or "
    return (
        "Another computer may be impersonating the staging host. Nothing was sent to it. Ask "
        f"your facility. If it has replaced the key, {unpin}trust the new one with: mydata-like "
        f"register {accept}"
    )


def is_trusted(endpoint: Endpoint, key: PublicKey) -> bool:
    """Return whether this is certainly the host's key."""
    if key.fingerprint in endpoint.revoked:
        return False
    return key.fingerprint in (*trusted_fingerprints(endpoint), *endpoint.also_trusted)


def trusted_fingerprints(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the pinned fingerprints and those accepted instead of them; else the known ones."""
    mark = pin_mark(endpoint)
    known = (key for key, comment in _known_lines(endpoint) if not mark or comment == mark)
    return (*pinned_fingerprints(endpoint), *(key.fingerprint for key in known))


def pin_mark(endpoint: Endpoint) -> str:
    """Return the comment of a key that is accepted instead of the pinned ones; empty without any.

    It names exactly these pinned keys and their source, so that the key is not trusted any more
    once others are pinned. It is a digest because the server's text may be of any form.
    """
    if not endpoint.host_keys:
        return ""
    pinned = "\n".join(sorted(set(pinned_fingerprints(endpoint))))
    digest = hashlib.sha256(pinned.encode(errors="backslashreplace")).hexdigest()
    return f"instead-of-{'server' if endpoint.pinned_by_server else 'settings'}:{digest}"


def pinned_fingerprints(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the pinned fingerprints; a whole public key counts as its fingerprint."""
    found = []
    for text in endpoint.host_keys:
        if text.startswith("SHA256:"):
            found.append(text.rstrip("="))
            continue
        try:
            found.append(PublicKey.parse(text).fingerprint)
        except ValueError:
            found.append(text)  # matches no key, so nothing is trusted because of it
    return tuple(found)


def preferred_types(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the known key types of this host, which are requested first.

    That of a pinned fingerprint is unknown.
    """
    if endpoint.host_keys:
        return tuple(text.partition(" ")[0] for text in endpoint.host_keys if " " in text)
    return tuple(dict.fromkeys(key.type for key in known_keys(endpoint)))


def known_keys(endpoint: Endpoint) -> list[PublicKey]:
    """Return the keys of this host and port in the known hosts file."""
    return [key for key, _ in _known_lines(endpoint)]


def _known_lines(endpoint: Endpoint) -> list[tuple[PublicKey, str]]:
    """Return the keys of this host and port in the known hosts file, with their comments."""
    try:
        require_plain(endpoint.known_hosts)
        file = endpoint.known_hosts.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    names = {_name(endpoint.host, endpoint.port)}
    if endpoint.port == STANDARD_PORT:
        names.add(endpoint.host.lower())
    with file:
        lines = file.read(_LARGEST_KNOWN_HOSTS).splitlines()
    found = []
    for line in lines:
        hosts, _, rest = line.partition(" ")
        if line.startswith(("#", "@")) or not names.intersection(hosts.lower().split(",")):
            continue
        with suppress(ValueError):  # ignore an invalid line
            comment = "".join(rest.split(None, 2)[2:]).strip()
            found.append((PublicKey.parse(rest), comment))
    return found


def accept_host_key(
    known_hosts: Path, host: str, port: int, key: PublicKey, *, mark: str = ""
) -> None:
    """Trust this key for this host and port from now on, in addition to trusted ones.

    Where keys are pinned, that needs their `pin_mark`.
    """
    make_private_folder(known_hosts.parent)
    line = f"{_name(host, port)} {key.line(mark)}\n"
    with _locked(known_hosts):
        before = _read(known_hosts)
        if line not in before.splitlines(keepends=True):
            _write(known_hosts, before + line)


def forget_host_keys(known_hosts: Path, host: str, port: int | None = None) -> int:
    """Remove all trusted keys of this host, on one port or on all; return their number.

    Lines that name other hosts as well are removed too.
    """
    with _locked(known_hosts):
        lines = _read(known_hosts).splitlines(keepends=True)
        kept = [line for line in lines if not _is_of(line, host.lower(), port)]
        if len(kept) < len(lines):
            _write(known_hosts, "".join(kept))
    return len(lines) - len(kept)


def _is_of(line: str, host: str, port: int | None) -> bool:
    if line.startswith(("#", "@")):
        return False
    names = line.partition(" ")[0].lower().split(",")
    if port is not None:
        return bool({_name(host, port), host if port == STANDARD_PORT else ""}.intersection(names))
    return any(name == host or name.startswith(f"[{host}]:") for name in names)


def _name(host: str, port: int) -> str:
    return f"[{host.lower()}]:{port}"


def _read(path: Path) -> str:
    try:
        text = read_plain(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
    return text if text.endswith("\n") or not text else text + "\n"


def _locked(known_hosts: Path) -> "FileLock":
    # Channel workers only read the file, and start more than a tenth faster without this import.
    from filelock import FileLock

    file = known_hosts.with_name(known_hosts.name + ".lock")
    require_plain(file)
    return FileLock(file, timeout=_LOCK_TIMEOUT, mode=PRIVATE_FILE)


def _write(path: Path, text: str) -> None:
    write_private(path, text.encode("utf-8", "surrogateescape"))
