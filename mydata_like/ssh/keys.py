"""The uploader's key pair: made here, kept owner-only, shown as public key and fingerprints."""

import base64
import hashlib
import os
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from mydata_like.core.errors import SettingsError

_PrivateKey = ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
_LARGEST = 1024 * 1024  # bytes of a key file
_MAGIC = b"openssh-key-v1\0"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class PublicKey(NamedTuple):
    """A public key: its type (`ssh-ed25519`) and its blob as it goes over the wire."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """The fingerprint as OpenSSH writes it today: `SHA256:...`."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def md5_fingerprint(self) -> str:
        """The fingerprint of older tools: 16 pairs of hex digits with colons."""
        return hashlib.md5(self.blob, usedforsecurity=False).digest().hex(":")

    def line(self, comment: str = "") -> str:
        """Return the key as one line of an `authorized_keys` file, without its end."""
        return f"{self.type} {base64.b64encode(self.blob).decode()} {comment}".rstrip()

    @classmethod
    def parse(cls, line: str) -> "PublicKey":
        """Return the key of a line `type base64 [comment]`; raises ValueError."""
        fields = line.split(None, 2)
        if len(fields) < 2:
            raise ValueError("not a public key")
        blob = base64.b64decode(fields[1], validate=True)
        length = int.from_bytes(blob[:4], "big")
        if blob[4 : 4 + length] != fields[0].encode():
            raise ValueError("not a public key")
        return cls(fields[0], blob)


class KeyPair(NamedTuple):
    """A private key in a file, and its public half; `text` is the file's content.

    It is not `whole` where the file only names a key that a device or an agent keeps.
    """

    path: Path
    text: bytes
    public: PublicKey
    whole: bool = True


def create_key(path: Path) -> KeyPair:
    """Make an Ed25519 key in a new file, durable and readable by its owner only.

    Raises FileExistsError rather than touch an existing file.
    """
    key = ed25519.Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    _make_private(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    _sync_directory(path.parent)
    return KeyPair(path, text, _public(key))


def load_key(path: Path) -> KeyPair:
    """Return an existing key, in OpenSSH's or PEM form, or what stands for one kept elsewhere.

    That is the file of a key on a device (FIDO), or of the public half of an agent's key.
    Raises `SettingsError` where it is missing, readable by others, or no usable key.
    """
    try:
        with path.open("rb") as file:
            found, text = os.fstat(file.fileno()), file.read(_LARGEST)
    except OSError as error:
        raise SettingsError(
            f"The private key {path} cannot be read: {error.strerror}.",
            hint="Check the private key in the transfer settings.",
            code="key.unreadable",
        ) from error
    if public := _parse_public(text):
        return KeyPair(path, text, public, whole=False)
    _check_private(path, found)
    if public := _parse_device(text):
        return KeyPair(path, text, public, whole=False)
    return KeyPair(path, text, _public(_parse_private(path, text)))


def ensure_key(path: Path) -> KeyPair:
    """Return the key of this file, made now where there is none."""
    with suppress(FileExistsError):
        return create_key(path)
    return load_key(path)


def _parse_public(text: bytes) -> PublicKey | None:
    """Return the key of an agent that a file names by its public half."""
    if b"PRIVATE KEY" in text:
        return None
    try:
        return PublicKey.parse(text.decode("ascii"))
    except ValueError:
        return None


def _parse_device(text: bytes) -> PublicKey | None:
    """Return the key of a device that a file names, in OpenSSH's PROTOCOL.key."""
    lines = text.strip().splitlines()
    if not lines or lines[0] != b"-----BEGIN OPENSSH PRIVATE KEY-----":
        return None
    try:
        rest = base64.b64decode(b"".join(lines[1:-1])).removeprefix(_MAGIC)
        _cipher, rest = _split(rest)
        _derivation, rest = _split(rest)
        _options, rest = _split(rest)
        blob, _ = _split(rest[4:])  # after the number of keys
        kind = _split(blob)[0].decode("ascii")
    except (ValueError, struct.error):
        return None
    return PublicKey(kind, blob) if kind.startswith("sk-") else None


def _split(data: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from(">I", data)
    if 4 + length > len(data):
        raise ValueError("a key that was cut off")
    return data[4 : 4 + length], data[4 + length :]


def _parse_private(path: Path, text: bytes) -> _PrivateKey:
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in text else load_pem_private_key
    try:
        key = load(text, password=None)
    except TypeError as error:  # how cryptography says that there is a passphrase
        raise SettingsError(
            f"The private key {path} is protected by a passphrase.",
            hint="Uploads run unattended; use a key without a passphrase.",
            code="key.passphrase",
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unusable(path) from error
    if not isinstance(key, _PrivateKey):
        raise _unusable(path)
    return key


def _unusable(path: Path) -> SettingsError:
    return SettingsError(
        f"{path} holds no private key that can be used.",
        hint="Keys of the types Ed25519, ECDSA and RSA are understood.",
        code="key.unusable",
    )


def _public(key: _PrivateKey) -> PublicKey:
    text = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return PublicKey.parse(text.decode())


def _make_private(directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)


def _check_private(path: Path, found: os.stat_result) -> None:
    if os.name == "posix" and found.st_mode & _OTHERS:
        raise SettingsError(
            f"The private key {path} can be read by other users of this computer.",
            hint=f"Take the rights from them: chmod 600 {path}",
            code="key.exposed",
        )


def _sync_directory(directory: Path) -> None:
    """Make a new name durable; Windows has no such call, and needs none."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
