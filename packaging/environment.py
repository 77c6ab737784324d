"""The environment of a bundle; runs before the program."""

import os
import sys
from pathlib import Path

# Work-around: PyInstaller 6.22.3 has Linux look for libraries in the bundle first. Programs that we
# start, like a browser or a file manager, must find their own.
# https://github.com/pyinstaller/pyinstaller/issues/1759
# Remove when its loader leaves LD_LIBRARY_PATH alone.
os.environ.pop("LD_LIBRARY_PATH", None)
if (_given := os.environ.pop("LD_LIBRARY_PATH_ORIG", None)) is not None:
    os.environ["LD_LIBRARY_PATH"] = _given
# Work-around: PyInstaller 6.22.3 has a process of the same bundle rely on the environment of this
# one. With nothing in LD_LIBRARY_PATH it would find the libraries of the system, or none.
# https://github.com/pyinstaller/pyinstaller/pull/8634
# Remove when its loader leaves LD_LIBRARY_PATH alone.
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"

# On Windows, the program without a console opens the window, or is a service.
if Path(sys.executable).stem == "mydata-like-gui" and sys.argv[1:2] != ["watch"]:
    sys.argv.insert(1, "gui")
