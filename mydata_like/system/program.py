"""How this very program is started by others: by the system, at a login."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def find_program(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the words that start the program, the first one an absolute path.

    A bundle is its own program; an AppImage is known by its file, not by the folder where it
    is mounted for now. Otherwise it is the installed command or, without one, the interpreter.
    """
    if image := environment.get("APPIMAGE"):
        return (image,)
    interpreter = Path(sys.executable).absolute()
    if getattr(sys, "frozen", False):
        return (str(interpreter),)
    script = interpreter.with_name("mydata-like.exe" if os.name == "nt" else "mydata-like")
    if script.exists():
        return (str(script),)
    return (str(interpreter), "-m", "mydata_like")
