"""The window and what belongs to it: the only room that knows Qt."""

import ctypes
import sys

if sys.version_info < (3, 12) and sys.implementation.name == "cpython":
    # Before Python 3.12 None and True are counted as everything else is, and PySide6 6.12.0 takes
    # one reference too many with each call that returns nothing, and with each signal: after some
    # thousands of them the process ends with "deallocating None". So they are given more
    # references than can ever be taken. The count is the first field of every object. Drop this
    # with Python 3.11.
    for _constant in (None, True, False):
        ctypes.c_ssize_t.from_address(id(_constant)).value += 1 << 60
