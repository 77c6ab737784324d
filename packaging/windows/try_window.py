"""Open the window of a bundle, and stop it: python try_window.py FOLDER PICTURE.

Runs under Windows. Prints how long each took, and writes what the window shows as PNG.
"""

import ctypes
import subprocess
import sys
import time
from ctypes import wintypes
from pathlib import Path

from PySide6.QtGui import QGuiApplication, QImage

PATIENCE = 120.0  # seconds
PAUSE = 0.25  # seconds between two looks
COLOURS = 50  # a window with text in it has hundreds


def find_window(pid: int) -> int:
    """Return the largest visible window of a process; 0 if it has none."""
    user = ctypes.windll.user32
    found: list[tuple[int, int]] = []

    @ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.HWND, wintypes.LPARAM)
    def look(window: int, _: int) -> bool:
        owner, frame = wintypes.DWORD(), wintypes.RECT()
        user.GetWindowThreadProcessId(window, ctypes.byref(owner))
        if owner.value == pid and user.IsWindowVisible(window):
            user.GetWindowRect(window, ctypes.byref(frame))
            size = (frame.right - frame.left) * (frame.bottom - frame.top)
            found.append((size, window))
        return True

    user.EnumWindows(look, 0)
    return max(found, default=(0, 0))[1]


def count_colours(picture: QImage) -> int:
    """Return the number of colours, of every fourth pixel in both directions."""
    places = ((x, y) for x in range(0, picture.width(), 4) for y in range(0, picture.height(), 4))
    return len({picture.pixel(x, y) for x, y in places})


def wait_for_picture(application: QGuiApplication, process: subprocess.Popen[bytes]) -> QImage:
    """Return a picture of the window of a process, as soon as it shows something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"The window ended with exit code {process.returncode}.")
        window = find_window(process.pid)
        if window:
            picture = application.primaryScreen().grabWindow(window).toImage()
            if count_colours(picture) > COLOURS:
                return picture
        time.sleep(PAUSE)
    sys.exit("No window has appeared.")


def main(folder: Path, file: Path) -> None:
    """Open the window, take a picture, and ask the program to stop."""
    application = QGuiApplication([])
    began = time.monotonic()
    process = subprocess.Popen([folder / "mydata-like-gui.exe"])
    picture = wait_for_picture(application, process)
    print(f"window: {time.monotonic() - began:.1f} s, {picture.width()} x {picture.height()}")
    picture.save(str(file))
    began = time.monotonic()
    subprocess.run([folder / "mydata-like.exe", "--installer", "stop"], check=True)
    code = process.wait(PATIENCE)
    print(f"stopped: {time.monotonic() - began:.1f} s, exit code {code}")
    sys.exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
