"""The SSH ciphers that are offered, in order of preference, and those that the settings allow."""

from typing import Final

CIPHERS: Final = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes256-ctr",
    "chacha20-poly1305@openssh.com",
)
ALLOWED: Final = (*CIPHERS, "aes192-ctr")
