"""Leaves out of a bundle the tables of Unicode's library (ICU) that Qt never asks for.

python packaging/linux/unicode.py BUNDLE writes its libicudata.so anew. Qt asks ICU for the order
and the case of letters, for encodings, and for what time zones are called; see what its library
imports (`nm -D libQt6Core.so.6`). Names of languages, countries and currencies are Qt's own, and
so is where lines break. Encodings and names of zones go as well, since no window of ours has any:
without its table an encoding is one that Qt does not know.
"""

import re
import struct
import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

NEEDLESS = re.compile(rb"[^/]+/((brkitr|curr|lang|rbnf|region|translit|unit|zone)/.*|.*\.cnv)")
MARK, BEFORE = b"CmnD", 12  # what all tables together begin with, after so many bytes
ALIGNED = 16
LIBRARY = """\
.section .rodata
.balign {aligned}
.globl {symbol}
.type {symbol}, @object
{symbol}:
.incbin "{tables}"
.size {symbol}, . - {symbol}
.section .note.GNU-stack, "", @progbits
"""


def trim(package: bytes) -> bytes:
    """Return a package of tables without those that are needless.

    A header begins with its own size. Counted from its end follow how many tables there are, the
    places of each one's name and content, the names, and the contents, all by name: `struct
    UDataOffsetTOC` in ucmndata.h of ICU's sources.
    """
    (size,) = struct.unpack_from("<H", package)
    header, body = package[:size], package[size:]
    (count,) = struct.unpack_from("<I", body)
    places = [*struct.iter_unpack("<II", body[4 : 4 + 8 * count]), (0, len(body))]
    tables = [
        (body[name : body.index(b"\0", name) + 1], body[begin:end])
        for (name, begin), (_, end) in pairwise(places)
    ]
    return header + assemble([table for table in tables if not NEEDLESS.match(table[0])])


def assemble(tables: list[tuple[bytes, bytes]]) -> bytes:
    """Return a package of tables, each a name with its end and a content, without the header."""
    names = [name for name, _ in tables]
    contents = [fill(content) for _, content in tables]
    first = 4 + 8 * len(tables)
    start = len(fill(bytes(first) + b"".join(names)))
    places = zip(
        accumulate(map(len, names), initial=first),
        accumulate(map(len, contents), initial=start),
        strict=True,
    )
    index = b"".join(struct.pack("<II", *place) for place in list(places)[:-1])
    return fill(struct.pack("<I", len(tables)) + index + b"".join(names)) + b"".join(contents)


def fill(content: bytes) -> bytes:
    """Return the content up to where the next one may begin."""
    return content + bytes(-len(content) % ALIGNED)


def write_library(package: bytes, target: Path) -> None:
    """Write a library in which ICU finds the package, by a name that has its version."""
    symbol = f"icudt{target.suffix[1:]}_dat"
    with TemporaryDirectory() as name:
        source, thing, tables = (Path(name) / file for file in ("icu.s", "icu.o", "icu.dat"))
        tables.write_bytes(package)
        source.write_text(LIBRARY.format(aligned=ALIGNED, symbol=symbol, tables=tables))
        subprocess.run(["as", "-o", thing, source], check=True)
        words = ("ld", "-shared", "-s", "-soname", target.name, "-o", target, thing)
        subprocess.run(words, check=True)


def main(bundle: Path) -> None:
    """Make the library of a bundle small."""
    for library in bundle.rglob("libicudata.so.*"):
        if not library.is_symlink():
            content = library.read_bytes()
            # Its end, behind the last table, does no harm: that table is a needless one.
            package = trim(content[content.index(MARK) - BEFORE :])
            library.unlink()
            write_library(package, library)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
