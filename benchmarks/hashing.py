"""The processor time of MD5: one file at a time, and several files hashed together.

It prints CPU seconds for each GiB by the number of inputs, in pieces of 256 KiB, and those of
`hashlib`.
"""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mydata_like.core import hashing

PIECE = 256 * 1024
GIB = 2**30
INPUTS = (1, 2, 4, 8)


def main() -> int:
    """Measure one library; return exit code 1 if it cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hashing", description=__doc__)
    parser.add_argument(
        "library",
        nargs="?",
        type=Path,
        default=hashing.LIBRARY,
        help="another build of core/md5.c, such as one with -DMD5_PORTABLE",
    )
    path = parser.parse_args().library
    library = hashing.load(path.resolve())
    if library is None:
        sys.stderr.write(f"{path} is missing, or computes something else than hashlib.\n")
        return 1
    plain = hashlib.md5(usedforsecurity=False)
    print(f"hashlib        {measure(partial(plain.update, os.urandom(PIECE)), 1):.2f} s/GiB")
    for count in INPUTS:
        pieces = [(hashing.Checksum(library), os.urandom(PIECE)) for _ in range(count)]
        seconds = measure(partial(hashing.update_all, pieces), count)
        print(f"{count} together     {seconds:.2f} s/GiB")
    return 0


def measure(update: Callable[[], object], inputs: int) -> float:
    """Return the CPU seconds of updates with a GiB in all, a piece for each input at once."""
    began = time.process_time()
    for _ in range(GIB // (PIECE * inputs)):
        update()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
