"""How this very program is started by others: by the system, at a login."""

import os
import sys
from pathlib import Path


def find_program() -> tuple[str, ...]:
    """Return the words that start the program, the first one an absolute path.

    It is the command of the installation or the bundle that this program belongs to or, without
    one, the interpreter.
    """
    interpreter = Path(sys.executable).absolute()
    command = interpreter.with_name("mydata-like.exe" if os.name == "nt" else "mydata-like")
    if command.exists():
        return (str(command),)
    return (str(interpreter), "-m", "mydata_like")


def find_window() -> tuple[str, ...]:
    """Return the words that open the window: on Windows, of the program without a console."""
    program = find_program()
    silent = Path(program[0]).with_name("mydata-like-gui.exe")
    return (str(silent),) if silent.exists() else (*program, "gui")
