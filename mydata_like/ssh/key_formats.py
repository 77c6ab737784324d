"""Generation of private keys, and reading keys of other programs, with `cryptography`.

Importing it takes as long as everything else that a channel worker needs, so `keys` imports this
module only if necessary.
"""

from pathlib import Path

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
from mydata_like.ssh.credentials import LOCKED

_PrivateKey = ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def generate_key() -> tuple[bytes, str]:
    """Return a new Ed25519 key as the content of its file, and its public key as a line."""
    key = ed25519.Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), _public(key)


def read_key(path: Path, text: bytes) -> str:
    """Return the public key of a private key as a line `type base64`.

    Raises `SettingsError` if the key is not usable.
    """
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in text else load_pem_private_key
    try:
        key = load(text, password=None)
    except TypeError as error:  # raised by cryptography if a passphrase is needed
        raise SettingsError(
            f"The private key {path} is protected by a passphrase.",
            hint="Uploads run unattended; use a key without a passphrase.",
            code=LOCKED,
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unusable(path) from error
    if not isinstance(key, _PrivateKey):
        raise _unusable(path)
    return _public(key)


def unlock_key(text: bytes, passphrase: str) -> bytes | None:
    """Return an encrypted private key without its passphrase, or None if that is wrong."""
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in text else load_pem_private_key
    try:
        key = load(text, password=passphrase.encode())
    except (ValueError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, _PrivateKey):
        return None
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def _unusable(path: Path) -> SettingsError:
    return SettingsError(
        f"{path} does not contain a usable private key.",
        hint="Keys of the types Ed25519, ECDSA and RSA are supported.",
        code="key.unusable",
    )


def _public(key: _PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
