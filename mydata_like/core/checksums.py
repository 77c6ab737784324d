"""The algorithms of checksums."""

import hashlib
from enum import Enum


class Algorithm(Enum):
    """How a checksum is computed; the value is its name in options and files.

    The length of a checksum tells which one it is of: MD5 has 32 hexadecimal digits, SHA-256 has
    64. So those of two algorithms are never equal.
    """

    MD5 = "md5"
    SHA256 = "sha256"

    @classmethod
    def of(cls, checksum: str) -> "Algorithm":
        """Return the algorithm of a checksum."""
        return cls.SHA256 if len(checksum) == cls.SHA256.digits else cls.MD5

    @property
    def digits(self) -> int:
        return 32 if self is Algorithm.MD5 else 64

    @property
    def label(self) -> str:
        """Its name in sentences."""
        return "MD5" if self is Algorithm.MD5 else "SHA-256"

    @property
    def program(self) -> str:
        """The usual program that computes it; its option -c compares files with a list."""
        return f"{self.value}sum"

    def hash(self, content: bytes = b"") -> "hashlib._Hash":
        """Return the checksum of some bytes, to which others may be added."""
        if self is Algorithm.MD5:
            return hashlib.md5(content, usedforsecurity=False)
        return hashlib.sha256(content)
