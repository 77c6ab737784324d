"""The window and what belongs to it: the only room that knows Qt."""

import ctypes
import sys

if sys.version_info < (3, 12) and sys.implementation.name == "cpython":
    # Before Python 3.12 None is counted like everything else, and each call of PySide6 6.12.0
    # that returns nothing takes one reference too many: after some thousand calls the process
    # ends with "deallocating None". So None is given more references than can ever be taken.
    # The count is the first field of every object. Drop this with Python 3.11.
    ctypes.c_ssize_t.from_address(id(None)).value += 1 << 60
