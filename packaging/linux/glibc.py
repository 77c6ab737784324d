"""Which glibc a bundle needs: `python glibc.py BUNDLE` lowers that where it can, and prints it.

The libraries of Qt's wheels need glibc 2.34. Python's library, compiled on a newer system, needs
2.35 for one function: `hypot` has two versions, which differ only in how the older one reports
errors to programs of System V. The older one is as good, and all systems have it.
"""

import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

MOST: Final = (2, 34)
OLD, NEW = "GLIBC_2.2.5", "GLIBC_2.35"  # versions of hypot
# Flags, index and place of the name of a version that is needed, after the hash of its name.
REST: Final = 8


def hash_name(name: str) -> bytes:
    """Return the hash of a version's name, as it is in ELF files."""
    value = 0
    for letter in name.encode():
        value = (value << 4) + letter
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return struct.pack("<I", value)


def list_functions(file: Path) -> list[tuple[tuple[int, ...], str]]:
    """Return version and name of all functions of glibc that a file needs."""
    words = ("objdump", "--dynamic-syms", str(file))
    found = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    pairs = re.findall(r"\*UND\*.*\(?GLIBC_([\d.]+)\)? +(\w+)$", found, re.MULTILINE)
    return [(tuple(map(int, version.split("."))), name) for version, name in pairs]


def lower(file: Path) -> None:
    """Let a file take the older version of hypot, if nothing else needs the newer glibc."""
    newer = {name for version, name in list_functions(file) if version > MOST}
    if newer != {"hypot"}:
        return
    data = bytearray(file.read_bytes())
    places = [data.find(hash_name(name)) for name in (NEW, OLD)]
    if data.count(hash_name(NEW)) != 1 or min(places) < 0:
        sys.exit(f"{file}: not the structure that is expected")
    new, old = places
    data[new : new + 4] = hash_name(OLD)
    data[new + REST : new + REST + 4] = data[old + REST : old + REST + 4]
    file.write_bytes(data)


def find_needed(bundle: Path) -> str:
    """Return the version of glibc that a bundle needs, such as "2.34"."""
    files = [file for file in bundle.rglob("*") if file.is_file() and not file.is_symlink()]
    needed = {version: file for file in files for version, _ in list_functions(file)}
    highest = max(needed)
    if highest > MOST:
        sys.exit(f"{needed[highest]} needs glibc {highest}, newer than {MOST}")
    return ".".join(map(str, highest))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for library in folder.rglob("libpython*.so*"):
        lower(library)
    print("glibc", find_needed(folder))
