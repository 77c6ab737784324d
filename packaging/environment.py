"""What a bundle does first, before the program itself."""

import os
import sys
from pathlib import Path

# The bundle's loader has Linux look for libraries in the bundle first. Programs that we start,
# like a browser or a file manager, must find their own.
os.environ.pop("LD_LIBRARY_PATH", None)
if (_given := os.environ.pop("LD_LIBRARY_PATH_ORIG", None)) is not None:
    os.environ["LD_LIBRARY_PATH"] = _given
# Without this a process that we start of the same bundle would take this one's libraries for its
# own, and with nothing in LD_LIBRARY_PATH find those of the system, or none.
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"

# The program without a console, on Windows, is there for the window only.
if Path(sys.executable).stem == "mydata-like-gui":
    sys.argv.insert(1, "gui")
