"""The environment of a bundle; runs before the program."""

import os
import sys
from pathlib import Path

# The bundle's loader makes Linux search for libraries in the bundle first. Programs that we start,
# such as a browser or a file manager, must find their own.
os.environ.pop("LD_LIBRARY_PATH", None)
if (_given := os.environ.pop("LD_LIBRARY_PATH_ORIG", None)) is not None:
    os.environ["LD_LIBRARY_PATH"] = _given
# Makes a further process of the same bundle set up its own library path. Otherwise it relies on the
# LD_LIBRARY_PATH of this one, which was removed above, and finds the system's libraries or none.
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"

# On Windows, the program without a console only opens the window.
if Path(sys.executable).stem == "mydata-like-gui":
    sys.argv.insert(1, "gui")
