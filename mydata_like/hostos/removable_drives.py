"""Removable drives: USB sticks, disks and memory cards."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import ctypes

_REMOVABLE: Final = 2  # DRIVE_REMOVABLE of GetDriveTypeW
# Where desktops mount them: udisks on Linux, and macOS.
MEDIA: Final = (Path("/media"), Path("/run/media"), Path("/Volumes"))


def find_drive(path: Path, media: Iterable[Path] = MEDIA) -> Path | None:
    """Return the top folder of the removable drive that a path is on; None if it is on none.

    Linux and macOS do not tell which drives are removable: those below `media` count as such.
    """
    if sys.platform == "win32":
        drive = Path(path.absolute().anchor)
        kind = ctypes.windll.kernel32.GetDriveTypeW(str(drive))
        return drive if kind == _REMOVABLE else None
    place = path.absolute()
    mounted = next(it for it in (place, *place.parents) if os.path.ismount(it))
    return mounted if any(it in mounted.parents for it in media) else None
