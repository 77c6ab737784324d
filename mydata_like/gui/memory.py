"""What the window remembers of itself: its size, its columns, the last page."""

import os
from pathlib import Path

from platformdirs import PlatformDirs
from PySide6.QtCore import QObject, QSettings

HOME = "MYDATA_LIKE_HOME"  # as of `bootstrap`, which is too heavy for the window's first moment


class Memory(QSettings):
    """Values by name, in a small file of the program's state."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(str(_find_file()), QSettings.Format.IniFormat, parent)


def _find_file() -> Path:
    home = os.environ.get(HOME)
    state = (
        Path(home) / "state"
        if home
        else PlatformDirs("mydata-like", appauthor=False).user_state_path
    )
    return state / "window.ini"
