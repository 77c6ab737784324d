"""Explains why no window can open on this computer, and what to do.

Nothing of Qt is imported here, since Qt is what may be broken.
"""

import ctypes
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from mydata_like.core.errors import UploaderError

# The libraries that Qt loads on Linux, and their packages in Debian and Ubuntu.
PACKAGES: Final = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libfontconfig.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}
_WITHOUT: Final = "Everything works without a window, too: mydata-like --help"


class NoWindowError(UploaderError):
    """No window can open on this computer."""

    code = "window.impossible"
    exit_code = 2


def describe_obstacle(
    reason: str, missing: tuple[str, ...], environment: Mapping[str, str]
) -> NoWindowError:
    """Return why no window opens: missing libraries, no display, or the message of Qt."""
    if missing:
        packages = " ".join(PACKAGES[library] for library in missing)
        return NoWindowError(
            f"The window cannot open: this computer lacks {', '.join(missing)}.",
            hint=f"On Debian or Ubuntu: sudo apt-get install {packages}\n{_WITHOUT}",
        )
    display = environment.get("WAYLAND_DISPLAY") or environment.get("DISPLAY")
    chosen = environment.get("QT_QPA_PLATFORM")
    if sys.platform != "linux" or chosen or "platform plugin" not in reason:
        return NoWindowError(f"The window cannot open: {reason}", hint=_WITHOUT)
    if not display:
        return NoWindowError(
            "The window cannot open: there is no display here.",
            hint=f"Start it in a desktop session, or with ssh -X.\n{_WITHOUT}",
        )
    return NoWindowError(
        f"The window cannot open: the display {display} cannot be reached, or refuses us.",
        hint=f"Start it as the user of that desktop.\n{_WITHOUT}",
    )


def find_missing() -> Iterator[str]:
    """Return the system libraries that Qt needs and that are missing."""
    for library in PACKAGES if sys.platform == "linux" else ():
        try:
            ctypes.CDLL(library)
        except OSError:
            yield library


def print_error(error: UploaderError) -> None:
    """Write to standard error, if there is one, what happened and what to do."""
    if sys.stderr:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        sys.stderr.flush()
