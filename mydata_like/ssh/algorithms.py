"""The SSH algorithms that are offered: modern ones only.

No CBC, no SHA-1, no MD5, no DSA. Each stack offers those of them that it has.
"""

from typing import Final

CIPHERS: Final = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes256-ctr",
    "chacha20-poly1305@openssh.com",
)
KEY_EXCHANGES: Final = (
    "mlkem768x25519-sha256",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group14-sha256",
)
MACS: Final = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
)
HOST_KEYS: Final = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_OF_RSA: Final = ("rsa-sha2-512", "rsa-sha2-256")


def signatures(key_type: str) -> tuple[str, ...]:
    """Return the algorithms by which a server proves to have a host key of this type."""
    if key_type == "ssh-rsa":
        return _OF_RSA
    return (key_type,) if key_type in HOST_KEYS else ()


def prefer(key_types: tuple[str, ...]) -> tuple[str, ...]:
    """Return all host key algorithms, those of the given types first."""
    first = tuple(name for key_type in key_types for name in signatures(key_type))
    return tuple(dict.fromkeys(first + HOST_KEYS))
